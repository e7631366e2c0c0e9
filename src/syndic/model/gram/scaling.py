"""Rescale numbers by a noisy histogram, so that noise is small against their spread and not only their bounds.

*Why*. Noise on a sum of products follows from the longest possible row. Declared bounds are often wide: a column with a
standard deviation of a tenth of its bounds has a hundredth of their squares. A first stage, with a small share of the
budget, counts every number column in equal bins. From the noisy counts follow a centre and a width for each column. The
second stage codes rows as differences from the centre in units of the width, and shortens long rows to a public length:
its sensitivity does not depend on the counts.

*Sensitivity of the counts*. Replacing a person moves one count of each column down and one up: at most 2 in squared l2
for each column, and 2 entries. For the target each person counts `weight` times, which makes it 2 weight^2. With
weight^2 a half of the columns, or all where people are few, a third to a half of the counts' budget is for the target.

*Centres and widths*. Each column is first taken to be a beta distribution, of any mean and, on a logarithmic scale, any
width within its bounds. The posterior from its noisy counts is known on a grid: centre and width are those of a new
value, so a mean that is uncertain makes the width larger. What the counts have beyond that and beyond noise is kept
in proportion. The second stage measures means again; where the noise hides them, a fit keeps the centre (`error`).

*Few people*. With x = people * mu / columns below 8 little but means can be learned. Then 8 / x times the share of the
budget is for the counts, up to a half, and the target's unit below is finer.

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
matters and a shorter label does: f^2 is divided by the square of the mean square, down to 1. Where people are few the
label's mean matters most: f^2 is multiplied by 8 / x, up to B + 1, and s at most doubles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import ceil, log, sqrt
from typing import Final, final

import msgspec
import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.data.coding import Coding
from syndic.data.column import Codes
from syndic.document import Document
from syndic.model.gram.rows import Clip

Numbers = NDArray[np.float64]

_BINS: Final = (8, 64)
# people in a bin, on average, over the noise of its count
_NOISE: Final = 2.0
# people * mu / columns below which little but means can be learned, and the largest share of the budget for counts
_FEW: Final = 8.0
_MOST: Final = Fraction(1, 2)
# no column is a beta distribution: the squared error of a centre counts twice, and is never below a quarter of a width
_DOUBT: Final = 2.0
_SURE: Final = 0.25
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
    """A column's centre, width and the centre's error (0: unknown), in units of 2^-bits of the declared half-width."""

    name: str
    centre: int
    width: int
    error: int = 0


@final
@dataclass(frozen=True, kw_only=True)
class Scaling:
    """How number columns are counted and rescaled. Public.

    `share` is the counts' part of the budget and `sigma` the noise of a count. A width is `spread` standard deviations;
    z is at most `reach`, and the squares of the numbers in a row add up to at most `length` for each column. The unit
    of the `target` is `finer` times as fine: it counts as so many columns, squared. Its people count `weight` times.
    """

    columns: int
    bins: int
    sigma: float
    spread: float
    length: Fraction
    reach: Fraction
    target: str | None = None
    finer: Fraction = Fraction(1)
    share: Fraction = Fraction(1, 5)
    weight: int = 1

    @property
    def moved(self) -> int:
        """The squared l2 sensitivity of the counts."""
        return 2 * (self.columns - 1 + self.weight**2)

    def counts(self, codings: Sequence[Coding], coded: Mapping[str, Codes]) -> NDArray[np.int64]:
        """Return how many rows have each number column in each bin, times its weight. Private."""
        weights = np.array([self._weight(each) for each in codings if is_number(each)], dtype=np.int64)
        return counts_of(codings, coded, self.bins) * weights.repeat(self.bins)

    def _weight(self, coding: Coding) -> int:
        """Return how many times a row is counted for a column."""
        return self.weight if coding.columns == (self.target,) else 1

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
        """Return centre and width of each number column from its noisy counts. Nothing is charged."""
        found = []
        for coding, some in zip(filter(is_number, codings), counts.reshape(-1, self.bins), strict=True):
            weight = self._weight(coding)
            mean, deviation, error = self._moments(some / weight, self.sigma / weight, people)
            unit = 1 << coding.bits
            centre = round(mean * unit)
            # a row at the farther bounds is not shortened then: wider never helps
            widest = int((unit + abs(centre)) * self._whole)
            width = max(1, round(min(self.spread * deviation * unit, widest) / float(self._finer(coding))))
            off = max(1, round(error * unit))
            found.append(Scale(name=coding.features[0].name, centre=centre, width=width, error=off))
        return tuple(found)

    @property
    def _whole(self) -> float:
        """The largest value of a row that is not shortened if all its numbers have it, inverted."""
        return 1 / sqrt(self.length)

    def _moments(self, counts: Numbers, sigma: float, people: int) -> tuple[float, float, float]:
        """Return mean, standard deviation and the mean's error of a column in [-1, 1]."""
        middles = (2 * np.arange(self.bins) + 1) / self.bins - 1
        # people are a sample, too
        shares, noise = counts / people, sqrt(sigma**2 + people / self.bins) / people
        means, variances, shapes = _shapes(self.bins)
        distances = (shapes**2).sum(axis=1) - 2 * shapes @ shares
        chances = np.exp((distances.min() - distances) / (2 * noise**2))
        chances /= chances.sum()
        likely = chances @ shapes
        # what neither the shapes nor noise explain: at most an even share
        excess = min(max(float(((shares - likely) ** 2).mean()) - noise**2, 0.0), 1 / self.bins**2)
        kept = excess / (excess + noise**2)
        rest = _simplex(likely + kept * (shares - likely)) - likely
        mean = float(chances @ means + rest @ middles)
        square = max(float(chances @ (variances + means**2) + rest @ middles**2) - mean**2, 0.0)
        error = float(chances @ (means - chances @ means) ** 2) + (kept * noise) ** 2 * float(middles @ middles)
        return mean, sqrt(square), sqrt(min(max(_DOUBT * error, square * _SURE**2), 1.0))

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
            abs(scale.centre) <= unit and 1 <= scale.width <= 2 * unit * self._whole and 0 <= scale.error <= 2 * unit
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
        share: the part of it for the counts, where people are many.
        excess: variance of the counts' noise over that of a trusted curator.
        target: the column to predict, if the study names one.
    """
    columns = sum(map(is_number, codings))
    if not columns:
        return None
    ratio = people * sqrt(float(mu_squared)) / columns
    mean_square = max(min(ratio / 120, sqrt(ratio / 20)), _SHORTEST)
    square = min(max(columns / 8, columns / max(ratio, 1e-9)), columns) / (1 + len(codings) - columns)
    spread = _rounded(sqrt(max(1.0, mean_square, square)))
    scarce = _rounded(max(1.0, _FEW / max(ratio, 1e-9)))
    share = min(share * scarce, _MOST)
    weight = ceil(sqrt(columns * min(1.0, float(scarce) / 2))) if target else 1
    sigma = sqrt(float(2 * (columns - 1 + weight**2) * excess / (share * mu_squared)))
    finer = sqrt(1 + len(codings)) / max(1.0, mean_square) ** 2 * float(scarce)
    return Scaling(
        columns=columns,
        bins=int(min(max(people / (_NOISE * sigma), _BINS[0]), _BINS[1])),
        sigma=sigma,
        spread=float(spread),
        length=_rounded(mean_square / float(spread) ** 2),
        reach=_rounded(_REACH * max(1.0, sqrt(mean_square)) / float(spread)),
        target=target,
        finer=_rounded(sqrt(min(max(1.0, finer), 1 + len(codings)))) if target else Fraction(1),
        share=share,
        weight=weight,
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
        known=scale.error / scale.width,
    )
    return replace(coding, tables=(table,), features=(moved, *coding.features[1:]))


@cache
def _shapes(bins: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return means, variances and shares of bins of beta distributions in [-1, 1]."""
    widths = np.exp(np.linspace(log(0.5 / bins), log(0.98), 20))
    means, widths = (each.ravel() for each in np.meshgrid(np.linspace(-1, 1, 129)[1:-1], widths, indexing="ij"))
    first, second = ((widths**-2 - 1) * (1 + sign * means) / 2 for sign in (1, -1))
    below = scipy.special.betainc(first[:, None], second[:, None], np.linspace(0, 1, bins + 1))
    return means, (1 - means**2) * widths**2, np.diff(below, axis=1)


def _simplex(shares: Numbers) -> Numbers:
    """Return the nearest numbers that are not negative and add up to 1."""
    ordered = np.sort(shares)[::-1]
    above = (np.cumsum(ordered) - 1) / np.arange(1, len(shares) + 1)
    found: Numbers = np.maximum(shares - above[np.flatnonzero(ordered > above)[-1]], 0.0)
    return found


def _rounded(value: float) -> Fraction:
    return Fraction(max(1, round(value * _GRID)), _GRID)
