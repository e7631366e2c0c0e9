"""Named axes with public sizes: the shape of every table of counts."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError

INDEX_BITS = 63


@final
@dataclass(frozen=True)
class Domain:
    """Columns and how many levels each has. Public: it comes from a schema, never from rows."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.sizes):
            raise ValueError(f"there are {len(self.names)} names but {len(self.sizes)} sizes: give one size each")
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"names {list(self.names)} must be distinct")
        if min(self.sizes, default=1) < 1:
            name, size = min(zip(self.names, self.sizes, strict=True), key=lambda each: each[1])
            raise ValueError(f"size of {name!r} ({size}) must be at least 1")

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> Self:
        """Return the domain of `{name: size}`."""
        return cls(tuple(sizes), tuple(sizes.values()))

    @property
    def size(self) -> int:
        """Number of cells, exact however large."""
        return math.prod(self.sizes)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._position

    def __getitem__(self, name: str) -> int:
        """Return the number of levels of one column."""
        return self.sizes[self.axes([name])[0]]

    def axes(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the positions of `names`."""
        position, names = self._position, tuple(names)
        try:
            return tuple([position[name] for name in names])
        except KeyError:
            unknown = [name for name in names if name not in position]
            raise InputError(f"unknown columns {unknown}: the columns are {list(self.names)}") from None

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def project(self, names: Iterable[str]) -> "Domain":
        """Return the domain of `names`, in the order given."""
        names = tuple(names)
        return Domain(names, tuple([self.sizes[axis] for axis in self.axes(names)]))

    def index(self, codes: Sequence[NDArray[np.integer]]) -> NDArray[np.int64]:
        """Return each row's cell as one number, the last column fastest; `codes` has one array per column."""
        self.check_index()
        if len(codes) != len(self.names) or not codes:
            raise ValueError(f"there are {len(codes)} arrays of codes for {len(self.names)} columns: give one for each")
        cells = np.zeros(len(codes[0]), dtype=np.int64)
        for column, size in zip(codes, self.sizes, strict=True):
            cells *= size
            cells += column
        return cells

    def unravel(self, cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Return the codes of each column at linear cells: the inverse of `index`."""
        self.check_index()
        rest = np.asarray(cells, dtype=np.int64)
        codes: list[NDArray[np.int64]] = []
        for size in reversed(self.sizes):
            rest, code = np.divmod(rest, size)
            codes.append(code)
        return tuple(reversed(codes))

    def check_index(self) -> None:
        """Refuse a domain whose cells cannot be numbered in 63 bits."""
        bits = (self.size - 1).bit_length()
        if bits > INDEX_BITS:
            raise InputError(
                f"the domain of {len(self)} columns has {self.size} cells, which needs {bits} bits "
                f"(at most {INDEX_BITS}): use fewer columns or fewer bins"
            )
