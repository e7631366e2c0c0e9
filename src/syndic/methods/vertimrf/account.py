"""What a VertiMRF release costs one person over all parties: local models, numbers, value counts and encodings.

One person is at every party, so every party is charged for the whole: what all local models cost together, and what
the encodings of all columns cost together, which is more than the sum over columns where columns share a key.

Local models and noisy counts are Gaussian and add up as mu^2, in parts that go with a party's number of columns.
Sketches are (epsilon, delta) by the exact law of their privacy loss. Responses of a row's d codes cost d epsilon', or
d epsilon'^2 / 2 of zero-concentrated privacy on one account with the Gaussian part, whichever lets epsilon' be larger.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, exp, floor, isqrt
from typing import Final, final

from syndic.errors import InputError
from syndic.kernel import Terms
from syndic.methods.vertimrf.layout import Layout
from syndic.methods.vertimrf.sketch import SketchPlan
from syndic.methods.vertimrf.sketch_plan import capped_plan, sketch_event
from syndic.noise import DiscreteLaplace, FineGaussian
from syndic.noise.response import RandomisedResponse
from syndic.privacy import (
    Budget,
    ConcentratedEvent,
    Cost,
    Event,
    GaussianEvent,
    PureEvent,
    mu_squared_for,
    rho_for,
)
from syndic.privacy.concentrated import PICO
from syndic.privacy.cost import ATTO

# Of delta, for sketches, where Gaussian noise is on the account too: it hardly minds how small its delta is.
_SKETCH_DELTA: Final = Fraction(3, 4)


@final
@dataclass(frozen=True, kw_only=True)
class Shares:
    """How epsilon is split; encodings get the rest."""

    local: Fraction
    values: Fraction
    number: Fraction = Fraction(0)

    @property
    def encodings(self) -> Fraction:
        """The share of the encodings."""
        return 1 - self.local - self.values - self.number


@final
@dataclass(frozen=True, kw_only=True)
class Account:
    """Noise and events, the same for every party. `local` has the mu^2 of each party's own model.

    `learned` is charged before local models, numbers and counts are made, `encoded` before encodings are.
    """

    local: Mapping[str, Fraction]
    learned: tuple[Event, ...]
    encoded: Event
    counts: FineGaussian | DiscreteLaplace | None = None
    number: DiscreteLaplace | None = None
    plan: SketchPlan | None = None
    responses: Mapping[str, RandomisedResponse] = field(default_factory=dict)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that every party is charged."""
        return (*self.learned, self.encoded)


def strictest(terms: Terms) -> Budget:
    """Return a budget that is within every party's."""
    budgets = [terms.budget, *(party.budget for party in terms.parties if party.budget is not None)]
    return Budget(epsilon=min(one.epsilon for one in budgets), delta=min(one.delta for one in budgets))


def local_slack(mu_squared: Fraction) -> Fraction:
    """Bound how far the noise of a party's own model is from the normal law, whatever the model asks.

    By `FineGaussian` the slack of k changed entries is k / (300 v^2), v being the variance in steps: at least
    k 2^24 / mu^2 for tables and k 1025^2 / mu^2 for scores, which get a fifth of mu^2 at most. Parts of mu^2 add up to
    the whole, so in sum it is below mu^4 / (25 * 300 * 1025^4) + mu^4 / (300 * 2^48) < 1e-15 mu^4.
    """
    return Fraction(ceil(max(Fraction(1), mu_squared) ** 2 * ATTO / 10**15), ATTO)


def sketch_account(layout: Layout, budget: Budget, shares: Shares, start: SketchPlan) -> Account:
    """Return the account of capped sketches under a key for each pair."""
    alone = shares.local + shares.values == 0
    delta = budget.delta if alone else budget.delta * _SKETCH_DELTA
    epsilon = budget.epsilon if alone else _cut(budget.epsilon * shares.encodings)
    plan = capped_plan(start, layout, epsilon=epsilon, delta=delta)
    event = sketch_event(plan, layout, epsilon=epsilon, delta=delta)
    left = budget.epsilon - epsilon, budget.delta - event.delta
    return _with_gaussian(layout, shares, _mu_squared(layout, shares, *left, beside=epsilon), event, plan=plan)


def oracle_account(layout: Layout, budget: Budget, shares: Shares) -> Account:
    """Return the account of randomised response on every encoded column, by the composition that allows more."""
    columns, part = len(layout.coded), shares.encodings
    rest = 1 - part
    pure = _cut(budget.epsilon * part / columns)
    mu_pure = _mu_squared(layout, shares, budget.epsilon * rest, budget.delta, beside=budget.epsilon * part)
    slack = _slack(layout, shares, mu_squared_for(budget.epsilon, budget.delta))
    whole = rho_for(budget.epsilon, budget.delta - _lost(budget.epsilon, slack))
    # the root, rounded down; a ledger rounds what it adds up by one unit at most
    rho = max(Fraction(0), whole * part - Fraction(4, PICO))
    concentrated = Fraction(isqrt(floor(2 * rho / columns * PICO**2)), PICO)
    if pure >= concentrated:
        epsilon, mu_squared = pure, mu_pure
        event: Event = PureEvent(epsilon=columns * pure, what=_responses(columns, pure))
    else:
        epsilon, mu_squared = concentrated, _half_steps(2 * whole * rest)
        event = ConcentratedEvent(rho=columns * concentrated**2 / 2, what=_responses(columns, concentrated))
    if epsilon <= 0:
        raise InputError(f"the budget leaves nothing for {columns} randomised responses a person: raise epsilon")
    responses = {name: RandomisedResponse(size=layout.bins[name], epsilon=epsilon) for name in layout.coded}
    return _with_gaussian(layout, shares, mu_squared, event, responses=responses)


def _responses(columns: int, epsilon: Fraction) -> str:
    return f"randomised response of {columns} columns, epsilon {float(epsilon):.3g} each"


def _with_gaussian(
    layout: Layout,
    shares: Shares,
    mu_squared: Fraction,
    encoded: Event,
    *,
    plan: SketchPlan | None = None,
    responses: Mapping[str, RandomisedResponse] | None = None,
) -> Account:
    """Cut mu^2 into a part for local models, by columns, and one for counts of values."""
    gaussian = shares.local + shares.values
    learned: list[Event] = []
    local: dict[str, Fraction] = {}
    counts: FineGaussian | None = None
    if shares.local:
        each = mu_squared * shares.local / gaussian / sum(map(len, layout.held.values()))
        local = {name: _half_steps(each * len(columns)) for name, columns in layout.held.items()}
        learned.append(local_event(local))
    if shares.values:
        counts = _counts(layout, _half_steps(mu_squared * shares.values / gaussian))
        learned.append(counts.event)
    account = Account(
        local=local, learned=tuple(learned), encoded=encoded, counts=counts, plan=plan, responses=responses or {}
    )
    if any(part <= 0 for part in local.values()):
        raise InputError("the budget leaves nothing for the parties' own models: raise epsilon or local_share")
    return account


def local_event(local: Mapping[str, Fraction]) -> GaussianEvent:
    """Return the event of all parties' own models together."""
    whole, slack = sum(local.values(), Fraction(0)), sum(map(local_slack, local.values()), Fraction(0))
    what = f"Gaussian, mu {float(whole) ** 0.5:.3g}, own models of {len(local)} parties"
    return GaussianEvent(mu_squared=whole, slack=slack, what=what)


def _counts(layout: Layout, mu_squared: Fraction) -> FineGaussian:
    """Return the noise on every value of the large columns: replacing a person moves two counts of each by one."""
    changed = 2 * len(layout.large)
    return FineGaussian(sensitivity_squared=Fraction(changed), mu_squared=mu_squared, changed=changed)


def _mu_squared(layout: Layout, shares: Shares, epsilon: Fraction, delta: Fraction, *, beside: Fraction) -> Fraction:
    """Return the mu^2 of all Gaussian noise at (epsilon, delta); everything else has the epsilon `beside`."""
    if shares.local + shares.values == 0:
        return Fraction(0)
    slack = _slack(layout, shares, mu_squared_for(epsilon, delta))
    # slack is multiplied by e to the whole epsilon, of which this part knows its own only
    return mu_squared_for(epsilon, delta, slack * ceil(exp(min(float(beside), 500.0))))


def _slack(layout: Layout, shares: Shares, mu_squared: Fraction) -> Fraction:
    """Return at least the slack of everything Gaussian, which falls with mu^2, in whole units of a ledger."""
    slack = len(layout.held) * local_slack(mu_squared) if shares.local else Fraction(0)
    slack += _counts(layout, mu_squared).event.slack if shares.values else Fraction(0)
    return Fraction(ceil(slack * ATTO), ATTO)


def _lost(epsilon: Fraction, slack: Fraction) -> Fraction:
    return slack * ceil(exp(min(float(epsilon), 500.0)) + 1)


def _cut(amount: Fraction) -> Fraction:
    return Fraction(floor(amount * PICO), PICO)


def _half_steps(mu_squared: Fraction) -> Fraction:
    """Return mu^2 cut to what a ledger adds up: halves of it, in whole units."""
    return Fraction(2 * floor(mu_squared / 2 * PICO), PICO)


def epsilon_of(account: Account, delta: Fraction) -> float:
    """Return what the whole release costs at delta."""
    return float(Cost.of(account.events).epsilon(delta))
