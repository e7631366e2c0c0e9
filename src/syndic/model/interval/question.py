"""Questions about a population, such as `mean(age) - mean(weight, given=sex == "f")`, and their influence functions.

The language is a small part of Python's expressions. A question is made of `mean`, `odds`, `linear`, `logistic` and
`quantile`, of numbers, `+ - * /`, `log`, `exp` and `sqrt`. Within a function stand columns, numbers, the same signs,
comparisons, `and`, `or` and `not`. A column whose name is not a plain word is in quotes, and so is a listed value,
which stands on the right of a comparison. Rows where a column of a function is missing are left out of it.

The influence function of a question says how much its value changes with the number of rows in a cell (Hampel 1974).
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from keyword import iskeyword
from math import ceil, floor, inf, isnan
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Boolean, Column, Integer, Real, Schema
from syndic.data.column import MISSING_LABEL, Listed
from syndic.data.ranged import Ranged
from syndic.document_errors import suggestion
from syndic.errors import InputError
from syndic.model.interval.measured import NoValueError
from syndic.model.interval.regression import linear, logistic

Floats = NDArray[np.float64]

MOST_LETTERS: Final = 500
"""The longest question."""
_LARGEST: Final = 1 << 53
_MOST: Final = 1e100
_SIGNS: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARED: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_MIRRORED: Final[Mapping[type, type[ast.cmpop]]] = {
    ast.Eq: ast.Eq, ast.NotEq: ast.NotEq, ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE,
}  # fmt: skip
MATHS: Final[Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "log": (np.log, lambda x: 1 / x),
    "exp": (np.exp, np.exp),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
}
"""Functions and their derivatives."""
_EMPTY: Final = "it has no value: the groups or combinations it compares are empty"
FUNCTIONS: Final = ("mean", "odds", "linear", "logistic", "quantile")


@final
@dataclass(frozen=True, eq=False)
class Estimate:
    """A number, and its influence function over the cells of a table.

    It was divided by `divisors`; a quotient is 0 where its `top` is. No population has one that is not `within` these.
    """

    value: float
    influence: Floats | float = 0.0
    divisors: tuple["Estimate", ...] = ()
    top: "Estimate | None" = None
    within: tuple[float, float] = (-inf, inf)

    def __add__(self, other: "Estimate") -> "Estimate":
        influence, divisors = self.influence + other.influence, self.divisors + other.divisors
        within = (self.within[0] + other.within[0], self.within[1] + other.within[1])
        return Estimate(self.value + other.value, influence, divisors, within=within)

    def __sub__(self, other: "Estimate") -> "Estimate":
        return self + constant(-1.0) * other

    def __mul__(self, other: "Estimate") -> "Estimate":
        influence = self.influence * other.value + other.influence * self.value
        ends = [one * another for one in self.within for another in other.within]
        within = (-inf, inf) if any(map(isnan, ends)) else (min(ends), max(ends))
        return Estimate(self.value * other.value, influence, self.divisors + other.divisors, within=within)

    def __truediv__(self, other: "Estimate") -> "Estimate":
        divisor = np.float64(other.value)
        value = float(self.value / divisor)
        influence = (self.influence - other.influence * value) / divisor
        return Estimate(value, influence, (*self.divisors, *other.divisors, other.top or other), self.top or self)

    def through(self, function: Callable[[Any], Any], slope: Callable[[Any], Any]) -> "Estimate":
        """Return a smooth function of it; at 0, where a logarithm or root has no slope, it is as if divided by 0."""
        value = np.float64(self.value)
        divisors = self.divisors if function is np.exp else (*self.divisors, self)
        return Estimate(float(function(value)), self.influence * float(slope(value)), divisors)


def constant(value: float) -> Estimate:
    """Return a number that is the same in every population."""
    return Estimate(value, within=(value, value))


@final
@dataclass(frozen=True, eq=False)
class Question:
    """A question that was read, and the columns it is about, in the schema's order."""

    text: str
    tree: ast.expr
    schema: Schema
    columns: tuple[str, ...]

    @property
    def is_ratio(self) -> bool:
        """Whether it is a quotient or odds, whose errors are multiples."""
        tree = self.tree
        return (isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Div)) or _called(tree) == "odds"

    @property
    def is_quantile(self) -> bool:
        """Whether it is one quantile."""
        return _called(self.tree) == "quantile"

    def estimate(self, shares: Floats) -> Estimate:
        """Return the value for a population with these shares of all cells of the columns, and its influence."""
        with np.errstate(all="ignore"):
            found = _Population(self, shares).number(self.tree)
        if not (np.isfinite(found.value) and np.isfinite(found.influence).all()):
            raise NoValueError(_EMPTY)
        if max(abs(found.value), float(np.abs(found.influence).max())) > _MOST:
            raise NoValueError("its value is too large a number")
        return found

    def below(self, shares: Floats) -> tuple[float, Floats, list[Estimate], bool]:
        """Return the probability of a quantile, the edges of bins, the shares below them, and if values are whole."""
        assert isinstance(self.tree, ast.Call)  # noqa: S101 (is_quantile)
        population = _Population(self, shares)
        column, chance, given = population.quantile(self.tree)
        edges = column.bin_edges.astype(np.float64)
        codes = population.along(column.name, np.arange(column.size, dtype=np.float64))
        known = np.where(codes < column.levels, codes, np.nan)
        with np.errstate(all="ignore"):
            found = [
                population.mean(np.where(np.isnan(known), np.nan, known < code), given) for code in range(len(edges))
            ]
        if not all(np.isfinite(one.value) for one in found):
            raise NoValueError(_EMPTY)
        return chance, edges, found, isinstance(column, Integer)


def read_question(text: str, schema: Schema) -> Question:
    """Return the question that a text asks of these columns.

    Raises:
        InputError: with what is wrong, without the question.
    """
    # spaces within quotes belong to a name or a value
    line = " ".join(part.strip() for part in text.splitlines()).strip()
    if not 0 < len(line) <= MOST_LETTERS:
        raise InputError(f"a question must have 1 to {MOST_LETTERS} letters")
    try:
        tree = ast.parse(line, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(
            "this is no question; write for instance mean(age) or mean(age, given=sex == 'f'), and quote a name that "
            "is not a plain word"
        ) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and abs(node.value) > _LARGEST:
            raise InputError(f"a whole number in it is larger than {_LARGEST:,}")
    named = _columns(tree, schema)
    return Question(line, tree, schema, tuple(name for name in schema.names if name in named))


def _called(node: ast.expr) -> str | None:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


def _name(node: ast.expr) -> str | None:
    """Return the name of a column, or None where something else stands."""
    if isinstance(node, ast.Name):
        return node.id
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _columns(node: ast.AST, schema: Schema) -> set[str]:
    """Return the columns that an expression names; refuse one that the schema does not have."""
    if isinstance(node, ast.Compare):
        # text on the right is a value
        sides = [node.left, *(one for one in node.comparators if not isinstance(one, ast.Constant))]
        return set().union(*(_columns(one, schema) for one in sides))
    name = _name(node) if isinstance(node, ast.expr) else None
    if name is not None:
        if name not in schema.names:
            raise InputError(f"no column '{name}'{suggestion(name, schema.names)}: there are {', '.join(schema.names)}")
        return {name}
    inner = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):
        inner = [*node.args, *(one.value for one in node.keywords)]
    return set().union(*(_columns(one, schema) for one in inner))


@final
class _Population:
    """Evaluates a question on the shares of all cells."""

    def __init__(self, question: Question, shares: Floats) -> None:
        self.question, self.shares = question, shares

    def number(self, node: ast.expr) -> Estimate:
        """Return the estimate of what stands outside or at the top of functions."""
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return constant(float(value))
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return constant(-1.0) * self.number(inner)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
                found: Estimate = _SIGNS[type(op)](self.number(left), self.number(right))
                return found
            case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in MATHS:
                return self.number(inner).through(*MATHS[name])
            case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
                return self._call(name, node)
        raise InputError(f"use numbers, + - * /, {', '.join(MATHS)} and {', '.join(FUNCTIONS)} of columns")

    def _call(self, name: str, node: ast.Call) -> Estimate:
        given = self._given(node)
        if name == "quantile":
            raise InputError("a quantile stands alone: it is no smooth function of a table")
        if name in ("mean", "odds"):
            if len(node.args) != 1:
                raise InputError(f"{name} takes one column or condition, and given=CONDITION")
            found = self.mean(self.values(node.args[0]), given)
            return found if name == "mean" else found / (constant(1.0) - found)
        if len(node.args) < 2:
            raise InputError(f"{name} takes what is explained, the column whose coefficient is wanted, and others")
        explained, wanted, *others = node.args
        regressors = [self.values(wanted), *(part for one in others for part in self._adjusted(one))]
        fitted = {"linear": linear, "logistic": logistic}[name]
        outcome = self.values(explained)
        if name == "logistic" and not np.isin(outcome[np.isfinite(outcome)], (0.0, 1.0)).all():
            raise InputError("logistic explains a condition such as income == 'high', or a column of truths")
        value, influence, known, of_known = fitted(self.shares, outcome, regressors, given)
        return Estimate(value, influence, (Estimate(known, of_known),))

    def mean(self, values: Floats, given: Floats) -> Estimate:
        """Return the mean of values that are known, of rows that meet a condition."""
        counted = np.isfinite(values) & (given == 1)
        values = np.where(counted, values, 0.0)
        whole = float((self.shares * counted).sum())
        value = float((self.shares * values).sum()) / whole if whole > 0 else np.nan
        influence = counted * (values - value) / np.float64(whole)
        divisors = () if counted.all() else (Estimate(whole, counted - whole),)
        within = (values[counted].min(), values[counted].max()) if counted.any() else (-inf, inf)
        return Estimate(value, influence, divisors, within=(float(within[0]), float(within[1])))

    def quantile(self, node: ast.Call) -> tuple[Ranged, float, Floats]:
        """Return the column, the probability and the condition of a quantile."""
        match node.args:
            case [column, ast.Constant(value=float() as chance)] if 0 < chance < 1 and _name(column) is not None:
                found = self.question.schema[_name(column) or ""]
                if isinstance(found, Integer | Real):
                    return found, chance, self._given(node)
        raise InputError("quantile takes a column of numbers, a probability such as 0.5, and given=CONDITION")

    def along(self, name: str, values: Floats) -> Floats:
        """Return numbers for each level of a column, along its axis of the cells."""
        shape = [1] * self.shares.ndim
        shape[self.question.columns.index(name)] = -1
        return values.reshape(shape)

    def values(self, node: ast.expr) -> Floats:
        """Return what stands within a function, for each cell; NaN where a column is missing."""
        name = _name(node)
        if name is not None:
            return self.along(name, numbers_of(self.question.schema[name]))
        return np.asarray(self._computed(node), dtype=np.float64)

    def _computed(self, node: ast.expr) -> Any:
        found: Any = None
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                found = float(value)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                found = -self.values(inner)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                found = 1 - self._truths(inner)
            case ast.BoolOp(op=op, values=parts):
                # a missing value leaves the row out, whatever the other part says
                found = reduce(np.minimum if isinstance(op, ast.And) else np.maximum, map(self._truths, parts))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
                found = _SIGNS[type(op)](self.values(left), self.values(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                found = self._compared(left, op, right)
            case ast.Call(func=ast.Name(id=called), args=[inner], keywords=[]) if called in MATHS:
                found = MATHS[called][0](self.values(inner))
        if found is None:
            raise InputError(f"within a function use columns, numbers, + - * /, {', '.join(MATHS)} and conditions")
        return found

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Floats:
        name = _name(left)
        column = None if name is None else self.question.schema[name]
        if isinstance(column, Listed):
            return self._listed(column, op, right)
        first, second = self.values(left), self.values(right)
        for one, other, asked in ((left, second, type(op)), (right, first, _MIRRORED[type(op)])):
            ranged = self.question.schema[_name(one) or ""] if _name(one) is not None else None
            if isinstance(ranged, Integer | Real) and other.size == 1 and not _at_edge(ranged, asked, other.item()):
                inner = ranged.bin_edges[1:-1]
                near = sorted(inner[np.argsort(np.abs(inner - other.item()))[:2]].tolist())
                raise InputError(
                    f"numbers of '{ranged.name}' are counted in bins: compare by < or >= with an edge, such as "
                    + " or ".join(f"{edge:g}" for edge in near)
                )
        return np.where(np.isnan(first) | np.isnan(second), np.nan, _COMPARED[type(op)](first, second))

    def _listed(self, column: Listed, op: ast.cmpop, right: ast.expr) -> Floats:
        """Return which levels of a listed column meet a comparison; only equality, since a list has no order."""
        labels = column.labels()
        value = right.value if isinstance(right, ast.Constant) else None
        text = next((label for label in labels if label == str(value)), None)
        if text is None or not isinstance(op, ast.Eq | ast.NotEq):
            shown = ", ".join(labels[:8]) + (", ..." if len(labels) > 8 else "")
            raise InputError(f"compare '{column.name}' by == or != with one of its values: {shown}")
        found = np.array([float((label == text) == isinstance(op, ast.Eq)) for label in labels])
        if column.missing == "level" and text != MISSING_LABEL:
            found[column.missing_code] = np.nan
        return self.along(column.name, found)

    def _adjusted(self, node: ast.expr) -> Sequence[Floats]:
        """Return what a regression adjusts for: numbers as they are, a list as one indicator for each value but one."""
        name = _name(node)
        column = None if name is None else self.question.schema[name]
        if not isinstance(column, Listed):
            return [self.values(node)]
        axis = self.question.columns.index(column.name)
        mass = self.shares.sum(axis=tuple(other for other in range(self.shares.ndim) if other != axis))
        levels = [code for code in range(column.levels) if mass[code] > 0]
        codes = np.arange(column.size)
        missing = codes >= column.levels
        return [self.along(column.name, np.where(missing, np.nan, codes == code)) for code in levels[1:]]

    def _truths(self, node: ast.expr) -> Floats:
        """Return whether each cell meets a condition."""
        found = self.values(node)
        if not np.isin(found[np.isfinite(found)], (0.0, 1.0)).all():
            raise InputError("after given= and beside and, or, not stand conditions, such as age >= 60")
        return found

    def _given(self, node: ast.Call) -> Floats:
        match node.keywords:
            case []:
                return np.ones(1)
            case [ast.keyword(arg="given", value=value)]:
                return self._truths(value)
        raise InputError("after the columns only given=CONDITION may stand")


def _at_edge(column: Integer | Real, op: type[ast.cmpop], value: float) -> bool:
    """Return whether a comparison with a number divides no bin of a column."""
    edges = column.bin_edges.astype(np.float64)
    if isinstance(column, Integer):
        # a bin ends before the next edge: each comparison divides the numbers before one or two whole numbers
        before, after = ceil(value), floor(value) + 1
        cuts = {ast.Lt: {before}, ast.GtE: {before}, ast.LtE: {after}, ast.Gt: {after}}.get(op, {before, after})
        return all(cut <= edges[0] or cut >= edges[-1] or cut in edges for cut in cuts)
    if op in (ast.Lt, ast.GtE):
        return bool(value <= edges[0] or value > edges[-1] or np.isclose(edges[1:-1], value, rtol=1e-9).any())
    # numbers at an edge are in the bin after it, and those at the last edge in the last bin
    return bool(value < edges[0] or value > edges[-1] or (value == edges[-1] and op in (ast.LtE, ast.Gt)))


def numbers_of(column: Column) -> Floats:
    """Return the number that each level of a column stands for: the middle of its bin, NaN for missing values."""
    found = np.full(column.size, np.nan)
    if isinstance(column, Integer):
        found[: column.levels] = (column.bin_edges[:-1] + column.bin_edges[1:] - 1) / 2
    elif isinstance(column, Real):
        found[: column.levels] = (column.bin_edges[:-1] + column.bin_edges[1:]) / 2
    elif isinstance(column, Boolean):
        found[:2] = (0.0, 1.0)
    else:
        raise InputError(f"'{column.name}' is no number: compare it with a value, such as {_example(column)}")
    return found


def _example(column: Column) -> str:
    return f"{quoted(column.name)} == {column.labels()[0]!r}"


def quoted(name: str) -> str:
    """Return a column's name as a question has it: in quotes, unless it is a plain word."""
    return name if name.isidentifier() and not iskeyword(name) else repr(name)
