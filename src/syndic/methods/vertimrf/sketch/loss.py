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
"""

from dataclasses import dataclass
from math import log1p
from typing import Final, final

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.compose import Losses
from syndic.methods.vertimrf.sketch.estimate import log_tails
from syndic.methods.vertimrf.sketch.plan import SketchPlan


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
