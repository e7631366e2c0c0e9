"""Describe the distribution of one cell's noise, and of what the public rule keeps of it.

Only for predictions about artificial people: draws are in floating point and protect nobody.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from syndic.advice.scale import Numbers
from syndic.errors import InputError
from syndic.methods.histogram.homm import Homm, HommPlan, PublishedLaplace
from syndic.noise import DiscreteLaplace
from syndic.study import Study

_REACH = 12
_WIDE = 4.0


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Law:
    """Integer noise by inverting its distribution function, so that the same draws serve every epsilon.

    `printed` is a rounded Laplace draw; `gaussian` is true for discrete Gaussian, false for discrete Laplace noise.
    """

    scale: float
    gaussian: bool
    printed: bool
    clamp: bool
    at_least: int

    def noise(self, standard: Numbers) -> Numbers:
        """Return integer noise from standard draws: Laplace draws, or normal ones if `gaussian`."""
        if self.gaussian and self.scale > _WIDE:
            # rounding adds 1/12 to the variance of a normal draw, and -1/120 to its fourth cumulant: 3e-5 of it
            return np.rint(math.sqrt(self.scale**2 - 1 / 12) * standard)
        if self.gaussian:
            from scipy.special import ndtr  # noqa: PLC0415 - heavy to load, and Laplace does without

            support, chances = self._gaussian
            return support[np.searchsorted(chances.cumsum()[:-1], ndtr(standard))]
        if self.printed:
            return np.rint(self.scale * standard)
        # |e| is the smallest k with P(|e| > k) = 2 a^(k+1) / (1 + a) at most exp(-|x|), a = exp(-1 / scale)
        shift = math.log((1 + math.exp(-1 / self.scale)) / 2)
        size = np.maximum(np.ceil(self.scale * (np.abs(standard) - shift) - 1), 0)
        return np.copysign(size, standard)

    def standard(self, shape: int | tuple[int, ...], generator: np.random.Generator) -> Numbers:
        """Draw the standard draws that `noise` takes."""
        return generator.standard_normal(shape) if self.gaussian else generator.laplace(size=shape)

    def kept(self, noisy: Numbers) -> Numbers:
        """Return noisy counts, 0 where the rule drops them."""
        return np.where(noisy >= self.at_least, noisy, 0.0) if self.clamp else noisy

    @cached_property
    def moments(self) -> tuple[float, float, float, float]:
        """For an empty cell: chance of being kept; mean, variance and mean size of what is kept (0 if dropped)."""
        if not self.clamp:
            spread = self._spread
            return 1.0, 0.0, spread[1], spread[0]
        chance, mean, square = self._tail
        return chance, mean, square - mean**2, mean

    def survivors(self, count: int, generator: np.random.Generator) -> Numbers:
        """Draw the counts of empty cells, given that they are kept."""
        if self.gaussian:
            support, chances = self._gaussian
            tail = support >= self.at_least
            return np.asarray(generator.choice(support[tail], count, p=chances[tail] / chances[tail].sum()))
        return np.asarray(
            generator.geometric(-math.expm1(-1 / self.scale), count) - 1.0 + self.at_least, dtype=np.float64
        )

    @cached_property
    def _gaussian(self) -> tuple[Numbers, Numbers]:
        reach = max(math.ceil(_REACH * self.scale), self.at_least) + 2
        support = np.arange(-reach, reach + 1, dtype=np.float64)
        weights = np.exp(-((support / self.scale) ** 2) / 2)
        return support, weights / weights.sum()

    @property
    def _spread(self) -> tuple[float, float]:
        """Mean size and variance of the noise."""
        if self.gaussian:
            support, chances = self._gaussian
            return float(np.abs(support) @ chances), float(support**2 @ chances)
        _, mean, square = self._above(1)
        return 2 * mean, 2 * square

    @property
    def _tail(self) -> tuple[float, float, float]:
        if not self.gaussian:
            return self._above(self.at_least)
        support, chances = self._gaussian
        tail = np.where(support >= self.at_least, chances, 0.0)
        return float(tail.sum()), float(support @ tail), float(support**2 @ tail)

    def _above(self, least: int) -> tuple[float, float, float]:
        """Return P(e >= least) and the mean and mean square over that event: Laplace noise is memoryless there."""
        ratio = math.exp(-1 / self.scale)
        chance = (
            math.exp(-(least - 0.5) / self.scale) / 2 if self.printed else math.exp(-least / self.scale) / (1 + ratio)
        )
        step = ratio / -math.expm1(-1 / self.scale)
        mean = least + step
        return chance, chance * mean, chance * (mean**2 + step * (1 + step))


def homm_of(study: Study) -> Homm:
    """Return the study's method, which must be HOMM."""
    if not isinstance(study.protocol, Homm):
        raise InputError(f"this prediction is for the method homm, not for {study.protocol.title}")
    return study.protocol


def law_of(study: Study, party: str) -> Law:
    """Return the distribution of the noise in one party's cells, calibrated as the method itself does it."""
    protocol = homm_of(study)
    noise = study.plan_as(HommPlan).noise[party]
    if isinstance(noise, PublishedLaplace):
        scale = float(1 / noise.epsilon)
    else:
        scale = float(noise.scale) if isinstance(noise, DiscreteLaplace) else math.sqrt(noise.sigma_squared)
    return Law(
        scale=scale,
        gaussian=protocol.noise == "gaussian",
        printed=protocol.as_published,
        clamp=protocol.clamp,
        at_least=protocol.at_least,
    )
