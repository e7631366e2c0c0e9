"""An interval for a question, by a one-step correction of a released model. Post-processing: it costs no budget.

Let phi be the influence function of the question under the model with cell shares p and N rows, T the indicators of all
noisy counts y, and V the variances of their noise. Weights a make Ta close to phi: the question in terms of what was
measured. The model's value is corrected by how far the counts are from it, so that the interval does not rest on the
model's structure:

    a = (k N T'PT + V)^-1 k N T'P phi      value = g(p) + a'(y - N T'p) / N
    variance = p'phi^2 / N  (sampling)  +  a'Va / N^2  (noise)  +  m^2 p'(phi - Ta)^2  (what no table says)

With k without limit a'y is the best linear unbiased estimate. The measured part of the question is
1 - p'(phi - Ta)^2 / p'phi^2. On what is left the model may be wrong, and more people do not help: its shares are taken
to be off by a part m. Below `LEAST_MEASURED` there is no interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import exp, floor, sqrt
from statistics import NormalDist
from typing import Final, final

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import InputError
from syndic.model.interval.measured import Design, Measured, NoisyTable, NoValueError
from syndic.model.interval.question import MATHS, Estimate, Question, read_question

Floats = NDArray[np.float64]

LEAST_MEASURED: Final = 0.95
"""The least measured part of a question that gets an interval."""

MOST_CELLS: Final = 1 << 22
"""The most cells of all columns of a question together."""

# How far the truth may be from the model, in sampling variances: so much that its structure counts for nothing.
_FREE: Final = 1e4
# By which part the model's shares may be off where no table says anything, all of them in the question's direction.
_OFF: Final = 0.05
# Part of the model's rows that weights are computed with as if they were in all possible cells alike: noise may have
# left a cell empty that has people.
_MIXED: Final = 0.01
# How many standard errors what is divided by, or a quotient on the scale of its logarithm, must be from 0. Closer, the
# question is not nearly linear in the counts, and a normal interval does not cover.
_CLEAR: Final = 4.0
# Points of a curve between two edges.
_FINER: Final = 32


@final
class Interval(Document):
    """A question, its value and an interval; or the reason why there is none.

    `error` is the standard error, of the logarithm for quotients and odds clearly above 0. `measured` is the part of
    the question that noisy tables measured. `wider`: how many times as wide as an interval from the rows themselves.
    Quantiles have none of these.
    """

    question: str
    confidence: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    error: float | None = None
    measured: float | None = None
    wider: float | None = None
    reason: str | None = None

    def __str__(self) -> str:
        if self.reason is not None:
            return f"{self.question}: no interval: {self.reason}"
        wider = f"; {self.wider:.2f} times as wide as from the rows" if self.wider is not None else ""
        model = (
            "" if self.measured is None or self.measured > 0.995 else f"; {1 - self.measured:.1%} rests on the model"
        )
        return (
            f"{self.question} = {self.value:.4g}, {100 * self.confidence:g} % interval {self.low:.4g} to "
            f"{self.high:.4g}{wider}{model}"
        )


@final
@dataclass(frozen=True)
class _Corrected:
    """A corrected value, its standard error, the part of it that is sampling, and the measured part of the question."""

    value: float
    error: float
    sampling: float
    measured: float


def interval_of(measured: Measured, text: str, confidence: float = 0.95) -> Interval:
    """Return the interval of a question.

    Raises:
        InputError: if it is no question about these columns; it names the question.
    """
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence ({confidence}) must be at least 0.5 and below 1")
    try:
        return _answered(measured, text, confidence)
    except InputError as error:
        raise InputError(f"{' '.join(text.split())[:80]}: {error}") from None


def _answered(measured: Measured, text: str, confidence: float) -> Interval:
    question = read_question(text, measured.schema)
    cells = measured.schema.domain.project(question.columns).size
    if not question.columns:
        raise InputError("it names no column")
    made = partial(Interval, question=question.text, confidence=confidence)
    if cells > MOST_CELLS:
        return made(reason=f"its columns have {cells:,} combinations, and at most {MOST_CELLS:,} are computed")
    try:
        step = _OneStep(measured, question, confidence)
    except InputError as error:
        return made(reason=str(error))
    try:
        return step.quantile() if question.is_quantile else step.interval()
    except NoValueError as error:
        return made(reason=str(error))


class _OneStep:
    def __init__(self, measured: Measured, question: Question, confidence: float) -> None:
        self.measured, self.question = measured, question
        self.made = partial(Interval, question=question.text, confidence=confidence)
        self.times = NormalDist().inv_cdf((1 + confidence) / 2)
        shares = np.maximum(measured.shares(question.columns), 0.0)
        self.shares = shares / shares.sum()
        possible = self.shares > 0
        self.mixed = (1 - _MIXED) * self.shares + _MIXED * possible / possible.sum()
        tables = measured.onto(question.columns)
        if not tables:
            raise InputError(f"no noisy table has {' or '.join(question.columns)}")
        self.design = Design(question.columns, self.mixed, tables)
        self.expected = self.design.gather(self.shares)

    def interval(self) -> Interval:
        """Return the interval of a smooth question; of a quotient on the scale of its logarithm."""
        found = self.question.estimate(self.shares)
        one = self.corrected(found)
        if one.measured < LEAST_MEASURED:
            return self.refused(found, one.measured)
        self.check_divisors(found)
        logarithm = self.question.is_ratio and found.value > 0 and one.value > _CLEAR * one.error
        if logarithm:
            one = self.corrected(found.through(*MATHS["log"]))
        reach, (least, most) = self.times * one.error, found.within
        # counts that say what no population has: the interval is the one around the nearest possible value
        middle = one.value if logarithm else min(max(one.value, least), most)
        ends = middle, middle - reach, middle + reach
        value, low, high = map(exp, ends) if logarithm else (min(max(end, least), most) for end in ends)
        wider = None if one.sampling == 0 else one.error / one.sampling
        measured = round(one.measured, 4)
        return self.made(value=value, low=low, high=high, error=one.error, measured=measured, wider=wider)

    def quantile(self) -> Interval:
        """Return the interval of a quantile: where the intervals of the shares below edges of bins contain it."""
        chance, edges, below, whole = self.question.below(self.shares)
        inner = [self.corrected(one) for one in below[1:-1]]
        best = max(range(len(inner)), key=lambda place: inner[place].measured, default=None)
        if best is None:
            raise InputError(f"{self.question.text}: the column has one bin")
        if inner[best].measured < LEAST_MEASURED:
            return self.refused(below[1 + best], inner[best].measured)
        self.check_divisors(below[1 + best])
        known = [(0.0, 0.0, 0.0), *self._sides(inner), (1.0, 1.0, 1.0)]
        middle, upper, lower = (np.array(side) for side in zip(*known, strict=True))
        # nothing is known within a bin, so the interval ends at edges; a whole number is below the edge
        low = float(edges[np.flatnonzero(upper < chance)[-1]])
        high = float(edges[np.flatnonzero(lower >= chance)[0]]) - whole
        value = min(max(crossing(chance, edges, middle, whole=whole), low), high)
        return self.made(value=value, low=low, high=high)

    def check_divisors(self, found: Estimate) -> None:
        """Refuse a question that divides by something that sampling and noise hide, such as a group of few rows."""
        for divisor in found.divisors:
            one = self.corrected(divisor)
            if abs(one.value) < _CLEAR * one.error:
                raise NoValueError(
                    "a group or combination that it compares is too small for the noise: ask about more rows, or use "
                    "a larger budget"
                )

    def _sides(self, below: Sequence[_Corrected]) -> list[tuple[float, float, float]]:
        """Return the share below every edge, and its two ends; one that was not measured has its neighbours' ends."""
        upper, lower, rising = 1.0, 0.0, []
        for one in below:
            if one.measured >= LEAST_MEASURED:
                lower = max(lower, one.value - self.times * one.error)
            rising.append(lower)
        falling = []
        for one in reversed(below):
            if one.measured >= LEAST_MEASURED:
                upper = min(upper, one.value + self.times * one.error)
            falling.append(upper)
        return list(zip([one.value for one in below], reversed(falling), rising, strict=True))

    def corrected(self, found: Estimate) -> _Corrected:
        """Return an estimate corrected by how far the noisy counts are from the model."""
        rows, design = self.measured.rows, self.design
        influence = np.broadcast_to(found.influence, self.shares.shape)
        variance = float((self.shares * influence**2).sum())
        aim = design.gather(self.mixed * influence)
        weights = scipy.linalg.cho_solve(self._factor, _FREE * rows * aim / self._deviations) / self._deviations
        missed = float((self.shares * (influence - design.spread(weights)) ** 2).sum())
        noise = float(weights**2 @ design.variances) / rows**2
        sampling = variance * self.measured.repeated / rows
        return _Corrected(
            value=found.value + float(weights @ (design.values - rows * self.expected)) / rows,
            error=sqrt(sampling + noise + _OFF**2 * missed),
            sampling=sqrt(sampling),
            measured=1 - missed / variance if variance > 0 else 1.0,
        )

    @property
    def _deviations(self) -> Floats:
        return np.asarray(np.sqrt(self.design.variances))

    @cached_property
    def _factor(self) -> tuple[Floats, bool]:
        scale = self._deviations
        matrix = _FREE * self.measured.rows * self.design.products() / np.outer(scale, scale)
        matrix[np.diag_indices_from(matrix)] += 1.0
        factor: tuple[Floats, bool] = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        return factor

    def refused(self, found: Estimate, part: float) -> Interval:
        """Return that there is no interval, and what to do."""
        names = ", ".join(f'"{name}"' for name in self.question.columns)
        merged = self._merged(found)
        advice = (
            f"values of {', '.join(merged)} were counted in groups: declare fewer bins or values"
            if merged
            else f"no noisy table has all of it; a study with keep = [[{names}]] measures it"
        )
        return self.made(
            measured=round(max(0.0, part), 4),
            reason=f"{max(0.0, part):.0%} of the question was measured, and {LEAST_MEASURED:.0%} is needed: {advice}",
        )

    def _merged(self, found: Estimate) -> list[str]:
        """Return the columns whose groups of levels hide the question even from a table of all its columns."""
        names, tables = self.question.columns, [one for one in self.measured.tables if len(one.names) > 1]
        groups = {name: table.groups[table.names.index(name)] for table in tables for name in table.names}
        if not groups.keys() >= set(names):
            return []
        sizes = tuple(int(groups[name].max()) + 1 for name in names)
        whole = NoisyTable(names, tuple(groups[name] for name in names), np.zeros(sizes), 1.0)
        design, cells = Design(names, self.shares, [whole]), self.shares * found.influence
        expected = design.gather(self.shares)
        held = design.gather(cells) ** 2 / np.where(expected > 0, expected, 1.0)
        if held.sum() >= LEAST_MEASURED * float((cells * found.influence).sum()):
            return []
        return [name for name, size in zip(names, self.shares.shape, strict=True) if len(set(groups[name])) < size]


def crossing(chance: float, edges: Floats, below: Floats, *, whole: bool) -> float:
    """Return where the share below reaches `chance`, between edges on a curve; a whole number if values are whole."""
    rising = np.maximum.accumulate(np.clip(below, 0.0, 1.0))
    if whole:
        return float(min(floor(np.interp(chance, rising, edges)), edges[-1] - 1))
    # a curve without corners: the density within a bin is not flat
    places = np.interp(np.arange((len(edges) - 1) * _FINER + 1) / _FINER, np.arange(len(edges)), edges)
    curve = np.maximum.accumulate(scipy.interpolate.PchipInterpolator(edges, rising)(places))
    return float(np.interp(chance, curve, places))
