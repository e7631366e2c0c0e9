"""Noisy two-way tables across the parties of a vertical study: columns at different parties, the same people.

A two-way table of two columns is the product of their one-hot matrices. Two partners multiply them by a secure product
(`syndic.mpc.product`), add noise to their shares and open the noisy tables once. The accuracy is that of a trusted
curator, up to the share of noise that each partner knows. Tables of columns at one party come from that party alone,
with the same noise and in the same account.

*Neighbours*: one person's values are replaced, at all parties at once; which people are in the data is public.
*Sensitivity*: two counts change by one in each table, so k tables by 2 k in squared l2. *Cost*: one release of all
tables; every party is charged for the whole.

*Who sees what*: everybody sees the noisy tables. The coordinator deals the triples and forwards sealed rows that it
cannot read. A partner knows its own share of a table's noise; with `colluding` 1 the other share is enough. The
coordinator and one party together could read the rows of that party's partners. *Adversary*: with `adversary`
"active" parties prove that their rows are one-hot (`syndic.mpc.proof`), and the claim holds if any set of parties
without the coordinator, or the coordinator alone, deviates. "passive" is semi-honest. With `servers` three parties
multiply instead of the coordinator (`syndic.mpc.threeserver`), and only two of these together can read rows.
"""

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Factor
from syndic.errors import InputError
from syndic.kernel import (
    SAME_PEOPLE,
    Adversary,
    Message,
    Method,
    Nothing,
    Party,
    Requires,
    Session,
    Terms,
    adversary_of,
    budgets_of,
    member,
    schema_of,
    step,
)
from syndic.methods.histogram.crosstables_plan import CrosstablesPlan, TableNoise
from syndic.methods.histogram.crosstables_result import CrossTables, Names, Pair, read_tables
from syndic.methods.histogram.tables import cut
from syndic.methods.onehot import completed, onehot
from syndic.mpc.dealer import deal_products
from syndic.mpc.product_messages import (
    ProductChallenge,
    ProductInbox,
    ProductOpening,
    ProductProof,
    ProductTurn,
    partners_of,
)
from syndic.mpc.ring import OVERFLOW
from syndic.mpc.threeserver import check_servers, product_by
from syndic.mpc.triple import product_sizes
from syndic.noise import GaussianShare
from syndic.privacy import rho_for


class OpenedTables(Message):
    """A party's masked noisy shares of its cross-party tables, by partner; and its own noisy tables."""

    shares: dict[str, bytes]
    local: NDArray[np.int64]


@final
class Crosstables(Method, tag="crosstables"):
    """Parameters of the noisy two-way tables across parties.

    `pairs`: the pairs of columns to count, each at two different parties; by default all of them. `local`: also count
    every pair of columns at one party. `colluding`: 1 makes each partner's share of the noise enough by itself, since a
    partner can subtract its own share; with 0 the guarantee holds against everybody but the partners. `adversary`:
    "active" lets parties prove that their rows have at most a single one in each column, so that a party that deviates
    cannot read a partner's record; it needs `colluding` 1 and is then the default. "passive" leaves the proof out.
    `servers`: three parties that multiply in place of the coordinator, so that it may collude with one party or server;
    two of them together can read all rows.
    """

    title: ClassVar[str] = "Two-way tables across parties from a secure product"
    paper: ClassVar[str] = "matrix triples after Beaver 1991; replaces the sketches of VertiMRF"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = (
        "semi-honest: every role follows the protocol, and the coordinator, who deals the triples, colludes with no "
        "party; unless the study lists identities, the coordinator must not forge keys"
    )

    pairs: tuple[Pair, ...] = ()
    local: bool = False
    colluding: int = 1
    adversary: Adversary | None = None
    servers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.colluding not in (0, 1):
            raise ValueError(f"colluding ({self.colluding}) must be 0 or 1: a table's noise has two shares")
        check_servers(self.servers, adversary_of(self.adversary, self.colluding))
        if len({frozenset(pair) for pair in self.pairs}) != len(self.pairs):
            raise ValueError("pairs names the same two columns twice: they would be charged twice")

    @property
    def requires(self) -> Requires:
        """The same people, different columns."""
        return SAME_PEOPLE

    def plan(self, terms: Terms) -> CrosstablesPlan:
        """Choose the tables, calibrate the noise to the strictest budget, and size the rings for both."""
        for name in self.servers:
            member(terms, name)
        held = {party.name: schema_of(terms, party.name).names for party in terms.parties}
        across = {who: tuple(((one,), (other,)) for one, other in pairs) for who, pairs in self._across(held).items()}
        within = {name: tuple(itertools.combinations(own, 2)) if self.local else () for name, own in held.items()}
        named = {name for pair in self.pairs for name in pair}
        sent = {name: tuple((each,) for each in own if not named or each in named) for name, own in held.items()}
        return self.plan_of(terms, across, within, sent)

    def plan_of(
        self,
        terms: Terms,
        across: Mapping[Pair, tuple[tuple[Names, Names], ...]],
        within: Mapping[str, tuple[Pair, ...]],
        sent: Mapping[str, tuple[Names, ...]],
    ) -> CrosstablesPlan:
        """Return the plan of these tables: their noise and rings."""
        domain, names = terms.schema.domain, [left + right for tables in across.values() for left, right in tables]
        # the last cell is not sent: its counts follow from the others and from the party's own counts
        groups = {name: tuple(domain.project(each).size - 1 for each in own) for name, own in sent.items()}
        proven = adversary_of(self.adversary, self.colluding) == "active"
        noise = self._noise(terms, [*names, *(pair for pairs in within.values() for pair in pairs)])
        sizes = product_sizes(
            rows=terms.parties[0].people or 1,
            entry=1,
            signed=False,
            headroom=noise.tail(OVERFLOW / noise.dimension, 2),
            columns=[sum(each) for each in groups.values()],
            proven=proven,
            chunk_bytes=min(1 << 24, terms.limits.message_mb * 10**6 // (4 * len(terms.parties))),
        )
        product = product_by(
            self.servers, label="product", sizes=sizes, pairs=tuple(across), groups=groups, proven=proven
        )
        return CrosstablesPlan(terms=terms, across=across, within=within, sent=sent, noise=noise, product=product)

    # The parties' side; keys are those of the secure product.

    @step(reveals="sealed")
    def product_masked(self, party: Party[CrosstablesPlan], message: ProductTurn) -> ProductOpening:
        """Mask the rows of one chunk and seal them for the partners."""
        return party.plan.product.mask(party, message, partial(self.product_matrix, party))

    @step(reveals="sealed")
    def product_proved(self, party: Party[CrosstablesPlan], message: ProductChallenge) -> ProductProof:
        """Prove that the masked rows of one chunk are one-hot."""
        return party.plan.product.prove(party, message, partial(self.product_matrix, party))

    @step(reveals="sealed")
    def product_multiplied(self, party: Party[CrosstablesPlan], message: ProductInbox) -> Nothing:
        """Check the partners' proofs of the chunk and multiply it by their masked rows."""
        return party.plan.product.multiply(party, message, partial(self.product_matrix, party))

    @step(reveals="masked")
    def open_tables(self, party: Party[CrosstablesPlan], message: Nothing) -> OpenedTables:
        """Reconstruct full tables from the shares, add this party's share of the noise, and mask the result."""
        del message
        return open_shares(party)

    def product_matrix(self, party: Party[CrosstablesPlan], start: int, stop: int) -> NDArray[Any]:
        """Return rows of the party's one-hot matrix. Private."""
        return onehot_rows(party, start, stop)

    # The coordinator's side.

    def coordinate(self, session: Session[CrosstablesPlan]) -> CrossTables:
        """Deal triples, forward messages, add up the noisy shares of each pair of parties, split them into tables."""
        deal_products(session, self, session.plan.product)
        opened = session.ask(self.open_tables, Nothing())
        return CrossTables(note=session.plan.note, tables=tables_from(session.plan, opened))

    def read(self, plan: CrosstablesPlan, folder: Path) -> CrossTables:
        """Read back `crosstables.parquet` and `crosstables.json`."""
        return read_tables(plan.domains(plan.tables), folder)

    def _across(self, held: Mapping[str, tuple[str, ...]]) -> dict[Pair, tuple[Pair, ...]]:
        """Return the tables of every pair of parties that has any; refuse pairs of columns at the same party."""
        every = {
            (left, right): tuple(itertools.product(held[left], held[right]))
            for left, right in itertools.combinations(held, 2)
        }
        known = {frozenset(pair) for pairs in every.values() for pair in pairs}
        for pair in self.pairs:
            if frozenset(pair) not in known:
                raise InputError(f"pairs: {pair[0]} and {pair[1]} must be columns of two different parties")
        wanted = {frozenset(pair) for pair in self.pairs} or known
        chosen = {who: tuple(pair for pair in pairs if frozenset(pair) in wanted) for who, pairs in every.items()}
        across = {parties: pairs for parties, pairs in chosen.items() if pairs}
        for name in held:
            if not partners_of(tuple(across), name):
                raise InputError(f"pairs: none has a column of party '{name}': add one, or leave the party out")
        return across

    def _noise(self, terms: Terms, tables: Sequence[Names]) -> GaussianShare:
        """Return the share of the noise that each of two partners adds, calibrated to the strictest budget."""
        return GaussianShare(
            # one person's values at all parties at once: in each table one count goes down and one goes up
            sensitivity_squared=Fraction(2 * len(tables)),
            rho=min(rho_for(budget.epsilon, budget.delta) for budget in budgets_of(terms)),
            parties=2,
            colluding=self.colluding,
            dimension=sum(terms.schema.domain.project(names).size for names in tables),
        )


def onehot_rows(party: Party[CrosstablesPlan], start: int, stop: int) -> NDArray[Any]:
    """Return rows of the party's one-hot matrix, a part for each set of columns that it sends. Private."""
    plan = party.plan
    return onehot(party.table, plan.domains(plan.sent[party.name]), plan.product.groups[party.name], (start, stop))


def open_shares(party: Party[CrosstablesPlan]) -> OpenedTables:
    """Reconstruct full tables from a party's shares, add its share of the noise, and mask the result."""
    plan, product = party.plan, party.plan.product
    shares = product.shares(party)
    names, ring = plan.sent[party.name], product.sizes.ring
    counted = [table.values.ravel() for table in party.table.marginals([*names, *plan.within[party.name]])]
    margins, local = dict(zip(names, counted, strict=False)), counted[len(names) :]
    groups = zip(names, product.groups[party.name], strict=True)
    product.check_unchanged(party, np.concatenate([margins[name][:group] for name, group in groups]))
    values = {partner: _tables_of(plan, party.name, partner, share, margins) for partner, share in shares.items()}
    noise = TableNoise(share=plan.noise, alone=sum(each.size for each in local))
    noisy = party.contribute(noise, np.concatenate([*values.values(), *local]), why="noisy tables across parties")
    hidden = {}
    start = 0
    for partner, own in values.items():
        part = noisy[start : start + own.size]
        hidden[partner] = ring.pack(product.hide(party, partner, part, ring))
        start += own.size
    return OpenedTables(shares=hidden, local=noisy[start:])


def tables_from(plan: CrosstablesPlan, opened: Mapping[str, OpenedTables]) -> tuple[Factor, ...]:
    """Add up the noisy shares of each pair of parties, and split them into tables."""
    sizes, ring, tables = plan.product.sizes, plan.product.sizes.ring, list[Factor]()
    for (left, right), pairs in plan.across.items():
        domains = plan.domains([first + second for first, second in pairs])
        count = sum(domain.size for domain in domains)
        parts = [ring.unpack(opened[one].shares[other], count) for one, other in ((left, right), (right, left))]
        tables += cut(domains, ring.lift(ring.add(*parts)) + sizes.centre)
    for name, own in plan.within.items():
        tables += cut(plan.domains(own), opened[name].local) if own else ()
    return tuple(tables)


def _tables_of(
    plan: CrosstablesPlan, own: str, partner: str, share: NDArray[Any], margins: Mapping[Names, NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Return a party's shares of the tables with a partner, with the cells that were not sent filled in."""
    sizes = plan.product.sizes
    left, right = plan.product.pair(own, partner)
    is_left, rows, columns = left == own, plan.slices(left), plan.slices(right)
    found = []
    for first, second in plan.across[left, right]:
        counts = margins[first if is_left else second]
        full = completed(share[rows[first], columns[second]], counts[:-1], sizes.rows, left=is_left)
        found.append(sizes.ring.lift(sizes.ring.reduce(full - sizes.centre if is_left else full)).ravel())
    return np.concatenate(found)
