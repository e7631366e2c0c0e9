"""The extension K = F_p[x] / (x^4 - c) of a prime field, for challenges that cannot be guessed.

p leaves 1 divided by 4 and c is no square, so x^4 - c is irreducible and K is a field of p^4 elements. For primes above
2^32 x^2 - c is enough, for any odd p. An array of elements has their coefficients along its first axis, as whole
numbers: in doubles, exact since no sum before a reduction exceeds 2^53, and for primes above 2^23 in 64-bit integers,
for the same reason up to 2^63; for those above 2^32 every product is reduced by itself.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from math import prod
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.mpc.limb import matrix_product
from syndic.mpc.ring import Residues, multiplied

Elements = NDArray[Any]
DEGREE: Final = 4
_DOUBLE: Final = 1 << 53
_WHOLE: Final = 1 << 63
_LARGEST_IN_DOUBLES: Final = 1 << 23
_LARGEST_QUARTIC: Final = 1 << 32


@final
@dataclass(frozen=True)
class Extension:
    """The elements of K over the integers modulo `prime`."""

    prime: int

    @cached_property
    def root(self) -> int:
        """The smallest c that is no square modulo the prime."""
        return next(c for c in range(2, self.prime) if pow(c, (self.prime - 1) // 2, self.prime) == self.prime - 1)

    @property
    def wide(self) -> bool:
        """Whether a product of two numbers has to be reduced at once."""
        return self.prime > _LARGEST_QUARTIC

    @property
    def degree(self) -> int:
        """How many coefficients an element has."""
        return 2 if self.wide else DEGREE

    @property
    def doubles(self) -> bool:
        """Whether numbers are kept in doubles, which are multiplied faster."""
        return self.prime < _LARGEST_IN_DOUBLES

    def elements(self, values: NDArray[Any]) -> Elements:
        """Return whole numbers in the type in which they are calculated with."""
        return values.astype(np.float64 if self.doubles else np.int64)

    def reduce(self, values: Elements) -> Elements:
        """Return whole numbers, half as large below zero as above it, modulo the prime."""
        if not self.doubles:
            return np.mod(values, self.prime)
        # the quotient is rounded by less than the least distance from the next whole number
        whole: Elements = np.asarray(values / self.prime)
        np.floor(whole, out=whole)
        whole *= self.prime
        return np.subtract(values, whole, out=whole)

    def times(self, left: Elements, right: Elements) -> Elements:
        """Return the products of elements."""
        found = np.empty((self.degree, *np.broadcast_shapes(left.shape[1:], right.shape[1:])), dtype=left.dtype)
        for place in range(self.degree):
            # x^degree is the root: the parts that go beyond come back times it
            total = np.zeros_like(found[0])
            for one in (*range(place + 1, self.degree), *range(place + 1)):
                if one == 0:
                    total *= self.root
                total += self._numbers(left[one], right[(place - one) % self.degree])
            found[place] = self.reduce(total)
        return found

    def _numbers(self, left: Elements, right: Elements) -> Elements:
        """Return products of coefficients; reduced where a sum of several would overflow."""
        return multiplied(left, right, self.prime) if self.wide else left * right

    def scaled(self, elements: Elements, numbers: Elements) -> Elements:
        """Return elements times numbers of the prime field."""
        return self.reduce(self._numbers(elements, numbers))

    def product(self, matrix: Elements, elements: Elements) -> Elements:
        """Return the product of a matrix of the prime field with a matrix, or an array of matrices, of coefficients."""
        if not self.wide:
            return self.reduce(matrix @ elements)
        if elements.ndim == 2:
            return matrix_product(matrix.T, elements, Residues(self.prime)).astype(np.int64)
        side_by_side = matrix_product(matrix.T, np.concatenate(list(elements), axis=1), Residues(self.prime))
        return np.stack(np.split(side_by_side.astype(np.int64), len(elements), axis=1))

    def squares(self, elements: Elements) -> Elements:
        """Return the sums over the last axis of the squares of elements."""
        total = np.zeros(elements.shape[:-1], dtype=elements.dtype)
        most = (_DOUBLE if self.doubles else _WHOLE) // (self.prime if self.wide else self.prime**2)
        for start in range(0, elements.shape[-1], most):
            part = elements[..., start : start + most]
            for one, other in combinations_with_replacement(range(self.degree), 2):
                weight = (1 if one == other else 2) * (self.root if one + other >= self.degree else 1)
                if self.wide:
                    sums = self._numbers(part[one], part[other]).sum(axis=-1)
                else:
                    sums = np.einsum("...s,...s->...", part[one], part[other])
                total[(one + other) % self.degree] += weight * self.reduce(sums)
            total = self.reduce(total)
        return total

    def sums(self, elements: Elements) -> Elements:
        """Return the sums of elements over the last axis."""
        if not self.wide:
            return self.reduce(elements.sum(axis=-1))
        high, low = (self.reduce(each.sum(axis=-1)) for each in (elements >> 32, elements & ((1 << 32) - 1)))
        return self.reduce(low + multiplied(high, np.full(1, 1 << 32), self.prime))

    def coefficients(self, degree: int, point: Elements) -> Elements:
        """Return the Lagrange coefficients at `point` in K of polynomials with values at 0, 1, .., `degree`."""
        factors = np.repeat(point[:, None], degree + 1, axis=1)
        factors[0] -= np.arange(degree + 1)
        factors = self.reduce(factors)
        others = self.times(self._before(factors), self._before(factors[:, ::-1])[:, ::-1])
        return self.scaled(others, self.elements(np.array(_weights(self.prime, degree))))

    def _before(self, factors: Elements) -> Elements:
        """Return, for every factor, the product of those before it."""
        found, width = np.roll(factors, 1, axis=1), 1
        found[:, 0] = 0
        found[0, 0] = 1
        while width < found.shape[1]:
            found[:, width:] = self.times(found[:, width:], found[:, :-width])
            width *= 2
        return found

    def extrapolation(self, degree: int) -> Elements:
        """Return the matrix from values at 0, .., `degree` to values at `degree` + 1, .., 2 `degree`."""
        return self.elements(_extrapolation(self.prime, degree))


@lru_cache(maxsize=16)
def _weights(prime: int, degree: int) -> tuple[int, ...]:
    """Return, for every node, one over the product of its distances from the others."""
    distances = [prod(node - other for other in range(degree + 1) if other != node) for node in range(degree + 1)]
    return tuple(pow(each, -1, prime) for each in distances)


@lru_cache(maxsize=16)
def _extrapolation(prime: int, degree: int) -> Elements:
    weights, lines = _weights(prime, degree), []
    for point in range(degree + 1, 2 * degree + 1):
        every = prod(point - node for node in range(degree + 1))
        lines.append([every // (point - node) * weight % prime for node, weight in enumerate(weights)])
    return np.array(lines, dtype=np.int64)
