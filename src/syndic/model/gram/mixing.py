"""Random mixing of rows (Wu et al., UAI 2022): a k x n matrix of signs times the rows, never stored in full.

The signs come from a stream of bits, one tile of people at a time, and are expanded into small blocks for matrix
products in single precision. Entries are whole numbers, and a tile is so short that its sums stay below 2^24: the
product is exact, and the same on every machine.
"""

import math
from collections.abc import Callable
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

Stream = Callable[[int, int], bytes]
"""Returns the bits of the signs, for the number of a tile and its bytes. Public, and the same for every party."""

_TILE: Final = 8192
_ROWS_AT_ONCE: Final = 64
# the two signs of each bit of each byte, the highest bit first
_SIGNS: Final = (1 - 2 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32)).astype(
    np.float32
)


def tile_of(bits: int) -> int:
    """Return how many people a tile has, for entries of at most 2^bits."""
    return min(_TILE, 1 << (24 - bits))


@final
class Mixer:
    """Computes B times the rows, where B has `mixes` rows of signs: add rows in batches, then call `total`.

    Its contents are private until noise is added. Memory: `mixes` times width numbers and a few tiles.
    """

    def __init__(self, *, mixes: int, width: int, bits: int, stream: Stream) -> None:
        """Start at the first person."""
        self._tile = tile_of(bits)
        self._mixes = mixes
        self._stream = stream
        self._sums = np.zeros((mixes, width), dtype=np.int64)
        self._held = np.zeros((self._tile, width), dtype=np.float32)
        self._filled = 0
        self._tiles = 0
        self.people = 0

    def add(self, rows: NDArray[np.int32]) -> None:
        """Add the rows of the next people, as whole numbers."""
        start = 0
        while start < len(rows):
            taken = min(len(rows) - start, self._tile - self._filled)
            self._held[self._filled : self._filled + taken] = rows[start : start + taken]
            self._filled += taken
            start += taken
            if self._filled == self._tile:
                self._mix()
        self.people += len(rows)

    def total(self) -> NDArray[np.int64]:
        """Return B times all rows."""
        if self._filled:
            self._held[self._filled :] = 0
            self._mix()
        return self._sums

    def _mix(self) -> None:
        width = self._tile // 8
        data = self._stream(self._tiles, self._mixes * width)
        packed = np.frombuffer(data, dtype=np.uint8).reshape(self._mixes, width)
        signs = np.empty((_ROWS_AT_ONCE, width, 8), dtype=np.float32)
        for start in range(0, self._mixes, _ROWS_AT_ONCE):
            some = packed[start : start + _ROWS_AT_ONCE]
            expanded = signs[: len(some)]
            # a byte is below 256, so nothing is clipped; the mode only avoids a check
            np.take(_SIGNS, some, axis=0, out=expanded, mode="clip")
            self._sums[start : start + len(some)] += (expanded.reshape(len(some), -1) @ self._held).astype(np.int64)
        self._tiles += 1
        self._filled = 0


def mixes_for(*, people: int, features: int, tau: float) -> int:
    """Return a number of mixes from public numbers alone; `tau` is the noise of an entry, for values in [-1, 1].

    In a sum of products of two features the signs leave products of different people, of size n q / sqrt(k) where q is
    the mean square of a value; noise times noise adds tau^2 sqrt(k). They are equal at k = n q / tau^2. Uniformly
    distributed values have q = 1/3. At least two mixes per feature, and at most the number of people.
    """
    balanced = math.ceil(people / (3 * tau**2))
    return max(2 * (features + 1), min(balanced, people))


def printed_mixes(people: int, sigma: float) -> int:
    """Return the number of mixes of the published curves: 10 sqrt(n) / sigma; the paper's text omits the 10."""
    return max(1, int(10 * math.sqrt(people) / sigma))


def classical_sigma(epsilon: float, delta: float) -> float:
    """Return the noise of the classical Gaussian mechanism for sensitivity 1; proven for epsilon up to 1 only."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon
