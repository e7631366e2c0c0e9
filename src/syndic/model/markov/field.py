"""A fitted model: a Markov random field over a junction tree, ready for marginals, samples and storage."""

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, prod
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.lib.format import read_array, read_array_header_1_0, read_array_header_2_0, read_magic
from numpy.typing import NDArray

from syndic.data import Domain, Factor
from syndic.document import Document, from_json, to_json
from syndic.errors import InputError
from syndic.model.markov.log_space import calibrate
from syndic.model.markov.measurement import Impossible, in_order
from syndic.model.markov.pairs import pair_tables
from syndic.model.markov.query import Queries
from syndic.model.markov.sample import sample_rows
from syndic.model.markov.tree import JunctionTree

# the most cells of one queried table: 2^25 cells of float64 are 268 MB
QUERY_CELLS = 1 << 25
FORMAT = 1
MOST_CELLS: Final = 1 << 28
"""The most cells of all cliques of a stored model together, and of any of its tables: 2 GB."""


class Description(Document):
    """Everything in a stored model except arrays. Table k of potentials is the array `potential_k`."""

    format: int
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    cliques: tuple[tuple[str, ...], ...]
    parents: tuple[int, ...]
    total: float
    potentials: tuple[tuple[str, ...], ...]
    impossible: tuple[tuple[str, ...], ...]


@final
@dataclass(frozen=True, eq=False)
class MarkovField:
    """Pr[x] proportional to exp of the sum of the potentials, `total` rows in all. As public as the fitted tables.

    A potential is a table of logarithms over a set of columns inside one clique. Cells declared impossible have
    probability exactly 0.
    """

    domain: Domain
    tree: JunctionTree
    potentials: tuple[Factor, ...]
    total: float
    impossible: tuple[Impossible, ...] = ()

    @cached_property
    def beliefs(self) -> tuple[NDArray[np.float64], ...]:
        """Each clique's probabilities, consistent with each other; a fit sets them."""
        arrays = [np.empty(self.domain.project(clique).sizes) for clique in self.tree.cliques]
        potentials = [in_order(self.domain, one.domain.names, one.values) for one in self.potentials]
        impossible = [in_order(self.domain, zero.names, zero.cells) for zero in self.impossible]
        calibrate(self.tree, potentials, impossible, arrays)
        return tuple(arrays)

    @cached_property
    def _queries(self) -> Queries:
        return Queries(self.tree, self.beliefs, QUERY_CELLS)

    def marginal(self, names: Sequence[str]) -> Factor:
        """Return the expected counts over `names`, any columns; refused if it needs more than `QUERY_CELLS` cells."""
        return self.marginals([names])[0]

    def marginals(self, sets: Sequence[Sequence[str]]) -> list[Factor]:
        """Return the expected counts over each set of columns; intermediate results are shared."""
        wanted = [tuple(names) for names in sets]
        across = [names for names in wanted if len(names) == 2 and self.tree.home(names) is None]
        # one sweep takes about as long as a path for every clique
        known = pair_tables(self._queries, across) if len(across) > len(self.tree.cliques) else {}
        tables = [(names, known[names] if names in known else self._queries.table(names)) for names in wanted]
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
        """Return the model conditioned on these codes; `total` becomes the expected number of such rows."""
        for name, code in given.items():
            if not 0 <= code < self.domain[name]:
                raise InputError(f"given code of {name!r} ({code}) must be between 0 and {self.domain[name] - 1}")
        share = float(self.marginal(tuple(given)).values[tuple(given.values())])
        if not share > 0:
            raise InputError(f"the model has no rows with the given codes of {list(given)}")
        others = (Impossible((name,), np.arange(self.domain[name]) != code) for name, code in given.items())
        return MarkovField(self.domain, self.tree, self.potentials, share, (*self.impossible, *others))

    def save(self, path: str | Path) -> None:
        """Write the model to one `.npz` file: arrays and a description in JSON, nothing executable."""
        description = Description(
            format=FORMAT,
            names=self.domain.names,
            sizes=self.domain.sizes,
            cliques=self.tree.cliques,
            parents=self.tree.parents,
            total=self.total,
            potentials=tuple(one.domain.names for one in self.potentials),
            impossible=tuple(one.names for one in self.impossible),
        )
        arrays = {f"potential_{place}": one.values for place, one in enumerate(self.potentials)}
        arrays |= {f"impossible_{place}": one.cells for place, one in enumerate(self.impossible)}
        text = np.frombuffer(to_json(description), dtype=np.uint8)
        with Path(path).open("wb") as file:
            # all are numbers, so nothing is pickled; numpy 2.0 would treat `allow_pickle` as another array
            np.savez_compressed(file, description=text, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path) -> "MarkovField":
        """Read a model; the sizes of its tables, and then their values, are checked before anything is used."""
        path = Path(path)
        try:
            with zipfile.ZipFile(path) as archive:
                text = bytes(_array(archive, "description", None).astype(np.uint8))
                description = from_json(text, Description, where=path.name)
                if description.format != FORMAT:
                    raise InputError(f"{path.name}: format {description.format} must be {FORMAT}")
                field = _field(archive, description)
                _check(field)
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise InputError(f"{path.name}: is not a stored model: {error}") from None
        return field


def _field(archive: zipfile.ZipFile, description: Description) -> MarkovField:
    domain = Domain(description.names, description.sizes)
    tree = JunctionTree(domain, description.cliques, description.parents)
    if tree.cells > MOST_CELLS:
        raise ValueError(f"its cliques have {tree.cells:,} cells; at most {MOST_CELLS:,} are allowed")
    potentials = tuple(
        Factor(domain.project(names), _array(archive, f"potential_{place}", domain.project(names)))
        for place, names in enumerate(description.potentials)
    )
    impossible = tuple(
        Impossible(names, _array(archive, f"impossible_{place}", domain.project(names)).astype(np.bool_))
        for place, names in enumerate(description.impossible)
    )
    return MarkovField(domain, tree, potentials, description.total, impossible)


def _array(archive: zipfile.ZipFile, name: str, domain: Domain | None) -> NDArray[Any]:
    """Read a table of the domain, or a line of bytes; the header is checked before anything is allocated."""
    with archive.open(f"{name}.npy") as file:
        header = read_array_header_1_0 if read_magic(file) == (1, 0) else read_array_header_2_0
        shape, _, kind = header(file)
        fits = kind == np.uint8 and len(shape) == 1 if domain is None else kind in (np.float64, np.bool_)
        if not fits or prod(shape) > MOST_CELLS or (domain is not None and shape != domain.sizes):
            raise ValueError(f"the array {name} has shape {shape} and type {kind}, which differs from its description")
        file.seek(0)
        return np.asarray(read_array(file, allow_pickle=False))


def _check(field: MarkovField) -> None:
    tree, names = field.tree, field.domain.names
    if any(clique != tuple(name for name in names if name in clique) for clique in tree.cliques):
        raise ValueError("the columns of a clique must be distinct, and in the domain's order")
    if tree.parents[0] != -1 or any(up < 0 for up in tree.parents[1:]):
        raise ValueError("every clique but the first must have a parent")
    if not 0 < field.total < inf:
        raise ValueError(f"total ({field.total}) must be positive")
    for one in [*(each.domain.names for each in field.potentials), *(zero.names for zero in field.impossible)]:
        if tree.home(one) is None:
            raise ValueError(f"no clique contains {list(one)}")
    # NaN is not below anything, so it is refused too
    if not all(bool((one.values < inf).all()) for one in field.potentials):
        raise ValueError("potentials must be numbers below infinity")
