"""Coded rows in horizontal and vertical studies: check feature names, clip long rows, sum products."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import Coding, Feature
from syndic.errors import InputError

Pair = tuple[str, str]

MOST_BITS: Final = 62
"""Shares of sums fill their ring, and noise is added to them as 64-bit numbers, which must not overflow."""

# sums of whole numbers below this are exact in floating point
_EXACT: Final = 1 << 53


@final
@dataclass(frozen=True, kw_only=True)
class Clip:
    """Some of a party's features, `blocks` blocks of numbers, whose sum of squares is clipped to `length`.

    Clipped numbers are multiples of `step`.
    """

    places: tuple[int, ...]
    blocks: int
    length: Fraction
    step: int = 1

    def apply(self, rows: NDArray[np.int32], bits: int) -> NDArray[np.int32]:
        """Return the rows, with longer ones clipped; rounding is towards zero, so none stays longer."""
        numbers = rows[:, list(self.places)].astype(np.int64)
        most = int(self.length * 4**bits)
        squares = (numbers**2).sum(axis=1)
        long = squares > most
        # slightly less, so that the floating-point product cannot round up
        factors = np.sqrt(most / squares[long])[:, None] * (1 - 1e-12)
        numbers[long] = self.step * np.trunc(numbers[long] * (factors / self.step)).astype(np.int64)
        shortened = rows.copy()
        shortened[:, list(self.places)] = numbers
        return shortened


def check_names(codings: Iterable[Coding], features: Sequence[Feature]) -> None:
    """Refuse columns whose blocks or features would have the same name."""
    blocks = [each.block for each in features if each.ones == each.name]
    blocks += ["*".join(coding.columns) for coding in codings]
    for names in (blocks, [each.name for each in features]):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"two features would be called {twice[0]}: rename a column or a value")


def clip_of(blocks: tuple[Coding, ...], norm: Fraction, exempt: tuple[str, ...]) -> Clip | None:
    """Return the features of a party that are clipped: blocks of numbers only, without exempt columns."""
    places: list[int] = []
    start = count = 0
    for block in blocks:
        if block.numbers == len(block.features) and not set(exempt) & set(block.columns):
            places += range(start, start + len(block.features))
            count += 1
        start += len(block.features)
    length = max(Fraction(1), norm * count)
    return Clip(places=tuple(places), blocks=count, length=length) if length < count else None


def products_of(rows: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the sums of products of any two features over some rows, exactly. Private."""
    total = np.zeros((rows.shape[1], rows.shape[1]), dtype=np.int64)
    piece = max(1, _EXACT // max(1, int(np.abs(rows).max(initial=0))) ** 2)
    for start in range(0, len(rows), piece):
        wide = rows[start : start + piece].astype(np.float64)
        total += (wide.T @ wide).astype(np.int64)
    return total
