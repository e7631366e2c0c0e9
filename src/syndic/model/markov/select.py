"""Select tables to measure from noisy tables alone, so that the selection is the same whoever counts.

All columns, then all pairs of columns are measured with a part of the budget. Pairs show which columns are associated:
the model grows towards pairs it fits badly. Then tables of two to five columns inside its cliques are selected by the
expected remaining error, measured and fitted, in one round or several. Selection reads only noisy tables, so it costs
nothing more. After PrivMRF (Cai et al. 2021) and AIM (McKenna et al. 2022), whose noisy scores of candidates are not
sums over rows and so cannot come from masked sums.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.document import Document
from syndic.model.markov.counts import Counts, Names, Synthesis
from syndic.model.markov.field import MarkovField
from syndic.model.markov.fit import TARGET, fit
from syndic.model.markov.grouping import Grouping, group_rare, pair_groups
from syndic.model.markov.levels import (
    TAIL_HALVINGS,
    group_ordered,
    group_released,
    level_counts,
    one_way_tables,
    released_levels,
)
from syndic.model.markov.measurement import UNKNOWN, Impossible, Measurement, estimate_total
from syndic.model.markov.parity import LEAST_DEVIATION, SIZES, Scan, most_sets, plan_scan
from syndic.model.markov.score import MEAN_ABSOLUTE, STANDS_OUT, choose_tables, outside_scores, pairs_of
from syndic.model.markov.structure import Axes, Structure, exchange, fitting_sets, grow, grow_forest, start_structure
from syndic.model.markov.tree import plan_tree

# candidate numbers of tables in a round, as multiples of the number of columns divided by the rounds
TABLES_EACH_COLUMN = (Fraction(2, 3), Fraction(1), Fraction(4, 3), Fraction(2), Fraction(8, 3), Fraction(4))
# sets of columns that are held because their parity stands out: at most this many for each column
FOUND_EACH_COLUMN = Fraction(1, 4)
# a group in a tail has at least so many standard deviations of the noise on a level
LEAST_IN_TAIL = 4.0


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

    def run(self, counts: Counts, mu_squared: Fraction, *, zeros: Sequence[Impossible] = ()) -> Synthesis:
        """Select, measure and fit until the budget is spent."""
        model = GrowingModel(self, counts, mu_squared, zeros=zeros)
        for limit, budget in zip(self.limits(counts.domain, zeros), model.budgets, strict=True):
            if limit.parity:
                scan = model.choose_sets(budget)
                model.hold(scan.standing_out(model.field, counts.parities(scan.sets, budget, scan.levels)))
            else:
                tables = model.choose()  # SELECT, from noisy tables alone
                model.fit(counts.measure(tables, budget, model.asked))  # MEASURE, with noise
        return model.synthesis


@final
class GrowingModel:
    """The model during a run, and everything measured for it; it reads nothing else about the rows.

    `choose` returns the tables of the next round, over the groups of `asked`, `fit` adds their noisy counts; after the
    last round, `synthesis` can be sampled.
    """

    field: MarkovField
    pairs: dict[Names, Measurement]
    _grown: int

    def __init__(
        self, settings: Adaptive, counts: Counts, mu_squared: Fraction, *, zeros: Sequence[Impossible] = ()
    ) -> None:
        """Start before the first round; `budgets` are the rounds' parts of `mu_squared`."""
        self.settings, self.counts = settings, counts
        self.budgets = settings.budgets(mu_squared)
        self.rounds: list[Sequence[Measurement]] = []
        self.later: list[Measurement] = []
        self.grouping = self.asked = Grouping.none(counts.domain)
        self.found: tuple[Names, ...] = ()
        self._zeros = zeros

    def choose(self) -> list[Names]:
        """Return the tables of the next round, over the groups of `asked`: columns, pairs, then selected tables."""
        settings, number = self.settings, len(self.rounds)
        if number == 0:
            return settings.first(self.counts.domain)
        if number == 1:
            pairs = settings.pairs(self.domain)
            self.coarse = self._coarse(pairs)
            self.asked = self.grouping.then(self.coarse)
            return pairs
        self.asked = self.grouping
        self._grow_for(number)
        return self.chosen(self.budgets[-1])

    def _coarse(self, pairs: Sequence[Names]) -> Grouping:
        """Return the groups of the model's groups that pairs are counted over."""
        settings = self.settings
        if not (settings.merge_pairs and any(one.variance < UNKNOWN for one in self.rounds[0])):
            return Grouping.none(self.domain)
        times = [self.counts.noisier(self.domain.project(pair)) for pair in pairs]
        most = max((one for one in times if one is not None), default=1.0)
        noise = MEAN_ABSOLUTE * math.sqrt(most * self.counts.variance(self.budgets[1] / len(pairs)))
        useful = int(self._total(self.rounds[0]) / (settings.usefulness * noise))
        return pair_groups(self.grouping, self.one_way, useful, dict(settings.in_order))

    def _total(self, tables: Sequence[Measurement]) -> float:
        """Return the number of rows, public or estimated from tables."""
        people = self.counts.people
        return estimate_total(tables) if people is None else float(people)

    def _grow_for(self, number: int) -> None:
        """Grow the model by all steps before a round of selected tables that were not made yet."""
        for step in range(self._grown, self.settings.growth * (number - 1) // self.settings.rounds):
            self.grow(step + 1)
            self._grown = step + 1

    def choose_sets(self, budget: Fraction) -> Scan:
        """Return the sets of columns whose parities are measured once the model has grown."""
        self._grow_for(len(self.rounds))
        ordered, total = [name for name, _ in self.settings.in_order], max(self.field.total, 1.0)
        variance, noisier = self.counts.variance, self.counts.noisier
        return plan_scan(self.grouping, self.one_way, ordered, total, lambda sets: variance(budget / sets), noisier)

    def hold(self, sets: Sequence[Names]) -> None:
        """Hold the first of the sets of columns that can be measured, and grow anew around them.

        A set with a pair that the model has no room for stands out for that, and would take room from others.
        """
        settings, domain = self.settings, self.domain
        lacking = outside_scores(self.field, self.pairs, STANDS_OUT)
        shown = [set(pair) for pair, apart in lacking.items() if apart >= LEAST_DEVIATION * self.field.total]
        sets = [names for names in sets if not any(pair <= set(names) for pair in shown)]
        deviation = math.sqrt(self.counts.variance(self.budgets[-1] / len(domain)))
        useful = int(self.field.total / (settings.usefulness * MEAN_ABSOLUTE * deviation))
        small = [names for names in sets if domain.project(names).size <= min(settings.most_table_cells, useful)]
        self.found = fitting_sets(domain, self._held, small, settings.cells // 2, settings.most_found(domain))
        if self.found:
            cliques = plan_tree(domain, [*self._held, *self.found]).cliques
            self._start(start_structure(domain, cliques, settings.cells))
            self.field = self.fitted(None, settings.iterations // 5)

    def fit(self, opened: Sequence[Measurement]) -> None:
        """Add the noisy tables of a round, and fit the model to all measured tables."""
        self.rounds.append(opened)
        if len(self.rounds) == 1:
            self.group(opened)
            return
        if len(self.rounds) == 2:
            opened = [self.coarse.grouped(one) for one in opened]
            self.pairs = {one.names: one for one in opened if len(one.names) == 2}
        self.later.extend(opened)
        last = len(self.rounds) == 2 + self.settings.rounds
        start = None if len(self.rounds) == 2 else self.field
        if last:  # where parties count tables together there may have been no traffic for some
            measured = {one.names for one in self.measurements()}
            self.found = tuple(names for names in self.found if names in measured)
        if last and self.found:
            # a fit stops when all tables together are as far off as noise: these few cells would be left behind
            start = self.fitted(start, self.settings.iterations // 5, only=self.found)
        self.field = self.fitted(start, self.settings.iterations // (1 if last else 5))

    @property
    def synthesis(self) -> Synthesis:
        """The model after the last round, which can be sampled."""
        return Synthesis(self.field, self.grouping, self.one_way, tuple(tuple(one) for one in self.rounds), self.found)

    def group(self, opened: Sequence[Measurement]) -> None:
        """Group rare levels, and start with single columns and the sets that must share a clique."""
        settings, domain, zeros = self.settings, self.counts.domain, self._zeros
        whole = {name for zero in zeros for name in zero.names}
        one_way = one_way_tables(domain, opened)
        self.one_way = level_counts(one_way, dict(settings.ordered), dict(settings.branches))
        # if the round was lost, no level is known to be rare
        least = settings.merge_below if any(one.variance < UNKNOWN for one in one_way) else -math.inf
        self.grouping = group_rare(
            domain,
            one_way,
            least=least,
            most_levels=settings.most_levels,
            alone=whole,
            given=self._merged({one.names[0]: one for one in one_way}),
            adjacent=dict(settings.adjacent),
        )
        self.zeros = self.grouping.zeros(zeros)
        self.domain = self.grouping.domain_of_groups
        # cliques as in the plan, which is made before any row is read and has space for them with any grouping
        sets = [*(zero.names for zero in zeros), *settings.held(domain)]
        self._held = plan_tree(settings.merged(domain, zeros), sets).cliques if sets else ()
        self._start(start_structure(self.domain, self._held, settings.cells))

    def _merged(self, tables: Mapping[str, Measurement]) -> dict[str, NDArray[np.int64]]:
        """Return the groups of ordered columns, where levels that are not in order follow, and of long lists."""
        settings, given = self.settings, {}
        for name, levels in settings.ordered:
            least = LEAST_IN_TAIL * math.sqrt(tables[name].variance)
            given[name] = group_ordered(self.one_way[name], levels, settings.ordered_groups, least)
        for name, levels in settings.adjacent:
            counts = self.one_way[name]
            if counts.size > settings.most_levels:
                given[name] = group_ordered(counts, levels, settings.most_levels - (counts.size - levels))
        for name, branches in settings.branches:
            released = released_levels(tables[name], branches)
            given[name] = group_released(released, branches, self.one_way[name], settings.most_levels)
        return given

    def _start(self, structure: Structure) -> None:
        """Begin to grow from a structure, whose pairs of columns stay; others have a worth when they come in."""
        self.structure = structure
        self._grown = 0
        self._worth: dict[Axes, float] = {}
        self._fixed = structure.pairs

    def grow(self, step: int) -> None:
        """Add edges for pairs that the model fits badly, up to its share of the cells, and fit it again."""
        settings, before = self.settings, self.structure.pairs
        scores = outside_scores(self.field, self.pairs)
        least, most_cells = settings.least_distance * self.field.total, settings.cells * step // settings.growth
        if step == 1 and settings.growth > 1:
            self.structure = grow_forest(self.structure, scores, least=least, most_cells=most_cells)
        else:
            most = len(scores) if step == settings.growth else math.ceil(0.4 * len(self.domain))
            self.structure = grow(self.structure, scores, least=least, most_cells=most_cells, most=most)
        worth = self._by_axes(scores)
        self._worth |= {pair: worth.get(pair, 0.0) for pair in self.structure.pairs - before}
        self.field = self.fitted(self.field, settings.iterations // 5)
        if step == settings.growth:
            self._exchange(least)

    def _exchange(self, least: float) -> None:
        """Exchange pairs in cliques for others if that brings the model, fitted again, nearer to the noisy pairs."""
        before, field = self.structure, self.field
        outside = self._by_axes(outside_scores(field, self.pairs))
        chosen = [one.names for opened in self.rounds[2:] for one in opened]
        fixed = self._fixed.union(pair for names in chosen for pair in combinations(self.domain.axes(names), 2))
        worth = {pair: self._worth.get(pair, 0.0) for pair in before.pairs}
        worth |= {pair: score for pair, score in outside.items() if score >= least}
        self.structure = exchange(before, worth, fixed, most_cells=self.settings.cells)
        if self.structure is before:
            return
        self.field = self.fitted(field, self.settings.iterations // 5)
        if sum(self._by_axes(outside_scores(self.field, self.pairs)).values()) >= sum(outside.values()):
            self.structure, self.field = before, field

    def _by_axes(self, scores: Mapping[Names, float]) -> dict[Axes, float]:
        """Return scores of pairs, at least 0, by the places of their columns."""
        return {self.domain.axes(names): max(0.0, score) for names, score in scores.items()}

    def chosen(self, budget: Fraction) -> list[Names]:
        """Return the tables of the next round; the columns themselves if no table is useful."""
        settings = self.settings
        variances = {number: self.counts.variance(budget / number) for number in settings.numbers(self.domain)}
        precision: dict[Names, float] = {}
        for one in self.measurements():
            precision[one.names] = precision.get(one.names, 0.0) + 1 / one.variance
        found = choose_tables(
            self.field,
            precision,
            variances,
            self.counts,
            self.pairs,
            usefulness=settings.usefulness,
            most_columns=settings.most_columns,
            most_cells=settings.most_table_cells,
        )
        first = list(dict.fromkeys([*settings.keep, *self.found]))
        kept = [*first, *(names for names in found if set(names) not in map(set, first))]
        return kept or [(name,) for name in self.domain.names]

    def measurements(self) -> list[Measurement]:
        """Return the noisy tables that fit into a clique of the model."""
        gathered = [self.grouping.gather(one) for one in self.rounds[0]]
        place = {name: 1 << axis for axis, name in enumerate(self.domain.names)}
        return gathered + [one for one in self.later if self.structure.holds(sum(place[name] for name in one.names))]

    def fitted(self, start: MarkovField | None, iterations: int, only: Sequence[Names] = ()) -> MarkovField:
        """Fit the model to all tables that fit into its cliques, or to those of some sets completely."""
        tables = self.measurements()
        return fit(
            self.domain,
            [one for one in tables if one.names in only] if only else tables,
            tree=plan_tree(self.domain, self.structure.sets),
            start=start,
            total=self._total(tables),
            zeros=self.zeros,
            iterations=iterations,
            target=0.0 if only else TARGET,
        ).field
