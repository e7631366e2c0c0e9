"""PrivMRF's selection of the attribute graph and of tables, from noisy R-scores."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np

from syndic.data import Domain
from syndic.errors import InputError
from syndic.model.markov.graph import bits, cells, degree, eliminate, graph_of
from syndic.model.selection.counts import Names

PENALTY = 1e-8


@final
@dataclass(frozen=True)
class Scores:
    """Noisy R-scores, as shares of the rows."""

    domain: Domain
    scores: dict[frozenset[str], float]

    def of(self, one: str, other: str) -> float:
        """Return the score of two columns."""
        return self.scores[frozenset((one, other))]

    def parents(self, name: str, parents: Sequence[str]) -> float:
        """Return how well `parents` explain a column: its scores with them, reduced if they are strongly associated."""
        alike = len(parents) + sum(self.of(*pair) for pair in combinations(parents, 2))
        return sum(self.of(name, parent) for parent in parents) / math.sqrt(max(1.0, alike))


def attribute_graph(scores: Scores, sets: Iterable[Names], *, largest: int, most_cells: int) -> list[Names]:
    """Return the cliques of a graph, grown by the edge with the best total score until no further edge fits.

    The total includes all edges after triangulation. `sets` are in the graph from the start.
    """
    domain = scores.domain
    edges = [tuple(names) for names in sets]
    cliques = eliminate(graph_of(domain, edges), domain.sizes, degree)
    if not _fits(domain, cliques, largest, most_cells):
        raise InputError(f"the required sets need more than {largest} cells in one clique: allow more cells")
    left = list(combinations(domain.names, 2))
    while left:
        best: tuple[float, Names, list[int]] | None = None
        feasible = []
        for names in left:
            tried = eliminate(graph_of(domain, [*edges, names]), domain.sizes, degree)
            if not _fits(domain, tried, largest, most_cells):
                continue
            feasible.append(names)
            value = _total(scores, tried)
            if best is None or value > best[0]:
                best = (value, names, tried)
        if best is None:
            break
        edges.append(best[1])
        cliques = best[2]
        left = [names for names in feasible if names != best[1]]
    return [tuple(domain.names[axis] for axis in bits(one)) for one in cliques]


def _fits(domain: Domain, cliques: Sequence[int], largest: int, most_cells: int) -> bool:
    sizes = [cells(one, domain.sizes) for one in cliques]
    return max(sizes) <= largest and sum(sizes) <= most_cells


def _total(scores: Scores, cliques: Sequence[int]) -> float:
    names = scores.domain.names
    edges = {pair for one in cliques for pair in combinations(bits(one), 2)}
    size = sum(cells(one, scores.domain.sizes) for one in cliques)
    return sum(scores.of(names[first], names[second]) for first, second in edges) - PENALTY * size


def initial_tables(
    scores: Scores, cliques: Sequence[Names], limit: float, generator: np.random.Generator
) -> list[Names]:
    """Return about one table per column: the best of greedy Bayesian networks inside the cliques.

    Each column's best table is used unless another contains it; a column in no table gets its own; other tables of the
    networks are added up to the number of columns.
    """
    domain = scores.domain
    best: dict[str, tuple[float, frozenset[str]]] = {}
    met: list[frozenset[str]] = []
    for clique in cliques:
        for name, score, table in _network(scores, clique, limit, generator):
            met.append(table)
            if name not in best or score > best[name][0]:
                best[name] = (score, table)
    tables = _largest([table for _, table in best.values()])
    tables += [frozenset((name,)) for name in domain.names if not any(name in table for table in tables)]
    for place in generator.permutation(len(met)):
        if len(tables) >= len(domain):
            break
        if not any(met[place] <= table for table in tables):
            tables.append(met[place])
    return [_ordered(domain, table) for table in tables]


def _network(
    scores: Scores, clique: Names, limit: float, generator: np.random.Generator
) -> list[tuple[str, float, frozenset[str]]]:
    """Add columns one after the other, each with the parents that explain it best and fit the limit."""
    chosen = [clique[generator.integers(len(clique))]]
    found: list[tuple[str, float, frozenset[str]]] = []
    while len(chosen) < len(clique):
        tries = [
            (scores.parents(name, parents), name, parents)
            for name in clique
            if name not in chosen
            for parents in _parent_sets(scores.domain, chosen, limit / scores.domain[name])
        ]
        score, name, parents = max(tries, key=lambda one: one[0])
        if not parents:
            break
        found.append((name, score, frozenset((name, *parents))))
        chosen.append(name)
    return found


def _parent_sets(domain: Domain, chosen: Sequence[str], limit: float) -> list[Names]:
    """Return the largest sets of chosen columns whose table stays within the limit; the empty set if none does."""
    fitting = [
        frozenset(names)
        for size in range(1, len(chosen) + 1)
        for names in combinations(chosen, size)
        if domain.project(names).size <= limit
    ]
    return [_ordered(domain, one) for one in _largest(fitting)] or [()]


def _largest(tables: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Return the tables that are contained in no other, each once."""
    kept: list[frozenset[str]] = []
    for table in sorted(dict.fromkeys(tables), key=len, reverse=True):
        if not any(table <= other for other in kept):
            kept.append(table)
    return kept


def candidate_weights(domain: Domain, cliques: Sequence[Names], limit: float, most_columns: int) -> dict[Names, float]:
    """Return the tables inside cliques with fewer cells than `limit`, single columns always, and their weights."""
    weights: dict[Names, float] = {}
    for clique in cliques:
        allowed = [
            names
            for size in range(1, min(most_columns, len(clique) - 1) + 1)
            for names in combinations(clique, size)
            if size == 1 or domain.project(names).size < limit
        ]
        for names in allowed:
            weights[names] = weights.get(names, 0.0) + len(clique) ** 2 / len(allowed)
    return weights


def _ordered(domain: Domain, names: Iterable[str]) -> Names:
    kept = set(names)
    return tuple(name for name in domain.names if name in kept)
