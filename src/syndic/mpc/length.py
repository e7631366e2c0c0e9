"""A party proves that no masked row is longer than allowed: the sum of its squares is at most a public number R^2.

What a row x of one party adds to products with others is |x| times what the others' rows add, so a bound on |x| is
what a sensitivity needs, and the features may be any whole numbers within it.

*Statement.* The party adds four columns w with |x|^2 + |w|^2 = R^2 (Lagrange 1770), an equation of whole numbers. In
the field it is proven as a sum of squares (`syndic.mpc.proof`): with random v, u in K that of z = v u x is R^2 times
that of v u. *No wrapping.* The equation holds for whole numbers if p exceeds the largest sum there can be. For that,
after the rows are masked, 64 random subsets of the entries of every block of rows are drawn. In an honest block the
sums over two subsets differ by less than 2^e = 8 R sqrt(rows of a block) but for a chance of 2^-91 (each entry counts
-1, 0, 0 or 1 times). The party shares the bits of these differences plus 2^e, for the first subset and every other,
and proves in the same sum of squares that they are bits, b^2 = b, and in O that they make up the differences. An entry
of 2^(e+1) or more in absolute value passes with a chance of 1/2 for every subset but the first: given all other
entries, the difference is in range with or without it, not both. (After the tests of Rothblum et al. 2024, PINE.) In
all a row that is too long passes with a chance of at most 2^-63 + (4 + 2 points) / (|K| - p), below 2^-60.

*Rounds*: the subsets come after the masked rows, the challenge of the proof after the bits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isqrt
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.mpc.extension import Elements
from syndic.mpc.key import context
from syndic.mpc.mask import stream
from syndic.mpc.proof import PIECE, Proof
from syndic.mpc.ring import LARGEST_WIDE, multiplied

WITNESSES: Final = 4
"""How many columns complete a row to the full length."""

# subsets of a block, bits of a word; rows of a block; entries added up at once, few enough for the cache
_SUBSETS: Final = 64
_LARGEST_BLOCK: Final = 1 << 12
_ENTRIES: Final = 1 << 12
_LOW_BITS: Final = 27


@final
@dataclass(frozen=True)
class LengthProof(Proof):
    """The proof for a matrix of `rows` rows of so many `features`, whose squares add up to at most `square`."""

    features: int
    square: int
    rows: int

    name: ClassVar[str] = "length proof"
    what: ClassVar[str] = "no longer than allowed"

    @property
    def columns(self) -> int:
        """How many columns are masked."""
        return self.features + WITNESSES

    @cached_property
    def _block(self) -> int:
        modulus = self.field.modulus
        return next(block for block in _blocks(self.rows) if _modulus(self.columns, self.square, block) <= modulus)

    @property
    def _bits(self) -> int:
        """The bits of a difference, 2^e added to it."""
        return _exponent(self.square, self._block) + 1

    @property
    def _differences(self) -> int:
        return -(-self.rows // self._block) * (_SUBSETS - 1)

    @property
    def tests(self) -> int:
        """How many bits the party shares."""
        return self._differences * self._bits

    @property
    def _sums(self) -> tuple[int, int]:
        return -(-self.rows // self.points), -(-self.tests // self.points)

    @property
    def terms(self) -> int:
        """A square for each column and g, and for the bits of each g."""
        rows, bits = self._sums
        return rows * self.columns + bits

    def completed(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return the rows with the columns that complete their squares. Private."""
        rest = self.square - (matrix.astype(np.int64) ** 2).sum(axis=1)
        return np.hstack([matrix, four_squares(rest, self.square)])

    def tested(self, matrix: NDArray[Any], seed: bytes) -> NDArray[Any]:
        """Return the bits of the differences that a seed asks for. Private."""
        differences = self.field.lift(self._tested(self.field.reduce(matrix), seed)) + (1 << (self._bits - 1))
        bits: NDArray[Any] = ((differences[:, None] >> np.arange(self._bits)) & 1).ravel()
        return bits

    def joined(self, matrix: NDArray[Any], bits: NDArray[Any], seed: bytes = b"") -> NDArray[Any]:
        """Return rows and bits, or shares of them; with the seed of the tests also the differences that it asks for."""
        elements = self.field.reduce(matrix)
        parts = [elements.ravel(), bits.astype(self.field.dtype)]
        return np.concatenate([*parts, self._tested(elements, seed)] if seed else parts)

    def prove(self, values: NDArray[Any], seed: bytes, fresh: bytes) -> NDArray[Any]:
        """Return the proof of joined rows and bits; `fresh` is a key that is used for nothing else. Private."""
        return self._made(self._values(values, seed), fresh)

    def _values(self, values: NDArray[Any], seed: bytes) -> Iterator[Elements]:
        k, (points, *sums) = self.k, self._challenge(seed)
        for part, each in zip(self._split(values), sums, strict=False):
            step = max(1, PIECE // part.shape[2])
            for start in range(0, part.shape[1], step):
                places = slice(start, start + step)
                weights = k.times(points[:, :, None], each[:, None, places])
                z = k.scaled(weights[..., None], part[None, :, places])
                yield z.reshape(k.degree, self.points, -1)

    def answer(self, values: NDArray[Any], proof: NDArray[Any], seed: bytes, point: NDArray[Any]) -> NDArray[Any]:
        """Return F, H and O of one share of rows, bits and differences, and of their proof. Linear in both."""
        k, (points, rows, bits) = self.k, self._challenge(seed)
        matrix, given = self._split(values)
        lagrange = self._lagrange(point)
        weights = k.times(lagrange[0][:, 1:], points)
        found = [k.product(weights, part.reshape(self.points, -1)) for part in (matrix, given)]
        lines = np.concatenate(
            [k.times(np.repeat(rows, self.columns, axis=1), found[0]), k.times(bits, found[1])], axis=1
        )
        due = k.times(k.times(bits, bits), k.product(k.times(points, points), given[..., 0]))
        wrong = k.scaled(self._weights(seed), k.elements(self._unequal(values)))
        return self._answered(lines, k.sums(due) + k.sums(wrong), proof, lagrange)

    def _unequal(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the differences less what the bits make up."""
        start = self.rows * self.columns
        bits, differences = np.split(values[start:], [self.tests])
        powers = multiplied(bits.astype(np.int64).reshape(-1, self._bits), 1 << np.arange(self._bits), self._prime)
        return self.field.subtract(differences, self.field.reduce(powers.sum(axis=1)))

    def constant(self, seed: bytes) -> NDArray[Any]:
        """Return the part of O that does not depend on shares: the full length of every row, and 2^e."""
        k, (points, rows, _) = self.k, self._challenge(seed)
        whole, rest = divmod(self.rows, self._sums[0])
        points, rows = k.times(points, points), k.times(rows, rows)
        # arrays of one element: single numbers would warn where they wrap
        total = k.times(k.sums(points[:, None, :whole]), k.sums(rows[:, None]))
        if rest:
            total = k.reduce(total + k.times(points[:, whole, None], k.sums(rows[:, None, :rest])))
        squares = k.scaled(total, np.full(1, self.square))
        middles = k.scaled(k.sums(self._weights(seed)[:, None]), np.full(1, 1 << (self._bits - 1)))
        found = super().constant(seed)
        found[-k.degree :] = k.reduce(-squares - middles)[:, 0]
        return found

    @property
    def _prime(self) -> int:
        return self.field.modulus

    def _split(self, values: NDArray[Any]) -> tuple[Elements, Elements]:
        """Return rows and bits, numbered (tau, g), with their columns."""
        rows, bits, _ = np.split(values, np.cumsum([self.rows * self.columns, self.tests]))
        return self._numbered(rows.reshape(self.rows, -1)), self._numbered(bits[:, None])

    def _challenge(self, seed: bytes) -> tuple[Elements, Elements, Elements]:
        """Return an element of K for each tau, for the rows of each g and for the bits of each g."""
        rows, bits = self._sums
        names = (("points", self.points), ("rows", rows), ("bits", bits))
        points, *sums = (self.challenged(seed, name, count) for name, count in names)
        return points, sums[0], sums[1]

    def _weights(self, seed: bytes) -> Elements:
        """Return an element of K for each difference."""
        return self.challenged(seed, "differences", self._differences)

    def _tested(self, elements: NDArray[Any], seed: bytes) -> NDArray[Any]:
        """Return, for every block of rows, the sums over all subsets but the first, less that over the first."""
        found = []
        for start in range(0, self.rows, self._block):
            entries = elements[start : start + self._block].ravel()
            words = stream(seed, context(self.name, "subsets", start), entries.size * _SUBSETS // 8)
            limbs = np.stack([entries & ((1 << _LOW_BITS) - 1), entries >> _LOW_BITS]).astype(np.float64)
            sums, chosen = np.zeros((2, _SUBSETS)), np.frombuffer(words, dtype=np.uint8).reshape(entries.size, -1)
            for first in range(0, entries.size, _ENTRIES):
                part = slice(first, first + _ENTRIES)
                # whole numbers below 2^53, so sums are exact
                sums += limbs[:, part] @ np.unpackbits(chosen[part], axis=1).astype(np.float64)
            low, high = np.mod(sums.astype(np.int64), self._prime)
            total = low + multiplied(high, np.full(1, 1 << _LOW_BITS), self._prime)
            found.append(self.field.reduce(total[1:] - total[0]))
        return np.concatenate(found)


def _blocks(rows: int) -> list[int]:
    """Return how many rows a block can have, the fewest blocks first."""
    return [1 << power for power in range((min(rows, _LARGEST_BLOCK) - 1).bit_length(), -1, -1)]


def least_modulus(rows: int, shapes: Sequence[tuple[int, int]]) -> int:
    """Return how many elements a field must have to prove rows of these numbers of features and squared lengths."""
    for block in _blocks(rows):
        least = max(_modulus(features + WITNESSES, square, block) for features, square in shapes)
        if least <= LARGEST_WIDE:
            return least
    raise InputError('rows of this length cannot be proven: set fewer bits, or adversary = "passive"')


def _exponent(square: int, block: int) -> int:
    """Return e, with 2^e at least 8 R sqrt(block)."""
    return ((64 * block * square - 1).bit_length() + 1) // 2


def _modulus(columns: int, square: int, block: int) -> int:
    """Return what the squares of so many entries below 2^(e+1) cannot exceed."""
    return columns << (2 * _exponent(square, block) + 2)


def four_squares(numbers: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return, for each number from 0 to `most`, four whole numbers whose squares add up to it.

    Of a number that 4 does not divide, take away the square of its root, rounded down, or of one less: one of the two
    rests is 1, 2, 3, 5 or 6 modulo 8 and thus a sum of three squares.
    """
    three = _three_squares(4 * isqrt(most) + 1)
    # the largest power of 4 that divides a number; 0 stays 0
    halves = np.maximum(np.frexp((numbers & -numbers).astype(np.float64))[1] - 1, 0) // 2
    rest = numbers >> (2 * halves)
    first = np.sqrt(rest).astype(np.int64)
    first -= three[rest - first**2, 0] < 0
    found: NDArray[np.int64] = np.column_stack([first, three[rest - first**2]]) << halves[:, None]
    return found


@lru_cache(maxsize=4)
def _three_squares(count: int) -> NDArray[np.int64]:
    """Return three numbers whose squares add up to 0, 1, .., `count` - 1, or -1 where there are none."""
    squares = np.arange(isqrt(count) + 1) ** 2
    two = np.full(count, -1)
    sums = squares[:, None] + squares
    two[sums[sums < count]] = np.nonzero(sums < count)[0]
    found, open_ = np.full((count, 3), -1), np.arange(count)
    for one, square in enumerate(squares):
        rest = open_ - square
        there = (rest >= 0) & (two[rest] >= 0)
        place, rest = open_[there], rest[there]
        other = two[rest]
        found[place] = np.column_stack([np.full(place.size, one), other, np.sqrt(rest - other**2).astype(np.int64)])
        open_ = open_[~there]
    return found
