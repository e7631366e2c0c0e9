"""Dishonest parties and dealers of a secure product against honest steps: refused, and caught only by the check meant.

Every attack comes with the weakening that lets it through, so that each check is shown to be needed.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from faulty_runtime import charged
from lying_dealer import Lie, LyingDealer, accepted, told
from products import carrier_of, coordinate, counted, product_of, study_of, tables
from runtimes import session_over
from support import CASES, open_nodes
from syndic.errors import PartyError, RefusedError
from syndic.kernel import Call, Nothing, Reply, answer, decode, encode
from syndic.methods import Marginals
from syndic.methods.layout import TableLayout
from syndic.mpc import dealer, product, product_messages
from syndic.mpc.extension import Extension
from syndic.mpc.key import PublicKey, context, derive
from syndic.mpc.mask import expand
from syndic.mpc.order import Stage
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import ProductChallenge, ProductOpening, ProductProof
from syndic.mpc.proof import OneHotProof
from syndic.mpc.triple import Stock
from syndic.random import SecretRandomness
from syndic.runtime import Local
from syndic.study.party_folder import PartyFolder

PARTS = tables(200, (3, 2), (4,))
STUDY = study_of(PARTS)
PRODUCT = product_of(STUDY)
PROOF = PRODUCT.proof("p0", 0)
FIELD = PROOF.field
K = Extension(FIELD.modulus)
# a person whose column of p1 has its second level: what p0 tries to read
VICTIM = int(np.flatnonzero(PARTS[1].codes["p1c0"] == 1)[0])
UNPROVEN = "the proof that a partner's rows are one-hot does not hold"

Matrix = NDArray[Any]


def onehot(codes: Matrix, other: Matrix) -> Matrix:
    """Return the rows that p0 sends: two levels of one column, one level of another."""
    return np.stack([codes == 0, codes == 1, other == 0], axis=1).astype(np.int64)


TRUE = onehot(PARTS[0].codes["p0c0"], PARTS[0].codes["p0c1"])


class Dealer(LyingDealer):
    """It computes what it could know of p0's rows and proof."""

    def mask(self) -> Matrix:
        """Return p0's mask."""
        seed = self.sent["product_keys", "p0"].seed
        return Stock(seed=seed, study=STUDY.digest, party="p0", sizes=PRODUCT.sizes).mask(0, 3)

    def share(self) -> Matrix:
        """Return the dealer's share of p0's proof."""
        return PROOF.drawn(self.heard["product_proved", "p0"].seed, "share", PROOF.length)


def checked(inbox: Any, **changes: Any) -> Any:
    """Return p1's inbox with other parts of the check of p0's proof."""
    check = msgspec.structs.replace(inbox.proofs["p0"], **changes)
    return msgspec.structs.replace(inbox, proofs={"p0": check})


def accepts(lie: Lie, *, seed: int = 5) -> bool:
    """Run the study with a lying dealer; return whether it came to its end."""
    return accepted(STUDY, Dealer(carrier_of(STUDY, PARTS, seed=seed), lie), UNPROVEN)


def cheating(monkeypatch: pytest.MonkeyPatch, rows: Matrix, *, when: str = "") -> None:
    """Let p0 send other rows; a cheat does not stop itself. With `when`, only in one step."""
    honest = TableLayout.rows
    stages = {"product_masked": 2, "product_proved": 3, "product_multiplied": 4}

    def cheat(self: TableLayout, party: Any, span: tuple[int, int], recode: Any) -> Matrix:
        stage = party.recall("product stage", Stage).done
        lies = party.name == "p0" and (not when or stages[when] == stage)
        return rows[slice(*span)] if lies else honest(self, party, span, recode)

    monkeypatch.setattr(TableLayout, "rows", cheat)
    monkeypatch.setattr(SecureProduct, "check_unchanged", lambda *_: None)


def surplus(carrier: Any) -> Matrix:
    """Return what is in the published table above its true counts."""
    found: Matrix = coordinate(STUDY, carrier)["p0c0", "p1c0"].values - counted(PARTS, ("p0c0", "p1c0"))
    return found


def changed(*cells: tuple[int, int, int]) -> Matrix:
    rows = TRUE.copy()
    for row, _, _ in cells:
        rows[row] = 0
    for row, column, value in cells:
        rows[row, column] = value
    return rows


OTHER = (VICTIM + 1) % 200
BAD = {
    "1000 in a cell": changed((VICTIM, 0, 1000)),
    "100 and -99 in a row": changed((VICTIM, 0, 100), (VICTIM, 1, -99)),
    "+100 and -100 in a column": changed((VICTIM, 0, 100), (OTHER, 0, -100)),
    "two ones": changed((VICTIM, 0, 1), (VICTIM, 1, 1)),
}


# A party that lies.


@pytest.mark.parametrize("rows", BAD.values(), ids=BAD)
@pytest.mark.parametrize("weak", [False, True], ids=["checked", "unchecked"])
def test_rows_that_are_not_one_hot(rows: Matrix, weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cheating(monkeypatch, rows)
    carrier = carrier_of(STUDY, PARTS)
    if weak:
        monkeypatch.setattr(OneHotProof, "holds", lambda *_: True)
        # what p1's people of level 1 add, and among them the victim
        expected = (rows - TRUE)[PARTS[1].codes["p1c0"] == 1, :2].sum(axis=0)
        assert surplus(carrier)[:2, 1].tolist() == expected.tolist()
        assert expected.any()
        return
    with pytest.raises(RefusedError, match=UNPROVEN):
        surplus(carrier)
    assert not any(member.drawn for member in carrier.members.values())


def only(part: str) -> Callable[[OneHotProof, Matrix, Matrix], bool]:
    """Return the check without one of its equations."""

    def holds(proof: OneHotProof, one: Matrix, other: Matrix) -> bool:
        total = proof.field.add(one, other).astype(np.float64)
        f, h, o = np.split(total, [total.size - 8, total.size - 4])
        return not (K.reduce(K.squares(f.reshape(4, -1)) - h).any() if part == "squares" else o.any())

    return holds


@pytest.mark.parametrize(("forged", "missed"), [(False, "squares"), (True, "sums")])
@pytest.mark.parametrize("weak", [False, True], ids=["checked", "unchecked"])
def test_the_best_proof_of_bad_rows(forged: bool, missed: str, weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the true h the sums differ; with an h that makes them right the squares do."""
    rows = BAD["1000 in a cell"]
    cheating(monkeypatch, rows)
    prove = OneHotProof.prove

    def shifted(proof: OneHotProof, matrix: Matrix, seed: bytes, fresh: bytes) -> Matrix:
        made = prove(proof, matrix, seed, fresh)
        return moved(proof, matrix, seed, made) if forged and matrix.max() > 1 else made

    monkeypatch.setattr(OneHotProof, "prove", shifted)
    if weak:
        monkeypatch.setattr(OneHotProof, "holds", only(missed))
        assert surplus(carrier_of(STUDY, PARTS))[0, 1] == 1000 - TRUE[VICTIM, 0]
    else:
        with pytest.raises(RefusedError, match=UNPROVEN):
            surplus(carrier_of(STUDY, PARTS))


def places_of_h(proof: OneHotProof) -> Matrix:
    """Return where a proof has h: an element of K for each of 0..2 points."""
    count = 2 * proof.points + 1
    return proof.length - 4 * count + np.arange(4 * count).reshape(4, count)


def missing(proof: OneHotProof, matrix: Matrix, seed: bytes, made: Matrix) -> Matrix:
    """Return O of a matrix and a proof that is not shared."""
    point = proof.point(b"p" * 32)
    return proof.answer(proof.field.reduce(matrix), made, seed, point)[-4:].astype(np.int64)


def moved(proof: OneHotProof, matrix: Matrix, seed: bytes, made: Matrix) -> Matrix:
    """Return the proof with h(1) moved by what O lacks."""
    forged, at = made.astype(np.int64), places_of_h(proof)[:, 1]
    forged[at] -= missing(proof, matrix, seed, made)
    return proof.field.reduce(forged)


def test_a_party_that_lies_in_its_own_product_shows_the_dealer_a_record_as_the_statement_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What no proof of the masked rows covers: the shift that it makes is known to the dealer but for the record."""
    many = 30_000
    cheating(
        monkeypatch, TRUE + many * (np.arange(200) == VICTIM)[:, None] * np.array([1, 0, 0]), when="product_multiplied"
    )
    monkeypatch.setattr(product_messages, "_digest", lambda _: b"")
    looks = Dealer(carrier_of(STUDY, PARTS))
    shift = surplus(looks)[0, :3]
    seed = looks.sent["product_keys", "p1"].seed
    mask = Stock(seed=seed, study=STUDY.digest, party="p1", sizes=PRODUCT.sizes).mask(0, 3)[VICTIM].astype(np.int64)
    assert FIELD.reduce(shift + many * mask).tolist() == FIELD.reduce(np.array([0, many, 0])).tolist()


# A dealer that lies.


@pytest.mark.parametrize("weak", [False, True], ids=["checked", "unchecked"])
def test_two_seeds(weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another seed for the partner, its refusal tells whether a guess of all rows is right."""
    if weak:
        monkeypatch.setattr(product, "_same_seed", lambda *_: True)

    def guessing(guess: Matrix) -> Callable[[Dealer, Any], Any]:
        def lie(self: Dealer, inbox: Any) -> Any:
            check, nothing = inbox.proofs["p0"], np.zeros(PROOF.length, dtype=FIELD.dtype)
            point = FIELD.unpack(check.point, 4)
            answer = PROOF.answer(self.mask(), self.share(), b"2" * 32, point)
            first, second = (
                PROOF.answer(FIELD.reduce(guess), nothing, seed, point) for seed in (check.seed, b"2" * 32)
            )
            answer = FIELD.add(answer, FIELD.subtract(first, second))
            return checked(inbox, seed=b"2" * 32, answer=FIELD.pack(answer))

        return lie

    neighbour = changed((VICTIM, int(TRUE[VICTIM, 0]), 1))
    assert accepts(told(guessing(TRUE))) == weak
    assert not accepts(told(guessing(neighbour)))


@pytest.mark.parametrize("weak", [False, True], ids=["checked", "unchecked"])
def test_a_point_in_the_field(weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 1 the check is of a row itself: the refusal tells whether a guess of one cell is right."""
    if weak:
        monkeypatch.setattr(OneHotProof, "outside", lambda *_: True)
    (column,) = np.flatnonzero(TRUE[0, :2]).tolist()

    def guessing(level: int) -> Callable[[Dealer, Any], Any]:
        def lie(self: Dealer, inbox: Any) -> Any:
            seed, point = inbox.proofs["p0"].seed, np.array([1, 0, 0, 0], dtype=FIELD.dtype)
            answer = PROOF.answer(self.mask(), self.share(), seed, point).astype(np.int64)
            r, v, u = (
                PROOF.drawn(seed, name, 4 * count).reshape(4, count).astype(np.float64)
                for name, count in (("columns", 3), ("points", 64), ("sums", 2 * 4))
            )
            z = K.times(K.times(v[:, :1], u[:, :1]), r[:, level : level + 1])[:, 0]
            answer[0] += 1  # F of the first row and column moved by one, H by what that does to a square
            answer[-8:-4] += 2 * z.astype(np.int64) + np.array([1, 0, 0, 0])
            return checked(inbox, point=FIELD.pack(point), answer=FIELD.pack(FIELD.reduce(answer)))

        return lie

    assert accepts(told(guessing(column))) == weak
    assert not accepts(told(guessing(1 - column)))


@pytest.mark.parametrize("place", [0, 5, -8, -4, -1], ids=["F", "another F", "H", "O", "end of O"])
@pytest.mark.parametrize("weak", [False, True], ids=["checked", "unchecked"])
def test_shifted_answers(place: int, weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if weak:
        monkeypatch.setattr(OneHotProof, "holds", lambda *_: True)

    def lie(self: Dealer, inbox: Any) -> Any:
        answer = FIELD.unpack(inbox.proofs["p0"].answer, PROOF.answer_length)
        answer[place] = (answer[place] + 1) % FIELD.modulus
        return checked(inbox, answer=FIELD.pack(answer))

    for seed in range(3):
        assert accepts(told(lie), seed=seed) == weak


@pytest.mark.parametrize("part", ["seed", "point", "body", "key", "answer"])
def test_no_part_of_a_check_can_be_changed(part: str) -> None:
    """Wherever one bit is changed, the partner refuses; it would not if the part were not used."""
    generator = np.random.default_rng(len(part))
    for _ in range(5):

        def lie(self: Dealer, inbox: Any) -> Any:
            data = bytearray(getattr(inbox.proofs["p0"], part))
            # four elements of 17 bits end four bits before their last byte does
            data[generator.integers(len(data) - 1)] ^= 1 << int(generator.integers(8))
            return checked(inbox, **{part: bytes(data)})

        carrier = carrier_of(STUDY, PARTS)
        with pytest.raises(RefusedError):
            coordinate(STUDY, Dealer(carrier, told(lie)))
        assert not carrier.members["p1"].drawn


@pytest.mark.parametrize("weak", [False, True], ids=["named", "unnamed"])
def test_one_seed_for_two_parties(weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same mask p1 could take its own off p0's rows, which it opens."""
    if weak:

        def unnamed(self: Stock, shape: tuple[int, ...], *what: Any) -> Matrix:
            place = context(self.label, self.study, *what)
            return expand(self.seed, place, int(np.prod(shape)), self.sizes.ring).reshape(shape)

        monkeypatch.setattr(Stock, "_drawn", unnamed)
    opened: list[Matrix] = []
    unseal = product._opened

    def looking(*given: Any) -> Matrix:
        found = unseal(*given)
        opened.extend([found] if given[1].name == "p1" else [])
        return found

    monkeypatch.setattr(product, "_opened", looking)

    same = {"dealer seed": b"1" * 32}
    monkeypatch.setattr(dealer, "derive", lambda key, what, *more: same.get(what) or derive(key, what, *more))
    coordinate(STUDY, carrier_of(STUDY, PARTS))
    own = Stock(seed=b"1" * 32, study=STUDY.digest, party="p1", sizes=PRODUCT.sizes).mask(0, 3)
    assert (FIELD.add(opened[0], own) == TRUE).all() == weak


def test_a_second_proof_of_the_same_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepared() -> Any:
        carrier = carrier_of(STUDY, PARTS)

        def stop(self: Dealer, step: str, name: str, message: Any) -> Any:
            if step == "product_multiplied":
                raise InterruptedError
            return message

        with pytest.raises(InterruptedError):
            coordinate(STUDY, Dealer(carrier, stop))
        return carrier.members["p0"]

    again = ProductChallenge(chunk=0, seed=b"2" * 32)
    with pytest.raises(RefusedError, match="each is answered once"):
        Marginals().product_proved(prepared(), again)
    party = prepared()
    monkeypatch.setattr(product, "advance", lambda *_: None)
    assert isinstance(Marginals().product_proved(party, again), ProductProof)


@pytest.mark.parametrize("weak", [False, True], ids=["checked", "unchecked"])
def test_rows_that_changed_before_the_proof(weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their difference would be in O, which the partner sees: it could solve for the changed record."""
    now = TRUE.copy()
    now[VICTIM] = [0, 0, 0] if TRUE[VICTIM].any() else [1, 0, 0]
    cheating(monkeypatch, now, when="product_proved")
    totals: list[Matrix] = []
    honest = OneHotProof.holds

    def watching(proof: OneHotProof, one: Matrix, other: Matrix) -> bool:
        totals.append(proof.field.add(one, other))
        return honest(proof, one, other)

    monkeypatch.setattr(OneHotProof, "holds", watching)
    seen = Dealer(carrier_of(STUDY, PARTS))
    if not weak:
        with pytest.raises(RefusedError, match="rows of p0 changed"):
            coordinate(STUDY, seen)
        assert not totals
        return
    monkeypatch.setattr(product_messages, "_digest", lambda _: b"")
    with pytest.raises(RefusedError, match=UNPROVEN):
        coordinate(STUDY, seen)
    seed = seen.sent["product_proved", "p0"].seed
    difference = TRUE - now
    found = [
        row
        for row in range(200)
        if (solution(np.roll(difference, row - VICTIM, axis=0), seed) == totals[-1][-4:]).all()
    ]
    assert found == [VICTIM]


def solution(difference: Matrix, seed: bytes) -> Matrix:
    """Return O of rows that were proven as others, `difference` less."""
    nothing = np.zeros(PROOF.length, dtype=FIELD.dtype)
    return PROOF.answer(FIELD.reduce(difference), nothing, seed, PROOF.point(b"p" * 32))[-4:]


# A dealer whose state went back: it must not give a challenge again for another reply.


def test_a_dealer_that_starts_again_gives_the_same_challenges_for_the_same_replies() -> None:
    both = []
    for _ in range(2):
        seen = Dealer(carrier_of(STUDY, PARTS))
        coordinate(STUDY, seen)
        both.append([check for name in ("p0", "p1") for check in seen.sent["product_multiplied", name].proofs.values()])
    assert both[0] == both[1]


@pytest.mark.parametrize("weak", [False, True], ids=["bound", "unbound"])
def test_a_challenge_that_is_known_before_the_rows(weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four cells of other rows make up for a bad one: four linear equations in the field."""
    if weak:
        monkeypatch.setattr(dealer, "_digest", lambda _: b"")
    first = Dealer(carrier_of(STUDY, PARTS))
    coordinate(STUDY, first)
    rows = compensated(first.sent["product_proved", "p0"].seed)
    cheating(monkeypatch, rows)
    if weak:
        assert abs(surplus(carrier_of(STUDY, PARTS))[0, 1]) >= 1000 - 1
        return
    with pytest.raises(RefusedError, match=UNPROVEN):
        surplus(carrier_of(STUDY, PARTS))


def test_a_dealer_that_is_put_back_and_deals_to_others_gives_nobody_the_secret_of_its_challenges() -> None:
    """A method may choose its pairs by what was opened: the next draw was a third party's seed, and then the secret."""
    wider = product_of(study_of(tables(50, (3,), (4,), (2,))))
    narrower = msgspec.structs.replace(wider, pairs=(("p0", "p1"),))
    (seeds, _), (_, challenges) = (dealt(product, {}) for product in (wider, narrower))
    place = context("study", narrower.label, 0, "p0")
    guess = derive(seeds["p2"], "proof seed", place, dealer._digest(ProductOpening(body=b"p0", keys=KEYS)))
    assert len(set(seeds.values())) == 3
    assert challenges["p0"] not in (guess, *seeds.values())


KEYS = dict.fromkeys(("p0", "p1", "p2"), b"key")


def dealt(given: SecureProduct, replies: Mapping[str, Any]) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the seeds and the challenges of a dealer with one secret; `replies` has other replies of p0 by step."""
    told: dict[str, dict[str, bytes]] = {}

    class Carrier:
        study, randomness = "study", SecretRandomness(b"s" * 32)

        def progress(self, *_: Any) -> None: ...

        def ask(self, step: Any, asked: Mapping[str, Any]) -> Any:
            said: Mapping[str, Callable[[str], Any]] = {
                "product_keys": lambda _: PublicKey(public=b"key"),
                "product_masked": lambda name: ProductOpening(body=name.encode(), keys=KEYS),
                "product_proved": lambda name: ProductProof(seed=b"s" * 32, body=name.encode(), keys=KEYS),
                "product_multiplied": lambda _: Nothing(),
            }
            told[step.__name__] = {name: getattr(one, "seed", b"") for name, one in asked.items()}
            other = replies.get(step.__name__)
            return {name: other if name == "p0" and other is not None else said[step.__name__](name) for name in asked}

    carrier: Any = Carrier()
    dealer.deal_products(carrier, STUDY.protocol, given)  # type: ignore[arg-type]
    return told["product_keys"], told["product_proved"]


@pytest.mark.parametrize(
    "replies",
    [
        {"product_masked": ProductOpening(body=b"p0", keys={"p0": b"key"})},
        {"product_proved": ProductProof(seed=b"s" * 32, body=b"p0", keys={})},
        {"product_proved": ProductProof(seed=b"short", body=b"p0", keys=KEYS)},
    ],
    ids=["rows", "proof", "seed"],
)
def test_a_reply_without_a_part_names_its_party(replies: Mapping[str, Any]) -> None:
    with pytest.raises(PartyError, match="p0"):
        dealt(PRODUCT, replies)


def compensated(seed: bytes) -> Matrix:
    """Return rows with 1000 in a cell that pass for a known challenge."""
    rows = changed((VICTIM, 0, 1000))
    prime, generator = FIELD.modulus, np.random.default_rng(1)

    def weight(row: int) -> list[int]:
        """Return u^2 v^2 r^2 of a row's first cell."""
        one = np.zeros_like(TRUE)
        one[row, 0] = 1
        return [-int(each) % prime for each in solution(one, seed)]

    due = [-each * (1000 * 999) % prime for each in weight(VICTIM)]
    free = [row for row in range(200) if row != VICTIM and PARTS[1].codes["p1c0"][row] != 1]
    roots = {value * (value - 1) % prime: value for value in range(prime)}
    while True:
        chosen = [int(row) for row in generator.choice(free, 4, replace=False)]
        found = solved([weight(row) for row in chosen], due, prime)
        if found is not None and all(each in roots for each in found):
            for row, each in zip(chosen, found, strict=True):
                rows[row] = [roots[each], 0, 0]
            return rows


def solved(columns: list[list[int]], due: list[int], prime: int) -> list[int] | None:
    """Solve four linear equations modulo a prime."""
    lines = [[column[place] for column in columns] + [due[place]] for place in range(4)]
    for place in range(4):
        pivot = next((line for line in range(place, 4) if lines[line][place]), None)
        if pivot is None:
            return None
        lines[place], lines[pivot] = lines[pivot], lines[place]
        inverse = pow(lines[place][place], -1, prime)
        lines[place] = [each * inverse % prime for each in lines[place]]
        for line in range(4):
            if line != place:
                factor = lines[line][place]
                lines[line] = [(x - factor * y) % prime for x, y in zip(lines[line], lines[place], strict=True)]
    return [line[4] for line in lines]


@pytest.mark.parametrize("weak", [False, True], ids=["bound", "unbound"])
def test_a_point_that_is_known_before_the_proof(weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A false h can agree with the sum of squares at one point that is known."""
    honest = dealer._digest
    if weak:
        monkeypatch.setattr(dealer, "_digest", lambda one: b"" if isinstance(one, ProductProof) else honest(one))
    cheating(monkeypatch, BAD["1000 in a cell"])
    shown: list[Any] = []

    def look(self: Dealer, step: str, name: str, message: Any) -> Any:
        shown.extend([message.proofs["p0"]] if (step, name) == ("product_multiplied", "p1") else [])
        return message

    with pytest.raises(RefusedError, match=UNPROVEN):
        coordinate(STUDY, Dealer(carrier_of(STUDY, PARTS), look))
    point, prove = FIELD.unpack(shown[0].point, 4).astype(np.int64), OneHotProof.prove

    def forged(proof: OneHotProof, matrix: Matrix, seed: bytes, fresh: bytes) -> Matrix:
        made = prove(proof, matrix, seed, fresh)
        return agreeing(proof, made, missing(proof, matrix, seed, made), point) if matrix.max() > 1 else made

    monkeypatch.setattr(OneHotProof, "prove", forged)
    if weak:
        assert surplus(carrier_of(STUDY, PARTS))[0, 1] == 1000 - TRUE[VICTIM, 0]
        return
    with pytest.raises(RefusedError, match=UNPROVEN):
        surplus(carrier_of(STUDY, PARTS))


def agreeing(proof: OneHotProof, made: Matrix, lacks: Matrix, point: Matrix) -> Matrix:
    """Return the proof with h moved by a multiple of x - point that makes up for what O lacks."""
    prime, forged, at = proof.field.modulus, made.astype(np.int64), places_of_h(proof)
    nodes = np.arange(2 * proof.points + 1)
    line = np.stack([nodes - point[0], *(np.full_like(nodes, -each) for each in point[1:])])
    total = np.mod(line[:, 1 : proof.points + 1].sum(axis=1), prime)
    # the multiple: minus what is lacking over the line's sum, four linear equations
    units = [K.times(total.astype(np.float64)[:, None], np.eye(4)[:, [place]])[:, 0] for place in range(4)]
    factor = solved([[int(each) for each in unit] for unit in units], [-int(each) % prime for each in lacks], prime)
    assert factor is not None
    change = K.times(np.array(factor, dtype=np.float64)[:, None], np.mod(line, prime).astype(np.float64))
    forged[at] += change.astype(np.int64)
    return proof.field.reduce(forged)


# Between nodes with ledgers.


@pytest.mark.parametrize(("name", "paid"), [("marginals across", 0), ("synthesis across", 1)])
def test_bad_rows_are_refused_before_their_round_is_charged(
    name: str, paid: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first round of a synthesis needs no product."""
    case = next(case for case in CASES if case.name == name)
    nodes, liar = open_nodes(case, tmp_path), case.study.parties[0].name
    honest = TableLayout.rows

    def cheat(*given: Any) -> Matrix:
        matrix: Matrix = honest(*given).astype(np.int64)
        matrix[0, 0] += 1000 if liar in {getattr(one, "name", None) for one in given} else 0
        return matrix

    monkeypatch.setattr(TableLayout, "rows", cheat)
    session = session_over(Local(nodes), case.study)
    with pytest.raises(PartyError, match=UNPROVEN):
        case.study.protocol.coordinate(session)
    assert all(sum(events.values()) == paid for events in charged(case, tmp_path).values())


def test_a_second_proof_is_refused_after_a_restart_and_the_first_is_given_again(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "marginals across")
    nodes, asked, given = open_nodes(case, tmp_path), b"", b""

    class Stopping:
        def send(self, calls: Any, **options: Any) -> Any:
            nonlocal asked, given
            found = Local(nodes).send(calls, **options)
            if decode(calls["north"], Call).step == "product_proved":
                asked, given = calls["north"], found.replies["north"]
                raise InterruptedError
            return found

    with pytest.raises(InterruptedError):
        case.study.protocol.coordinate(session_over(Stopping(), case.study))  # type: ignore[arg-type]
    for node in nodes.values():
        node.close()
    folder = PartyFolder(folder=tmp_path / "parties" / "north")
    node, call = folder.node(seed=7, source=case.sources["north"]), decode(asked, Call)
    assert answer(node, asked) == given
    body = encode(ProductChallenge(chunk=0, seed=b"2" * 32))
    for name in (call.call, "f" * 32):
        other = Call(study=call.study, party=call.party, step=call.step, call=name, body=body)
        assert decode(answer(node, encode(other)), Reply).code == "refused"
