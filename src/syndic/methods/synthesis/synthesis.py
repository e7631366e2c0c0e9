"""Synthesis of many columns: a graphical model fitted to noisy tables of all parties' rows together.

In every round the coordinator asks for tables of counts, chosen from what earlier rounds opened; one round asks for
parities (`syndic.model.selection.parity`), which show relations that no pair shows. Every party counts, adds its share
of one noise and masks the result (`syndic.mpc.masked_sum`): only sums over the parties open, with noise as if one
trusted curator had held all rows. A model of all columns is fitted to what was opened, and rows are drawn from it. With
a single party, the curator, tables open with the whole noise and without masks.

*Any cut.* Where parties of a group hold different columns of the same people, two of them count a table of their
columns by a secure product (`syndic.mpc.product`), and each adds its share of it to the same sum. Different people is
the case of a group for each party, different columns that of one group. A table that one party counts has the whole
noise of that party; all parties share the noise of the others (`syndic.methods.synthesis.cut`).

*Unit*: a person has at most `unit.rows` rows at each of at most `unit.parties` parties, or one row in each of as many
groups. *Cost*: the number of rounds and what each costs are fixed by the study (`syndic.methods.synthesis.account`); a
party answers each round once, whatever is asked in it, and is charged for all tables, whoever counts them. *What a
party accepts*: `syndic.methods.synthesis.measure`.

*Who sees what*: everybody sees the opened tables, and all else follows from them. The coordinator sees masked answers,
which look uniform. Up to `colluding` parties may collude with the coordinator, which may do anything: whatever it asks,
in whatever order, a round costs its part; and if it asks different parties different things, nothing opens. Where
parties multiply, the coordinator deals the triples: with one party of a group it could read the rows of the party's
partners. With `servers` three parties multiply instead, and only two of these together can read rows; four servers also
count tables of three parties' columns.

The method follows PrivMRF (Cai, Lei, Wei and Xiao 2021) and AIM (McKenna, Mullins, Sheldon and Miklau 2022); sums under
masks allow linear statistics only, so tables are chosen by what opened tables say, never by exact scores. Products have
the place of the sketches of VertiMRF (Zhao et al. 2024), whose shared keys cost more privacy than is counted there.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from syndic.errors import InputError, RefusedError
from syndic.kernel import (
    UNDER_MASKS,
    Adversary,
    Group,
    Nothing,
    Party,
    Requires,
    Session,
    Terms,
    adversary_of,
    groups_of,
    member,
    most_people,
    most_rows,
    parts_of,
    schema_of,
    shared_people,
    step,
)
from syndic.kernel.cut import check_servers, copies, partners_with
from syndic.methods.layout import Names
from syndic.methods.product_steps import ProductSteps
from syndic.methods.synthesis.account import RoundNoise, account_of
from syndic.methods.synthesis.cut import CutReach, coin_traffic, limit_traffic, most_held
from syndic.methods.synthesis.measure import Question, answer_of
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.synthesis.result import SyntheticTable, draw_synthesis, read_synthesis
from syndic.methods.synthesis.rounds import Answer, Opened, RoundCounts
from syndic.methods.synthesis.size import check_choices, choosing, share_of_parities, size_of
from syndic.methods.synthesis.zeros import Zeros
from syndic.methods.table_noise import COORDINATOR, noise_shares
from syndic.model.markov.measurement import UNKNOWN
from syndic.model.selection import Grouping, synthesise
from syndic.model.selection.parity import parity_sums
from syndic.mpc.dealer import deal_products
from syndic.mpc.graph import sum_graph
from syndic.mpc.key import PublicKey
from syndic.mpc.masked_sum import MaskedSums, SumCoordinator, SumMasked
from syndic.mpc.order import advance
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import ProductStart, Served, ServerTurn
from syndic.mpc.servers import ServedProduct

_ASKED = "round asked"


@final
class Synthesis(ProductSteps, tag="synthesis"):
    """Parameters of the synthesis.

    `selector`: how tables are chosen, "one_shot" at once or "adaptive" over several rounds. `rounds`: how many of
    the adaptive ones. `model_cells`: the most cells of the model, by default what `limits.memory_mb` allows.
    `rows`: how many rows are drawn, by default as many as the noisy counts say, or the public number under
    `replace`. `zeros`: combinations that no row can have. `target`: a column, such as a label, whose relation to
    every other column the model holds. `keep`: sets of columns whose tables are measured and held by the model.
    `interactions`: whether 1 % of the budget, up to 5 % if it takes that, looks for sets of three to five columns that
    depend on each other though no pair of them shows it.
    `colluding` and `missing` are as in the masked tables: parties - colluding - missing shares of the noise are
    enough. With `colluding` 0 the guarantee is for everybody but the parties, of which each can subtract its own
    share.
    Where parties of a group hold different columns of the same people, `missing` is 0. `adversary`: "active", the
    default unless `colluding` is 0, lets parties prove that their rows are one-hot, so that a party that deviates
    cannot read a partner's record. `servers`: three or four parties that multiply in place of the coordinator, so that
    it may collude with one party or server; two of them together can read all rows. Rows take twice the traffic, with
    four three times; with four and `colluding` 1 three parties' columns are counted together.
    `traffic`: about how many bytes a person all tables may take, masked rows counted once however many partners they
    are passed on to; every round of chosen tables sends rows anew, and parities take a sixth more, coins up to a
    quarter a round.
    `coordinator_noise`: whether the coordinator adds a share of the noise on what several parties count, so that with m
    parties the variance is (m + 1) / m of a curator's, and not m / (m - 1). It must not tell it, nor omit it.
    """

    title: ClassVar[str] = "Synthesis by a graphical model"
    paper: ClassVar[str] = (
        "Cai, Lei, Wei and Xiao 2021; McKenna, Mullins, Sheldon and Miklau 2022; Bonawitz et al. 2017; across columns "
        "after VertiMRF, Zhao et al. 2024, by matrix triples after Beaver 1991"
    )
    partition: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    trust: ClassVar[str] = f"{UNDER_MASKS}. A single party is a trusted curator of its own rows"

    selector: Literal["adaptive", "one_shot"] = "one_shot"
    rounds: int | None = None
    model_cells: int | None = None
    colluding: int = 1
    missing: int = 0
    rows: int | None = None
    zeros: tuple[Zeros, ...] = ()
    target: str | None = None
    keep: tuple[tuple[str, ...], ...] = ()
    interactions: bool = True
    adversary: Adversary | None = None
    servers: tuple[str, ...] = ()
    traffic: int = 2400
    # false; a study that does not name it keeps its digest
    coordinator_noise: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.traffic < 1:
            raise ValueError(f"traffic ({self.traffic}) must be at least 1")
        check_servers(self.servers, adversary_of(self.adversary, self.colluding))
        if self.colluding < 0 or self.missing < 0:
            raise ValueError(f"colluding ({self.colluding}) and missing ({self.missing}) must not be negative")
        check_choices(
            selector=self.selector,
            rounds=self.rounds,
            model_cells=self.model_cells,
            rows=self.rows,
            keep=self.keep,
        )

    # public bounds on people, to size the ring; Gaussian noise needs delta
    requires = Requires(people="bound", delta="Gaussian noise", weights=True, any_cut=True, averages=True)

    def plan(self, terms: Terms) -> SynthesisPlan:
        """Cut the strictest budget into rounds, and make the model as large as the study's limits allow."""
        for name in self.servers:
            member(terms, name)
        groups = groups_of(terms, partners_with(self.servers, self.colluding))
        apart = _held_apart(terms, groups, self.missing)
        shared = shared_people(terms) and self.colluding > 0
        dealt, proven = shared and not self.servers, adversary_of(self.adversary, self.colluding) == "active"
        # one row at one group of people: it moves two counts of a table by one each
        single = terms.unit.rows == terms.unit.parties == terms.unit.scale == parts_of(groups) == 1
        tossed = shared and proven and single
        parities = share_of_parities(
            terms, groups, colluding=self.colluding, apart=apart, coins=tossed and len(groups) == 1
        )
        select = partial(
            choosing,
            self.selector,
            self.rounds,
            schema=terms.schema,
            target=self.target,
            keep=self.keep,
            with_target=not apart,
            parity_share=parities if self.interactions else Fraction(0),
        )
        shares = noise_shares(terms, coordinator=self.coordinator_noise, dealt=dealt)
        who = {"colluding": self.colluding, "missing": self.missing}
        account = account_of(terms, select(1).budgets, shares=shares, parts=parts_of(groups), coins=tossed, **who)
        impossible = [one.mask(terms.schema) for one in self.zeros]
        # a round may ask for as much as helps with the least noise, that of a party's own tables
        least = account.alone if apart else account
        traffic = self.traffic // copies(self.servers)
        beside = most_held(terms, traffic) if apart else 0
        selector, size = size_of(
            terms, least, select, impossible, model_cells=self.model_cells, rows=self.rows, beside=beside
        )
        reach = None
        if apart:
            size = limit_traffic(terms, account, selector, size, traffic, proven=proven, groups=groups)
            reach = CutReach(
                terms=terms,
                groups=groups,
                account=account,
                proven=proven,
                rooms=size.rooms,
                servers=self.servers,
                coin_traffic=coin_traffic(terms, traffic) if account.coins else 0,
            )
        graph = sum_graph(len(terms.parties), **who) if len(terms.parties) > 1 else None
        return SynthesisPlan(
            terms=terms,
            selector=selector,
            account=account,
            size=size,
            reach=reach,
            masked_sums=MaskedSums(label="synthesis", graph=graph) if graph else None,
            zeros=self.zeros,
            # nobody knows whose rows are missing
            people=most_people(terms) if terms.unit.sizes_are_public and self.missing == 0 else None,
            wanted=self.rows,
        )

    # The parties' side; keys and openings are those of the masked sums. Groups of several parties multiply first.

    @step(reveals="public")
    def ask_round(self, party: Party[SynthesisPlan], message: Question) -> Nothing:
        """Check what the next round asks against this party's own study, and keep it."""
        party.plan.check_question(message)
        advance(party, "rounds asked", message.number)
        party.remember(_ASKED, message)
        return Nothing()

    def product_at(self, party: Party[SynthesisPlan]) -> SecureProduct:
        """Return the product of the round that was asked last."""
        reach = party.plan.reach
        now = reach.round_of(party.recall(_ASKED, Question)) if reach else None
        if now is None or now.product is None:
            raise RefusedError("this round has no table across parties: nothing is multiplied")
        return now.coins if now.coins and now.product.finished(party) else now.product

    def product_rows(self, party: Party[SynthesisPlan], start: int, stop: int) -> NDArray[np.uint8]:
        """Return rows of the one-hot matrix of a party's blocks of columns. Private."""
        asked, reach = party.recall(_ASKED, Question), party.plan.reach
        assert reach is not None  # noqa: S101 (these steps are asked of parties that multiply only)
        return reach.round_of(asked).layout.rows(party, (start, stop), _own_groups(party, asked).recode)

    @step(reveals="public")
    def product_keys(self, party: Party[SynthesisPlan], message: ProductStart) -> PublicKey:
        """Take the dealer's seed, make a key pair, publish the public key."""
        return self.product_at(party).product_keys(party, message)

    @step(reveals="sealed")
    def product_served(self, party: Party[SynthesisPlan], message: ServerTurn) -> Served:
        """Answer one stage of a server's work."""
        product = self.product_at(party)
        if not isinstance(product, ServedProduct):
            raise RefusedError("this study has no servers")
        return product.product_served(party, message)

    @step(reveals="masked")
    def count(self, party: Party[SynthesisPlan], message: Question) -> SumMasked:
        """Count the tables or parities of the round, add this party's share of the noise, mask the result."""
        plan, noise = party.plan, _noise(party, message)
        sums = plan.masked_sums
        assert sums is not None  # noqa: S101 (this step is asked of several parties only)
        if plan.reach is not None:
            # groups of people have several parties, or lack columns
            if party.recall(_ASKED, Question) != message:
                raise RefusedError(f"round {message.number} is counted as it was asked first: set a new edition")
            count = partial(_own_tables, party, message)
            return plan.reach.round_of(message).count(party, sums, message.number, count, why=_why(message))
        dimension = message.dimension(party.terms.schema.domain)
        masks = sums.masks_for(party, message.number, dimension, noise.ring(plan.most_rows, dimension))
        return masks.hide(party.contribute(noise, _counts(party, message), why=_why(message)))

    @step(reveals="noisy")
    def measure(self, party: Party[SynthesisPlan], message: Question) -> Opened:
        """Count the tables or parities of the round and add the whole noise; for a single party, its own curator."""
        noise = _noise(party, message)
        advance(party, "rounds of the synthesis", message.number)
        return Opened(values=party.release(noise, _counts(party, message), why=_why(message)))

    # The coordinator's side.

    def coordinate(self, session: Session[SynthesisPlan]) -> SyntheticTable:
        """Choose tables, open them as noisy sums and fit the model, round by round; then draw rows from it."""
        plan = session.plan
        sums = plan.masked_sums.start(session, once=plan.coordinator_noise) if plan.masked_sums else None
        counts = RoundCounts(
            account=plan.account,
            rooms=plan.size.rooms,
            people=plan.people,
            ask=lambda question: self._open(session, sums, question),
            reach=plan.reach,
            progress=session.progress,
        )
        fitted = synthesise(plan.selector, counts, plan.account.whole, zeros=plan.impossible)  # SELECT and MEASURE
        rows = plan.drawn(fitted.total)
        return draw_synthesis(session, fitted, counts.rounds, rows, plan.selector, counts.scanned)  # GENERATE

    def _open(
        self, session: Session[SynthesisPlan], sums: SumCoordinator[Question] | None, question: Question
    ) -> Answer:
        """Ask one round: a single party for tables with the whole noise, several for a sum under masks."""
        plan = session.plan
        noise, dimension = plan.account.noise(question), question.dimension(plan.account.domain)
        if sums is None:
            (party,) = session.parties
            values = session.ask(self.measure, question)[party].values
            if values.shape != (dimension,):
                raise InputError(f"{party} answered round {question.number} with {values.size} numbers")
            return Answer(values=values / noise.scale, variance=noise.variance(1), present=(party,))
        now = plan.reach.round_of(question) if plan.reach else None
        if now is not None:
            session.ask(self.ask_round, question)
            if now.product is not None:
                deal_products(session, self, now.product)
            if now.coins is not None:
                deal_products(session, self, now.coins)
        ring = now.ring if now else noise.ring(plan.most_rows, dimension)
        total = sums.total(self.count, lambda _: question, count=dimension, ring=ring)
        if total is None:
            return Answer(values=np.zeros(dimension), variance=UNKNOWN, present=())
        if now is not None:
            opened = total.values
            if plan.coordinator_noise:
                opened = session.contribute(now.noise_at(COORDINATOR), opened)
            counts, variances = now.scaled_up(opened / noise.scale)
            return Answer(values=counts, variance=max(variances), present=total.present, variances=variances)
        variance = noise.variance(len(total.present))
        return Answer(values=total.values / noise.scale, variance=variance, present=total.present)

    def read(self, plan: SynthesisPlan, folder: Path) -> SyntheticTable:
        """Read back the synthetic table, its model and the noisy tables."""
        return read_synthesis(plan.terms.schema, folder, plan.selector)


def _held_apart(terms: Terms, groups: Sequence[Group], missing: int) -> bool:
    """Return whether parties hold different columns; refuse what such a study cannot have."""
    every = set(terms.schema.names)
    lacking = any(group.people and not group.read_from.keys() >= every for group in groups)
    apart = shared_people(terms) or lacking
    if apart and (missing or not terms.unit.sizes_are_public or len(terms.parties) == 1):
        raise InputError(
            "where parties hold different columns, numbers of people are public and all parties answer: set "
            'neighbours = "replace", rows = 1 and missing = 0, and name at least two parties'
        )
    return apart


def _noise(party: Party[SynthesisPlan], question: Question) -> RoundNoise:
    """Return the noise of a question that this party's own study lets be asked."""
    party.plan.check_question(question)
    return party.plan.account.noise(question)


def _counts(party: Party[SynthesisPlan], question: Question) -> NDArray[np.int64]:
    """Return the exact counts of what is asked, cut to a public bound. Private."""
    return answer_of(question, party.table, most_rows(party.terms, party.name))


def _own_groups(party: Party[SynthesisPlan], question: Question) -> Grouping:
    """Return the groups of levels of a party's own columns."""
    whole, own = question.grouping(party.terms.schema.domain), schema_of(party.terms, party.name).domain
    return Grouping(own, tuple(whole.groups[place] for place in whole.domain.axes(own.names)))


def _own_tables(party: Party[SynthesisPlan], question: Question, tables: Sequence[Names]) -> list[NDArray[np.int64]]:
    """Return exact counts of a party's own columns, in one pass; of parities those of the two signs. Private."""
    groups = _own_groups(party, question)
    if not question.parity:
        return [one.values for one in party.table.marginals(tables, groups)]
    sums = parity_sums(groups, tables, lambda some: party.table.marginals(some, groups))
    people = most_rows(party.terms, party.name)
    return [np.array([people + one, people - one]) // 2 for one in sums]


def _why(question: Question) -> str:
    what = "parities" if question.parity else "tables"
    return f"round {question.number} of the synthesis: {len(question.tables)} noisy {what}"
