"""Draft a study from the owners' files. A draft is private until a person confirms it from public knowledge.

Every value that was read from rows is marked (`syndic.study.draft_text`). Bounds that few rows have are widened to
round numbers, ids and free text are left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, final

from syndic.data import Schema
from syndic.data.dictionary import Declared, read_declared
from syndic.data.lists import with_lists
from syndic.data.profile import MOST_LISTED, PUBLIC_LIST, ColumnProfile, Kind, profile_column
from syndic.document import from_builtins
from syndic.errors import InputError, printable
from syndic.privacy import default_delta
from syndic.study.document import Study
from syndic.study.draft_rows import Layout, PartyRows, is_complete, lay_out, read_column, read_parties
from syndic.study.draft_text import DEFAULT_DELTA, LEFT_OUT, READ, Unconfirmed, confirm, toml_of, unconfirmed

_HEAD: Final = """\
# PRIVATE DRAFT, read from rows: do not share this file.
# Confirm every marked value from public knowledge, or replace it: syndic init --confirm DRAFT --out study.toml
# Which columns are in the draft, and the method, follow from the files too: choose them yourself.
"""
_MANY_MISSING: Final = 0.2


@final
@dataclass(frozen=True, kw_only=True)
class Draft:
    """A study drafted from rows. Private: `toml` and everything in it stays with the owner."""

    text: str = field(repr=False)
    columns: tuple[ColumnProfile, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    folder: Path | None = None

    def toml(self) -> str:
        """Return the study file, with a comment at every value that was read from rows."""
        return self.text

    @property
    def unconfirmed(self) -> tuple[Unconfirmed, ...]:
        """The values that were read from rows and must be confirmed."""
        return unconfirmed(self.text)

    def confirm(self, choose: Callable[[Unconfirmed], str]) -> Study:
        """Return the study; `choose` confirms each value that was read from rows, or returns another as TOML."""
        return Study.loads(confirm(self.text, choose, self.folder), self.folder)

    @property
    def left_out(self) -> Mapping[str, str]:
        """The columns that the draft leaves out, and why."""
        return {column.name: column.reason for column in self.columns if column.kind is None}


def draft(
    sources: Mapping[str, Any],
    *,
    target: str | None = None,
    declared: Sequence[Declared] | str | Path = (),
    people: Mapping[str, int] | None = None,
    name: str = "",
    folder: Path | None = None,
) -> Draft:
    """Draft a study from each party's rows: paths, tables or anything else that is a source. Reads rows; private.

    `declared` are columns from a public dictionary, or the path of one, and `people` public numbers of people: these
    need no confirmation. Where the dictionary names files with lists of values, the draft names them too if it will be
    beside them, in `folder`; otherwise it has their values.
    """
    declared = read_declared(Path(declared)) if isinstance(declared, str | Path) else declared
    people = dict(people or {})
    if not sources and not people:
        raise InputError("name at least one party: PARTY=FILE, or its public number of people")
    parties = read_parties(sources)
    known = {column.name: replace(column, file=column.file if folder else "") for column in declared}
    layout = lay_out(parties, known)
    columns = tuple(_checked(column, known.get(column.name), folder) for column in layout.columns)
    used = [column for column in columns if column.kind is not None]
    if not used:
        reasons = "; ".join(f"{column.name!r}: {column.reason}" for column in columns)
        raise InputError(f"no column can be used{f' ({reasons})' if reasons else ''}")
    if target is not None and target not in {column.name for column in used}:
        raise InputError(f"target {target!r} must be one of the drafted columns: {', '.join(c.name for c in used)}")
    lines = [_HEAD, f"name = {toml_of(name or ' and '.join(sources or people))}", ""]
    lines += _unit_lines(layout, target, people, parties)
    lines += _party_lines(layout, people, parties, used)
    for column in used:
        lines += _column_lines(column, known.get(column.name))
    lines += [f"{LEFT_OUT}{printable(column.name)}: {column.reason}" for column in columns if column.kind is None]
    text = "\n".join(lines).rstrip("\n") + "\n"
    Study.loads(text, folder)
    cut = [one.name for one in used if one.unlisted and len(one.values) >= MOST_LISTED]
    notes = (f"{name!r} has more than {MOST_LISTED} values: {PUBLIC_LIST}" for name in cut)
    return Draft(text=text, columns=columns, notes=(*layout.notes, *notes), folder=folder)


def draft_column(source: Any, name: str, kind: Kind) -> list[str]:
    """Return the lines of one column of a chosen kind, every value marked. Reads rows; private."""
    column = _checked(profile_column(name, read_column(source, name), kind), None, None)
    if column.kind is None:
        raise InputError(f"{name!r} cannot be {kind}: {column.reason}")
    return _column_lines(column, None)[:-1]


def _checked(column: ColumnProfile, known: Declared | None, folder: Path | None) -> ColumnProfile:
    """Return the column, or left out if a study cannot have it. An error in a dictionary is an error."""
    if column.kind is None:
        return column
    try:
        content = {"name": column.name, "kind": column.kind, **{key: value for key, value, _ in _facts(column, known)}}
        from_builtins(with_lists({"columns": [content]}, folder), Schema, where="draft")
    except InputError:
        if known is not None and is_complete(known):
            raise
        if known is not None:
            # the text would quote bounds that were read from rows
            raise InputError(f"{column.name!r}: the dictionary does not fit: give kind, bounds, values") from None
        return ColumnProfile(name=column.name, kind=None, reason="its values cannot be described by bounds or a list")
    return column


def _facts(column: ColumnProfile, known: Declared | None) -> list[tuple[str, Any, bool]]:
    """Return keys and values of a column, and whether each was read from rows."""
    public = known or Declared(name=column.name)
    facts: list[tuple[str, Any, bool]] = []
    if column.kind in {"categorical", "ordinal"}:
        facts.append(("values", public.file or list(column.values), not public.values))
        if column.absent and not column.unlisted and not public.values:
            facts.append(("outside", "missing", True))
    elif column.kind != "boolean":
        facts += [
            ("lower", column.lower, public.lower is None),
            ("upper", column.upper, public.upper is None),
        ]
        # they follow from the bounds, and the scale from quantiles of the rows
        read = None in (public.lower, public.upper) or bool(column.quantiles)
        if column.scale != "linear":
            facts.append(("scale", column.scale, public.scale is None and read))
        if column.bins is not None:
            facts.append(("bins", column.bins, public.bins is None and read))
    return facts


def _column_lines(column: ColumnProfile, known: Declared | None) -> list[str]:
    lines = []
    if column.rows and column.missing >= _MANY_MISSING * column.rows:
        lines.append(f"# {column.missing / column.rows:.0%} of its values are missing; they get a level of their own")
    if column.remark:
        lines.append(f"# {column.remark}")
    if column.unlisted:
        lines.append(f'# {column.unlisted} values that few rows have are not listed; they become "other"')
    lines += ["[[schema.columns]]", f"name = {toml_of(column.name)}"]
    lines.append(_line("kind", column.kind, read=known is None or known.kind is None))
    lines += [_line(key, value, read=read) for key, value, read in _facts(column, known)]
    return [*lines, ""]


def _unit_lines(
    layout: Layout, target: str | None, people: Mapping[str, int], parties: Sequence[PartyRows]
) -> list[str]:
    vertical = bool(layout.holder)
    lines = [f"# {printable(note)}" for note in layout.notes]
    lines += ["[unit]", f'neighbours = "{"replace" if vertical else "add_remove"}"']
    if layout.person is not None:
        lines += [_line("rows", layout.rows, read=True), _line("person", layout.person, read=True)]
    bounds = [people.get(party.name, layout.people[party.name]) for party in parties] or list(people.values())
    delta = default_delta(max(bounds) if vertical else sum(bounds))
    lines += ["", "[budget]", "epsilon = 1.0", f"delta = {float(delta):g}  {DEFAULT_DELTA}"]
    lines += ["", "[protocol]", 'method = "synthesis"']
    return [*lines, *([] if target is None else [f"target = {toml_of(target)}"]), ""]


def _party_lines(
    layout: Layout, people: Mapping[str, int], parties: Sequence[PartyRows], used: Sequence[ColumnProfile]
) -> list[str]:
    names = [party.name for party in parties] or list(people)
    unknown = [name for name in people if name not in names]
    if unknown:
        raise InputError(f"people: no file is given for the party {unknown[0]!r}")
    lines = []
    for name in names:
        lines += ["[[parties]]", f"name = {toml_of(name)}"]
        lines.append(_line("people", people.get(name, layout.people.get(name)), read=name not in people))
        if layout.holder:
            lines.append(f"columns = {toml_of([one.name for one in used if layout.holder[one.name] == name])}")
        lines.append("")
    return lines


def _line(key: str, value: Any, *, read: bool) -> str:
    return f"{key} = {toml_of(value)}" + (f"  {READ}" if read else "")
