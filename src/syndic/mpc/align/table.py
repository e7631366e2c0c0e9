"""Find the ids that all parties hold from one sum of tables of polynomials over the integers modulo 2^61 - 1.

Every party has, for each of its ids, a key, a bin and a share; the shares of an id that ALL parties hold add up to
zero. A party's table has one polynomial a bin, which takes each key of the bin to its share, and is random otherwise:
bins are filled with random points up to a public number of points. The sum of all tables is zero at an id's key if
all parties hold it, and otherwise with probability 2^-61 only. The shares look random to everyone who lacks the secret
of one pair of parties, and so do all coefficients.

The idea is that of zero-sharing over an encoded map (Kolesnikov, Matania, Pinkas, Rosulek and Trieu 2017); a polynomial
for each bin is the simplest such map, and encoding never fails.
"""

from dataclasses import dataclass
from math import log
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.random import Randomness

Words = NDArray[np.uint64]

FIELD = 2**61 - 1
_FIELD, _LOW, _MIDDLE = (np.uint64(each) for each in (FIELD, 2**32 - 1, 2**29 - 1))
_3, _29, _32, _61 = (np.uint64(each) for each in (3, 29, 32, 61))
_A_BIN = 32  # ids in a bin on average: less traffic with more, less work with fewer
_OVERFLOW = 40 * log(2)  # minus the logarithm of the chance that some bin is too small
_BLOCK = 1 << 15  # points processed together, small enough for a processor's cache
_PART = 1 << 20  # coefficients in a message


@final
@dataclass(frozen=True, kw_only=True)
class TableShape:
    """Public size of every party's table: `bins` polynomials of `points` coefficients each."""

    bins: int
    points: int

    @property
    def words(self) -> int:
        """How many coefficients a table has."""
        return self.bins * self.points

    def parts(self) -> list[range]:
        """Return the bins of each message."""
        some = max(1, _PART // max(1, self.points))
        return [range(start, min(start + some, self.bins)) for start in range(0, self.bins, some)]


def table_shape(people: int) -> TableShape:
    """Return the size of a table for at most so many ids, none for 0; a bin overflows with a chance of at most 2^-40.

    By Chernoff's bound a bin that expects x ids has d or more with a chance of at most exp(d - x) (x / d)^d.
    """
    if not people:
        return TableShape(bins=0, points=0)
    bins = max(1, people // _A_BIN)
    mean = people / bins
    points = int(mean) + 1
    while points < people and points - mean + points * log(mean / points) + log(bins) > -_OVERFLOW:
        points += 1
    return TableShape(bins=bins, points=points)


def add(left: Words, right: Words) -> Words:
    """Return sums modulo 2^61 - 1."""
    return _reduced(left + right)


def subtract(left: Words, right: Words) -> Words:
    """Return differences modulo 2^61 - 1."""
    return _reduced(left + (_FIELD - right))


def multiply(left: Words, right: Words) -> Words:
    """Return products modulo 2^61 - 1, by halves of 32 and 29 bits; 2^61 is 1 and 2^64 is 8."""
    left_high, left_low, right_high, right_low = left >> _32, left & _LOW, right >> _32, right & _LOW
    middle = left_high * right_low + left_low * right_high
    low = left_low * right_low
    high = (left_high * right_high) << _3
    total = high + (middle >> _29) + ((middle & _MIDDLE) << _32) + (low & _FIELD) + (low >> _61)
    return _reduced((total & _FIELD) + (total >> _61))


def _reduced(words: Words) -> Words:
    # below twice the modulus: the smaller of the two, as a negative number wraps to a large one
    reduced: Words = np.minimum(words, words - _FIELD)
    return reduced


def field_words(data: bytes) -> Words:
    """Return 8 bytes each as numbers modulo 2^61 - 1; uniform up to one part in 2^58."""
    words = np.frombuffer(data, dtype="<u8").astype(np.uint64)
    folded: Words = (words & _FIELD) + (words >> _61)
    return _reduced(folded)


def weighed(words: Words, weights: Words) -> int:
    """Return the sum of all words times their weights: of different words it is the same with probability 2^-61."""
    return sum(map(int, _total(multiply(words, weights)))) % FIELD


def bins_of(data: bytes, shape: TableShape) -> NDArray[np.int64]:
    """Return 8 bytes each as the number of a bin."""
    return (np.frombuffer(data, dtype="<u8") % np.uint64(shape.bins)).astype(np.int64)


def encoded(
    keys: Words, bins: NDArray[np.int64], shares: Words, part: range, shape: TableShape, randomness: Randomness
) -> Words:
    """Return the polynomials of some bins: each takes every key of its bin to its share."""
    inside = np.flatnonzero((bins >= part.start) & (bins < part.stop))
    inside = inside[np.argsort(bins[inside], kind="stable")]
    rows = bins[inside] - part.start
    slots = np.arange(len(inside)) - np.searchsorted(rows, rows, side="left")
    if len(slots) and int(slots.max()) >= shape.points:
        raise RefusedError("a bin of the table is too small for its ids (probability 2^-40): set a new edition")
    size = (len(part), shape.points)
    points, values = (field_words(randomness.bytes(8 * len(part) * shape.points)).reshape(size) for _ in range(2))
    points[rows, slots] = keys[inside]
    values[rows, slots] = shares[inside]
    some = max(1, _BLOCK // shape.points)
    blocks = [slice(start, start + some) for start in range(0, len(part), some)]
    return np.concatenate([_interpolated(points[block], values[block]) for block in blocks])


def _interpolated(points: Words, values: Words) -> Words:
    """Return the coefficients of the polynomials through rows of points, lowest first, by Lagrange's formula."""
    size = points.shape[1]
    product = np.zeros((len(points), size + 1), dtype=np.uint64)
    product[:, 0] = 1
    slopes = np.ones_like(points)
    for place in range(size):
        root = points[:, place, None]
        # times (x - root)
        moved = multiply(product[:, : place + 1], root)
        product[:, 1 : place + 2] = product[:, : place + 1]
        product[:, 0] = 0
        product[:, : place + 1] = subtract(product[:, : place + 1], moved)
        apart = subtract(points, root)
        apart[:, place] = 1
        slopes = multiply(slopes, apart)
    weights = multiply(values, _inverses(slopes))
    coefficients = np.empty_like(points)
    quotients = weights
    for place in range(size - 1, -1, -1):
        # weights times (product / (x - point)), by synthetic division from the highest coefficient down
        coefficients[:, place] = _total(quotients)
        if place:
            quotients = add(multiply(quotients, points), multiply(weights, product[:, place, None]))
    return coefficients


def _inverses(words: Words) -> Words:
    """Return inverses along rows: one inversion a row and three products each (Montgomery 1987)."""
    before = np.ones((words.shape[0], words.shape[1] + 1), dtype=np.uint64)
    for place in range(words.shape[1]):
        before[:, place + 1] = multiply(before[:, place], words[:, place])
    if not before[:, -1].all():
        raise RefusedError("two ids of a bin have the same key (probability 2^-30 or less): set a new edition")
    rest = np.array([pow(int(each), -1, FIELD) for each in before[:, -1]], dtype=np.uint64)
    found = np.empty_like(words)
    for place in range(words.shape[1] - 1, -1, -1):
        found[:, place] = multiply(rest, before[:, place])
        rest = multiply(rest, words[:, place])
    return found


def _total(words: Words) -> Words:
    """Return the sums of rows, of high and low halves apart so that nothing overflows."""
    high, low = ((words >> _32).sum(axis=1, dtype=np.uint64), (words & _LOW).sum(axis=1, dtype=np.uint64))
    shifted = multiply(_reduced(high), np.full_like(high, 2**32))
    return add(shifted, _reduced((low & _FIELD) + (low >> _61)))


def zeros(table: Words, keys: Words, bins: NDArray[np.int64], part: range) -> NDArray[np.int64]:
    """Return the places of the ids, among all, at whose keys the polynomials of some bins are zero."""
    found = [np.zeros(0, dtype=np.int64)]
    places = np.flatnonzero((bins >= part.start) & (bins < part.stop))
    for start in range(0, len(places), _BLOCK):
        inside = places[start : start + _BLOCK]
        polynomials, at = table[bins[inside] - part.start], keys[inside]
        value = np.zeros_like(at)
        for place in range(table.shape[1] - 1, -1, -1):
            value = add(multiply(value, at), polynomials[:, place])
        found.append(inside[value == 0])
    return np.concatenate(found)
