"""What a synthesis measured, for intervals: its noisy tables, and its model's shares of all levels."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.methods.synthesis.result import SyntheticTable
from syndic.model.interval import Measured, NoisyTable
from syndic.model.markov.measurement import UNKNOWN, estimate_total
from syndic.model.selection import Adaptive, Grouping, Synthesis
from syndic.model.selection.levels import one_way_tables

Floats = NDArray[np.float64]
Groups = NDArray[np.int64]

# Counts closer to the one below which levels are merged, in standard deviations, may have been chosen by their noise.
_CHOSEN: Final = 3.0


def measured_by_model(result: SyntheticTable, *, public: bool, repeated: int) -> Measured:
    """Return what a synthesis measured; `public` and `repeated` as in `Measured`."""
    schema, fitted, note = result.model.schema, result.model.fitted, result.note
    # tables of other parties' rows are of another population: the rounds that most often have the same parties count
    present, times = Counter(frozenset(one.present) for one in note.rounds if one.present).most_common(1)[0]
    opened, tables, fine = [], [], set[str]()
    for place, (asked, one) in enumerate(zip(note.rounds, fitted.rounds, strict=True)):
        if frozenset(asked.present) == present:
            groups = Grouping(schema.domain, asked.groups or Grouping.none(schema.domain).groups).by_column
            known = [table for table in one if table.variance < UNKNOWN]
            opened += known
            chosen = set(_chosen(result)) if place == 0 else set()
            fine |= {name for table in known for name in table.names if place == 0}
            for table in known:
                kept = [name for name in table.names if name not in chosen]
                if kept:
                    given = tuple(groups[name] for name in table.names)
                    # of a table with the target the other column's levels count, whatever merged the target's
                    tables.append(NoisyTable(table.names, given, table.values, table.variance).onto(kept))
    whole = times == len(note.rounds)
    return Measured(
        schema=schema,
        shares=lambda names: _shares(fitted, names, {name: schema[name].levels for name in result.ordered}, fine),
        tables=tuple(tables),
        rows=fitted.total if whole else estimate_total(opened),
        public=public and whole,
        repeated=repeated,
    )


def _chosen(result: SyntheticTable) -> Iterator[str]:
    """Yield the columns whose rare levels were merged by their noisy counts, or nearly so.

    A level is merged if its noise is low, so the noise on counts that chose levels has another mean than 0.
    """
    fitted, least = result.model.fitted, Adaptive().merge_below + _CHOSEN
    whole = {name for one in fitted.field.impossible for name in one.names}
    for one in one_way_tables(result.model.schema.domain, fitted.rounds[0]):
        (name,), smallest = one.names, np.sort(one.values)
        # a single rare level is left as it is
        near = smallest[:2][-1] < least * np.sqrt(one.variance) or fitted.field.domain[name] < len(smallest)
        if name not in whole and name not in result.ordered and len(smallest) > 2 and near:
            yield name


def _shares(fitted: Synthesis, names: tuple[str, ...], ordered: dict[str, int], fine: set[str]) -> Floats:
    """Return the model's share of each cell, over all levels; refuse ordered columns whose levels are not in `fine`.

    Within a group of neighbouring levels of an ordered column the other columns follow the line between the middles of
    groups: that they do not depend on the level would make every relation a little too weak. Merged levels of other
    columns have equal shares: the noisy counts that merged them do not tell them apart.
    """
    for name in names:
        if name in ordered and name not in fine:
            raise InputError(f"the bins of '{name}' were counted with other parties than the later tables")
    found, groups = fitted.field.marginal(names).values / fitted.total, fitted.grouping.by_column
    for axis, name in enumerate(names):
        weights = fitted.one_way if name in ordered else {name: np.zeros(len(groups[name]))}
        parts, lines = fitted.grouping.shares(name, weights), np.moveaxis(found, axis, 0)
        flat = lines.reshape(len(lines), -1)
        split = _along(flat, groups[name], parts, ordered.get(name, 0))
        found = np.moveaxis(split.reshape(-1, *lines.shape[1:]), 0, axis)
    return np.asarray(found)


def _along(table: Floats, groups: Groups, parts: Floats, levels: int) -> Floats:
    """Divide the lines of a table, one a group, into levels; the first `levels` are in order."""
    plain = table[groups] * parts[:, None]
    inner = int(groups[: max(levels, 1)].max()) + 1
    if levels < 3 or inner < 2:
        return np.asarray(plain)
    mine, places = groups[:levels], np.arange(levels)
    weight = np.bincount(mine, weights=parts[:levels])
    middles = np.bincount(mine, weights=parts[:levels] * places) / np.where(weight > 0, weight, 1.0)
    given = table[:inner] / np.maximum(table[:inner].sum(axis=1, keepdims=True), 1e-300)
    right = np.clip(np.searchsorted(middles, places), 1, inner - 1)
    slope = np.clip((places - middles[right - 1]) / (middles[right] - middles[right - 1]), 0.0, 1.0)[:, None]
    drawn = parts[:levels, None] * (given[right - 1] * (1 - slope) + given[right] * slope)
    sums = np.zeros((inner, table.shape[1]))
    np.add.at(sums, mine, drawn)
    scale = np.divide(table[:inner], sums, out=np.zeros_like(sums), where=sums > 0)
    plain[:levels] = np.where(sums[mine] > 0, drawn * scale[mine], plain[:levels])
    return np.asarray(plain)
