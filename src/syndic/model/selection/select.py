"""Select tables to measure from noisy tables alone, so that the selection is the same whoever counts.

All columns, then all pairs of columns are measured with a part of the budget. Pairs show which columns are associated:
the model grows towards pairs it fits badly. Then tables of two to five columns inside its cliques are selected by the
expected remaining error, measured and fitted, in one round or several. Selection reads only noisy tables, so it costs
nothing more. After PrivMRF (Cai et al. 2021) and AIM (McKenna et al. 2022), whose noisy scores of candidates are not
sums over rows and so cannot come from masked sums.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.model.markov.field import MarkovField
from syndic.model.markov.fit import TARGET, fit
from syndic.model.markov.measurement import UNKNOWN, Impossible, Measurement, estimate_total
from syndic.model.markov.tree import plan_tree
from syndic.model.selection.counts import Counts, Names, Synthesis
from syndic.model.selection.grouping import Grouping, group_rare, pair_groups
from syndic.model.selection.levels import (
    group_ordered,
    group_released,
    level_counts,
    one_way_tables,
    released_levels,
)
from syndic.model.selection.parity import LEAST_DEVIATION, Scan, plan_scan
from syndic.model.selection.score import MEAN_ABSOLUTE, STANDS_OUT, choose_tables, outside_scores
from syndic.model.selection.settings import Adaptive
from syndic.model.selection.structure import Axes, Structure, exchange, fitting_sets, grow, grow_forest, start_structure

# a group in a tail has at least so many standard deviations of the noise on a level
LEAST_IN_TAIL = 4.0


def synthesise(
    settings: Adaptive, counts: Counts, mu_squared: Fraction, *, zeros: Sequence[Impossible] = ()
) -> Synthesis:
    """Select, measure and fit until the budget is spent."""
    model = GrowingModel(settings, counts, mu_squared, zeros=zeros)
    for limit, budget in zip(settings.limits(counts.domain, zeros), model.budgets, strict=True):
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
