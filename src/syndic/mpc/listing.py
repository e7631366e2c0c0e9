"""Encode lists of parties as bits, and split bytes into pieces of equal size; lengths are checked."""

from collections.abc import Iterable

import numpy as np

from syndic.errors import RefusedError


def bits(flags: Iterable[bool]) -> bytes:
    """Return a bit for each flag, in order."""
    return np.packbits(np.fromiter(flags, dtype=bool)).tobytes()


def marked(places: list[int], data: bytes) -> list[int]:
    """Return the places whose bit is set; refuse data of the wrong length."""
    if len(data) != -(-len(places) // 8):
        raise RefusedError("a list of parties has the wrong length")
    flags = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=len(places))
    return [place for place, flag in zip(places, flags, strict=True) if flag]


def pieces(data: bytes, size: int, count: int) -> list[bytes]:
    """Return `count` pieces of `size` bytes; refuse data of any other length."""
    if len(data) != size * count:
        raise RefusedError(f"expected {count} pieces of {size} bytes, found {len(data)} bytes in all")
    return [data[start : start + size] for start in range(0, len(data), size)]
