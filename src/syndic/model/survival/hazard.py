"""Hazards of groups compared: ratios by Cox's model of proportional hazards, and the log-rank test that they are equal.

In Cox's model groups have the same covariates. Ties are treated as Efron does. He averages over the events of an
interval, the risk set losing them one after the other; here the average is taken at two points with the same mean and
variance, which also works for noisy numbers.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy

from syndic.model.survival.risk import Floats, RiskSets

_MOST_STEPS = 50
_LONGEST_STEP = 1.0
_ENOUGH = 1e-9


@final
@dataclass(frozen=True, kw_only=True)
class Hazards:
    """Logarithms of hazard ratios and the covariance of their error: of sampling, and in all with the noise."""

    coefficients: Floats
    sampling: Floats
    covariance: Floats

    @property
    def deviation(self) -> Floats:
        """The standard deviation of each coefficient."""
        return np.sqrt(np.diag(self.covariance))


def proportional_hazards(sets: RiskSets, design: Floats) -> Hazards | None:
    """Fit the model to groups with the covariates in the rows of `design`; None if the noise leaves nothing to fit.

    Events of any cause count. Risk sets are used while the people of all groups together stand out from the noise.
    """
    sets = sets.within(sets.merged([list(range(len(design)))]).usable())
    at_risk, events = sets.at_risk, sets.events.sum(axis=1)
    weights = np.zeros(design.shape[1])
    for _ in range(_MOST_STEPS):
        score, information, _, _ = _score(weights, at_risk, events, design)
        if not np.isfinite(information).all() or np.linalg.eigvalsh(information).min() <= 0:
            return None
        step = np.linalg.solve(information, score)
        weights = weights + step * min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < _ENOUGH:
            break
    else:
        return None
    _, information, by_risk, by_events = _score(weights, at_risk, events, design)
    sampling: Floats = np.linalg.inv(information).astype(np.float64)
    noise = np.zeros_like(sampling)
    for risk, happened in zip(by_risk, by_events, strict=True):
        derivatives = sampling @ np.concatenate([risk.T, *[happened.T] * sets.events.shape[1]], axis=1)
        noise += sets.variance * (derivatives @ sets.spread @ derivatives.T)
    return Hazards(coefficients=weights, sampling=sampling, covariance=sampling + noise)


def _score(weights: Floats, at_risk: Floats, events: Floats, design: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the score, the information, and the score's derivatives (group, interval, covariate) by both sums."""
    ratio = np.exp(np.clip(design @ weights, -30, 30))[:, None]
    total = events.sum(axis=0)
    score, information = np.zeros(weights.size), np.zeros((weights.size, weights.size))
    by_risk = np.zeros((*at_risk.shape, weights.size))
    by_events = np.zeros_like(by_risk)
    score += (events.sum(axis=1)) @ design
    many = np.maximum(total, 1.0)
    middle, apart = (1 - 1 / many) / 2, np.sqrt((1 - 1 / many**2) / 12)
    for sign in (-1.0, 1.0):
        gone = middle + sign * apart  # share of the interval's events that the risk set has lost
        present = (at_risk - gone * events) * ratio
        whole = present.sum(axis=0)
        mean = (present.T @ design) / whole[:, None]
        score -= 0.5 * (total @ mean)
        second = np.einsum("gj,ga,gb->jab", present, design, design) / whole[:, None, None]
        information += 0.5 * np.einsum("j,jab->ab", total, second - mean[:, :, None] * mean[:, None, :])
        apart_from_mean = design[:, None, :] - mean
        slope = (0.5 * total / whole * ratio)[..., None] * apart_from_mean
        by_risk -= slope
        by_events += gone[:, None] * slope - 0.5 * mean
    by_events += design[:, None, :]
    return score, information, by_risk, by_events


@final
@dataclass(frozen=True, kw_only=True)
class LogRank:
    """Observed minus expected events of each group, the test's statistic and its p-value under equal hazards.

    `intervals`: how many intervals are compared, those with enough people at risk in all groups together.
    """

    excess: tuple[float, ...]
    statistic: float
    degrees: int
    p_value: float
    intervals: int


def log_rank(sets: RiskSets) -> LogRank | None:
    """Compare the events of any cause in all groups; None if no interval has enough people at risk.

    The variance is the hypergeometric one of sampling plus that of the noise, by the derivatives of the excess.
    """
    groups = len(sets.at_risk)
    if groups < 2:
        raise ValueError("the log-rank test compares at least two groups")
    sets = sets.within(sets.merged([list(range(groups))]).usable())
    if not sets.times.size:
        return None
    at_risk, events = sets.at_risk, sets.events.sum(axis=1)
    all_risk, all_events = at_risk.sum(axis=0), events.sum(axis=0)
    shares = at_risk / all_risk
    excess = (events - shares * all_events).sum(axis=1)
    ties = np.clip((all_risk - all_events) / np.maximum(all_risk - 1, 1.0), 0.0, 1.0) * all_events
    sampling = np.diag((shares * ties).sum(axis=1)) - (shares * ties) @ shares.T
    noise = np.zeros_like(sampling)
    for group in range(groups):
        own = (np.arange(groups) == group).astype(float)[:, None]
        by_risk = -all_events / all_risk * (own - shares)
        by_events = own - shares
        derivatives = np.concatenate([by_risk, *[by_events] * sets.events.shape[1]], axis=1)
        noise += sets.variance * (derivatives @ sets.spread @ derivatives.T)
    # the excesses add up to zero: all but the last say everything
    kept = (sampling + noise)[:-1, :-1]
    statistic = float(excess[:-1] @ np.linalg.solve(kept, excess[:-1])) if np.linalg.eigvalsh(kept).min() > 0 else 0.0
    return LogRank(
        excess=tuple(excess.tolist()),
        statistic=statistic,
        degrees=groups - 1,
        p_value=float(scipy.special.chdtrc(groups - 1, statistic)),
        intervals=sets.times.size,
    )
