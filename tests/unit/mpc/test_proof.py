"""Proofs of one-hot rows on shares, against Python integers; forged proofs; masks that are exactly uniform."""

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from syndic.errors import InputError, RefusedError
from syndic.mpc.extension import Extension
from syndic.mpc.mask import expand
from syndic.mpc.proof import POINTS, OneHotProof
from syndic.mpc.ring import Residues, field_for

PRIMES = [16381, 131041, 262133, 524269, 1048573, 2097133, 4194301, 8388593]
PRIMES += [16777213, 33554393, 67108837, 134217689, 268435361]  # in integers of 64 bits
SMALL = OneHotProof(Residues(16381), (3, 0, 2), 50, points=8)
BOTH = [SMALL, *(OneHotProof(field_for(bound), (3, 2), 50) for bound in (1, 10**8))]
SEED, FRESH, SHARE, POINT = (letter * 32 for letter in (b"s", b"f", b"d", b"t"))

Element = tuple[int, ...]


def times(left: Element, right: Element, prime: int) -> Element:
    """Multiply modulo x^4 - c with Python's own integers."""
    root, sums = Extension(prime).root, [0] * 7
    for one, x in enumerate(left):
        for other, y in enumerate(right):
            sums[one + other] += x * y
    return tuple((low + root * high) % prime for low, high in zip(sums[:4], [*sums[4:], 0], strict=True))


def elements(array: Any) -> list[Element]:
    """Return the elements of K of an array, whose first axis has their coefficients."""
    return [tuple(int(each) for each in one) for one in np.asarray(array).reshape(4, -1).T]


def rows_of(proof: OneHotProof, seed: int = 1) -> NDArray[np.int64]:
    """Return random rows with at most a single one in each group."""
    generator, matrix = np.random.default_rng(seed), np.zeros((proof.rows, sum(proof.groups)), dtype=np.int64)
    for start, stop in pairwise(accumulate(proof.groups, initial=0)):
        codes = generator.integers(0, stop - start + 1, proof.rows)
        there = codes < stop - start
        matrix[np.flatnonzero(there), start + codes[there]] = 1
    return matrix


def accepted(proof: OneHotProof, matrix: NDArray[np.int64], shift: NDArray[Any] | int = 0, seed: bytes = SEED) -> bool:
    """Share a matrix and a proof of it, moved by `shift`, and check them."""
    field = proof.field
    mask = expand(b"u" * 32, b"", matrix.size, field).reshape(matrix.shape)
    made = field.reduce(proof.prove(matrix, seed, FRESH).astype(np.int64) + shift)
    share, point = proof.drawn(SHARE, "share", proof.length), proof.point(POINT)
    dealt = proof.answer(mask, share, seed, point)
    opened = field.subtract(field.reduce(matrix), mask)
    return proof.holds(dealt, proof.answer(opened, field.subtract(made, share), seed, point))


@pytest.mark.parametrize("prime", PRIMES)
def test_the_extension_is_a_field_and_its_products_are_exact(prime: int) -> None:
    k, generator = Extension(prime), np.random.default_rng(prime)
    assert prime % 4 == 1
    assert pow(k.root, (prime - 1) // 2, prime) == prime - 1  # no square, so x^4 - root has no factors
    left, right = (k.elements(generator.integers(0, prime, (4, 40))) for _ in range(2))
    left[:, 0] = right[:, 0] = prime - 1  # the largest sums there are
    expected = [times(*pair, prime) for pair in zip(elements(left), elements(right), strict=True)]
    assert elements(k.times(left, right)) == expected
    many = k.elements(np.full((4, 3000), prime - 1))
    one = times((prime - 1,) * 4, (prime - 1,) * 4, prime)
    assert elements(k.squares(many)) == [tuple(3000 * each % prime for each in one)]
    most = 2**53 if k.doubles else 2**63
    for value in (0, -1, prime - 1, most - 1, prime * (most // prime) - 1, -most // 2):
        assert int(k.reduce(k.elements(np.array(value)))) == value % prime


@pytest.mark.parametrize("prime", PRIMES)
def test_polynomials_are_evaluated_exactly(prime: int) -> None:
    k, generator = Extension(prime), np.random.default_rng(prime)
    for degree in (8, POINTS, 2 * POINTS):
        powers = [int(each) for each in generator.integers(0, prime, degree + 1)]
        values = [sum(power * node**place for place, power in enumerate(powers)) % prime for node in range(degree + 1)]
        point = (5, 1, prime - 1, 7)
        found: Element = (0, 0, 0, 0)
        term: Element = (1, 0, 0, 0)
        for power in powers:
            found = tuple((one + power * other) % prime for one, other in zip(found, term, strict=True))
            term = times(term, point, prime)
        weights = elements(k.coefficients(degree, k.elements(np.array(point))))
        total = [
            sum(value * weight[place] for value, weight in zip(values, weights, strict=True)) for place in range(4)
        ]
        assert tuple(each % prime for each in total) == found
    beyond = k.extrapolation(8) @ k.elements(np.arange(9))  # the polynomial x
    assert k.reduce(beyond).tolist() == list(range(9, 17))


def test_a_proof_and_its_check_are_those_of_python_integers() -> None:
    proof, prime, matrix = SMALL, SMALL.field.modulus, rows_of(SMALL)
    drawn = {
        name: elements(proof.drawn(SEED, name, 4 * count))
        for name, count in (("columns", 5), ("points", 8), ("sums", 14))
    }
    masks = elements(proof.drawn(FRESH, "masks", 56))
    made = proof.prove(matrix, SEED, FRESH)
    f_0, h = elements(made[:56]), elements(made[56:])
    assert f_0 == masks
    for node in range(1, 9):  # at 1..8 h is the sum of all squares of z
        total: Element = (0, 0, 0, 0)
        for group, columns in enumerate((range(3), range(3, 5))):
            for place in range(7):
                row = (node - 1) * 7 + place
                hot = [column for column in columns if row < 50 and matrix[row, column]]
                for column in hot:
                    z = times(
                        times(drawn["points"][node - 1], drawn["sums"][group * 7 + place], prime),
                        drawn["columns"][column],
                        prime,
                    )
                    total = tuple((one + other) % prime for one, other in zip(total, times(z, z, prime), strict=True))
        assert h[node] == total
    at_zero = [times(one, one, prime) for one in masks]
    assert h[0] == tuple(sum(one[place] for one in at_zero) % prime for place in range(4))


@pytest.mark.parametrize(
    "proof",
    [
        SMALL,
        OneHotProof(field_for(1), (4, 2, 1), 700),
        OneHotProof(field_for(1), (0,), 9),
        OneHotProof(field_for(10**8), (4, 2, 1), 700),
    ],
)
def test_one_hot_rows_are_accepted(proof: OneHotProof) -> None:
    assert accepted(proof, rows_of(proof))
    assert accepted(proof, 0 * rows_of(proof))


BAD = {
    "1000 in a cell": [(3, 0, 1000)],
    "100 and -99 in a row": [(3, 0, 100), (3, 1, -99)],
    "+100 and -100 in a column": [(3, 0, 100), (9, 0, -100)],
    "two ones": [(3, 0, 1), (3, 1, 1)],
    "minus one": [(3, 0, -1)],
    "the last row": [(49, 4, 2)],
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("proof", BOTH, ids=["14 bits", "17 bits", "28 bits"])
def test_other_rows_are_refused_though_their_proof_is_the_best_there_is(proof: OneHotProof, bad: Any) -> None:
    matrix = rows_of(proof)
    for row, *_ in bad:
        matrix[row] = 0
    for row, column, value in bad:
        matrix[row, column] = value
    for attempt in range(10):
        seed = bytes([attempt]) * 32
        assert not accepted(proof, matrix, seed=seed)
        # h moved by what O lacks: then h is no longer the sum of squares
        assert not accepted(proof, matrix, shift=lacking(proof, matrix, seed), seed=seed)


def lacking(proof: OneHotProof, matrix: NDArray[np.int64], seed: bytes) -> NDArray[np.int64]:
    """Return the shift of h(1) that makes O zero, for a proof of any rows."""
    field = proof.field
    whole = proof.answer(field.reduce(matrix), proof.prove(matrix, seed, FRESH), seed, proof.point(POINT))
    shift = np.zeros(proof.length, dtype=np.int64)
    starts = proof.length - 4 * (2 * proof.points + 1) + (2 * proof.points + 1) * np.arange(4) + 1
    shift[starts] = -whole[-4:].astype(np.int64)
    return shift


def test_random_cells_are_refused() -> None:
    """One to four cells of any value, each with the best proof there is, and with one whose sums are right."""
    proof, generator = OneHotProof(field_for(1), (3, 2), 50), np.random.default_rng(7)
    prime = proof.field.modulus
    for attempt in range(60):
        matrix, seed = rows_of(proof, attempt), attempt.to_bytes(32, "little")
        for _ in range(generator.integers(1, 5)):
            matrix[generator.integers(50), generator.integers(5)] = generator.integers(2, prime)
        assert not accepted(proof, matrix, seed=seed)
        assert not accepted(proof, matrix, shift=lacking(proof, matrix, seed), seed=seed)


def test_a_proof_for_another_challenge_is_refused() -> None:
    proof, field, matrix = SMALL, SMALL.field, rows_of(SMALL)
    made, point = proof.prove(matrix, SEED, FRESH), proof.point(POINT)
    other = proof.answer(field.reduce(matrix), made, b"x" * 32, point)
    assert not proof.holds(other, np.zeros_like(other))


def test_points_are_outside_the_field() -> None:
    proof = OneHotProof(Residues(5), (1,), 1, points=1)
    points = [proof.point(bytes([one, other]) * 16) for one in range(40) for other in range(40)]
    assert all(proof.outside(point) for point in points)
    assert not proof.outside(np.array([3, 0, 0, 0]))


def test_the_chance_of_a_false_proof_is_below_what_is_claimed() -> None:
    for prime in PRIMES[1:]:
        size = prime**4
        assert 6 / size + 2 * POINTS / (size - prime) <= 2**-60
        k = Extension(prime)
        assert max(POINTS + 1, 4 * k.root) * prime**2 < (2**53 if k.doubles else 2**63)  # every sum is exact


@pytest.mark.parametrize("modulus", [5, 257, 131041, 3 * 2**30])
def test_elements_are_exactly_uniform_and_within_their_numbers(modulus: int) -> None:
    ring = Residues(modulus)
    drawn = expand(b"k" * 32, b"place", 100_000, ring)
    assert drawn.max() < modulus
    counts = np.bincount((drawn.astype(np.uint64) * min(modulus, 100) // modulus).astype(np.int64))
    assert stats.chisquare(counts).pvalue > 1e-6 if modulus % counts.size == 0 or modulus > 10**5 else True
    assert (expand(b"k" * 32, b"place", 100_000, ring) == drawn).all()
    numbers = np.array([0, 1, modulus - 1])
    assert ring.unpack(ring.pack(numbers), 3).tolist() == numbers.tolist()
    assert ring.add(ring.reduce(numbers), ring.reduce(numbers)).tolist() == [0, 2 % modulus, modulus - 2]
    assert ring.subtract(ring.reduce(numbers), ring.reduce(numbers[::-1])).tolist() == [1, 0, modulus - 1]
    assert ring.lift(ring.reduce(np.array([-1, 1, modulus + 2]))).tolist() == [-1, 1, 2]
    assert ring.scaled(8).modulus == 8 * modulus
    with pytest.raises(RefusedError, match="not below"):
        ring.unpack(ring.pack(np.array([modulus])), 1)


@pytest.mark.parametrize("modulus", [1, 2**62])
def test_a_modulus_fits_a_word(modulus: int) -> None:
    with pytest.raises(InputError, match="modulus"):
        Residues(modulus)
