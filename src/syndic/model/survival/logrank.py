"""The log-rank test of equal hazards in several groups, from noisy risk sets."""

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy

from syndic.model.survival.risk import Floats, RiskSets


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
    statistic = float(excess[:-1] @ np.linalg.solve(kept, excess[:-1])) if _positive(kept) else 0.0
    p_value = float(scipy.special.chdtrc(groups - 1, statistic))
    return LogRank(
        excess=tuple(excess.tolist()),
        statistic=statistic,
        degrees=groups - 1,
        p_value=p_value,
        intervals=sets.times.size,
    )


def _positive(matrix: Floats) -> bool:
    return bool(np.linalg.eigvalsh(matrix).min() > 0)
