"""An owner's draft of a study: made from rows, edited column by column, confirmed and written as a study file.

Everything here was read from rows and is for the owner only. The draft is `study.draft.toml` in the party folder, with
the text that `syndic init` writes. Only what the owner confirms from public knowledge becomes a study file.
"""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, final

from msgspec import field

from syndic.console.views import UnknownError
from syndic.data import Source, open_source
from syndic.data.profile import Kind
from syndic.document import Document
from syndic.errors import InputError, MissingExtraError, RefusedError, printable
from syndic.privacy.audit import AuditLog
from syndic.report.figure import Bars, Series
from syndic.study import PartyFolder, Study
from syndic.study.draft import draft, draft_column
from syndic.study.draft_text import (
    COLUMNS,
    LEFT_OUT,
    Section,
    confirm,
    plain,
    sections,
    toml_of,
    unconfirmed,
    with_column,
    with_values,
)
from syndic.study.fit import ColumnFit, Fit, fit
from syndic.study.fit_people import percent
from syndic.study.study_folder import write_new, write_whole

DRAFT: Final = "study.draft.toml"
_ROWS: Final = (".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".feather", ".ipc")
_DICTIONARIES: Final = (".csv", ".json")
_NUMBERS: Final = ("lower", "upper", "bins", "scale", "edges")
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "integer": _NUMBERS,
    "real": _NUMBERS,
    "date": ("lower", "upper", "bins", "edges"),
    "categorical": ("values",),
    "ordinal": ("values",),
}
_FEW_BARS: Final = 12


class Make(Document):
    """What to draft from: a file of the party folder, or the party's source; a public dictionary; the target column."""

    source: str = ""
    dictionary: str = ""
    target: str = ""


class Edit(Document):
    """Other values of a section of the draft, as typed (empty ones are removed), or another kind of a column."""

    name: str
    table: str = COLUMNS
    values: dict[str, str] = field(default_factory=dict)
    kind: Kind | Literal["left out"] | None = None
    source: str = ""


class Confirm(Document):
    """The keys of the sections whose values the owner knows from public sources, and the study file to write."""

    public: tuple[str, ...] = ()
    file: str = "study.toml"


class Choices(Document):
    """The files of the party folder that may have rows, or a public description of columns."""

    sources: tuple[str, ...]
    dictionaries: tuple[str, ...]


class DraftView(Document):
    """A draft and how the rows fit it. Private. `unread` says why the rows were not compared, if so."""

    text: str
    source: str
    sections: tuple[Section, ...]
    left_out: dict[str, str]
    fit: Fit | None
    unread: str = ""


class Written(Document):
    """A study file that was written: every value in it was confirmed."""

    file: str
    text: str


@final
@dataclass(frozen=True, kw_only=True)
class Card:
    """A section as a form: its fields, and for a column its kind, how the rows fit it, and a histogram. Private."""

    section: Section
    kind: str
    fields: Mapping[str, str]
    fit: ColumnFit | None
    figure: str

    @property
    def shares(self) -> list[str]:
        """The shares of values that the draft does not take as they are; that of missing ones always."""
        if self.fit is None:
            return []
        one = self.fit
        parts = {
            "missing": one.missing,
            "not in the list": one.unknown,
            "clipped": one.clipped,
            "outside the bounds, so missing": one.outside,
        }
        return [f"{percent(rows, one.values)} {words}" for words, rows in parts.items() if rows or words == "missing"]


def choices(folder: Path) -> Choices:
    """Return the files that a draft can be made from."""
    return Choices(sources=tuple(_files(folder, _ROWS)), dictionaries=tuple(_files(folder, _DICTIONARIES)))


def make(folder: Path, asked: Make) -> DraftView:
    """Draft a study from the party's rows, as `syndic init` does."""
    party = PartyFolder(folder=folder).owner().name
    known = _found(folder, asked.dictionary, _DICTIONARIES) if asked.dictionary else ()
    made = draft({party: _source(folder, asked.source)}, declared=known, target=asked.target or None)
    write_new(folder / DRAFT, made.toml())
    return view(folder, asked.source)


def view(folder: Path, source: str = "") -> DraftView:
    """Return the draft, and how the rows fit it."""
    text = _text(folder)
    rows = _source(folder, source)
    found, unread, left_out = None, "", dict[str, str]()
    try:
        names, study = rows.names(), Study.loads(text)
        used = {*study.schema.names, *study.schema.inputs}
        for name in [name for name in dict.fromkeys(names) if name not in used]:
            start = f"{LEFT_OUT}{printable(name)}: "
            why = (line.removeprefix(start) for line in text.split("\n") if line.startswith(start))
            left_out[name] = next(why, "")
        common = [column.name for column in study.schema.columns if set(column.inputs) <= set(names)]
        if common:
            found = fit(study.schema.select(common), rows, unit=study.unit if study.unit.person in names else None)
        else:
            unread = f"{rows.describe()} has no column of the draft"
    except (InputError, MissingExtraError) as error:
        unread = str(error)
    return DraftView(
        text=text, source=rows.describe(), sections=sections(text), left_out=left_out, fit=found, unread=unread
    )


def edit(folder: Path, asked: Edit) -> DraftView:
    """Change values of the draft, or the kind of a column. What changes is marked and must be confirmed."""
    text = _text(folder)
    section = _section(text, asked.table, asked.name)
    kind = None if section and _kind(section) == asked.kind else asked.kind
    if kind is not None and kind != "left out" and asked.table == COLUMNS:
        text = with_column(text, asked.name, draft_column(_source(folder, asked.source), asked.name, kind))
    elif section is None:
        raise UnknownError(f"the draft has no {asked.name[:40]!r}: reload the page")
    elif kind == "left out" and asked.table == COLUMNS:
        text = with_column(text, asked.name, ())
    else:
        text = with_values(text, section, asked.values)
    write_whole(folder / DRAFT, text.encode())
    return view(folder, asked.source)


def confirm_draft(folder: Path, asked: Confirm) -> Written:
    """Write the study file, if the owner confirmed every value that was read from rows, as it was shown."""
    text = _text(folder)
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,60}\.toml", asked.file):
        raise InputError("the study file needs a name of letters, digits, _ and - that ends in .toml")
    public = [one for one in sections(text) if one.key in asked.public]
    waiting = [one for one in unconfirmed(text) if not any(each.first <= one.line < each.end for each in public)]
    if waiting:
        places = ", ".join(dict.fromkeys(one.place for one in waiting))
        raise RefusedError(f"nothing was written: not confirmed from public knowledge: {places}")
    confirmed = confirm(text, lambda one: one.value)
    with AuditLog(folder).attempt(f"confirm {asked.file} from public knowledge"):
        write_new(folder / asked.file, confirmed)
    return Written(file=asked.file, text=confirmed)


def cards(draft: DraftView) -> tuple[Card, ...]:
    """Return the columns, and the other sections that have values from rows."""
    fits = {} if draft.fit is None else {one.name: one for one in draft.fit.columns}
    made = []
    for one in draft.sections:
        fitted = fits.get(one.name) if one.table == COLUMNS else None
        figure = "" if fitted is None else _histogram(fitted)
        if one.table == COLUMNS or one.read:
            made.append(Card(section=one, kind=_kind(one), fields=fields_of(one), fit=fitted, figure=figure))
    return tuple(made)


def fields_of(section: Section) -> dict[str, str]:
    """Return what a form shows for the values of a section: texts without quotes, lists as lines or with commas."""
    keys = _FIELDS.get(_kind(section), ()) if section.table == COLUMNS else section.read
    return {key: _shown(key, section.values.get(key, "")) for key in keys}


def typed_values(folder: Path, table: str, name: str, typed: Mapping[str, str]) -> dict[str, str]:
    """Return the typed values of a section that differ from those of the draft, as TOML. Edges also give the bounds."""
    section = _section(_text(folder), table, name)
    if section is None:
        return {}
    shown, values = fields_of(section), {}
    for key in [key for key in shown if key in typed]:
        text = typed[key].replace("\r\n", "\n").strip()
        if text != shown[key].strip():
            values[key] = _as_toml(key, text, quoted=section.values.get(key, "").startswith('"'))
    return {**values, **_bounds(section, values["edges"])} if values.get("edges") else values


def _section(text: str, table: str, name: str) -> Section | None:
    return next((one for one in sections(text) if (one.table, one.name) == (table, name)), None)


def _histogram(column: ColumnFit) -> str:
    """Return the rows of each level as SVG. Private."""
    return Bars(
        title=f"Rows of {column.name} by level, private",
        labels=tuple(one.label for one in column.levels),
        series=(Series("rows", tuple(float(one.rows) for one in column.levels)),),
        lying="edges" not in _FIELDS.get(column.kind, ()) and len(column.levels) <= _FEW_BARS,
    ).inline()


def _text(folder: Path) -> str:
    path = folder / DRAFT
    if not path.is_file():
        raise UnknownError(f"there is no draft: {DRAFT} is not in the party folder")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{DRAFT}: cannot be read: it is not UTF-8") from None


def _files(folder: Path, endings: tuple[str, ...]) -> dict[str, Path]:
    """Return the files of the folder itself by name; links are left out, because they may lead elsewhere."""
    found = sorted(path for path in folder.iterdir() if path.name.lower().endswith(endings))
    return {path.name: path for path in found if path.is_file() and not path.is_symlink()}


def _found(folder: Path, name: str, endings: tuple[str, ...]) -> Path:
    """Return a file by its name; names are looked up in the listing and never joined to a path."""
    known = _files(folder, endings)
    if name not in known:
        raise UnknownError(f"the party folder has no file {name[:80]!r} of the types {', '.join(endings)}")
    return known[name]


def _source(folder: Path, name: str) -> Source:
    return open_source(_found(folder, name, _ROWS) if name else PartyFolder(folder=folder).owner().source)


def _kind(section: Section) -> str:
    return str(plain(section.values.get("kind", "")))


def _shown(key: str, value: str) -> str:
    found = plain(value)
    if key == "scale" and not value:
        return "linear"
    if isinstance(found, list):
        return ("\n" if key == "values" else ", ").join(map(str, found))
    return found if isinstance(found, str) else value


def _as_toml(key: str, text: str, *, quoted: bool) -> str:
    if key == "values":
        return toml_of([line.strip() for line in text.split("\n") if line.strip()])
    if key == "edges":
        return f"[{', '.join(text.replace(',', ' ').replace(';', ' ').split())}]" if text else ""
    if key == "scale" and text == "linear":
        return ""
    return toml_of(text) if quoted and text else text


def _bounds(section: Section, edges: str) -> dict[str, str]:
    """Return the bounds that follow from edges, which take the place of `bins` and `scale`."""
    found = plain(edges)
    kind = _kind(section)
    kinds = (datetime.date,) if kind == "date" else (int, float)
    if not isinstance(found, list) or not found or any(type(edge) not in kinds for edge in found):
        raise InputError(f"{section.name}: edges are numbers or dates with commas between them")
    if not found[0] < found[-1]:
        raise InputError(f"{section.name}: edges must increase")
    last = found[-1]
    if kind == "integer":
        last -= 1
    elif isinstance(last, datetime.date):
        last -= datetime.timedelta(days=1)
    return {"lower": toml_of(found[0]), "upper": toml_of(last), "bins": "", "scale": ""}
