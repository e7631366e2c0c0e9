"""Tables of counts over groups of people: who counts what, and what each party adds to the one sum that opens.

A table of columns at one party is counted there. A table of columns at two parties of a group is the product of two
one-hot matrices: of what the one party's columns say together, and of what the other's do. Only the cells that some
table needs are shared. Four servers also multiply three matrices, and the first two parties have the shares; otherwise
a table of columns at three parties is not counted in that group. A table over all people is the sum over groups, of
which only the noisy total is ever opened.

Where columns are averaged, a person is cut into equal parts, one for each choice of the parties that they are read
from, and every part is counted as a person is. So a party may add to one table in several ways: they add up, in units
of a part. What a person adds is the mean of what the parts add as persons, so nobody moves a table further.

A parity, the sum over rows of the product of signs of some columns, is counted in the same way: what the columns of one
party say together is then one sign, and the parity is a sum of the cells of a table of signs, with their signs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Final, final

import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from syndic.data import Coded, Domain
from syndic.kernel import Group, Party, Terms, parts_of
from syndic.kernel.cut import Sides
from syndic.methods.onehot import completed, hot_rows
from syndic.mpc.extension import DEGREE
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import Pair
from syndic.mpc.proof import POINTS
from syndic.mpc.ring import Residues
from syndic.mpc.servers import Columns, ServedProduct
from syndic.mpc.triple import ProductSizes, product_sizes

Names = tuple[str, ...]
CountTables = Callable[[Sequence[Names]], Sequence[NDArray[np.int64]]]
"""Returns the exact counts of some tables of a party's own columns; of parities those of the two signs. Private."""
Parts = tuple[tuple[int, int], ...]
"""For numbers that follow from tables, in order: the place of a table, and how many follow from it."""

_CHUNK_BYTES: Final = 1 << 24


@final
@dataclass(frozen=True, kw_only=True)
class Cross:
    """A table across parties: its place in the round and the columns of each side, in the table's order.

    `others`: the parties beyond the two that have shares of it, with their columns.
    """

    place: int
    left: Names
    right: Names
    others: Sides = ()

    def sides(self, pair: Pair) -> Sides:
        """Return the parties and the columns of each."""
        return ((pair[0], self.left), (pair[1], self.right), *self.others)


@final
@dataclass(frozen=True, kw_only=True)
class TableLayout:
    """Public. `across` has the tables that a pair of parties shares, `within` the places of each party's own tables.

    `blocks` are the sets of columns of which a party sends one-hot matrices, without the last level of each. A party is
    in one group, so it counts a table once: by itself or with partners; or once for each way in which columns are
    averaged. With `parity`, columns have one or two levels, the signs + and -, and one number opens of each table.
    """

    groups: tuple[Group, ...]
    tables: tuple[Names, ...]
    domain: Domain
    across: Mapping[Pair, tuple[Cross, ...]]
    within: Mapping[str, tuple[int, ...]]
    blocks: Mapping[str, tuple[Names, ...]]
    parity: bool = False

    @cached_property
    def widths(self) -> dict[str, tuple[int, ...]]:
        """How many columns every block of every party has in its matrix."""
        return {name: tuple(self.levels(block) - 1 for block in blocks) for name, blocks in self.blocks.items()}

    @cached_property
    def dimension(self) -> int:
        """How many counts or parities all tables have."""
        return sum(self.size(names) for names in self.tables)

    @property
    def parities(self) -> tuple[Names, ...]:
        """The sets of columns whose parities open, if they do."""
        return self.tables if self.parity else ()

    @cached_property
    def counting(self) -> tuple[frozenset[str], ...]:
        """The parties that count each table, over all groups."""
        found: list[set[str]] = [set() for _ in self.tables]
        for pair, tables in self.across.items():
            for one in tables:
                found[one.place].update(party for party, _ in one.sides(pair))
        for name, places in self.within.items():
            for place in places:
                found[place].add(name)
        return tuple(map(frozenset, found))

    @cached_property
    def between(self) -> dict[Pair, tuple[int, ...]]:
        """The places of the tables that a pair of parties shares and nobody else does, by pair."""
        return {
            pair: tuple(one.place for one in tables if self.counting[one.place] == dict(one.sides(pair)).keys())
            for pair, tables in self.across.items()
        }

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """Where the counts of each table are among all."""
        ends = np.cumsum([0, *(size for _, size in self.parts)]).tolist()
        return tuple(map(slice, ends, ends[1:]))

    @cached_property
    def one(self) -> int:
        """What a person counts in a table: 1, or the number of equal parts where columns are averaged."""
        return parts_of(self.groups)

    @cached_property
    def parts(self) -> Parts:
        """All counts, table after table."""
        return tuple((place, self.size(names)) for place, names in enumerate(self.tables))

    def marked(self, wanted: Callable[[frozenset[str]], bool], parts: Parts = ()) -> NDArray[np.bool_]:
        """Return which counts, or which of other numbers in `parts`, are of tables whose parties are as `wanted`."""
        places, sizes = zip(*(parts or self.parts), strict=True)
        return np.repeat([wanted(self.counting[place]) for place in places], sizes)

    def group(self, party: str) -> Group:
        """Return a party's group of people."""
        return next(group for group in self.groups if party in group.parties)

    def size(self, names: Names) -> int:
        """Return how many numbers open of a table."""
        return 1 if self.parity else self.levels(names)

    def levels(self, names: Names) -> int:
        """Return how many values some columns of one party have together: their cells, or two signs."""
        return 2 if self.parity else prod([self.domain.sizes[axis] for axis in self.domain.axes(names)])

    def coded(self, names: Names) -> Callable[[Coded], NDArray[Any]]:
        """Return what gives the value that some columns of one party have together in each row."""
        if self.parity:
            return lambda codes: np.bitwise_xor.reduce([codes[name] for name in names])
        domain = self.domain.project(names)
        return lambda codes: domain.index([codes[name] for name in domain.names])

    def opened(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what opens of the counts of a table over the values of one party's columns, or two parties'."""
        for axis in range(counts.ndim if self.parity else 0):
            counts = -np.diff(counts, axis=axis)
        return counts

    def count(self, pair: Pair) -> int:
        """Return how many counts a pair of parties opens."""
        return sum(self.size(self.tables[one.place]) for one in self.across[pair])

    def cells(self, pair: Pair) -> NDArray[np.int64]:
        """Return the cells of the product of a pair's matrices that its tables of two parties need, table by table."""
        left, right = pair
        rows, columns = self._starts(left), self._starts(right)
        width = sum(self.widths[right])
        found = [
            (
                (rows[one.left] + np.arange(self.levels(one.left) - 1))[:, None] * width
                + (columns[one.right] + np.arange(self.levels(one.right) - 1))[None, :]
            ).ravel()
            for one in self.across[pair]
            if not one.others
        ]
        return np.concatenate([np.zeros(0), *found]).astype(np.int64)

    def _beyond(self, pair: Pair) -> tuple[Columns, ...]:
        """Return the columns that tables of more than two parties need of every matrix."""

        def columns(party: str, names: Names) -> tuple[str, slice]:
            start = self._starts(party)[names]
            return party, slice(start, start + self.levels(names) - 1)

        return tuple(tuple(columns(*side) for side in one.sides(pair)) for one in self.across[pair] if one.others)

    def shared(self, one: Cross) -> int:
        """Return of how many cells of a table a pair gets shares: the others follow from their own counts."""
        whole = self.size(self.tables[one.place])
        return whole if one.others else (self.levels(one.left) - 1) * (self.levels(one.right) - 1)

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

    def product(self, label: str, sizes: ProductSizes, *, proven: bool, servers: tuple[str, ...]) -> SecureProduct:
        """Return the product of all tables that parties count together."""
        made = SecureProduct(
            label=label,
            sizes=sizes,
            pairs=tuple(self.across),
            groups=self.widths,
            proven=proven,
            cells={pair: self.cells(pair) for pair in self.across},
        )
        return self._served(made, servers) if servers else made

    def _served(self, made: SecureProduct, servers: tuple[str, ...]) -> SecureProduct:
        """Return a product by servers, who also multiply for tables of more than two parties."""
        people = {name: group.people for group in self.groups for name in group.parties}
        return ServedProduct(
            **asdict(made),
            servers=servers,
            beyond={pair: self._beyond(pair) for pair in self.across},
            people=people,
            signs=self.parity,
        )

    def traffic(self, sizes: ProductSizes) -> int:
        """Return about how many bytes the products take, each message counted once."""
        columns, blocks = sum(map(sum, self.widths.values())), sum(map(len, self.widths.values()))
        shared = sum(self.shared(one) for tables in self.across.values() for one in tables)
        return traffic_of(sizes, columns, blocks, shared)

    def added_by(self, party: Party, product: SecureProduct | None, count: CountTables) -> NDArray[np.int64]:
        """Return what a party adds to the sum: its own counts, and its shares of those with partners. Private.

        `product` multiplies what parties count together; every party's share of it is in the ring of the sum. Parts
        of a person: the same table may be counted alone and with several partners.
        """
        blocks, places = self.blocks.get(party.name, ()), self.within[party.name]
        shares = product.shares(party) if product and blocks else {}
        counted = count([*blocks, *(self.tables[place] for place in places)])
        margins = {block: one.ravel() for block, one in zip(blocks, counted, strict=False)}
        found = [np.zeros(self.size(names), dtype=np.int64) for names in self.tables]
        for place, one in zip(places, counted[len(blocks) :], strict=True):
            found[place] += self.opened(one).ravel()
        if product and blocks:
            product.check_unchanged(party, np.concatenate([one[:-1] for one in margins.values()]))
            for partner, share in shares.items():
                for place, one in self._shared(product, party.name, partner, share.ravel(), margins):
                    found[place] += one.ravel()
        parts = map(self.group(party.name).parts, self.tables)
        total = np.concatenate([one * (self.one // some) for one, some in zip(found, parts, strict=True)])
        return product.sizes.ring.lift(product.sizes.ring.reduce(total)) if product else total

    def _shared(
        self,
        product: SecureProduct,
        own: str,
        partner: str,
        share: NDArray[Any],
        margins: Mapping[Names, NDArray[np.int64]],
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield a party's shares of the tables with a partner and their places, with the levels that were not sent.

        They are for `reduce`: in a field of 28 bits, sums of 2^27 cells in all parts of a person still fit 64 bits.
        """
        pair, start = product.pair(own, partner), 0
        rows, left = self.group(own).people, own == pair[0]
        for one in self.across[pair]:
            table = share[start : start + self.shared(one)].astype(np.int64)
            start += table.size
            if not one.others:
                part = table.reshape(self.levels(one.left) - 1, self.levels(one.right) - 1)
                table = self.opened(completed(part, margins[one.left if left else one.right][:-1], rows, left=left))
            if not self.parity:
                domain = self.domain.project([name for _, names in one.sides(pair) for name in names])
                table = table.reshape(domain.sizes).transpose(domain.axes(self.tables[one.place]))
            yield one.place, table

    def rows(self, party: Party, span: tuple[int, int], recode: Callable[[Coded], Coded]) -> NDArray[np.uint8]:
        """Return rows of a party's one-hot matrix, the last level of each block left out. Private.

        Groups may differ in size: rows after a group's last person are empty, which adds to no count.
        """
        blocks, people = self.blocks[party.name], self.group(party.name).people
        codes_of = [self.coded(block) for block in blocks]
        names = tuple(dict.fromkeys(name for block in blocks for name in block))

        def all_codes(coded: Coded) -> list[NDArray[Any]]:
            codes = recode(coded)
            return [of(codes) for of in codes_of]

        own = min(span[0], people), min(span[1], people)
        found = hot_rows(party.table.batches(names), all_codes, self.widths[party.name], own)
        if len(found) < own[1] - own[0]:
            return found  # fewer rows than the public number of people: refused where they are masked
        return np.pad(found, ((0, span[1] - span[0] - len(found)), (0, 0)))

    def _starts(self, party: str) -> dict[Names, int]:
        starts = np.cumsum([0, *self.widths[party][:-1]]).tolist()
        return dict(zip(self.blocks[party], starts, strict=True))


def traffic_of(sizes: ProductSizes, columns: int, blocks: int, shared: int) -> int:
    """Return about how many bytes products take: of so many columns in blocks, of which so many cells are shared."""
    entries = sizes.rows * columns
    if isinstance(sizes.ring, Residues):  # of a proof, and of the dealer's answer to it
        entries += sizes.rows * blocks * 2 * DEGREE // POINTS
    return (entries + shared * sizes.chunks) * sizes.ring.bits // 8


def layout_of(groups: Sequence[Group], tables: Sequence[Names], domain: Domain, *, parity: bool = False) -> TableLayout:
    """Lay out tables over groups of people; a group counts those whose columns are at few enough of its parties.

    Columns may be groups of levels, or whatever else parties code their rows by; `domain` has their sizes. `parity`:
    they are signs, of whose products the sums open.
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
            for (left, own), *others in group.ways(names):
                if not others:
                    within[left].append(place)
                else:
                    (right, other), *rest = others
                    cross = Cross(place=place, left=own, right=other, others=tuple(rest))
                    across.setdefault((left, right), []).append(cross)
                    for party, names_there in cross.sides((left, right)):
                        blocks.setdefault(party, {})[names_there] = None
    return TableLayout(
        groups=tuple(groups),
        tables=tuple(tables),
        domain=domain,
        # a server multiplies the first two sides once for all tables that have them
        across={pair: tuple(sorted(found, key=_first_sides)) for pair, found in across.items()},
        within={name: tuple(places) for name, places in within.items()},
        blocks={name: tuple(found) for name, found in blocks.items()},
        parity=parity,
    )


def _first_sides(one: Cross) -> tuple[Names, ...]:
    return (one.left, one.right) if one.others else ()


def same_people(terms: Terms, holders: Mapping[str, str]) -> tuple[Group, ...]:
    """Return the one group of a vertical study, given which party has each column."""
    parties = tuple(dict.fromkeys(holders.values()))
    read_from = {name: (party,) for name, party in holders.items()}
    return (Group(name="all", parties=parties, people=terms.parties[0].people or 1, read_from=read_from),)
