"""Integers modulo 2^bits or modulo another number, for masked and shared values.

A sum or product within `-bound..bound` is recovered exactly from the ring of `ring_for(bound)` or the field of
`field_for(bound)`, whatever wrapped in between. The bound must be public; otherwise the size of a message would reveal
something.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError, RefusedError

_WORD: Final = 64
_PIECE: Final = 1 << 10

# For each size from 17 to 28 bits the largest prime that leaves 1 divided by 4: proofs need roots in its extension.
_SMALL: Final = (131041, 262133, 524269, 1048573, 2097133, 4194301, 8388593)
_PRIMES: Final = (*_SMALL, 16777213, 33554393, 67108837, 134217689, 268435361)

LARGEST_FIELD: Final = _PRIMES[-1]

# For each size from 34 to 54 bits the largest prime: for proofs of lengths, whose numbers must not wrap.
_BELOW: Final = (41, 31, 5, 25, 45, 7, 87, 21, 11, 57, 17, 55, 21, 115, 59, 81, 27, 129, 47, 111, 33)
_WIDE: Final = tuple((1 << bits) - below for bits, below in enumerate(_BELOW, start=34))

LARGEST_WIDE: Final = _WIDE[-1]

# The probability that the noise of some value overflows the ring, over all values of a sum.
OVERFLOW: Final = 2.0**-64


@final
@dataclass(frozen=True)
class Ring:
    """The integers modulo 2^bits, 1 to 64 bits, stored in the smallest unsigned numpy type that fits."""

    bits: int

    def __post_init__(self) -> None:
        """Check that a machine word can hold an element."""
        if not 1 <= self.bits <= _WORD:
            raise InputError(f"a ring must have 1 to {_WORD} bits, not {self.bits}")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy type of elements: uint8, uint16, uint32 or uint64."""
        return _dtype(self.bits)

    @property
    def exact(self) -> bool:
        """Whether the numpy type wraps where the ring does, so that no bits need to be cleared."""
        return 8 * self.dtype.itemsize == self.bits

    def reduce(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return integers of any numpy integer type, negative ones too, as elements."""
        return self._cut(np.asarray(values).astype(self.dtype))

    def add(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """Return the sums of elements."""
        return self._cut(np.add(left, right, dtype=self.dtype))

    def subtract(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """Return the differences of elements."""
        return self._cut(np.subtract(left, right, dtype=self.dtype))

    def lift(self, elements: NDArray[Any]) -> NDArray[np.int64]:
        """Return the integers from -2^(bits-1) to 2^(bits-1)-1 that the elements stand for."""
        wide = elements.astype(np.int64)
        if self.bits == _WORD:
            return wide
        half = np.int64(1 << (self.bits - 1))
        lifted: NDArray[np.int64] = (wide ^ half) - half
        return lifted

    def scaled(self, power: int) -> "Ring":
        """Return the ring in which `power` times an element, a power of two, has the room that the element has here."""
        return Ring(self.bits + power.bit_length() - 1)

    def packed_bytes(self, count: int) -> int:
        """Return how many bytes `count` elements take on the wire."""
        return -(-count * self.bits // 8)

    def pack(self, elements: NDArray[Any]) -> bytes:
        """Return the elements, in C order, as a little-endian stream of `bits` bits each."""
        flat = np.ascontiguousarray(elements, dtype=self.dtype).reshape(-1)
        if self.exact:
            return flat.astype(self.dtype.newbyteorder("<"), copy=False).tobytes()
        # in pieces that fit the processor's cache
        step = _PIECE * _period(self.bits)[0]
        parts = [_joined(flat[start : start + step], self.bits).tobytes() for start in range(0, flat.size, step)]
        return b"".join(parts)[: self.packed_bytes(flat.size)]

    def unpack(self, data: bytes, count: int) -> NDArray[Any]:
        """Return the `count` elements that `pack` wrote; refuse bytes of any other length."""
        if len(data) != self.packed_bytes(count):
            raise RefusedError(
                f"expected {self.packed_bytes(count)} bytes for {count} numbers of {self.bits} bits, found {len(data)}"
            )
        if self.exact:
            return np.frombuffer(data, dtype=self.dtype.newbyteorder("<")).astype(self.dtype)
        found = np.empty(count, dtype=self.dtype)
        elements, size = (_PIECE * each for each in _period(self.bits))
        for piece, start in enumerate(range(0, count, elements)):
            part, words = found[start : start + elements], data[8 * size * piece : 8 * size * (piece + 1)]
            part[:] = _split(words, part.size, self.bits, self.dtype)
        return self._cut(found)

    def _cut(self, elements: NDArray[Any]) -> NDArray[Any]:
        if self.exact:
            return elements
        elements &= self.dtype.type((1 << self.bits) - 1)
        return elements


@final
@dataclass(frozen=True)
class Residues:
    """The integers modulo any number, with the methods of `Ring`; modulo a prime they are a field."""

    modulus: int

    def __post_init__(self) -> None:
        """Check that a machine word can hold a sum of two elements."""
        if not 2 <= self.modulus < 1 << (_WORD - 2):
            raise InputError(f"a modulus must be 2 to 2^{_WORD - 2}, not {self.modulus}")

    @property
    def bits(self) -> int:
        """How many bits an element takes on the wire."""
        return (self.modulus - 1).bit_length()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy type of elements, large enough for a sum of two."""
        return _dtype(self.bits + 1)

    def reduce(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return integers of any numpy integer type, negative ones too, as elements."""
        wide = np.asarray(values)
        if wide.dtype.kind == "u" and wide.max(initial=0) < self.modulus:
            return wide.astype(self.dtype)
        kind = np.uint64 if wide.dtype == np.uint64 else np.int64
        reduced: NDArray[Any] = np.mod(wide, kind(self.modulus), dtype=kind).astype(self.dtype)
        return reduced

    def add(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """Return the sums of elements."""
        total: NDArray[Any] = np.add(left, right, dtype=self.dtype)
        # what is below the modulus becomes a large number when the modulus is taken from it, and is kept
        np.minimum(total, total - self.dtype.type(self.modulus), out=total)
        return total

    def subtract(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """Return the differences of elements."""
        rest: NDArray[Any] = np.subtract(left, right, dtype=self.dtype)
        np.minimum(rest, rest + self.dtype.type(self.modulus), out=rest)
        return rest

    def lift(self, elements: NDArray[Any]) -> NDArray[np.int64]:
        """Return the integers around zero that the elements stand for."""
        wide = elements.astype(np.int64)
        lifted: NDArray[np.int64] = wide - self.modulus * (wide > self.modulus // 2)
        return lifted

    def scaled(self, power: int) -> "Residues":
        """Return the integers in which `power` times an element has the room that the element has here."""
        return Residues(self.modulus * power)

    def packed_bytes(self, count: int) -> int:
        """Return how many bytes `count` elements take on the wire."""
        return Ring(self.bits).packed_bytes(count)

    def pack(self, elements: NDArray[Any]) -> bytes:
        """Return the elements, in C order, as a little-endian stream of `bits` bits each."""
        return Ring(self.bits).pack(elements)

    def unpack(self, data: bytes, count: int) -> NDArray[Any]:
        """Return the `count` elements that `pack` wrote; refuse other lengths, and numbers that are no elements."""
        elements = Ring(self.bits).unpack(data, count).astype(self.dtype)
        if elements.max(initial=0) >= self.modulus:
            raise RefusedError(f"a packed number is not below {self.modulus}")
        return elements


Integers = Ring | Residues
"""What masked and shared values are elements of."""


def field_for(bound: int, least: int = 0) -> Residues:
    """Return the smallest prime field, of 17 bits or more, in which all integers from -bound to bound differ.

    With `least`, it has at least so many elements, and 34 bits or more.
    """
    primes = _WIDE if least else _PRIMES
    for prime in primes:
        if max(2 * bound, least - 1) < prime:
            return Residues(prime)
    raise InputError(
        f"sums and their noise reach {bound}, and rows can be proven up to {primes[-1] // 2}: raise epsilon, ask "
        'for less or fewer bits, or set adversary = "passive"'
    )


def multiplied(left: NDArray[np.int64], right: NDArray[np.int64], modulus: int) -> NDArray[np.int64]:
    """Return products of numbers from 0 to below a modulus of at most 54 bits, modulo it.

    The quotient in doubles is less than 16 off. So the rest, exact modulo 2^64, is below 2^58.
    """
    quotient = (left.astype(np.float64) * right / modulus).astype(np.int64)
    rest: NDArray[np.int64] = np.mod(left * right - quotient * modulus, modulus)
    return rest


def ring_for(bound: int) -> Ring:
    """Return the smallest ring in which all integers from -bound to bound are distinct elements."""
    if bound < 0:
        raise InputError(f"a bound on absolute values must be at least 0, not {bound}")
    bits = bound.bit_length() + 1
    if bits > _WORD:
        raise InputError(
            f"values up to {bound} need {bits} bits, and rings have at most {_WORD}: scale the values down"
        )
    return Ring(bits)


@lru_cache(maxsize=_WORD)
def _dtype(bits: int) -> np.dtype[Any]:
    return np.dtype(f"u{next(size for size in (1, 2, 4, 8) if 8 * size >= bits)}")


def _period(bits: int) -> tuple[int, int]:
    """Return after how many elements, and how many words, the positions within words repeat."""
    common = math.gcd(bits, _WORD)
    return _WORD // common, bits // common


def _joined(flat: NDArray[Any], bits: int) -> NDArray[np.uint64]:
    elements, words = _period(bits)
    blocks = -(-flat.size // elements)
    # one contiguous row per position within the period: every line below then runs over whole blocks at once
    rows = np.zeros((elements, blocks), dtype=np.uint64)
    full = flat.size // elements
    rows[:, :full] = flat[: full * elements].reshape(full, elements).T
    rows[: flat.size - full * elements, full:] = flat[full * elements :].reshape(-1, 1)
    packed = np.zeros((words, blocks), dtype=np.uint64)
    for position, row in enumerate(rows):
        word, shift = divmod(position * bits, _WORD)
        packed[word] |= row << np.uint64(shift)
        if shift + bits > _WORD:
            packed[word + 1] |= row >> np.uint64(_WORD - shift)
    return np.ascontiguousarray(packed.T).astype("<u8", copy=False)


def _split(data: bytes, count: int, bits: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    elements, words = _period(bits)
    blocks = -(-count // elements)
    padded = data.ljust(8 * words * blocks, b"\x00")
    packed = np.ascontiguousarray(np.frombuffer(padded, dtype="<u8").reshape(blocks, words).T)
    rows = np.empty((elements, blocks), dtype=dtype)
    for position in range(elements):
        word, shift = divmod(position * bits, _WORD)
        value = packed[word] >> np.uint64(shift)
        if shift + bits > _WORD:
            value |= packed[word + 1] << np.uint64(_WORD - shift)
        rows[position] = value.astype(dtype)
    return np.ascontiguousarray(rows.T).reshape(-1)[:count]
