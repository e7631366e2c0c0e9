"""Dishonest parties and dealers of a Gram matrix against honest steps: refused, and caught only by the check meant.

Every attack comes with the weakening that lets it through, so that each check is shown to be needed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from faulty_runtime import charged
from lying_dealer import Lie, LyingDealer, accepted, told
from products import carrier_of, coordinate, study_of, tables
from runtimes import session_over
from support import CASES, MISSING_LEVELS, VERTICAL, gram_study, open_nodes
from syndic.errors import PartyError, RefusedError
from syndic.methods import Gram
from syndic.methods.regression import gram
from syndic.methods.regression.gram_plan import GramPlan
from syndic.model.gram.matrix import places_of
from syndic.model.gram.scaling import Scale, is_number
from syndic.mpc import dealer, product, triple
from syndic.mpc.extension import Extension
from syndic.mpc.length import LengthProof, four_squares
from syndic.mpc.limb import matrix_product
from syndic.mpc.order import Stage
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import ProductChallenge, ProductProof
from syndic.mpc.proof import Proof
from syndic.mpc.ring import multiplied
from syndic.mpc.triple import Stock
from syndic.runtime import Local

ROWS, BITS = 200, 6
PARTS = tables(ROWS, (9, 4), (5,))
STUDY = study_of(PARTS, method="gram", bits=BITS, scaling=0.0)


def product_of(plan: GramPlan) -> SecureProduct:
    assert plan.product is not None
    return plan.product


PLAN = STUDY.plan_as(GramPlan)
PRODUCT = product_of(PLAN)
PROOF = PRODUCT.proof("p0", 0)
FIELD, SQUARE, COLUMNS = PROOF.field, PRODUCT.lengths["p0"], PRODUCT.columns("p0")
PRIME = FIELD.modulus
K = Extension(PRIME)
TRUE = PROOF.completed(PLAN.rows("p0", dict(PARTS[0].codes)))
OTHER = PLAN.rows("p1", dict(PARTS[1].codes))[:, 0].astype(np.int64)
# a person whose value at p1 is not the middle: what p0 tries to read
VICTIM = int(np.flatnonzero(OTHER == 2**BITS)[0])
UNPROVEN = "the proof that a partner's rows are no longer than allowed does not hold"

Matrix = NDArray[Any]


class Dealer(LyingDealer):
    """It computes what it could know of p0's rows and proof."""

    def answered(self, inbox: Any, *, seed: bytes, test: bytes, point: Matrix) -> Matrix:
        """Return what a dealer answers on its shares of p0's rows and proof."""
        stock = Stock(seed=self.sent["product_keys", "p0"].seed, study=STUDY.digest, party="p0", sizes=PRODUCT.sizes)
        tested, proved = (self.heard[step, "p0"].seed for step in ("product_tested", "product_proved"))
        bits, proof = PROOF.drawn(tested, "share", PROOF.tests), PROOF.drawn(proved, "share", PROOF.length)
        return PROOF.answer(PROOF.joined(stock.mask(0, COLUMNS), bits, test), proof, seed, point)


def accepts(lie: Lie, *, seed: int = 5) -> bool:
    """Run the study with a lying dealer; return whether it came to its end."""
    return accepted(STUDY, Dealer(carrier_of(STUDY, PARTS, seed=seed), lie), UNPROVEN)


def other(inbox: Any, part: str = "proofs", **changes: Any) -> Any:
    """Return p1's inbox with other parts of the proof or test of p0."""
    check = msgspec.structs.replace(getattr(inbox, part)["p0"], **changes)
    return msgspec.structs.replace(inbox, **{part: {"p0": check}})


def cheating(monkeypatch: pytest.MonkeyPatch, rows: Matrix, *, when: str = "") -> None:
    """Let p0 send other rows, completed in its own way; a cheat does not stop itself. With `when`, only in one step."""
    honest, completed = Gram.product_rows, LengthProof.completed
    stages = {"product_masked": 2, "product_tested": 3, "product_proved": 4, "product_multiplied": 5}

    def cheat(method: Gram, party: Any, start: int, stop: int) -> Matrix:
        stage = party.recall("product stage", Stage).done
        lies = party.name == "p0" and (not when or stages[when] == stage)
        return rows[start:stop, :2] if lies else honest(method, party, start, stop)

    def complete(proof: LengthProof, matrix: Matrix) -> Matrix:
        lies = proof.features == 2 and np.array_equal(matrix, rows[:, :2])
        return rows if lies else completed(proof, matrix)

    def nothing(party: Any, _scales: Any) -> tuple[Matrix, Matrix]:
        (width,) = PRODUCT.groups[party.name]
        return np.zeros((1 + width, 1 + width), dtype=np.int64), np.zeros(width, dtype=np.int64)

    def exact(left: Matrix, right: Matrix, ring: Any, bound: int = 0) -> Matrix:
        return matrix_product(ring.reduce(left), right, ring, bound=0 * bound)

    monkeypatch.setattr(Gram, "product_rows", cheat)
    monkeypatch.setattr(LengthProof, "completed", complete)
    monkeypatch.setattr(SecureProduct, "check_unchanged", lambda *_: None)
    # numbers of a cheat need not be as small as it says
    monkeypatch.setattr(triple, "matrix_product", exact)
    monkeypatch.setattr(gram, "_own_sums", nothing)


def surplus(carrier: Any) -> int:
    """Return what is in the sum of products of p0's first column and p1's above its true value."""
    found, place = coordinate(STUDY, carrier).sums, PLAN.places[1, 3]
    return int(found[place]) - int(TRUE[:, 0].astype(np.int64) @ OTHER)


def changed(row: list[int], at: int = VICTIM) -> Matrix:
    rows = TRUE.astype(np.int64)
    rows[at] = row
    return rows


def isotropic() -> tuple[int, int]:
    """Return s and t with 1 + s^2 + t^2 = 0 modulo the prime."""
    roots = ((pow(-1 - t * t, (PRIME + 1) // 4, PRIME), t) for t in range(100))
    return next((s, t) for s, t in roots if (1 + s * s + t * t) % PRIME == 0)


def wrapped(value: int) -> Matrix:
    """Return rows with a large number whose squares still add up, modulo the prime."""
    s, t = isotropic()
    return changed([value, 0, s * value % PRIME, t * value % PRIME, 2**BITS, 2**BITS])


UNIT = 2**BITS
LONG = {
    "one large number": changed([1000 * UNIT, 0, 0, 0, 0, 0]),
    "one above the bound": changed([UNIT + 1, UNIT, 0, 0, 0, 0]),
    "the square of the length one too large": changed([UNIT, UNIT, 1, 0, 0, 0]),
}
WRAPPED = {
    "a large number": wrapped(1000 * UNIT),
    "half of the prime": wrapped((PRIME + 1) // 2),
}


# A party that lies.


@pytest.mark.parametrize("rows", [*LONG.values(), *WRAPPED.values()], ids=[*LONG, *WRAPPED])
@pytest.mark.parametrize("weak", [False, True], ids=["checked", "unchecked"])
def test_rows_that_are_too_long(rows: Matrix, weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check the sum has the lie times the partner's value of that person."""
    cheating(monkeypatch, rows)
    carrier = carrier_of(STUDY, PARTS)
    if weak:
        monkeypatch.setattr(LengthProof, "holds", lambda *_: True)
        due = (int(rows[VICTIM, 0]) - int(TRUE[VICTIM, 0])) * int(OTHER[VICTIM])
        assert (surplus(carrier) - due) % PRIME == 0
        return
    with pytest.raises(RefusedError, match=UNPROVEN):
        surplus(carrier)
    assert not any(member.drawn for member in carrier.members.values())


@pytest.mark.parametrize("rows", WRAPPED.values(), ids=WRAPPED)
def test_wrapped_rows_pass_without_tests(rows: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their equation is right modulo the prime: only the sums over subsets show them."""
    weights = LengthProof._weights
    monkeypatch.setattr(LengthProof, "_weights", lambda self, seed: 0 * weights(self, seed))
    cheating(monkeypatch, rows)
    surplus(carrier_of(STUDY, PARTS))


def test_numbers_instead_of_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that make up the differences of wrapped rows, and are no bits."""
    rows = WRAPPED["a large number"]
    tested = LengthProof.tested

    def forged(proof: LengthProof, matrix: Matrix, seed: bytes) -> Matrix:
        if proof.features != 2:
            return tested(proof, matrix, seed)
        numbers = np.zeros(proof.tests, dtype=np.int64)
        differences = proof._tested(FIELD.reduce(matrix), seed).astype(np.int64)
        numbers[:: proof._bits] = (differences + (1 << (proof._bits - 1))) % PRIME
        kept["numbers"] = numbers
        return numbers

    kept: dict[str, Matrix] = {}
    joined = LengthProof.joined
    monkeypatch.setattr(LengthProof, "tested", forged)
    # the party proves the numbers that it shared, not what it stored of them as bits
    monkeypatch.setattr(
        LengthProof,
        "joined",
        lambda self, matrix, bits, seed=b"": joined(
            self, matrix, kept["numbers"] if not seed and self.features == 2 else bits, seed
        ),
    )
    cheating(monkeypatch, rows)
    with pytest.raises(RefusedError, match=UNPROVEN):
        surplus(carrier_of(STUDY, PARTS))


def only(part: str) -> Callable[[Proof, Matrix, Matrix], bool]:
    """Return the check without one of its equations."""

    def holds(proof: Proof, one: Matrix, two: Matrix) -> bool:
        total = proof.field.add(one, two).astype(np.int64)
        f, h, o = np.split(total, [total.size - 4, total.size - 2])
        return not (K.reduce(K.squares(f.reshape(2, -1)) - h).any() if part == "squares" else o.any())

    return holds


def lacking(proof: LengthProof, made: Matrix, matrix: Matrix, challenge: dict[str, bytes]) -> Matrix:
    """Return O of rows and a proof that is not shared."""
    bits = proof.tested(matrix, challenge["test"])
    values = proof.joined(matrix, bits, challenge["test"])
    answer = proof.answer(values, made, challenge["seed"], proof.point(b"p" * 32))
    return FIELD.add(answer, proof.constant(challenge["seed"]))[-2:].astype(np.int64)


def forging(monkeypatch: pytest.MonkeyPatch, rows: Matrix, change: Callable[[Matrix, Matrix], Matrix]) -> None:
    """Let p0 change its proof by a function of the proof and of what its O lacks."""
    tested, prove, challenge = LengthProof.tested, LengthProof.prove, {}

    def noted(proof: LengthProof, matrix: Matrix, seed: bytes) -> Matrix:
        challenge.update({"test": seed} if proof.features == 2 else {})
        return tested(proof, matrix, seed)

    def forged(proof: LengthProof, values: Matrix, seed: bytes, fresh: bytes) -> Matrix:
        made = prove(proof, values, seed, fresh)
        if proof.features != 2:
            return made
        return change(made, lacking(proof, made, rows, {**challenge, "seed": seed}))

    monkeypatch.setattr(LengthProof, "tested", noted)
    monkeypatch.setattr(LengthProof, "prove", forged)


def places_of_h() -> Matrix:
    """Return where a proof has h: an element of K for each of 0..2 points."""
    count = 2 * PROOF.points + 1
    return PROOF.length - 2 * count + np.arange(2 * count).reshape(2, count)


def moved(made: Matrix, lacks: Matrix) -> Matrix:
    forged = made.astype(np.int64)
    forged[places_of_h()[:, 1]] -= lacks
    return FIELD.reduce(forged)


@pytest.mark.parametrize(("forged", "missed"), [(False, "squares"), (True, "sums")])
@pytest.mark.parametrize("weak", [False, True], ids=["checked", "unchecked"])
def test_the_best_proof_of_long_rows(forged: bool, missed: str, weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the true h the sums differ; with an h that makes them right the squares do."""
    rows = LONG["one above the bound"]
    cheating(monkeypatch, rows)
    forging(monkeypatch, rows, moved if forged else lambda made, _: made)
    if weak:
        monkeypatch.setattr(LengthProof, "holds", only(missed))
        surplus(carrier_of(STUDY, PARTS))
        return
    with pytest.raises(RefusedError, match=UNPROVEN):
        surplus(carrier_of(STUDY, PARTS))


# A dealer that lies.


@pytest.mark.parametrize("which", ["seed", "test"])
@pytest.mark.parametrize("weak", [False, True], ids=["checked", "unchecked"])
def test_two_seeds(which: str, weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another seed for the partner, its refusal tells whether a guess of all rows is right."""
    if weak:
        monkeypatch.setattr(product, "_same_seed", lambda *_: True)

    def guessing(guess: Matrix) -> Callable[[Dealer, Any], Any]:
        def lie(self: Dealer, inbox: Any) -> Any:
            check, point = inbox.proofs["p0"], FIELD.unpack(inbox.proofs["p0"].point, 2)
            true = {"seed": check.seed, "test": inbox.tests["p0"].seed}
            false = {**true, which: b"2" * 32}
            bits, nothing = PROOF.tested(guess, true["test"]), np.zeros(PROOF.length, dtype=FIELD.dtype)
            first, second = (
                FIELD.add(
                    PROOF.answer(PROOF.joined(guess, bits, each["test"]), nothing, each["seed"], point),
                    PROOF.constant(each["seed"]),
                )
                for each in (true, false)
            )
            answer = FIELD.add(self.answered(inbox, **false, point=point), FIELD.subtract(first, second))
            told = other(inbox, seed=false["seed"], answer=FIELD.pack(answer))
            return other(told, "tests", seed=false["test"])

        return lie

    neighbour = PROOF.completed(changed([0, *TRUE[VICTIM, 1:]])[:, :2])
    assert accepts(told(guessing(TRUE))) == weak
    assert not accepts(told(guessing(neighbour)))


@pytest.mark.parametrize("weak", [False, True], ids=["checked", "unchecked"])
def test_a_point_in_the_field(weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 1 the check is of a row itself: the refusal tells whether a guess of one cell is right."""
    if weak:
        monkeypatch.setattr(LengthProof, "outside", lambda *_: True)

    def guessing(value: int) -> Callable[[Dealer, Any], Any]:
        def lie(self: Dealer, inbox: Any) -> Any:
            seed, point = inbox.proofs["p0"].seed, np.array([1, 0], dtype=FIELD.dtype)
            answer = self.answered(inbox, seed=seed, test=inbox.tests["p0"].seed, point=point).astype(np.int64)
            points, rows, _ = PROOF._challenge(seed)  # type: ignore[attr-defined]
            z = K.scaled(K.times(points[:, :1], rows[:, :1]), np.full(1, value % PRIME))[:, 0]
            answer[0] += 1  # F of the first row and column moved by one, H by what that does to a square
            answer[-4:-2] += 2 * z + np.array([1, 0])
            return other(inbox, point=FIELD.pack(point), answer=FIELD.pack(FIELD.reduce(answer)))

        return lie

    assert accepts(told(guessing(int(TRUE[0, 0])))) == weak
    assert not accepts(told(guessing(int(TRUE[0, 0]) + 1)))


@pytest.mark.parametrize(
    ("part", "name"),
    [*(("proofs", n) for n in ("seed", "point", "body", "key", "answer"))]
    + [("tests", n) for n in ("seed", "body", "key")],
)
def test_no_part_of_a_check_can_be_changed(part: str, name: str) -> None:
    """Wherever one bit is changed, the partner refuses; it would not if the part were not used."""
    generator = np.random.default_rng(len(part + name))
    for _ in range(3):

        def lie(self: Dealer, inbox: Any) -> Any:
            data = bytearray(getattr(getattr(inbox, part)["p0"], name))
            data[generator.integers(len(data) - 1)] ^= 1 << int(generator.integers(8))
            return other(inbox, part, **{name: bytes(data)})

        carrier = carrier_of(STUDY, PARTS)
        with pytest.raises(RefusedError):
            coordinate(STUDY, Dealer(carrier, told(lie)))
        assert not carrier.members["p1"].drawn


def test_a_check_without_its_test_is_refused() -> None:
    with pytest.raises(RefusedError, match="no entry for p0"):
        coordinate(
            STUDY,
            Dealer(carrier_of(STUDY, PARTS), told(lambda _, inbox: msgspec.structs.replace(inbox, tests={}))),
        )


@pytest.mark.parametrize("step", ["product_tested", "product_proved"])
def test_a_second_challenge_to_the_same_rows_is_refused(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped() -> Any:
        carrier = carrier_of(STUDY, PARTS)

        def stop(self: Dealer, name: str, who: str, message: Any) -> Any:
            if name == "product_multiplied":
                raise InterruptedError
            return message

        with pytest.raises(InterruptedError):
            coordinate(STUDY, Dealer(carrier, stop))
        return carrier.members["p0"]

    again = ProductChallenge(chunk=0, seed=b"2" * 32)
    with pytest.raises(RefusedError, match="each is answered once"):
        getattr(Gram(), step)(stopped(), again)
    party = stopped()
    monkeypatch.setattr(product, "advance", lambda *_: None)
    assert isinstance(getattr(Gram(), step)(party, again), ProductProof)


@pytest.mark.parametrize("step", ["product_tested", "product_proved"])
def test_rows_that_changed_before_the_proof(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their difference would be in O, which the partner sees."""
    cheating(monkeypatch, PROOF.completed(changed([0, *TRUE[VICTIM, 1:]])[:, :2]), when=step)
    with pytest.raises(RefusedError, match="rows of p0 changed"):
        coordinate(STUDY, carrier_of(STUDY, PARTS))


# A dealer whose state went back: it must not give a challenge again for another reply.


def test_a_dealer_that_starts_again_gives_the_same_challenges_for_the_same_replies() -> None:
    both = []
    for _ in range(2):
        seen = Dealer(carrier_of(STUDY, PARTS))
        coordinate(STUDY, seen)
        both.append([seen.sent["product_multiplied", name] for name in ("p0", "p1")])
    assert both[0] == both[1]


@pytest.mark.parametrize("weak", [False, True], ids=["bound", "unbound"])
def test_a_challenge_that_is_known_before_the_rows(weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three longer rows make up for one that is too long: two linear equations in the field, with small solutions."""
    if weak:
        monkeypatch.setattr(dealer, "_digest", lambda _: b"")
    first = Dealer(carrier_of(STUDY, PARTS))
    coordinate(STUDY, first)
    cheating(monkeypatch, compensated(first.sent["product_proved", "p0"].seed, 20 * UNIT))
    if weak:
        assert surplus(carrier_of(STUDY, PARTS)) == (20 * UNIT - int(TRUE[VICTIM, 0])) * int(OTHER[VICTIM])
        return
    with pytest.raises(RefusedError, match=UNPROVEN):
        surplus(carrier_of(STUDY, PARTS))


def compensated(seed: bytes, value: int) -> Matrix:
    """Return rows with a large number, and three with other witnesses, that pass for a known challenge."""
    points, sums, _ = PROOF._challenge(seed)  # type: ignore[attr-defined]
    squares = K.times(K.times(points, points)[:, :, None], K.times(sums, sums)[:, None]).reshape(2, -1)[:, :ROWS]
    rows = changed([value, 0, 0, 0, 0, 0])
    due = (SQUARE - value**2) % PRIME
    weights = [[int(each) for each in row] for row in squares.T]
    a, b = (due * each % PRIME for each in weights[VICTIM])
    one, two, *others = (row for row in range(ROWS) if row != VICTIM)
    (p, q), (r, s) = weights[one], weights[two]
    inverse, more = pow(p * s - q * r, -1, PRIME), np.arange(1 << 20)

    def scaled(numbers: Matrix, factor: int) -> Matrix:
        return multiplied(numbers, np.full(1, factor % PRIME), PRIME)

    for three in others:
        # what three rows are too long by, all small enough to pass the tests
        left, right = (np.mod(each - scaled(more, w), PRIME) for each, w in zip((a, b), weights[three], strict=True))
        x = np.mod(scaled(left, s * inverse) - scaled(right, r * inverse), PRIME)
        y = np.mod(scaled(right, p * inverse) - scaled(left, q * inverse), PRIME)
        small = np.flatnonzero(np.maximum(x, y) < 3 << 23)
        if small.size:
            break
    for row, longer in ((one, int(x[small[0]])), (two, int(y[small[0]])), (three, int(small[0]))):
        rest = SQUARE - int((rows[row, :2] ** 2).sum()) + longer
        rows[row, 2:] = four_squares(np.array([rest]), rest)[0]
    return rows


@pytest.mark.parametrize("weak", [False, True], ids=["bound", "unbound"])
def test_a_point_that_is_known_before_the_proof(weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A false h can agree with the sum of squares at one point that is known."""
    honest = dealer._digest
    rows, proofs, shown = LONG["one above the bound"], [0], []
    if weak:

        def unbound(reply: Any) -> bytes:
            # of the rows and the test, not of the proof, which comes third for each of two parties
            proofs[0] += 1
            return b"" if 4 < proofs[0] <= 6 else honest(reply)

        monkeypatch.setattr(dealer, "_digest", unbound)
    cheating(monkeypatch, rows)

    def look(self: Dealer, step: str, name: str, message: Any) -> Any:
        shown.extend([message.proofs["p0"]] if (step, name) == ("product_multiplied", "p1") else [])
        return message

    with pytest.raises(RefusedError, match=UNPROVEN):
        coordinate(STUDY, Dealer(carrier_of(STUDY, PARTS), look))
    point = FIELD.unpack(shown[0].point, 2).astype(np.int64)
    forging(monkeypatch, rows, lambda made, lacks: agreeing(made, lacks, point))
    proofs[0] = 0
    if weak:
        surplus(carrier_of(STUDY, PARTS))
        return
    with pytest.raises(RefusedError, match=UNPROVEN):
        surplus(carrier_of(STUDY, PARTS))


def agreeing(made: Matrix, lacks: Matrix, point: Matrix) -> Matrix:
    """Return the proof with h moved by a multiple of x - point that makes up for what O lacks."""
    nodes = np.arange(2 * PROOF.points + 1)
    line = np.mod(np.stack([nodes - point[0], np.full_like(nodes, -point[1])]), PRIME)
    total = K.sums(line[:, None, 1 : PROOF.points + 1])
    # one over an element: its conjugate over the norm
    norm = (int(total[0, 0]) ** 2 - K.root * int(total[1, 0]) ** 2) % PRIME
    inverse = K.scaled(np.mod(np.array([[1], [-1]]) * total, PRIME), np.full(1, pow(norm, -1, PRIME)))
    factor = K.times(np.mod(-lacks[:, None], PRIME), inverse)
    forged = made.astype(np.int64)
    forged[places_of_h()] += K.times(factor, line)
    return FIELD.reduce(forged)


# What is proven is what is charged for.

NUMBERS = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "real"\nlower = -1.0\nupper = 1.0\nbins = 200\n'
    "missing = { value = 0.0 }\n"
    for name in "abcdy"
)
HELD = VERTICAL.replace('"colour", "age"', '"a", "b", "c"').replace('"score"', '"d", "y"')
# studies, and whether the sensitivity is more than one party's lie needs
SHAPES = {
    "shortened": (
        gram_study('bits = 5\nscaling = 0.0\nnorm = 0.5\nexempt = ["y"]', parties=HELD, columns=NUMBERS),
        False,
    ),
    "numbers and a list": (gram_study("bits = 5\nscaling = 0.0"), False),
    "missing levels": (gram_study("bits = 5\nscaling = 0.0", columns=MISSING_LEVELS), False),
    "with a product": (gram_study('bits = 5\nproducts = [["colour", "age"]]'), True),
    "rescaled": (gram_study("bits = 5"), True),
    "rescaled, missing levels": (gram_study("bits = 5", columns=MISSING_LEVELS), True),
    "overlap": (gram_study("bits = 5\noverlap = true", columns=MISSING_LEVELS), True),
}


@pytest.mark.parametrize(("study", "slack"), SHAPES.values(), ids=SHAPES)
def test_no_row_within_the_proven_length_reaches_beyond_the_sensitivity(study: Any, slack: bool) -> None:
    """A party that deviates enters any row of its length; another person's values are replaced at the honest party."""
    plan, generator = study.plan_as(GramPlan), np.random.default_rng(3)
    places = places_of(plan.features)
    upper = np.triu(np.ones_like(places, dtype=bool)) & (places >= 0)
    worst = over = 0.0
    for liar, honest in (("north", "south"), ("south", "north")):
        levels = plan.blocks[honest]
        columns = dict.fromkeys(name for coding in levels for name in coding.columns)
        sizes = {
            name: len(table) for coding in levels for name, table in zip(coding.columns, coding.tables, strict=True)
        }
        for _ in range(200):
            x = generator.standard_normal(plan.columns[liar].size)
            x *= np.sqrt(product_of(plan).lengths[liar]) / np.linalg.norm(x) / 2**plan.bits
            z, w = (
                plan.rows(
                    honest,
                    {name: np.array([generator.choice([0, sizes[name] - 1])]) for name in columns},
                    widest(plan),
                )[0]
                for _ in range(2)
            )
            worst = max(worst, changes(plan, liar, honest, x, (z, w), upper))
            # a bound on all features instead of blocks would not be enough where there are lists
            width = len(x) * 4**plan.bits / product_of(plan).lengths[liar]
            over = max(over, changes(plan, liar, honest, x * width**0.5, (z, w), upper))
    assert worst <= float(plan.sensitivity)
    assert over > float(plan.sensitivity) or slack


def widest(plan: GramPlan) -> tuple[Scale, ...]:
    """Return scales that make numbers as large as they can be, if they are rescaled."""
    names = [each.features[0].name for each in plan.codings if is_number(each)]
    return tuple(Scale(name=name, centre=0, width=1) for name in names) if plan.stages.scaling else ()


def changes(plan: GramPlan, liar: str, honest: str, x: Matrix, both: tuple[Matrix, Matrix], upper: Matrix) -> float:
    """Return the squared change of all opened sums."""
    grams = []
    for own in both:
        row = np.zeros(len(plan.features))
        row[0] = 0.0 if plan.absent else 1.0
        row[plan.columns[liar]] = x
        row[plan.columns[honest]] = own / 2**plan.bits
        grams.append(np.outer(row, row))
    return float(((grams[0] - grams[1])[upper] ** 2).sum())


@pytest.mark.parametrize("options", ["", "norm = 0.5", "overlap = true"])
def test_no_honest_row_is_longer_than_what_is_proven(options: str) -> None:
    plan, generator = gram_study(options, columns=MISSING_LEVELS).plan_as(GramPlan), np.random.default_rng(1)
    for name, square in product_of(plan).lengths.items():
        codings, every = plan.blocks[name], np.arange(1 << 10)
        coded: dict[str, Any] = {
            column: generator.permutation(every % len(table))
            for coding in codings
            for column, table in zip(coding.columns, coding.tables, strict=True)
        }
        rows = plan.rows(name, coded, widest(plan)).astype(np.int64)
        assert (rows**2).sum(axis=1).max() <= square


# Between nodes with ledgers.


@pytest.mark.parametrize("name", ["gram", "gram of three"])
def test_long_rows_are_refused_before_the_sums_are_charged(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in CASES if case.name == name)
    nodes, liar = open_nodes(case, tmp_path), case.study.parties[0].name
    honest, completed = Gram.product_rows, LengthProof.completed

    def cheat(method: Gram, party: Any, start: int, stop: int) -> Matrix:
        matrix = honest(method, party, start, stop).astype(np.int64)
        matrix[0, 0] += 10**6 if party.name == liar else 0
        return matrix

    def complete(proof: LengthProof, matrix: Matrix) -> Matrix:
        rest = completed(proof, np.where(np.abs(matrix) < 10**5, matrix, 0))[:, proof.features :]
        return np.hstack([matrix, rest])

    monkeypatch.setattr(Gram, "product_rows", cheat)
    monkeypatch.setattr(LengthProof, "completed", complete)
    session = session_over(Local(nodes), case.study)
    with pytest.raises(PartyError, match=UNPROVEN):
        case.study.protocol.coordinate(session)
    # counts to rescale numbers by come first
    paid = len(case.study.plan_as(GramPlan).stages.events) - 1
    assert all(sum(events.values()) == paid for events in charged(case, tmp_path).values())
