"""What a synthesis publishes: a table, the model it was drawn from, and the noisy tables; or rows and tables alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Column, Domain, Factor, ReleasedTable, Schema, decode_codes
from syndic.document import Document, from_file
from syndic.errors import InputError
from syndic.kernel import Result, Session, read_table
from syndic.kernel.result import unreadable
from syndic.methods.histogram.tables import cells_of
from syndic.methods.synthesis.expected import reliability_of
from syndic.methods.synthesis.trust import Reliability
from syndic.methods.synthesis.unseen import unseen_levels, without_levels
from syndic.model.markov import MarkovField, Measurement
from syndic.model.selection import Adaptive, Grouping, Synthesis
from syndic.model.selection.levels import level_counts, one_way_tables, released_levels
from syndic.random import SystemRandomness
from syndic.random import generator as new_generator

_MOST_SHOWN = 100_000
_USUAL = Adaptive()


@final
@dataclass(frozen=True, kw_only=True)
class ReleasedModel:
    """A fitted model of all columns, made of noisy counts: anyone may ask it, as often as they like, at no cost.

    `unseen` are levels without evidence, "other" and missing, by column: the model is asked and sampled without them.
    """

    schema: Schema
    fitted: Synthesis
    unseen: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @cached_property
    def released(self) -> Synthesis:
        """The fitted model without the levels that are not released."""
        return without_levels(self.fitted, self.unseen) if self.unseen else self.fitted

    @property
    def total(self) -> float:
        """The number of rows that the noisy counts say."""
        return self.fitted.total

    @property
    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """The sets of columns whose dependence the model holds in full."""
        return self.fitted.field.tree.cliques

    def marginal(self, names: Sequence[str]) -> Factor:
        """Return the expected number of rows in each cell of some columns, by code."""
        return self.released.marginal(tuple(names))

    def table(self, names: Sequence[str]) -> pa.Table:
        """Return the expected number of rows for each combination of values, `count`, as a table for people.

        Where a column is called so itself, the number is in `(count)`.
        """
        if not names:
            raise InputError("name at least one column; the number of rows is `total`")
        factor = self.marginal(names)
        if factor.domain.size > _MOST_SHOWN:
            raise InputError(
                f"a table of {factor.domain.size:,} cells: at most {_MOST_SHOWN:,} are written out; ask for fewer "
                "columns, or use marginal() for numbers without labels"
            )
        codes = np.indices(factor.domain.sizes).reshape(len(factor.domain), -1)
        columns = {
            name: pa.array(self.schema[name].labels(), pa.string()).take(pa.array(code))
            for name, code in zip(factor.domain.names, codes, strict=True)
        }
        return pa.table({**columns, "(count)" if "count" in columns else "count": factor.values.ravel()})

    def sample(
        self, rows: int, *, given: Mapping[str, Any] | None = None, generator: np.random.Generator | None = None
    ) -> ReleasedTable:
        """Draw rows; with `given`, values of some columns, rows that have them (a number stands for its bin).

        `generator` makes the draw repeat itself; it protects nobody, and need not: nothing here is private.
        """
        if rows < 0:
            raise InputError(f"rows ({rows}) must not be negative")
        generator = new_generator(SystemRandomness()) if generator is None else generator
        fixed = {name: _code(self.schema[name], value) for name, value in (given or {}).items()}
        model = self.released
        if self.unseen.keys() & fixed.keys():
            model = without_levels(self.fitted, {name: one for name, one in self.unseen.items() if name not in fixed})
        return decode_codes(self.schema, model.sample(rows, generator, given=fixed or None), generator)


class AskedRound(Document):
    """One round: the tables that were opened, the standard deviation on every count, and whose rows are in them.

    `groups` has the group of every level of every column, where tables count groups of levels; else it is empty.
    `deviations` has the standard deviation of every table where they differ: then `standard_deviation` is the largest.
    """

    tables: tuple[tuple[str, ...], ...]
    groups: tuple[tuple[int, ...], ...]
    standard_deviation: float
    present: tuple[str, ...]
    deviations: tuple[float, ...] = ()

    @property
    def deviation_of(self) -> tuple[float, ...]:
        """The standard deviation on every count of each table."""
        return self.deviations or (self.standard_deviation,) * len(self.tables)


class AskedParities(Document):
    """The round of parities: how many sets of columns, the standard deviation on each, and whose rows are in them."""

    sets: int
    standard_deviation: float
    present: tuple[str, ...]


class SynthesisNote(Document):
    """How the table was made. Public. `groups` are the model's, the group of every level of every column.

    `found` are the sets of columns whose parity stood out: their tables were measured and the model holds them.
    """

    rounds: tuple[AskedRound, ...]
    total: float
    groups: tuple[tuple[int, ...], ...]
    cliques: tuple[tuple[str, ...], ...]
    cells: int
    parities: AskedParities | None = None
    found: tuple[tuple[str, ...], ...] = ()


@final
@dataclass(frozen=True, kw_only=True)
class SyntheticTable(Result):
    """The synthetic table, its model, and the noisy tables. All of it follows from what the parties sent with noise.

    `selector` chose the tables, smoothed fine levels of some columns, and knows the branches of long lists.
    """

    table: ReleasedTable
    model: ReleasedModel
    note: SynthesisNote
    selector: Adaptive = _USUAL

    @property
    def tables(self) -> tuple[Measurement, ...]:
        """The noisy tables of all rounds."""
        return tuple(table for one in self.model.fitted.rounds for table in one)

    @property
    def ordered(self) -> tuple[str, ...]:
        """The columns whose fine levels were smoothed."""
        return tuple(name for name, _ in self.selector.ordered)

    @cached_property
    def released(self) -> dict[str, NDArray[np.int64]]:
        """The code that each code of a long list is released as, by column: its own, or that of a branch."""
        tables = one_way_tables(self.model.schema.domain, self.model.fitted.rounds[0])
        counts = {one.names[0]: one for one in tables}
        return {name: released_levels(counts[name], branches) for name, branches in self.selector.branches}

    @cached_property
    def reliability(self) -> Reliability:
        """The expected error of every column and pair, from the release alone."""
        arrow, schema = self.table.to_arrow(), self.model.schema
        return reliability_of(
            schema,
            self.model.released,
            [one.groups for one in self.note.rounds],
            {column.name: column.encode(arrow[column.name]) for column in schema.columns},
            ordered=self.ordered,
            released=self.released,
            target=self.selector.target,
        )

    def files(self) -> Mapping[str, Any]:
        """Return `synthetic.parquet`, `model.npz`, the noisy counts `tables.parquet`, and a note on them."""
        return {
            "synthetic.parquet": self.table,
            "model.npz": self.model.fitted.field,
            "tables.parquet": cells_of((one.names, one.values) for one in self.tables),
            "synthesis.json": self.note,
        }

    def summary(self) -> Mapping[str, Any]:
        """Return a few facts about the table and its model."""
        return {
            "rows": len(self.table),
            "columns": len(self.table.names),
            "noisy tables": len(self.tables),
            "cells of the model": self.note.cells,
            "parties in every sum": min(len(one.present) for one in self.note.rounds),
            **({"found beyond pairs": [" x ".join(names) for names in self.note.found]} if self.note.found else {}),
            **self._without(),
        }

    def _without(self) -> dict[str, str]:
        """Return how many columns are released without missing values, and without "other", for want of evidence."""
        ends = [(codes, self.model.schema[name].levels) for name, codes in self.model.unseen.items()]
        missing, others = (
            sum(codes[-1] >= levels for codes, levels in ends),
            sum(codes[0] < levels for codes, levels in ends),
        )
        numbers = {"without missing values": missing, 'without "other"': others}
        return {what: f"{number} columns" for what, number in numbers.items() if number}


def draw_synthesis(
    session: Session,
    fitted: Synthesis,
    rounds: Sequence[AskedRound],
    rows: int,
    selector: Adaptive = _USUAL,
    parities: AskedParities | None = None,
) -> SyntheticTable:
    """Return rows drawn from the model, with what was opened; `selector` chose the tables."""
    model, tree = _released(session.terms.schema, fitted, rounds, selector), fitted.field.tree
    note = SynthesisNote(
        rounds=tuple(rounds),
        total=fitted.total,
        groups=fitted.grouping.groups,
        cliques=tree.cliques,
        cells=tree.cells,
        parities=parities,
        found=fitted.found,
    )
    table = model.sample(rows, generator=new_generator(session.randomness))
    return SyntheticTable(table=table, model=model, note=note, selector=selector)


def _released(schema: Schema, fitted: Synthesis, rounds: Sequence[AskedRound], selector: Adaptive) -> ReleasedModel:
    """Return the model without levels that no noisy table shows."""
    levels = Grouping.none(schema.domain)
    groups = [(Grouping(schema.domain, one.groups) if one.groups else levels).by_column for one in rounds]
    opened = list(zip(groups, fitted.rounds, strict=True))
    unseen = unseen_levels(schema, opened, fitted, [name for name, _ in selector.branches])
    return ReleasedModel(schema=schema, fitted=fitted, unseen=unseen)


def read_synthesis(schema: Schema, folder: Path, selector: Adaptive = _USUAL) -> SyntheticTable:
    """Read back the files of a `SyntheticTable`; `selector` chose the tables and merged levels."""
    note = from_file(folder / "synthesis.json", SynthesisNote)
    field = MarkovField.load(folder / "model.npz")
    grouping = Grouping(schema.domain, note.groups)
    if field.domain != grouping.domain_of_groups:
        raise InputError(f"{folder.name}: model.npz is not of the study's columns")
    rows, rounds = read_table(folder, "synthetic.parquet"), _measured(schema.domain, note, folder)
    one_way = level_counts(one_way_tables(schema.domain, rounds[0]), dict(selector.ordered), dict(selector.branches))
    fitted = Synthesis(
        field=field, grouping=grouping, one_way=one_way, rounds=tuple(tuple(one) for one in rounds), found=note.found
    )
    model = _released(schema, fitted, note.rounds, selector)
    return SyntheticTable(table=ReleasedTable(rows), model=model, note=note, selector=selector)


def _measured(domain: Domain, note: SynthesisNote, folder: Path) -> list[list[Measurement]]:
    """Read back the noisy tables of all rounds, one after the other."""
    domains = [
        [
            Grouping(domain, one.groups or Grouping.none(domain).groups).domain_of_groups.project(names)
            for names in one.tables
        ]
        for one in note.rounds
    ]
    parts = iter(read_cells(folder, [table.sizes for one in domains for table in one], "synthesis.json"))
    return [
        [
            Measurement(table.names, next(parts), deviation**2)
            for table, deviation in zip(one, asked.deviation_of, strict=True)
        ]
        for one, asked in zip(domains, note.rounds, strict=True)
    ]


def read_cells(folder: Path, shapes: Sequence[tuple[int, ...]], note: str) -> list[NDArray[np.float64]]:
    """Read back the noisy counts of tables of these shapes, which the file `note` lists."""
    cells = read_table(folder, "tables.parquet")
    if "count" not in cells.column_names:
        raise unreadable(folder, KeyError("count"))
    counts = np.asarray(cells["count"], dtype=np.float64)
    ends = np.cumsum([prod(shape) for shape in shapes])
    if not shapes or len(counts) != ends[-1]:
        raise InputError(f"{folder.name}: tables.parquet does not have the cells that {note} lists")
    return [part.reshape(shape) for part, shape in zip(np.split(counts, ends[:-1]), shapes, strict=True)]


def _code(column: Column, value: Any) -> int:
    """Return the code of a value that a person gives; None is missing."""
    try:
        one = pa.array([value])
        # a list of values would be read as a missing one
        code = None if pa.types.is_nested(one.type) else int(column.encode(one)[0])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        code = None
    if code is None:
        raise InputError(f"given: the value of '{column.name}' must be one number, text, date or truth")
    return code


class TableNote(Document):
    """One noisy table: its axes, the number of levels of each, and the standard deviation of a count."""

    axes: tuple[str, ...]
    shape: tuple[int, ...]
    standard_deviation: float


class RowsNote(Document):
    """How the rows were made. Public."""

    tables: tuple[TableNote, ...]


Note = TypeVar("Note", bound=RowsNote)


@final
@dataclass(frozen=True, kw_only=True)
class PublishedRows(Result):
    """Synthetic rows and the noisy tables they were drawn from. All of it is released."""

    table: ReleasedTable
    tables: tuple[Measurement, ...]
    note: RowsNote

    def files(self) -> Mapping[str, Any]:
        """Return `synthetic.parquet`, the noisy counts `tables.parquet`, and `rows.json`."""
        return {
            "synthetic.parquet": self.table,
            "tables.parquet": cells_of((one.names, one.values) for one in self.tables),
            "rows.json": self.note,
        }

    def summary(self) -> Mapping[str, Any]:
        """Return a few facts about the rows and what they were made from."""
        return {
            "rows": len(self.table),
            "columns": len(self.table.names),
            "noisy tables": len(self.tables),
            "noisy counts": sum(one.values.size for one in self.tables),
        }


def notes_of(tables: Sequence[Measurement]) -> tuple[TableNote, ...]:
    """Return the notes on the tables."""
    return tuple(
        TableNote(axes=one.names, shape=tuple(one.values.shape), standard_deviation=one.variance**0.5) for one in tables
    )


def read_rows(folder: Path, kind: type[Note]) -> PublishedRows:
    """Read back the files of a `PublishedRows`."""
    note = from_file(folder / "rows.json", kind)
    rows = read_table(folder, "synthetic.parquet")
    parts = read_cells(folder, [one.shape for one in note.tables], "rows.json")
    tables = tuple(
        Measurement(one.axes, part, one.standard_deviation**2) for one, part in zip(note.tables, parts, strict=True)
    )
    return PublishedRows(table=ReleasedTable(rows), tables=tables, note=note)
