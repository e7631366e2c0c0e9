"""Groups of columns, and for each group a latent attribute that represents it: the first phase of a latent tree.

After the two-phase latent attribute generation of Tang et al. (2021), for columns with any number of levels. This
module reads noisy numbers only, so anybody may run it.

The number of groups is public: columns are packed by size. Which columns share a group follows from noisy scores. A
group's latent attribute is the one that explains most of the total correlation of its columns (Ver Steeg and Galstyan
2014), with hard assignment: each combination of values has one latent level, so latent attributes are counted like
columns.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.data.column import code_type
from syndic.model.markov.measurement import onto_simplex

Names = tuple[str, ...]
Scores = Mapping[frozenset[str], float]
Floats = NDArray[np.float64]
ITERATIONS: Final = 100
STARTS: Final = 4
# smallest probability, since the logarithm of zero is infinite
_LEAST: Final = 1e-12


@final
@dataclass(frozen=True, eq=False)
class Latent:
    """A latent attribute: `level_of` has the level of every combination of the group's columns, in the domain's order.

    Public: it is computed from noisy counts.
    """

    domain: Domain
    level_of: NDArray[np.int64]

    def encode(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Return the latent level of every row. As private as the rows."""
        cells = self.domain.index([codes[name] for name in self.domain.names])
        return self.level_of.astype(code_type(int(self.level_of.max()) + 1))[cells]


def packed(domain: Domain, most_columns: int, most_cells: int) -> tuple[Names, ...]:
    """Return groups of columns within both limits, by size alone: the largest first, each where it fits (first fit).

    A column with more levels than `most_cells` is alone.
    """
    groups: list[list[str]] = []
    for name in sorted(domain.names, key=lambda one: -domain[one]):
        fits = [one for one in groups if _fits(domain, [*one, name], most_columns, most_cells)]
        if fits:
            fits[0].append(name)
        else:
            groups.append([name])
    return tuple(tuple(one) for one in groups)


def regrouped(
    domain: Domain, groups: Sequence[Names], scores: Scores, most_columns: int, most_cells: int
) -> tuple[Names, ...]:
    """Return the same number of groups, with columns moved or swapped while the noisy scores within groups improve."""
    found = [set(one) for one in groups]
    better = True
    while better:
        better = False
        for one, other in itertools.permutations(range(len(found)), 2):
            before = found[one], found[other]
            for given, taken in itertools.product(sorted(before[0]), ("", *sorted(before[1]))):
                after = (before[0] - {given}) | {name for name in (taken,) if name}, (before[1] - {taken}) | {given}
                if not after[0] or not all(_fits(domain, group, most_columns, most_cells) for group in after):
                    continue
                # by more than rounding, so that the loop ends
                if _total_score(after, scores) > _total_score(before, scores) + 1e-9:
                    found[one], found[other] = after
                    better = True
                    break
    order = {name: place for place, name in enumerate(domain.names)}
    return tuple(sorted((tuple(sorted(one, key=order.__getitem__)) for one in found), key=lambda one: order[one[0]]))


def latent_of(domain: Domain, counts: Floats, levels: int, generator: np.random.Generator) -> Latent:
    """Return the latent attribute of a group from its noisy counts: the best of a few random starts."""
    chances = positive(counts).ravel()
    size = domain.size
    if len(domain) == 1 or size <= levels:
        # a single column has no correlation to explain: its frequent levels become latent levels
        order = np.argsort(-chances, kind="stable")
        level_of = np.full(size, min(levels, size) - 1, dtype=np.int64)
        level_of[order[: levels - 1]] = np.arange(min(levels - 1, size))
        return Latent(domain, level_of)
    views = np.unravel_index(np.arange(size), domain.sizes)
    tried = (_explained(domain, chances, views, levels, generator) for _ in range(STARTS))
    return Latent(domain, max(tried, key=lambda one: one[0])[1])


def positive(counts: Floats) -> Floats:
    """Return the nearest table of probabilities in l2: the projection of the counts onto the simplex."""
    total = max(float(counts.sum()), 1.0)
    return onto_simplex(counts, total) / total


def _explained(
    domain: Domain, chances: Floats, views: Sequence[NDArray[np.int64]], levels: int, generator: np.random.Generator
) -> tuple[float, NDArray[np.int64]]:
    """Return how much total correlation a hard latent attribute explains, in bits, and the attribute."""
    given = generator.uniform(0.1, 0.9, (chances.size, levels))
    given /= given.sum(axis=1, keepdims=True)
    for _ in range(ITERATIONS):
        log_level = np.log(np.maximum(chances @ given, _LEAST))
        logs = np.tile(log_level, (chances.size, 1))
        for view, size in zip(views, domain.sizes, strict=True):
            logs += np.log(np.maximum(_within(chances, given, view, size), _LEAST))[view] - log_level
        logs -= logs.max(axis=1, keepdims=True)
        given = np.exp(logs)
        given /= given.sum(axis=1, keepdims=True)
    level_of = np.argmax(given, axis=1)
    hard = np.eye(levels)[level_of]
    total = sum(
        (information(_joint(chances, hard, view, size)) for view, size in zip(views, domain.sizes, strict=True)), 0.0
    )
    return total - _entropy(chances @ hard), level_of


def _joint(chances: Floats, given: Floats, view: NDArray[np.int64], size: int) -> Floats:
    """Return the joint probabilities of each level of one column and each latent level."""
    table = np.empty((size, given.shape[1]))
    for level in range(given.shape[1]):
        table[:, level] = np.bincount(view, chances * given[:, level], size)
    return table


def _within(chances: Floats, given: Floats, view: NDArray[np.int64], size: int) -> Floats:
    """Return the probabilities of latent levels given each level of one column."""
    joint = _joint(chances, given, view, size)
    joint /= np.maximum(joint.sum(axis=1, keepdims=True), _LEAST)
    return joint


def information(table: Floats) -> float:
    """Return the mutual information of a two-way table of probabilities or non-negative counts, in bits."""
    joint = table / max(float(table.sum()), _LEAST)
    return _entropy(joint.sum(axis=0)) + _entropy(joint.sum(axis=1)) - _entropy(joint.ravel())


def _entropy(chances: Floats) -> float:
    some = chances[chances > 0]
    return float(-(some * np.log2(some)).sum())


def _fits(domain: Domain, names: Sequence[str] | set[str], most_columns: int, most_cells: int) -> bool:
    return len(names) == 1 or (len(names) <= most_columns and domain.project(names).size <= most_cells)


def _total_score(groups: Sequence[set[str]], scores: Scores) -> float:
    return sum(scores.get(frozenset(pair), 0.0) for group in groups for pair in itertools.combinations(group, 2))
