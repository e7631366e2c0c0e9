"""A fitted model: a Markov random field over a junction tree, ready for marginals, samples and storage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain, Factor
from syndic.errors import InputError
from syndic.model.markov.log_space import calibrate
from syndic.model.markov.measurement import Impossible, check_shape, in_order
from syndic.model.markov.query import Queries
from syndic.model.markov.sample import sample_rows
from syndic.model.markov.tree import JunctionTree

# of one queried table: 2^25 cells of float64 are 268 MB
QUERY_CELLS = 1 << 25


@final
@dataclass(frozen=True, eq=False)
class MarkovField:
    """Pr[x] in proportion to exp of the sum of the potentials, `total` rows in all. As public as what it was fitted to.

    A potential is a table of logarithms over a set of columns that lies in one clique. Cells declared impossible have
    probability 0 exactly.
    """

    domain: Domain
    tree: JunctionTree
    potentials: tuple[Factor, ...]
    total: float
    impossible: tuple[Impossible, ...] = ()
    cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def beliefs(self) -> tuple[NDArray[np.float64], ...]:
        """Each clique's probabilities, consistent with each other; computed once."""
        if "beliefs" not in self.cache:
            arrays = [np.empty(self.domain.project(clique).sizes) for clique in self.tree.cliques]
            self.cache["log_total"] = calibrate(self.tree, *self._tables(), arrays)
            self.cache["beliefs"] = tuple(arrays)
        found: tuple[NDArray[np.float64], ...] = self.cache["beliefs"]
        return found

    def _tables(self) -> tuple[list[tuple[tuple[str, ...], NDArray[Any]]], list[tuple[tuple[str, ...], NDArray[Any]]]]:
        for one in self.potentials:
            check_shape(self.domain, one.domain.names, one.values)
        for zero in self.impossible:
            check_shape(self.domain, zero.names, zero.cells)
        return (
            [in_order(self.domain, one.domain.names, one.values) for one in self.potentials],
            [in_order(self.domain, zero.names, zero.cells) for zero in self.impossible],
        )

    @cached_property
    def _queries(self) -> Queries:
        return Queries(self.tree, self.beliefs, QUERY_CELLS)

    def marginal(self, names: Sequence[str]) -> Factor:
        """Return the expected counts over `names`, any columns; refused above `QUERY_CELLS` cells on the way."""
        return self.marginals([names])[0]

    def marginals(self, sets: Sequence[Sequence[str]]) -> list[Factor]:
        """Return the expected counts over each set of columns; sets with common parts share work."""
        tables = [(tuple(names), self._queries.table(tuple(names))) for names in sets]
        return [Factor(self.domain.project(names), table * self.total) for names, table in tables]

    def sample(
        self, rows: int, generator: np.random.Generator, given: Mapping[str, int] | None = None
    ) -> dict[str, NDArray[Any]]:
        """Draw rows: a code array for each column, in the domain's order; `given` fixes the codes of some columns.

        Each row follows the model. Together they are closer to it than independent draws: every count is the expected
        one rounded up or down, column by column.
        """
        if given:
            return self.condition(given).sample(rows, generator)
        return sample_rows(self.tree, self.beliefs, rows, generator)

    def condition(self, given: Mapping[str, int]) -> "MarkovField":
        """Return the model of the rows that have these codes; `total` becomes their expected number."""
        extra = []
        share = self.marginal(tuple(given)).values[tuple(given.values())] if _codes_fit(self.domain, given) else 0.0
        if not share > 0:
            raise InputError(f"the model has no rows with the given codes of {list(given)}")
        for name, code in given.items():
            cells = np.ones(self.domain[name], dtype=np.bool_)
            cells[code] = False
            extra.append(Impossible((name,), cells))
        impossible = (*self.impossible, *extra)
        return MarkovField(self.domain, self.tree, self.potentials, float(share), impossible)

    def save(self, path: str | Path) -> None:
        """Write the model to one `.npz` file: arrays and a description in JSON, nothing executable."""
        from syndic.model.markov.storage import save  # noqa: PLC0415 - it knows this class

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> "MarkovField":
        """Read a model written by `save`; sizes are checked."""
        from syndic.model.markov.storage import load  # noqa: PLC0415 - it knows this class

        return load(Path(path))


def _codes_fit(domain: Domain, given: Mapping[str, int]) -> bool:
    for name, code in given.items():
        if not 0 <= code < domain[name]:
            raise InputError(f"given code of {name!r} ({code}) must be between 0 and {domain[name] - 1}")
    return True
