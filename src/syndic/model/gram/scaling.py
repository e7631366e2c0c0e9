"""Rescale numbers by a noisy histogram, so that noise is small against their spread and not only their bounds.

*Why*. Noise on a sum of products follows from the longest possible row. Declared bounds are often wide: a column with a
standard deviation of a tenth of its bounds has a hundredth of their squares. A first stage, with a small share of the
budget, counts every number column in equal bins. From the noisy counts follow a centre and a width for each column. The
second stage codes rows as differences from the centre in units of the width, and shortens long rows to a public length:
its sensitivity does not depend on the counts.

*Sensitivity of the counts*. Replacing a person moves one count of each column down and one up: at most 2 in squared l2
for each column, and 2 entries.

*Lengths*. Rows that are never shortened need much noise, short rows give a bias. With x = people * mu / columns, the
inverse of the noise on a correlation, the mean square of a row's numbers is limited to x / 120 standard deviations
squared: a noise of 1/120 on a correlation hardly matters, and a bias may. It is at least 0.7, below which noise hardly
falls, and at most sqrt(x / 20), so that the noise falls with more people while rows of heavy tails become whole.
*Widths*. A width is `spread` standard deviations, unless the bounds are nearer. Noise on products of numbers is
that of about columns + spread^2 columns, noise on means falls with 1 / spread: spread^2 = columns / 8 costs little and
keeps means exact, and more helps where nothing but means can be learned. It is at least the length above, so that
numbers count no more than other columns: whatever the bounds, noise is never much above that of bounds alone.
*Target*. In standard units, noise of size s on all sums puts s (|w|^2 + 1)^(1/2) on each equation for the coefficients
w: the 1 is from the sums with the label. In a unit f times finer the label counts as f^2 columns in the length of a
row, so with B other blocks s grows in proportion to B + f^2, and the 1 falls to 1 / f^2. For |w|^2 = 1/2 the least is
where f^4 + f^2 = B; `finer` is (B + 1)^(1/4): s grows by a quarter at most. Where rows may be long, noise hardly
matters and a shorter label does: f^2 is divided by the square of the mean square, down to 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Final, final

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import Coding
from syndic.data.column import Codes
from syndic.document import Document
from syndic.model.gram.rows import Clip

Numbers = NDArray[np.float64]

_BINS: Final = (8, 64)
# people in a bin, on average, over the noise of its count
_NOISE: Final = 2.0
# variance of columns' means, in units of half of their bounds, before anything is seen
_MEANS: Final = 0.1
_SHORTEST: Final = 0.7
# values beyond this many standard deviations are clipped, more where rows may be longer
_REACH: Final = 4.0
# least mean square of rows that are hardly ever shortened, in standard deviations squared: of many columns, and of one
_WHOLE: Final = (2, 6)
# squares are opened as two halves, which must be whole numbers
_STEP: Final = 2
# plans are computed at every party: no difference in the last digit may matter
_GRID: Final = 64


class Scale(Document):
    """A column's centre and width, in units of 2^-bits of the declared half-width."""

    name: str
    centre: int
    width: int


@final
@dataclass(frozen=True, kw_only=True)
class Scaling:
    """How number columns are counted and rescaled. Public.

    `sigma` is the noise of a count. A width is `spread` standard deviations; z is at most `reach`, and the squares of
    the numbers in a row add up to at most `length` for each column. The unit of the `target` is `finer` times as fine:
    it counts as so many columns, squared.
    """

    columns: int
    bins: int
    sigma: float
    spread: float
    length: Fraction
    reach: Fraction
    target: str | None = None
    finer: Fraction = Fraction(1)

    def exact(self, clip: Clip) -> bool:
        """Return whether a party's rows are long enough for intervals: of normal columns hardly a row is shortened.

        A mean of few squares varies more, and so does one in which the target counts several times.
        """
        square, counted = self.length * Fraction(self.spread) ** 2, clip.length / self.length
        fourths = clip.blocks if counted == clip.blocks else clip.blocks - 1 + self.finer**4
        return square >= _WHOLE[0] and (square * counted) ** 2 >= _WHOLE[1] ** 2 * fourths

    def clip(self, codings: Sequence[Coding]) -> Clip | None:
        """Return how a party's rows are shortened."""
        places, start, counted = [], 0, Fraction(0)
        for coding in codings:
            if is_number(coding):
                places.append(start)
                counted += self._finer(coding) ** 2
            start += len(coding.features)
        if not places:
            return None
        return Clip(places=tuple(places), blocks=len(places), length=self.length * counted, step=_STEP)

    def _finer(self, coding: Coding) -> Fraction:
        """Return how many times finer a column's unit is than that of the other columns."""
        return self.finer if coding.columns == (self.target,) else Fraction(1)

    def scales(self, codings: Sequence[Coding], counts: Numbers, people: int) -> tuple[Scale, ...]:
        """Return centre and width of each number column from its noisy counts. Nothing is charged.

        Counts become shares by the nearest point of the simplex, which removes most of the noise of empty bins. Counts
        that noise alone explains become equal shares.
        """
        found = []
        for coding, some in zip(filter(is_number, codings), counts.reshape(-1, self.bins), strict=True):
            mean, deviation = self._moments(some, people)
            unit = 1 << coding.bits
            centre = round(mean * unit)
            # a row at the farther bounds is not shortened then: wider never helps
            widest = int((unit + abs(centre)) * self._whole)
            width = max(1, round(min(self.spread * deviation * unit, widest) / float(self._finer(coding))))
            found.append(Scale(name=coding.features[0].name, centre=centre, width=width))
        return tuple(found)

    @property
    def _whole(self) -> float:
        """The largest value of a row that is not shortened if all its numbers have it, inverted."""
        return 1 / sqrt(self.length)

    def _moments(self, counts: Numbers, people: int) -> tuple[float, float]:
        """Return centre and standard deviation of a column in [-1, 1]."""
        middles = (2 * np.arange(self.bins) + 1) / self.bins - 1
        noise = max(self.sigma, 1.0) / people
        excess = float(((counts / people - 1 / self.bins) ** 2).sum()) / (self.bins * noise**2) - 1
        nearest = _simplex(counts / people)
        trust = min(1.0, max(0.0, excess))
        shares = trust * nearest + (1 - trust) / self.bins
        # values are spread within a bin, too
        variance = float(shares @ middles**2 - (shares @ middles) ** 2) + (2 / self.bins) ** 2 / 12
        # in much noise the nearest shares are those of a few bins: the mean of all counts is better then
        plain = float(counts @ middles) / people
        plain *= _MEANS / (_MEANS + noise**2 * float(middles @ middles))
        clear = min(1.0, max(0.0, excess / 3))
        centre = clear * float(nearest @ middles) + (1 - clear) * min(1.0, max(-1.0, plain))
        return centre, sqrt(max(variance, 0.0))

    def rescaled(self, codings: Sequence[Coding], scales: Sequence[Scale]) -> tuple[Coding, ...]:
        """Return the codings with number columns as differences from the centre in units of the width."""
        known = {scale.name: scale for scale in scales}
        return tuple(
            _rescaled(each, known[each.columns[0]], self.reach * self._finer(each)) if is_number(each) else each
            for each in codings
        )

    def allowed(self, codings: Sequence[Coding], scales: Sequence[Scale]) -> bool:
        """Return whether these are scales of the number columns, in their order."""
        wanted = [(coding.features[0].name, 1 << coding.bits) for coding in codings if is_number(coding)]
        # any centre and width are safe: rows are shortened after. `scales` returns none outside these bounds
        return [scale.name for scale in scales] == [name for name, _ in wanted] and all(
            abs(scale.centre) <= unit and 1 <= scale.width <= 2 * unit * self._whole
            for scale, (_, unit) in zip(scales, wanted, strict=True)
        )


def scaling_of(
    codings: Sequence[Coding],
    people: int,
    *,
    mu_squared: Fraction,
    share: Fraction,
    excess: Fraction,
    target: str | None = None,
) -> Scaling | None:
    """Return the scaling of all number columns, None if there are none.

    Args:
        codings: the codings of all parties.
        people: how many there are.
        mu_squared: of both stages together.
        share: the part of it for the counts.
        excess: variance of the counts' noise over that of a trusted curator.
        target: the column to predict, if the study names one.
    """
    columns = sum(map(is_number, codings))
    if not columns:
        return None
    sigma = sqrt(float(2 * columns * excess / (share * mu_squared)))
    ratio = people * sqrt(float(mu_squared)) / columns
    mean_square = max(min(ratio / 120, sqrt(ratio / 20)), _SHORTEST)
    square = min(max(columns / 8, columns / max(ratio, 1e-9)), columns) / (1 + len(codings) - columns)
    spread = _rounded(sqrt(max(1.0, mean_square, square)))
    return Scaling(
        columns=columns,
        bins=int(min(max(people / (_NOISE * sigma), _BINS[0]), _BINS[1])),
        sigma=sigma,
        spread=float(spread),
        length=_rounded(mean_square / float(spread) ** 2),
        reach=_rounded(_REACH * max(1.0, sqrt(mean_square)) / float(spread)),
        target=target,
        finer=_rounded(max(1.0, sqrt(1 + len(codings)) / max(1.0, mean_square) ** 2) ** 0.5) if target else Fraction(1),
    )


def is_number(coding: Coding) -> bool:
    """Return whether a block is a column of numbers, perhaps with a level for missing values."""
    return len(coding.columns) == 1 and coding.features[0].values == "number"


def counts_of(codings: Sequence[Coding], coded: Mapping[str, Codes], bins: int) -> NDArray[np.int64]:
    """Return how many rows have each number column in each of equal bins; missing values are not counted. Private."""
    found = []
    for coding in filter(is_number, codings):
        unit, table = 1 << coding.bits, coding.tables[0]
        places = np.minimum((table[:, 0].astype(np.int64) + unit) * bins // (2 * unit), bins - 1)
        places[table[:, 1:].any(axis=1)] = bins
        found.append(np.bincount(places[coded[coding.columns[0]]], minlength=bins + 1)[:bins])
    return np.concatenate(found).astype(np.int64) if found else np.zeros(0, dtype=np.int64)


def _rescaled(coding: Coding, scale: Scale, reach: Fraction) -> Coding:
    unit, value = 1 << coding.bits, coding.features[0]
    table = coding.tables[0].copy()
    limit = int(reach * unit / _STEP)
    steps = np.rint((table[:, 0] - scale.centre) / scale.width * (unit / _STEP))
    steps[table[:, 1:].any(axis=1)] = 0
    table[:, 0] = _STEP * np.clip(steps, -limit, limit).astype(np.int32)
    moved = msgspec.structs.replace(
        value,
        middle=value.middle + value.half * scale.centre / unit,
        half=value.half * scale.width / unit,
        lower=max(-float(reach), (-unit - scale.centre) / scale.width),
        upper=min(float(reach), (unit - scale.centre) / scale.width),
    )
    return replace(coding, tables=(table,), features=(moved, *coding.features[1:]))


def _simplex(shares: Numbers) -> Numbers:
    """Return the nearest numbers that are not negative and add up to 1."""
    ordered = np.sort(shares)[::-1]
    above = (np.cumsum(ordered) - 1) / np.arange(1, len(shares) + 1)
    found: Numbers = np.maximum(shares - above[np.flatnonzero(ordered > above)[-1]], 0.0)
    return found


def _rounded(value: float) -> Fraction:
    return Fraction(max(1, round(value * _GRID)), _GRID)
