"""Project opened sums onto the linear equations they must satisfy: it removes part of the noise, at no cost.

The indicators of all levels of a categorical column add up to the ones (or to the presence, if people may be absent),
so sums with all levels of a column add up to the sum with the ones; likewise products with all levels add up to the
other factor. Noise is independent and equal on all opened sums, so the best estimate that satisfies these equations is
the nearest one (orthogonal projection), and the remaining noise is the projection of the noise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.model.gram.matrix import GramMatrix

Numbers = NDArray[np.float64]

# limit on the number of equations: more would take too long for their benefit
_MOST: Final = 100_000
# the equations hold up to this share of how far they did not
_EXACT: Final = 1e-12


@final
@dataclass(frozen=True, eq=False)
class Projection:
    """Removes from a vector over the opened sums its component along the equations."""

    equations: "scipy.sparse.csr_array"

    def __call__(self, vectors: Numbers) -> Numbers:
        """Return the vectors, one per row, without that component."""
        return vectors - self.along(self.equations @ vectors.T).T

    def along(self, excess: Numbers) -> Numbers:
        """Return what to subtract so that the equations hold, a column for each of `excess`.

        By conjugate gradients: some equations follow from others, which these leave aside, and a few steps are enough.
        """
        count = self.equations.shape[0]
        across = self.equations.T.tocsr()
        square = scipy.sparse.linalg.LinearOperator(
            (count, count), dtype=np.float64, matvec=lambda some: self.equations @ (across @ some)
        )
        columns = [scipy.sparse.linalg.cg(square, one, rtol=_EXACT)[0] for one in excess.reshape(count, -1).T]
        found: Numbers = across @ np.stack(columns, axis=-1)
        return found.reshape(-1, *excess.shape[1:])


def consistent(gram: GramMatrix) -> GramMatrix:
    """Return the matrix with consistent sums over levels; unchanged if there are no categorical columns."""
    equations, totals = _equations(gram)
    if not len(totals) or len(totals) > _MOST or gram.projection is not None:
        return gram
    projection = Projection(equations)
    values = gram.values - projection.along(equations @ gram.values - totals)
    return replace(gram, values=values, projection=projection)


def _equations(gram: GramMatrix) -> "tuple[scipy.sparse.csr_array, Numbers]":
    """Return one row per equation over the opened sums, and its right-hand side."""
    rows, totals = [], []
    for weights, others in (*_lists(gram), *_products(gram)):
        for other in others:
            row: dict[int, float] = {}
            total = 0.0
            for place, weight in weights.items():
                at = int(gram.places[place, other])
                if at >= 0:
                    row[at] = row.get(at, 0.0) + weight
                else:
                    total -= weight * float(gram.matrix[place, other])
            if any(row.values()):
                rows.append(row)
                totals.append(total)
    entries = [(number, at, value) for number, row in enumerate(rows) for at, value in row.items() if value]
    first, second, data = zip(*entries, strict=True) if entries else ((), (), ())
    shape = (len(rows), len(gram.values))
    return scipy.sparse.csr_array((np.array(data, dtype=np.float64), (first, second)), shape=shape), np.array(totals)


# features with weights whose weighted sum is zero in every row, and the features to multiply it by
Relation = tuple[dict[int, float], Sequence[int]]


def _lists(gram: GramMatrix) -> Iterator[Relation]:
    """Yield the relations that the levels of a categorical column add up to the ones."""
    every = range(len(gram.features))
    for levels in _complete(gram).values():
        yield {**dict.fromkeys(levels, 1.0), gram.index(gram.features[levels[0]].ones): -1.0}, every


def _products(gram: GramMatrix) -> Iterator[Relation]:
    """Yield the relations that products with all levels add up to the other factor, and are zero for other levels."""
    complete, every = _complete(gram), range(len(gram.features))
    sums: dict[tuple[int, str], dict[int, float]] = {}
    for place, feature in enumerate(gram.features):
        for part, other in zip(feature.parts, feature.parts[::-1], strict=True):
            level = gram.features[gram.index(part)]
            if level.values != "indicator":
                continue
            if level.block in complete:
                factor = gram.index(other)
                sums.setdefault((factor, level.block), {factor: -1.0})[place] = 1.0
            for same, sibling in enumerate(gram.features):
                if sibling.block == level.block:
                    yield {same: 1.0, **({gram.index(level.ones): -1.0} if sibling is level else {})}, (place,)
    for weights in sums.values():
        yield weights, every


def _complete(gram: GramMatrix) -> dict[str, list[int]]:
    """Return, by block, the indices of the levels of every categorical column."""
    blocks: dict[str, list[int]] = {}
    mixed = {feature.block for feature in gram.features if feature.values != "indicator"}
    for place, feature in enumerate(gram.features):
        if feature.block not in mixed and feature.ones != feature.name:
            blocks.setdefault(feature.block, []).append(place)
    return blocks
