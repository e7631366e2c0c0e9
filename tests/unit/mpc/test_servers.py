"""Products by three or four servers: exact tables, and what one server, coordinator and party cannot do together.

Every attack comes with the weakening that lets it through, so that each check is shown to be needed.
"""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from organisations import COORDINATOR, agreed_nodes, homes_for
from products import carrier_of, coordinate, counted, product_of, study_of, tables
from support import CASES, THREE_VERTICAL, Case, _across, across_study, open_nodes, vertical_study
from syndic import Study
from syndic.errors import InputError, RefusedError
from syndic.kernel import decode
from syndic.methods import Marginals
from syndic.methods.layout import TableLayout
from syndic.mpc import servers
from syndic.mpc.extension import DEGREE, Extension
from syndic.mpc.key import agree_with
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import KeptPair, KeptShare, ProductTurn, Served, ServerTurn
from syndic.mpc.proof import OneHotProof
from syndic.mpc.seal import seal, unseal
from syndic.mpc.server_checks import digest_of
from syndic.mpc.servers import ServedProduct
from syndic.runtime import Local
from syndic.study.run import run_study

Matrix = NDArray[Any]
PARTS = tables(150, (3, 2), (4,), (2,), (3,), (2,))
PAIRS = [["p0c0", "p1c0"], ["p0c1", "p1c0"], ["p0c0", "p2c0"], ["p2c0", "p3c0"], ["p3c0", "p4c0"]]
TRIPLES = [["p1c0", "p0c0", "p3c0"], ["p0c0", "p1c0", "p2c0"], ["p2c0", "p4c0", "p3c0"]]
NAMES = ("p1", "p2", "p3", "p4")


def served(count: int, **options: Any) -> Study:
    """Return the study with so many servers; four also count tables of three parties' columns."""
    cliques = {"cliques": PAIRS + (TRIPLES if count > 3 else [])}
    return study_of(PARTS, **{"servers": list(NAMES[:count])} | cliques | options)


THREE, FOUR = served(3), served(4)
PRODUCT: Any = product_of(FOUR)
UNPROVEN = "the proof that a partner's rows are one-hot does not hold"
# a person whose column of p1 has its second level: what p0 tries to read
VICTIM = int(np.flatnonzero(PARTS[1].codes["p1c0"] == 1)[0])
TRUE = np.stack([PARTS[0].codes["p0c0"] == 0, PARTS[0].codes["p0c0"] == 1, PARTS[0].codes["p0c1"] == 0], axis=1)
BAD = TRUE.astype(np.int64)
BAD[VICTIM, 0] = 1000


class Carrier:
    """A coordinator that may change what it sends; `stages` are those of the servers' work that were answered."""

    def __init__(self, study: Study, lie: Any = None) -> None:
        self.carrier, self.lie, self.stages = carrier_of(study, PARTS), lie, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.carrier, name)

    def ask(self, step: Any, message: Any, **more: Any) -> Any:
        asked = message if isinstance(message, dict) else dict.fromkeys(self.carrier.members, message)
        if self.lie is not None:
            asked = {name: self.lie(self, step.__name__, name, one) for name, one in asked.items()}
        answers = self.carrier.ask(step, asked, **more)
        self.stages += [one.stage for one in asked.values() if isinstance(one, ServerTurn)]
        return answers


@pytest.fixture(params=[THREE, FOUR], ids=["three", "four"])
def study(request: pytest.FixtureRequest) -> Study:
    """Return the study, with three servers and with four."""
    found: Study = request.param
    return found


def servers_of(study: Study) -> tuple[str, ...]:
    assert isinstance(study.protocol, Marginals)
    return study.protocol.servers


def refused(study: Study, lie: Any = None) -> bool:
    """Run the study with what the coordinator changes; return whether a server refused before anything opened."""
    return ends(study, Carrier(study, lie))


def ends(study: Study, carrier: Carrier) -> bool:
    """Run the study; return whether a server refused, and check that then nobody drew noise or opened anything."""
    text = ""
    try:
        coordinate(study, carrier)
    except RefusedError as error:
        text = str(error)
    assert not text or text.startswith(UNPROVEN)
    assert any(one.drawn for one in carrier.members.values()) == (not text)
    return bool(text)


def cheating(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let p0 send rows with a large number."""
    honest = TableLayout.rows

    def cheat(self: TableLayout, party: Any, span: tuple[int, int], recode: Any) -> Matrix:
        return BAD[slice(*span)] if party.name == "p0" else honest(self, party, span, recode)

    monkeypatch.setattr(TableLayout, "rows", cheat)
    monkeypatch.setattr(SecureProduct, "check_unchanged", lambda *_: None)


@pytest.mark.parametrize("chunk", [0, 64])
@pytest.mark.parametrize("order", [("p3", "p0", "p1"), ("p4", "p2", "p0", "p1")], ids=["three", "four"])
def test_tables_are_exact(order: tuple[str, ...], chunk: int) -> None:
    study = served(len(order), servers=list(order))
    if chunk:
        product = product_of(study)
        object.__setattr__(product.sizes, "chunk", chunk)
        assert product.sizes.chunks == 3
    carrier = Carrier(study)
    found = coordinate(study, carrier)
    assert len(found.tables) == len(PAIRS) + (len(TRIPLES) if len(order) == 4 else 0)
    for table in found.tables:
        assert np.array_equal(table.values, counted(PARTS, table.domain.names)), table.domain.names
    assert carrier.stages.count("answer") == len(order) * (3 if chunk else 1)


def test_a_party_may_only_be_the_third_of_a_table() -> None:
    """It sends rows, multiplies nothing and has no share: two others open the table."""
    study = study_of(PARTS, servers=list(NAMES), cliques=TRIPLES[1:2])
    assert product_of(study).pairs == (("p0", "p1"),)
    carrier = Carrier(study)
    found = coordinate(study, carrier)[tuple(TRIPLES[1])]
    assert np.array_equal(found.values, counted(PARTS, tuple(TRIPLES[1])))
    assert not any(key.startswith("product total") for key in carrier.members["p2"].memory)
    with pytest.raises(RefusedError, match="no rows of p4 are multiplied"):
        product_of(study).mask(carrier.members["p4"], ProductTurn(chunk=0, keys={}), lambda *_: TRUE)


def test_three_servers_count_no_table_of_three_parties() -> None:
    with pytest.raises(InputError, match="at one or two parties"):
        served(3, cliques=TRIPLES).plan.check()
    quartet = [["p0c0", "p1c0", "p2c0", "p3c0"]]
    with pytest.raises(InputError, match="at one, two or three parties"):
        served(4, cliques=quartet).plan.check()


SERVED = 'servers = ["south", "east", "north"]'


def test_organisations_run_a_study_and_are_told_who_can_read_rows(tmp_path: Path) -> None:
    case = _across("marginals", vertical_study(SERVED, parties=THREE_VERTICAL))
    study, homes = homes_for(case.study, case.sources, tmp_path)
    nodes = agreed_nodes(study, homes)
    release = run_study(study, Local(nodes), identity=COORDINATOR)
    assert {one.step for one in release.transcript} - {"ready", "meet"} == set(study.plan.rounds)
    assert max(one.reply_bytes for one in release.transcript) <= study.plan.resources.reply_bytes
    for node in nodes.values():
        assert node.state.ledger.charged(study.digest) == node.state.events
        node.close()
    text = str(study.plan.disclosure)
    assert "two of the servers south, east, north together" in text
    assert "coordinator and one party" not in text


@pytest.mark.parametrize(
    "case",
    [
        _across("synthesis", across_study("synthesis", f"{SERVED}\nmodel_cells = 60", parties=THREE_VERTICAL)),
        next(case for case in CASES if case.name == "synthesis four servers"),
    ],
    ids=["three", "four"],
)
def test_a_synthesis_multiplies_by_servers(case: Case, tmp_path: Path) -> None:
    nodes = open_nodes(case, tmp_path, seed=3)
    release = run_study(case.study, Local(nodes), seed=3)
    assert {one.step for one in release.transcript} - {"ready"} == set(case.study.plan.rounds)
    assert max(one.reply_bytes for one in release.transcript) <= case.study.plan.resources.reply_bytes


@pytest.mark.parametrize("weak", [False, True], ids=["proven", "unproven"])
def test_rows_that_are_not_one_hot(study: Study, weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cheating(monkeypatch)
    if weak:
        monkeypatch.setattr(OneHotProof, "holds", lambda *_: True)
        surplus = coordinate(study, Carrier(study))["p0c0", "p1c0"].values - counted(PARTS, ("p0c0", "p1c0"))
        assert abs(surplus[0, 1]) >= 999
        return
    assert refused(study)


@pytest.mark.parametrize("weak", [False, True], ids=["proven", "unproven"])
def test_rows_of_a_third_party_that_are_not_one_hot(weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets no share, and could else show the person's values at both others to all who see the table."""
    honest, person = TableLayout.rows, 7

    def cheat(self: TableLayout, party: Any, span: tuple[int, int], recode: Any) -> Matrix:
        rows = honest(self, party, span, recode).astype(np.int64)
        rows[person, 0] = 1000 if party.name == "p3" else rows[person, 0]
        return rows

    monkeypatch.setattr(TableLayout, "rows", cheat)
    monkeypatch.setattr(SecureProduct, "check_unchanged", lambda *_: None)
    if not weak:
        assert refused(FOUR)
        return
    monkeypatch.setattr(OneHotProof, "holds", lambda *_: True)
    names = tuple(TRIPLES[0])
    surplus = coordinate(FOUR, Carrier(FOUR))[names].values - counted(PARTS, names)
    place = PARTS[1].codes["p1c0"][person], PARTS[0].codes["p0c0"][person]
    assert np.argwhere(surplus[..., 0] > 900).tolist() == [list(place)]


@pytest.mark.parametrize("liar", NAMES[:2])
@pytest.mark.parametrize("weak", [False, True], ids=["line", "no line"])
def test_a_server_that_answers_so_that_bad_rows_of_a_friend_hold(
    study: Study, liar: str, weak: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows all of p0's proof: what is missing at 0 it could add, if answers need not be on a line."""
    cheating(monkeypatch)
    made: dict[bytes, Matrix] = {}
    prove, answer, served = OneHotProof.prove, OneHotProof.answer, ServedProduct._answer
    now = [""]

    def proving(self: OneHotProof, matrix: Matrix, seed: bytes, fresh: bytes) -> Matrix:
        return made.setdefault(seed, prove(self, matrix, seed, fresh))

    def lying(self: OneHotProof, share: Matrix, shared: Matrix, seed: bytes, point: Matrix) -> Matrix:
        found = answer(self, share, shared, seed, point)
        if now[0] != liar or self.groups != (2, 1):
            return found
        at_zero = answer(self, self.field.reduce(BAD), made[seed], seed, point)
        wanted = holding(self, at_zero)
        # the value at 0 is 2 a(1) - a(2)
        lacks = self.field.subtract(wanted, at_zero).astype(np.int64)
        factor = (self.field.modulus + 1) // 2 if liar == NAMES[0] else -1
        return self.field.add(found, self.field.reduce(lacks * factor))

    def serving(self: ServedProduct, party: Any, message: ServerTurn) -> Any:
        now[0] = party.name
        return served(self, party, message)

    monkeypatch.setattr(OneHotProof, "prove", proving)
    monkeypatch.setattr(OneHotProof, "answer", lying)
    monkeypatch.setattr(ServedProduct, "_answer", serving)
    if weak:
        monkeypatch.setattr(servers, "on_line", lambda *_: True)
    assert refused(study) != weak


def holding(proof: OneHotProof, answer: Matrix) -> Matrix:
    """Return an answer with the same F that would hold."""
    k, f = Extension(proof.field.modulus), answer[: -2 * DEGREE]
    h = k.reduce(k.squares(k.elements(f).reshape(DEGREE, -1)))
    return np.concatenate([f, h.ravel(), np.zeros(DEGREE)]).astype(proof.field.dtype)


@pytest.mark.parametrize(
    ("server", "what", "weak"),
    [
        *((name, what, False) for name in NAMES for what in ("rows", "proofs")),
        ("p2", "rows", True),
        ("p3", "proofs", True),
    ],
)
def test_a_share_that_is_made_after_the_challenge(
    server: str, what: str, weak: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coordinator and p0 together could deliver another share once they know what it must satisfy."""

    def late(self: Carrier, step: str, name: str, message: Any) -> Any:
        if step != "product_served" or message.stage != "answer" or name != server:
            return message
        party, label = self.members["p0"], {"rows": "rows", "proofs": "proof"}[what]
        private = party.recall(f"{PRODUCT.label} own", KeptPair).pair.private
        secret = agree_with(party, private, {name: message.keys[name]})[name]
        receiver = self.members[name]
        opener = agree_with(receiver, receiver.recall("product own", KeptPair).pair.private, {"p0": message.keys["p0"]})
        place = PRODUCT.place(party, 0, "p0", name, label)
        text = unseal(opener["p0"], getattr(message, what)["p0"], place)
        again = seal(secret, text, place, party.randomness)
        return msgspec.structs.replace(message, **{what: {**getattr(message, what), "p0": again}})

    if weak:
        monkeypatch.setattr(servers, "same", lambda *_: True)
    carrier = Carrier(FOUR, late)
    assert ends(FOUR, carrier) != weak
    assert ("check" in carrier.stages) == weak


def test_digests_cover_the_senders_key() -> None:
    """The cipher does not commit to its key: one box may hold two texts, one for each public key of a liar."""
    assert digest_of(b"key", b"box") != digest_of(b"other", b"box") != digest_of(b"other", b"bo")


@pytest.mark.parametrize("weak", [False, True], ids=["bound", "unbound"])
def test_a_verifier_that_asks_for_another_challenge_than_the_proofs(
    study: Study, weak: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else answers would depend on the difference of two challenges, and so on rows."""

    def other(self: Carrier, step: str, name: str, message: Any) -> Any:
        if step != "product_proved" or name != "p0":
            return message
        return msgspec.structs.replace(message, seed=b"o" * 32 + message.seed[32:])

    if weak:
        monkeypatch.setattr(servers, "same", lambda *_: True)
    carrier = Carrier(study, other)
    # the proof is of the challenge that p0 was told: servers use that one, so it holds
    assert ends(study, carrier) != weak
    assert ("check" in carrier.stages) == weak


@pytest.mark.parametrize("weak", [False, True], ids=["outside", "anywhere"])
def test_a_point_in_the_field(study: Study, weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 1 the verifier would see the first rows, not hidden by anything."""
    at_one = np.array([1, 0, 0, 0], dtype=PRODUCT.sizes.ring.dtype)
    monkeypatch.setattr(OneHotProof, "point", lambda *_: at_one)
    if weak:
        monkeypatch.setattr(OneHotProof, "outside", lambda *_: True)
    assert refused(study) != weak


@pytest.mark.parametrize("weak", [False, True], ids=["told", "untold"])
def test_a_verifier_that_asks_two_servers_for_two_points(
    study: Study, weak: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its own share it has f at both: a combination of rows that no mask hides."""
    query, seen = ServedProduct._query, list[bytes]()

    def lying(self: ServedProduct, party: Any, message: ServerTurn) -> Any:
        found = query(self, party, message)
        if party.name == "p1":
            other = query(self, party, message)
            found = msgspec.structs.replace(found, boxes={**found.boxes, "p3": other.boxes["p3"]})
        return found

    def looking(self: ServedProduct, party: Any, message: ServerTurn) -> Any:
        seen.extend(message.boxes.values() if party.name == "p1" else ())
        return Served(seeds={}, boxes={})

    monkeypatch.setattr(ServedProduct, "_query", lying)
    monkeypatch.setattr(ServedProduct, "_check", looking)
    if weak:
        monkeypatch.setattr(servers, "same_points", lambda *_: True)
    assert refused(study) != weak
    assert bool(seen) == weak


def test_a_proof_at_two_points_shows_rows() -> None:
    """What a verifier could take off the masks with is known to it: a wrong guess of one row does not fit."""
    proof, seed = PRODUCT.proof("p0", 0), b"s" * 32
    k, made = Extension(proof.field.modulus), proof.prove(TRUE, seed, b"f" * 32)
    points = [proof.point(key * 32) for key in (b"1", b"2")]
    masks = [k.coefficients(proof.points, k.elements(point))[:, :1] for point in points]

    def unmasked(rows: Matrix, shared: Matrix) -> Matrix:
        answers = [proof.answer(proof.field.reduce(rows), shared, seed, point)[: -2 * DEGREE] for point in points]
        one, other = (k.elements(each).reshape(DEGREE, -1) for each in answers)
        return k.reduce(k.times(masks[1], one) - k.times(masks[0], other))

    seen, nothing = unmasked(TRUE, made), np.zeros_like(made)
    assert np.array_equal(seen, unmasked(TRUE, nothing))
    assert not np.array_equal(seen, unmasked(BAD, nothing))


def shares_of(study: Study, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Matrix]]:
    """Return all that every server has of the parties' rows in an honest run."""
    seen: dict[str, dict[str, Matrix]] = {}
    multiply = ServedProduct._multiply

    def looking(self: ServedProduct, party: Any, chunk: int, shares: Any) -> None:
        seen[party.name] = dict(shares)
        multiply(self, party, chunk, shares)

    monkeypatch.setattr(ServedProduct, "_multiply", looking)
    coordinate(study, Carrier(study))
    return seen


def test_two_servers_read_rows_as_the_statement_says_and_one_does_not(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    field, seen = PRODUCT.sizes.ring, shares_of(study, monkeypatch)
    names = servers_of(study)
    assert seen.keys() == set(names)
    for one, other in combinations(range(len(names)), 2):
        first, second = (seen[names[place]]["p0"].astype(np.int64) for place in (one, other))
        gap = pow(other - one, -1, field.modulus)
        assert np.array_equal(field.reduce(((other + 1) * first - (one + 1) * second) % field.modulus * gap), TRUE)
    for share in seen.values():
        # of 450 uniform numbers of 17 bits hardly any two are equal, and none is small
        assert len(np.unique(share["p0"])) > 440
        assert abs(np.corrcoef(share["p0"][:, 0].astype(float), TRUE[:, 0])[0, 1]) < 0.4


@pytest.mark.parametrize("place", range(4))
def test_a_server_that_sends_another_term_shifts_tables_by_what_it_chose(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, part = coordinate(FOUR, Carrier(FOUR)), ServedProduct._share

    def lying(self: ServedProduct, party: Any, message: ServerTurn) -> Any:
        if party.name == NAMES[place]:
            kept = party.recall(self._served(("p0", "p1")), KeptShare)
            party.remember(self._served(("p0", "p1")), KeptShare(total=kept.total + np.uint64(5)))
        return part(self, party, message)

    monkeypatch.setattr(ServedProduct, "_share", lying)
    found, factor = coordinate(FOUR, Carrier(FOUR)), (4, -6, 4, -1)[place]
    pair, triple = (found[names].values - honest[names].values for names in (("p0c0", "p1c0"), tuple(TRIPLES[1])))
    assert pair[0, 0] == factor * 5
    assert pair.sum() == 0
    assert (triple == factor * 5).all()
    others = ("p2c0", "p3c0")
    assert np.array_equal(found[others].values, honest[others].values)


def unlike(text: bytes, count: int, change: Callable[[Matrix], None]) -> bytes:
    """Return packed numbers of which a party changed some."""
    field = PRODUCT.sizes.ring
    numbers = field.unpack(text, count).astype(np.int64)
    change(numbers)
    return bytes(field.pack(field.reduce(numbers)))


def splitting(monkeypatch: pytest.MonkeyPatch, what: str, place: int, change: Callable[[Matrix], None]) -> None:
    """Let p0 give one server other shares than those on the line of the others."""
    split = ServedProduct._split

    def lying(self: ServedProduct, party: Any, chunk: int, label: str, values: Matrix) -> list[bytes]:
        texts = split(self, party, chunk, label, values)
        if party.name == "p0" and label.startswith(what):
            texts[place] = unlike(texts[place], values.size, change)
        return texts

    monkeypatch.setattr(ServedProduct, "_split", lying)


@pytest.mark.parametrize("weak", [False, True], ids=["line", "no line"])
def test_a_share_off_the_line_for_one_honest_server_would_show_a_record(
    weak: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """p0 and server p4 know Y(4), so Y(3) = (Y + 3 Y(4)) / 4: p0 adds so much in a cell that Y is far above noise."""
    field, seen = PRODUCT.sizes.ring, dict[str, Matrix]()
    far = field.modulus // 4
    # the factor of p3, the third server, is 4
    off = int(pow(4, -1, field.modulus)) * 4 * far % field.modulus

    def change(numbers: Matrix) -> None:
        numbers[VICTIM * 3] += off

    splitting(monkeypatch, "rows", 2, change)
    if not weak:
        assert refused(FOUR)
        return
    monkeypatch.setattr(servers, "on_line", lambda *_: True)
    multiply = ServedProduct._multiply

    def looking(self: ServedProduct, party: Any, chunk: int, shares: Any) -> None:
        if party.name == "p4":
            seen.update(shares)
        multiply(self, party, chunk, shares)

    monkeypatch.setattr(ServedProduct, "_multiply", looking)
    for person in (VICTIM, int(np.flatnonzero(PARTS[1].codes["p1c0"] == 0)[0])):
        monkeypatch.setattr(f"{__name__}.VICTIM", person)
        names = ("p0c0", "p1c0")
        surplus = coordinate(FOUR, Carrier(FOUR))[names].values[0, 1] - counted(PARTS, names)[0, 1]
        known = far * 3 * int(seen["p1"][person, 1])
        assert (surplus - known) % field.modulus == far * (PARTS[1].codes["p1c0"][person] == 1)


@pytest.mark.parametrize("place", [1, 2, 3])
@pytest.mark.parametrize("what", ["rows", "proof 0", "proof 1"])
def test_shares_of_four_servers_that_are_on_no_line_are_refused(
    what: str, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(numbers: Matrix) -> None:
        numbers[-1] += 1

    splitting(monkeypatch, what, place, change)
    assert refused(FOUR)


def test_every_entry_of_rows_and_proof_is_in_the_answers() -> None:
    """What takes a server's shares off the line of the others shows in its answer, wherever it is."""
    proof = OneHotProof(PRODUCT.sizes.ring, (2, 1), 70)
    seed, point = b"s" * 32, PRODUCT.proof("p0", 0).point(b"p" * 32)
    none, nothing = np.zeros((70, 3)), np.zeros(proof.length)
    for place in range(none.size + nothing.size):
        off = np.zeros(none.size + nothing.size, dtype=proof.field.dtype)
        off[place] = 1
        rows, made = np.split(off, [none.size])
        assert proof.answer(rows.reshape(none.shape), made, seed, point).any(), place


def test_stages_are_answered_once_in_order_and_by_servers_only(study: Study) -> None:
    carrier, product = Carrier(study), product_of(study)
    assert isinstance(product, ServedProduct)
    coordinate(study, carrier)
    turn = ServerTurn(chunk=0, stage="share", keys={}, digests={}, rows={}, proofs={}, boxes={})
    for name, stage, text in (
        ("p0", "share", "not one of the servers"),
        ("p3", "check", "no such stage"),
        (servers_of(study)[-1], "query", "no such stage"),
        (servers_of(study)[-1], "share", "answered once, in order"),
        ("p1", "wrong", "no such stage"),
        ("p1", "share", "answered once, in order"),
        ("p1", "answer", "answered once, in order"),
    ):
        asked = msgspec.structs.replace(turn, stage=stage)
        with pytest.raises(RefusedError, match=text):
            product.product_served(carrier.members[name], asked)


def test_a_verifier_gives_no_share_before_it_has_checked(study: Study) -> None:
    class StopError(Exception): ...

    def skipping(self: Carrier, step: str, name: str, message: Any) -> Any:
        if step == "product_served" and message.stage == "check":
            raise StopError
        return message

    carrier, product = Carrier(study, skipping), product_of(study)
    assert isinstance(product, ServedProduct)
    with pytest.raises(StopError):
        coordinate(study, carrier)
    keys = dict.fromkeys(carrier.members, b"")
    turn = ServerTurn(chunk=1, stage="share", keys=keys, digests={}, rows={}, proofs={}, boxes={})
    for name in NAMES[:2]:
        with pytest.raises(RefusedError, match="answered once, in order"):
            product.product_served(carrier.members[name], turn)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"servers": ["p0", "p1"]}, "three or four different parties"),
        ({"servers": ["p0", "p1", "p1"]}, "three or four different parties"),
        ({"servers": ["p0", "p1", "p2", "p0"]}, "three or four different parties"),
        ({"servers": ["p0", "p1", "p2", "p3", "p4"]}, "three or four different parties"),
        ({"servers": ["p0", "p1", "p2"], "adversary": "passive"}, 'adversary "active"'),
        ({"servers": ["p0", "p1", "west"]}, "'west' is not a party"),
    ],
)
def test_servers_are_three_or_four_parties_of_a_proven_study(options: dict[str, Any], text: str) -> None:
    with pytest.raises((InputError, ValueError), match=text):
        study_of(PARTS, **options).plan.check()


def test_the_two_with_shares_of_a_table_of_three_parties_have_it_exactly() -> None:
    """Noise does not help against both: such tables are counted only where one party may collude (`partners_with`)."""
    names = ("p0c0", "p1c0", "p2c0")
    study = study_of(PARTS, servers=["p2", "p3", "p4", "p1"], cliques=[list(names)])
    carrier = carrier_of(study, PARTS, noisy=True)
    coordinate(study, carrier)
    field, totals = product_of(study).sizes.ring, []
    for own, other in (("p0", "p1"), ("p1", "p0")):
        kept: Any = carrier.members[own].memory[f"product total {other}"]
        totals.append((decode(kept, KeptShare) if isinstance(kept, bytes) else kept).total.astype(np.int64))
    exact = counted(PARTS, names).ravel()
    assert field.lift(field.reduce(totals[0] + totals[1])).ravel().tolist() == exact.tolist()
    with pytest.raises(InputError, match="at one or two parties"):
        study_of(PARTS, servers=["p2", "p3", "p4", "p1"], cliques=[list(names)], colluding=2).check()
