"""Account for a fit of a private estimator: its events are known before any row is read, and charged before noise."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Final, final

import numpy as np

from syndic.errors import InputError
from syndic.model.erm.loss import Numbers
from syndic.model.erm.second_order import UNIT, Newton, follow
from syndic.noise import FineGaussian
from syndic.privacy import Budget, Cost, GaussianEvent, Ledger, Unit, curve, mu_squared_for
from syndic.privacy.concentrated import PICO
from syndic.privacy.cost import ATTO
from syndic.random import Randomness, SystemRandomness
from syndic.study import Statement
from syndic.study.statement import PartyCost, words_for
from syndic.version import __version__

LARGEST_EPSILON: Final = 16
_SLACK: Final = Fraction(1, ATTO)
_DELTAS: Final = tuple(Fraction(1, 10**power) for power in range(3, 13))


@final
@dataclass(frozen=True, kw_only=True)
class Account:
    """The noise of every round of a scheme, under one budget. Public."""

    scheme: Newton
    budget: Budget
    unit: Unit

    def __post_init__(self) -> None:
        if self.budget.epsilon > LARGEST_EPSILON:
            raise InputError(f"epsilon ({float(self.budget.epsilon):g}) must be at most {LARGEST_EPSILON}")
        if self.budget.delta == 0:
            raise InputError("delta must be above 0, because the noise is Gaussian")

    @cached_property
    def noises(self) -> tuple[FineGaussian, ...]:
        """The noise of each round; the rounds' mu^2 add up to that of the budget."""
        rounds = range(1, self.scheme.rounds + 1)
        whole = mu_squared_for(self.budget.epsilon, self.budget.delta, self.scheme.rounds * _SLACK)
        return tuple(
            FineGaussian(
                sensitivity_squared=self.scheme.reach(number) ** 2,
                # halves of mu^2 are what a ledger adds up, in whole units
                mu_squared=Fraction(2 * floor(whole * self.scheme.share(number) * PICO / 2), PICO),
                changed=self.scheme.dimension(number),
                fraction_bits=0,
            )
            for number in rounds
        )

    @cached_property
    def events(self) -> tuple[GaussianEvent, ...]:
        """The privacy event of each round; its slack bounds the distance of integer noise from normal noise."""
        each = [noise.event for noise in self.noises]
        if max(event.slack for event in each) > _SLACK:
            raise InputError("the noise is too small for exact integer sums: lower epsilon")
        return tuple(GaussianEvent(mu_squared=event.mu_squared, slack=_SLACK, what=event.what) for event in each)

    def learn(self, rows: Numbers, labels: Numbers, randomness: Randomness) -> Numbers:
        """Return the weights (model, feature) of the last iterate. Every sum has noise, so they may be public."""

        def ask(number: int, weights: Numbers) -> tuple[Numbers, float]:
            noise = self.noises[number - 1]
            noisy = noise.apply(self.scheme.sums(number, weights, rows, labels), randomness)
            return np.asarray(noisy * UNIT, dtype=np.float64), float(noise.variance**0.5) * UNIT

        return follow(self.scheme, ask)[-1]

    def charge(self, ledger: Ledger, datasets: Iterable[str], study: str) -> str:
        """Charge all rounds to every data set, durably, and return the identifier of the charge."""
        call = SystemRandomness().bytes(16).hex()
        for dataset in datasets:
            ledger.check(dataset=dataset, study=call, events=self.events)
        for dataset in datasets:
            ledger.reserve(
                dataset=dataset,
                study=study,
                call=f"{call}/{dataset}",
                door="fit",
                events=self.events,
                why="private fit",
            )
        return call

    def state(self, method: str, digest: str, parties: tuple[str, ...], *, simulated: bool) -> Statement:
        """Return the statement of a fit. Everything in it is public before a row is read."""
        cost = Cost.of(self.events)
        epsilon, delta = float(cost.epsilon(self.budget.delta)), float(self.budget.delta)
        change = "replacing" if self.unit.neighbours == "replace" else "adding or removing"
        return Statement(
            study="estimator",
            digest=digest,
            edition=1,
            method=method,
            paper="damped Newton steps from noisy sums; accounting of Dong, Roth and Su (2022)",
            partition="horizontal",
            trust="whoever calls fit sees all rows",
            unit=self.unit,
            unit_in_words=words_for(self.unit, "horizontal"),
            epsilon=epsilon,
            delta=delta,
            accountant="exact Gaussian profile",
            curve=tuple((float(each), float(at)) for each, at in curve(cost, _DELTAS)),
            parties=tuple(PartyCost(party=name, epsilon=epsilon, delta=delta, events=self.events) for name in parties),
            randomness="simulated: the noise is seeded and protects nobody"
            if simulated
            else "exact integer noise from the operating system's generator",
            protects=not simulated,
            sees={"everybody who gets the model": "all weights, and whatever follows from them"},
            sensitivity=f"{change} {self.unit.rows} record(s) moves a sum of clipped gradients and positive matrices "
            "by at most the bound that each round's noise is made for",
            not_protected=(
                "the bounds, the classes and the number of people, which are declared",
                "people with more rows than the unit allows",
            ),
            departures=(),
            syndic=__version__,
        )


def digest_of(*parts: object) -> str:
    """Return a digest of public parameters, or of published numbers."""
    return hashlib.sha256("\x00".join(map(repr, parts)).encode()).hexdigest()
