"""Long lists of values: read from files beside a study, and their branches.

A study may name a file in place of a list: `values = "codes.csv"`, `tree = "icd.csv"`. The file becomes part of the
study when the study is loaded, so the digest covers it. A study comes from others. So that it cannot name a file with
rows and have them read into a public document, such a file lies beside the study, is small, and has the heading `value`
or `code,parent` and no further column. Errors of reading quote nothing of it.
"""

import csv
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from syndic.errors import InputError

OTHER: Final = "other"
MOST_BYTES: Final = 4_000_000
"""The largest file with a list of values."""

Pairs = tuple[tuple[str, str], ...]


def with_lists(content: Any, folder: Path | None) -> Any:
    """Return the content of a study or schema with lists in place of file names and of prefix lengths.

    Raises:
        InputError: if a file is not a list of values. It quotes nothing of the file.
    """
    if isinstance(content, dict) and "schema" in content:
        return {**content, "schema": _with_columns(content["schema"], folder)}
    return _with_columns(content, folder)


def _with_columns(schema: Any, folder: Path | None) -> Any:
    columns = schema.get("columns") if isinstance(schema, dict) else None
    if not isinstance(columns, list):
        return schema
    return {**schema, "columns": [_with_lists(one, folder) if isinstance(one, dict) else one for one in columns]}


def _with_lists(column: Mapping[str, Any], folder: Path | None) -> dict[str, Any]:
    found, name = dict(column), column.get("name")
    where = f"column {name!r}" if isinstance(name, str) else "column"
    if isinstance(found.get("values"), str):
        found["values"] = read_values(folder, found["values"], f"{where}: values")
    tree = found.get("tree")
    if isinstance(tree, str):
        lines = _read(folder, tree, ("code", "parent"), f"{where}: tree")
        if len({code for code, _ in lines}) < len(lines):
            raise InputError(f"{where}: tree: a code has more than one line")
        parents = {parent for _, parent in lines}
        found.setdefault("values", [code for code, _ in lines if code not in parents])
        found["tree"] = _above(found["values"], {code: parent for code, parent in lines if parent})
    elif isinstance(tree, list) and tree and all(type(length) is int for length in tree):
        found["tree"] = _by_prefix(found.get("values"), sorted(set(tree), reverse=True))
    return found


def read_values(folder: Path | None, name: str, where: str) -> list[str]:
    """Return the values of a file with the heading `value`; errors begin with `where`."""
    return [value for (value,) in _read(folder, name, ("value",), where)]


def _read(folder: Path | None, name: str, heading: tuple[str, ...], where: str) -> list[list[str]]:
    """Return the lines of a CSV file after its heading, each with as many trimmed cells."""
    expected = f"{where}: expected a list, or a .csv file beside the study with the heading {','.join(heading)}"
    if folder is None or Path(name).name != name or not name.endswith(".csv"):
        raise InputError(expected)
    try:
        with (folder / name).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        lines = list(csv.reader(content.decode("utf-8-sig").splitlines(), strict=True))
    except FileNotFoundError:
        raise InputError(f"{where}: no file {name!r} beside the study") from None
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InputError(f"{where}: {name!r} cannot be read as CSV in UTF-8") from None
    cells = [[cell.strip() for cell in line] for line in lines if any(cell.strip() for cell in line)]
    if len(content) > MOST_BYTES or not cells or any(len(line) != len(heading) for line in cells):
        raise InputError(f"{expected}, at most {MOST_BYTES:,} bytes")
    if tuple(cell.lower() for cell in cells[0]) != heading:
        raise InputError(expected)
    return cells[1:]


def _above(values: Any, up: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the part of a tree that is above some values."""
    found: dict[str, str] = {}
    for value in values if isinstance(values, list) else ():
        code = value
        while isinstance(code, str) and code in up and code not in found:
            found[code] = up[code]
            code = up[code]
    return list(found.items())


def _by_prefix(values: Any, lengths: Sequence[int]) -> list[tuple[str, str]]:
    """Return the tree whose branches are the first characters of values, the longest first."""
    up: dict[str, str] = {}
    for value in values if isinstance(values, list) else ():
        code = value
        for length in lengths:
            if isinstance(code, str) and 0 < length < len(code):
                up[code] = code[:length].strip()
                code = up[code]
    return list(up.items())


def check_tree(name: str, values: Sequence[str], tree: Pairs) -> None:
    """Raise `ValueError` unless every pair leads from a listed value or a branch upwards."""
    up = dict(tree)
    if len(up) < len(tree):
        raise ValueError(f"{name!r}: tree must have one branch for each value")
    known = {*values, *up.values()}
    if OTHER in up or OTHER in up.values():
        raise ValueError(f'{name!r}: tree must not have "{OTHER}", which is above all branches')
    stray = next((code for code in up if code not in known), None)
    if stray is not None:
        raise ValueError(f"{name!r}: tree has {stray!r}, which is neither one of the values nor a branch")
    safe: set[str] = set()
    for start in up:
        path, code = {start}, start
        while code in up and code not in safe:
            code = up[code]
            if code in path:
                raise ValueError(f"{name!r}: tree must not lead from {start!r} back to itself")
            path.add(code)
        safe |= path


@lru_cache(maxsize=64)
def branches_of(values: tuple[str, ...], tree: Pairs) -> tuple[str, ...]:
    """Return the branches that are not listed as values, in order."""
    listed = set(values)
    return tuple(dict.fromkeys(branch for _, branch in tree if branch not in listed))
