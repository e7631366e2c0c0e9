"""Belief propagation in log space: slower than `passes`, but accurate for any potentials, however extreme."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.errors import InputError
from syndic.model.markov.kernels import FLOOR
from syndic.model.markov.tree import JunctionTree

LOG_FLOOR = float(np.log(FLOOR))

Floats = NDArray[np.float64]
Potential = tuple[tuple[str, ...], Floats]


def calibrate(
    tree: JunctionTree,
    potentials: Sequence[Potential],
    impossible: Sequence[tuple[tuple[str, ...], NDArray[np.bool_]]],
    into: Sequence[Floats],
) -> float:
    """Write every clique's probabilities into the arrays `into` and return the log of the total mass.

    The model is exp of the sum of the potentials, each over columns in the domain's order, without impossible cells.
    """
    conditionals = list(into)
    for array in conditionals:
        array.fill(0.0)
    for names, logs in potentials:
        place = _clique_of(tree, names)
        conditionals[place] += spread(tree.domain.project(tree.cliques[place]), names, logs)
    for names, cells in impossible:
        place = _clique_of(tree, names)
        shape = spread(tree.domain.project(tree.cliques[place]), names, cells)
        np.copyto(conditionals[place], -np.inf, where=shape)
    for place in reversed(tree.order):
        array = conditionals[place]
        message = _condition(array, tree.domain.project(tree.cliques[place]), tree.separators[place])
        if place:
            up = tree.parents[place]
            conditionals[up] += spread(tree.domain.project(tree.cliques[up]), tree.separators[place], message)
        elif not np.isfinite(message):
            raise InputError("every cell is impossible: declare fewer impossible cells")
    for place in tree.order[1:]:
        up = tree.parents[place]
        above = sum_onto(conditionals[up], tree.domain.project(tree.cliques[up]), tree.separators[place])
        conditionals[place] *= spread(tree.domain.project(tree.cliques[place]), tree.separators[place], above)
        _raise_to_floor(conditionals[place])
    return float(message)


def spread(domain: Domain, names: Sequence[str], values: NDArray[Any]) -> NDArray[Any]:
    """Return a table with axes of length 1 for the domain's other columns; both have the same order."""
    return values.reshape([domain[name] if name in names else 1 for name in domain.names])


def sum_onto(values: Floats, domain: Domain, names: Sequence[str]) -> Floats:
    """Sum out the columns not in `names`; their order stays that of the domain."""
    axes = tuple(axis for axis, name in enumerate(domain.names) if name not in names)
    return np.asarray(values.sum(axis=axes)) if axes else values


def _condition(array: Floats, domain: Domain, separator: Sequence[str]) -> Floats:
    """Turn logarithms into probabilities given the separator, in place; return the separator's logarithms."""
    axes = tuple(axis for axis, name in enumerate(domain.names) if name not in separator)
    top = array.max(axis=axes, keepdims=True) if axes else array.copy()
    np.copyto(top, 0.0, where=np.isneginf(top))
    array -= top
    # unlikely cells must not become impossible by underflow
    np.copyto(array, LOG_FLOOR, where=(array < LOG_FLOOR) & ~np.isneginf(array))
    np.exp(array, out=array)
    mass = array.sum(axis=axes, keepdims=True) if axes else array.copy()
    array /= np.where(mass > 0, mass, 1.0)
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(mass) + top
    return logs.reshape([domain[name] for name in domain.names if name in separator])


def _raise_to_floor(array: Floats) -> None:
    np.copyto(array, FLOOR, where=(array < FLOOR) & (array > 0))


def _clique_of(tree: JunctionTree, names: Sequence[str]) -> int:
    place = tree.home(names)
    if place is None:
        raise InputError(f"no clique of the tree contains {list(names)}: plan the tree with it")
    return place
