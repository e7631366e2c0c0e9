"""What private linear models have in common: declared bounds, rounds of learning, one ledger over all fits.

By default they learn as the method `learn` does, from few sums (`syndic.model.erm.posterior`). With a penalty, `norm`,
`clip` or without an intercept, they take damped Newton steps (`syndic.model.erm.second_order`).
The events of a fit are known before any row is read, and charged before noise.
"""

import abc
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.design import into_ball
from syndic.errors import InputError
from syndic.methods.learning.noise import SLACK, Paid, Whole, law_of, likely_mu
from syndic.methods.learning.query import few_round_queries
from syndic.model.erm.loss import JointObjective, Loss
from syndic.model.erm.posterior import MOST_FEATURES, Layout, Posterior, intercept_weight
from syndic.model.erm.second_order import UNIT, Newton, follow
from syndic.privacy import Budget, Cost, Event, Ledger, Unit, check_delta, default_delta, mu_squared_for
from syndic.random import Randomness, SimulationRandomness, SystemRandomness
from syndic.sklearn.parameters import Number, Parametrised, declare, refuse_seeded_charge, validation
from syndic.study import Statement
from syndic.study.statement import PartyCost, words_for
from syndic.version import __version__

Numbers = NDArray[np.float64]
Learnt = tuple[Numbers, Numbers, Numbers | None]
Bounds = tuple[float | Sequence[float], float | Sequence[float]]
# of the unit ball's squared radius, the half that the intercept takes
_INTERCEPT: Final = sqrt(0.5)
_USUAL_REGULARISATION: Final = 0.001
# sums of gradients, and of Newton steps
_FEW, _MANY = 7, 16
LARGEST_EPSILON: Final = 16
_DELTAS: Final = tuple(Fraction(1, 10**power) for power in range(3, 13))


@final
@dataclass(frozen=True, kw_only=True)
class Account:
    """The noise of every round of a scheme, under one budget. Public."""

    scheme: Newton | Posterior
    budget: Budget
    unit: Unit

    def __post_init__(self) -> None:
        if self.budget.epsilon > LARGEST_EPSILON:
            raise InputError(f"epsilon ({float(self.budget.epsilon):g}) must be at most {LARGEST_EPSILON}")
        if self.budget.delta == 0:
            raise InputError("delta must be above 0, because the noise is Gaussian")

    @cached_property
    def paid(self) -> tuple[Paid, ...]:
        """The noise of each round, with its charge; the rounds' mu^2 add up to that of the budget."""
        amount = mu_squared_for(self.budget.epsilon, self.budget.delta, self.scheme.rounds * SLACK)
        whole = Whole(kind="mu_squared", amount=amount, apart=1)
        return tuple(Paid(noise=law_of(whole, one), rounds=one.rounds) for one in few_round_queries(self.scheme))

    @property
    def events(self) -> tuple[Event, ...]:
        """The privacy event of each round."""
        return tuple(one.event for one in self.paid)

    def learn(self, rows: Numbers, labels: Numbers, randomness: Randomness) -> Learnt:
        """Return weights (model, feature), intercepts, and limits if there are any: public, as every sum has noise."""
        scheme = self.scheme

        def ask(number: int, sent: Numbers) -> tuple[Numbers, float]:
            paid = self.paid[number - 1]
            noisy = paid.apply(scheme.sums(number, sent, rows, labels), randomness)
            return np.asarray(noisy * UNIT, dtype=np.float64), float(paid.noise.variance**0.5) * UNIT

        if isinstance(scheme, Newton):
            last = follow(scheme, ask)[-1]
            return last, np.zeros(len(last)), None
        belief = scheme.start()
        for number in range(1, scheme.rounds + 1):
            total, deviation = ask(number, scheme.sent(belief, number))
            belief = scheme.update(belief, number, total, scheme.people, deviation)
        return belief.linear()

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
        few = isinstance(self.scheme, Posterior)
        how = "noisy moments, products and gradients" if few else "damped Newton steps from noisy sums"
        what = "cut moments, products and gradients" if few else "clipped gradients and positive matrices"
        return Statement(
            study="estimator",
            digest=digest,
            edition=1,
            method=method,
            paper=f"{how}; accounting of Dong, Roth and Su (2022)",
            partition="horizontal",
            trust="whoever calls fit sees all rows",
            unit=self.unit,
            unit_in_words=words_for(self.unit, "horizontal"),
            epsilon=epsilon,
            delta=delta,
            accountant="exact Gaussian profile",
            curve=tuple((float(cost.epsilon(at)), float(at)) for at in _DELTAS),
            parties=tuple(PartyCost(party=name, epsilon=epsilon, delta=delta, events=self.events) for name in parties),
            randomness="simulated: the noise is seeded and protects nobody"
            if simulated
            else "exact integer noise from the operating system's generator",
            protects=not simulated,
            sees={"everybody who gets the model": "all weights, and whatever follows from them"},
            sensitivity=f"{change} {self.unit.rows} record(s) moves a sum of {what} by at most the bound "
            "that each round's noise is made for",
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


@dataclass(eq=False, repr=False)
class PrivateLinear(Parametrised, abc.ABC):
    """Scale rows by declared bounds, learn weights in rounds of noisy sums, and charge for all of them once.

    Penalty of Newton steps. With n records, u a row scaled to [-1, 1] by its bounds and w its weights, scikit-learn
    minimises the mean loss plus strength |w|^2 / 2, with strength 1 / (n C) for `C` and alpha / n for `alpha`. Learning
    is on x = s u, s = sqrt(1/2) / norm (1 / norm without an intercept), with weights w / s: the regularisation there is
    s^2 strength. n is the public number of records. The intercept is penalised too, 1 / norm^2 times as strongly as a
    weight of u.
    """

    epsilon: Number = 1.0
    _: KW_ONLY
    delta: Number | None = None
    bounds: Bounds | None = None
    norm: float | None = None
    clip: float = 1.0
    rounds: int | None = None
    fit_intercept: bool = True
    neighbours: Literal["add_remove", "replace"] = "replace"
    rows_per_person: int = 1
    people: int | None = None
    seed: int | None = None
    ledger: str | Path | None = None
    dataset: str = "data"
    cap: Number | Budget | None = None

    def _taken(self, X: Any, y: Any) -> tuple[Numbers, Any]:  # noqa: N803 - scikit-learn's name
        """Return rows and labels after checks of their form; no check depends on a value."""
        checks = validation()
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        rows = checks.validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        found = checks.column_or_1d(y, warn=True)
        checks.check_consistent_length(rows, found)
        return np.asarray(rows, dtype=np.float64), found

    def _rows(self, X: Any) -> Numbers:  # noqa: N803 - scikit-learn's name
        """Return the features to predict for; missing values become the middle of their bounds, as in `fit`."""
        checks = validation()
        checks.check_is_fitted(self)
        found = checks.validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
        return np.clip(np.where(np.isfinite(found), found, self._centre), *self.limits_.T)

    @abc.abstractmethod
    def _strength(self, records: int) -> float | None:
        """Return the weight of |w|^2 / 2 beside the mean loss, for rows scaled to [-1, 1]; None for the default."""

    def _learn(self, rows: Numbers, labels: Numbers, parties: Any, loss: Loss, known: Any) -> None:
        """Release the weights, charged first where there is a ledger, and keep them in the units of X.

        Records that are not `known` add nothing to any sum.
        """
        centre, half = self._scaling(rows.shape[1])
        radius = self.norm if self.norm is not None else sqrt(rows.shape[1])
        if not 1e-6 <= radius <= 1e6:
            raise InputError(f"norm ({radius:g}) must be between 0.000001 and 1000000")
        people = self._people(len(rows))
        strength = self._strength(people * self.rows_per_person)
        scale = (_INTERCEPT if self.fit_intercept else 1.0) / radius
        budget = Budget.of(self.epsilon, default_delta(people) if self.delta is None else self.delta)
        check_delta(budget.delta, people)
        unit = Unit(neighbours=self.neighbours, rows=self.rows_per_person)
        penalised = strength is not None or self.norm is not None or self.clip != 1 or not self.fit_intercept
        scheme: Newton | Posterior
        if penalised or rows.shape[1] > MOST_FEATURES:
            penalty = _USUAL_REGULARISATION if strength is None else strength * scale**2
            shape = (labels.shape[1], rows.shape[1] + self.fit_intercept)
            scheme = self._newton(people, shape, JointObjective(loss, penalty, self.clip))
            scaled = self._scaled(rows, centre, half, radius) * known[:, None]
        else:
            scheme = self._posterior(people, (labels.shape[1], rows.shape[1]), loss, budget)
            scaled, labels, scale = self._unit_rows(rows, centre, half)[known], labels[known], 1.0
        account = Account(scheme=scheme, budget=budget, unit=unit)
        names = self._parties(parties, len(rows))
        digest = digest_of(type(self).__name__, account.scheme, account.budget, account.unit, names)
        weights, last, limits = self._released(account, scaled, labels, names, digest)
        self._coefficients = weights[:, : rows.shape[1]] * (scale / half)
        if isinstance(scheme, Newton) and self.fit_intercept:
            last = weights[:, -1] * _INTERCEPT
        self._intercepts, self._centre = last - self._coefficients @ centre, centre
        self.limits_: Numbers = np.tile([-np.inf, np.inf], (rows.shape[1], 1))
        if limits is not None:
            self.limits_ = centre[:, None] + half[:, None] * limits
        title = f"{type(self).__name__}, {account.scheme.rounds} rounds"
        self.statement_: Statement = account.state(title, digest, names, simulated=self.seed is not None)
        self.n_iter_: int = account.scheme.rounds

    def _newton(self, people: int, shape: tuple[int, int], objective: JointObjective) -> Newton:
        return Newton(
            objective=objective,
            shape=shape,
            people=people * self.rows_per_person,
            rows=self.rows_per_person,
            neighbours=self.neighbours,
            rounds=_MANY if self.rounds is None else self.rounds,
        )

    def _posterior(self, people: int, shape: tuple[int, int], loss: Loss, budget: Budget) -> Posterior:
        records = 2 if self.neighbours == "replace" else 1
        return Posterior(
            loss=loss,
            layout=Layout(np.arange(shape[1]), np.ones(shape[1], dtype=np.bool_)),
            models=shape[0],
            people=people * self.rows_per_person,
            rows=self.rows_per_person,
            neighbours=self.neighbours,
            gradients=_FEW if self.rounds is None else self.rounds,
            intercept=intercept_weight(people * likely_mu("gaussian", (budget,)) / records, shape[0] * shape[1]),
        )

    def _people(self, count: int) -> int:
        """Return the public number of people; under `replace` the number of rows is public."""
        if self.rows_per_person < 1:
            raise InputError(f"rows_per_person ({self.rows_per_person}) must be at least 1")
        if self.people is not None:
            return self.people
        if self.neighbours == "add_remove":
            raise InputError("add_remove protects the number of rows too: declare people, the approximate number")
        return max(1, count // self.rows_per_person)

    def _scaling(self, features: int) -> tuple[Numbers, Numbers]:
        """Return the middle of the declared bounds and half their width."""
        if self.bounds is None:
            raise InputError("bounds are missing: declare (lower, upper) of the features, never taken from the rows")
        try:
            lower, upper = (np.broadcast_to(np.asarray(each, dtype=np.float64), (features,)) for each in self.bounds)
        except (TypeError, ValueError):
            raise InputError(f"bounds must be (lower, upper), each a number or {features} numbers") from None
        if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
            raise InputError("bounds must be finite, with lower below upper")
        # halved first: the difference of large bounds would be infinite
        return lower / 2 + upper / 2, upper / 2 - lower / 2

    def _unit_rows(self, rows: Numbers, centre: Numbers, half: Numbers) -> Numbers:
        """Return rows scaled to [-1, 1]; missing and infinite values become the middle of their bounds."""
        within = np.clip(np.where(np.isfinite(rows), rows, centre), centre - half, centre + half)
        return np.asarray(np.clip((within - centre) / half, -1.0, 1.0))

    def _scaled(self, rows: Numbers, centre: Numbers, half: Numbers, radius: float) -> Numbers:
        """Return rows inside the unit ball."""
        inner = into_ball(self._unit_rows(rows, centre, half) / radius, 1.0)
        if not self.fit_intercept:
            return inner
        return into_ball(np.column_stack([inner * _INTERCEPT, np.full(len(inner), _INTERCEPT)]), 1.0)

    def _parties(self, parties: Any, count: int) -> tuple[str, ...]:
        """Return the data set of each party that the rows belong to; the names are public."""
        if parties is None:
            return (self.dataset,)
        names = np.asarray(parties)
        if names.shape != (count,):
            raise InputError(f"parties must have one name for each of the {count} rows")
        return tuple(sorted({f"{self.dataset}.{name}" for name in names.tolist()}))

    def _released(
        self, account: Account, rows: Numbers, labels: Numbers, names: tuple[str, ...], digest: str
    ) -> Learnt:
        refuse_seeded_charge(self.seed, self.ledger)
        randomness: Randomness = SystemRandomness() if self.seed is None else SimulationRandomness(self.seed, "fit")
        if self.ledger is None:
            return account.learn(rows, labels, randomness)
        with Ledger.open(str(self.ledger)) as ledger:
            for name in names:
                declare(ledger, name, self.cap, account.budget.delta)
            call = account.charge(ledger, names, digest)
            learnt = account.learn(rows, labels, randomness)
            for name in names:
                ledger.commit(
                    digest, f"{call}/{name}", digest_of(*(None if one is None else one.tolist() for one in learnt))
                )
        return learnt
