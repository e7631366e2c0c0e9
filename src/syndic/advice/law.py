"""What HOMM releases of a cell: mean, variance and mean size of its count, by the noise and the public rule."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from syndic.advice.scale import Numbers
from syndic.errors import InputError
from syndic.methods.histogram.homm import Homm, HommPlan, PublishedLaplace
from syndic.noise import DiscreteGaussian
from syndic.study import Study

_STEPS = 200  # numbers of people that are tried for a cell
_FINE = 500  # steps of the noise within its scale
_REACH = 40  # scales beyond which there is no noise


class InCells(NamedTuple):
    """Numbers of people that cells may have (cells x numbers), and their chances."""

    numbers: Numbers
    chances: Numbers


def people_in_cells(expected: Numbers) -> InCells:
    """Return the numbers of people in cells that expect so many: Poisson distributions, large ones in wider steps."""
    expected = expected[:, None]
    wide = 8 * np.sqrt(expected) + 10
    numbers = np.floor(np.maximum(expected - wide, 0)) + np.ceil(2 * wide / _STEPS) * np.arange(_STEPS)
    chances = np.exp(xlogy(numbers, expected) - expected - gammaln(numbers + 1))
    return InCells(numbers, chances / chances.sum(axis=1, keepdims=True))


def kept_of(plan: HommPlan, party: str, people: InCells) -> Numbers:
    """Return what a party releases of cells with so many people (4 x cells).

    Mean, variance and mean size of the count, and how much the mean grows with each person.
    """
    errors, chances = _noise(plan, party)
    # sums of the chance, of e and of e^2 over all noise e from each place on
    tails = np.stack([chances, chances * errors, chances * errors**2])[:, ::-1].cumsum(axis=1)[:, ::-1]
    tails = np.pad(tails, ((0, 0), (0, 1)))

    def above(least: int, counts: Numbers) -> tuple[Numbers, Numbers]:
        """Return mean and mean square of the noisy counts of at least `least`, 0 where they are less."""
        zero, one, two = tails[:, np.searchsorted(errors, least - counts)]
        return counts * zero + one, counts**2 * zero + 2 * counts * one + two

    numbers = people.numbers
    if plan.clamp:
        mean, square = above(plan.at_least, numbers)
        size, more = mean, above(plan.at_least, numbers + 1)[0]
    else:
        mean, square = numbers, numbers**2 + tails[2, 0]
        size, more = 2 * above(0, numbers)[0] - mean, numbers + 1
    mean, square, size, more = ((one * people.chances).sum(axis=1) for one in (mean, square, size, more))
    return np.stack([mean, square - mean**2, size, more - mean])


def _noise(plan: HommPlan, party: str) -> tuple[Numbers, Numbers]:
    """Return the noise on one count and its chances, in steps of more than 1 where it is wide."""
    noise = plan.noise[party]
    gaussian = isinstance(noise, DiscreteGaussian)
    if isinstance(noise, PublishedLaplace):
        scale = float(1 / noise.epsilon)
    else:
        scale = math.sqrt(noise.sigma_squared) if isinstance(noise, DiscreteGaussian) else float(noise.scale)
    step = max(1, int(scale / _FINE))
    reach = math.ceil((_REACH * scale + plan.at_least) / step) + 1
    errors = step * np.arange(-reach, reach + 1.0)
    chances = np.exp(-((errors / scale) ** 2) / 2 if gaussian else -np.abs(errors) / scale)
    return errors, chances / chances.sum()


def homm_of(study: Study) -> Homm:
    """Return the study's method, which must be HOMM."""
    if not isinstance(study.protocol, Homm):
        raise InputError(f"this prediction is for the method homm, not for {study.protocol.title}")
    return study.protocol
