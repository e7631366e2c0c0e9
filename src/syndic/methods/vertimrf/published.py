"""The account that VertiMRF prints, and what holds instead. For simulation only."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Final, final

from syndic.methods.vertimrf.account import Account, Shares, local_event
from syndic.methods.vertimrf.layout import Layout
from syndic.methods.vertimrf.sketch import Bracket, SketchPlan, printed_oracle, printed_plan, sketch_delta
from syndic.noise import DiscreteLaplace
from syndic.noise.response import RandomisedResponse
from syndic.privacy import ApproximateEvent, Budget, Event, PureEvent, mu_squared_for
from syndic.privacy.concentrated import PICO

_POINTS: Final = 2**18


@final
@dataclass(frozen=True, kw_only=True)
class Claim:
    """What the paper promises of the encodings."""

    epsilon: Fraction
    delta: Fraction


def claim_of(budget: Budget, shares: Shares) -> Claim:
    """Return what the paper promises of the encodings: their share of epsilon, half of delta (Algorithm 2)."""
    return Claim(epsilon=_cut(budget.epsilon * shares.encodings), delta=budget.delta / 2)


def printed_account(
    layout: Layout, budget: Budget, shares: Shares, *, repetitions: int, gamma: Fraction, sketches: bool
) -> Account:
    """Return the printed noise, charged what it costs, or what is claimed where no cost can be shown."""
    claim = claim_of(budget, shares)
    learned: list[Event] = []
    local: dict[str, Fraction] = {}
    if shares.local:
        parties = len(layout.held)
        each = mu_squared_for(budget.epsilon * shares.local / parties, budget.delta / (2 * parties))
        local = dict.fromkeys(layout.held, each)
        learned.append(local_event(local))
    number = DiscreteLaplace(sensitivity=1, epsilon=_cut(budget.epsilon * shares.number))
    learned.append(number.event)
    counts = None
    if shares.values:
        epsilon = _cut(budget.epsilon * shares.values)
        counts = DiscreteLaplace(sensitivity=len(layout.bins), epsilon=epsilon)
        times = 1 if layout.neighbours == "add_remove" else 2
        learned.append(PureEvent(epsilon=times * epsilon, what=counts.event.what))
    plan: SketchPlan | None = None
    responses: dict[str, RandomisedResponse] = {}
    if sketches:
        plan = plan_as_printed(len(layout.coded), claim, repetitions, gamma)
        # no epsilon can be shown at which one key for many columns keeps so small a delta: no other event would hold
        what = f"sketches of {len(layout.coded)} columns under one key, as claimed, which does not hold"
        encoded: Event = ApproximateEvent(epsilon=claim.epsilon, delta=claim.delta, what=what)
    else:
        sizes = [layout.bins[name] for name in layout.coded]
        made = printed_oracle(sizes, Budget(epsilon=claim.epsilon, delta=claim.delta))
        responses = dict(zip(layout.coded, made, strict=True))
        true = sum((one.epsilon for one in made), Fraction(0))
        encoded = PureEvent(epsilon=true, what=f"randomised response of {len(made)} columns, as printed")
    return Account(
        local=local,
        learned=tuple(learned),
        encoded=encoded,
        counts=counts,
        number=number,
        plan=plan,
        responses=responses,
    )


def plan_as_printed(columns: int, claim: Claim, repetitions: int, gamma: Fraction) -> SketchPlan:
    """Return the printed sketches: one key for all columns (Algorithm 3)."""
    return printed_plan(
        epsilon=float(claim.epsilon),
        delta=float(claim.delta),
        columns=columns,
        repetitions=repetitions,
        gamma=gamma,
    )


@lru_cache(maxsize=32)
def true_delta(plan: SketchPlan, columns: int, epsilon: Fraction) -> Bracket:
    """Return the true delta of printed sketches at an epsilon, under add/remove as in the paper."""
    return sketch_delta(plan, columns=columns, epsilon=float(epsilon), points=_POINTS)


def _cut(amount: Fraction) -> Fraction:
    return Fraction(floor(amount * PICO), PICO)
