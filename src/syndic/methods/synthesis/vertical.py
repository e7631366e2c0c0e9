"""Vertical synthesis: one synthetic table of columns that different parties hold of the same people.

Round by round the coordinator asks for tables of counts. A table of one party's columns comes from that party, with the
whole noise. A table of two parties' columns is a product of one-hot matrices, made under masks
(`syndic.mpc.product`): both partners add a share of the noise to their share of it, and the noisy table opens once. A
model of all columns is fitted to what was opened, and rows are drawn from it.

*Neighbours*: one person's values are replaced, at all parties at once; who is in and how many are public. *Cost*: one
account of Gaussian privacy over tables within and across parties. The number of rounds and what each costs are fixed by
the study, and every party is charged for the whole round, whoever counts its tables. *Sensitivity*: one person moves
two counts by one in each table, so k tables by 2 k in squared l2. A person is at all parties, so the noise of a round
covers all its tables together: local tables are paid for once, not once for each party. That holds if all parties
were asked the same, which they show each other before they open anything (`syndic.methods.synthesis.vertical_agree`).

*Who sees what*: everybody sees the noisy tables and what was asked. The coordinator deals the triples and carries
sealed rows that it cannot read. A partner knows its own share of a table's noise; with `colluding` 1 the other share is
enough. Coordinator and one party together could read the rows of that party's partners. *Semi-honest*.

It has the place of the sketches of VertiMRF (Zhao et al. 2024), whose shared keys cost more privacy than is counted
there; tables are chosen as in PrivMRF (Cai et al. 2021) and AIM (McKenna et al. 2022), from noisy tables only.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.kernel import Disclosure, Party, Resources, Session, Terms, member, step
from syndic.methods.refusals import check_people, wrong_size
from syndic.methods.synthesis.account import Account, account_of
from syndic.methods.synthesis.measure import Question
from syndic.methods.synthesis.result import SyntheticTable, read_synthesis
from syndic.methods.synthesis.rounds import Answer, RemoteCounts
from syndic.methods.synthesis.size import Size, check_choices, choosing, size_of
from syndic.methods.synthesis.vertical_agree import RoundClose, RoundKey, RoundKeys, check_vouchers, key_of, vouchers_of
from syndic.methods.synthesis.vertical_disclosure import check_size, disclosure_of, estimate_of, with_traffic
from syndic.methods.synthesis.vertical_layout import block_matrix, count_tables
from syndic.methods.synthesis.vertical_requirements import check_aligned, check_all_held
from syndic.methods.synthesis.vertical_round import (
    PARTNERS,
    MixedNoise,
    OpenedRound,
    Round,
    RoundPlanner,
    alone,
    pairs_traffic,
    round_of,
)
from syndic.methods.synthesis.zeros import Zeros
from syndic.model.markov import Adaptive, Impossible
from syndic.mpc.dealer import deal_products
from syndic.mpc.order import advance
from syndic.mpc.product import SecureProduct, UsesProducts
from syndic.mpc.product_messages import ProductClose
from syndic.mpc.seal import Mail
from syndic.privacy import Event

_ROUNDS = "rounds of the synthesis"
_ASKED = "round asked"


@final
class Vertical(UsesProducts, tag="vertical"):
    """Parameters of the vertical synthesis.

    `selector`, `rounds`, `model_cells`, `rows` and `zeros` are as in the synthesis of rows; `rows` is by default the
    public number of people, and `selector` "one_shot", since every round of chosen tables sends rows anew. `colluding`:
    1 makes each partner's share of a table's noise enough by itself, since a partner can take its own off; with 0 the
    guarantee holds against everybody but the partners. `traffic`: about how many bytes a person all tables across
    parties may take, masked rows counted once however many partners they are passed on to.
    """

    title: ClassVar[str] = "Vertical synthesis by a graphical model, tables across parties from secure products"
    paper: ClassVar[str] = (
        "after VertiMRF, Zhao et al. 2024; Cai et al. 2021; McKenna et al. 2022; matrix triples after Beaver 1991"
    )
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = (
        "semi-honest: everybody follows the steps, and the coordinator, who deals the triples, pools what it knows "
        "with no party; unless the study gives identities, the coordinator must not forge keys"
    )

    selector: Literal["adaptive", "one_shot"] = "one_shot"
    rounds: int | None = None
    model_cells: int | None = None
    colluding: int = 1
    traffic: int = 850
    rows: int | None = None
    zeros: tuple[Zeros, ...] = ()

    def __post_init__(self) -> None:
        if self.colluding not in (0, 1):
            raise ValueError(f"colluding ({self.colluding}) must be 0 or 1: two partners share the noise of a table")
        if self.traffic < 1:
            raise ValueError(f"traffic ({self.traffic}) must be at least 1")
        check_choices(selector=self.selector, rounds=self.rounds, model_cells=self.model_cells, rows=self.rows)

    @property
    def simulation_only(self) -> bool:
        """It keeps its promise."""
        return False

    # The parties' side; keys, masked rows and products are those of the secure product.

    @step(reveals="public")
    def ask_round(self, party: Party, message: Question) -> RoundKey:
        """Check what the next round asks against this party's own study, and keep it."""
        self.spread(party.terms).check(message)
        advance(party, _ROUNDS, 3 * message.number - 2)
        party.remember(_ASKED, message)
        return key_of(party, message)

    @step(reveals="public")
    def vouch_round(self, party: Party, message: RoundKeys) -> Mail:
        """Show every other party what this one was asked."""
        asked = party.recall(_ASKED, Question)
        advance(party, _ROUNDS, 3 * asked.number - 1)
        return vouchers_of(party, asked, message.keys)

    @step(reveals="masked")
    def open_round(self, party: Party, message: RoundClose) -> OpenedRound:
        """Complete the shares to tables, count the own ones, add noise, and mask what is shared."""
        asked = party.recall(_ASKED, Question)
        advance(party, _ROUNDS, 3 * asked.number)
        check_vouchers(party, asked, message.vouchers)
        now = self.round_of(party.terms, asked)
        blocks, places = now.layout.blocks.get(party.name, ()), now.layout.within[party.name]
        shares = self.product_shares(party, message.products) if blocks else {}
        counted = count_tables(party.table, now.grouping, [*blocks, *(now.layout.tables[place] for place in places)])
        check_people(party, *(int(one.sum()) for one in counted))
        margins = dict(zip(blocks, counted, strict=False))
        if blocks:
            self.product_unchanged(party, np.concatenate([one.ravel()[:-1] for one in margins.values()]))
        pairs = {partner: now.work.pair(party.name, partner) for partner in shares}
        values = {
            partner: now.shares(party.name, pairs[partner], share.ravel().astype(np.uint64), margins)
            for partner, share in shares.items()
        }
        local = [one.ravel() for one in counted[len(blocks) :]]
        noise = MixedNoise(now.across, now.within, sum(one.size for one in local))
        every = np.concatenate([np.zeros(0, dtype=np.int64), *values.values(), *local])
        noisy = party.contribute(noise, every, why=f"round {asked.number} of the synthesis: {len(asked.tables)} tables")
        return self._hidden(party, now, {partner: own.size for partner, own in values.items()}, noisy)

    def _hidden(self, party: Party, now: Round, counts: dict[str, int], noisy: NDArray[np.int64]) -> OpenedRound:
        hidden, start = {}, 0
        for partner, count in counts.items():
            part = self.product_hidden(party, partner, noisy[start : start + count], now.ring)
            hidden[partner] = now.ring.pack(part)
            start += count
        return OpenedRound(shares=hidden, local=noisy[start:])

    def product_work(self, party: Party) -> SecureProduct:
        """Return what the round that was asked multiplies."""
        return self.round_of(party.terms, party.recall(_ASKED, Question)).work

    def product_matrix(self, party: Party, start: int, stop: int) -> NDArray[Any]:
        """Return rows of the one-hot matrix that the round needs of this party."""
        now = self.round_of(party.terms, party.recall(_ASKED, Question))
        matrix = block_matrix(party.table, now.grouping, now.layout.blocks[party.name], (start, stop))
        if len(matrix) != stop - start:
            raise wrong_size(party.name, member(party.terms, party.name).people)
        return matrix

    # The coordinator's side.

    def coordinate(self, session: Session) -> SyntheticTable:
        """Ask round by round, fit the model, draw rows from it."""
        terms = session.terms
        spread = self.spread(terms)
        people = terms.parties[0].people
        asker = RemoteCounts(
            session=session,
            account=alone(spread.account),
            rooms=spread.rooms,
            people=people,
            ask=lambda question: self.opened(session, question),
            reach=spread,
        )
        fitted = self.selector_of(terms).run(asker, spread.account.whole, zeros=self.zeros_of(terms))
        return asker.drawn(fitted, self.rows if self.rows is not None else people or 0)

    def opened(self, session: Session, question: Question) -> Answer:
        """Ask one round: every party checks it and vouches for it, partners multiply, what has noise is opened."""
        now, names = self.round_of(session.terms, question), session.parties
        keys = {name: one.public for name, one in session.ask(self.ask_round, question).items()}
        met = {name: RoundKeys(keys={other: keys[other] for other in names if other != name}) for name in names}
        vouched = session.ask(self.vouch_round, met)
        products = deal_products(session, self, now.work) if now.layout.across else {}
        nothing = ProductClose(carries={}, boxes={})
        closing = {
            name: RoundClose(
                products=products.get(name, nothing),
                vouchers={other: vouched[other].boxes[name] for other in names if other != name},
            )
            for name in names
        }
        return now.answer(session.ask(self.open_round, closing))

    def read_result(self, terms: Terms, folder: Path) -> SyntheticTable:
        """Read back the synthetic table, its model and the noisy tables."""
        return read_synthesis(terms.schema, folder)

    # What is known before any row is read.

    def selector_of(self, terms: Terms) -> Adaptive:
        """Return what chooses the tables, with a model as large as the study allows."""
        return self.choosing(self.size_of(terms).model_cells)

    def choosing(self, cells: int) -> Adaptive:
        """Return what chooses the tables of a model of so many cells."""
        return choosing(self.selector, self.rounds, cells)

    def zeros_of(self, terms: Terms) -> tuple[Impossible, ...]:
        """Return the impossible cells by code."""
        return tuple(one.mask(terms.schema) for one in self.zeros)

    def spread(self, terms: Terms) -> RoundPlanner:
        """Return which tables can be counted, in which rounds."""
        return RoundPlanner(terms=terms, account=self.account_of(terms), rooms=self.size_of(terms).rooms)

    def round_of(self, terms: Terms, question: Question) -> Round:
        """Return how a question that was checked is answered."""
        return _round_of(self, terms, question)  # type: ignore[arg-type]  # a study is frozen: it has a hash

    def size_of(self, terms: Terms) -> Size:
        """Return how large the model may be and what rounds may ask; raises `InputError` if nothing fits."""
        return _size_of(self, terms)  # type: ignore[arg-type]  # a study is frozen: it has a hash

    def account_of(self, terms: Terms) -> Account:
        """Return what every round costs: the strictest budget in fixed parts."""
        return _account_of(self, terms)  # type: ignore[arg-type]  # a study is frozen: it has a hash

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with what to change."""
        check_aligned(terms)
        check_all_held(terms)
        try:
            check_size(terms, self.estimate(terms))
        except ValueError as error:
            raise InputError(f"the noise cannot be made: {error}") from None

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """One event a round, the same for every party: each is charged for the whole release."""
        member(terms, party)
        return self.account_of(terms).events

    def estimate(self, terms: Terms) -> Resources:
        """Bytes of the largest reply, memory, time for multiplying and fitting."""
        return estimate_of(terms, self.size_of(terms), self.account_of(terms))

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        return disclosure_of(terms, self.account_of(terms), self.size_of(terms))


@lru_cache(maxsize=16)
def _round_of(protocol: Vertical, terms: Terms, question: Question) -> Round:
    return round_of(terms, protocol.account_of(terms), question)


@lru_cache(maxsize=32)
def _size_of(protocol: Vertical, terms: Terms) -> Size:
    size = size_of(
        terms,
        alone(protocol.account_of(terms)),
        protocol.choosing,
        protocol.zeros_of(terms),
        model_cells=protocol.model_cells,
        rows=protocol.rows,
    )
    selector = protocol.choosing(size.model_cells)
    pairs = pairs_traffic(terms, protocol.account_of(terms), selector)
    return with_traffic(terms, size, protocol.traffic, pairs)


@lru_cache(maxsize=32)
def _account_of(protocol: Vertical, terms: Terms) -> Account:
    cut = protocol.choosing(1).budgets
    return account_of(terms, cut, (), colluding=protocol.colluding, missing=0, shares=PARTNERS)
