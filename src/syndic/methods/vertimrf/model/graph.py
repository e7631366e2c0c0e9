"""GraphCom: the parties' graphs are joined by edges between columns that depend on each other."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.model.markov import triangulate
from syndic.model.markov.score import noisy_distance

Names = tuple[str, ...]
Floats = NDArray[np.float64]


def r_score(table: Floats, margins: Sequence[Floats], variance: float | None = None) -> float:
    """Return half the l1 distance of a pair's table from the product of its columns' own counts, in people.

    With the variance of a cell it is what noise alone does not explain, and negative where noise explains all of it;
    without, as printed: noise in the cells counts as dependence.
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
    """Return the maximal cliques after edges were added by decreasing score, as long as the model stays small.

    Args:
        domain: All columns, with all their values.
        sets: The cliques of the parties' own graphs.
        scores: The R-score of pairs of columns; those that are not positive are no edges.
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
