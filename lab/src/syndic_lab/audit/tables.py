"""Noisy tables of counts as an attacker reads them: what each would be without noise under either of two tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.model.selection import Grouping
from syndic_lab.audit.rehearsal import Run
from syndic_lab.audit.setting import View

Codes = Mapping[str, NDArray[np.int64]]
Names = tuple[str, ...]


@final
@dataclass(frozen=True, kw_only=True)
class Noisy:
    """A noisy table over columns, its levels perhaps in groups, and the deviation of its counts.

    `shared` says whether what is left of its noise is another party's share.
    """

    names: Names
    values: NDArray[np.float64]
    deviation: float
    groups: Mapping[str, tuple[int, ...]]
    shared: bool = False


def side_by_side(sources: Mapping[str, Any]) -> dict[str, NDArray[np.int64]]:
    """Return the codes of columns that parties hold of the same people."""
    return {name: table[name].to_numpy() for table in sources.values() for name in table.column_names}


def one_below_other(sources: Mapping[str, Any]) -> dict[str, NDArray[np.int64]]:
    """Return the codes of people whose rows are at different parties."""
    tables = list(sources.values())
    return {name: np.concatenate([table[name].to_numpy() for table in tables]) for name in tables[0].column_names}


def counted(codes: Codes, names: Sequence[str], shape: Sequence[int]) -> NDArray[np.float64]:
    """Return exact counts of some columns."""
    places = np.ravel_multi_index([codes[name] for name in names], tuple(shape))
    return np.bincount(places, minlength=int(np.prod(shape))).astype(np.float64)


def told_of(tables: Iterable[Noisy], one: Codes, other: Codes) -> View:
    """Return all tables together, with their exact counts under either table."""
    found = []
    for table in tables:
        exact = [_exact(table, codes) for codes in (one, other)]
        size = table.values.size
        found.append((table.values.ravel(), *exact, np.full(size, table.deviation), np.full(size, int(table.shared))))
    values, first, second, deviation, kind = (np.concatenate(part) for part in zip(*found, strict=True))
    return View(values=values, one=first, other=second, deviation=deviation, kind=kind)


def _exact(table: Noisy, codes: Codes) -> NDArray[np.float64]:
    grouped = {
        name: np.asarray(table.groups[name])[codes[name]] if name in table.groups else codes[name]
        for name in table.names
    }
    return counted(grouped, table.names, table.values.shape)


def rounds_of(run: Run) -> list[list[Noisy]]:
    """Return the tables of every round of a synthesis."""
    domain: Domain = run.study.schema.domain
    found = []
    for asked, tables in zip(run.result.note.rounds, run.result.model.fitted.rounds, strict=True):
        grouping = Grouping(domain, asked.groups) if asked.groups else Grouping.none(domain)
        groups = dict(zip(domain.names, grouping.groups, strict=True))
        found.append(
            [
                Noisy(names=one.names, values=np.asarray(one.values), deviation=deviation, groups=groups)
                for one, deviation in zip(tables, asked.deviation_of, strict=True)
            ]
        )
    return found


def less(table: Noisy, noise: NDArray[Any], deviation: float) -> Noisy:
    """Return a table less noise that a role knows, with the deviation that is left."""
    values = table.values - noise.reshape(table.values.shape)
    return Noisy(names=table.names, values=values, deviation=deviation, groups=table.groups, shared=True)
