"""Name what a release is wanted for."""

from typing import Literal, Self, final, get_args

from syndic.advice.scale import has_numbers, listed
from syndic.data import Schema
from syndic.data.schema import Column
from syndic.document import Document
from syndic.errors import InputError

Kind = Literal["mean", "shares", "linear", "classify"]


@final
class Task(Document):
    """A question about one column.

    `mean`: its mean (ranks of an ordinal column, share of true of a boolean). `shares`: the share of each value.
    `linear`: predict it from all other columns by least squares. `classify`: the probability that a column of two
    values has the second one, from all other columns by least squares.
    """

    kind: Kind
    column: str

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a task written as "mean:age"."""
        kind, colon, column = text.partition(":")
        if not colon or not column or kind not in get_args(Kind):
            raise InputError(f"task {text!r}: write it as KIND:COLUMN with KIND one of {', '.join(get_args(Kind))}")
        return cls(kind=kind, column=column)  # type: ignore[arg-type]  # checked just above

    @property
    def name(self) -> str:
        """The task as written on the command line."""
        return f"{self.kind}:{self.column}"

    def check(self, schema: Schema) -> None:
        """Raise `InputError` if the column cannot answer the question."""
        column = schema[self.column]
        if self.kind in ("linear", "classify") and len(schema.columns) < 2:
            raise InputError(f"task {self.name}: there is no other column to predict from")
        if self.kind == "shares" and not listed(column):
            raise InputError(f"task {self.name}: the column has no listed values; use mean:{self.column}")
        if self.kind in ("mean", "linear") and not has_numbers(column):
            raise InputError(f"task {self.name}: the column has no order; use shares:{self.column}")
        if self.kind == "classify" and len(listed(column)) != 2:
            raise InputError(f"task {self.name}: the column must list two values")


def default_tasks(schema: Schema) -> tuple[Task, ...]:
    """Return the mean or the shares of every column, and a prediction of the last column that allows one."""
    tasks = [Task(kind="mean" if has_numbers(column) else "shares", column=column.name) for column in schema.columns]
    if len(schema.columns) > 1:
        outcomes = [column for column in schema.columns if _outcome(column)]
        tasks += [Task(kind=_outcome(column) or "linear", column=column.name) for column in outcomes[-1:]]
    return tuple(tasks)


def _outcome(column: Column) -> Kind | None:
    if len(listed(column)) == 2:
        return "classify"
    return "linear" if has_numbers(column) else None
