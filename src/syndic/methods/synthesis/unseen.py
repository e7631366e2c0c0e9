"""Levels that no value needs to have, "other" and missing: released only where the noisy counts show them.

Noise is as often above 0 as below, and a model has no negative counts. So levels that nobody has would get a part of
the rows: up to 5 % each at epsilon 1 with 2,000 people and 14 columns. Post-processing of what was opened.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Schema
from syndic.model.markov.measurement import UNKNOWN, Impossible, Measurement
from syndic.model.selection import Synthesis

Codes = NDArray[np.int64]
Opened = Sequence[tuple[Mapping[str, Codes], Sequence[Measurement]]]
"""For every round the group of each level, by column, and the noisy tables over these groups."""

SHOWN: Final = 2.0
"""Standard errors that a level's noisy count is above 0 if it is released."""


def unseen_levels(schema: Schema, opened: Opened, fitted: Synthesis, lists: Iterable[str]) -> dict[str, list[int]]:
    """Return the codes of each column that are not released. In `lists`, "other" stands for what noise hides."""
    kept = {name for one in fitted.field.impossible for name in one.names}
    spare = {
        column.name: [*range(column.levels if column.name in lists else column.listed, column.size)]
        for column in schema.columns
        if column.name not in kept
    }
    spare = {name: codes for name, codes in spare.items() if codes}
    sums = {name: np.zeros((2, len(codes))) for name, codes in spare.items()}
    for groups, tables in opened:
        alone = {name: _places_alone(groups[name], codes) for name, codes in spare.items()}
        for table in tables:
            for name in spare.keys() & set(table.names) if table.variance < UNKNOWN else ():
                (counted, places), axis = alone[name], table.names.index(name)
                others = tuple(place for place in range(table.values.ndim) if place != axis)
                weight = table.values.shape[axis] / (table.variance * table.values.size)
                counts = table.values.sum(axis=others)[places]
                sums[name][:, counted] += weight * counts, np.full(len(places), weight)
    found = {
        name: [code for code, total, weight in zip(codes, *sums[name], strict=True) if total < SHOWN * weight**0.5]
        for name, codes in spare.items()
    }
    return {name: codes for name, codes in found.items() if codes}


def _places_alone(groups: Codes, codes: Sequence[int]) -> tuple[Codes, Codes]:
    """Return which of the codes are a group by themselves, and these groups."""
    sizes = np.bincount(groups)
    counted = np.array([place for place, code in enumerate(codes) if sizes[groups[code]] == 1], dtype=np.int64)
    return counted, groups[np.array(codes, dtype=np.int64)[counted]]


def without_levels(fitted: Synthesis, unseen: Mapping[str, Sequence[int]]) -> Synthesis:
    """Return the model, conditioned on none of these codes."""
    one_way, impossible = dict(fitted.one_way), list(fitted.field.impossible)
    for name, codes in unseen.items():
        groups = fitted.grouping.by_column[name]
        seen = np.setdiff1d(np.arange(groups.size), codes)
        counts = np.zeros(groups.size)
        counts[seen] = np.maximum(fitted.one_way[name][seen], 0.0)
        # levels share their group equally if none of them has a positive count
        counts[seen] += np.bincount(groups, counts)[groups[seen]] == 0
        one_way[name] = counts
        empty = np.bincount(groups[seen], minlength=int(groups.max()) + 1) == 0
        if empty.any():
            impossible.append(Impossible((name,), empty))
    return replace(fitted, field=replace(fitted.field, impossible=tuple(impossible)), one_way=one_way)
