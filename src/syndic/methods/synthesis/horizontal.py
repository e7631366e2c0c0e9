"""Synthesis of many columns: a graphical model fitted to noisy tables of all parties' rows together.

In every round the coordinator asks for some tables of counts, chosen from what earlier rounds opened. Every party
counts them, adds its share of one noise and masks the result (`syndic.mpc.rounds`): only sums over the parties open,
with noise as if one trusted curator had held all rows. A model of all columns is fitted to what was opened, and rows
are drawn from it. With a single party, the curator, tables open with the whole noise and without masks.

*Unit*: a person has at most `unit.rows` rows at each of at most `unit.parties` parties. *Cost*: the number of rounds
and what each costs are fixed by the study (`syndic.methods.synthesis.account`); a party answers each round once,
whatever is asked in it. *What a party accepts*: `syndic.methods.synthesis.measure`.

*Who sees what*: everybody sees the opened tables, and all else follows from them. The coordinator sees masked answers,
which look uniform. Up to `colluding` parties may pool what they know with the coordinator. *Semi-honest*, with one
exception: masks are bound to the round's question, so a coordinator that asks different parties different things in one
round learns nothing from their sum.

The method follows PrivMRF (Cai, Lei, Wei and Xiao 2021) and AIM (McKenna, Mullins, Sheldon and Miklau 2022); sums under
masks allow linear statistics only, so tables are chosen by what opened tables say, never by exact scores.
"""

from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError, RefusedError
from syndic.kernel import Disclosure, Nothing, Party, Resources, Session, Terms, budget_of, member, people_of, step
from syndic.methods.refusals import check_people, sizes_are_public
from syndic.methods.synthesis.account import Account, RoundNoise, account_of
from syndic.methods.synthesis.disclosure import disclosure_of, estimate_of
from syndic.methods.synthesis.measure import Question, RoundLimits, answer_of, check_question, rows_counted
from syndic.methods.synthesis.result import SyntheticTable, read_synthesis
from syndic.methods.synthesis.rounds import Opened, RemoteCounts, ask_many, ask_one
from syndic.methods.synthesis.size import Size, check_choices, choosing, most_rows, size_of
from syndic.methods.synthesis.zeros import Zeros
from syndic.model.markov import Adaptive, Impossible
from syndic.mpc.graph import SumPlan, plan_within
from syndic.mpc.order import advance
from syndic.mpc.rounds import RoundMasked, UsesRounds, check_rounds, plan_rounds, start_rounds
from syndic.privacy import Event

LABEL: Final = "synthesis"


@final
class Synthesis(UsesRounds, tag="synthesis"):
    """Parameters of the synthesis.

    `selector`: how tables are chosen, "one_shot" at once or "adaptive" over several rounds. `rounds`: how many of the
    adaptive ones. `model_cells`: the most cells of the model, by default what `limits.memory_mb` allows. `rows`: how
    many rows are drawn, by default as many as the noisy counts say, or the public number under `replace`. `zeros`:
    combinations that no row can have. `colluding` and `missing` are as in the masked tables: parties - colluding -
    missing shares of the noise are enough. With `colluding` 0 the guarantee is for everybody but the parties, of which
    each can take its own share off.
    """

    title: ClassVar[str] = "Synthesis by a graphical model"
    paper: ClassVar[str] = (
        "Cai, Lei, Wei and Xiao 2021; McKenna, Mullins, Sheldon and Miklau 2022; Bonawitz et al. 2017"
    )
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = (
        "semi-honest: everybody follows the steps, and no more parties than `colluding` pool what they know with the "
        "coordinator or each other; unless the study gives identities, the coordinator must not forge keys. A single "
        "party is a trusted curator of its own rows"
    )

    selector: Literal["adaptive", "one_shot"] = "one_shot"
    rounds: int | None = None
    model_cells: int | None = None
    colluding: int = 1
    missing: int = 0
    rows: int | None = None
    zeros: tuple[Zeros, ...] = ()

    def __post_init__(self) -> None:
        if self.colluding < 0 or self.missing < 0:
            raise ValueError(f"colluding ({self.colluding}) and missing ({self.missing}) must not be negative")
        check_choices(selector=self.selector, rounds=self.rounds, model_cells=self.model_cells, rows=self.rows)

    @property
    def simulation_only(self) -> bool:
        """It keeps its promise."""
        return False

    def asked(self, terms: Terms) -> tuple[str, ...]:
        """One party is asked for tables with the whole noise, several for masked ones."""
        if len(terms.parties) == 1:
            return ("ready", "measure")
        opening = ("round_open",) if self.missing else ()
        return ("ready", "rounds_keys", "rounds_meet", "count", *opening)

    # The parties' side; keys and openings are those of the masked sums.

    @step(reveals="masked")
    def count(self, party: Party, message: Question) -> RoundMasked:
        """Count what the round asks, add this party's share of the noise, and mask the result."""
        terms, noise = party.terms, self._checked(party, message)
        dimension = message.dimension(terms.schema.domain)
        ring = noise.ring(most_rows(terms), dimension)
        masks = self.round_masks(party, LABEL, message.number, dimension, ring, message.digest)
        values = self._answer(party, message)
        if party.kept("graph", Nothing) is None:
            # one graph for all rounds: it fails once or never
            for event in self.rounds_plan(terms).events:
                party.charge(event, why="chance that the masks of a sparse graph do not hide one party's tables")
            party.remember("graph", Nothing())
        noisy = party.contribute(noise, values, why=_why(message))
        return self.round_masked(noisy, masks, ring)

    @step(reveals="noisy")
    def measure(self, party: Party, message: Question) -> Opened:
        """Count what the round asks and add the whole noise: for a single party, which is its own curator."""
        noise = self._checked(party, message)
        advance(party, "rounds of the synthesis", message.number)
        return Opened(values=party.release(noise, self._answer(party, message), why=_why(message)))

    def _checked(self, party: Party, question: Question) -> RoundNoise:
        """Return the noise of a question that this party's own study lets be asked."""
        terms = party.terms
        rooms = self.rooms_of(terms)
        if not 1 <= question.number <= len(rooms):
            raise RefusedError(f"round {question.number} was asked, and the study has {len(rooms)} rounds")
        check_question(question, terms.schema.domain, rooms[question.number - 1])
        return self.account_of(terms).noise(question)

    def _answer(self, party: Party, question: Question) -> NDArray[np.int64]:
        terms, people = party.terms, member(party.terms, party.name).people or 0
        values = answer_of(question, party.table, people * terms.unit.rows)
        check_people(party, rows_counted(question, values, terms.schema.domain))
        return values

    # The coordinator's side.

    def coordinate(self, session: Session) -> SyntheticTable:
        """Ask round by round, fit the model, draw rows from it."""
        terms = session.terms
        account, rooms, zeros = self.account_of(terms), self.rooms_of(terms), self.zeros_of(terms)
        if account.parties == 1:
            ask = ask_one(session, account, self.measure)
        else:
            started = start_rounds(session, self, label=LABEL)
            ask = ask_many(started, account, self.count, most_rows(terms))
        asker = RemoteCounts(session=session, account=account, rooms=rooms, people=self._total(terms), ask=ask)
        fitted = self.selector_of(terms).run(asker, account.whole, zeros=zeros)
        return asker.drawn(fitted, self._rows(terms, fitted.total))

    def read_result(self, terms: Terms, folder: Path) -> SyntheticTable:
        """Read back the synthetic table, its model and the noisy tables."""
        return read_synthesis(terms.schema, folder)

    def _total(self, terms: Terms) -> int | None:
        """Return the number of rows where it is public: under `replace`, if nobody may be missing."""
        return people_of(terms) if sizes_are_public(terms) and self.missing == 0 else None

    def _rows(self, terms: Terms, total: float) -> int:
        if self.rows is not None:
            return self.rows
        # twice what there can be at most is no table that anybody wants
        return min(max(0, round(total)), 2 * most_rows(terms))

    # What is known before any row is read.

    def selector_of(self, terms: Terms) -> Adaptive:
        """Return what chooses the tables, with a model as large as the study allows."""
        return self.choosing(self.size_of(terms).model_cells)

    def choosing(self, cells: int) -> Adaptive:
        """Return what chooses the tables of a model of so many cells."""
        return choosing(self.selector, self.rounds, cells)

    def size_of(self, terms: Terms) -> Size:
        """Return how large the model may be; raises `InputError` with the number that would be needed."""
        return _size_of(self, terms)  # type: ignore[arg-type]  # a study is frozen: it has a hash

    def zeros_of(self, terms: Terms) -> tuple[Impossible, ...]:
        """Return the impossible cells by code."""
        return tuple(one.mask(terms.schema) for one in self.zeros)

    def rooms_of(self, terms: Terms) -> tuple[RoundLimits, ...]:
        """Return what every round may ask."""
        return self.size_of(terms).rooms

    def account_of(self, terms: Terms) -> Account:
        """Return what every round costs: the strictest budget in fixed parts."""
        return _account_of(self, terms)  # type: ignore[arg-type]  # a study is frozen: it has a hash

    def graph_of(self, terms: Terms) -> tuple[Event, ...]:
        """Return what is charged for the chance that a sparse graph of masks fails."""
        return self.rounds_plan(terms).events if len(terms.parties) > 1 else ()

    def rounds_plan(self, terms: Terms) -> SumPlan:
        """Return who masks with whom: a sparse graph that may fail only where that fits into every delta twice.

        Where parties may be missing it cannot fail at all: the coordinator says who is, so it could choose those who
        sit around one party in a graph that everybody can compute.
        """
        if self.missing:
            return plan_rounds(len(terms.parties), colluding=self.colluding, missing=self.missing)
        deltas = [terms.budget.delta, *(party.budget.delta for party in terms.parties if party.budget is not None)]
        room = min(deltas) / (2 * terms.unit.parties)
        return plan_within(room, len(terms.parties), colluding=self.colluding, missing=0)

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with the number it would need."""
        for party in terms.parties:
            if party.people is None:
                raise InputError(f"party '{party.name}': a synthesis needs its public bound on people: set people")
            if budget_of(terms, party.name).delta == 0:
                raise InputError(f"party '{party.name}': Gaussian noise needs delta above 0: set delta")
            if party.columns is not None:
                raise InputError(f"party '{party.name}': every party counts all columns here; leave columns out")
        if len(terms.parties) > 1:
            check_rounds(self.rounds_plan(terms))
        try:
            self.size_of(terms)
        except ValueError as error:
            raise InputError(f"the noise cannot be made: {error}") from None

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """One event a round, the same for every party, and the chance that a sparse graph fails."""
        member(terms, party)
        return (*self.account_of(terms).events, *self.graph_of(terms))

    def estimate(self, terms: Terms) -> Resources:
        """Bytes of the largest reply, memory at the coordinator, time for counting, masks and fitting."""
        plan = self.rounds_plan(terms) if len(terms.parties) > 1 else None
        return estimate_of(terms, self.size_of(terms), self.account_of(terms), plan)

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        plan = self.rounds_plan(terms) if len(terms.parties) > 1 else None
        return disclosure_of(terms, self.rooms_of(terms), plan)


@lru_cache(maxsize=32)
def _size_of(protocol: Synthesis, terms: Terms) -> Size:
    return size_of(
        terms,
        protocol.account_of(terms),
        protocol.choosing,
        protocol.zeros_of(terms),
        model_cells=protocol.model_cells,
        rows=protocol.rows,
    )


@lru_cache(maxsize=32)
def _account_of(protocol: Synthesis, terms: Terms) -> Account:
    return account_of(
        terms,
        protocol.choosing(1).budgets,
        protocol.graph_of(terms),
        colluding=protocol.colluding,
        missing=protocol.missing,
    )


def _why(question: Question) -> str:
    return f"round {question.number} of the synthesis: {len(question.tables)} noisy tables"
