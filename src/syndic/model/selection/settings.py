"""Settings of a selection, and what they mean for the rounds: shares of the budget, limits, groups of columns."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from syndic.data import Domain
from syndic.document import Document
from syndic.model.markov.measurement import Impossible
from syndic.model.selection.counts import Names
from syndic.model.selection.levels import TAIL_HALVINGS
from syndic.model.selection.parity import SIZES, most_sets
from syndic.model.selection.score import pairs_of

# candidate numbers of tables in a round, as multiples of the number of columns divided by the rounds
TABLES_EACH_COLUMN = (Fraction(2, 3), Fraction(1), Fraction(4, 3), Fraction(2), Fraction(8, 3), Fraction(4))
# sets of columns that are held because their parity stands out: at most this many for each column
FOUND_EACH_COLUMN = Fraction(1, 4)


class RoundLimit(Document):
    """The most tables and cells that a round measures; `parity`: it measures parities, one number a set of columns."""

    tables: int
    cells: int
    parity: bool = False


class Adaptive(Document):
    """Tables chosen in several rounds, each with the model fitted to all rounds before.

    Args:
        rounds: Rounds of chosen tables, after the one of all columns and the one of all pairs.
        cells: The most cells of the model, all cliques together.
        one_way_share: Share of the budget for all columns.
        pair_share: Share of the budget for all pairs.
        parity_share: Share of the budget to find sets of three to five columns that no pair shows; 0 for none.
        usefulness: A table is measured if its mean count is at least this many times the mean absolute noise.
        merge_pairs: Whether pairs of ordered columns are measured over so few groups that they are useful in this way.
        most_columns: The most columns of a table.
        most_table_cells: The most cells of a table.
        most_levels: The most groups of levels of a column.
        ordered: Columns with fine ordered levels, and the number of these levels: adjacent levels are merged.
        ordered_groups: The most groups of such levels.
        adjacent: Columns with few ordered levels, and the number of these levels: only adjacent rare ones are merged.
        branches: Columns with long lists, and the branch of every level: levels that noise hides are released as it.
        target: A column that shares a clique of the model with every other column.
        keep: Sets of columns that share a clique of the model, and whose tables are measured.
        with_target: Whether the first round counts every column together with the target.
        merge_below: Levels with noisy counts below this many standard deviations are grouped.
        least_distance: A pair at least this far from the model, as a share of rows, may be added to it.
        growth: Steps in which the model grows, each fitted before the next.
        iterations: The most passes of the last fit; fits in between take a fifth.
    """

    rounds: int = 2
    cells: int = 4_000_000
    one_way_share: Fraction = Fraction(1, 20)
    pair_share: Fraction = Fraction(1, 5)
    parity_share: Fraction = Fraction(0)
    usefulness: float = 2.0
    merge_pairs: bool = True
    most_columns: int = 5
    most_table_cells: int = 32_768
    most_levels: int = 64
    merge_below: float = 1.0
    least_distance: float = 0.005
    growth: int = 8
    iterations: int = 500
    ordered: tuple[tuple[str, int], ...] = ()
    ordered_groups: int = 10
    adjacent: tuple[tuple[str, int], ...] = ()
    branches: tuple[tuple[str, tuple[int, ...]], ...] = ()
    target: str | None = None
    keep: tuple[Names, ...] = ()
    with_target: bool = False

    def __post_init__(self) -> None:
        least = {"rounds": 1, "cells": 1, "most_columns": 2, "most_table_cells": 4, "most_levels": 2, "growth": 1}
        for name, value in least.items():
            if getattr(self, name) < value:
                raise ValueError(f"{name} ({getattr(self, name)}) must be at least {value}")
        shares = (self.one_way_share, self.pair_share, self.parity_share)
        if not (min(shares[:2]) > 0 and self.parity_share >= 0 and sum(shares) < 1):
            raise ValueError("one_way_share and pair_share must be positive and leave something: their sum is below 1")

    @property
    def in_order(self) -> tuple[tuple[str, int], ...]:
        """The columns with ordered levels, and the number of these levels."""
        return (*self.ordered, *self.adjacent)

    def budgets(self, mu_squared: Fraction) -> tuple[Fraction, ...]:
        """Return each round's part of the budget, independent of the rows; the parts add up to it exactly."""
        parity = (self.parity_share,) if self.parity_share else ()
        rest = (1 - self.one_way_share - self.pair_share - self.parity_share) / self.rounds
        return tuple(mu_squared * one for one in (self.one_way_share, self.pair_share, *parity, *[rest] * self.rounds))

    def limits(self, domain: Domain, zeros: Sequence[Impossible] = ()) -> tuple[RoundLimit, ...]:
        """Return the most that each round measures, independent of the rows."""
        whole = {name for zero in zeros for name in zero.names}
        merged = self.merged(domain, zeros)
        grouped = Domain.of(
            {name: merged[name] if name in whole else min(merged[name], self.most_levels) for name in domain.names}
        )
        first = self.first(domain)
        columns = RoundLimit(tables=len(first), cells=sum(domain.project(names).size for names in first))
        number, sets = max(self.numbers(domain)), most_sets(len(domain))
        if self.parity_share:
            number += self.most_found(domain)
        widest = sorted(grouped.sizes)[-max(self.most_columns, *SIZES) :]
        cells = [min(self.most_table_cells, math.prod(widest))] * number
        cells += [min(self.most_table_cells, grouped.project(names).size) for names in self.keep]
        return (
            columns,
            self._pair_limit(grouped.sizes),
            *([RoundLimit(tables=sets, cells=sets, parity=True)] if self.parity_share else []),
            *[RoundLimit(tables=len(cells), cells=max(columns.cells, sum(cells)))] * self.rounds,
        )

    def _pair_limit(self, sizes: Sequence[int]) -> RoundLimit:
        """Return how many pairs are measured, and their cells, without listing them."""
        order = sorted(sizes)
        before = [0, *accumulate(order)]
        # of each column the smaller ones with which its table is small enough
        partners = [min(place, bisect_right(order, self.most_table_cells // size)) for place, size in enumerate(order)]
        if not any(partners):
            return RoundLimit(tables=len(order), cells=before[-1])
        cells = sum(size * before[few] for size, few in zip(order, partners, strict=True))
        return RoundLimit(tables=sum(partners), cells=cells)

    def first(self, domain: Domain) -> list[Names]:
        """Return the tables of the first round: every column, or every column with the target if `with_target`.

        A long list is counted alone: every level of the target would add noise to the counts of its values.
        """
        if not self.with_target or self.target is None:
            return [(name,) for name in domain.names]
        target, alone = self.target, dict(self.branches)
        others = [name for name in domain.names if name != target and name not in alone]
        pairs = [tuple(sorted((name, target), key=domain.names.index)) for name in others]
        return [*(pairs or [(target,)]), *((name,) for name in alone if name != target)]

    def merged(self, domain: Domain, zeros: Sequence[Impossible] = ()) -> Domain:
        """Return the columns with the most levels that they can have after fine or rare levels are merged."""
        whole = {name for zero in zeros for name in zero.names}
        ordered = {name: levels for name, levels in self.ordered if name not in whole}
        listed = {name for name, _ in self.branches if name not in whole}
        return Domain.of(
            {
                name: min(size, self.most_levels)
                if name in listed
                else min(levels, self.ordered_groups + 2 * TAIL_HALVINGS) + size - levels
                for name, size in zip(domain.names, domain.sizes, strict=True)
                for levels in [ordered.get(name, 0)]
            }
        )

    def held(self, domain: Domain) -> list[Names]:
        """Return the sets of columns that share a clique of the model from the start."""
        pairs = [(name, self.target) for name in domain.names if self.target is not None and name != self.target]
        return [*self.keep, *pairs]

    def numbers(self, domain: Domain) -> list[int]:
        """Return the candidate numbers of tables in a round of selected tables."""
        return sorted({max(1, math.ceil(share * len(domain) / self.rounds)) for share in TABLES_EACH_COLUMN})

    def most_found(self, domain: Domain) -> int:
        """Return how many sets of columns are held at most because their parity stands out."""
        return math.ceil(FOUND_EACH_COLUMN * len(domain))

    def pairs(self, domain: Domain) -> list[Names]:
        """Return the pairs that are measured; the columns themselves if there are no pairs."""
        size = dict(zip(domain.names, domain.sizes, strict=True))
        pairs = [pair for pair in pairs_of(domain.names) if size[pair[0]] * size[pair[1]] <= self.most_table_cells]
        return pairs or [(name,) for name in domain.names]
