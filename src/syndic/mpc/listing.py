"""Lists of parties as bits, and bytes cut into pieces of one size: what a coordinator passes on. Checked on arrival."""

from collections.abc import Iterable

import numpy as np

from syndic.errors import RefusedError


def bits(flags: Iterable[bool]) -> bytes:
    """Return a bit for each flag, in order."""
    return np.packbits(np.fromiter(flags, dtype=bool)).tobytes()


def marked(places: list[int], data: bytes) -> list[int]:
    """Return the places whose bit is set; a list of another length is refused."""
    if len(data) != -(-len(places) // 8):
        raise RefusedError("a list of parties came with the wrong length")
    flags = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=len(places))
    return [place for place, flag in zip(places, flags, strict=True) if flag]


def pieces(data: bytes, size: int, count: int) -> list[bytes]:
    """Return `count` pieces of `size` bytes; other lengths are refused."""
    if len(data) != size * count:
        raise RefusedError(f"{len(data)} bytes came where {count} pieces of {size} bytes were due")
    return [data[start : start + size] for start in range(0, len(data), size)]
