"""Public descriptions of tables, the rows of a party coded by them, and exact counts of those rows."""

from syndic.data.column import Boolean as Boolean
from syndic.data.column import Categorical as Categorical
from syndic.data.column import Instead as Instead
from syndic.data.column import Ordinal as Ordinal
from syndic.data.domain import Domain as Domain
from syndic.data.factor import Factor as Factor
from syndic.data.factor import SparseCounts as SparseCounts
from syndic.data.ranged import Date as Date
from syndic.data.ranged import Integer as Integer
from syndic.data.ranged import Real as Real
from syndic.data.released import ReleasedTable as ReleasedTable
from syndic.data.released import decode_codes as decode_codes
from syndic.data.released import decode_rows as decode_rows
from syndic.data.schema import Column as Column
from syndic.data.schema import Schema as Schema
from syndic.data.source import ArrowSource as ArrowSource
from syndic.data.source import Source as Source
from syndic.data.source import SourceSpec as SourceSpec
from syndic.data.source import open_source as open_source
from syndic.data.table import Coded as Coded
from syndic.data.table import Table as Table
