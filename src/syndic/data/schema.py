"""The public description of a table: its columns, written by people, never derived from private rows."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Self, final

from msgspec.structs import replace

from syndic.data.column import Boolean, Categorical, Ordinal
from syndic.data.derive import DerivedSource, expression
from syndic.data.domain import Domain
from syndic.data.lists import with_lists
from syndic.data.ranged import Date, Integer, Real
from syndic.data.source import Source
from syndic.document import Document, from_builtins, from_file, from_json
from syndic.errors import InputError

Column = Categorical | Ordinal | Boolean | Integer | Real | Date


@final
class Schema(Document, frozen=True, kw_only=True):
    """Columns in order, with distinct names."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError("columns must not be empty")
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated:
            raise ValueError(f"column names must be distinct: {repeated} appear more than once")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a `.toml` or `.json` file, and the lists of values that it names."""
        return from_file(path, cls, prepare=partial(with_lists, folder=Path(path).parent))

    @classmethod
    def from_domain(cls, sizes: Mapping[str, int] | str | Path) -> Self:
        """Return columns of integer codes 0 .. size-1 from `{name: size}` or a JSON file of it.

        Such columns have no level for missing values; missing values become 0.
        """
        if isinstance(sizes, str | Path):
            path = Path(sizes)
            try:
                sizes = from_json(path.read_bytes(), dict[str, int], where=path.name)
            except OSError as error:
                raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        columns = [
            {"kind": "integer", "name": name, "lower": 0, "upper": size - 1, "bins": size, "missing": {"value": 0}}
            for name, size in sizes.items()
        ]
        return from_builtins({"columns": columns}, cls, where="domain")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the columns that a source must have: those of the schema, or what they are derived from."""
        return tuple(dict.fromkeys(name for column in self.columns for name in column.inputs))

    def derived(self, source: Source) -> Source:
        """Return the source with the derived columns."""
        found = {column.name: expression(column.derive) for column in self.columns if column.derive is not None}
        return DerivedSource(source, found) if found else source

    def as_released(self) -> "Schema":
        """Return the schema of released rows: derived columns are there and are not computed."""
        return Schema(columns=tuple(replace(column, derive=None) for column in self.columns))

    @property
    def domain(self) -> Domain:
        """The columns' names and sizes."""
        return Domain(self.names, tuple(column.size for column in self.columns))

    def __getitem__(self, name: str) -> Column:
        """Return one column."""
        return self.select([name]).columns[0]

    def select(self, names: Iterable[str]) -> "Schema":
        """Return the schema of some columns, in the order given."""
        known = {column.name: column for column in self.columns}
        names = tuple(names)
        self.domain.axes([name for name in names if name not in known])  # raises for unknown names
        return Schema(columns=tuple(known[name] for name in names))
