"""Linear models from the rows of all parties, by private empirical risk minimisation (Jayaraman et al. 2018).

"mpc_grad": in every round each party adds up its records' gradients, each cut to a public norm, adds its share of one
noise and masks the result (`syndic.mpc.rounds`); everybody sees the noisy sum and all iterates. "mpc_out": each party
minimises its own objective, and the average of the models is opened once, with one noise. "local_grad", "local_out":
the same with full noise at every party, so that no masks are needed. "pathak": "mpc_out" with noise for one party's
model. "newton": as "mpc_grad" in a few rounds, some of which add up curvatures too (`syndic.model.erm.second_order`).

Sound by default: rows inside the unit ball by declared bounds, whole numbers with exact integer noise, the intercept
penalised like all weights, the public number of people as the divisor, so that sensitivities hold for add/remove and
for replace and no least size is needed; solvers that prove how near they are. Neighbours, trust and what everybody
sees: `disclosure`. Variants for simulation only are in `risk_open`.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import BudgetError, RefusedError
from syndic.kernel import Message, Party, Session, Terms, step
from syndic.methods.learning.noise import Paid
from syndic.methods.learning.plan import RiskPlan, delta_of
from syndic.methods.learning.query import ModelQuery, PartyRows, Query
from syndic.methods.learning.result import RiskModel, RiskResult, read_model, split_weights
from syndic.methods.learning.scheme import Opened, Scheme, follow
from syndic.methods.learning.simulated import Exact, objective_model
from syndic.methods.refusals import sizes_are_public
from syndic.model.erm.loss import Numbers
from syndic.mpc.rounds import RoundMasked
from syndic.random import generator

Way = Callable[[int, Numbers], Opened | None]


class Ask(Message):
    """A round's number and the public weights (model, feature) at which parties answer."""

    round: int
    weights: NDArray[np.float64]


class Sums(Message):
    """One party's noisy numbers, in steps."""

    values: NDArray[np.int64]


class _Answered(Message):
    round: int


@final
class Risk(RiskPlan, tag="risk"):
    """Parameters of learning.

    `label`, `positive`, `features`: what is predicted from what. `scheme`: see the module. `clip`: the largest norm of
    one record's gradient. `iterations`, `rate`: of the descent. `minimum`: parties of fewer people, by their public
    number, abstain. `colluding`, `missing`: how many parties may pool what they know, or fall silent in a round.
    `path`: publish every iterate, which costs nothing more.
    """

    title: ClassVar[str] = "Private learning from distributed rows"
    paper: ClassVar[str] = "Jayaraman, Wang, Evans and Gu 2018, Distributed learning without distress"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = (
        "under masks (mpc_grad, mpc_out, newton, pathak) semi-honest: everybody follows the steps, and no more parties "
        "than `colluding` pool what they know with the coordinator or each other; unless the study gives identities, "
        "the coordinator must not forge keys. Local schemes: nobody"
    )

    # The parties' side; keys and masks are those of the rounds.

    @step(reveals="masked")
    def contribute(self, party: Party, message: Ask) -> RoundMasked:
        """Add up this party's gradients, or fit its model, in whole steps; add a share of noise; mask the result."""
        terms = party.terms
        query, weights = self._asked(terms, message)
        ring = self.ring_of(terms, query)
        masks = self.rounds_sums(terms).masks(party, message.round, query.dimension, ring)
        if self.abstains(terms, party.name):
            # no row is read and no noise is due: shares are made for the parties that take part
            return self.rounds_sums(terms).hide(np.zeros(query.dimension, dtype=np.int64), masks, ring)
        values = query.values(self._holding(party), weights)
        paid = Paid(noise=self.share_of(terms, query), rounds=query.rounds)
        noisy = party.contribute(paid, values, why=f"noisy sum over all parties, {self.scheme}")
        return self.rounds_sums(terms).hide(noisy, masks, ring)

    @step(reveals="noisy")
    def release(self, party: Party, message: Ask) -> Sums:
        """Add up this party's gradients, or fit its model, in whole steps, and add noise."""
        query, weights = self._asked(party.terms, message)
        self._once(party, message.round)
        values = query.values(self._holding(party), weights)
        paid = Paid(noise=self.law_of(party.terms, query, party.name), rounds=query.rounds)
        return Sums(values=party.release(paid, values, why=f"noisy numbers of {self.scheme}"))

    @step(reveals="noisy")
    def give(self, party: Party, message: Ask) -> Sums:
        """In simulation only: hand over exact numbers; noise is added by a functionality that is not there."""
        query, weights = self._asked(party.terms, message)
        self._once(party, message.round)
        holding, event = self._holding(party), self.event_of(party.terms, query, party.name)
        if self.scheme != "local_obj":
            values = query.values(holding, weights)
            return Sums(values=party.release(Exact(event=event), values, why=f"{self.scheme}, simulated"))
        noise = self.objective_noise(party.terms)
        draws = generator(party.charge(event, why="objective perturbation, simulated"))
        model = objective_model(self.objective, holding, noise, None if noise.shared else draws, weights)
        assert isinstance(query, ModelQuery)  # noqa: S101 (so declared by the scheme)
        return Sums(values=query.steps(model, holding.share))

    def _asked(self, terms: Terms, message: Ask) -> tuple[Query, Numbers]:
        scheme = self.scheme_of(terms)
        if not 1 <= message.round <= scheme.rounds:
            raise RefusedError(f"round {message.round} was asked, and the study has rounds 1 to {scheme.rounds}")
        if message.weights.shape != scheme.shape or not np.isfinite(message.weights).all():
            raise RefusedError(f"weights came that are no finite numbers of shape {scheme.shape}")
        return scheme.query(message.round), message.weights

    def _once(self, party: Party, number: int) -> None:
        """Refuse a round that was answered: the budget has one answer for each."""
        before = party.kept("risk answered", _Answered)
        if before is not None and number <= before.round:
            raise BudgetError(f"round {number} was answered before: the study pays for one answer in each round")
        party.remember("risk answered", _Answered(round=number))

    def _holding(self, party: Party) -> PartyRows:
        terms, people = party.terms, self.people_at(party.terms)
        return PartyRows(
            party=party.name,
            table=party.table,
            encoding=self.encoding_of(terms),
            people=people[party.name],
            rows=terms.unit.rows,
            share=people[party.name] / sum(people.values()),
            public_size=sizes_are_public(terms),
        )

    # The coordinator's side.

    def coordinate(self, session: Session) -> RiskResult:
        """Open one noisy sum after the other and follow the scheme."""
        terms, scheme = session.terms, self.scheme_of(session.terms)
        ways = {"masked": self._under_masks, "local": self._from_each, "open": self._in_the_open}
        if self.channel == "open":
            scheme = self.simulated_scheme(terms, scheme, generator(session.randomness))
        found = follow(scheme, ways[self.channel](session, scheme))
        encoding = self.encoding_of(terms)
        model = RiskModel(
            scheme=self.scheme,
            loss=self.loss,
            label=self.label,
            classes=encoding.classes,
            regularisation=self.regularisation,
            rounds=scheme.rounds,
            lost=found.lost,
            people=scheme.people,
            present=found.present,
            noise=self.deviation_of(terms, scheme.query(scheme.rounds)),
            delta=float(delta_of(terms)),
            guarantee=self.guarantee_of(terms),
            **split_weights(found.path[-1], encoding),
        )
        path = np.stack([weights.ravel() for weights in found.path]) if self.path else None
        return RiskResult(model=model, encoding=encoding, path=path)

    def _under_masks(self, session: Session, scheme: Scheme) -> Way:
        terms = session.terms
        rounds = self.rounds_sums(terms).start(session)

        def opened(number: int, weights: Numbers) -> Opened | None:
            query = scheme.query(number)
            ring = self.ring_of(terms, query)
            total = rounds.total(
                self.contribute, lambda this: Ask(round=this, weights=weights), count=query.dimension, ring=ring
            )
            if total is None:
                return None
            return self._opened(terms, query, total.values.astype(np.float64), total.present)

        return opened

    def _from_each(self, session: Session, scheme: Scheme) -> Way:
        people = self.people_at(session.terms)

        def opened(number: int, weights: Numbers) -> Opened:
            messages = dict.fromkeys(people, Ask(round=number, weights=weights))
            answers = session.ask(self.release, messages, missing=self.missing)
            total = np.sum([answer.values.astype(np.float64) for answer in answers.values()], axis=0)
            return self._opened(session.terms, scheme.query(number), total, tuple(answers))

        return opened

    def _in_the_open(self, session: Session, scheme: Scheme) -> Way:
        people, draws = self.people_at(session.terms), generator(session.randomness)
        shared = self.shared_vector(session.terms, draws)

        def opened(number: int, weights: Numbers) -> Opened:
            query = scheme.query(number)
            message = Ask(round=number, weights=weights if shared is None else shared)
            answers = session.ask(self.give, dict.fromkeys(people, message))
            total = np.sum([answer.values.astype(np.float64) for answer in answers.values()], axis=0)
            exact = self._opened(session.terms, query, total, tuple(answers))
            over = 1 if isinstance(query, ModelQuery) else exact.people
            noise = self.open_of(session.terms, query).draw(query.dimension, draws)
            return replace(exact, total=exact.total + over * noise)

        return opened

    def _opened(self, terms: Terms, query: Query, steps: Numbers, present: tuple[str, ...]) -> Opened:
        """Return a sum in steps as what it stands for; who abstains has no people and no noise in it."""
        people = {name: size for name, size in self.people_at(terms).items() if name in present}
        deviation = self.sum_deviation(terms, query, tuple(people))
        return Opened(total=steps * query.unit, deviation=deviation, people=sum(people.values()), present=present)

    def read_result(self, terms: Terms, folder: Path) -> RiskResult:
        """Read back `model.json` and, if there is one, `path.csv`."""
        return read_model(folder, self.encoding_of(terms))
