"""What encodings are compared with: other decoders of sketches, and a frequency oracle that has a whole budget."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import log1p
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.encode import SketchPlan
from syndic.methods.vertimrf.sketch.estimate import cell_table
from syndic.noise.response import RandomisedResponse
from syndic.privacy import Budget, PureEvent, pure_for

Decoder = Literal["likeliest", "harmonic", "printed"]
# repetitions beyond which the debias factor no longer changes in the fourth digit
_MANY = 10_000


def decoded_cells(
    columns: Sequence[NDArray[np.uint16]], plan: SketchPlan, people: float, decoder: Decoder
) -> NDArray[np.float64]:
    """Return the cells by a decoder; `printed` is the published formula, which clips at 0 and is wrong by a factor."""
    if decoder == "likeliest":
        return cell_table(columns, plan, people)
    found = harmonic if decoder == "harmonic" else printed
    cells = cell_table(columns, plan, people, lambda ranks, plan: found(ranks, plan.gamma))
    return np.asarray(np.maximum(cells, 0.0) if decoder == "printed" else cells)


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
    """Return (1 + gamma)^(harmonic mean of the ranks), as published (Zhao et al. 2024, Algorithm 4, line 7).

    It is too large by a factor of about 1.65, 1.8 and 2.2 for gamma 0.1, 0.3 and 1.
    """
    mean = 1 / np.mean(1 / np.maximum(ranks, 1).astype(np.float64), axis=0)
    return np.asarray((1 + float(gamma)) ** mean)


def oracle(sizes: Sequence[int], budget: Budget) -> tuple[RandomisedResponse, ...]:
    """Return the response of each column such that all of them together stay within the budget, under replace."""
    if not sizes:
        raise InputError("an oracle needs at least one column")
    epsilon = pure_for(budget.epsilon, budget.delta, len(sizes))
    return tuple(RandomisedResponse(size=size, epsilon=epsilon) for size in sizes)


def oracle_events(responses: Sequence[RandomisedResponse]) -> tuple[PureEvent, ...]:
    """Return what one person's row costs, one event a column; zCDP adds epsilon^2 / 2 of each."""
    return tuple(response.event for response in responses)
