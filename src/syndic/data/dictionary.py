"""Read what is publicly known about columns: a data dictionary in CSV, SDV's metadata, or mbi's domain."""

import csv
import datetime
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast, final, get_args

from syndic.data.bins import Scale
from syndic.data.lists import read_values
from syndic.data.profile import Kind
from syndic.errors import InputError

_KEYS: Final = ("name", "kind", "lower", "upper", "values", "bins", "scale")
_LEFT_OUT: Final = frozenset({"id", "text", "drop", "unknown"})
_NUMBERS: Final[Mapping[str, Kind]] = {"int": "integer", "uint": "integer", "float": "real"}
Reader = Callable[[str], int | float | datetime.date]
_BOUNDS: tuple[Reader, ...] = (int, float, datetime.date.fromisoformat)
_SDV: Final[Mapping[str, Kind]] = {"categorical": "categorical", "boolean": "boolean", "datetime": "date"}


@final
@dataclass(frozen=True, kw_only=True)
class Declared:
    """What is publicly known about one column; None and empty where nothing is said. `file` has the values."""

    name: str
    kind: Kind | None = None
    lower: int | float | datetime.date | None = None
    upper: int | float | datetime.date | None = None
    values: tuple[str, ...] = ()
    file: str = ""
    bins: int | None = None
    scale: Scale | None = None
    left_out: str = ""


def read_dictionary(path: Path) -> tuple[Declared, ...]:
    """Read a CSV data dictionary with the columns name, kind, lower, upper, values and bins.

    Values have ";" between them, or are in a CSV file beside the dictionary, which is named instead.
    """
    try:
        lines = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines(), restkey="", strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path.name}: cannot be read as a CSV data dictionary in UTF-8") from error
    unknown = sorted({str(key) for line in lines for key in line} - set(_KEYS))
    if unknown or not lines or "name" not in lines[0]:
        wrong = f"; unknown: {', '.join(repr(key) for key in unknown)}" if unknown else ""
        raise InputError(
            f"{path.name}: a data dictionary has a line for each column and, of these headings, at least name: "
            f"{', '.join(_KEYS)}{wrong}"
        )
    columns = [_of_line(line, f"{path.name}, line {place}", path.parent) for place, line in enumerate(lines, start=2)]
    return _distinct(columns, path.name)


def read_metadata(path: Path) -> tuple[Declared, ...]:
    """Read SDV's metadata of one table, or mbi's domain, from a JSON file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path.name}: cannot be read as JSON in UTF-8") from error
    return _distinct(_of_json(content, path.name), path.name)


def read_declared(path: Path) -> tuple[Declared, ...]:
    """Read a CSV data dictionary, or a JSON file of SDV or mbi."""
    return read_metadata(path) if path.suffix == ".json" else read_dictionary(path)


def _of_line(line: Mapping[str, str | None], where: str, folder: Path) -> Declared:
    cells = {key: (line.get(key) or "").strip() for key in _KEYS}
    kind, name = cells["kind"].lower(), cells["name"]
    if not name:
        raise InputError(f"{where}: name must not be empty")
    if kind in _LEFT_OUT:
        return Declared(name=name, left_out="the data dictionary says so")
    if kind and kind not in get_args(Kind):
        allowed = ", ".join((*get_args(Kind), *sorted(_LEFT_OUT)))
        raise InputError(f"{where}: unknown kind {kind!r}; expected one of {allowed}")
    if cells["scale"] and cells["scale"] not in get_args(Scale):
        raise InputError(f"{where}: unknown scale {cells['scale']!r}; expected one of {', '.join(get_args(Scale))}")
    file = cells["values"] if cells["values"].endswith(".csv") else ""
    listed = read_values(folder, file, f"{where}: values") if file else cells["values"].split(";")
    return Declared(
        name=name,
        kind=cast("Kind", kind) if kind else None,
        lower=_bound(cells["lower"], kind, f"{where}: lower"),
        upper=_bound(cells["upper"], kind, f"{where}: upper"),
        values=tuple(value.strip() for value in listed if value.strip()),
        file=file,
        bins=cast("int | None", _bound(cells["bins"], "integer", f"{where}: bins")),
        scale=cast("Scale", cells["scale"]) if cells["scale"] else None,
    )


def _bound(text: str, kind: str, where: str) -> int | float | datetime.date | None:
    if not text:
        return None
    readers: dict[str, tuple[Reader, ...]] = {"date": (datetime.date.fromisoformat,), "integer": (int,)}
    for read in readers.get(kind, _BOUNDS):
        try:
            return read(text)
        except ValueError:
            continue
    expected = {"date": "a date such as 2024-12-31", "integer": "a whole number"}.get(kind, "a number")
    raise InputError(f"{where}: expected {expected}, found {text[:40]!r}")


def _of_json(content: Any, where: str) -> list[Declared]:
    if isinstance(content, dict) and isinstance(content.get("tables"), dict):
        if len(content["tables"]) != 1:
            raise InputError(f"{where}: has {len(content['tables'])} tables; expected one")
        content = next(iter(content["tables"].values()))
    if isinstance(content, dict) and isinstance(content.get("columns"), dict):
        return [_of_sdv(name, said) for name, said in content["columns"].items()]
    sizes = content.items() if isinstance(content, dict) else ()
    if not sizes or any(type(size) is not int or size < 1 for _, size in sizes):
        raise InputError(
            f"{where}: expected SDV's metadata of one table, or mbi's domain: a JSON object with the number of codes "
            "of each column"
        )
    return [Declared(name=name, kind="integer", lower=0, upper=size - 1) for name, size in sizes]


def _of_sdv(name: str, said: Any) -> Declared:
    kind = said.get("sdtype") if isinstance(said, dict) else None
    if kind == "numerical":
        stored = str(said.get("computer_representation", "")).lower().rstrip("0123456789")
        return Declared(name=name, kind=_NUMBERS.get(stored))
    if isinstance(kind, str) and kind in _SDV:
        values = said.get("order") if isinstance(said.get("order"), list) else ()
        return Declared(name=name, kind="ordinal" if values else _SDV[kind], values=tuple(map(str, values)))
    return Declared(name=name, left_out=f"its sdtype is {kind}" if isinstance(kind, str) else "it has no sdtype")


def _distinct(columns: Iterable[Declared], where: str) -> tuple[Declared, ...]:
    found: dict[str, Declared] = {}
    for column in columns:
        if column.name in found:
            raise InputError(f"{where}: the column {column.name!r} appears more than once")
        found[column.name] = column
    return tuple(found.values())
