"""Means and centred sums of products from a noisy Gram matrix, and statistics computed from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import INTERCEPT
from syndic.errors import InputError
from syndic.model.gram.matrix import GramMatrix

Numbers = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Moments:
    """Means of z, and sums over `rows` people of products of differences from them; `sigma` is the noise of a sum."""

    names: tuple[str, ...]
    means: Numbers
    centred: Numbers
    rows: float
    sigma: float

    @property
    def repaired(self) -> Numbers:
        """The nearest positive semidefinite matrix: the centred sums without the negative eigenvalues due to noise."""
        values, vectors = np.linalg.eigh(self.centred)
        repaired: Numbers = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return repaired

    def correlation(self) -> Numbers:
        """Return correlations, after repair."""
        return _scaled(self.repaired)

    def partial_correlation(self) -> Numbers:
        """Return the correlation of every two features given all the others.

        Eigenvalues below the noise are raised to it: otherwise the inverse would show only noise in those directions.
        """
        values, vectors = np.linalg.eigh(self.centred)
        floor = max(2 * self.sigma * np.sqrt(len(values)), 1e-9 * float(values[-1]))
        inverse = (vectors / np.maximum(values, floor)) @ vectors.T
        partial = -_scaled(inverse)
        np.fill_diagonal(partial, 1.0)
        return partial

    def principal_components(self, count: int | None = None) -> tuple[Numbers, Numbers]:
        """Return the largest variances and their directions, one column each, for z in [-1, 1]."""
        values, vectors = np.linalg.eigh(self.repaired / self.rows)
        kept = slice(None, None, -1) if count is None else slice(None, -count - 1, -1)
        return np.maximum(values[kept], 0.0), vectors[:, kept]


def moments_of(gram: GramMatrix, names: Sequence[str]) -> Moments:
    """Return means and centred sums of some features.

    If people may be absent at some parties, each pair of features uses the people that both parties have (pairwise
    deletion), which is right if absence does not depend on the values. Sums are then scaled to the same number.
    """
    places = [gram.index(name) for name in names]
    if any(gram.features[place].name == INTERCEPT for place in places):
        raise InputError("the intercept has no moments: leave it out")
    if gram.overlapping:
        return _pairwise(gram, tuple(names), places)
    sums = gram.matrix[gram.index(INTERCEPT), places]
    lower, upper = ([getattr(gram.features[place], end) for place in places] for end in ("lower", "upper"))
    # what noise hides of a mean is left at an earlier estimate, if there is one
    before = np.array([gram.features[place].known for place in places]) ** 2
    kept = np.where(before > 0, before / np.maximum(before + (gram.sigma / gram.rows) ** 2, 1e-300), 1.0)
    means = np.clip(kept * sums / gram.rows, lower, upper)
    centred = gram.matrix[np.ix_(places, places)] - gram.rows * np.outer(means, means)
    # the square of a noisy mean is too large by the variance of its noise, unless most means are clipped
    centred[np.diag_indices(len(places))] += kept**2 * gram.sigma**2 / gram.rows if gram.sigma < gram.rows else 0.0
    return Moments(names=tuple(names), means=means, centred=centred, rows=float(gram.rows), sigma=gram.sigma)


def _pairwise(gram: GramMatrix, names: tuple[str, ...], places: list[int]) -> Moments:
    homes = [gram.index(gram.features[place].ones) for place in places]
    # noise can make a count of people too small to divide by
    counts = np.maximum(gram.matrix[np.ix_(homes, homes)], max(1.0, 3 * gram.sigma))
    sums = gram.matrix[np.ix_(places, homes)]
    means = np.clip(sums / counts, -1.0, 1.0)
    products = gram.matrix[np.ix_(places, places)] / counts
    people = float(counts.min())
    centred = people * (products - means * means.T)
    own = np.clip(np.diag(sums) / np.diag(counts), -1.0, 1.0)
    return Moments(names=names, means=own, centred=(centred + centred.T) / 2, rows=people, sigma=gram.sigma)


def _scaled(matrix: Numbers) -> Numbers:
    roots = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    scaled: Numbers = np.clip(matrix / np.outer(roots, roots), -1.0, 1.0)
    return scaled
