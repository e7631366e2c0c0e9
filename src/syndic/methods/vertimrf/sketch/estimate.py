"""How many elements there are, from the largest ranks of many repetitions.

An element is a person or a phantom: whoever wants people subtracts the phantoms that took part. Ranks come with
repetitions along the first axis, and an estimate for every place of the other axes. All of this is after the
release: it costs nothing.
"""

from fractions import Fraction
from functools import lru_cache
from math import log1p

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.plan import SketchPlan

_LARGEST = 2.0**62
# repetitions beyond which the debias factor no longer changes in the fourth digit
_MANY = 10_000


def harmonic(ranks: NDArray[np.integer], gamma: Fraction) -> NDArray[np.float64]:
    """Return the harmonic mean of (1 + gamma)^rank, debiased (Flajolet et al. 2007). It knows of no floor and no cap.

    Good where neither is met often: a floor raises it. `likeliest` accounts for both.
    """
    base = 1 + float(gamma)
    return np.asarray(debias(len(ranks), gamma) / np.mean(base ** -ranks.astype(np.float64), axis=0))


@lru_cache(maxsize=256)
def debias(repetitions: int, gamma: Fraction) -> float:
    """Return the factor that makes the harmonic estimate unbiased; 0.7213 for gamma 1 and many repetitions."""
    count, base = min(repetitions, _MANY), 1 + float(gamma)
    if count < 2:
        raise InputError("the harmonic estimate needs at least two repetitions")

    def integrand(scaled: float) -> float:
        # log((u + base) / (u + 1)) / log(base) to the power count, u = scaled / count
        share = log1p((base - 1) / (scaled / count + 1)) / log1p(base - 1)
        return float(share**count)

    return 1 / float(scipy.integrate.quad(integrand, 0, np.inf, limit=400, epsabs=0, epsrel=1e-9)[0])


def printed(ranks: NDArray[np.integer], gamma: Fraction) -> NDArray[np.float64]:
    """Return (1 + gamma)^(harmonic mean of the ranks), as printed (Zhao et al. 2024, Algorithm 4, line 7).

    It is too large by a factor of about 1.65, 1.8 and 2.2 for gamma 0.1, 0.3 and 1.
    """
    mean = 1 / np.mean(1 / np.maximum(ranks, 1).astype(np.float64), axis=0)
    return np.asarray((1 + float(gamma)) ** mean)


def likeliest(ranks: NDArray[np.integer], plan: SketchPlan) -> NDArray[np.float64]:
    """Return the number of elements under which the ranks are likeliest.

    A rank at the floor says "at most", one at the cap "at least". 0 where every rank is at the floor. Where every rank
    is at the cap, any large number is as likely: the one is returned at which this has a chance of a half.
    """
    shape = ranks.shape[1:]
    flat = ranks.reshape(len(ranks), -1).astype(np.int64) - plan.floor
    if flat.size and (int(flat.min()) < 0 or int(flat.max()) > plan.top - plan.floor):
        raise InputError(f"ranks must be from the plan's floor ({plan.floor}) to its largest rank ({plan.top})")
    levels = plan.top - plan.floor + 1
    places = flat + levels * np.arange(flat.shape[1])
    counts = np.bincount(places.ravel(), minlength=levels * flat.shape[1]).reshape(-1, levels)
    used = np.flatnonzero(counts.any(axis=0))
    below, upto = (part[used] for part in log_tails(plan))
    low, high = np.zeros(len(counts)), np.full(len(counts), np.log(_LARGEST))
    # the score falls as the number grows, so halving finds its root; 48 halvings give 1e-13 in the logarithm
    for _ in range(48):
        middle = (low + high) / 2
        rising = _score(np.exp(middle)[:, None], counts[:, used], below, upto) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    found = np.exp((low + high) / 2)
    found[counts[:, 0] == len(ranks)] = 0.0
    if plan.top > 1:
        found[counts[:, -1] == len(ranks)] = np.log(-np.expm1(np.log(0.5) / len(ranks))) / log_tails(plan)[0][-1]
    return np.asarray(found.reshape(shape), dtype=np.float64)


def log_tails(plan: SketchPlan) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log Pr[one rank < a] and log Pr[one rank <= a] for each rank a that a sketch may show."""
    levels = np.arange(plan.floor, plan.top + 1, dtype=np.float64)
    base = 1 + float(plan.gamma)
    with np.errstate(divide="ignore"):
        below, upto = np.log1p(-(base ** -np.maximum(levels - 1, 0))), np.log1p(-(base**-levels))
    below[0], upto[-1] = -np.inf, 0.0
    return below, upto


def relative_sd(plan: SketchPlan, elements: float) -> float:
    """Return the sd of `likeliest` for so many elements, relative to their number, by Fisher's information.

    About 1.04, 1.006 and 1.0008 over the square root of the repetitions for gamma 1, 0.3 and 0.1 without a cap.
    """
    below, upto = log_tails(plan)
    chances = np.exp(elements * upto) - np.exp(elements * below)
    # derivative of each chance by the logarithm of the number
    with np.errstate(invalid="ignore"):
        slopes = elements * (
            np.where(np.isinf(upto), 0.0, upto * np.exp(elements * upto))
            - np.where(np.isinf(below), 0.0, below * np.exp(elements * below))
        )
    seen = chances > 1e-300
    information = float(np.sum(slopes[seen] ** 2 / chances[seen]))
    return float("inf") if information == 0 else float((plan.repetitions * information) ** -0.5)


def _score(
    number: NDArray[np.float64], counts: NDArray[np.int64], below: NDArray[np.float64], upto: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the derivative of the log likelihood, sum of log(exp(number upto) - exp(number below)).

    With one factor taken out it is upto + gap / (exp(number gap) - 1), gap = upto - below.
    """
    with np.errstate(invalid="ignore"):  # a rank of 0: -inf less -inf
        gap = upto - below
    finite = np.isfinite(gap)
    terms = np.zeros((len(number), len(gap)))
    scaled = number * gap[finite]
    # beyond 700 the term is smaller than any double
    terms[:, finite] = np.where(scaled < 700, gap[finite] / np.expm1(np.minimum(scaled, 700)), 0.0)
    # a rank of 0 (no floor, nobody) has upto = -inf: it is only seen where the number is 0
    steady = np.where(np.isfinite(upto), upto, -1e300)
    return np.asarray(np.sum(counts * (terms + steady), axis=1))


def cell_error(plan: SketchPlan, *, people: int, sketches: int) -> float:
    """Return the expected root mean square error of a cell, a small part of the people.

    `sketches` is how many sketches a union of complements has, the sum over columns of (size - 1).
    """
    elements = people + sketches * plan.phantoms
    return elements * relative_sd(plan, elements)
