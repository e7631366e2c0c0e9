"""A noisy Gram matrix: sums over people of products of two features, opened once and used for many analyses.

Everything here is computed from opened and public numbers, so it costs nothing, however often it is used. Sums are in
units of the features' z, which is in [-1, 1].
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import INTERCEPT, Coding, Feature
from syndic.errors import InputError

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

_CONSTANT = -1


def sensitivity_squared(
    codings: Sequence[Coding], presences: int = 0, lengths: Sequence[tuple[int, Fraction]] = ()
) -> Fraction:
    """Return the squared l2 sensitivity of all opened sums, for |z| <= 1, when one person's values are replaced.

    Let z and w be a person's features before and after, u and v their squares, and B the number of blocks, the
    intercept included. In each block at most one feature is not zero, so products within a block are zero and the
    opened sums are those of products across blocks, and the squares of numbers (that of an indicator is its product
    with the intercept, that of a sign is 1). Their change is, squared and summed,
    (|z|^4 + |w|^4 - 2 (z'w)^2 + D - E) / 2, D = sum of (u_i - v_i)^2 over numbers, E over indicators.

    (sum u)^2 + (sum v)^2 + D is convex in u and v, hence largest where each block has nothing or a single 1: with all
    blocks at 1 it is 2 B^2 + 2 M, where M blocks can change from one number to another; emptying a block loses more
    than D gains. This gives B^2 + M. Of K complete blocks let k change: each adds 2 to E, the others and the intercept
    add 1 to z'w, and the N remaining blocks take at most N off. With t = 1 + K - k - N, (z'w)^2 + E / 2 is at least
    t^2 + k >= t + k for t > 0, and k otherwise: never below 1 + K - N. So B^2 + M - max(0, 1 + K - N).

    With `presences`, people may be absent: that many indicators of presence replace the intercept, their own squares
    are opened too, and no block is complete.

    With `lengths`, rows are clipped: for each entry, a group of blocks of numbers has a sum of squares of at most that
    length. The group counts as that many blocks in B, and as D is at most sum (u + v) for it, B^2 + M grows by the sum
    of the lengths.
    """
    several = sum(coding.numbers > 1 for coding in codings)
    shortened = sum((length for _, length in lengths), Fraction(0))
    blocks = len(codings) - sum(count for count, _ in lengths) + shortened
    if presences or lengths:
        return (blocks + max(1, presences)) ** 2 + several + shortened
    complete = sum(coding.complete for coding in codings)
    return (blocks + 1) ** 2 + several - max(0, 1 + complete - (len(codings) - complete))


def halved_sensitivity_squared(codings: Sequence[Coding], lengths: Sequence[tuple[int, Fraction]]) -> Fraction:
    """Return the squared l2 sensitivity of sums of rescaled rows, whose squares are opened as two halves each.

    Let z and w be a person's features before and after, with the intercept. The two halves of a square move by
    (u_i - v_i) / 2 each, together (u_i - v_i)^2 / 2 when squared. So all opened sums move by at most half of
    |zz' - ww'|^2 = |z|^4 + |w|^4 - 2 (z'w)^2, which is at most |z|^4 if w is not longer. For each entry of `lengths`
    the numbers of that many blocks add up to at most that length, when squared; every other block adds at most 1, and
    so does the intercept. The level for missing values of a number counts as a block of its own.
    """
    flags = sum(len(coding.features) > 1 for coding in codings if coding.numbers == 1)
    blocks = len(codings) - sum(count for count, _ in lengths) + flags + 1
    return (blocks + sum((length for _, length in lengths), Fraction(0))) ** 2


def squares_of(features: Sequence[Feature]) -> Places:
    """Return the indices of the opened squares of numbers among the values."""
    places = np.diag(places_of(features))
    return places[[feature.values == "number" for feature in features]]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class GramMatrix:
    """Opened sums of products of `features` over `rows` people, each with noise of standard deviation `sigma`.

    `values` has one number for each entry of the upper triangle that is neither a known constant nor equal to another
    entry; `places` maps entries to values. `shortened` means that long rows were clipped, which biases linear fits.
    `projection` is the projection applied to the noise of the values, if any (`syndic.model.gram.consistent`).
    `halved`: squares of numbers were opened as two halves, so that their noise has twice the variance.
    """

    features: tuple[Feature, ...]
    rows: int
    values: Numbers
    sigma: float
    shortened: bool = False
    projection: Callable[[Numbers], Numbers] | None = None
    halved: bool = False

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names):
            raise ValueError("features must have distinct names")
        wanted = int(self.places.max()) + 1
        if self.values.shape != (wanted,):
            raise InputError(f"a Gram matrix of these {len(self.features)} features has {wanted} sums")

    @classmethod
    def of(
        cls,
        matrix: Numbers,
        names: Iterable[str],
        *,
        sigma: float = 0.0,
        generator: np.random.Generator | None = None,
    ) -> Self:
        """Return the Gram matrix of rows in [-1, 1] with the intercept. For simulation: it is not private."""
        features = (intercept(), *(Feature(name=name, block=name) for name in names))
        rows = np.column_stack([np.ones(len(matrix)), matrix])
        places = places_of(features)
        values = _upper(places, rows.T @ rows)
        if generator is not None:
            values = values + sigma * generator.standard_normal(len(values))
        return cls(features=features, rows=len(matrix), values=values, sigma=sigma)

    @property
    def names(self) -> tuple[str, ...]:
        """The features' names, in the order of the matrix."""
        return tuple(feature.name for feature in self.features)

    @property
    def overlapping(self) -> bool:
        """Whether people may be absent at some parties, so that there is no intercept but several presences."""
        return self.features[0].name != INTERCEPT

    @cached_property
    def places(self) -> Places:
        """The index of the value of each entry of the matrix, or -1 if the entry is a known constant."""
        return places_of(self.features)

    @cached_property
    def matrix(self) -> Numbers:
        """The matrix, symmetric; with noise it may have negative eigenvalues."""
        return np.where(self.places == _CONSTANT, _constants(self.features, self.rows), self.values[self.places])

    def index(self, name: str) -> int:
        """Return the index of a feature."""
        if name not in self.names:
            raise InputError(f"there is no feature {name!r}; the features are {', '.join(self.names)}")
        return self.names.index(name)

    def noise_map(self, rows: Sequence[int], vector: Numbers) -> Numbers:
        """Return A such that (noise matrix times `vector`), at some rows, is A times the noise of the values."""
        found = np.zeros((len(rows), len(self.values)))
        for place, row in enumerate(rows):
            noisy = self.places[row] != _CONSTANT
            np.add.at(found[place], self.places[row][noisy], vector[noisy])
        return self._relative * (found if self.projection is None else self.projection(found))

    def noise_weights(self, vector: Numbers) -> Numbers:
        """Return c such that vector' (noise matrix) vector is c times the noise of the values."""
        weights = np.outer(vector, vector)
        noisy = self.places != _CONSTANT
        found = np.bincount(self.places[noisy], weights=weights[noisy], minlength=len(self.values)).astype(np.float64)
        return self._relative * (found if self.projection is None else self.projection(found[None, :])[0])

    @cached_property
    def _relative(self) -> Numbers:
        """The noise of each value over `sigma`."""
        relative = np.ones(len(self.values))
        if self.halved:
            relative[squares_of(self.features)] = 2**0.5
        return relative

    def renoised(self, sigma: float, generator: np.random.Generator) -> "GramMatrix":
        """Return this matrix with more noise, for experiments."""
        total = float(np.hypot(self.sigma, sigma))
        return replace(
            self, values=self.values + sigma * self._relative * generator.standard_normal(len(self.values)), sigma=total
        )


def intercept() -> Feature:
    """Return the feature that is 1 in every row."""
    return Feature(name=INTERCEPT, block=INTERCEPT, values="indicator")


def presence(party: str) -> Feature:
    """Return the feature that is 1 in the row of every person that the party has."""
    name = f"(at {party})"
    return Feature(name=name, block=name, values="indicator", ones=name)


def places_of(features: Sequence[Feature]) -> Places:
    """Return the index of the opened value of each entry of the matrix, numbered along the upper triangle."""
    names = [feature.name for feature in features]
    ones = [names.index(feature.ones) for feature in features]
    places = np.full((len(features), len(features)), _CONSTANT, dtype=np.int64)
    count = 0
    for i, first in enumerate(features):
        for j in range(i, len(features)):
            if _opened(first, features[j], i, j):
                places[i, j] = places[j, i] = count
                count += 1
    for i, feature in enumerate(features):
        if feature.values == "indicator" and feature.name != INTERCEPT:
            places[i, i] = places[ones[i], i]
        elif feature.values == "sign":
            places[i, i] = places[ones[i], ones[i]]
    return places


def _opened(first: Feature, second: Feature, i: int, j: int) -> bool:
    if i == j:
        # the square of a presence is opened; other indicators are counted by their product with the ones
        return first.values == "number" or (first.ones == first.name != INTERCEPT)
    return first.block != second.block


def _constants(features: Sequence[Feature], rows: int) -> Numbers:
    known = [rows if each.name == INTERCEPT or each.values == "sign" else 0 for each in features]
    return np.diag(np.array(known, dtype=np.float64))


def _upper(places: Places, matrix: Numbers) -> Numbers:
    values = np.zeros(int(places.max()) + 1)
    upper = np.triu(np.ones_like(places, dtype=bool)) & (places != _CONSTANT)
    values[places[upper]] = matrix[upper]
    return values
