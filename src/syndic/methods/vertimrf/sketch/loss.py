"""The exact privacy loss of one repetition of sketches for one person.

The person has one rank, hidden by the key, and is in one value of each of `columns` columns: all these sketches get the
same rank. Without the person the sketches are independent, each the largest of K geometric ranks. With
q = 1 / (1 + gamma),
F(a) = 1 - q^a, p(a) = F(a)^K - F(a-1)^K, m the smallest of the sketches and s how many of them show it,

    Pr[with the person] / Pr[without] = F(m-1) + gamma q^m (F(m)^K / p(m))^s         between floor and cap,
                                        F(floor)                                     at m = floor,
                                        F(cap-1) + q^(cap-1) / (1 - F(cap-1)^K)^d    at m = cap,

since the person's rank is at most m, and if it is m, the s sketches only need to stay at or below it. With s = 1 this
is at most 1 + 1 / K, the published bound. With s >= 2 it grows without bound in m: d sketches with the same large rank
are very rare without the person, and certain if the person's rank is the largest everywhere. The step of the published
proof that fails is the case of ties (Zhao et al. 2024, Theorem 4).

Replacing a person moves the rank from the sketches of the old values to those of the new ones. Where all values change,
old and new sketches are independent: the loss is one of presence plus one of absence. Where a value stays, its sketch
shows the rank in both cases. Nothing proves which is worse, so both are computed. Under several keys, each with its own
pair of columns, some pairs may change in one column and others in both (`mixed_law`).

Other people in the same values only add elements whose ranks do not depend on the person, which is post-processing: the
worst case is a person alone in each value. Sketches of values that the person does not have reveal nothing.

*Many repetitions.* Losses are added up on a grid with proven errors on both sides.

The delta at epsilon of T independent repetitions is E[(1 - exp(epsilon) Q_1 ... Q_T)_+], where Q = exp(-loss).

Upper bound: the expression is convex in each Q, so a Q may be replaced by two neighbours on the grid with the same
mean, and losses may be raised. Losses above `REACH` count as infinite, which adds at most exp(-REACH) of their mass.

Lower bound: losses above REACH are lowered to it, those below -REACH dropped. Putting a loss on its two neighbours
moves it by a random amount within one step; by Hoeffding's inequality the sum of T such moves is within
step sqrt(T log(2 / MISS) / 2) of its mean, except with probability MISS. The sum of losses is lower than that on the
grid by no more than mean + this.

Floating point: each coefficient of a discrete Fourier transform of N points is off by at most 7 u log2(N) times the sum
of its input (Higham 2002, section 24.1; u = 2^-53), which the T-th power multiplies by T times the (T-1)-th power of
the coefficient. The error of the sum over all points is at most sqrt(N) times that of their Euclidean norm. Sums
outside the window wrap around; Chernoff's bound is added for them.
"""

from dataclasses import dataclass
from math import exp, log, log1p, log2, sqrt
from typing import Final, final

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.encode import SketchPlan
from syndic.methods.vertimrf.sketch.estimate import log_tails

Losses = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Probabilities, and the privacy loss of each."""
REACH: Final = 9.0
"""How far from epsilon losses are still tracked."""
MISS: Final = 1e-10
POINTS: Final = 2**21
_UNIT: Final = 2.0**-53
# of the window, below 0
_NEGATIVE: Final = 0.25


@final
@dataclass(frozen=True)
class Bracket:
    """A number proven to be from `lower` to `upper`."""

    lower: float
    upper: float


def delta_below(law: Losses, *, repetitions: int, epsilon: float, points: int = POINTS) -> float:
    """Return a lower bound on the delta at `epsilon` of independent repetitions of one privacy loss distribution."""
    (chances, losses), limit = law, epsilon + REACH
    kept = losses >= -limit
    grid = _grid(chances[kept], np.minimum(losses[kept], limit), epsilon, repetitions, points)
    moved = repetitions * grid.drift + grid.step * sqrt(repetitions * log(2 / MISS) / 2)
    found, rounding = grid.delta(epsilon + moved, repetitions)
    return max(0.0, found - grid.invented(repetitions) - rounding - MISS)


def delta_above(law: Losses, *, repetitions: int, epsilon: float, points: int = POINTS) -> float:
    """Return an upper bound on that delta."""
    (chances, losses), limit = law, epsilon + REACH
    infinite = float(chances[losses > limit].sum())
    finite = losses <= limit
    grid = _grid(chances[finite], np.maximum(losses[finite], -limit), epsilon, repetitions, points)
    lost = float(-np.expm1(repetitions * np.log1p(-infinite)))
    found, rounding = grid.delta(epsilon, repetitions)
    return min(1.0, found + grid.hidden(repetitions) + rounding + lost)


def _grid(
    chances: NDArray[np.float64], losses: NDArray[np.float64], epsilon: float, repetitions: int, points: int
) -> "_Grid":
    """Return the distribution on the finest grid of this many points that almost no sum leaves."""
    if epsilon < 0 or repetitions < 1 or points < 2:
        raise InputError(f"epsilon ({epsilon:g}) must not be negative and repetitions ({repetitions}) at least 1")
    width, widest = max(2 * epsilon, 2.0**-6), 4 * (epsilon + REACH)
    while width < widest:
        grid = _Grid(chances, losses, width / points, points)
        if grid.hidden(repetitions) + grid.invented(repetitions) < MISS:
            return grid
        width *= 2
    return _Grid(chances, losses, widest / points, points)


class _Grid:
    """A privacy loss distribution, each loss put on its two neighbours on a grid."""

    def __init__(self, chances: NDArray[np.float64], losses: NDArray[np.float64], step: float, points: int) -> None:
        self.step, self.points = step, points
        self.chances = chances
        self.places = np.floor(losses / step).astype(np.int64)
        # the share on the upper neighbour that keeps the mean of exp(-loss)
        self.upward = np.expm1(self.places * step - losses) / np.expm1(-step)
        self.drift = float(np.sum(chances * ((self.places + self.upward) * step - losses)))

    def delta(self, epsilon: float, repetitions: int) -> tuple[float, float]:
        """Return the delta of the distribution on the grid, and a bound on the floating-point error."""
        masses = np.zeros(self.points)
        np.add.at(masses, self.places % self.points, self.chances * (1 - self.upward))
        np.add.at(masses, (self.places + 1) % self.points, self.chances * self.upward)
        spectrum = np.fft.rfft(masses)
        sums = np.fft.irfft(_power(spectrum, repetitions), n=self.points)
        transform = 7 * _UNIT * log2(self.points) + 4 * _UNIT
        # half of the spectrum is stored; the other half has the same absolute values
        steep = sqrt(2 * float(np.sum(np.abs(spectrum) ** (2 * repetitions - 2))))
        back = sqrt(self.points) * float(np.linalg.norm(sums))
        # the last term is for the probabilities and losses themselves, each accurate to about 1e-13
        rounding = 2 * transform * (repetitions * steep + back) + 1e3 * _UNIT * repetitions
        first = int(np.floor(epsilon / self.step)) + 1
        values = np.arange(first, max(first, int(self.points * (1 - _NEGATIVE)))) * self.step
        return float(np.dot(sums[first : first + len(values)], -np.expm1(epsilon - values))), rounding

    def hidden(self, repetitions: int) -> float:
        """Bound the probability that a large sum wraps around and looks small."""
        return self._chernoff(repetitions, self.points * self.step * (1 - _NEGATIVE), 1)

    def invented(self, repetitions: int) -> float:
        """Bound the probability that a sum wraps around and looks large: from below, or by a whole turn."""
        width = self.points * self.step
        return self._chernoff(repetitions, width * _NEGATIVE, -1) + self._chernoff(repetitions, width, 1)

    def _chernoff(self, repetitions: int, reach: float, sign: int) -> float:
        """Bound the probability that the sum of this many losses on the grid, times the sign, is `reach` or more."""
        found = 1.0
        for tilt in sign * 2.0 ** np.arange(-3, 13):
            exponents = tilt * self.step * self.places
            if not exponents.size or float(exponents.max()) > 600:
                continue  # beyond a double
            grown = np.exp(exponents)
            moment = float(np.sum(self.chances * grown * (1 + self.upward * np.expm1(tilt * self.step))))
            found = min(found, exp(min(0.0, repetitions * log(moment) - abs(tilt) * reach)))
        return found


def _power(values: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Return every value to the power, by squaring."""
    result: NDArray[np.complex128] | None = None
    while True:
        if exponent & 1:
            result = values.copy() if result is None else result * values
        exponent >>= 1
        if not exponent:
            assert result is not None  # noqa: S101 (the exponent is at least 1)
            return result
        values = values * values


@final
@dataclass(frozen=True, eq=False)
class LossLaw:
    """Outcomes of one repetition: log probability without the person, and log of the ratio with / without."""

    log_without: NDArray[np.float64]
    log_ratio: NDArray[np.float64]

    def added(self) -> Losses:
        """Return probabilities and privacy losses if the person is present, against the person being absent."""
        return np.exp(self.log_without + self.log_ratio), self.log_ratio

    def removed(self) -> Losses:
        """Return probabilities and privacy losses if the person is absent, against the person being present."""
        return np.exp(self.log_without), -self.log_ratio


# ranks that a sketch may show, up to which all outcomes of three sketches are listed
_MOST_RANKS: Final = 80


def replaced_laws(plan: SketchPlan, columns: int) -> tuple[Losses, ...]:
    """Return the privacy losses of a person whose values change, for each number of columns in which they do.

    All outcomes are listed for up to two columns, and ranks below `_MOST_RANKS`. Otherwise nothing is returned.
    """
    ranks = plan.top - max(plan.floor, 1) + 1
    if columns > 2 or (columns == 2 and ranks > _MOST_RANKS):
        return ()
    law = loss_law(plan, columns)
    (present, gained), (absent, lost) = law.added(), law.removed()
    all_change = np.outer(present, absent).ravel(), np.add.outer(gained, lost).ravel()
    return (all_change,) if columns == 1 else (all_change, _one_of_two(plan, law.log_ratio))


def mixed_law(both: Losses, one: Losses) -> Losses:
    """Return losses that dominate those of two columns changed in both and in one: they bound any mixture.

    They are those of both, but with probability eta everything is revealed: the least eta with which delta is not below
    that of one at any epsilon. Both deltas are piecewise linear in exp(epsilon), so their kinks decide; old and new
    values may be exchanged, so epsilon from 0 on suffices.
    """
    places = np.unique(np.concatenate([[0.0], *(losses[losses > 0] for _, losses in (both, one))]))
    enough, needed = _deltas(both, places), _deltas(one, places)
    eta = max(0.0, float(((needed - enough) / (1 - enough)).max()))
    return np.append(both[0] * (1 - eta), eta), np.append(both[1], np.inf)


def _deltas(law: Losses, places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the delta at ascending epsilons, all positive losses among them, as sums without differences."""
    chances, losses = (each[law[1] > 0] for each in law)
    against = np.bincount(np.searchsorted(places, losses), chances * np.exp(-losses), minlength=places.size)
    # the probability of a larger loss, if the other table is the true one
    larger = np.cumsum(against[:0:-1])[::-1]
    steps = np.exp(places[:-1]) * np.expm1(np.diff(places)) * larger
    return np.append(np.cumsum(steps[::-1])[::-1], 0.0)


def _one_of_two(plan: SketchPlan, log_ratio: NDArray[np.float64]) -> Losses:
    """Return the losses if the value changes in one of two columns: sketches of the old, the new and the kept value."""
    middle = plan.top - plan.floor - 1
    alone, tied = log_ratio[1 : 1 + middle], log_ratio[1 + middle : 1 + 2 * middle]
    lowest = np.concatenate([log_ratio[:1], alone, log_ratio[-1:]])
    places = np.arange(middle + 2)
    ratio = lowest[np.minimum.outer(places, places)]
    np.fill_diagonal(ratio, np.concatenate([log_ratio[:1], tied, log_ratio[-1:]]))
    below, upto = log_tails(plan)
    # without a floor no sketch with a phantom shows 0
    shown = slice(1 if plan.floor == 0 else 0, None)
    below, upto, ratio = below[shown], upto[shown], ratio[shown, shown]
    single = np.exp(plan.phantoms * upto) * -np.expm1(plan.phantoms * (below - upto))
    linked = np.outer(single, single) * np.exp(ratio)
    chances = linked[:, None, :] * single[None, :, None]
    return chances.ravel(), (ratio[:, None, :] - ratio[None, :, :]).ravel()


def loss_law(plan: SketchPlan, columns: int) -> LossLaw:
    """Return the losses of `columns` sketches of one key, for a person alone in each value."""
    elements = plan.phantoms
    if elements < 1 or columns < 1:
        raise InputError(f"sketches of {columns} columns with {plan.phantoms} phantoms hide nobody: use more phantoms")
    ranks = np.arange(plan.floor + 1, plan.top, dtype=np.float64)
    ties = np.arange(1, columns + 1, dtype=np.float64)[:, None]
    # a cap at the end of 64 bits costs nothing, and the formulas below then need no other case
    bottom, top = _floor(plan, columns, elements), _cap(plan, columns, elements)
    log_q = -log1p(float(plan.gamma))
    below, upto = _log_below(ranks - 1, log_q), _log_below(ranks, log_q)
    # log of p(m) / F(m)^K, and of the probability to be above m
    log_share = np.log(-np.expm1(elements * (below - upto)))
    log_above = np.log(-np.expm1(elements * upto))
    log_factorial = scipy.special.gammaln
    choose = log_factorial(columns + 1) - log_factorial(ties + 1) - log_factorial(columns - ties + 1)
    without = choose + ties * (elements * upto + log_share) + (columns - ties) * log_above
    excess = np.log(float(plan.gamma)) + ranks * log_q - ties * log_share
    ratio = np.where(
        # ratios near 1 are computed from their small parts, so that losses of 1e-6 keep all digits
        excess < 0,
        np.log1p(np.exp(np.minimum(excess, 0)) - np.exp((ranks - 1) * log_q)),
        np.logaddexp(excess, below),
    )
    return LossLaw(
        np.concatenate([[bottom[0]], without.ravel(), [top[0]]]),
        np.concatenate([[bottom[1]], ratio.ravel(), [top[1]]]),
    )


def _log_below(ranks: NDArray[np.float64], log_q: float) -> NDArray[np.float64]:
    """Return log F, the log probability that one element is not above; F(0) = 0."""
    with np.errstate(divide="ignore"):
        return np.log1p(-np.exp(ranks * log_q))


def _floor(plan: SketchPlan, columns: int, elements: int) -> tuple[float, float]:
    """Return log probability and log ratio of the outcome that some sketch shows the floor."""
    log_q = -log1p(float(plan.gamma))
    upto = float(_log_below(np.array([float(plan.floor)]), log_q)[0])
    if plan.floor == 0:
        return -1e300, 0.0  # no sketch with an element shows 0
    log_above = np.log(-np.expm1(elements * upto))
    with np.errstate(divide="ignore"):
        return max(float(np.log(-np.expm1(columns * log_above))), -1e300), upto


def _cap(plan: SketchPlan, columns: int, elements: int) -> tuple[float, float]:
    """Return log probability and log ratio of the outcome that every sketch shows the cap."""
    log_q = -log1p(float(plan.gamma))
    below = float(_log_below(np.array([plan.top - 1.0]), log_q)[0])
    log_all = columns * float(np.log(-np.expm1(elements * below)))
    return log_all, float(np.logaddexp(below, (plan.top - 1) * log_q - log_all))
