"""Tables of counts over groups of people: who counts what, and what each party adds to the one sum that opens.

A table of columns at one party is counted there. A table of columns at two parties of a group is the product of two
one-hot matrices: of what the one party's columns say together, and of what the other's do. Only the cells that some
table needs are shared. A table of columns at three or more parties would need products of three matrices, and is not
counted in that group. A table over all people is the sum over groups, of which only the noisy total is ever opened.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Final, Protocol, final

import numpy as np
from msgspec import UnsetType
from numpy.typing import NDArray

from syndic.data import Coded, Domain
from syndic.errors import InputError
from syndic.kernel import PARTNERS, Group, Party, Terms
from syndic.methods.onehot import completed, hot_rows
from syndic.mpc.extension import DEGREE
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import Pair
from syndic.mpc.proof import POINTS
from syndic.mpc.ring import Residues
from syndic.mpc.triple import ProductSizes, product_sizes
from syndic.privacy import Event
from syndic.random import Randomness

Names = tuple[str, ...]
CountTables = Callable[[Sequence[Names]], Sequence[NDArray[np.int64]]]
"""Returns the exact counts of some tables of a party's own columns. Private."""
Parts = tuple[tuple[int, int], ...]
"""For numbers that follow from tables, in order: the place of a table, and how many follow from it."""

COORDINATOR: Final = ""
"""Stands for the coordinator among the names of those who share noise."""

_CHUNK_BYTES: Final = 1 << 24


class Drawn(Protocol):
    """Integer noise."""

    def draw(self, shape: int, randomness: Randomness) -> NDArray[np.int64]:
        """Return independent draws."""


@final
@dataclass(frozen=True, kw_only=True)
class Cross:
    """A table across two parties: its place in the round and the columns of each side, in the table's order."""

    place: int
    left: Names
    right: Names


@final
@dataclass(frozen=True, kw_only=True)
class TableLayout:
    """Public. `across` has the tables of each pair of parties, `within` the places of each party's own tables.

    `blocks` are the sets of columns of which a party sends one-hot matrices, without the last level of each. A party is
    in one group, so it counts a table once: by itself or with one partner.
    """

    groups: tuple[Group, ...]
    tables: tuple[Names, ...]
    domain: Domain
    across: Mapping[Pair, tuple[Cross, ...]]
    within: Mapping[str, tuple[int, ...]]
    blocks: Mapping[str, tuple[Names, ...]]

    @cached_property
    def widths(self) -> dict[str, tuple[int, ...]]:
        """How many columns every block of every party has in its matrix."""
        return {name: tuple(self.size(block) - 1 for block in blocks) for name, blocks in self.blocks.items()}

    @cached_property
    def dimension(self) -> int:
        """How many counts all tables have."""
        return sum(self.size(names) for names in self.tables)

    @cached_property
    def counting(self) -> tuple[frozenset[str], ...]:
        """The parties that count each table, over all groups."""
        found: list[set[str]] = [set() for _ in self.tables]
        for pair, tables in self.across.items():
            for one in tables:
                found[one.place].update(pair)
        for name, places in self.within.items():
            for place in places:
                found[place].add(name)
        return tuple(map(frozenset, found))

    @cached_property
    def parts(self) -> Parts:
        """All counts, table after table."""
        return tuple((place, self.size(names)) for place, names in enumerate(self.tables))

    def marked(self, wanted: Callable[[frozenset[str]], bool], parts: Parts = ()) -> NDArray[np.bool_]:
        """Return which counts, or which of other numbers in `parts`, are of tables whose parties are as `wanted`."""
        places, sizes = zip(*(parts or self.parts), strict=True)
        return np.repeat([wanted(self.counting[place]) for place in places], sizes)

    def people(self, party: str) -> int:
        """Return the number of people of a party's group."""
        return next(group.people for group in self.groups if party in group.parties)

    def size(self, names: Names) -> int:
        """Return the number of cells of some columns."""
        return prod([self.domain.sizes[axis] for axis in self.domain.axes(names)])

    def count(self, pair: Pair) -> int:
        """Return how many counts a pair of parties opens."""
        return sum(self.size(self.tables[one.place]) for one in self.across[pair])

    def cells(self, pair: Pair) -> NDArray[np.int64]:
        """Return the cells of the product of a pair's matrices that its tables need, table after table."""
        left, right = pair
        rows, columns = self._starts(left), self._starts(right)
        width = sum(self.widths[right])
        found = [
            (
                (rows[one.left] + np.arange(self.size(one.left) - 1))[:, None] * width
                + (columns[one.right] + np.arange(self.size(one.right) - 1))[None, :]
            ).ravel()
            for one in self.across[pair]
        ]
        return np.concatenate(found).astype(np.int64)

    def sizes(self, terms: Terms, most: int, *, proven: bool) -> ProductSizes:
        """Return a ring for sums of at most `most` in absolute value, or a field for rows that are proven."""
        columns = [sum(widths) for widths in self.widths.values()] or [1]
        rows = max(1, *(group.people for group in self.groups))
        return product_sizes(
            rows=rows,
            entry=1,
            signed=False,
            headroom=most - -(-rows // 2),  # the ring of a product has room for half of its rows already
            columns=columns,
            proven=proven,
            chunk_bytes=min(_CHUNK_BYTES, terms.limits.message_mb * 10**6 // (4 * len(columns))),
        )

    def traffic(self, sizes: ProductSizes) -> int:
        """Return about how many bytes the products take, each message counted once."""
        entries = sizes.rows * sum(sum(widths) for widths in self.widths.values())
        shares = self._wanted * sizes.chunks
        if isinstance(sizes.ring, Residues):  # of a proof, and of the dealer's answer to it
            entries += sizes.rows * sum(map(len, self.widths.values())) * 2 * DEGREE // POINTS
        return (entries + shares) * sizes.ring.bits // 8

    @cached_property
    def _wanted(self) -> int:
        """How many cells of products are shared."""
        tables = [one for tables in self.across.values() for one in tables]
        return sum((self.size(one.left) - 1) * (self.size(one.right) - 1) for one in tables)

    def _starts(self, party: str) -> dict[Names, int]:
        starts = np.cumsum([0, *self.widths[party][:-1]]).tolist()
        return dict(zip(self.blocks[party], starts, strict=True))


def layout_of(groups: Sequence[Group], tables: Sequence[Names], domain: Domain) -> TableLayout:
    """Lay out tables over groups of people; a group counts those whose columns are at one or two of its parties.

    Columns may be groups of levels, or whatever else parties code their rows by; `domain` has their sizes.
    """
    across: dict[Pair, list[Cross]] = {}
    within: dict[str, list[int]] = {name: [] for group in groups for name in group.parties}
    blocks: dict[str, dict[Names, None]] = {}
    columns, several = {name for names in tables for name in names}, []
    for group in groups:
        if alone := group.counts_alone(columns):
            within[alone].extend(range(len(tables)))
        else:
            several.append(group)
    for place, names in enumerate(tables):
        for group in several:
            parties = group.counted_by(names)
            if len(parties) == 1:
                within[parties[0]].append(place)
            if len(parties) < PARTNERS:
                continue
            left, right = parties
            sides = [tuple(name for name in names if group.holders[name] == party) for party in parties]
            across.setdefault((left, right), []).append(Cross(place=place, left=sides[0], right=sides[1]))
            for party, block in zip(parties, sides, strict=True):
                blocks.setdefault(party, {})[block] = None
    return TableLayout(
        groups=tuple(groups),
        tables=tuple(tables),
        domain=domain,
        across={pair: tuple(found) for pair, found in across.items()},
        within={name: tuple(places) for name, places in within.items()},
        blocks={name: tuple(found) for name, found in blocks.items()},
    )


def noise_shares(terms: Terms, *, coordinator: bool | UnsetType, dealt: bool) -> int:
    """Return how many roles share the noise of counts: the parties and, if the study says so, the coordinator.

    `dealt`: whether the coordinator deals the triples of products, and so is trusted to collude with no party; and
    whether a party counts as colluding. With p shares, of which any p - colluding are enough, a party subtracts its own
    share and the coordinator its own. Together they subtract two.

    Raises:
        InputError: if the coordinator's share would be counted on where it may collude.
    """
    if coordinator and not dealt:
        raise InputError(
            "coordinator_noise: the coordinator may share the noise only where it is trusted to collude with no party: "
            "parties of a group count tables together, colluding is at least 1, and there are no servers. Leave it out"
        )
    return len(terms.parties) + bool(coordinator)


def same_people(terms: Terms, holders: Mapping[str, str]) -> tuple[Group, ...]:
    """Return the one group of a vertical study, given which party has each column."""
    parties = tuple(dict.fromkeys(holders.values()))
    return (Group(name="all", parties=parties, people=terms.parties[0].people or 1, holders=holders),)


@final
@dataclass(frozen=True)
class TableNoise:
    """One copy of noise over all parties: a share where several count a table, the whole noise where one does.

    `shared` and `own` mark these counts; a count that another party has alone gets no noise here. Each noise has at
    least what `event` charges, which covers all tables together.
    """

    event: Event
    share: Drawn
    whole: Drawn
    shared: NDArray[np.bool_]
    own: NDArray[np.bool_]
    scale: int = 1

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with their noise, in units of 1 / `scale`."""
        noisy = values * self.scale
        for noise, marked in ((self.share, self.shared), (self.whole, self.own)):
            noisy[marked] += noise.draw(int(marked.sum()), randomness)
        return noisy


@final
@dataclass(frozen=True, kw_only=True)
class Counts:
    """The counts of some tables over groups of people, of which only the sum over all parties opens.

    `product` multiplies what two parties count together; every party's share of it is in the ring of the sum.
    """

    layout: TableLayout
    product: SecureProduct | None

    def of(self, party: Party, count: CountTables) -> NDArray[np.int64]:
        """Return what a party adds to the sum: its own counts, and its shares of those with partners. Private."""
        layout, product = self.layout, self.product
        blocks, places = layout.blocks.get(party.name, ()), layout.within[party.name]
        shares = product.shares(party) if product and blocks else {}
        counted = count([*blocks, *(layout.tables[place] for place in places)])
        margins = {block: one.ravel() for block, one in zip(blocks, counted, strict=False)}
        found = dict(zip(places, counted[len(blocks) :], strict=True))
        if product and blocks:
            product.check_unchanged(party, np.concatenate([one[:-1] for one in margins.values()]))
            for partner, share in shares.items():
                found |= self._shared(product, party.name, partner, share.ravel(), margins)
        empty = [np.zeros(layout.size(names), dtype=np.int64) for names in layout.tables]
        return np.concatenate([found[place].ravel() if place in found else one for place, one in enumerate(empty)])

    def _shared(
        self,
        product: SecureProduct,
        own: str,
        partner: str,
        share: NDArray[Any],
        margins: Mapping[Names, NDArray[np.int64]],
    ) -> dict[int, NDArray[np.int64]]:
        """Return a party's shares of the tables with a partner, by place, with the levels that were not sent."""
        pair, start, ring, found = product.pair(own, partner), 0, product.sizes.ring, {}
        rows, left = self.layout.people(own), own == pair[0]
        for one in self.layout.across[pair]:
            shape = (self.layout.size(one.left) - 1, self.layout.size(one.right) - 1)
            part = share[start : start + shape[0] * shape[1]].reshape(shape)
            start += part.size
            full = completed(part, margins[one.left if left else one.right][:-1], rows, left=left)
            domain = self.layout.domain.project((*one.left, *one.right))
            table = ring.lift(ring.reduce(full)).reshape(domain.sizes)
            found[one.place] = table.transpose(domain.axes(self.layout.tables[one.place]))
        return found

    def rows(self, party: Party, span: tuple[int, int], recode: Callable[[Coded], Coded]) -> NDArray[np.uint8]:
        """Return rows of a party's one-hot matrix, the last level of each block left out. Private.

        Groups may differ in size: rows after a group's last person are empty, which adds to no count.
        """
        layout = self.layout
        blocks, people = layout.blocks[party.name], layout.people(party.name)
        domains = [layout.domain.project(block) for block in blocks]
        names = tuple(dict.fromkeys(name for block in blocks for name in block))

        def codes_of(coded: Coded) -> list[NDArray[np.integer]]:
            codes = recode(coded)
            return [domain.index([codes[name] for name in domain.names]) for domain in domains]

        own = min(span[0], people), min(span[1], people)
        found = hot_rows(party.table.batches(names), codes_of, [domain.size - 1 for domain in domains], own)
        if len(found) < own[1] - own[0]:
            return found  # fewer rows than the public number of people: refused where they are masked
        return np.pad(found, ((0, span[1] - span[0] - len(found)), (0, 0)))
