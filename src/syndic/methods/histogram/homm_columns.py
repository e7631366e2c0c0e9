"""HOMM's parties that have some columns only, or bins of their own, and the merged table of all columns.

The paper lets parties share only some attributes, and each has its own bins. Both are public, in the study. What a
party does not have is missing in its rows, or taken from rows of parties that have it. Those rows are drawn from noisy
counts too, so that this costs nothing.
"""

import datetime
from collections.abc import Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from syndic.data import Column, Schema
from syndic.data.ranged import Ranged
from syndic.document import Document, from_builtins, to_builtins
from syndic.errors import InputError
from syndic.kernel import Terms, member, schema_of

Absent = Literal["missing", "matched"]
Rows = dict[str, pa.Table]


class OwnBins(Document):
    """The bins of one column at one party, in place of the schema's: a number of `bins`, or their `edges`."""

    party: str
    column: str
    bins: int | None = None
    edges: tuple[int | float | datetime.date, ...] | None = None

    def __post_init__(self) -> None:
        if (self.bins is None) == (self.edges is None):
            raise ValueError(f"bins of {self.column} at {self.party}: set either bins or edges")

    def of(self, column: Column) -> Column:
        """Return the column with these bins."""
        if not isinstance(column, Ranged):
            raise InputError(f"bins: column '{self.column}' has listed values, not bins")
        changed = {**to_builtins(column), "bins": self.bins, "edges": to_builtins(self.edges)}
        return from_builtins(changed, type(column), where=f"bins of {self.column} at {self.party}")


def own_schemas(terms: Terms, bins: tuple[OwnBins, ...]) -> dict[str, Schema]:
    """Return the columns that every party has, with its own bins; refuse a column that nobody has."""
    places = [(one.party, one.column) for one in bins]
    if len(set(places)) < len(places):
        raise InputError("bins: a party's bins of a column are given twice")
    for one in bins:
        held = member(terms, one.party).columns
        if one.column not in (terms.schema.names if held is None else held):
            raise InputError(f"bins: party '{one.party}' has no column '{one.column}'")
    found = {}
    for party in terms.parties:
        own = {one.column: one for one in bins if one.party == party.name}
        columns = schema_of(terms, party.name).columns
        found[party.name] = Schema(columns=tuple(own[one.name].of(one) if one.name in own else one for one in columns))
    for name in terms.schema.names:
        if not any(name in schema.names for schema in found.values()):
            raise InputError(f"column '{name}' is held by no party: give it to one, or remove it from the schema")
    return found


def merged(schema: Schema, rows: Rows, absent: Absent, draws: np.random.Generator) -> pa.Table:
    """Return the rows of all parties with all columns of the schema; further columns stay as they are.

    `missing` leaves empty what a party does not have. `matched` takes it from a row, drawn at random, of the parties
    that have it: one with the same levels of the columns that all of them have, or any if there is none. Columns that
    the same parties have come from the same row.
    """
    types = {field.name: field.type for table in rows.values() for field in table.schema}
    names = [*schema.names, *(name for name in types if name not in schema.names)]
    complete = []
    for own in rows.values():
        filled = {name: own[name] for name in own.column_names}
        lacking = [name for name in schema.names if name not in filled]
        if absent == "matched":
            filled |= _matched(schema, own, lacking, rows, draws)
        empty = {name: pa.nulls(len(own), types[name]) for name in lacking}
        complete.append(pa.table({name: (empty | filled)[name] for name in names}))
    return pa.concat_tables(complete)


def _matched(
    schema: Schema, own: pa.Table, lacking: list[str], rows: Rows, draws: np.random.Generator
) -> dict[str, pa.ChunkedArray]:
    """Return columns that some rows lack, from rows of the parties that have them."""
    wanted: dict[tuple[str, ...], list[str]] = {}
    for name in lacking:
        wanted.setdefault(tuple(party for party, table in rows.items() if name in table.column_names), []).append(name)
    found: dict[str, pa.ChunkedArray] = {}
    for parties, names in wanted.items():
        common = [name for name in own.column_names if all(name in rows[party].column_names for party in parties)]
        donors = pa.concat_tables([rows[party].select([*common, *names]) for party in parties])
        if len(donors):
            places = pa.array(_donors(_codes(schema, own, common), _codes(schema, donors, common), draws))
            found |= {name: donors[name].take(places) for name in names}
    return found


def _codes(schema: Schema, table: pa.Table, names: list[str]) -> NDArray[np.int64]:
    """Return the levels of the schema that rows have, a line for each row."""
    columns = [schema[name].encode(table[name].combine_chunks()).astype(np.int64) for name in names]
    return np.column_stack([*columns, np.zeros(len(table), dtype=np.int64)])


def _donors(own: NDArray[np.int64], donors: NDArray[np.int64], draws: np.random.Generator) -> NDArray[np.int64]:
    """Return for each row a random donor with the same levels, or any donor if none has them."""
    kinds = np.unique(np.concatenate([own, donors]), axis=0, return_inverse=True)[1].ravel()
    wanted, offered = kinds[: len(own)], kinds[len(own) :]
    order = np.argsort(offered, kind="stable")
    first, last = (np.searchsorted(offered[order], wanted, side=side) for side in ("left", "right"))
    first, last = np.where(first == last, 0, first), np.where(first == last, len(order), last)
    return order[draws.integers(first, last)]


def notes_of(schemas: Mapping[str, Schema], whole: Schema, absent: Absent) -> tuple[str, ...]:
    """Return which parties lack columns, and what is in their rows instead; nothing if none does."""
    lines = []
    for party, schema in schemas.items():
        lacking = [name for name in whole.names if name not in schema.names]
        if lacking:
            what = "missing in its rows" if absent == "missing" else "taken from matched rows of others"
            lines.append(f"{party} does not have {', '.join(lacking)}: {what}")
    return tuple(lines)
