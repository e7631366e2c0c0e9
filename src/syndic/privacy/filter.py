"""A privacy filter: what was spent under a cap when each study, its kinds of noise included, follows from outcomes.

`Cost.epsilon` is the smallest of several bounds. It holds for amounts fixed in advance. Whoever chooses the next kind
of event by an outcome also chooses which bound counts, and then each bound may fail once. So delta is divided in
advance, by the cap and by the plan of the first study, which was chosen before anything was released:

- `first`: what the first study needs at the cap's epsilon, all its charges taken together. A plan beyond the cap has no
  part: such a study may end anywhere, so that its total is not fixed in advance;
- `certain`: the deltas of all other studies;
- for each level a part for slacks and one for each rule below. The levels are the cap's epsilon and, as a slack counts
  e^level times, 8, 12, ... below it.

A later charge fits if everything that was charged is covered by one rule up to one level:

| rule | covers | spent |
|---|---|---|
| added | pure and approximate events | the sum of epsilons; needs no delta |
| beside | all, if no more noise than in the first plan | the epsilon of that noise, fixed, plus all others |
| gaussian | Gaussian events | the exact profile of the sum of mu^2 (a filter: Smith and Thakurta 2022) |
| concentrated | all events | zCDP of the sum of rho (a filter: Feldman and Zrnic 2021) |
| renyi | all events | the sum of divergences at one order fixed in advance (the same paper) |

Proof. Each event with a delta is, but for that probability, one without (Kairouz, Oh and Viswanath 2015). These deltas
add up along every course of choices, to at most `first` and `certain`. Without them every course ends in one of
finitely many cases: only the first study charged, or a rule covers all up to a level. Stop where case j ends. What is
left is (epsilon, delta_j)-DP. In the first case the total is fixed in advance, so that every bound of `Cost.epsilon`
holds whatever the order and the end; likewise beside it, as the loss of other events is bounded for certain. In the
others it follows from the theorems above, as their bound is fixed in advance. A distance s from the laws of a theorem
adds (1 + e^level) s, which has its part. Divide a set of courses S by case into S_j. On S_j stopping changes nothing:
P(S_j) <= e^epsilon Q(S_j) + delta_j. All parts add up to delta, so P(S) <= e^epsilon Q(S) + delta.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import inf
from types import MappingProxyType
from typing import Final, Literal, Self, final

from syndic.privacy.concentrated import PICO, best_order, renyi_epsilon, rho_for, zcdp_epsilon
from syndic.privacy.cost import Cost
from syndic.privacy.gaussian import ATTO, gaussian_epsilon, left_after
from syndic.privacy.unit import Budget

Home = Literal["gaussian", "concentrated", "pure", "approximate"]

# hundredths of what the first study leaves of delta, by that study's kinds: `certain`, `beside`, slacks, `gaussian`,
# `concentrated`, and `renyi` at the orders that are best if pure events take a half or nine tenths of epsilon
_PARTS: Final[Mapping[Home, tuple[int, ...]]] = MappingProxyType(
    {
        "gaussian": (10, 15, 5, 50, 15, 5, 0),
        "concentrated": (10, 15, 5, 0, 60, 10, 0),
        "pure": (20, 0, 5, 0, 25, 30, 20),
        "approximate": (90, 0, 1, 0, 4, 5, 0),
    }
)
_NOISE: Final = (Fraction(1, 2), Fraction(1, 10))
# the first study's part of delta is the least of these that is enough
_FIRST: Final = (Fraction(0), *(Fraction(share, 1000) for share in (1, 10, 50, 200, 500, 1000)))
# beyond e^40 the least slack that is counted, 1e-18, takes more than any delta
_LEVELS: Final = tuple(Fraction(level) for level in range(8, 41, 4))


@final
@dataclass(frozen=True, kw_only=True)
class Filter:
    """The filter of one data set: its `cap`, and all that the `first` study may charge."""

    cap: Budget
    first: Cost

    def epsilon(self, cost: Cost, *, alone: bool) -> Fraction | float:
        """Return what was spent, at the cap's delta; the cap covers it if this is at most the cap's epsilon.

        `alone`: no study but the first has charged anything.
        """
        if alone and self.first.covers(cost):
            found = cost.epsilon(self.cap.delta)
            if self._share is not None or found > self.cap.epsilon:
                return found
        planned = 0 if self._share is None else self.first.delta_approximate
        others = Fraction(max(0, cost.delta_approximate - planned), ATTO)
        if others > self._parts[0]:
            return inf
        levels = self._levels if cost.slack else self._levels[:1]
        spent = ((self._spent(cost, level, share), level) for level, share in levels)
        found = min(found for found, level in spent if found <= level or level == self.cap.epsilon)
        noise = self._noise if cost.rho or cost.gaussian else Cost()
        if noise.rho < cost.rho or noise.gaussian < cost.gaussian or noise.slack < cost.slack:
            return found
        return min(found, noise.epsilon(self._parts[1]) + Fraction(cost.pure + cost.epsilon_approximate, PICO))

    def _spent(self, cost: Cost, level: Fraction, share: Fraction) -> Fraction | float:
        """Return what was spent by the rules with a share of their parts; `inf` if the slacks do not fit there."""
        slacks, *parts = (share * part for part in self._parts[2:])
        if left_after(slacks, Fraction(cost.slack, ATTO), level) < 0:
            return inf
        # an approximate event has, but for its delta, at most the rho of a pure one, which is at most its epsilon
        bounded = Fraction(cost.rho_of_pure + cost.epsilon_approximate, PICO)
        gaussian, concentrated = Fraction(cost.gaussian, PICO), Fraction(cost.rho, PICO)
        found: list[Fraction | float] = [inf]
        if parts[0] and not concentrated and not bounded:
            found.append(gaussian_epsilon(2 * gaussian, parts[0]))
        if parts[1]:
            found.append(zcdp_epsilon(gaussian + concentrated + bounded, parts[1]))
        for noise, part in zip(_NOISE, parts[2:], strict=True):
            if part:
                above = _order(noise * level, part)
                order = 1 + Fraction(above)
                pure = min(Fraction(cost.pure), order * cost.rho_of_pure) + cost.epsilon_approximate
                divergence = order * (cost.rho + cost.gaussian) + pure
                found.append(renyi_epsilon(divergence / PICO, above, part))
        return min(found)

    @property
    def _noise(self) -> Cost:
        return Cost(rho=self.first.rho, gaussian=self.first.gaussian, slack=self.first.slack)

    @cached_property
    def _share(self) -> Fraction | None:
        """The first study's share of delta; None if the cap does not cover its plan, which then counts for nothing."""
        return next((one for one in _FIRST if self.first.epsilon(one * self.cap.delta) <= self.cap.epsilon), None)

    @cached_property
    def _parts(self) -> tuple[Fraction, ...]:
        first, share = self.first, self._share or 0
        home: Home = "approximate" if first.delta_approximate else "pure"
        if first.rho or first.gaussian:
            home = "pure" if first.pure else "concentrated" if first.rho else "gaussian"
        return tuple((1 - share) * self.cap.delta * part / 100 for part in _PARTS[home])

    @cached_property
    def _levels(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The levels, the cap's epsilon first, and the share of each in the parts of the rules."""
        below = [level for level in _LEVELS if level < self.cap.epsilon]
        if not below:
            return ((self.cap.epsilon, Fraction(1)),)
        half = Fraction(1, 2)
        return ((self.cap.epsilon, half), *((level, half / len(below)) for level in below))


@lru_cache(maxsize=1024)
def _order(epsilon: Fraction, delta: Fraction) -> float:
    """Return the best order, less 1, if noise takes all of epsilon."""
    return best_order(max(rho_for(epsilon, delta), Fraction(1, PICO)), delta)


@final
@dataclass(frozen=True, kw_only=True)
class Charged:
    """All that was charged to a data set: the `cost`, what the `first` study may charge, and if it is `alone`."""

    cost: Cost
    first: Cost
    alone: bool = True

    @classmethod
    def by_one(cls, cost: Cost) -> Self:
        """Return a cost that was fixed before anything was released, as the charge of one study."""
        return cls(cost=cost, first=cost)

    def plus(self, cost: Cost) -> Self:
        """Return all this and another charge: of the first study if that is alone, else of any."""
        return type(self)(cost=self.cost + cost, first=self.first, alone=self.alone)

    def epsilon(self, cap: Budget) -> Fraction | float:
        """Return what was spent at the cap's delta, by the filter of the cap."""
        return _filter_of(cap, self.first).epsilon(self.cost, alone=self.alone)


@lru_cache(maxsize=256)
def _filter_of(cap: Budget, first: Cost) -> Filter:
    # its parts take a millisecond to work out
    return Filter(cap=cap, first=first)
