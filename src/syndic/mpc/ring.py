"""Integers modulo 2^bits, for masked and shared values.

A sum or product within `-bound..bound` is recovered exactly from the ring of `ring_for(bound)`, whatever wrapped in
between. The bound must be public; otherwise the size of a message would reveal something.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError, RefusedError

_WORD: Final = 64

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

    def packed_bytes(self, count: int) -> int:
        """Return how many bytes `count` elements take on the wire."""
        return -(-count * self.bits // 8)

    def pack(self, elements: NDArray[Any]) -> bytes:
        """Return the elements, in C order, as a little-endian stream of `bits` bits each."""
        flat = np.ascontiguousarray(elements, dtype=self.dtype).reshape(-1)
        if self.exact:
            return flat.astype(self.dtype.newbyteorder("<"), copy=False).tobytes()
        return _joined(flat, self.bits).tobytes()[: self.packed_bytes(flat.size)]

    def unpack(self, data: bytes, count: int) -> NDArray[Any]:
        """Return the `count` elements that `pack` wrote; refuse bytes of any other length."""
        if len(data) != self.packed_bytes(count):
            raise RefusedError(
                f"expected {self.packed_bytes(count)} bytes for {count} numbers of {self.bits} bits, found {len(data)}"
            )
        if self.exact:
            return np.frombuffer(data, dtype=self.dtype.newbyteorder("<")).astype(self.dtype)
        return self._cut(_split(data, count, self.bits, self.dtype))

    def _cut(self, elements: NDArray[Any]) -> NDArray[Any]:
        if self.exact:
            return elements
        elements &= self.dtype.type((1 << self.bits) - 1)
        return elements


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
