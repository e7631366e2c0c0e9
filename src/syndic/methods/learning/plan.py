"""The plan of learning: what it costs, needs and discloses, before any row is read."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Final, final

from syndic.data import Boolean, Schema
from syndic.data.column import Listed
from syndic.data.design import Design
from syndic.errors import InputError
from syndic.kernel import (
    GROUPS,
    PROCESS_BYTES,
    Disclosure,
    Party,
    Plan,
    Resources,
    Terms,
    beyond_unit,
    budget_of,
    budgets_of,
    change_of,
    everybody,
    people_of,
)
from syndic.methods.learning.noise import RoundNoise, likely_mu, own_noise, shared_noise, whole_of
from syndic.methods.learning.query import PartyRows
from syndic.methods.learning.scheme import Averaging, FewRounds, FewSums, Opened, Scheme, scheme_of
from syndic.model.erm.loss import Numbers
from syndic.model.erm.solve import least_regularisation
from syndic.mpc.graph import sum_graph
from syndic.mpc.key import KEY_BYTES
from syndic.mpc.masked_sum import MaskedSums
from syndic.privacy import Cost, Event, joint_cost

if TYPE_CHECKING:
    from syndic.methods.learning.learn import Learn

# number of rounds for which a result states the guarantee so far
_SHOWN: Final = 20
_SHRUNK: Final = (
    "; so is the change of the factor that falls from 1 at the declared number of rows to 0 at twice as many, the "
    "largest model over the number of people"
)
_FEW_SUMS: Final = (
    "numbers lie in [-1, 1] by public bounds, and a record's vector in every later sum is cut to a public norm in "
    "whole steps, whatever is sent; {change} one person's {rows} row(s) changes a sum by at most that many such "
    "vectors, or differences of two; the noise is calibrated to {parties} of the parties"
)


@final
class LearnPlan(Plan):
    """The queries of all rounds, and the noise on each sum: by all parties in a masked sum, or by each.

    `people`: the public number of people of each party that takes part. `noise`: that of each round.
    `clip`: the largest norm of one record's gradient.
    """

    design: Design
    people: Mapping[str, int]
    scheme: Scheme
    noise: tuple[RoundNoise, ...]
    masked_sums: MaskedSums | None
    clip: float

    def noise_at(self, number: int) -> RoundNoise:
        """Return the noise and the query of a round, counted from 1."""
        return self.noise[number - 1]

    def rows_of(self, party: "Party[LearnPlan]") -> PartyRows:
        """Return the party's rows with their public properties. Private."""
        people, total = self.people[party.name], sum(self.people.values())
        return PartyRows(
            table=party.table,
            design=self.design,
            people=people,
            rows=self.terms.unit.rows,
            share=people / total,
        )

    def opened(self, noise: RoundNoise, steps: Numbers, present: tuple[str, ...]) -> Opened:
        """Return a sum in steps in its own units; a party that abstains adds no people and no noise to it."""
        people = {name: size for name, size in self.people.items() if name in present}
        total = steps * noise.query.unit
        return Opened(total=total, deviation=noise.deviation(people), people=sum(people.values()), present=present)

    @property
    def delta(self) -> Fraction:
        """The delta at which guarantees are stated."""
        return max(budget.delta for budget in budgets_of(self.terms))

    @property
    def rounds(self) -> tuple[str, ...]:
        """One sum in each round; if they are masked, keys first."""
        return self.masked_sums.rounds("contribute") if self.masked_sums else ("release",)

    def events(self, party: str) -> tuple[Event, ...]:
        """One event for each round; none if the party abstains."""
        self.check_party(party)
        if party not in self.people:
            return ()
        return tuple(noise.charged[party].event for noise in self.noise)

    @cached_property
    def guarantee(self) -> tuple[tuple[int, float], ...]:
        """(round, epsilon) of everything published up to some rounds, for the person with the largest cost."""
        rounds = self.scheme.rounds
        budgets = {name: budget_of(self.terms, name) for name in self.people}
        payers = {budget: name for name, budget in budgets.items()}
        found = []
        for number in sorted({max(1, round(rounds * place / _SHOWN)) for place in range(_SHOWN + 1)}):
            each = {budget: Cost.of(self.events(name)[:number]) for budget, name in payers.items()}
            joint = joint_cost({name: each[budget] for name, budget in budgets.items()}, self.terms.unit)
            found.append((number, float(joint.epsilon(self.delta))))
        return tuple(found)

    @cached_property
    def resources(self) -> Resources:
        """Bytes of a reply, memory for the largest party's rows, time for all rounds."""
        terms, scheme, masks = self.terms, self.scheme, self.masked_sums
        (models, features), parties = scheme.shape, len(terms.parties)
        largest = max(self.people.values()) * terms.unit.rows
        trips = scheme.rounds * (2 if masks and masks.graph.missing else 1) + (3 if masks else 1)
        held = largest if isinstance(scheme, Averaging) else min(largest, 2**16)
        widest = max(query.dimension for query in scheme.queries)
        each = 5e-3 + (masks.graph.neighbours if masks else 0) * 2e-5
        seconds = 1.0 + trips * parties * each + scheme.rounds * (people_of(terms) or 0) * features * 3e-9
        return Resources(
            memory_bytes=PROCESS_BYTES + 32 * held * (features + models) + 24 * parties * widest,
            reply_bytes=8 * widest + 64,
            rounds=trips,
            seconds=round(seconds, 1),
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        (models, features), last = self.scheme.shape, self.noise[-1]
        deviation = last.average_deviation(self.people)
        notes = (
            f"{models} model(s) of {features} weights; {self.scheme.rounds} sum(s), {self.scheme.people:,} people",
            f"standard deviation {deviation:.3g} of the noise on each number of an average",
        )
        if self.masked_sums is None or last.ring is None:
            return notes
        neighbours = self.masked_sums.graph.neighbours
        masks = (
            f"each party shares masks with {neighbours} others ({KEY_BYTES} bytes each, once), "
            f"{last.ring.bits} bits per masked number"
        )
        return (*notes, masks)

    too_large = ("a run", "name fewer features")

    @property
    def disclosure(self) -> Disclosure:
        """What every role sees."""
        unit, masks = self.terms.unit, self.masked_sums
        whose = "the noisy sum over all parties of their" if masks else "every party's noisy"
        sees = f"{whose} {self._numbers}, and the model and all iterates computed from them"
        under_masks = "every party's masked numbers, which look uniform, who dropped out in which round"
        masked = {
            "coordinator": f"{under_masks}, {sees}",
            "other parties": f"public keys, and {sees}; each knows its own numbers and its shares of the noise",
        }
        return Disclosure(
            sees=everybody(sees) | (masked if masks else {}),
            sensitivity=self._sensitivity,
            not_protected=(
                GROUPS,
                beyond_unit(unit),
                "the columns, their bounds, the classes and each party's number of people: they are public",
                *(
                    (
                        f"against more than {masks.graph.colluding} colluding parties, who know their shares of the "
                        f"noise, or more than {masks.graph.missing} that omit theirs: less noise remains than stated",
                        "the model against a party that enters made-up numbers: nothing checks them",
                    )
                    if masks
                    else ()
                ),
            ),
        )

    @property
    def _numbers(self) -> str:
        """The summed quantities, in words."""
        if isinstance(self.scheme, Averaging):
            return "models"
        if isinstance(self.scheme, FewSums):
            return "moments, spreads, products of two columns, and gradients"
        return ("gradients and curvatures" if isinstance(self.scheme, FewRounds) else "gradients") + " in every round"

    @property
    def _sensitivity(self) -> str:
        """Why one person changes a sum by no more than stated."""
        unit, change = self.terms.unit, change_of(self.terms.unit)
        # records that one person adds, takes away or, under `replace`, both, at one party
        records = unit.l1_of_counts()
        if isinstance(self.scheme, Averaging):
            return (
                f"{change} one person's rows changes the gradient of one party's objective by at most {records} x "
                f"{self.clip:g} / its public number of people, so its minimiser, every weight being penalised, by at "
                "most that over the penalty; the solver's proven distance at both neighbours and the rounding to steps "
                f"are added{'' if unit.sizes_are_public else _SHRUNK}. Times the party's part of all people this "
                "is the same at every party; the noise is "
                f"calibrated to {unit.parties} of the parties"
            )
        if isinstance(self.scheme, FewSums):
            return _FEW_SUMS.format(change=change, rows=unit.rows, parties=unit.parties)
        curved = (
            ". Rounds that also sum curvatures add, for each record, a positive matrix of Frobenius norm at most the "
            "loss's largest curvature; one noise covers both, and their changes add up in squares"
        )
        return (
            "rows lie in the unit ball by public bounds; each record's gradient, all classes together, is clipped to "
            f"norm {self.clip:g} in whole steps; {change} one person's rows changes a sum by at most {records} such "
            f"gradients at any weights; the noise is calibrated to {unit.parties} of the parties and "
            f"{self.scheme.rounds} round(s){curved if isinstance(self.scheme, FewRounds) else ''}"
        )


def plan_of(method: "Learn", terms: Terms) -> LearnPlan:
    """Plan the features of rows, the query of each round, its noise and the masks."""
    people = {party.name: party.people or 0 for party in terms.parties if (party.people or 0) >= method.minimum}
    if not people:
        raise InputError(f"no party has the minimum of {method.minimum} people: lower minimum")
    design = _design(method, terms.schema)
    _check(method, terms, design)
    masked_sums = None
    if method.masked:
        graph = sum_graph(len(terms.parties), colluding=method.colluding, missing=method.missing)
        masked_sums = MaskedSums(label="learn", graph=graph)
    scheme = scheme_of(method, terms.unit, design, people, likely_mu(method.noise, budgets_of(terms)))
    return LearnPlan(
        terms=terms,
        design=design,
        people=people,
        scheme=scheme,
        noise=_noise(method, terms, scheme, people),
        masked_sums=masked_sums,
        clip=method.clip,
    )


def _design(method: "Learn", schema: Schema) -> Design:
    """Return the features of a row and its labels, from the named columns, or from all if none are named."""
    features, label = method.features, method.label
    unknown = [name for name in (*features, label) if name not in schema.names]
    if unknown:
        raise InputError(f"features and label must be columns of the schema; it has no {', '.join(unknown)}")
    chosen = schema.select([name for name in schema.names if not features or name in features or name == label])
    centred = method.scheme == "posterior"
    try:
        return Design(
            schema=chosen,
            label=label,
            positive=method.positive,
            scale="symmetric" if centred else method.scale,
            intercept=method.intercept and not centred,
            clipped=not centred,
        )
    except ValueError as error:
        raise InputError(f"{error}") from None


def _noise(method: "Learn", terms: Terms, scheme: Scheme, people: Mapping[str, int]) -> tuple[RoundNoise, ...]:
    """Return the noise of each round."""
    rows, apart = terms.unit.rows, terms.unit.parties
    # many rounds may ask the same
    queries = {id(query): query for query in scheme.queries}
    if method.masked:
        whole = whole_of(method.noise, budgets_of(terms), scheme.rounds, apart)
        who = {"parties": len(people), "colluding": method.colluding, "missing": method.missing}
        made = {
            key: shared_noise(whole, query, people, who, sum(query.largest(size, rows) for size in people.values()))
            for key, query in queries.items()
        }
    else:
        budgets = {name: budget_of(terms, name) for name in people}
        each = {budget: whole_of(method.noise, (budget,), scheme.rounds, apart) for budget in set(budgets.values())}
        wholes = {name: each[budget] for name, budget in budgets.items()}
        made = {
            key: own_noise(wholes, query, {name: query.largest(size, rows) for name, size in people.items()})
            for key, query in queries.items()
        }
    return tuple(made[id(query)] for query in scheme.queries)


def _check(method: "Learn", terms: Terms, design: Design) -> None:
    """Refuse a label, a loss or a penalty that the scheme cannot learn with."""
    listed = isinstance(terms.schema[method.label], Listed | Boolean)
    if listed == (method.loss in ("ridge", "huber")):
        what, other = ("has classes", "logistic, softmax or hinge") if listed else ("is a number", "ridge or huber")
        raise InputError(f"'{method.label}' {what}: use loss = {other}")
    if method.loss == "softmax" and (design.models < 2 or method.averages_models):
        raise InputError(
            "softmax needs a scheme that sums gradients, and three or more classes: leave positive out, or use logistic"
        )
    if method.averages_models:
        method.objective.check_minimiser()
        # losses are divided by the public number of people, so many rows per person weaken the penalty
        least = terms.unit.rows * least_regularisation(method.objective.loss)
        if method.regularisation < least:
            raise InputError(
                f"regularisation ({method.regularisation:g}) must be at least {least:.2g} here: otherwise a solver may "
                "not reach the minimiser, which the sensitivity requires"
            )
