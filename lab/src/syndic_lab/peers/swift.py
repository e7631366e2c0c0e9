"""SWIFT of google/dpsynth (2026), written after what its source says, over Syndic's inference.

One curator with all rows. Columns are measured, then every pair and triple gets a noisy score: how far it is from
independent columns. A tree of cliques grows pair by pair, the worst first, as long as no clique is too large. Of the
candidates inside the tree those are measured, all at once, whose errors are worth their noise. All noise is Gaussian
and accounted exactly. Noise is floating-point, from a seed: sufficient to compare, not to publish.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from syndic.data import Domain
from syndic.model.markov import MarkovField, fit
from syndic_lab.peers.aim import Clique, Codes, count, measure, noisy_errors, weights_of

COLUMNS_SHARE: Final = 0.1
CHOICE_SHARE: Final = 0.1
PENALTIES: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""What a cell of a pair costs when trees are grown; the best of these trees is taken."""

_ITERATIONS: Final = 1000


@final
@dataclass(frozen=True)
class Settings:
    """Half of mu squared, the most cells of a clique, the largest sets of columns in the workload.

    Its authors allow cliques of 10^7 cells.
    """

    rho: float
    cells: int = 100_000
    ways: int = 3


def swift(codes: Codes, domain: Domain, settings: Settings, seed: int) -> MarkovField:
    """Measure columns, choose a tree and tables in it, measure them at once, fit."""
    draws, rho = np.random.default_rng(seed), settings.rho
    weights = weights_of(domain, settings.ways)
    truth = {names: count(codes, domain, names) for names in weights}
    tables = [measure(truth[(name,)], (name,), COLUMNS_SHARE * rho / len(domain), draws) for name in domain.names]
    model = fit(domain, tables, target=0).field
    errors = noisy_errors(truth, model, list(weights), CHOICE_SHARE * rho, draws)
    tree = best_tree(domain, errors, settings.cells)
    inside = [names for names in weights if any(set(names) <= node for node in tree)]
    # the authors' budget is mu squared, and a deviation of noise is the root of its inverse
    left = 2 * (1 - COLUMNS_SHARE - CHOICE_SHARE) * rho
    for names, share in worth_measuring(domain, weights, errors, inside, left).items():
        tables.append(measure(truth[names], names, share * left / 2, draws))
    return fit(domain, tables, target=0, iterations=_ITERATIONS).field


def worth_measuring(
    domain: Domain,
    weights: Mapping[Clique, float],
    errors: Mapping[Clique, float],
    inside: Sequence[Clique],
    mu_squared: float,
) -> dict[Clique, float]:
    """Return the candidates with the largest sum of errors less noise, by weight, and the share of each."""
    costs = {
        names: (weights[names] * domain.project(names).size * math.sqrt(2 / math.pi)) ** (2 / 3) for names in inside
    }
    gain = cost = 0.0
    best, taken = -math.inf, {}
    for names in sorted(inside, key=lambda each: weights[each] * errors[each] / costs[each], reverse=True):
        gain, cost = gain + weights[names] * errors[names], cost + costs[names]
        score = gain - cost**1.5 / math.sqrt(mu_squared)
        if score <= best:
            break
        best, taken[names] = score, costs[names]
    return {names: each / sum(taken.values()) for names, each in taken.items()}


def best_tree(domain: Domain, errors: Mapping[Clique, float], cells: int) -> list[frozenset[str]]:
    """Return the cliques of the tree that contains pairs with the largest sum of errors."""
    pairs = {frozenset(names): error for names, error in errors.items() if len(names) == 2}

    def gain(nodes: Iterable[frozenset[str]]) -> float:
        return sum(error for pair, error in pairs.items() if any(pair <= node for node in nodes))

    trees = []
    for penalty in PENALTIES:
        order = sorted(pairs, key=lambda pair: pairs[pair] - penalty * domain.project(pair).size, reverse=True)
        trees.append(grown(domain, order, cells))
    return max(trees, key=gain)


def grown(domain: Domain, order: Sequence[frozenset[str]], cells: int) -> list[frozenset[str]]:
    """Grow a tree of cliques by the first pair that fits, again and again; drop pairs that make one too large."""
    tree, left = Growing(domain), list(order)
    while True:
        left = [pair for pair in left if not tree.contains(pair)]
        for pair in left:
            size = tree.add(pair, cells)
            if size is not None:
                left.remove(pair)
                break
        else:
            return list(tree.nodes.values())


@final
@dataclass(eq=False)
class Growing:
    """Cliques by number, links between neighbours, and the component of each."""

    domain: Domain
    nodes: dict[int, frozenset[str]] = field(init=False)
    links: set[frozenset[int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.nodes = {place: frozenset({name}) for place, name in enumerate(self.domain.names)}
        self.part = {place: place for place in self.nodes}

    def contains(self, pair: frozenset[str]) -> bool:
        """Return whether a clique has both columns."""
        return any(pair <= node for node in self.nodes.values())

    def add(self, pair: frozenset[str], cells: int) -> int | None:
        """Add a pair between two components, or along a link; return cells of the new clique.

        None, and nothing happens, where no link joins the two columns. Nothing happens either where the clique would be
        too large.
        """
        one, two = sorted(pair)
        with_one, with_two = ([place for place, node in self.nodes.items() if name in node] for name in (one, two))
        if self.part[with_one[0]] != self.part[with_two[0]]:
            if self._size(pair) <= cells:
                self._join(min(with_one, key=self._cells), min(with_two, key=self._cells), pair)
            return self._size(pair)
        ways = [
            (self._size(self.nodes[place] | pair), place, other)
            for first, second in ((with_one, with_two), (with_two, with_one))
            for place in first
            for other in second
            if frozenset({place, other}) in self.links
        ]
        if not ways:
            return None
        size, place, other = min(ways)
        if size <= cells:
            self._widen(place, other, pair)
        return size

    def _join(self, one: int, two: int, pair: frozenset[str]) -> None:
        """Link two components by the pair, in place of a node that it contains."""
        new = max(self.nodes) + 1
        self.nodes[new], self.part[new] = pair, self.part[one]
        self.links |= {frozenset({new, one}), frozenset({new, two})}
        old = self.part[two]
        self.part = {place: self.part[one] if part == old else part for place, part in self.part.items()}
        for place in (one, two):
            if self.nodes[place] <= pair:
                self._absorb(place, new)

    def _widen(self, place: int, other: int, pair: frozenset[str]) -> None:
        """Put the pair into a clique; its neighbour goes if it is now part of it."""
        self.nodes[place] |= pair
        if self.nodes[other] <= self.nodes[place]:
            self._absorb(other, place)

    def _absorb(self, gone: int, into: int) -> None:
        del self.nodes[gone], self.part[gone]
        moved = {frozenset(into if place == gone else place for place in link) for link in self.links}
        self.links = {link for link in moved if len(link) == 2}

    def _cells(self, place: int) -> int:
        return self._size(self.nodes[place])

    def _size(self, names: frozenset[str]) -> int:
        return self.domain.project(names).size
