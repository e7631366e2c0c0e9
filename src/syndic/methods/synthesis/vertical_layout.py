"""How one round of a vertical synthesis is counted: which tables at home, which across two parties, in what rings.

A table of columns at one party is counted there. A table of columns at two parties is the product of two one-hot
matrices: of what the one party's columns say together, and of what the other's do. Only the cells that some table
needs are shared. A table of columns at three or more parties would need products of three matrices, and is not asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Coded, Domain, Table
from syndic.kernel import Terms
from syndic.methods.onehot import hot_rows
from syndic.model.markov import Grouping
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import Pair
from syndic.mpc.triple import ProductSizes, product_sizes

Names = tuple[str, ...]
_CHUNK_BYTES: Final = 1 << 24


@final
@dataclass(frozen=True, kw_only=True)
class Cross:
    """A table across two parties: its place in the question and the columns of each side, in the table's order."""

    place: int
    left: Names
    right: Names


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RoundLayout:
    """Public. `across` has the tables of each pair of parties, `within` the places of each party's own tables.

    `blocks` are the sets of columns of which a party sends one-hot matrices, without the last level of each.
    """

    tables: tuple[Names, ...]
    domain: Domain
    across: Mapping[Pair, tuple[Cross, ...]]
    within: Mapping[str, tuple[int, ...]]
    blocks: Mapping[str, tuple[Names, ...]]

    @property
    def widths(self) -> dict[str, tuple[int, ...]]:
        """How many columns every block of every party has in its matrix."""
        return {name: tuple(self.size(block) - 1 for block in blocks) for name, blocks in self.blocks.items()}

    def size(self, names: Names) -> int:
        """Return the number of cells of some columns."""
        return self.domain.project(names).size

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

    def sizes(self, terms: Terms, headroom: int) -> ProductSizes:
        """Return rings and blocks; `headroom` is the largest noise on a count."""
        columns = [sum(widths) for widths in self.widths.values()] or [1]
        return product_sizes(
            rows=terms.parties[0].people or 1,
            entry=1,
            signed=False,
            headroom=headroom,
            columns=columns,
            cells=sum(self._wanted(one) for tables in self.across.values() for one in tables),
            chunk_bytes=min(_CHUNK_BYTES, terms.limits.message_mb * 10**6 // (4 * len(columns))),
        )

    def traffic(self, sizes: ProductSizes) -> int:
        """Return about how many bytes the products take, each message counted once."""
        wanted = sum(self._wanted(one) for tables in self.across.values() for one in tables)
        entries = sizes.rows * sum(sum(widths) for widths in self.widths.values())
        shares = wanted * -(-sizes.rows // sizes.block)
        wraps = 2 * shares * sizes.carry.bits if sizes.lifted else 0
        return (entries * sizes.small.bits + shares * sizes.small.bits + wraps) // 8

    def work(self, label: str, sizes: ProductSizes) -> SecureProduct:
        """Return what is multiplied."""
        return SecureProduct(
            label=label,
            sizes=sizes,
            pairs=tuple(self.across),
            groups=self.widths,
            cells={pair: self.cells(pair) for pair in self.across},
        )

    def count(self, pair: Pair) -> int:
        """Return how many counts a pair of parties opens."""
        return sum(self.size(self.tables[one.place]) for one in self.across[pair])

    def _wanted(self, one: Cross) -> int:
        return (self.size(one.left) - 1) * (self.size(one.right) - 1)

    def _starts(self, party: str) -> dict[Names, int]:
        starts = np.cumsum([0, *self.widths[party][:-1]]).tolist()
        return dict(zip(self.blocks[party], starts, strict=True))


def holders(terms: Terms) -> dict[str, str]:
    """Return which party has each column."""
    return {name: party.name for party in terms.parties for name in party.columns or ()}


def layout_of(terms: Terms, tables: Sequence[Names], domain: Domain) -> RoundLayout:
    """Lay out a round's tables, each of columns at one or two parties; `domain` is of groups of levels."""
    held, order = holders(terms), [party.name for party in terms.parties]
    across: dict[Pair, list[Cross]] = {}
    within: dict[str, list[int]] = {name: [] for name in order}
    blocks: dict[str, dict[Names, None]] = {}
    for place, names in enumerate(tables):
        parties = sorted({held[name] for name in names}, key=order.index)
        if len(parties) == 1:
            within[parties[0]].append(place)
            continue
        left, right = parties
        sides = [tuple(name for name in names if held[name] == party) for party in (left, right)]
        across.setdefault((left, right), []).append(Cross(place=place, left=sides[0], right=sides[1]))
        for party, block in zip(parties, sides, strict=True):
            blocks.setdefault(party, {})[block] = None
    return RoundLayout(
        tables=tuple(tables),
        domain=domain,
        across={pair: tuple(found) for pair, found in across.items()},
        within={name: tuple(places) for name, places in within.items()},
        blocks={name: tuple(found) for name, found in blocks.items()},
    )


def own_grouping(grouping: Grouping, table: Table) -> Grouping:
    """Return the groups of a party's own columns."""
    domain = table.schema.domain
    places = grouping.domain.axes(domain.names)
    return Grouping(domain, tuple(grouping.groups[place] for place in places))


def count_tables(table: Table, grouping: Grouping, tables: Sequence[Names]) -> list[NDArray[np.int64]]:
    """Return exact counts of a party's own columns, in one pass. Private."""
    return [one.values for one in table.marginals(tables, own_grouping(grouping, table))]


def block_matrix(table: Table, grouping: Grouping, blocks: Sequence[Names], span: tuple[int, int]) -> NDArray[np.uint8]:
    """Return rows of the one-hot matrix of some blocks of columns, the last level of each left out. Private."""
    own = own_grouping(grouping, table)
    domains = [own.domain_of_groups.project(block) for block in blocks]
    names = tuple(dict.fromkeys(name for block in blocks for name in block))

    def codes_of(coded: Coded) -> list[NDArray[Any]]:
        codes = own.recode(coded)
        return [domain.index([codes[name] for name in domain.names]) for domain in domains]

    return hot_rows(table.batches(names), codes_of, [domain.size - 1 for domain in domains], span)
