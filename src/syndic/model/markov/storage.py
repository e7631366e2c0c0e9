"""Models on disk: one `.npz` file of plain arrays with a description in JSON. Reading it executes nothing."""

import zipfile
import zlib
from math import inf, prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.lib.format import read_array, read_array_header_1_0, read_array_header_2_0, read_magic
from numpy.typing import NDArray

from syndic.data import Domain, Factor
from syndic.document import Document, from_json, to_json
from syndic.errors import InputError
from syndic.model.markov.field import MarkovField
from syndic.model.markov.measurement import Impossible
from syndic.model.markov.tree import JunctionTree

FORMAT = 1
MOST_CELLS: Final = 1 << 28
"""Of all cliques of a stored model together, and of any of its tables: 2 GB."""


class Description(Document):
    """Everything of a model that is no array. Table k of potentials is the array `potential_k`."""

    format: int
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    cliques: tuple[tuple[str, ...], ...]
    parents: tuple[int, ...]
    total: float
    potentials: tuple[tuple[str, ...], ...]
    impossible: tuple[tuple[str, ...], ...]


def save(field: MarkovField, path: Path) -> None:
    """Write a model."""
    description = Description(
        format=FORMAT,
        names=field.domain.names,
        sizes=field.domain.sizes,
        cliques=field.tree.cliques,
        parents=field.tree.parents,
        total=field.total,
        potentials=tuple(one.domain.names for one in field.potentials),
        impossible=tuple(one.names for one in field.impossible),
    )
    arrays = {f"potential_{place}": one.values for place, one in enumerate(field.potentials)}
    arrays |= {f"impossible_{place}": one.cells for place, one in enumerate(field.impossible)}
    text = np.frombuffer(to_json(description), dtype=np.uint8)
    with path.open("wb") as file:
        # all are numbers, so nothing is pickled; numpy 2.0 would take `allow_pickle` for one more array
        np.savez_compressed(file, description=text, **arrays)  # type: ignore[arg-type]


def load(path: Path) -> MarkovField:
    """Read a model; nothing of the file is believed before the sizes of its tables, and then their values, fit."""
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
        raise ValueError(f"its cliques have {tree.cells:,} cells, more than {MOST_CELLS:,}")
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
    """Read a table of the domain, or a line of bytes; the header is looked at before anything is allocated."""
    with archive.open(f"{name}.npy") as file:
        header = read_array_header_1_0 if read_magic(file) == (1, 0) else read_array_header_2_0
        shape, _, kind = header(file)
        fits = kind == np.uint8 and len(shape) == 1 if domain is None else kind in (np.float64, np.bool_)
        if not fits or prod(shape) > MOST_CELLS or (domain is not None and shape != domain.sizes):
            raise ValueError(f"the array {name} has shape {shape} and type {kind}, which is not what is described")
        file.seek(0)
        return np.asarray(read_array(file, allow_pickle=False))


def _check(field: MarkovField) -> None:
    tree, names = field.tree, field.domain.names
    if any(clique != tuple(name for name in names if name in clique) for clique in tree.cliques):
        raise ValueError("the columns of a clique must be different ones, in the domain's order")
    if tree.parents[0] != -1 or any(up < 0 for up in tree.parents[1:]):
        raise ValueError("every clique but the first must have a parent")
    if not 0 < field.total < inf:
        raise ValueError(f"total ({field.total}) must be positive")
    for one in [*(each.domain.names for each in field.potentials), *(zero.names for zero in field.impossible)]:
        if tree.home(one) is None:
            raise ValueError(f"no clique holds {list(one)}")
    # what is NaN is not below anything
    if not all(bool((one.values < inf).all()) for one in field.potentials):
        raise ValueError("potentials must be numbers below infinity")
