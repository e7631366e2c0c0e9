"""The text of a draft: which values were read from rows, and how a person edits and confirms them.

Every value that was read from rows has a comment at the end of its line (`READ`). `confirm` removes the comments;
nothing else may turn a draft into a study. An edited value is marked too, because whoever edits it has seen the rows.
"""

import datetime
import hashlib
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from syndic.document import Document
from syndic.errors import InputError, printable
from syndic.privacy import default_delta
from syndic.study.document import Study

READ: Final = "# READ FROM ROWS: confirm from public knowledge before sharing"
DEFAULT_DELTA: Final = "# the default for these numbers of people"
LEFT_OUT: Final = "# left out: "
COLUMNS: Final = "schema.columns"
_LONG_NAME: Final = 500
_HEADING: Final = re.compile(r"\s*\[\[?\s*([\w.]+)\s*\]\]?\s*(#.*)?")
_PAIR: Final = re.compile(r"\s*([\w-]+)\s*=(.*)")


@final
@dataclass(frozen=True, kw_only=True)
class Unconfirmed:
    """A value of a draft that was read from rows: its line, the table or column it belongs to, key and TOML value."""

    line: int
    place: str
    key: str
    value: str


@final
class Section(Document):
    """A table of a draft: its heading `table`, such as schema.columns, its name, and its values as TOML.

    `read` are the keys whose values were read from rows, `notes` the comments before it, `first` and `end` its lines,
    and `key` a digest of these: what is confirmed is what was shown.
    """

    key: str
    table: str
    name: str
    values: dict[str, str]
    read: tuple[str, ...]
    notes: tuple[str, ...]
    first: int
    end: int


def unconfirmed(text: str) -> tuple[Unconfirmed, ...]:
    """Return the values of a study's text that are marked as read from rows."""
    found, place = [], ""
    for number, line in enumerate(text.split("\n") if READ in text else ()):
        heading, pair = _HEADING.fullmatch(line), _pair(line)
        if heading:
            place = heading[1].removesuffix("s") if line.lstrip().startswith("[[") else heading[1]
        elif pair and pair[0] == "name":
            name = str(plain(pair[1]))
            place = name if 0 < len(name) <= _LONG_NAME else place
        if line.rstrip().endswith(READ):
            key, value = pair or ("", "")
            found.append(Unconfirmed(line=number, place=place, key=key, value=value))
    return tuple(found)


def confirm(text: str, choose: Callable[[Unconfirmed], str], folder: Path | None = None) -> str:
    """Return the study without comments; `choose` confirms each value that was read from rows, or returns another.

    Lists of values may be files in `folder`, beside the study.

    Raises:
        InputError: if the result is not a valid study.
    """
    lines = text.split("\n")
    for one in unconfirmed(text):
        chosen = choose(one)
        kept = lines[one.line].rstrip().removesuffix(READ).rstrip()
        lines[one.line] = kept if chosen == one.value else f"{one.key} = {read_value(one.key, chosen)}"
    lines = [line for line in lines if not line.lstrip().startswith("#")]
    study = Study.loads("\n".join(lines), folder)
    delta = default_delta(study.people or 1)
    for place, line in enumerate(lines):
        if line.rstrip().endswith(DEFAULT_DELTA):
            lines[place] = f"delta = {float(delta):g}"
    confirmed = "\n".join(lines).strip("\n") + "\n"
    Study.loads(confirmed, folder)
    return confirmed


def sections(text: str) -> tuple[Section, ...]:
    """Return the tables of a draft, in their order."""
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if _HEADING.fullmatch(line)]
    return tuple(_section(lines, *one) for one in zip(starts, [*starts, len(lines)][1:], strict=True))


def with_values(text: str, section: Section, values: Mapping[str, str]) -> str:
    """Return the draft with other values of a section, as typed; an empty one removes the key. Changes are marked.

    Raises:
        InputError: if the result is not a valid study.
    """
    lines = text.split("\n")
    written = []
    for line in lines[section.first : section.end]:
        pair = _pair(line)
        typed = values.get(pair[0], pair[1]).strip() if pair else ""
        if pair is None or typed == pair[1]:
            written.append(line)
        elif typed:
            written.append(_marked(pair[0], typed))
    added = [key for key in values if key not in section.values and values[key].strip()]
    lines[section.first : section.end] = [*written, *(_marked(key, values[key]) for key in added)]
    return _checked("\n".join(lines))


def with_column(text: str, name: str, block: Sequence[str]) -> str:
    """Return the draft with other lines for a column, or with none: then the column is left out.

    Raises:
        InputError: if the result is not a valid study.
    """
    lines = text.split("\n")
    columns = [one for one in sections(text) if one.table == COLUMNS]
    before = next((one for one in columns if one.name == name), None)
    if before is not None:
        blank = before.end < len(lines) and not block and not lines[before.end].strip()
        lines[before.first - len(before.notes) : before.end + blank] = block
    elif columns and block:
        lines[columns[-1].end : columns[-1].end] = ["", *block]
    reason = f"{LEFT_OUT}{printable(name)}: "
    lines = [line for line in lines if not line.startswith(reason)]
    left = [] if block else [f"{reason}the owner decided so", ""]
    return _checked("\n".join(lines).rstrip("\n") + "\n" + "\n".join(left))


def with_parties(text: str, parties: Mapping[str, Mapping[str, Any]], coordinator: str) -> str:
    """Return a study's text with these values of its parties, by name, and this coordinator; all else stays.

    Parties that the text does not have are added; None leaves a value as it is.

    Raises:
        InputError: if parties or coordinator are not written as tables of their own.
    """
    lines, written = text.split("\n"), set()
    for one in reversed(sections(text)):
        if one.table == "coordinator":
            del lines[one.first : one.end]
        elif one.table == "parties":
            written.add(one.name)
            facts = _facts(parties.get(one.name, {}))
            block = [line for line in lines[one.first : one.end] if (_pair(line) or ("", ""))[0] not in facts]
            lines[one.first : one.end] = [*block, *facts.values()]
    for name, values in parties.items():
        if name not in written:
            lines += ["[[parties]]", f"name = {toml_of(name)}", *_facts(values).values(), ""]
    made = "\n".join([*lines, "[coordinator]", f"identity = {toml_of(coordinator)}", ""])
    before = _others(text)
    try:
        after = _others(made)
    except InputError:
        # half of a value that stood on several lines is left
        after = {}
    if after != before:
        raise InputError(
            "the study's parties and coordinator must be tables, [[parties]], and each of their values must stand on "
            'one line: columns = ["age", "sex"]'
        )
    return made


def _facts(values: Mapping[str, Any]) -> dict[str, str]:
    return {key: f"{key} = {toml_of(value)}" for key, value in values.items() if value is not None}


def _others(text: str) -> dict[str, Any]:
    """Return everything of a study's text but its parties and coordinator."""
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the study cannot be read or filled: {error}") from None
    return {key: value for key, value in content.items() if key not in {"parties", "coordinator"}}


def read_value(key: str, typed: str) -> str:
    """Return a typed value as TOML; a word without quotes is text.

    Raises:
        InputError: if it is no value.
    """
    for value in (typed.strip(), toml_of(typed.strip())):
        try:
            if "\n" not in value and list(tomllib.loads(f"{key} = {value}")) == [key]:
                return value
        except (ValueError, RecursionError):
            continue
    raise InputError(f"{key}: {typed[:40]!r} is not a value")


def plain(value: str) -> Any:
    """Return what a TOML value stands for; a text that is none stands for itself."""
    try:
        return tomllib.loads(f"x = {value}")["x"]
    except (ValueError, RecursionError):
        return value


def toml_of(value: Any) -> str:
    """Return a text, number, date or list as TOML on one line."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in escaped) + '"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_of, value))}]"
    return value.isoformat() if isinstance(value, datetime.date) else repr(value)


def _section(lines: list[str], first: int, after: int) -> Section:
    pairs = {number: pair for number in range(first + 1, after) if (pair := _pair(lines[number]))}
    notes = 0
    while notes < first and lines[first - notes - 1].startswith("#"):
        notes += 1
    heading = _HEADING.fullmatch(lines[first])
    values, end = dict(pairs.values()), max(pairs, default=first) + 1
    return Section(
        key=hashlib.sha256("\n".join(lines[first:end]).encode()).hexdigest()[:16],
        table=heading[1] if heading else "",
        name=str(plain(values.pop("name", ""))),
        values=values,
        read=tuple(key for number, (key, _) in pairs.items() if lines[number].rstrip().endswith(READ)),
        notes=tuple(line.lstrip("# ") for line in lines[first - notes : first]),
        first=first,
        end=end,
    )


def _pair(line: str) -> tuple[str, str] | None:
    """Return the key and the value of a line, without the mark."""
    pair = _PAIR.fullmatch(line.rstrip().removesuffix(READ))
    return (pair[1], pair[2].strip()) if pair else None


def _marked(key: str, typed: str) -> str:
    return f"{key} = {read_value(key, typed)}  {READ}"


def _checked(text: str) -> str:
    Study.loads(text)
    return text
