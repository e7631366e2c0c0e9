"""Encode columns as integers for sums of products: fixed point, with public bounds.

A column becomes a block of features. In every row at most one feature of a block is not zero, and none is larger than
2^bits in absolute value. The sensitivity of a sum of products follows from that alone. Nothing is estimated from the
rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.data.column import MISSING_LABEL, Boolean, Codes, Listed
from syndic.data.schema import Column
from syndic.document import Document
from syndic.errors import InputError

INTERCEPT: Final = "(intercept)"
# the most codes for which a table of integers is kept
MOST_LEVELS: Final = 1 << 20


@final
class Feature(Document):
    """One column of the coded matrix. Public.

    The value in the column's own unit is `middle` + `half` * z for z from `lower` to `upper`; a product of columns has
    no unit of its own. `values` says whether z is a number, 0 or 1 (`indicator`), or -1 or 1 (`sign`). `block` names
    the column or product it belongs to; `ones` the feature that is 1 wherever the row is there at all; `known` how far
    from 0 the mean of z is by an earlier estimate, 0 if there is none; `parts` the features whose product this is.
    """

    name: str
    block: str
    values: Literal["number", "indicator", "sign"] = "number"
    middle: float = 0.0
    half: float = 1.0
    lower: float = -1.0
    upper: float = 1.0
    ones: str = INTERCEPT
    known: float = 0.0
    parts: tuple[str, ...] = ()


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Coding:
    """A block of features of some coded columns; `complete` means that in every row exactly one indicator is 1."""

    columns: tuple[str, ...]
    tables: tuple[NDArray[np.int32], ...]
    features: tuple[Feature, ...]
    complete: bool
    bits: int

    @property
    def numbers(self) -> int:
        """How many features have a square of their own: neither indicators nor signs."""
        return sum(feature.values == "number" for feature in self.features)

    def rows(self, coded: Mapping[str, Codes]) -> NDArray[np.int32]:
        """Return the features of coded rows, from -2^bits to 2^bits. Private."""
        parts = [table[coded[name]] for name, table in zip(self.columns, self.tables, strict=True)]
        if len(parts) == 1:
            return parts[0]
        wide = parts[0].astype(np.int64)[:, :, None] * parts[1].astype(np.int64)[:, None, :]
        # rounded to the nearest; 2^bits * 2^bits becomes 2^bits, so nothing exceeds it
        rounded = (wide + (1 << self.bits >> 1)) >> self.bits
        return rounded.reshape(len(wide), -1).astype(np.int32)


def coding_of(column: Column, bits: int) -> Coding:
    """Return the block of one column.

    Listed values get an indicator each, booleans a sign, numbers and dates the middle of their bin, scaled by the
    bounds to [-1, 1]. A level for missing values is one more indicator; the value is the middle of the bounds then.
    """
    name = column.name
    if column.size > MOST_LEVELS:
        raise InputError(f"column {name!r} has {column.size} levels (at most {MOST_LEVELS}): set fewer bins")
    if column.levels < 2:
        raise InputError(f"column {name!r} has only one level, so nothing can depend on it: remove it")
    if isinstance(column, Listed):
        features = tuple(Feature(name=f"{name}={each}", block=name, values="indicator") for each in column.labels())
        return _coding(name, np.eye(column.size), features, bits, complete=True)
    middles, least, most = bins_of(column)
    middle, half = least / 2 + most / 2, (most - least) / 2
    missing = column.size > column.levels
    kind: Literal["number", "sign"] = "sign" if isinstance(column, Boolean) and not missing else "number"
    value = Feature(name=name, block=name, values=kind, middle=middle, half=half)
    scaled = np.concatenate([(middles - middle) / half, np.zeros(column.size - column.levels)])[:, None]
    if not missing:
        return _coding(name, scaled, (value,), bits)
    flag = Feature(name=f"{name}={MISSING_LABEL}", block=name, values="indicator")
    flags = np.arange(column.size)[:, None] >= column.levels
    return _coding(name, np.hstack([scaled, flags]), (value, flag), bits)


def product_of(first: Coding, second: Coding) -> Coding:
    """Return the block of all products of a feature of one column with a feature of another."""
    if len(first.columns) > 1 or len(second.columns) > 1 or first.columns == second.columns:
        raise InputError(f"{'*'.join(first.columns + second.columns)}: a product needs two different columns")
    block = f"{first.columns[0]}*{second.columns[0]}"
    features = tuple(
        Feature(
            name=f"{one.name}*{other.name}",
            block=block,
            values=one.values if one.values == other.values else "number",
            parts=(one.name, other.name),
        )
        for one in first.features
        for other in second.features
    )
    return Coding(
        columns=first.columns + second.columns,
        tables=first.tables + second.tables,
        features=features,
        complete=first.complete and second.complete,
        bits=first.bits,
    )


def coded_rows(codings: Sequence[Coding], coded: Mapping[str, Codes]) -> NDArray[np.int32]:
    """Return the features of all blocks side by side. Private."""
    return np.concatenate([coding.rows(coded) for coding in codings], axis=1)


def _coding(
    name: str, values: NDArray[Any], features: tuple[Feature, ...], bits: int, *, complete: bool = False
) -> Coding:
    scale = float(1 << bits)
    # clipped again after rounding: a rounding error must not make a row longer
    table = np.clip(np.rint(values.astype(np.float64) * scale), -scale, scale).astype(np.int32)
    return Coding(columns=(name,), tables=(table,), features=features, complete=complete, bits=bits)


def bins_of(column: Column) -> tuple[NDArray[np.float64], float, float]:
    """Return the middle of each bin, the least and the largest value; dates as steps since 1970."""
    if isinstance(column, Boolean):
        return np.array([0.0, 1.0]), 0.0, 1.0
    if isinstance(column, Listed):
        raise InputError(f"{column.name!r} is a list of values, not a number")
    edges: NDArray[Any] = column.bin_edges
    places = np.asarray(edges.astype(np.int64) if edges.dtype.kind == "M" else edges, dtype=np.float64)
    # a bin of whole numbers ends one before the next one's edge
    ends = places[1:] if edges.dtype.kind == "f" else places[1:] - 1
    # halved first: the sum of large bounds would be infinite
    return places[:-1] / 2 + ends / 2, float(places[0]), float(ends[-1])
