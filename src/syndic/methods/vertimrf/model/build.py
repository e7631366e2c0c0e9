"""GraphCom, InitMRF and OptMRF: one model of all columns from local models and tables across parties."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.methods.vertimrf.model.tables import (
    Across,
    consistent,
    recovered,
    recovered_variance,
    shares_of,
    shares_of_bins,
)
from syndic.model.markov import JunctionTree, MarkovField, Measurement, fit, plan_tree, triangulate
from syndic.model.markov.measurement import onto_simplex
from syndic.model.selection import Grouping, Synthesis
from syndic.model.selection.privmrf import quotas_of
from syndic.model.selection.score import noisy_distance

Names = tuple[str, ...]
Floats = NDArray[np.float64]


def r_score(table: Floats, margins: Sequence[Floats], variance: float | None = None) -> float:
    """Return half the l1 distance of a pair's table from the product of its columns' own counts, in people.

    With the variance of a cell, the part that noise explains is subtracted; the result is negative if noise explains
    all of it. Without, as published: noise in the cells counts as dependence.
    """
    product = np.outer(*margins) / max(1.0, float(margins[0].sum()))
    if variance is None:
        return float(np.abs(table - product).sum()) / 2
    return noisy_distance(table, product, variance) / 2


def joined_graph(
    domain: Domain,
    sets: Iterable[Names],
    scores: Mapping[Names, float],
    *,
    largest: int,
    most_cells: int,
    edges: int | None = None,
) -> list[Names]:
    """Return the maximal cliques after adding edges by decreasing score, as long as the model stays small enough.

    Args:
        domain: All columns, with all their values.
        sets: The cliques of the parties' own graphs.
        scores: The R-score of pairs of columns; only positive ones become edges.
        largest: The most cells of a clique after triangulation.
        most_cells: The most cells of all cliques.
        edges: The most edges added; None for as many as fit.
    """
    kept = [tuple(one) for one in sets]
    cliques = triangulate(domain, kept)
    added = 0
    for names in sorted(scores, key=lambda one: -scores[one]):
        if scores[names] <= 0 or (edges is not None and added >= edges):
            break
        tried = triangulate(domain, [*kept, names])
        sizes = [domain.project(one).size for one in tried]
        if max(sizes) <= largest and sum(sizes) <= most_cells:
            kept.append(names)
            cliques = tried
            added += 1
    return cliques


# fraction of the loss due to the noise of tables across parties, at which a fit to them stops
_TARGET = 0.3
# fraction of a table's variance that remains, approximately, after fixing its margins and removing negative cells
_KNOWN = 0.1


@final
@dataclass(frozen=True, eq=False)
class LocalModel:
    """A party's own model, and the tables it was fitted to with the variance of their cells."""

    fitted: Synthesis
    tables: Mapping[Names, float]

    @property
    def variance(self) -> float:
        """The mean variance of a cell of its tables."""
        return float(np.mean(list(self.tables.values())))


@final
@dataclass(frozen=True, eq=False)
class Built:
    """The model over groups of values, every column's counts, tables within parties, and binned tables across them."""

    field: MarkovField
    groups: Grouping
    one_way: tuple[Measurement, ...]
    within: tuple[Measurement, ...]
    across: tuple[Measurement, ...]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Build:
    """The inputs of the model, and its size limits.

    Args:
        bins: The bins that encodings count.
        people: The number of people, public or noisy.
        pairs: The pairs of columns that were encoded together.
        across: Tables of such pairs.
        local: The parties' models, if any.
        counts: Noisy counts of every value, for some columns.
        spread: Whether the count of a bin is divided among its values by their known counts, or evenly.
        consistency: Whether tables across parties are made to agree with the columns' own counts.
        aware: Whether scores correct for noise and tables are weighted by their precision; if not, as published.
        largest: The most cells of a clique.
        cells: The most cells of the model.
        edges: The most edges between parties.
        refined: How many tables across parties the model is fitted to.
        rounds: In how many rounds they are chosen.
        iterations: The most passes of a fit.
    """

    bins: Grouping
    people: float
    pairs: Sequence[Names]
    across: Across
    local: Sequence[LocalModel]
    counts: Mapping[str, Measurement]
    spread: bool
    consistency: bool
    aware: bool
    largest: int
    cells: int
    edges: int | None
    refined: int
    rounds: int
    iterations: int = 400

    def run(self) -> Built:
        """Join the graphs, fit to the parties' own models, then refine with tables across parties."""
        domain = self.groups.domain_of_groups
        scores = {names: self._score(names) for names in self.pairs}
        sets = [clique for one in self.local for clique in one.fitted.field.tree.cliques]
        cliques = joined_graph(domain, sets, scores, largest=self.largest, most_cells=self.cells, edges=self.edges)
        tree = plan_tree(domain, cliques)
        first = [*map(self.groups.gather, self.one_way.values()), *self.within]
        field = self._fitted(tree, first, None, ())
        candidates = [names for names in self.pairs if tree.home(names) is not None]
        chosen: list[Names] = []
        for quota in quotas_of(min(self.refined, len(candidates)), self.rounds):
            furthest = self._furthest(field, [names for names in candidates if names not in chosen])[:quota]
            if not furthest:
                break
            chosen += furthest
            field = self._fitted(tree, first, field, chosen)
        return Built(
            field=field,
            groups=self.groups,
            one_way=tuple(self.one_way.values()),
            within=self.within,
            across=tuple(Measurement(names, self._raw[names], self.across.variance(names)) for names in self.pairs),
        )

    def _fitted(
        self, tree: JunctionTree, within: Sequence[Measurement], start: MarkovField | None, chosen: Sequence[Names]
    ) -> MarkovField:
        tables = [*within, *map(self._target, chosen)]
        if not self.aware:
            # any common variance has the same minimum. The optimiser moves logarithms by residuals over it: with 1,
            # where tables disagree by thousands of people, hundreds of passes end far from the minimum
            tables = [Measurement(one.names, one.values, self.people) for one in tables]
        # tables within parties come from a model and leave no loss; other tables have only the noise of their bins
        noisy = sum(self._raw[names].size for names in chosen) / sum(one.values.size for one in tables)
        return fit(
            self.groups.domain_of_groups,
            tables,
            tree=tree,
            start=start,
            total=self.people,
            iterations=self.iterations,
            target=_TARGET * noisy if self.aware else 0.0,
        ).field

    # Within parties.

    @cached_property
    def groups(self) -> Grouping:
        """The groups of values that the model distinguishes: those of the local models."""
        known = {
            name: groups
            for one in self.local
            for name, groups in zip(one.fitted.grouping.domain.names, one.fitted.grouping.groups, strict=True)
        }
        domain = self.bins.domain
        return Grouping(domain, tuple(known.get(name, tuple(range(domain[name]))) for name in domain.names))

    @cached_property
    def one_way(self) -> dict[str, Measurement]:
        """Every column's own counts: from local models, or noisy counts, or estimated from encodings."""
        found = {
            name: Measurement((name,), np.maximum(one.fitted.marginal((name,)).values, 0.0), one.variance)
            for one in self.local
            for name in one.fitted.grouping.domain.names
        }
        for name in self.bins.domain.names:
            if name not in found:
                one = self.counts.get(name)
                found[name] = (
                    Measurement(one.names, onto_simplex(one.values, self.people), one.variance)
                    if one
                    else self._encoded(name)
                )
        return {name: found[name] for name in self.bins.domain.names}

    def _encoded(self, name: str) -> Measurement:
        """Return a column's counts as the mean over all tables across parties, bins divided evenly."""
        held = [names for names in self.pairs if name in names]
        size = self.bins.domain_of_groups[name]
        sums = [self._raw[names].sum(axis=1 - names.index(name)) for names in held]
        mean = np.mean(sums, axis=0) if sums else np.full(size, self.people / size)
        variance = float(np.mean([self.across.variance(names) for names in held])) if held else self.people**2
        even = {name: np.zeros(self.bins.domain[name])}
        shares = [shares_of_bins(name, self.bins, Grouping.none(self.bins.domain), even)]
        spread = recovered(onto_simplex(mean, self.people), shares)
        return Measurement((name,), spread, recovered_variance(size * variance, shares))

    @cached_property
    def within(self) -> tuple[Measurement, ...]:
        """The tables of several columns that local models were fitted to, as computed from those models."""
        found = []
        for one in self.local:
            tables = [names for names in one.tables if len(names) > 1]
            for names, table in zip(tables, one.fitted.field.marginals(tables), strict=True):
                found.append(Measurement(names, table.values, one.tables[names]))
        return tuple(found)

    # Across parties.

    @cached_property
    def _raw(self) -> dict[Names, Floats]:
        return {names: self.across.table(names) for names in self.pairs}

    @cached_property
    def _binned(self) -> dict[str, Floats]:
        return {name: self.bins.gather(one).values for name, one in self.one_way.items()}

    @cached_property
    def _shares(self) -> dict[str, Floats]:
        """The share of each value in its bin; equal shares if nothing is known about the values."""
        known = {name for one in self.local for name in one.fitted.grouping.domain.names} | set(self.counts)
        used = known if self.spread else set()
        names = self.bins.domain.names
        weights = {name: self.one_way[name].values * (name in used) for name in names}
        return {name: shares_of_bins(name, self.bins, self.groups, weights) for name in names}

    def _score(self, names: Names) -> float:
        if self.aware:
            return r_score(self._raw[names], [self._binned[name] for name in names], self.across.variance(names))
        table = self.people * shares_of(self._raw[names])
        return r_score(table, [table.sum(axis=1), table.sum(axis=0)])

    def _low(self, names: Names) -> Floats:
        """Return a consistent table over bins, without negative cells."""
        if not self.consistency:
            raw = self._raw[names]
            return onto_simplex(raw, self.people) if self.aware else self.people * shares_of(raw)
        trust = 1.0 if self.aware and self.local else 0.5
        return consistent(self._raw[names], [self._binned[name] for name in names], trust=trust)

    def _target(self, names: Names) -> Measurement:
        """Return the table over the model's groups of values that it is fitted to."""
        shares = [self._shares[name] for name in names]
        variance = _KNOWN * recovered_variance(self.across.variance(names), shares)
        return Measurement(names, recovered(self._low(names), shares), variance)

    def _furthest(self, field: MarkovField, candidates: Sequence[Names]) -> list[Names]:
        """Return candidates by decreasing distance from the model, without those that noise explains."""
        apart = {}
        weights = {name: one.values for name, one in self.one_way.items()}
        for names, table in zip(candidates, field.marginals(candidates), strict=True):
            spread = Measurement(names, self.groups.spread(table, weights).values, 1.0)
            expected = self.bins.gather(spread).values
            if self.aware:
                apart[names] = noisy_distance(self._raw[names], expected, self.across.variance(names))
            else:
                apart[names] = float(np.abs(self._low(names) - expected).sum())
        return sorted((names for names in apart if apart[names] > 0), key=lambda one: -apart[one])
