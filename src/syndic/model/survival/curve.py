"""Survival (Kaplan-Meier) and cumulative incidence (Aalen-Johansen), with sampling error and noise in their variance.

Both are functions of the hazards h = events / at risk. Their derivatives with respect to the hazards give the sampling
covariance (multinomial in every interval; for one cause it is Greenwood's) and the covariance that the noise adds.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy

from syndic.model.interval.wilson import LEVEL, WIDTH, wilson
from syndic.model.survival.risk import Floats, RiskSets

_DRAWS = 4000
_EDGE = 0.1


@final
@dataclass(frozen=True)
class Estimate:
    """A value with its interval; an end is None where the data do not reach it."""

    value: float | None
    lower: float | None
    upper: float | None


@final
@dataclass(frozen=True, kw_only=True)
class Curve:
    """A probability at the end of every interval, and the covariance of its error.

    `falls`: survival falls from 1, incidence rises from 0. `whole`: it steps at the times; otherwise it is known there
    and moves evenly between them. The raw values are almost unbiased and may go up and down with the noise; `values`
    is the nearest monotone curve.
    """

    times: Floats
    start: float
    raw: Floats
    at_risk: Floats
    sampling: Floats
    noise: Floats
    falls: bool
    whole: bool

    @cached_property
    def values(self) -> Floats:
        """The curve made monotone, between 0 and 1."""
        if not self.raw.size:
            return self.raw
        return np.clip(scipy.optimize.isotonic_regression(self.raw, increasing=not self.falls).x, 0.0, 1.0)

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the raw values, of sampling and noise."""
        return self.sampling + self.noise

    @cached_property
    def deviation(self) -> Floats:
        """The standard deviation of each raw value, of sampling and noise."""
        return np.sqrt(np.clip(np.diag(self.covariance), 0.0, None))

    def interval(self) -> tuple[Floats, Floats]:
        """Return the ends of an interval for every single time."""
        return self._ends(WIDTH)

    def band(self) -> tuple[Floats, Floats]:
        """Return a band that contains the whole curve with the given probability (equal precision).

        It covers the times from the first with a tenth of the largest deviation: before it almost nothing happened.
        """
        deviation = self.deviation
        held = deviation > _EDGE * deviation.max(initial=0.0)
        if not held.any():
            return self.interval()
        scaled = self.covariance[np.ix_(held, held)] / np.outer(deviation[held], deviation[held])
        values, vectors = np.linalg.eigh(scaled)
        draws = np.random.default_rng(0).standard_normal((_DRAWS, values.size))  # public, the same for every curve
        errors = draws @ (vectors * np.sqrt(np.clip(values, 0.0, None))).T
        return self._ends(float(np.quantile(np.abs(errors).max(axis=1), LEVEL)))

    def _ends(self, width: float) -> tuple[Floats, Floats]:
        """Return the ends so many deviations away, as Wilson's for a share of as many people as its variance tells."""
        value, sampled = self.values, np.diag(self.sampling)
        spread = value * (1 - value)
        people = np.where((sampled > 0) & (spread > 0), spread / np.where(sampled > 0, sampled, 1.0), self.at_risk)
        return wilson(value, people, np.diag(self.noise), width)

    def quantile(self, share: float = 0.5) -> Estimate:
        """Return the first time at which the share has had the event, from the curve and the ends of its interval."""
        wanted = 1 - share if self.falls else share
        lower, upper = self.interval()

        def first(curve: Floats) -> float | None:
            reached = curve <= wanted if self.falls else curve >= wanted
            return float(self.times[reached.argmax()]) if reached.any() else None

        early, late = (lower, upper) if self.falls else (upper, lower)
        return Estimate(first(self.values), first(early), first(late))

    def restricted_mean(self, until: float) -> Estimate:
        """Return the mean time without the event up to `until`: the area under survival, or the mean time lost."""
        ends = np.concatenate([[self.start], self.times])
        if not self.start < until <= ends[-1]:
            return Estimate(None, None, None)
        widths = np.diff(np.append(np.minimum(ends, until), until))
        if not self.whole:  # the mean of both ends of an interval; the last one may be cut short
            widths = (widths + np.concatenate([[0.0], widths[:-1]])) / 2
        base, weights = (widths[0] if self.falls else 0.0), widths[1:]
        area = float(base + weights @ self.values)
        reach = WIDTH * max(float(weights @ self.covariance @ weights), 0.0) ** 0.5
        return Estimate(area, area - reach, area + reach)


def survival(sets: RiskSets) -> Curve:
    """Return the probability that nothing happened, for one group."""
    return _curve(sets, cause=None)


def incidence(sets: RiskSets, cause: int) -> Curve:
    """Return the probability that a cause ended the time first, for one group, in the presence of the others."""
    return _curve(sets, cause=cause)


def _curve(sets: RiskSets, cause: int | None) -> Curve:
    if len(sets.at_risk) != 1:
        raise ValueError("a curve is of one group")
    sets = sets.within(sets.usable())
    at_risk, events = sets.at_risk[0], sets.events[0]
    causes, length = events.shape
    hazards = events / at_risk
    whole = hazards.sum(axis=0)
    alive = np.cumprod(1 - whole)
    before = np.concatenate([[1.0], alive[:-1]])
    earlier = np.tri(length)  # time x interval: intervals up to a time
    lost = 1 / (1 - whole)
    if cause is None:
        raw = alive
        each = -earlier * alive[:, None] * lost
        slopes = np.concatenate([each] * causes, axis=1)
    else:
        steps = before * hazards[cause]
        raw = np.cumsum(steps)
        later = -(raw[:, None] - raw) * earlier * lost
        slopes = np.concatenate([later + (earlier * before if one == cause else 0.0) for one in range(causes)], axis=1)
    sampling = _multinomial(slopes, hazards, at_risk)
    # hazards = events / at risk: derivatives with respect to at risk, then to the events of every cause
    down = -(hazards / at_risk).ravel() * slopes
    derivatives = np.concatenate(
        [down.reshape(length, causes, length).sum(axis=1), slopes / np.tile(at_risk, causes)], 1
    )
    noise = sets.variance * (derivatives @ sets.spread @ derivatives.T)
    return Curve(
        times=sets.times,
        start=sets.start,
        raw=raw,
        at_risk=at_risk,
        sampling=sampling,
        noise=noise,
        falls=cause is None,
        whole=sets.whole,
    )


def _multinomial(slopes: Floats, hazards: Floats, at_risk: Floats) -> Floats:
    """Return the sampling covariance of a function of the hazards with these derivatives."""
    causes, length = hazards.shape
    hazards = np.clip(hazards, 0.0, 1.0)
    parts = slopes.reshape(length, causes, length)
    scaled = parts * np.sqrt(hazards / at_risk)
    found = np.einsum("tcj,scj->ts", scaled, scaled)
    joint = (parts * hazards).sum(axis=1) / np.sqrt(at_risk)
    return np.asarray(found - joint @ joint.T)
