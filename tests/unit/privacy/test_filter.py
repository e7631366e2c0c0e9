"""The filter of a cap, attacked by search: whoever chooses kinds and amounts by outcomes stays within delta.

The searches compute the exact hockey-stick divergence of the best choice at every outcome, on a grid. By the rule
before this filter, the smallest bound of `Cost.epsilon` over all charges, they found 1.28 to 2.67 times delta.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import erfc, exp, sqrt

import numpy as np
import pytest

from syndic.privacy.concentrated import PICO, rho_for
from syndic.privacy.cost import Cost
from syndic.privacy.event import ApproximateEvent, ConcentratedEvent, Event, GaussianEvent, PureEvent
from syndic.privacy.filter import Charged
from syndic.privacy.gaussian import mu_squared_for
from syndic.privacy.unit import Budget

DELTA = Fraction(1, 10**5)
Losses = np.ndarray[tuple[int], np.dtype[np.float64]]
Make = Callable[[Fraction], list[Event]]
Covers = Callable[[Cost, Cost, bool], bool]

_ERFC = np.vectorize(erfc)


def gaussian(amount: Fraction) -> list[Event]:
    return [GaussianEvent(mu_squared=amount)]


def concentrated(amount: Fraction) -> list[Event]:
    return [ConcentratedEvent(rho=amount / 2)]


def pure(amount: Fraction) -> list[Event]:
    return [PureEvent(epsilon=amount)]


def failing(share: int) -> Make:
    """Return events that show everything with a probability of so many hundredths of delta."""
    return lambda amount: [ApproximateEvent(epsilon=amount, delta=DELTA * share / 100)]


def profile(event: Event, epsilon: Losses) -> Losses:
    """Return the hockey-stick divergence of the worst release with this event, at each epsilon."""
    if isinstance(event, GaussianEvent | ConcentratedEvent):
        mu = sqrt(event.mu_squared if isinstance(event, GaussianEvent) else 2 * event.rho)
        near, far = (_ERFC((epsilon / mu + side * mu / 2) / sqrt(2)) / 2 for side in (-1, 1))
        return np.asarray(near - np.exp(epsilon) * far)
    likely, lost = 1 / (1 + exp(-event.epsilon)), float(getattr(event, "delta", 0))
    shown = [np.maximum(0, 1 - np.exp(epsilon - sign * float(event.epsilon))) for sign in (1, -1)]
    return np.asarray(lost + (1 - lost) * (likely * shown[0] + (1 - likely) * shown[1]))


@dataclass(frozen=True)
class Search:
    """Steps of noise; after each, one other charge may follow instead, as large as the rule admits.

    The first study plans the first `planned` steps, or is the pure event `before` them.
    """

    cap: Budget
    covers: Covers
    noise: Make
    step: Fraction
    steps: int
    planned: int
    ends: Sequence[Make]
    before: Sequence[PureEvent] = ()

    @property
    def plan(self) -> Cost:
        return Cost.of(self.before or self.noise(self.step) * self.planned)

    def spent(self, done: int) -> Cost:
        return Cost.of([*self.before, *self.noise(self.step) * done])

    def largest(self, make: Make, done: int) -> Event | None:
        """Return the largest event of a kind that the rule admits after so many steps."""
        low, high = Fraction(0), 8 * self.cap.epsilon
        for _ in range(26):
            middle = Fraction(round((low + high) / 2 * PICO), PICO)
            fits = self.covers(self.spent(done) + Cost.of(make(middle)), self.plan, False)
            low, high = (middle, high) if fits else (low, middle)
        return make(low)[0] if low else None

    def best(self) -> float:
        """Return the divergence of the best choices, at the cap's epsilon."""
        epsilon, mu = float(self.cap.epsilon), sqrt(self.step)
        losses: Losses = np.arange(-800, 801) / 100.0
        likely = np.exp(-(((np.subtract.outer(losses, losses) + mu**2 / 2) / mu) ** 2) / 2)
        likely *= 0.01 / (mu * sqrt(2 * np.pi))
        value = np.zeros_like(losses)
        for done in range(self.steps, -1, -1):
            options = [np.maximum(0, 1 - np.exp(epsilon - losses))]
            alone = not self.before and done < self.planned
            if done < self.steps and self.covers(self.spent(done + 1), self.plan, alone):
                options.append(likely @ value)
            found = [self.largest(make, done) for make in self.ends]
            options += [profile(event, epsilon - losses) for event in found if event is not None]
            value = np.max(options, axis=0)
        for event in self.before:
            up = 1 / (1 + exp(-event.epsilon))
            ends = np.interp([event.epsilon, -event.epsilon], losses, value)
            return float(up * ends[0] + (1 - up) * ends[1])
        return float(np.interp(0.0, losses, value))


def by_filter(cap: Budget) -> Covers:
    return lambda cost, first, alone: Charged(cost=cost, first=first, alone=alone).epsilon(cap) <= cap.epsilon


def by_smallest_bound(cap: Budget) -> Covers:
    return lambda cost, _first, _alone: cost.epsilon(cap.delta) <= cap.epsilon


ALL: tuple[Make, ...] = (gaussian, concentrated, pure, failing(9), failing(50), failing(99))
# the cap's epsilon, the kind of the steps, their number, how many the first study plans, and a pure event before
SEARCHES: list[tuple[int, Make, int, int, str]] = [
    (1, gaussian, 8, 1, "0"),
    (1, gaussian, 8, 8, "0"),
    (3, gaussian, 8, 4, "0"),
    (3, gaussian, 5, 5, "0"),
    (1, concentrated, 8, 1, "0"),
    (3, concentrated, 6, 6, "0"),
    (1, gaussian, 6, 0, "0.4"),
    (3, concentrated, 6, 0, "1"),
]


@cache
def attack(
    rule: Callable[[Budget], Covers], ends: tuple[Make, ...], epsilon: int, noise: Make, steps: int, planned: int,
    before: str,
) -> float:  # fmt: skip
    """Return the divergence of the best choices, in units of delta."""
    cap = Budget(epsilon=Fraction(epsilon), delta=DELTA)
    whole = mu_squared_for(cap.epsilon, DELTA) if noise is gaussian else 2 * rho_for(cap.epsilon, DELTA)
    search = Search(
        cap=cap,
        covers=rule(cap),
        noise=noise,
        step=Fraction(2 * int(whole / steps * PICO / 2), PICO),
        steps=steps,
        planned=planned,
        ends=ends,
        before=[PureEvent(epsilon=Fraction(before))] if before != "0" else [],
    )
    return search.best() / float(DELTA)


@pytest.mark.parametrize("search", SEARCHES)
def test_no_choice_by_outcomes_passes_delta(search: tuple[int, Make, int, int, str]) -> None:
    assert attack(by_filter, ALL, *search) <= 1


def test_the_search_finds_what_the_smallest_bound_lets_through() -> None:
    """By the former rule: 2.77 times delta with pure events, 3.72 with approximate ones, 4.6 at epsilon 3."""
    assert attack(by_smallest_bound, (gaussian, pure), *SEARCHES[0]) > 2.7
    assert attack(by_smallest_bound, ALL, *SEARCHES[0]) > 3.7


def test_a_first_study_may_take_the_whole_cap_and_kinds_may_be_mixed_after_it() -> None:
    """Its plan is fixed before anything is released, so it is counted as it is stated."""
    cap = Budget(epsilon=Fraction(1), delta=DELTA)
    whole = Cost.of(gaussian(mu_squared_for(cap.epsilon, DELTA)))
    assert Charged.by_one(whole).epsilon(cap) == whole.epsilon(DELTA) <= 1
    assert Charged.by_one(whole).plus(Cost.of(pure(Fraction(1, 10**9)))).epsilon(cap) > 1
    quarter = Cost.of(gaussian(mu_squared_for(cap.epsilon / 4, DELTA)))
    mixed = quarter + Cost.of([*pure(Fraction(1, 10)), *concentrated(Fraction(1, 1000)), *failing(5)(Fraction(1, 10))])
    assert quarter.epsilon(DELTA) < Charged(cost=mixed, first=quarter, alone=False).epsilon(cap) < 1


@pytest.mark.parametrize(("make", "before", "now"), [(gaussian, 67, 62), (concentrated, 70, 66), (pure, 10, 10)])
def test_equal_studies_of_one_kind_fit_nearly_as_often(make: Make, before: int, now: int) -> None:
    """`before` is the number by the smallest bound: studies of epsilon 0.1 each under a cap of 1."""
    cap, tenth = Budget(epsilon=Fraction(1), delta=DELTA), Fraction(1, 10)
    amounts: dict[Make, Fraction] = {
        gaussian: mu_squared_for(tenth, DELTA),
        concentrated: 2 * rho_for(tenth, DELTA),
        pure: tenth,
    }
    one = Cost.of(make(amounts[make]))
    assert [by_smallest_bound(cap)(one.times(count), one, False) for count in (before, before + 1)] == [True, False]
    assert [by_filter(cap)(one.times(count), one, False) for count in (now, now + 1)] == [True, False]


def test_a_first_plan_beyond_the_cap_covers_nothing() -> None:
    """It may end anywhere, by outcomes. Once its delta was free for other studies: 900 times that of the cap."""
    cap = Budget(epsilon=Fraction(1), delta=DELTA)
    small = ApproximateEvent(epsilon=Fraction(1, 100), delta=DELTA / 10)
    large = ApproximateEvent(epsilon=Fraction(1, 100), delta=900 * DELTA)
    plan = Cost.of([small, large])
    assert Charged(cost=Cost.of([small]), first=plan).epsilon(cap) < 1
    assert Charged(cost=plan, first=plan, alone=False).epsilon(cap) > 1
    # also after a cap was lowered below what was spent
    assert Charged(cost=Cost.of([large, *pure(DELTA)]), first=Cost.of([large]), alone=False).epsilon(cap) > 1


@pytest.mark.parametrize("epsilon", [1, 3])
def test_kinds_chosen_by_outcomes_within_a_plan_beyond_the_cap(epsilon: int) -> None:
    """The first study plans all kinds and more than fits, and stays alone; its coordinator chooses what it asks."""
    cap = Budget(epsilon=Fraction(epsilon), delta=DELTA)
    whole = mu_squared_for(cap.epsilon, DELTA)
    plan = Cost.of([*gaussian(whole), *pure(cap.epsilon), *concentrated(whole), *failing(99)(cap.epsilon)])

    def covers(cost: Cost, _first: Cost, _alone: bool) -> bool:
        return Charged(cost=cost, first=plan).epsilon(cap) <= cap.epsilon

    step = Fraction(2 * int(whole / 8 * PICO / 2), PICO)
    search = Search(cap=cap, covers=covers, noise=gaussian, step=step, steps=8, planned=8, ends=ALL)
    assert search.best() <= DELTA
