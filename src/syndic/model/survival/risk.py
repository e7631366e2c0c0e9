"""People at risk and events in every interval of time, as sums over a table of counts.

Everything that follows is a function of these sums. They are linear in the counts, so the noise on the counts becomes
noise of a known covariance on the sums, and no sum is biased.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_DEVIATIONS = 4.0
"""A risk set is used while its size is at least so many standard deviations of its noise."""


@final
@dataclass(frozen=True, kw_only=True)
class RiskSets:
    """Sums over the people of each group, interval by interval.

    `times`: the end of every interval; the first begins at `start`. `at_risk`: groups x intervals. `events`: groups x
    causes x intervals. `spread`: covariance, for counts with noise of variance 1, of one group's sums: at risk, then
    the events of each cause. `variance`: of the noise on a count. `whole`: each interval is one point in time, its
    end. Groups are sums over different counts, so their noise is independent.
    """

    times: Floats
    start: float
    at_risk: Floats
    events: Floats
    spread: Floats
    variance: float
    whole: bool

    def only(self, groups: list[int]) -> "RiskSets":
        """Return the sums of some groups, each by itself."""
        return self.merged([[group] for group in groups])

    def clear(self) -> list[bool]:
        """Return for each group whether it has people at all, as far as the noise shows."""
        return [bool(group.any()) for group in self._held()]

    def _held(self) -> NDArray[np.bool_]:
        """Return which risk sets stand out from the noise."""
        deviation = np.sqrt(self.variance * np.diag(self.spread)[: self.times.size])
        return np.asarray(self.at_risk >= np.maximum(LEAST_DEVIATIONS * deviation, 1.0))

    def merged(self, groups: list[list[int]]) -> "RiskSets":
        """Return the sums of unions of as many groups each."""
        if len({len(each) for each in groups}) != 1:
            raise ValueError("unions must have the same number of groups")
        return replace(
            self,
            at_risk=np.stack([self.at_risk[each].sum(axis=0) for each in groups]),
            events=np.stack([self.events[each].sum(axis=0) for each in groups]),
            variance=self.variance * len(groups[0]),
        )

    def usable(self) -> slice:
        """Return the intervals, without a gap, whose risk sets stand out from the noise in every group.

        They begin where enough people have entered: what follows is given that nothing happened before.
        """
        held = self._held() & (self.at_risk > self.events.sum(axis=1))
        good = np.append(held.all(axis=0), [False])
        first = int(good.argmax())
        return slice(first, first + int((~good[first:]).argmax()))

    def within(self, span: slice) -> "RiskSets":
        """Return the sums of some consecutive intervals."""
        length = self.times.size
        every = np.concatenate([np.arange(length)[span] + part * length for part in range(1 + self.events.shape[1])])
        return replace(
            self,
            times=self.times[span],
            start=float(self.times[span.start - 1]) if span.start else self.start,
            at_risk=self.at_risk[:, span],
            events=self.events[..., span],
            spread=self.spread[np.ix_(every, every)],
        )


def risk_sets(
    counts: Floats, times: Floats, variance: float, *, whole: bool, entered: bool = False, start: float = 0.0
) -> RiskSets:
    """Return the sums over counts by group, entry, interval of the end, and kind of end.

    `counts`: groups x entries x intervals x kinds, the first kind being censored. Without `entered` there is one entry,
    before the first interval; with it, there is one for each interval. `whole`: whether an interval is a single point
    in time, where censored people are at risk until its end and people who enter are not. In longer intervals those
    who are censored or enter are at risk for half of it.
    """
    groups, entries, length, kinds = counts.shape
    if entries != (length if entered else 1):
        raise ValueError(f"entries ({entries}) must be one, or as many as intervals ({length})")
    now = np.arange(length)
    later, here, half = now[:, None] > now, now[:, None] == now, 1.0 if whole else 0.5
    until_end = np.stack([later + here * (half if kind == 0 else 1.0) for kind in range(kinds)], axis=1)
    from_entry, possible = np.ones((1, length)), np.ones((1, length), dtype=bool)
    if entered:
        from_entry = later.T + here * (0.0 if whole else 0.5)
        possible = later.T if whole else later.T | here
    # weight of a count in "at risk" of every interval: entries x ends x kinds x intervals
    present = from_entry[:, None, None, :] * until_end[None] * possible[:, :, None, None]
    happened = np.zeros((kinds - 1, entries, length, kinds, length))
    for cause in range(kinds - 1):
        happened[cause, :, now, 1 + cause, now] = possible.T
    weights = np.concatenate([present[None], happened]).transpose(0, 4, 1, 2, 3).reshape(kinds * length, -1)
    sums = counts.reshape(groups, -1).astype(float) @ weights.T
    return RiskSets(
        times=np.asarray(times, dtype=float),
        start=start,
        at_risk=sums[:, :length],
        events=sums[:, length:].reshape(groups, kinds - 1, length),
        spread=weights @ weights.T,
        variance=variance,
        whole=whole,
    )
