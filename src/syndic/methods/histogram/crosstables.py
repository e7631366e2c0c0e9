"""Noisy two-way tables across the parties of a vertical study: columns at different parties, the same people.

A two-way table of two columns is the product of their one-hot matrices. Partners multiply them under masks
(`syndic.mpc.product`), add noise to their shares and open the noisy tables once: the accuracy of a trusted curator,
up to the share of noise that each partner knows. Tables of columns at one party come from that party alone, with the
same noise and in the same account.

*Neighbours*: one person's values are replaced, at all parties at once; who is in and how many are public.
*Sensitivity*: two counts move by one in each table, so k tables by 2 k in squared l2. *Cost*: one release of all
tables; every party is charged for the whole.

*Who sees what*: everybody sees the noisy tables. The coordinator deals the triples and carries sealed rows that it
cannot read. A partner knows its own share of a table's noise; with `colluding` 1 the other share is enough. Coordinator
and one party together could read the rows of that party's partners. *Semi-honest*.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Factor
from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel import (
    Disclosure,
    Message,
    Party,
    Resources,
    Session,
    Terms,
    member,
    step,
)
from syndic.methods.histogram.crosstables_layout import Layout, layout_of
from syndic.methods.histogram.crosstables_result import CrossNote, CrossTables, Pair, read_tables
from syndic.methods.histogram.tables import cut
from syndic.methods.onehot import completed, onehot
from syndic.methods.refusals import check_fits, check_people, wrong_size
from syndic.methods.synthesis.vertical_requirements import budgets_of, check_aligned
from syndic.mpc.dealer import secure_products
from syndic.mpc.product import UsesProduct
from syndic.mpc.product_messages import ProductClose, partners_of
from syndic.mpc.triple import ProductSizes
from syndic.noise import DiscreteGaussian, GaussianShare
from syndic.noise.shares import sum_rho
from syndic.privacy import Event, zcdp_epsilon
from syndic.random import Randomness


class OpenedTables(Message):
    """A party's noisy shares of its cross-party tables, by partner, under a mask; and its own noisy tables."""

    shares: dict[str, bytes]
    local: NDArray[np.int64]


class TableNoise(Document):
    """Noise shares on tables across parties, and the whole noise on the last `alone` values, a party's own tables."""

    share: GaussianShare
    alone: int

    @property
    def event(self) -> Event:
        """What all opened tables together cost."""
        return self.share.event

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with their noise."""
        shared = self.share.draw(values.size - self.alone, randomness)
        noise: NDArray[np.int64] = np.concatenate([shared, whole_noise(self.share).draw(self.alone, randomness)])
        return values + noise


def whole_noise(share: GaussianShare) -> DiscreteGaussian:
    """Return the noise of a party's own tables: one discrete Gaussian with the parameter of all honest shares together.

    Not one made for the budget: where shares are of the least size there is more noise than that, and the charge,
    which counts tables across and within parties alike, is for so much of it on all of them.
    """
    sigma_squared = share.honest * share.sigma_squared
    square = share.sensitivity_squared
    return DiscreteGaussian(sensitivity_squared=square, rho=square / (2 * sigma_squared))


@final
class Crosstables(UsesProduct, tag="crosstables"):
    """Parameters of the noisy two-way tables across parties.

    `pairs`: the pairs of columns to count, each at two different parties; else all of them. `local`: count every pair
    of columns at one party too. `colluding`: 1 makes each partner's share of the noise enough by itself, since a
    partner can take its own off the published tables; with 0 the guarantee holds against everybody but the partners.
    `check_rows`: send all levels, and let partners check that every row has one in each column. `lift`: share blocks
    of rows in a smaller ring than the result; less traffic, but a dishonest dealer could do more than shift counts.
    """

    title: ClassVar[str] = "Two-way tables across parties from a secure product"
    paper: ClassVar[str] = "matrix triples after Beaver 1991; replaces the sketches of VertiMRF"
    partition: ClassVar[Literal["horizontal", "vertical"]] = "vertical"
    trust: ClassVar[str] = (
        "semi-honest: everybody follows the steps, and the coordinator, who deals the triples, pools what it knows "
        "with no party; unless the study gives identities, the coordinator must not forge keys"
    )

    pairs: tuple[Pair, ...] = ()
    local: bool = False
    colluding: int = 1
    check_rows: bool = False
    lift: bool = True

    def __post_init__(self) -> None:
        if self.colluding not in (0, 1):
            raise ValueError(f"colluding ({self.colluding}) must be 0 or 1: two partners share the noise of a table")
        if len({frozenset(pair) for pair in self.pairs}) != len(self.pairs):
            raise ValueError("pairs names the same two columns twice: they would be paid for twice")

    @property
    def simulation_only(self) -> bool:
        """It keeps its promise."""
        return False

    # The parties' side; keys, masked rows and products are those of the secure product.

    @step(reveals="masked")
    def open_tables(self, party: Party, message: ProductClose) -> OpenedTables:
        """Complete the shares to tables, add this party's share of the noise, and mask the result."""
        layout = self.layout(party.terms)
        shares = self.product_shares(party, message)
        names, ring = layout.sent[party.name], layout.sizes.whole
        counted = party.table.marginals([*((name,) for name in names), *layout.within[party.name]])
        margins = {name: table.values for name, table in zip(names, counted, strict=False)}
        check_people(party, *(int(each.sum()) for each in margins.values()))
        groups = zip(names, layout.groups[party.name], strict=True)
        self.product_unchanged(party, np.concatenate([margins[name][:group] for name, group in groups]))
        local = [table.values.ravel() for table in counted[len(names) :]]
        values = {partner: self._tables_of(layout, party.name, partner, shares[partner], margins) for partner in shares}
        noise = TableNoise(share=layout.noise, alone=sum(each.size for each in local))
        noisy = party.contribute(noise, np.concatenate([*values.values(), *local]), why="noisy two-way tables")
        hidden = {}
        start = 0
        for partner, own in values.items():
            part = noisy[start : start + own.size]
            hidden[partner] = ring.pack(self.product_hidden(party, partner, part, ring))
            start += own.size
        return OpenedTables(shares=hidden, local=noisy[start:])

    def product_matrix(self, party: Party, start: int, stop: int) -> NDArray[Any]:
        """Return rows of the party's one-hot matrix."""
        layout = self.layout(party.terms)
        matrix = onehot(party.table, layout.sent[party.name], layout.groups[party.name], (start, stop))
        if len(matrix) != stop - start:
            raise wrong_size(party.name, member(party.terms, party.name).people)
        return matrix

    # The coordinator's side.

    def coordinate(self, session: Session) -> CrossTables:
        """Deal, carry, add up the noisy shares of every pair of parties, and cut them into tables."""
        layout = self.layout(session.terms)
        ring = layout.sizes.whole
        opened = session.ask(self.open_tables, secure_products(session, self))
        tables: list[Factor] = []
        for left, right in layout.pairs:
            domains = layout.domains(layout.across[left, right])
            count = sum(domain.size for domain in domains)
            parts = [ring.unpack(opened[one].shares[other], count) for one, other in ((left, right), (right, left))]
            tables += cut(domains, ring.lift(ring.add(*parts)) + layout.sizes.centre)
        for name, own in layout.within.items():
            tables += cut(layout.domains(own), opened[name].local) if own else ()
        return CrossTables(note=self._note(session.terms), tables=tuple(tables))

    def read_result(self, terms: Terms, folder: Path) -> CrossTables:
        """Read back `crosstables.parquet` and `crosstables.json`."""
        layout = self.layout(terms)
        return read_tables(layout.domains(layout.tables), folder)

    # What is known before any row is read.

    def layout(self, terms: Terms) -> Layout:
        """Return which tables are counted, with what noise, in what rings."""
        options = {name: getattr(self, name) for name in self.__struct_fields__}
        return layout_of(terms, **options)  # type: ignore[arg-type]  # a study is frozen, so it can be a key

    def product_pairs(self, terms: Terms) -> tuple[Pair, ...]:
        """Return the pairs of parties that have a table to count."""
        return self.layout(terms).pairs

    def product_groups(self, terms: Terms, party: str) -> tuple[int, ...]:
        """Return the columns sent for each of the party's columns: a level fewer than it has, if rows go unchecked.

        The last level is what is missing to one, so its counts follow from the others and from the party's own.
        """
        return self.layout(terms).groups[party]

    def product_checked(self, terms: Terms) -> bool:
        """Return whether row sums are checked."""
        del terms
        return self.check_rows

    def product_sizes(self, terms: Terms) -> ProductSizes:
        """Return rings and blocks, with room for every person in one cell and for the noise."""
        return self.layout(terms).sizes

    def noise_of(self, terms: Terms) -> GaussianShare:
        """Return the share of the noise that each of two partners adds: one law for all, for the strictest budget."""
        return self.layout(terms).noise

    def check(self, terms: Terms) -> None:
        """Refuse what cannot work, with what to change."""
        check_aligned(terms)
        held = [name for party in terms.parties for name in party.columns or ()]
        for pair in self.pairs:
            if {name in held for name in pair} != {True} or _holder(terms, pair[0]) == _holder(terms, pair[1]):
                raise InputError(f"pairs: {pair[0]} and {pair[1]} must be columns of two different parties")
        if not self.layout(terms).pairs:
            raise InputError("no two columns of different parties are counted")
        for party in terms.parties:
            if not partners_of(self.product_pairs(terms), party.name):
                raise InputError(f"pairs: no column of party '{party.name}' is in one; name one or leave the party out")
        self._check_size(terms)

    def spends(self, terms: Terms, party: str) -> tuple[Event, ...]:
        """One release of all tables: every party is charged for the whole."""
        member(terms, party)
        return (self.noise_of(terms).event,)

    def estimate(self, terms: Terms) -> Resources:
        """Bytes of the largest reply, memory, time for dealing and multiplying."""
        layout, note = self.layout(terms), self._note(terms)
        sizes, cells, widths = layout.sizes, layout.cells, [sum(each) for each in layout.groups.values()]
        partners, chunk = len(terms.parties) - 1, sizes.small.packed_bytes(sizes.chunk * max(widths))
        wraps = sizes.carry.packed_bytes(sum(cells) * -(-sizes.rows // sizes.block)) if sizes.lifted else 0
        outside, partner = self.epsilons(terms)
        return Resources(
            memory_bytes=10**8 + 16 * chunk * (partners + 1) + 6 * wraps + 64 * sum(cells),
            reply_bytes=max(chunk, partners * wraps // max(1, len(cells)), 8 * max(cells)) + 1000,
            rounds=3 + 2 * sizes.chunks,
            seconds=round(1.0 + sizes.rows * (sum(widths) * 4e-8 + sum(cells) * 2e-10), 1),
            notes=(
                f"{len(note.tables):,} tables; rows are masked with {sizes.small.bits} bits an entry in blocks of "
                f"{sizes.block:,} rows, tables are opened with {sizes.whole.bits} bits a cell",
                f"standard deviation {note.across:.3g} on every count across parties, {note.within:.3g} within one",
                f"epsilon {outside:.4g} against all but the partners of a table, {partner:.4g} against a partner",
            ),
        )

    def epsilons(self, terms: Terms) -> tuple[float, float]:
        """Return the epsilon against everyone who knows no share of the noise, and against a partner who knows one."""
        noise = self.noise_of(terms)
        delta = min(budget.delta for budget in budgets_of(terms))
        one, both = (
            sum_rho(noise.sensitivity_squared, noise.sigma_squared, shares, noise.dimension) for shares in (1, 2)
        )
        if self.local:  # within a party there is the whole noise, and no more of it for anyone
            both = max(both, noise.event.rho)
        return float(zcdp_epsilon(both, delta)), float(zcdp_epsilon(one, delta))

    def disclosure(self, terms: Terms) -> Disclosure:
        """State what every role sees."""
        tables, noisy = len(self.layout(terms).tables), "the noisy tables"
        outside, partner = self.epsilons(terms)
        rows = (
            "rows are checked to sum to one in each column; entries that balance each other within a row are not found"
            if self.check_rows
            else "nothing checks the rows: a party that puts a large number into one reads a partner's record"
        )
        dealer = (
            " or make a block of rows wrap where it likes and see whether it did"
            if self.product_sizes(terms).lifted
            else ""
        )
        return Disclosure(
            sees={
                "coordinator": f"sealed rows that it cannot read, shares under a mask that it lacks, and {noisy}",
                "other parties": f"masked rows, which look uniform, and {noisy}; each knows its own share of the noise",
                "anyone with the release": noisy,
            },
            sensitivity=(
                f"replacing one person's values at all parties at once moves two counts by one in each of {tables} "
                f"table(s), so by {2 * tables} in squared l2; every party is charged for the whole release"
            ),
            not_protected=(
                f"epsilon is {outside:.4g} against all but the partners of a table, {partner:.4g} against a partner, "
                "who can take its own share of the noise off",
                "coordinator and one party together: they can read the rows of that party's partners",
                f"a party that does not follow the steps: {rows}",
                f"a coordinator that deals wrong triples: it can shift counts by what it chooses{dealer}",
                "who the people are and how many: aligned rows show it to every party",
                "what is true of groups: a pattern that many people share shows, as it should",
            ),
        )

    def _note(self, terms: Terms) -> CrossNote:
        layout = self.layout(terms)
        noise = layout.noise
        within = whole_noise(noise).variance
        return CrossNote(across=noise.total_variance(2) ** 0.5, within=within**0.5, tables=layout.tables)

    def _tables_of(
        self, layout: Layout, own: str, partner: str, share: NDArray[Any], margins: Mapping[str, NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Return a party's shares of the tables with a partner, completed by the levels that were not sent."""
        ring, is_left = layout.sizes.whole, (own, partner) in layout.pairs
        left, right = (own, partner) if is_left else (partner, own)
        rows, columns = layout.slices(left), layout.slices(right)
        found = []
        for first, second in layout.across[left, right]:
            part = share[rows[first], columns[second]].astype(np.uint64)
            if not self.check_rows:
                counts = margins[first if is_left else second].astype(np.uint64)
                part = completed(part, counts[:-1], layout.sizes.rows, left=is_left)
            if is_left:
                part = part - np.uint64(layout.sizes.centre)
            found.append(ring.lift(ring.reduce(part)).ravel())
        return np.concatenate(found)

    def _check_size(self, terms: Terms) -> None:
        check_fits(terms, self.estimate(terms), "name fewer pairs, or use fewer bins", replies=2)


def _holder(terms: Terms, column: str) -> str:
    return next(party.name for party in terms.parties if column in (party.columns or ()))
