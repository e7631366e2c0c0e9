"""Fitting a Markov random field to noisy tables: weighted least squares over all models of a junction tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain, Factor
from syndic.errors import InputError
from syndic.model.markov.field import MarkovField
from syndic.model.markov.kernels import kernels
from syndic.model.markov.measurement import Impossible, Measurement, combine, estimate_total, in_order, one_way
from syndic.model.markov.optimise import Limits, Optimiser, Problem, dual
from syndic.model.markov.passes import Passes, SummedPasses
from syndic.model.markov.tree import JunctionTree, plan_tree

TARGET: Final = 0.92
"""A fit stops at this share of the loss that is expected from noise alone."""


@final
@dataclass(frozen=True, eq=False)
class Fitted:
    """A model, half its weighted sum of squared residuals, and the number of passes over the tree."""

    field: MarkovField
    loss: float
    iterations: int


def fit(  # noqa: PLR0913 - keyword-only, all with defaults
    domain: Domain,
    measurements: Sequence[Measurement],
    *,
    tree: JunctionTree | None = None,
    start: MarkovField | None = None,
    total: float | None = None,
    zeros: Sequence[Impossible] = (),
    iterations: int = 500,
    tolerance: float = 1e-3,
    target: float = TARGET,
    optimiser: Optimiser = dual,
    threads: int = 2,
    memory_bytes: int | None = None,
) -> Fitted:
    """Fit a model to noisy tables; among all that fit equally well, it has the greatest entropy.

    Args:
        domain: The columns.
        measurements: Noisy tables, weighted by the inverse of their variance.
        tree: Must contain every table and every set of zeros in a clique; planned from them if it is not given.
        start: A model to start from, with any tree; potentials that do not fit into `tree` are dropped.
        total: The number of rows; estimated from the tables if it is not given.
        zeros: Cells that have probability 0 in the model.
        iterations: The most passes over the tree.
        tolerance: Stop when passes improve the loss by less than this share.
        target: Stop at this share of the expected loss from noise alone, half a unit for each measured cell: below
            it a model fits the noise. 0 minimises the loss completely.
        optimiser: Another optimiser, for comparisons.
        threads: Number of threads for large cliques.
        memory_bytes: Refuse a fit that may need more.
    """
    tables = combine(domain, measurements)
    impossible = _impossible(domain, zeros, start)
    old = _potentials(domain, start)
    measured = list(dict.fromkeys(one.names for one in tables))
    wanted = [*measured, *(names for names, _ in impossible)]
    if tree is None:
        tree = plan_tree(domain, [*wanted, *old])
    _check_tree(tree, domain, wanted, memory_bytes)
    total = estimate_total(tables) if total is None else total
    begin = _begin(domain, tables, old)
    extra = [names for names in begin if names not in measured and tree.home(names) is not None]
    passes = Passes(tree, [*measured, *extra] or [()], kernels(), threads)
    try:
        limits = Limits(iterations, target, tolerance)
        logs = _flat(passes, begin)
        if all(one.groups is None for one in tables):
            problem = Problem.of(tables, passes.measured, total)
            logs, loss, used = optimiser(passes, problem, logs, impossible, limits)
        else:
            summed = SummedPasses(passes, tables, logs)
            problem = Problem.of(tables, summed.measured, total)
            change, loss, used = optimiser(summed, problem, np.zeros(summed.measured), impossible, limits)
            logs = logs + summed.lifted(change)
        beliefs = tuple(passes.settle())
    finally:
        passes.close()
    potentials = tuple(
        Factor(part, logs[slot].reshape(part.sizes))
        for part, slot in zip(map(domain.project, passes.sets), passes.slots, strict=False)
    )
    field = MarkovField(domain, tree, potentials, total, tuple(Impossible(*zero) for zero in impossible))
    vars(field)["beliefs"] = beliefs
    return Fitted(field, loss, used)


def _impossible(
    domain: Domain, zeros: Sequence[Impossible], start: MarkovField | None
) -> list[tuple[tuple[str, ...], NDArray[np.bool_]]]:
    """Return the given zeros and those of the start, one table for each set of columns."""
    found: dict[tuple[str, ...], NDArray[np.bool_]] = {}
    for zero in (*zeros, *(start.impossible if start else ())):
        names, cells = in_order(domain, zero.names, zero.cells)
        found[names] = found[names] | cells if names in found else cells
    return list(found.items())


def _begin(
    domain: Domain, tables: Sequence[Measurement], old: Mapping[tuple[str, ...], NDArray[np.float64]]
) -> dict[tuple[str, ...], NDArray[np.float64]]:
    """Return the starting logarithms: those of the old model, and independent columns where it has none."""
    known = {name for names in old for name in names}
    alone = {names: logs for names, logs in one_way(domain, tables).items() if not known.intersection(names)}
    return {**alone, **old}


def _flat(passes: Passes, tables: Mapping[tuple[str, ...], NDArray[np.float64]]) -> NDArray[np.float64]:
    logs = np.zeros(passes.measured)
    for names, slot in zip(passes.sets, passes.slots, strict=False):
        if names in tables:
            logs[slot] = tables[names].reshape(-1)
    return logs


def _potentials(domain: Domain, start: MarkovField | None) -> dict[tuple[str, ...], NDArray[np.float64]]:
    found: dict[tuple[str, ...], NDArray[np.float64]] = {}
    for one in start.potentials if start else ():
        names, values = in_order(domain, one.domain.names, one.values)
        found[names] = found.get(names, 0.0) + values
    return found


def _check_tree(
    tree: JunctionTree, domain: Domain, wanted: Sequence[tuple[str, ...]], memory_bytes: int | None
) -> None:
    if tree.domain != domain:
        raise InputError("the tree must be planned for the same columns")
    needed = tree.memory_for(wanted)
    if memory_bytes is not None and needed > memory_bytes:
        raise InputError(
            f"the model may need {needed} bytes ({tree.cells} cells, the largest clique {tree.largest}); the limit is "
            f"{memory_bytes}: measure smaller tables or allow more memory"
        )
    for names in wanted:
        if tree.home(names) is None:
            raise InputError(f"no clique of the tree contains {list(names)}: plan the tree with it")
