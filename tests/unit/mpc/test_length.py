"""Proofs of rows' lengths on shares, against Python integers; long and wrapped rows, forged bits and proofs."""

from collections.abc import Callable
from math import exp, log2
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.mpc import ring
from syndic.mpc.extension import Extension
from syndic.mpc.length import WITNESSES, LengthProof, _exponent, _modulus, four_squares, least_modulus
from syndic.mpc.limb import matrix_product
from syndic.mpc.mask import expand
from syndic.mpc.proof import POINTS
from syndic.mpc.ring import Residues, field_for, multiplied

WIDE = ring._WIDE
BITS, FEATURES, ROWS = 6, 2, 150
SQUARE = FEATURES * 4**BITS
FIELD = field_for(1, least_modulus(ROWS, [(FEATURES, SQUARE)]))
PROOF = LengthProof(FIELD, FEATURES, SQUARE, ROWS)
# the least number that must not pass the tests
BOUND = 2 << _exponent(SQUARE, PROOF._block)
TEST, SEED, FRESH, SHARE, POINT = (letter * 32 for letter in (b"c", b"s", b"f", b"d", b"t"))

Matrix = NDArray[Any]


def rows(seed: int = 1) -> Matrix:
    generator = np.random.default_rng(seed)
    return PROOF.completed(generator.integers(-(2**BITS), 2**BITS + 1, (ROWS, FEATURES)))


def isotropic(prime: int) -> tuple[int, int]:
    """Return s and t with 1 + s^2 + t^2 = 0 modulo a prime."""
    assert prime % 4 == 3
    roots = ((pow(-1 - t * t, (prime + 1) // 4, prime), t) for t in range(100))
    return next((s, t) for s, t in roots if (1 + s * s + t * t) % prime == 0)


def shared(
    matrix: Matrix,
    *,
    bits: Matrix | None = None,
    test: bytes = TEST,
    seed: bytes = SEED,
    forge: Callable[[Matrix], Matrix] = lambda made: made,
) -> tuple[Matrix, Matrix]:
    """Return both answers on shares of rows and of the proof that a party makes of them."""
    given = PROOF.tested(matrix, test) if bits is None else bits
    made = forge(PROOF.prove(PROOF.joined(matrix, FIELD.reduce(given)), seed, FRESH))
    mask = expand(b"u" * 32, b"", matrix.size, FIELD).reshape(matrix.shape)
    dealt = expand(b"b" * 32, b"", PROOF.tests, FIELD), PROOF.drawn(SHARE, "share", PROOF.length)
    point = PROOF.point(POINT)
    one = PROOF.answer(PROOF.joined(mask, dealt[0], test), dealt[1], seed, point)
    rest = FIELD.subtract(FIELD.reduce(given), dealt[0]), FIELD.subtract(made, dealt[1])
    opened = FIELD.subtract(FIELD.reduce(matrix), mask)
    other = PROOF.answer(PROOF.joined(opened, rest[0], test), rest[1], seed, point)
    return one, FIELD.add(other, PROOF.constant(seed))


def accepted(matrix: Matrix, **how: Any) -> bool:
    return PROOF.holds(*shared(matrix, **how))


@pytest.mark.parametrize("prime", WIDE)
def test_large_fields_are_exact(prime: int) -> None:
    k, generator = Extension(prime), np.random.default_rng(prime % 1000)
    assert all(pow(base, prime - 1, prime) == 1 for base in (2, 3, 5, 7, 11, 13))
    assert pow(k.root, (prime - 1) // 2, prime) == prime - 1  # no square, so x^2 - root has no factors
    left, right = generator.integers(0, prime, (2, 2, 300))
    left[:, :2] = right[:, :2] = prime - 1
    (a, b), (c, d) = left.astype(object), right.astype(object)
    assert multiplied(left, right, prime).tolist() == (left.astype(object) * right.astype(object) % prime).tolist()
    assert k.times(left, right).tolist() == [
        ((a * c + k.root * b * d) % prime).tolist(),
        ((a * d + b * c) % prime).tolist(),
    ]
    squares = [(int((a * a + k.root * b * b).sum()) % prime), int((2 * a * b).sum()) % prime]
    assert k.squares(left).tolist() == squares
    assert k.sums(np.tile(left, 9)).tolist() == [9 * int(each.astype(object).sum()) % prime for each in left]
    field, most = Residues(prime), generator.integers(0, prime, (2100, 2))
    most[:2050] = prime - 1
    expected = (most.T.astype(object) @ most.astype(object)) % prime
    assert matrix_product(most.astype(np.uint64), most.astype(np.uint64), field).tolist() == expected.tolist()
    assert (2 * POINTS + 1) * prime * k.root < 2**63  # every sum is exact


def test_chances_are_below_what_is_claimed() -> None:
    for prime in WIDE:
        assert 2.0**-63 + (4 + 2 * POINTS) / (prime**2 - prime) <= 2**-60
    # a sum of coefficients -1, 0, 0, 1 beyond 8 roots of the sum of squares: 2 exp(-64)
    assert log2(2 * exp(-64)) < -91
    for block in (1, 64, 4096):
        assert 4 ** _exponent(SQUARE, block) >= 64 * block * SQUARE
    assert _modulus(6, SQUARE, 4096) >= 6 * (2 << _exponent(SQUARE, 4096)) ** 2


def test_blocks_shrink_where_numbers_are_large() -> None:
    least = least_modulus(10**6, [(30, 30 * 4**16)])
    assert LengthProof(field_for(1, least), 30, 30 * 4**16, 10**6)._block < 4096
    with pytest.raises(InputError, match="fewer bits"):
        least_modulus(1, [(1, 1 << 60)])


@pytest.mark.parametrize("most", [0, 1, 2, 7, 28, 1000, 30 * 4**10])
def test_every_number_is_a_sum_of_four_squares(most: int) -> None:
    generator = np.random.default_rng(most)
    numbers = np.concatenate([np.arange(min(most, 20_000) + 1), generator.integers(0, most + 1, 5000), [most]])
    numbers = np.concatenate([numbers, [value for power in range(30) for value in (4**power, 7 * 4**power)]])
    found = four_squares(numbers[numbers <= most], most)
    assert ((found**2).sum(axis=1) == numbers[numbers <= most]).all()


def test_honest_rows_are_accepted() -> None:
    matrix = rows()
    matrix[0] = [2**BITS, -(2**BITS), 0, 0, 0, 0]  # as long as allowed
    matrix[1] = PROOF.completed(np.zeros((1, FEATURES), dtype=np.int64))[0]
    assert accepted(matrix)
    for attempt in range(5):
        assert accepted(rows(attempt), test=bytes([attempt]) * 32, seed=bytes([9 + attempt]) * 32)


def test_the_sums_that_are_tested_are_those_of_python_integers() -> None:
    from syndic.mpc.key import context  # noqa: PLC0415
    from syndic.mpc.mask import stream  # noqa: PLC0415

    matrix = rows()
    words = np.frombuffer(stream(TEST, context("length proof", "subsets", 0), 8 * matrix.size), dtype=np.uint8)
    entries, sums = [int(each) for each in matrix.ravel()], [0] * 64
    for entry, word in zip(entries, words.reshape(-1, 8), strict=True):
        for place in range(64):
            sums[place] += entry * ((int(word[place // 8]) >> (7 - place % 8)) & 1)
    bits = PROOF.tested(matrix, TEST).reshape(63, -1)
    half = 1 << (bits.shape[1] - 1)
    assert [int(row @ (1 << np.arange(row.size))) - half for row in bits] == [each - sums[0] for each in sums[1:]]


def put(*cells: tuple[int, int, int]) -> Matrix:
    matrix = rows()
    for row, column, value in cells:
        matrix[row, column] = value
    return FIELD.reduce(matrix)


def wrapped(value: int) -> Matrix:
    """Return rows of which one has this feature, and witnesses that make its equation right modulo the prime."""
    s, t = isotropic(FIELD.modulus)
    matrix = rows().astype(np.int64)
    matrix[3] = [value, 0, s * value % FIELD.modulus, t * value % FIELD.modulus, 2**BITS, 2**BITS]
    return FIELD.reduce(matrix)


def length(row: Matrix) -> int:
    return sum(int(each) ** 2 for each in row) % FIELD.modulus


BAD = {
    "one large number": put((3, 0, 1000 * 2**BITS)),
    "one more than the bound": put((3, 0, 2**BITS), (3, 1, 2**BITS), *((3, 2 + at, int(at == 0)) for at in range(4))),
    "one less than the full length": put((3, 0, 0), (3, 1, 0), *((3, 2 + at, [90, 9, 3, 1][at]) for at in range(4))),
    "a whole row of zeros": put(*((3, at, 0) for at in range(6))),
    "large numbers in two rows that cancel": put((3, 0, 10**6), (4, 0, -(10**6))),
    "the last row": put((ROWS - 1, FEATURES - 1, 10**6)),
}
WRAPPED = {
    "one large number": 1000 * 2**BITS,
    "one at the proven bound": BOUND,
    "half of the prime": (FIELD.modulus + 1) // 2,
    "a third of the prime": pow(3, -1, FIELD.modulus),
    "just below the prime over two": FIELD.modulus // 2 - 5,
}


def test_bad_rows_are_bad() -> None:
    assert all(length(matrix[3]) != SQUARE for name, matrix in BAD.items() if name != "the last row")
    assert all(length(wrapped(value)[3]) == SQUARE for value in WRAPPED.values())


@pytest.mark.parametrize("matrix", BAD.values(), ids=BAD)
def test_other_rows_are_refused_though_their_proof_is_the_best_there_is(matrix: Matrix) -> None:
    for attempt in range(3):
        seeds: dict[str, Any] = {"test": bytes([attempt]) * 32, "seed": bytes([100 + attempt]) * 32}
        assert not accepted(matrix, **seeds)
        # h moved by what O lacks: then h is no longer the sum of squares
        lacks = FIELD.add(*shared(matrix, **seeds))[-2:].astype(np.int64)
        assert lacks.any()
        assert not accepted(matrix, forge=lambda made, lacks=lacks: moved(made, lacks), **seeds)


def moved(made: Matrix, lacks: Matrix) -> Matrix:
    """Return a proof with h(1) moved by what O lacks."""
    forged = made.astype(np.int64)
    forged[2 * PROOF.terms + 1 + (2 * POINTS + 1) * np.arange(2)] -= lacks
    return FIELD.reduce(forged)


@pytest.mark.parametrize("value", WRAPPED.values(), ids=WRAPPED)
def test_wrapped_rows_are_refused_by_the_tests_alone(value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their squares add up modulo the prime, and bits are bits: only the sums over subsets are too large."""
    matrix = wrapped(value)
    for attempt in range(3):
        assert not accepted(matrix, test=bytes([attempt]) * 32)
    # numbers instead of bits that do make up the differences are no bits
    differences = PROOF._tested(matrix, TEST)
    numbers = np.zeros(PROOF.tests, dtype=np.int64)
    numbers[:: PROOF._bits] = np.mod(differences.astype(np.int64) + (1 << (PROOF._bits - 1)), FIELD.modulus)
    assert not accepted(matrix, bits=numbers)
    monkeypatch.setattr(LengthProof, "_unequal", lambda self, _: np.zeros(self._differences, dtype=FIELD.dtype))
    weights = LengthProof._weights
    monkeypatch.setattr(LengthProof, "_weights", lambda self, seed: 0 * weights(self, seed))
    assert accepted(matrix)


def test_a_large_entry_passes_each_test_with_a_chance_of_a_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """With eight subsets, seven of them compared with the first, one in 128 passes."""
    monkeypatch.setattr("syndic.mpc.length._SUBSETS", 8)
    small = 0 * rows()
    small[7, 1] = BOUND
    inside = 0
    for attempt in range(1000):
        differences = FIELD.lift(PROOF._tested(FIELD.reduce(small), attempt.to_bytes(32, "little")))
        inside += bool((np.abs(differences) < BOUND // 2).all())
    assert inside < 30  # 1000 / 128 expected


def test_random_entries_are_refused() -> None:
    generator = np.random.default_rng(7)
    for attempt in range(15):
        matrix, tests = FIELD.reduce(rows(attempt)), attempt.to_bytes(32, "little")
        for _ in range(generator.integers(1, 5)):
            place = generator.integers(ROWS), generator.integers(FEATURES + WITNESSES)
            matrix[place] = generator.integers(2**BITS + 1, FIELD.modulus)
        assert not accepted(matrix, test=tests, seed=tests)


def test_forged_bits_are_refused() -> None:
    matrix, honest = rows(), PROOF.tested(rows(), TEST)
    for place, value in ((0, 1 - honest[0]), (5, 2), (PROOF.tests - 1, -1), (7, FIELD.modulus // 2)):
        forged = honest.astype(np.int64)
        forged[place] = value
        assert not accepted(matrix, bits=forged)
    assert accepted(matrix, bits=honest)
