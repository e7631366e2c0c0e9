"""What a VertiMRF release costs one person over all parties: local models, numbers, value counts and encodings.

One person is at every party, so every party is charged for the whole: all local models together, and the encodings of
all columns together, which cost more than the sum over columns if columns share a key.

Local models and noisy counts are Gaussian and add up as mu^2, in parts proportional to a party's number of columns.
Sketches are (epsilon, delta) by the exact distribution of their privacy loss. Responses of a row's d codes cost
d epsilon', or d epsilon'^2 / 2 of zero-concentrated privacy in one account with the Gaussian part, whichever allows a
larger epsilon'. Neighbours replace one person's whole row: under `add_remove`, one row per person would reveal the
number of people. The last functions are the paper's account, charged at its true cost. It is for simulation only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, isqrt, log, log1p, sqrt
from typing import Final, final

import msgspec

from syndic.errors import InputError
from syndic.methods.vertimrf.plan import Account, Layout
from syndic.methods.vertimrf.sketch.cost import phantoms_needed, sketch_cost
from syndic.methods.vertimrf.sketch.encode import SketchPlan, printed_plan, rank_thresholds
from syndic.methods.vertimrf.sketch.estimate import cell_error
from syndic.noise import DiscreteLaplace, FineGaussian
from syndic.noise.response import RandomisedResponse
from syndic.privacy import (
    ApproximateEvent,
    Budget,
    ConcentratedEvent,
    Event,
    GaussianEvent,
    PureEvent,
    mu_squared_for,
    rho_for,
)
from syndic.privacy.concentrated import PICO, part_of
from syndic.privacy.cost import ATTO

# Share of delta for sketches if the account has Gaussian noise too, whose cost hardly depends on its delta.
_SKETCH_DELTA: Final = Fraction(3, 4)
# Of the accountant's grid during the search; the result is proven again on a finer grid, so a margin is left.
_POINTS: Final = 2**15
_MARGIN: Final = 0.9


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


def local_slack(mu_squared: Fraction) -> Fraction:
    """Bound the distance of the noise of a party's own model from the normal distribution, for any model.

    By `FineGaussian` the slack of k changed entries is k / (300 v^2), v being the variance in steps: at least
    k 2^24 / mu^2 for tables and k 1025^2 / mu^2 for scores, which get a fifth of mu^2 at most. Parts of mu^2 add up to
    the total, so the sum is below mu^4 / (25 * 300 * 1025^4) + mu^4 / (300 * 2^48) < 1e-15 mu^4.
    """
    return Fraction(ceil(max(Fraction(1), mu_squared) ** 2 * ATTO / 10**15), ATTO)


def sketch_account(layout: Layout, budget: Budget, shares: Shares, start: SketchPlan) -> Account:
    """Return the account of capped sketches with one key for each pair of columns."""
    alone = shares.local + shares.values == 0
    delta = budget.delta if alone else budget.delta * _SKETCH_DELTA
    epsilon = budget.epsilon if alone else part_of(budget.epsilon * shares.encodings, 1)
    # if phantoms are given there is no search
    sketches = start if start.phantoms else _search(start, layout, epsilon=float(epsilon), delta=float(delta))
    keys = len(layout.pairs)
    event = sketch_cost(sketches, columns=2, keys=keys, epsilon=epsilon, delta=delta, neighbours="replace")
    left = budget.epsilon - epsilon, budget.delta - event.delta
    return _with_gaussian(layout, shares, _mu_squared(layout, shares, *left, beside=epsilon), event, sketches=sketches)


def oracle_account(layout: Layout, budget: Budget, shares: Shares) -> Account:
    """Return the account of randomised response on every encoded column, by the better of two compositions."""
    columns, part = len(layout.coded), shares.encodings
    rest = 1 - part
    pure = part_of(budget.epsilon * part, columns)
    mu_pure = _mu_squared(layout, shares, budget.epsilon * rest, budget.delta, beside=budget.epsilon * part)
    slack = _slack(layout, shares, mu_squared_for(budget.epsilon, budget.delta))
    whole = rho_for(budget.epsilon, budget.delta - slack * ceil(exp(min(float(budget.epsilon), 500.0)) + 1))
    # the root, rounded down; a ledger rounds what it adds up by one unit at most
    rho = max(Fraction(0), whole * part - Fraction(4, PICO))
    concentrated = Fraction(isqrt(floor(2 * rho / columns * PICO**2)), PICO)
    if pure >= concentrated:
        epsilon, mu_squared = pure, mu_pure
        event: Event = PureEvent(epsilon=columns * pure, what=_responses(columns, pure))
    else:
        epsilon, mu_squared = concentrated, 2 * part_of(2 * whole * rest, 2)
        event = ConcentratedEvent(rho=columns * concentrated**2 / 2, what=_responses(columns, concentrated))
    if epsilon <= 0:
        raise InputError(f"the budget leaves nothing for {columns} randomised responses per person: raise epsilon")
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
    sketches: SketchPlan | None = None,
    responses: Mapping[str, RandomisedResponse] | None = None,
) -> Account:
    """Split mu^2 into a part for local models, by columns, and a part for counts of values."""
    gaussian = shares.local + shares.values
    learned: list[Event] = []
    local: dict[str, Fraction] = {}
    counts: FineGaussian | None = None
    if shares.local:
        each = mu_squared * shares.local / gaussian / sum(map(len, layout.held.values()))
        local = {name: 2 * part_of(each * len(columns), 2) for name, columns in layout.held.items()}
        learned.append(local_event(local))
    if shares.values:
        counts = _counts(layout, 2 * part_of(mu_squared * shares.values / gaussian, 2))
        learned.append(counts.event)
    account = Account(
        local=local,
        learned=tuple(learned),
        encoded=encoded,
        counts=counts,
        sketches=sketches,
        responses=responses or {},
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
    """Return the noise on every value of the large columns: replacing a person changes two counts of each by one."""
    changed = 2 * len(layout.large)
    return FineGaussian(sensitivity_squared=Fraction(changed), mu_squared=mu_squared, changed=changed)


def _mu_squared(layout: Layout, shares: Shares, epsilon: Fraction, delta: Fraction, *, beside: Fraction) -> Fraction:
    """Return the mu^2 of all Gaussian noise at (epsilon, delta); everything else has the epsilon `beside`."""
    if shares.local + shares.values == 0:
        return Fraction(0)
    slack = _slack(layout, shares, mu_squared_for(epsilon, delta))
    # slack is multiplied by e to the total epsilon, of which this function only knows its own part
    return mu_squared_for(epsilon, delta, slack * ceil(exp(min(float(beside), 500.0))))


def _slack(layout: Layout, shares: Shares, mu_squared: Fraction) -> Fraction:
    """Return an upper bound on the slack of all Gaussian noise, which falls with mu^2, in whole units of a ledger."""
    slack = len(layout.held) * local_slack(mu_squared) if shares.local else Fraction(0)
    slack += _counts(layout, mu_squared).event.slack if shares.values else Fraction(0)
    return Fraction(ceil(slack * ATTO), ATTO)


def _search(start: SketchPlan, layout: Layout, *, epsilon: float, delta: float) -> SketchPlan:
    """Return the sketches with the smallest expected error, with one key for each pair of columns.

    Caps above the rank of a union of everybody are tried in ascending order, each with as many phantoms as the
    guarantee needs, until a larger cap has a larger error.
    """
    best: tuple[float, SketchPlan] | None = None
    for cap in _caps(layout.people, start.gamma):
        try:
            found = phantoms_needed(
                msgspec.structs.replace(start, phantoms=1, floor=0, cap=cap),
                columns=2,
                keys=len(layout.pairs),
                epsilon=epsilon,
                delta=_MARGIN * delta,
                neighbours="replace",
                points=_POINTS,
            )
        except InputError:
            continue
        error = cell_error(found, people=layout.people, sketches=layout.sketches)
        if best is not None and error >= best[0]:
            break
        best = error, found
    if best is None:
        raise InputError(
            f"no sketches of {len(layout.pairs)} pairs of columns satisfy epsilon {epsilon:g} and delta {delta:g}: "
            'raise them, use fewer columns or repetitions, or set way = "oracle"'
        )
    return best[1]


def _caps(people: int, gamma: Fraction) -> range:
    """Return caps from the rank of a union of everybody upwards, a factor of two apart."""
    middle = round(log(max(2, people)) / log1p(float(gamma)))
    step = max(1, round(log(2) / log1p(float(gamma))))
    return range(max(2, middle + step), min(len(rank_thresholds(gamma)), middle + 8 * step), step)


def printed_account(
    layout: Layout, budget: Budget, shares: Shares, *, repetitions: int, gamma: Fraction, sketches: bool
) -> Account:
    """Return the published noise, charged its true cost, or the paper's claim where no cost can be proven.

    The paper claims for encodings their share of epsilon and half of delta (Algorithm 2).
    """
    claim = Budget(epsilon=part_of(budget.epsilon * shares.encodings, 1), delta=budget.delta / 2)
    number = DiscreteLaplace(sensitivity=1, epsilon=part_of(budget.epsilon * shares.number, 1))
    learned: list[Event] = [number.event]
    local: dict[str, Fraction] = {}
    if shares.local:
        parties = len(layout.held)
        each = mu_squared_for(budget.epsilon * shares.local / parties, budget.delta / (2 * parties))
        local = dict.fromkeys(layout.held, each)
        learned.insert(0, local_event(local))
    counts = None
    if shares.values:
        counts = DiscreteLaplace(sensitivity=len(layout.bins), epsilon=part_of(budget.epsilon * shares.values, 1))
        times = 1 if layout.neighbours == "add_remove" else 2
        learned.append(PureEvent(epsilon=times * counts.epsilon, what=counts.event.what))
    chosen, responses, encoded = _published_encodings(
        layout, claim, repetitions=repetitions, gamma=gamma, sketches=sketches
    )
    return Account(
        local=local,
        learned=tuple(learned),
        encoded=encoded,
        counts=counts,
        number=number,
        sketches=chosen,
        responses=responses,
        claim=claim,
    )


def _published_encodings(
    layout: Layout, claim: Budget, *, repetitions: int, gamma: Fraction, sketches: bool
) -> tuple[SketchPlan | None, dict[str, RandomisedResponse], Event]:
    columns = len(layout.coded)
    if sketches:
        # one key for all columns (Algorithm 3)
        epsilon, delta = float(claim.epsilon), float(claim.delta)
        chosen = printed_plan(epsilon=epsilon, delta=delta, columns=columns, repetitions=repetitions, gamma=gamma)
        # no epsilon can be proven at which one key for many columns has so small a delta: no other event is valid
        what = f"sketches of {columns} columns under one key, as claimed by the paper (the claim is false)"
        return chosen, {}, ApproximateEvent(epsilon=claim.epsilon, delta=claim.delta, what=what)
    made = printed_oracle([layout.bins[name] for name in layout.coded], claim)
    true = sum((one.epsilon for one in made), Fraction(0))
    event = PureEvent(epsilon=true, what=f"randomised response of {columns} columns, as published")
    return None, dict(zip(layout.coded, made, strict=True)), event


def printed_oracle(sizes: Sequence[int], budget: Budget) -> tuple[RandomisedResponse, ...]:
    """Return the published responses, which cost up to twice the budget (Zhao et al. 2024, Theorem 3).

    The theorem counts half the epsilon of each code, for neighbours that differ in the number of published rows.
    """
    claimed, columns = float(budget.epsilon), len(sizes)
    epsilon = 2 * claimed / columns
    if budget.delta:
        epsilon = max(epsilon, claimed / (2 * sqrt(2 * columns * log(1 / float(budget.delta)))))
    return tuple(RandomisedResponse(size=size, epsilon=Fraction(epsilon).limit_denominator(10**12)) for size in sizes)
