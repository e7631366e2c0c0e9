"""Turn codes into numbers for regressions and trees, by public rules only: bounds and lists of the schema."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syndic.data import Coded, Schema
from syndic.data.coding import bins_of
from syndic.data.ranged import Ranged

Numbers = NDArray[np.float64]

# columns with more levels are cut into this many groups of neighbouring codes
MOST_LEVELS = 64
# scikit-learn's boosting takes at most as many
MOST_GROUPS = 255


class Design(NamedTuple):
    """Rows as numbers; `names` are those of the columns."""

    values: Numbers
    names: tuple[str, ...]


def design(schema: Schema, names: Iterable[str], codes: Coded, *, drop_first: bool) -> Design:
    """Return the columns as numbers from -1 to 1.

    A column with bounds becomes the middle of its bin, scaled so that the bounds are -1 and 1, and an indicator of
    missing values if they have a level. Any other column becomes an indicator for each level; with `drop_first` the
    first is left out, so that the indicators and a constant are not collinear.
    """
    parts: list[Numbers] = []
    labels: list[str] = []
    for name in names:
        column = schema[name]
        if isinstance(column, Ranged):
            middles = middle_of(column, codes[name])
            edges = column.bin_edges.astype(np.float64)
            scaled = 2 * (middles - edges[0]) / (edges[-1] - edges[0]) - 1
            parts.append(np.nan_to_num(scaled)[:, None])
            labels.append(name)
            if column.size > column.levels:
                parts.append(np.isnan(middles)[:, None].astype(np.float64))
                labels.append(f"{name} missing")
        else:
            levels = min(column.size, MOST_LEVELS)
            groups = codes[name].astype(np.int64) * levels // column.size
            kept = range(1 if drop_first else 0, levels)
            parts.append((groups[:, None] == np.array(kept, dtype=np.int64)).astype(np.float64))
            texts = column.labels() if levels == column.size else [f"group {level}" for level in range(levels)]
            labels += [f"{name} {texts[level]}" for level in kept]
    return Design(np.hstack(parts), tuple(labels))


def tree_features(schema: Schema, names: Iterable[str], codes: Coded) -> Numbers:
    """Return one number for each column: the middle of its bin (NaN for missing), or the place of its level."""
    parts: list[Numbers] = []
    for name in names:
        column = schema[name]
        if isinstance(column, Ranged):
            parts.append(middle_of(column, codes[name]))
        else:
            levels = min(column.size, MOST_GROUPS)
            parts.append((codes[name].astype(np.int64) * levels // column.size).astype(np.float64))
    return np.column_stack(parts)


def middle_of(column: Ranged, codes: NDArray[np.integer]) -> Numbers:
    """Return the middle of each code's bin, in the column's unit (for dates their resolution); NaN for missing."""
    return np.append(bins_of(column)[0], np.nan)[np.minimum(codes.astype(np.int64), column.levels)]  # type: ignore[arg-type]  # a column
