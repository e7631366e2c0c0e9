"""Write a schema and compare it with the owner's own rows.

Everything shown here was read from rows and is for the owner only; it is sent to nobody and stored nowhere. A draft
made from the rows is not public knowledge: the bounds and values of a schema go into study files, which everybody
reads. Saving therefore needs the owner's confirmation that the schema was known without looking at rows.
"""

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from syndic.data import ArrowSource, Schema, Source, open_source
from syndic.document import Document, from_toml
from syndic.errors import InputError, RefusedError
from syndic.study.fit import ColumnFit, fit
from syndic.study.party_folder import PartyFolder
from syndic.study.study_folder import write_whole

_FILE: Final = "schema.toml"
_MOST_ROWS: Final = 200_000
_PREVIEW_ROWS: Final = 8
_MOST_LISTED: Final = 12


class SchemaCheck(Document):
    """A schema compared with the owner's source. Private: it stays with the owner and is stored nowhere."""

    source: str
    names: tuple[str, ...]
    problem: str
    columns: tuple[ColumnFit, ...]
    preview: tuple[tuple[str, ...], ...]
    rows_read: int
    draft: str


class SchemaText(Document):
    """The schema that the owner wrote and declared public; empty if there is none."""

    text: str


class Write(Document):
    """The text of a schema: `[[columns]]` as in a study file."""

    text: str


class Save(Document):
    """Save a schema; `public` confirms that it was known without looking at rows."""

    text: str
    public: bool


def saved_schema(folder: Path) -> SchemaText:
    """Return the schema that the owner saved."""
    path = folder / _FILE
    return SchemaText(text=path.read_text(encoding="utf-8") if path.is_file() else "")


def save_schema(folder: Path, asked: Save) -> SchemaText:
    """Save a schema in the party folder, if the owner confirms that all of it is public knowledge."""
    if not asked.public:
        raise RefusedError(
            "confirm that names, bounds and values are public knowledge and were not taken from the rows"
        )
    from_toml(asked.text, Schema, where="schema")
    write_whole(folder / _FILE, asked.text.encode())
    return saved_schema(folder)


def check_schema(folder: Path, asked: Write) -> SchemaCheck:
    """Compare a schema with the rows of the party folder. Private, for the owner's screen."""
    source = open_source(PartyFolder(folder=folder).owner().source)
    names = source.names()
    problem, schema = "", None
    if asked.text.strip():
        try:
            schema = from_toml(asked.text, Schema, where="schema")
        except InputError as error:
            problem = str(error)
    if schema is not None:
        absent = [name for name in schema.names if name not in names]
        problem = f"not in the source: {', '.join(absent)}" if absent else ""
        schema = None if set(absent) == set(schema.names) else schema.select(set(schema.names) - set(absent))
    table = _first_rows(source, names)
    return SchemaCheck(
        source=source.describe(),
        names=names,
        problem=problem,
        columns=() if schema is None else fit(schema, ArrowSource(table)).columns,
        preview=tuple(
            tuple(_shown(value) for value in row.values()) for row in table.slice(0, _PREVIEW_ROWS).to_pylist()
        ),
        rows_read=len(table),
        draft=_draft(table),
    )


def _first_rows(source: Source, names: tuple[str, ...]) -> pa.Table:
    batches, rows = [], 0
    for batch in source.batches(names):
        batches.append(batch)
        rows += len(batch)
        if rows >= _MOST_ROWS:
            break
    if not batches:
        return pa.table({name: pa.array([], pa.null()) for name in names})
    # batches of one file may have the same column as text and as a dictionary
    return pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive")


def _draft(table: pa.Table) -> str:
    """Return a schema made from the rows: a private draft, not for publishing."""
    return "\n".join(_drafted(name, table[name].combine_chunks()) for name in table.column_names)


def _drafted(name: str, values: Any) -> str:
    head = f"[[columns]]\nname = {_quoted(name)}\n"
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_boolean(kind):
        return f'{head}kind = "boolean"\n'
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        found = pc.min_max(values).as_py()
        word = "integer" if pa.types.is_integer(kind) else "real"
        if found["min"] is None or found["min"] == found["max"]:
            return f"# {_comment(name)}: too few different values to draft bounds\n"
        return f'{head}kind = "{word}"\nlower = {found["min"]}\nupper = {found["max"]}\nbins = 8\n'
    if pa.types.is_nested(kind):
        return f"# {_comment(name)}: lists and records cannot be a column of a schema\n"
    different = [value for value in pc.unique(values).to_pylist()[: _MOST_LISTED + 1] if value is not None]
    if not different or len(different) > _MOST_LISTED:
        return f"# {_comment(name)}: more than {_MOST_LISTED} different values, or none: an id or free text?\n"
    listed = ", ".join(_quoted(str(value)) for value in sorted(map(str, different)))
    return f'{head}kind = "categorical"\nvalues = [{listed}]\n'


def _quoted(text: str) -> str:
    """Return a text as a TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    safe = (letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in escaped)
    return f'"{"".join(safe)}"'


def _comment(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _shown(value: Any) -> str:
    return "" if value is None else str(value)[:120]
