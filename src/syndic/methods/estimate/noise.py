"""The noise of estimates: sound laws for one party or for all together, and the printed one."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.methods.estimate.layout import FINE, Layout
from syndic.model.families.family import Family
from syndic.noise import DiscreteGaussian, DiscreteLaplace, GaussianShare, LaplaceShare
from syndic.privacy import Budget, PureEvent, rho_for
from syndic.privacy.concentrated import PICO
from syndic.random import Randomness, generator

Noise = Literal["laplace", "gaussian"]
Law = DiscreteLaplace | DiscreteGaussian
Share = LaplaceShare | GaussianShare
_GRID = 257


@final
class PrintedLaplace(Document):
    """The paper's noise on fixed-point sums: a floating-point Laplace draw of this scale, rounded. Protects nobody.

    `sensitivity`: how far a row moves the sums in l1, which the paper takes for the Euclidean diameter.
    """

    scale: float
    sensitivity: float

    @property
    def event(self) -> PureEvent:
        """What holds in real arithmetic."""
        holds = Fraction(math.ceil(Fraction(self.sensitivity) / Fraction(self.scale) * PICO), PICO)
        return PureEvent(epsilon=holds, what="continuous Laplace, as printed")

    @property
    def variance(self) -> float:
        """Variance of one draw, in squared steps."""
        return 2 * self.scale**2

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with noise, rounded to whole steps."""
        noise = generator(randomness).laplace(0.0, self.scale, values.shape)
        return np.rint(values + noise).astype(np.int64)


def law_for(noise: Noise, budget: Budget, parties: int, l1: int, l2_squared: int) -> Law:
    """Return the noise of one party's sums; a person at several parties pays a part at each of them."""
    if noise == "laplace":
        return DiscreteLaplace(sensitivity=l1, epsilon=part(budget.epsilon, parties))
    return DiscreteGaussian(sensitivity_squared=Fraction(l2_squared), rho=part(_rho_of(budget), parties))


def share_for(noise: Noise, budgets: tuple[Budget, ...], layout: Layout, *, apart: int, who: dict[str, int]) -> Share:
    """Return the share of one noise for the sum over all parties, made for the strictest budget.

    A person at `apart` parties moves the sum that many times as far, and each party is charged that part of the
    budget: for rho, variance (r s)^2 / (2 rho) = r s^2 / (2 rho / r). For epsilon, scale r d / epsilon.
    """
    if noise == "laplace":
        epsilon = part(min(budget.epsilon for budget in budgets), apart)
        return LaplaceShare(sensitivity=layout.l1, epsilon=epsilon, dimension=layout.dimension, **who)
    rho = part(min(_rho_of(budget) for budget in budgets), apart)
    square = Fraction(apart * layout.l2_squared)
    return GaussianShare(sensitivity_squared=square, rho=rho, dimension=layout.dimension, **who)


def printed_statistics(layout: Layout, *, people: int, blocks: int, epsilon: Fraction) -> PrintedLaplace:
    """Return CSSA's printed noise on the sum over all rows: Euclidean diameter / (k epsilon) on the mean."""
    scale = people * math.sqrt(layout.l2_squared) / (blocks * float(epsilon))
    return PrintedLaplace(scale=scale, sensitivity=float(layout.l1))


def printed_blocks_law(layout: Layout, *, people: int, blocks: int, epsilon: Fraction) -> PrintedLaplace:
    """Return CSaA's printed noise on the sum of block estimates, and what a corrected estimate really moves by.

    A corrected estimate leaves the set by up to sup |b1| / t on either side, t being the rows of the smallest block.
    """
    smallest = max(1, people // blocks)
    beyond = 2 * _largest_bias(layout) / (layout.block_unit * smallest)
    scale = FINE * math.sqrt(len(beyond)) / float(epsilon)
    return PrintedLaplace(scale=scale, sensitivity=float((FINE + beyond).sum()))


def _largest_bias(layout: Layout) -> NDArray[np.float64]:
    """Return the largest |b1| on a fine grid over the set, for each parameter."""
    family: Family = layout.model.family
    size = len(layout.model.least)
    shares = np.linspace(0, 1, _GRID if size == 1 else 17 if size == 2 else 2)
    corners = np.stack(np.meshgrid(*([shares] * min(size, 2))), axis=-1).reshape(-1, min(size, 2))
    if size > 2:  # shares of categories are estimated without bias
        return np.zeros(size)
    theta = layout.model.least + corners * (layout.model.most - layout.model.least)
    return np.asarray(np.abs(family.first_bias(theta)).max(axis=0))


@lru_cache(maxsize=64)
def _rho_of(budget: Budget) -> Fraction:
    return rho_for(budget.epsilon, budget.delta)


def part(amount: Fraction, parts: int) -> Fraction:
    """Return the part, cut to whole units of the ledger, so that the parts never add up to more."""
    return Fraction(math.floor(amount * PICO / parts), PICO)
