"""A dense table over a domain: counts, probabilities or their logarithms."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.data.domain import Domain


@final
@dataclass(frozen=True, eq=False)
class Factor:
    """One number for each cell of a domain. Exact counts in it are private."""

    domain: Domain
    values: NDArray[Any] = field(repr=False)  # exact counts are private, also in logs

    def __post_init__(self) -> None:
        if self.values.shape != self.domain.sizes:
            raise ValueError(f"values of shape {self.values.shape} must have the domain's {self.domain.sizes}")

    def project(self, names: Iterable[str]) -> "Factor":
        """Sum out every column not in `names`; the result has their order."""
        return self._reduce(tuple(names), lambda values, axes: values.sum(axis=axes))

    def project_log(self, names: Iterable[str]) -> "Factor":
        """Sum out every column not in `names`, for values that are logarithms."""

        def reduce(values: NDArray[Any], axes: tuple[int, ...]) -> NDArray[Any]:
            # scipy reads an empty tuple of axes as all of them
            return np.asarray(scipy.special.logsumexp(values, axis=axes)) if axes else values

        return self._reduce(tuple(names), reduce)

    def expand(self, domain: Domain) -> "Factor":
        """Return the same values repeated over the columns only `domain` has (a read-only view)."""
        shared = domain.project(name for name in domain.names if name in self.domain)
        if domain.project(self.domain.names) != self.domain:
            raise ValueError(f"domain {domain.sizes} must agree with this factor's {self.domain.sizes}")
        shape = tuple(size if name in self.domain else 1 for name, size in zip(domain.names, domain.sizes, strict=True))
        values = self.transpose(shared.names).values.reshape(shape)
        return Factor(domain, np.broadcast_to(values, domain.sizes))

    def transpose(self, names: Iterable[str]) -> "Factor":
        """Return the same table with its columns in another order (a view)."""
        names = tuple(names)
        if sorted(names) != sorted(self.domain.names):
            raise ValueError(f"{list(names)} must be an order of {list(self.domain.names)}")
        return Factor(self.domain.project(names), self.values.transpose(self.domain.axes(names)))

    def sum(self) -> Any:
        """Return the sum of all cells."""
        return self.values.sum()

    def max(self) -> Any:
        """Return the largest cell."""
        return self.values.max()

    def normalise(self) -> "Factor":
        """Return the values divided by their sum; all zero becomes uniform."""
        total = self.values.sum()
        if total == 0:
            return Factor(self.domain, np.full(self.domain.sizes, 1 / self.domain.size))
        return Factor(self.domain, self.values / total)

    def normalise_log(self) -> "Factor":
        """Return logarithms shifted so that their exponentials sum to one."""
        return Factor(self.domain, self.values - scipy.special.logsumexp(self.values))

    def exp(self) -> "Factor":
        """Return the exponential of every cell."""
        return Factor(self.domain, np.exp(self.values))

    def __add__(self, other: "Factor | float") -> "Factor":
        return self._combine(other, np.add)

    def __sub__(self, other: "Factor | float") -> "Factor":
        return self._combine(other, np.subtract)

    def __mul__(self, other: "Factor | float") -> "Factor":
        return self._combine(other, np.multiply)

    def _combine(self, other: "Factor | float", operation: Callable[[NDArray[Any], Any], NDArray[Any]]) -> "Factor":
        if not isinstance(other, Factor):
            return Factor(self.domain, operation(self.values, other))
        domain = self.domain.merge(other.domain)
        return Factor(domain, operation(self.expand(domain).values, other.expand(domain).values))

    def _reduce(
        self, names: tuple[str, ...], reduce: Callable[[NDArray[Any], tuple[int, ...]], NDArray[Any]]
    ) -> "Factor":
        kept = set(self.domain.axes(names))
        axes = tuple(axis for axis in range(len(self.domain)) if axis not in kept)
        order = tuple(name for name in self.domain.names if name in names)
        reduced = Factor(self.domain.project(order), np.asarray(reduce(self.values, axes)))
        return reduced.transpose(names)
