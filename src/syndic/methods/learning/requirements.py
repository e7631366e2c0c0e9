"""The parameters of learning and all that follows from the public terms: rounds, noise, masks."""

from functools import lru_cache
from typing import Final, Literal

import msgspec

from syndic.errors import InputError
from syndic.kernel import Terms, budget_of, member
from syndic.methods.learning.noise import Law, Noise, Paid, Share, law_for, share_for
from syndic.methods.learning.query import ModelQuery, Query, gradient_query, model_query, newton_queries
from syndic.methods.learning.rows import Encoding
from syndic.methods.learning.scheme import Averaging, Descent, FewRounds, Scheme
from syndic.methods.learning.simulated import OpenNoise, open_noise
from syndic.model.erm.loss import Huber, Logistic, Loss, Objective, SmoothedHinge, Squared
from syndic.model.erm.multiclass import JointObjective, Softmax
from syndic.model.erm.private import Setting
from syndic.model.erm.second_order import Newton
from syndic.mpc.graph import SumPlan
from syndic.mpc.ring import Ring, ring_for
from syndic.mpc.rounds import MaskedRounds, UsesRounds, plan_rounds
from syndic.privacy import Budget, Event

SchemeName = Literal[
    "mpc_grad",
    "mpc_out",
    "newton",
    "local_grad",
    "local_out",
    "local_obj",
    "pathak",
    "rajkumar_agarwal",
    "distributed",
    "central",
]
Channel = Literal["masked", "local", "open"]

# The noise of one value exceeds what the ring has room for with a chance below this over all values.
_OVERFLOW: Final = 2.0**-64
_MASKED: Final = ("mpc_grad", "mpc_out", "newton", "pathak")
_AVERAGED: Final = ("mpc_out", "pathak", "local_out", "local_obj", "distributed")
_SIMULATED: Final = ("local_obj", "rajkumar_agarwal", "distributed", "central")


class RiskTerms(UsesRounds):
    """The parameters and all that is known before any row is read; see `Risk`."""

    label: str
    positive: str | None = None
    features: tuple[str, ...] = ()
    scheme: SchemeName = "mpc_grad"
    loss: Literal["logistic", "softmax", "hinge", "ridge", "huber"] = "logistic"
    regularisation: float = 0.001
    clip: float = 1.0
    iterations: int | None = None
    rate: float | None = None
    scale: Literal["unit", "symmetric"] = "unit"
    intercept: bool = True
    noise: Noise = "gaussian"
    minimum: int = 1
    colluding: int = 1
    missing: int = 0
    path: bool = False
    as_printed: bool = False

    def __post_init__(self) -> None:
        """Check what needs no study."""
        for name in ("regularisation", "clip", "rate"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 2.0**20:
                raise ValueError(f"{name} ({value}) must be positive, and at most a million")
        if self.rounds < 1 or self.minimum < 1:
            raise ValueError(f"iterations ({self.iterations}) and minimum ({self.minimum}) must be at least 1")
        if self.colluding < 1 or self.missing < 0:
            raise ValueError("colluding must be at least 1, missing must not be negative")
        if self.as_printed and (self.noise != "gaussian" or self.scheme in ("distributed", "central", "newton")):
            raise ValueError(
                "as_printed is the authors' own noise: noise cannot be set, and without noise there is none"
            )
        if self.noise == "spherical" and self.scheme not in ("mpc_out", "local_out"):
            raise ValueError('spherical noise is for one release of a model: scheme = "mpc_out" or "local_out"')

    @property
    def simulation_only(self) -> bool:
        """Whether this variant is only ever simulated: printed, or with noise that cannot be drawn exactly."""
        return self.as_printed or self.noise == "spherical" or self.scheme in _SIMULATED

    @property
    def channel(self) -> Channel:
        """Who adds the noise: all together under masks, each party alone, or a functionality that is not there."""
        if self.simulation_only:
            return "open"
        return "masked" if self.scheme in _MASKED else "local"

    @property
    def averages_models(self) -> bool:
        """Whether parties send models once, not gradients in every round."""
        return self.scheme in _AVERAGED

    @property
    def rounds(self) -> int:
        """How many sums of gradients are opened: as given, else 100, or 24 of the few-round method."""
        return self.iterations if self.iterations is not None else 24 if self.scheme == "newton" else 100

    # What is learnt.

    def encoding_of(self, terms: Terms) -> Encoding:
        """Return which numbers a row becomes."""
        whole = Encoding(
            schema=terms.schema,
            label=self.label,
            positive=self.positive,
            scale=self.scale,
            intercept=self.intercept,
        )
        return _encoding(self.features, whole)

    @property
    def objective(self) -> Objective:
        """The loss, cut to slopes of at most `clip`, and the penalty."""
        losses: dict[str, Loss] = {
            "logistic": Logistic(),
            "softmax": Softmax(),
            "hinge": SmoothedHinge(),
            "huber": Huber(threshold=self.clip),
            # a minimiser needs a loss that has a largest slope; cutting gradients makes the same of it in each round
            "ridge": Squared().limited(self.clip) if self.averages_models else Squared(),
        }
        return Objective(losses[self.loss], self.regularisation, clip=self.clip)

    def people_at(self, terms: Terms) -> dict[str, int]:
        """Return the public numbers of people of the parties that take part; those below `minimum` abstain."""
        return {party.name: party.people or 0 for party in terms.parties if (party.people or 0) >= self.minimum}

    def records(self, terms: Terms) -> int:
        """Return how many records one person adds, takes away or, under `replace`, both, at one party."""
        return terms.unit.rows * (2 if terms.unit.neighbours == "replace" else 1)

    def scheme_of(self, terms: Terms) -> Scheme:
        """Return the rounds and what follows from each."""
        encoding, people, objective = self.encoding_of(terms), self.people_at(terms), self.objective
        total, records = sum(people.values()), self.records(terms)
        if self.averages_models:
            alone = self.scheme == "pathak"
            query = model_query(encoding, objective, people=people, records=records, rows=terms.unit.rows, alone=alone)
            return Averaging(stages=((query, 1),), shape=encoding.shape, people=total)
        if self.scheme == "newton":
            method = self.newton_of(terms)
            stages = tuple((query, 1) for query in newton_queries(method))
            return FewRounds(stages=stages, shape=encoding.shape, people=total, method=method)
        gradients = gradient_query(encoding, objective.loss, clip=self.clip, records=records, rounds=self.rounds)
        return Descent(
            stages=((gradients, self.rounds),),
            shape=encoding.shape,
            people=total,
            rate=self.rate_of(objective),
            regularisation=self.regularisation,
        )

    def newton_of(self, terms: Terms) -> Newton:
        """Return the few-round method."""
        return Newton(
            objective=JointObjective(self.objective.loss, self.regularisation, clip=self.clip),
            shape=self.encoding_of(terms).shape,
            people=sum(self.people_at(terms).values()),
            rows=terms.unit.rows,
            neighbours=terms.unit.neighbours,
            rounds=self.rounds,
        )

    def rate_of(self, objective: Objective) -> float:
        """Return the step length: as given, or one over the largest curvature of the objective."""
        printed = 1.0 if self.as_printed else 1 / (objective.loss.smoothness + self.regularisation)
        return self.rate if self.rate is not None else printed

    # The noise.

    def share_of(self, terms: Terms, query: Query) -> Share:
        """Return every party's share of the noise of one round."""
        who = {"parties": len(self.people_at(terms)), "colluding": self.colluding, "missing": self.missing}
        return share_for(self.noise, query, budgets_of(terms), terms.unit.parties, who)

    def law_of(self, terms: Terms, query: Query, party: str) -> Law:
        """Return the noise of one round that a party adds by itself."""
        return law_for(self.noise, query, budget_of(terms, party), terms.unit.parties)

    def setting_of(self, terms: Terms) -> Setting:
        """Return the public numbers as the paper has them: parties of equal size, the smallest one's."""
        people, (models, features) = self.people_at(terms), self.encoding_of(terms).shape
        return Setting(
            parties=len(people),
            records=min(people.values()),
            dimension=models * features,
            epsilon=terms.budget.epsilon,
            delta=terms.budget.delta,
            regularisation=self.regularisation,
            iterations=self.rounds,
            lipschitz=self.clip,
        )

    def open_of(self, terms: Terms, query: Query) -> OpenNoise:
        """Return the simulated noise of one round."""
        smoothness = self.objective.loss.smoothness
        return open_noise(self.scheme, query, self.setting_of(terms), smoothness, printed=self.as_printed)

    def event_of(self, terms: Terms, query: Query, party: str) -> Event:
        """Return what one round costs a party."""
        match self.channel:
            case "masked":
                return Paid(noise=self.share_of(terms, query), rounds=query.rounds).event
            case "local":
                return Paid(noise=self.law_of(terms, query, party), rounds=query.rounds).event
            case "open":
                return self.open_of(terms, query).event

    def deviation_of(self, terms: Terms, query: Query) -> float:
        """Return the standard deviation of the noise on each number of a round's average over all parties."""
        people = self.people_at(terms)
        over = 1 if isinstance(query, ModelQuery) else sum(people.values())
        return self.sum_deviation(terms, query, tuple(people)) / over

    def sum_deviation(self, terms: Terms, query: Query, present: tuple[str, ...]) -> float:
        """Return the standard deviation of the noise on each number of a sum over some parties, in its units."""
        if self.channel == "open":
            noise, people = self.open_of(terms, query), self.people_at(terms)
            over = 1 if isinstance(query, ModelQuery) else sum(people[name] for name in present)
            one = 0.0 if noise.law is None else noise.law.deviation(query.dimension)
            return over * one / float(noise.copies**0.5)
        if self.channel == "masked":
            variance = self.share_of(terms, query).total_variance(len(present))
        else:
            variance = sum(self.law_of(terms, query, name).variance for name in present)
        return float(variance**0.5) * query.unit

    # The masks.

    def rounds_plan(self, terms: Terms) -> SumPlan:
        """Return who masks with whom: a graph that cannot fail, so that nothing is charged for it."""
        return plan_rounds(len(terms.parties), colluding=self.colluding, missing=self.missing)

    def rounds_sums(self, terms: Terms) -> MaskedRounds:
        """Return the masked sums of all rounds."""
        return MaskedRounds(label="risk", graph=self.rounds_plan(terms))

    def ring_of(self, terms: Terms, query: Query) -> Ring:
        """Return the ring that has room for the numbers of all parties, and for the noise."""
        share, people = self.share_of(terms, query), self.people_at(terms)
        largest = sum(query.largest(size, terms.unit.rows) for size in people.values())
        return ring_for(largest + share.tail(_OVERFLOW / query.dimension, share.parties))

    def abstains(self, terms: Terms, party: str) -> bool:
        """Say whether a party has too few people by its public number."""
        return (member(terms, party).people or 0) < self.minimum


@lru_cache(maxsize=16)
def _encoding(features: tuple[str, ...], whole: Encoding) -> Encoding:
    """Return the encoding of some columns; it is asked for in every round, and has much to work out."""
    known, label = whole.schema.names, whole.label
    unknown = [name for name in (*features, label) if name not in known]
    if unknown:
        raise InputError(f"{', '.join(unknown)}: no such column in the schema; name features and label from it")
    names = [name for name in known if not features or name in features or name == label]
    return msgspec.structs.replace(whole, schema=whole.schema.select(names))


def budgets_of(terms: Terms) -> tuple[Budget, ...]:
    """Return every budget that somebody's people have."""
    own = (party.budget for party in terms.parties if party.budget is not None)
    return tuple(dict.fromkeys((terms.budget, *own)))
