"""Public descriptions of tables, the rows of a party coded by them, and exact counts of those rows."""

from syndic.data.column import Boolean, Categorical, Codes, Instead, Ordinal
from syndic.data.domain import Domain
from syndic.data.factor import Factor
from syndic.data.ranged import Date, Integer, Real
from syndic.data.released import ReleasedTable, decode_codes, decode_rows
from syndic.data.schema import Column, Schema
from syndic.data.source import ArrowSource, Source, SourceSpec, open_source
from syndic.data.sparse import SparseCounts
from syndic.data.table import Coded, Table

__all__ = [
    "ArrowSource",
    "Boolean",
    "Categorical",
    "Coded",
    "Codes",
    "Column",
    "Date",
    "Domain",
    "Factor",
    "Instead",
    "Integer",
    "Ordinal",
    "Real",
    "ReleasedTable",
    "Schema",
    "Source",
    "SourceSpec",
    "SparseCounts",
    "Table",
    "decode_codes",
    "decode_rows",
    "open_source",
]
