"""Declared columns that are computed from other columns of the same row, such as `days(admitted, discharged)`.

The language is a small part of Python's expressions: numbers, columns, `+ - * / // %`, one comparison, and the listed
functions. A name is a column of the source; one that is not a plain word is written in quotes: `"body mass" / 2`. What
is computed depends on the row alone. A row whose value cannot be computed is missing, and no value causes an error.
"""

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Any, Final, final

import numpy as np
import pyarrow as pa

from syndic.data import values as read
from syndic.data.reading import Resolution
from syndic.data.source import Source
from syndic.document_errors import suggestion

Numbers = read.Numbers
Computed = Callable[[pa.RecordBatch], Any]

_MOST_LETTERS: Final = 300
_LARGEST: Final = 10**300
_OPERATORS: Final[Mapping[type, Callable[..., Any]]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide, ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.USub: np.negative, ast.UAdd: np.positive,
}  # fmt: skip
_MATHS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "abs": np.abs, "exp": np.exp, "floor": np.floor, "log": np.log, "log10": np.log10, "round": np.rint,
    "sqrt": np.sqrt,
}  # fmt: skip
_EXTREMES: Final[Mapping[str, Callable[[Any, Any], Any]]] = {"max": np.maximum, "min": np.minimum}


@final
@dataclass(frozen=True)
class Moments:
    """A column of dates or times, counted in steps of a clock in a zone."""

    array: pa.Array
    zone: str

    def __getitem__(self, resolution: Resolution) -> Numbers:
        return read.times(self.array, resolution, self.zone)

    def day_of_month(self) -> Numbers:
        """Return the day of the month, from 1."""
        days = self["day"]
        whole = np.where(np.isnan(days), 0, days).astype(np.int64).astype("datetime64[D]")
        return np.where(np.isnan(days), np.nan, (whole - whole.astype("datetime64[M]")).astype(np.int64) + 1)


def _years(first: Moments, second: Moments) -> Numbers:
    months = second["month"] - first["month"] - (second.day_of_month() < first.day_of_month())
    return np.asarray(np.floor(months / 12))


# 1970-01-01 was a Thursday
_CALENDAR: Final[Mapping[str, Callable[..., Numbers]]] = {
    "year": lambda at: at["year"] + 1970,
    "month": lambda at: at["month"] % 12 + 1,
    "day": lambda at: at.day_of_month(),
    "weekday": lambda at: (at["day"] + 3) % 7 + 1,
    "hour": lambda at: at["hour"] % 24,
    "minute": lambda at: at["minute"] % 60,
    "years": _years,
    "days": lambda first, second: second["day"] - first["day"],
    "hours": lambda first, second: (second["second"] - first["second"]) / 3600,
    "minutes": lambda first, second: (second["second"] - first["second"]) / 60,
}
_PARTS: Final = ("year", "month", "day", "weekday", "hour", "minute")
FUNCTIONS: Final = (*_CALENDAR, *_MATHS, *_EXTREMES)


@final
@dataclass(frozen=True, eq=False)
class Expression:
    """A checked expression: the columns of the source that it reads, and the value of every row. Private."""

    columns: tuple[str, ...]
    values: Callable[[pa.RecordBatch], pa.Array] = field(repr=False)


@lru_cache(maxsize=512)
def expression(text: str) -> Expression:
    """Return the expression that a text says.

    Raises:
        ValueError: with everything that is wrong, and where.
    """
    line = " ".join(text.splitlines()).strip()
    if not 0 < len(line) <= _MOST_LETTERS:
        raise ValueError(f"must have 1 to {_MOST_LETTERS} letters")
    try:
        tree = ast.parse(line, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        at = f"at letter {error.offset}: " if isinstance(error, SyntaxError) and error.offset else ""
        raise ValueError(f"{at}is no expression; quote a column name that is not a plain word") from None
    reader = _Reader(line)
    numbers = reader.number(tree)
    if not reader.columns and not reader.problems:
        reader.problems.append("it uses no column of the source")
    if reader.problems:
        raise ValueError("; ".join(reader.problems))
    name = _column(tree)
    if name is not None:
        return Expression((name,), lambda rows: rows.column(name))

    def values(rows: pa.RecordBatch) -> pa.Array:
        with np.errstate(all="ignore"):
            found = np.broadcast_to(np.asarray(numbers(rows), dtype=np.float64), len(rows))
        return pa.array(np.where(np.isfinite(found), found, np.nan), from_pandas=True)

    return Expression(tuple(reader.columns), values)


@final
class _Reader:
    """Turns an expression into functions of rows; finds its columns and everything that is wrong with it."""

    def __init__(self, line: str) -> None:
        self.problems: list[str] = []
        self.columns: dict[str, None] = {}
        self._line = line.encode()

    def number(self, node: ast.expr) -> Computed:  # noqa: PLR0911 - one for each kind of expression
        """Return what computes numbers, NaN where there is none."""
        match node:
            case ast.Name(id=name) | ast.Constant(value=str() as name):
                self.columns[name] = None
                return lambda rows: read.numbers(read.decoded(rows.column(name)))
            case ast.Constant(value=int() | float() as value) if abs(value) < _LARGEST and not isinstance(value, bool):
                return lambda _: np.float64(value)
            case ast.UnaryOp(op=op, operand=inner) if type(op) in _OPERATORS:
                return self._applied(_OPERATORS[type(op)], inner)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return self._applied(_OPERATORS[type(op)], left, right)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
                return self._applied(_where_known(_OPERATORS[type(op)]), left, right)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(node, name)
            case _:
                return self._wrong(node, "use numbers, columns, + - * / // %, one comparison and functions only")

    def _applied(self, function: Callable[..., Any], *nodes: ast.expr) -> Computed:
        parts = [self.number(node) for node in nodes]
        return lambda rows: function(*(part(rows) for part in parts))

    def _call(self, node: ast.Call, name: str) -> Computed:
        timed = name in _CALENDAR
        most = 1 if name in _MATHS or name in _PARTS else 2 if timed else max(1, len(node.args))
        if name not in FUNCTIONS:
            hint = suggestion(name, FUNCTIONS) or f"; there are {', '.join(FUNCTIONS)}"
            self._wrong(node, f"unknown function '{name[:40]}'{hint}")
        elif len(node.args) != most:
            self._wrong(node, f"{name} takes {most} argument{'s' if most > 1 else ''}, not {len(node.args)}")
        for key in node.keywords:
            if not timed or key.arg != "zone" or not read.is_zone(_column(key.value) or ""):
                self._wrong(
                    node, "after the arguments only `zone` of a calendar function may stand, such as 'Asia/Tokyo'"
                )
        if not timed:
            return self._applied(_MATHS.get(name, lambda *numbers: reduce(_EXTREMES[name], numbers)), *node.args)
        for inner in node.args:
            if _column(inner) is None:
                self._wrong(inner, f"{name} takes columns of dates or times, not other expressions")
            self.number(inner)
        zone = (_column(node.keywords[0].value) or "") if node.keywords else "UTC"
        columns = [_column(one) for one in node.args]
        return lambda rows: _CALENDAR[name](*(Moments(read.decoded(rows.column(one)), zone) for one in columns))

    def _wrong(self, node: ast.expr, problem: str) -> Computed:
        place = len(self._line[: node.col_offset].decode(errors="ignore")) + 1
        self.problems.append(f"at letter {place}: {problem}")
        return lambda rows: np.full(len(rows), np.nan)


def _where_known(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a comparison that is NaN where a number is."""
    return lambda first, second: np.where(np.isnan(first) | np.isnan(second), np.nan, compare(first, second))


def _column(node: ast.expr) -> str | None:
    """Return the name of a column, or None where something else stands."""
    if isinstance(node, ast.Name):
        return node.id
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


@final
@dataclass(frozen=True, eq=False)
class DerivedSource:
    """A source with further columns that are computed from its own."""

    source: Source
    derived: Mapping[str, Expression]

    def names(self) -> tuple[str, ...]:
        """Return the names of the source's columns, and of the computed ones."""
        return tuple(dict.fromkeys([*self.source.names(), *self.derived]))

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `columns`; computed ones are read from their own columns of the source. Private."""
        columns = list(columns)
        parts = {name: self.derived[name].columns if name in self.derived else (name,) for name in columns}
        for batch in self.source.batches(list(dict.fromkeys(one for part in parts.values() for one in part))):
            arrays = [
                self.derived[name].values(batch) if name in self.derived else batch.column(name) for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=columns)

    def describe(self) -> str:
        """Return what the source is."""
        return self.source.describe()
