"""What organisations hand each other on paper or through a coordinator: boxes, agreements, identities, tables."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fuzzing import TEXTS, fuzz, outcome, spoiled, spoiled_document, words_of
from syndic.document import to_builtins, to_json
from syndic.errors import InputError, IntegrityError, RefusedError
from syndic.kernel import Agreement, PublicIdentity
from syndic.kernel.agreement import check_agreement, read_agreement
from syndic.mpc.align.table import FIELD, add, bins_of, encoded, field_words, multiply, subtract, table_shape, zeros
from syndic.mpc.key import agree, key_pair
from syndic.mpc.seal import Place, seal, unseal
from syndic.random import SimulationRandomness
from syndic.study.identity import Identity

pytestmark = pytest.mark.fuzz

RANDOM = SimulationRandomness(3, "fuzz")
PAIRS = [key_pair(RANDOM) for _ in range(2)]
SECRET = agree(PAIRS[0].private, PAIRS[1].public)
NAMES = st.sampled_from(["", "north", "south", "a b", "\x00", "é"]) | st.text(max_size=4)
PLACES = st.builds(Place, study=NAMES, label=NAMES, sender=NAMES, receiver=NAMES)

KEYS = Identity(signing=RANDOM.bytes(32), sealing=RANDOM.bytes(32))
LINE = str(KEYS.public)
RUN = "5" * 64


def signed(agreement: Agreement) -> Agreement:
    """Return the agreement with the signature of `KEYS`."""
    return replace(agreement, signature=KEYS.sign(replace(agreement, signature="").text()).hex())


NOW = datetime.now(UTC)
AGREEMENT = signed(Agreement(run=RUN, party="north", syndic="1", signed_at=NOW, expires=NOW + timedelta(days=9)))
WRITTEN = to_json(AGREEMENT)


@fuzz()
@given(st.binary(max_size=100), PLACES, st.data())
def test_a_sealed_box_opens_whole_or_not_at_all(text: bytes, place: Place, data: st.DataObject) -> None:
    box = seal(SECRET, text, place, RANDOM)
    changed, elsewhere = data.draw(spoiled(box)), data.draw(PLACES)
    found = outcome(lambda: unseal(SECRET, changed, place), kinds=(RefusedError,))
    assert found == text if changed == box else isinstance(found, RefusedError)
    moved = outcome(lambda: unseal(SECRET, box, elsewhere), kinds=(RefusedError,))
    assert moved == text if elsewhere == place else isinstance(moved, RefusedError)


@fuzz()
@given(st.data())
def test_a_spoiled_public_key_opens_nothing(data: st.DataObject) -> None:
    place = Place(study="s", label="l", sender="north", receiver="south")
    box = seal(agree(PAIRS[0].private, PAIRS[1].public), b"text", place, RANDOM)
    public = data.draw(spoiled(PAIRS[0].public) | st.sampled_from([bytes(32), b"\x01" + bytes(31), b"\xff" * 32]))
    found = outcome(lambda: unseal(agree(PAIRS[1].private, public), box, place), kinds=(RefusedError,))
    # the highest bit of such a key does not count
    same = public[:31] == PAIRS[0].public[:31] and public[31:] and public[31] & 127 == PAIRS[0].public[31] & 127
    assert found == b"text" if same and len(public) == 32 else isinstance(found, RefusedError)


@fuzz()
@given(st.data())
def test_a_spoiled_agreement_is_refused(data: st.DataObject) -> None:
    changed = data.draw(spoiled(WRITTEN))
    found = outcome(lambda: read_agreement(changed, party="north"), kinds=(RefusedError,))
    if isinstance(found, Agreement):
        refused = outcome(lambda: checked(found), kinds=(RefusedError,))
        assert isinstance(refused, RefusedError) or changed == WRITTEN


@fuzz()
@given(st.data())
def test_an_agreement_of_strange_fields_is_refused(data: st.DataObject) -> None:
    tree = to_builtins(AGREEMENT)
    changed = msgspec.json.encode(data.draw(spoiled_document(tree, words_of([tree]))))
    found = outcome(lambda: read_agreement(changed, party="north"), kinds=(RefusedError,))
    if isinstance(found, Agreement) and found != AGREEMENT:
        assert isinstance(outcome(lambda: checked(found), kinds=(RefusedError,)), RefusedError)


MOMENTS = st.datetimes(timezones=st.timezones() | st.just(UTC), allow_imaginary=False)


@fuzz()
@given(
    signed_at=MOMENTS, expires=MOMENTS, syndic=st.sampled_from(["1", "2", "\x00"]), rehearsal=st.none() | st.integers()
)
def test_whatever_an_organisation_signs_holds_or_is_refused(**fields: Any) -> None:
    agreement = signed(Agreement(run=RUN, party="north", **fields))
    found = outcome(lambda: read_agreement(to_json(agreement), party="north"), kinds=(RefusedError,))
    if isinstance(found, Agreement):
        refused = outcome(lambda: checked(found), kinds=(RefusedError,))
        assert isinstance(refused, RefusedError) or (fields["syndic"] == "1" and fields["expires"] > NOW)


def checked(agreement: Agreement) -> None:
    check_agreement(agreement, identity=LINE, run=RUN, party="north", syndic="1")


@fuzz()
@given(st.data())
def test_a_spoiled_identity_is_no_identity(data: st.DataObject) -> None:
    changed = data.draw(
        spoiled(LINE.encode()).map(lambda found: found.decode("utf-8", "replace")) | st.sampled_from(TEXTS) | st.text()
    )
    if changed == LINE:
        assert PublicIdentity.read(changed) == KEYS.public
    else:
        with pytest.raises(ValueError, match="must be the line"):
            PublicIdentity.read(changed)


@fuzz(0.5)
@given(st.data())
def test_a_spoiled_file_of_keys_is_refused(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "identity.key"
    path.unlink(missing_ok=True)
    made = Identity.make(path)
    path.write_bytes(data.draw(spoiled(path.read_bytes())))
    found = outcome(lambda: Identity.load(path), kinds=(InputError, IntegrityError))
    if isinstance(found, Identity):
        assert found == made
    else:
        assert made.signing.hex() not in str(found)
        assert made.sealing.hex() not in str(found)


WORDS = st.integers(0, FIELD - 1)


@fuzz()
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=20))
def test_the_field_of_alignments_is_that_of_whole_numbers(pairs: list[tuple[int, int]]) -> None:
    left, right = (np.array(side, dtype=np.uint64) for side in zip(*pairs, strict=True))
    for ours, exact in ((add, int.__add__), (subtract, int.__sub__), (multiply, int.__mul__)):
        assert ours(left, right).tolist() == [exact(one, other) % FIELD for one, other in pairs]


@fuzz(0.3)
@given(
    people=st.integers(1, 90),
    common=st.integers(0, 90),
    parties=st.integers(2, 4),
    seed=st.integers(0, 2**32),
)
def test_sums_of_tables_are_zero_at_common_ids_only(people: int, common: int, parties: int, seed: int) -> None:
    common = min(common, people)
    randomness, shape = SimulationRandomness(seed, "tables"), table_shape(people)

    def drawn(count: int) -> Any:
        return np.frombuffer(randomness.bytes(16 * count), dtype="<u8").reshape(-1, 2)

    everybody, total = range(shape.bins), np.zeros((shape.bins, shape.points), dtype=np.uint64)
    shared, left, held = drawn(common), np.zeros(common, dtype=np.uint64), []
    for party in range(parties):
        tags = np.concatenate([shared, drawn(people - common)])
        keys, bins = field_words(tags[:, 0].tobytes()), bins_of(tags[:, 1].tobytes(), shape)
        shares = field_words(randomness.bytes(8 * people))
        if party == parties - 1:
            shares[:common] = left
        left = subtract(left, shares[:common])
        total = add(total, encoded(keys, bins, shares, everybody, shape, randomness))
        held.append((keys, bins))
    for keys, bins in held:
        assert sorted(zeros(total, keys, bins, everybody).tolist()) == list(range(common))
