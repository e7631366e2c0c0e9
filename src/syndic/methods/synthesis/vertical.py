"""Vertical synthesis: one synthetic table of columns that different parties hold of the same people.

Round by round the coordinator asks for tables of counts. A table of one party's columns comes from that party, with the
whole noise. A table of two parties' columns is a product of one-hot matrices, made under masks
(`syndic.mpc.product`): both partners add a share of the noise to their share of it, and the noisy table opens once. A
model of all columns is fitted to what was opened, and rows are drawn from it.

*Neighbours*: one person's values are replaced, at all parties at once; who is in and how many are public. *Cost*: one
account of Gaussian privacy over tables within and across parties. The number of rounds and what each costs are fixed by
the study, and every party is charged for the whole round, whoever counts its tables. *Sensitivity*: one person moves
two counts by one in each table, so k tables by 2 k in squared l2. A person is at all parties, so the noise of a round
covers all its tables together: local tables are charged once, not once per party. That holds if all parties
were asked the same, which they show each other before they open anything (`syndic.methods.synthesis.vertical_agree`).

*Who sees what*: everybody sees the noisy tables and what was asked. The coordinator deals the triples and carries
sealed rows that it cannot read. A partner knows its own share of a table's noise; with `colluding` 1 the other share is
enough. Coordinator and one party together could read the rows of that party's partners. *Adversary*: with `adversary`
"active" parties prove that their rows are one-hot (`syndic.mpc.proof`), and the claim holds if any set of parties
without the coordinator, or the coordinator alone, deviates. "passive" is semi-honest. With `servers` three parties
multiply instead of the coordinator (`syndic.mpc.threeserver`), and only two of these together can read rows.

It has the place of the sketches of VertiMRF (Zhao et al. 2024), whose shared keys cost more privacy than is counted
there; tables are chosen as in PrivMRF (Cai et al. 2021) and AIM (McKenna et al. 2022), from noisy tables only.
"""

from functools import partial
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Coded
from syndic.errors import RefusedError
from syndic.kernel import (
    PARTNERS,
    SAME_PEOPLE,
    Adversary,
    Method,
    Nothing,
    Party,
    Requires,
    Session,
    Terms,
    adversary_of,
    member,
    schema_of,
    step,
)
from syndic.methods.layout import Names
from syndic.methods.onehot import hot_rows
from syndic.methods.synthesis.account import account_of
from syndic.methods.synthesis.measure import Question
from syndic.methods.synthesis.result import SyntheticTable, read_synthesis
from syndic.methods.synthesis.rounds import Answer, RemoteCounts
from syndic.methods.synthesis.size import check_choices, choosing, size_of
from syndic.methods.synthesis.vertical_agree import RoundClose, RoundKey, RoundKeys, check_vouchers, key_of, vouchers_of
from syndic.methods.synthesis.vertical_plan import VerticalPlan, limit_traffic
from syndic.methods.synthesis.vertical_rounds import OpenedRound, alone
from syndic.methods.synthesis.zeros import Zeros
from syndic.model.markov import Grouping
from syndic.mpc.dealer import deal_products
from syndic.mpc.order import advance
from syndic.mpc.product_messages import (
    ProductChallenge,
    ProductInbox,
    ProductKey,
    ProductOpening,
    ProductProof,
    ProductStart,
    ProductTurn,
    Served,
    ServerTurn,
)
from syndic.mpc.seal import Mail
from syndic.mpc.threeserver import ServedProduct, check_servers

_ROUNDS = "rounds of the synthesis"
_ASKED = "round asked"


@final
class Vertical(Method, tag="vertical"):
    """Parameters of the vertical synthesis.

    `selector`, `rounds`, `model_cells`, `rows`, `zeros`, `target` and `keep` are as in the synthesis of rows;
    `rows` is by default the public number of people, and `selector` "one_shot", since every round of chosen tables
    sends rows anew. `colluding`: 1 makes each partner's share of a table's noise enough by itself, since a partner
    can subtract its own; with 0 the guarantee holds against everybody but the partners. `adversary`: "active" lets
    parties prove that their rows are one-hot, so that a party that deviates cannot read a partner's record; it needs
    `colluding` 1 and is then the default. "passive" leaves the proof out. `servers`: three parties that multiply in
    place of the coordinator, so that it may collude with one party or server; two of them together can read all rows,
    and rows take twice the traffic. `traffic`: about how many bytes a person all
    tables across parties may take, masked rows counted once however many partners they are passed on to.
    """

    title: ClassVar[str] = "Vertical synthesis by a graphical model, tables across parties from secure products"
    paper: ClassVar[str] = (
        "after VertiMRF, Zhao et al. 2024; Cai et al. 2021; McKenna et al. 2022; matrix triples after Beaver 1991"
    )
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = (
        "semi-honest: every role follows the protocol, and the coordinator, which deals the triples, colludes with no "
        "party; unless the study lists identities, the coordinator must not forge keys"
    )

    selector: Literal["adaptive", "one_shot"] = "one_shot"
    rounds: int | None = None
    model_cells: int | None = None
    colluding: int = 1
    adversary: Adversary | None = None
    servers: tuple[str, ...] = ()
    traffic: int = 1400
    rows: int | None = None
    zeros: tuple[Zeros, ...] = ()
    target: str | None = None
    keep: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.colluding not in (0, 1):
            raise ValueError(f"colluding ({self.colluding}) must be 0 or 1: two partners share the noise of a table")
        check_servers(self.servers, adversary_of(self.adversary, self.colluding))
        if self.traffic < 1:
            raise ValueError(f"traffic ({self.traffic}) must be at least 1")
        check_choices(
            selector=self.selector,
            rounds=self.rounds,
            model_cells=self.model_cells,
            rows=self.rows,
            keep=self.keep,
        )

    @property
    def requires(self) -> Requires:
        """Different columns of the same people at all parties; Gaussian noise needs delta."""
        return SAME_PEOPLE

    def plan(self, terms: Terms) -> VerticalPlan:
        """Cut the strictest budget into rounds, and limit the model, the rounds and their traffic."""
        for name in self.servers:
            member(terms, name)
        select = partial(choosing, self.selector, self.rounds, schema=terms.schema, target=self.target, keep=self.keep)
        account = account_of(terms, select(1).budgets, colluding=self.colluding, missing=0, shares=PARTNERS)
        impossible = [one.mask(terms.schema) for one in self.zeros]
        size = size_of(terms, alone(account), select, impossible, model_cells=self.model_cells, rows=self.rows)
        selector = select(size.model_cells)
        proven = adversary_of(self.adversary, self.colluding) == "active"
        # the shares of two servers are sent, instead of masked rows once for all partners
        traffic = self.traffic // 2 if self.servers else self.traffic
        return VerticalPlan(
            terms=terms,
            selector=selector,
            account=account,
            size=limit_traffic(terms, account, selector, size, traffic, proven=proven),
            zeros=self.zeros,
            rows=self.rows if self.rows is not None else terms.parties[0].people or 0,
            proven=proven,
            servers=self.servers,
        )

    # The parties' side: a round is asked, vouched for, multiplied where parties meet in a table, and opened.

    @step(reveals="public")
    def ask_round(self, party: Party[VerticalPlan], message: Question) -> RoundKey:
        """Check what the next round asks against this party's own study, and keep it."""
        party.plan.check_question(message)
        advance(party, _ROUNDS, 3 * message.number - 2)
        party.remember(_ASKED, message)
        return key_of(party, message)

    @step(reveals="public")
    def vouch_round(self, party: Party[VerticalPlan], message: RoundKeys) -> Mail:
        """Show every other party what this one was asked."""
        asked = party.recall(_ASKED, Question)
        advance(party, _ROUNDS, 3 * asked.number - 1)
        return vouchers_of(party, asked, message.keys)

    @step(reveals="public")
    def product_keys(self, party: Party[VerticalPlan], message: ProductStart) -> ProductKey:
        """Take the dealer's seed, make a key pair, publish the public key."""
        asked = party.recall(_ASKED, Question)
        return party.plan.round_of(asked).product.product_keys(party, message)

    @step(reveals="sealed")
    def product_masked(self, party: Party[VerticalPlan], message: ProductTurn) -> ProductOpening:
        """Mask the rows of one chunk and seal them for the partners."""
        asked = party.recall(_ASKED, Question)
        return party.plan.round_of(asked).product.mask(party, message, partial(_onehot_rows, party, asked))

    @step(reveals="sealed")
    def product_served(self, party: Party[VerticalPlan], message: ServerTurn) -> Served:
        """Answer one stage of a server's work."""
        product = party.plan.round_of(party.recall(_ASKED, Question)).product
        if not isinstance(product, ServedProduct):
            raise RefusedError("this study has no servers")
        return product.product_served(party, message)

    @step(reveals="sealed")
    def product_proved(self, party: Party[VerticalPlan], message: ProductChallenge) -> ProductProof:
        """Prove that the masked rows of one chunk are one-hot."""
        asked = party.recall(_ASKED, Question)
        return party.plan.round_of(asked).product.prove(party, message, partial(_onehot_rows, party, asked))

    @step(reveals="sealed")
    def product_multiplied(self, party: Party[VerticalPlan], message: ProductInbox) -> Nothing:
        """Check the partners' proofs of the chunk and multiply it by their masked rows."""
        asked = party.recall(_ASKED, Question)
        return party.plan.round_of(asked).product.multiply(party, message, partial(_onehot_rows, party, asked))

    @step(reveals="masked")
    def open_round(self, party: Party[VerticalPlan], message: RoundClose) -> OpenedRound:
        """Complete the shares to tables, count the own ones, add noise, and mask what is shared."""
        asked = party.recall(_ASKED, Question)
        advance(party, _ROUNDS, 3 * asked.number)
        check_vouchers(party, asked, message.vouchers)
        why = f"round {asked.number} of the synthesis: {len(asked.tables)} tables"
        return party.plan.round_of(asked).open(party, partial(_count_tables, party, asked), why=why)

    # The coordinator's side.

    def coordinate(self, session: Session[VerticalPlan]) -> SyntheticTable:
        """Choose tables, open them and fit the model, round by round; then draw rows from it."""
        plan = session.plan
        counts = RemoteCounts(
            session=session,
            account=alone(plan.account),
            rooms=plan.size.rooms,
            people=plan.terms.parties[0].people,
            ask=lambda question: self.open(session, question),
            reach=plan,
        )
        # SELECT from noisy tables alone, and MEASURE, within parties and across two
        fitted = plan.selector.run(counts, plan.account.whole, zeros=plan.impossible)
        return counts.drawn(fitted, plan.rows, plan.selector)  # GENERATE

    def open(self, session: Session[VerticalPlan], question: Question) -> Answer:
        """Ask one round: every party checks it and vouches for it, partners multiply, what has noise is opened."""
        now, names = session.plan.round_of(question), session.parties
        keys = {name: one.public for name, one in session.ask(self.ask_round, question).items()}
        met = {name: RoundKeys(keys={other: keys[other] for other in names if other != name}) for name in names}
        vouched = session.ask(self.vouch_round, met)
        if now.layout.across:
            deal_products(session, self, now.product)
        closing = {
            name: RoundClose(vouchers={other: vouched[other].boxes[name] for other in names if other != name})
            for name in names
        }
        return now.answer(session.ask(self.open_round, closing))

    def read(self, plan: VerticalPlan, folder: Path) -> SyntheticTable:
        """Read back the synthetic table, its model and the noisy tables."""
        return read_synthesis(plan.terms.schema, folder, plan.selector)


def _own_groups(party: Party[VerticalPlan], question: Question) -> Grouping:
    """Return the groups of a party's own columns."""
    whole, own = question.grouping(party.terms.schema.domain), schema_of(party.terms, party.name).domain
    return Grouping(own, tuple(whole.groups[place] for place in whole.domain.axes(own.names)))


def _count_tables(party: Party[VerticalPlan], question: Question, tables: list[Names]) -> list[NDArray[np.int64]]:
    """Return exact counts of a party's own columns, in one pass. Private."""
    return [one.values for one in party.table.marginals(tables, _own_groups(party, question))]


def _onehot_rows(party: Party[VerticalPlan], question: Question, start: int, stop: int) -> NDArray[np.uint8]:
    """Return rows of the one-hot matrix of a party's blocks of columns, the last level of each left out. Private."""
    groups, blocks = _own_groups(party, question), party.plan.round_of(question).layout.blocks[party.name]
    domains = [groups.domain_of_groups.project(block) for block in blocks]
    names = tuple(dict.fromkeys(name for block in blocks for name in block))

    def codes_of(coded: Coded) -> list[NDArray[np.integer]]:
        codes = groups.recode(coded)
        return [domain.index([codes[name] for name in domain.names]) for domain in domains]

    sizes = [domain.size - 1 for domain in domains]
    return hot_rows(party.table.batches(names), codes_of, sizes, (start, stop))
