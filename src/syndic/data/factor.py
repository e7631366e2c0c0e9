"""A dense table over a domain: counts, probabilities or their logarithms, one number per cell."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
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
        names = tuple(names)
        kept = set(self.domain.axes(names))
        axes = tuple(axis for axis in range(len(self.domain)) if axis not in kept)
        order = tuple(name for name in self.domain.names if name in names)
        return Factor(self.domain.project(order), np.asarray(self.values.sum(axis=axes))).transpose(names)

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
