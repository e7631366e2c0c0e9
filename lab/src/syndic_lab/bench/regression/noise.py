"""Sums of products of noisy rows, drawn without the rows: what regressions need of a release, at any size.

For Gaussian noise only the sums of the exact rows matter. *Not mixed*: turn the n rows so that the exact ones fill as
many rows as there are columns; noise is the same turned. What is left is noise alone, a Wishart matrix. This is exact.
*Mixed*: k rows of n signs times values are independent, and normal in the limit of many people with covariance (sums /
k). With noise their sums of products are Wishart. `with_signs` has the signs themselves, to compare.

The noise here is floating-point noise of a seeded generator: it protects nobody.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.coding import Feature
from syndic.document import exact
from syndic.model.gram.fit import Fit, regress
from syndic.model.gram.matrix import GramMatrix, intercept
from syndic.model.gram.mixed import freed_sums
from syndic.model.gram.mixing import Mixer, mixes_for
from syndic.privacy import mu_squared_for

Numbers = NDArray[np.float64]

DELTA: Final = 1e-5
_BITS: Final = 10


def noisy_sums(sums: Numbers, people: int, variance: float, generator: np.random.Generator) -> Numbers:
    """Return sums of products after noise of that variance on every entry of the rows."""
    size = len(sums)
    rows = _root(sums).T + sqrt(variance) * generator.standard_normal((size, size))
    return rows.T @ rows + _wishart(people - size, sqrt(variance) * np.eye(size), generator)


def mixed_sums(sums: Numbers, mixes: int, variance: Numbers | float, generator: np.random.Generator) -> Numbers:
    """Return sums of products of mixed rows with noise, in the limit of many people; `variance` may go by column."""
    noise = np.broadcast_to(np.asarray(variance, dtype=np.float64), (len(sums),))
    return _wishart(mixes, _root(sums / mixes + np.diag(noise)), generator)


def with_signs(rows: Numbers, mixes: int, variance: float, generator: np.random.Generator) -> Numbers:
    """Return the same from the signs themselves; rows in [-1, 1] become whole numbers first."""
    mixer = Mixer(mixes=mixes, width=rows.shape[1], bits=_BITS, stream=lambda _tile, length: generator.bytes(length))
    mixer.add(np.rint(rows * 2.0**_BITS).astype(np.int32))
    mixed = mixer.total() / (2.0**_BITS * sqrt(mixes))
    mixed = mixed + sqrt(variance) * generator.standard_normal(mixed.shape)
    return mixed.T @ mixed


@final
@dataclass(frozen=True, eq=False)
class Joint:
    """Sound releases of a table of columns in [-1, 1]: (epsilon, 1e-5) for a person over all parties, by `replace`.

    `sums` are of the ones and all columns, the label last.
    """

    sums: Numbers
    people: int
    epsilon: float
    parties: int

    @property
    def columns(self) -> int:
        """How many there are, the label counted."""
        return len(self.sums) - 1

    @property
    def tau(self) -> float:
        """The noise of an entry of noisy columns."""
        return 2 * sqrt(self.columns) / mu_for(self.epsilon)

    @property
    def sigma(self) -> float:
        """The noise of a sum of the secure Gram matrix, of shares where one party may collude."""
        return (self.columns + 1) / mu_for(self.epsilon) * sqrt(self.parties / (self.parties - 1))

    def mixed(self, generator: np.random.Generator, mixes: int | None = None) -> Fit:
        """Return the regression from noisy mixed rows, noise and shrinkage allowed for."""
        count = mixes or mixes_for(people=self.people, features=self.columns, tau=self.tau)
        noise = np.full(self.columns, self.tau)
        sums = mixed_sums(self.sums, count, np.concatenate([[0.0], noise**2]), generator)
        gram = freed_sums(sums, self._features, people=self.people, noise=noise, rows=count, mixed=True)
        return regress(gram, self._features[-1].name)

    def gram(self, generator: np.random.Generator) -> Fit:
        """Return the regression from the secure Gram matrix."""
        values = self.sums[np.triu_indices(len(self.sums))][1:]
        noisy = values + self.sigma * generator.standard_normal(len(values))
        gram = GramMatrix(features=(intercept(), *self._features), rows=self.people, values=noisy, sigma=self.sigma)
        return regress(gram, self._features[-1].name)

    @property
    def _features(self) -> tuple[Feature, ...]:
        return tuple(Feature(name=f"c{place}", block=f"c{place}") for place in range(self.columns))


@lru_cache
def mu_for(epsilon: float) -> float:
    """Return the mu that (epsilon, 1e-5) allows, by the exact profile."""
    return sqrt(mu_squared_for(exact(epsilon), Fraction(1, 10**5)))


def _root(matrix: Numbers) -> Numbers:
    """Return R with R R' = matrix, which may be singular."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _wishart(freedom: int, root: Numbers, generator: np.random.Generator) -> Numbers:
    """Return the sums of products of so many normal rows of covariance (root root'), by Bartlett's triangle."""
    size = len(root)
    triangle = np.tril(generator.standard_normal((size, size)), -1)
    triangle[np.diag_indices(size)] = np.sqrt(generator.chisquare(freedom - np.arange(size)))
    half = root @ triangle
    return half @ half.T
