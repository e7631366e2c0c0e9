"""A tree of latent attributes: each represents a group of columns, and neighbours in the tree are associated.

After Tang, Cheng, Su, Chen and Shao (2021). Everything here is computed from noisy tables, so it is public: the tables
of the groups, and the tables of pairs of latent attributes. The tree is the one with the most mutual information. A row
is drawn along the tree, then each group's values given its latent level. Columns of different groups are independent
given the latent levels: the model cannot represent other dependence between them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.model.latent.groups import Floats, Latent, information, positive
from syndic.model.markov import MarkovField, Measurement, fit
from syndic.model.markov.sample import draw_column

# a deviation from independence below this many standard deviations of the noise counts as noise
SIGNIFICANT: Final = 3.0
# the weight of a combination of values that noise reduced to zero or less: its latent level may still be drawn
_RARE: Final = 1e-9


@final
@dataclass(frozen=True, eq=False)
class LatentTree:
    """The model. `groups` has each latent attribute with the noisy counts of its columns, `links` the tree's edges.

    `used` has the levels of each latent attribute that occur for some combination of values; `field` is over those.
    """

    groups: Mapping[str, tuple[Latent, Floats]]
    links: tuple[tuple[str, str], ...]
    used: Mapping[str, NDArray[np.int64]]
    field: MarkovField

    def sample(self, rows: int, generator: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Draw rows: a code array for each column."""
        drawn = self.field.sample(rows, generator)
        codes: dict[str, NDArray[Any]] = {}
        for name, (latent, counts) in self.groups.items():
            size = latent.domain.size
            weights = np.zeros((len(self.used[name]), size))
            places = np.searchsorted(self.used[name], latent.level_of)
            weights[places, np.arange(size)] = positive(counts).ravel() + _RARE
            cells = draw_column(weights, drawn[name].astype(np.int64), generator)
            codes |= dict(zip(latent.domain.names, latent.domain.unravel(cells), strict=True))
        return codes


def latent_tree(
    groups: Mapping[str, tuple[Latent, Measurement]], pairs: Sequence[Measurement], total: float
) -> LatentTree:
    """Fit the model to noisy counts of groups and of pairs of latent attributes, the latter on all their levels."""
    used = {name: np.unique(latent.level_of) for name, (latent, _) in groups.items()}
    tables = {(one.names[0], one.names[1]): _on_used(one, used) for one in pairs}
    links = spanning_forest(tuple(groups), {names: strength(one) for names, one in tables.items()})
    measured = [tables[link] for link in links]
    for name, (latent, table) in groups.items():
        levels = len(used[name])
        places = np.searchsorted(used[name], latent.level_of)
        counts = np.bincount(places, table.values.ravel(), levels).astype(np.float64)
        # the mean number of cells that are in one level
        measured.append(Measurement((name,), counts, table.variance * latent.domain.size / levels))
    domain = Domain(tuple(groups), tuple(len(used[name]) for name in groups))
    found = {name: (latent, table.values) for name, (latent, table) in groups.items()}
    return LatentTree(found, links, used, fit(domain, measured, total=total).field)


def strength(table: Measurement) -> float:
    """Return the mutual information of a noisy table, in bits, from the cells that noise does not explain."""
    values = table.values
    sides = [np.maximum(values.sum(axis=axis), 0.0) for axis in (1, 0)]
    expected = np.outer(*sides) / max(float(values.sum()), 1.0)
    significant = np.abs(values - expected) > SIGNIFICANT * table.variance**0.5
    return information(np.where(significant, np.maximum(values, 0.0), expected))


def spanning_forest(names: Sequence[str], weights: Mapping[tuple[str, str], float]) -> tuple[tuple[str, str], ...]:
    """Return the spanning forest of largest total weight, heaviest edge first; edges of weight zero are omitted."""
    root = {name: name for name in names}
    found = []
    for link in sorted(weights, key=lambda one: -weights[one]):
        left, right = root[link[0]], root[link[1]]
        if left != right and weights[link] > 0:
            found.append(link)
            root |= {name: right for name in names if root[name] == left}
    return tuple(found)


def _on_used(table: Measurement, used: Mapping[str, NDArray[np.int64]]) -> Measurement:
    left, right = table.names
    return Measurement(table.names, table.values[np.ix_(used[left], used[right])], table.variance)
