"""The differences between two studies, statements or releases."""

import json
from os.path import commonprefix
from typing import Any

import numpy as np

from syndic.document import Document, to_builtins
from syndic.study.release import Release

_LONGEST = 400
_MOST_COLUMNS = 40
_MOST_LEVELS = 64


class Change(Document):
    """A key in which two documents differ; a missing value is empty."""

    key: str
    before: str
    after: str


class ColumnDistance(Document):
    """The distance of a column's shares between two releases: 0 if equal, 1 if nothing is in common."""

    column: str
    distance: float
    labels: tuple[str, ...]
    first: tuple[float, ...]
    second: tuple[float, ...]


def changes(before: Any, after: Any) -> tuple[Change, ...]:
    """Return every key whose text differs between two documents, in the order of the second one."""
    first, second = dict(_flat(to_builtins(before))), dict(_flat(to_builtins(after)))
    found = [(key, first.get(key, ""), second.get(key, "")) for key in {**second, **first}]
    return tuple(Change(key=key, before=_cut(a, b), after=_cut(b, a)) for key, a, b in found if a != b)


def _flat(value: Any, key: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [pair for name, inner in value.items() for pair in _flat(inner, f"{key}.{name}" if key else str(name))]
    if isinstance(value, list | tuple):
        if all(not isinstance(one, dict | list | tuple) for one in value):
            return [(key, ", ".join(_item(one) for one in value))]
        return [pair for place, one in enumerate(value) for pair in _flat(one, f"{key}[{_name(one, place)}]")]
    return [(key, "" if value is None else str(value))]


def _name(value: Any, place: int) -> str:
    """Return the name of a list member, so that a moved one is not listed as two changes."""
    found = value.get("name") or value.get("party") if isinstance(value, dict) else None
    return str(found or place + 1)


def _item(value: Any) -> str:
    """Return a list member as text, quoted if it has a comma, so that different lists never look the same."""
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if "," in text or '"' in text else text


def _cut(text: str, other: str) -> str:
    """Return the part of a long text around its first difference from another one."""
    if len(text) <= _LONGEST:
        return text
    begin = max(0, len(commonprefix([text, other])) - _LONGEST // 4)  # noqa: RUF071  # letters are meant
    end = begin + _LONGEST
    return ("... " if begin else "") + text[begin:end] + (" ..." if end < len(text) else "")


def differences(one: Release, two: Release) -> tuple[tuple[Change, ...], tuple[ColumnDistance, ...]]:
    """Return the differences of two statements, and the distances of the common columns' shares."""
    return changes(one.statement, two.statement), _distances(one, two)


def _distances(one: Release, two: Release) -> tuple[ColumnDistance, ...]:
    if one.known_table is None or two.known_table is None:
        return ()
    arrows = [each.table.to_arrow() for each in (one, two)]
    found = []
    for column in one.study.schema.columns[:_MOST_COLUMNS]:
        if any(column.name not in arrow.column_names for arrow in arrows) or column.size > _MOST_LEVELS:
            continue
        counts = [np.bincount(column.encode(arrow[column.name]), minlength=column.size) for arrow in arrows]
        shares = [each / max(int(each.sum()), 1) for each in counts]
        found.append(
            ColumnDistance(
                column=column.name,
                distance=float(np.abs(shares[0] - shares[1]).sum() / 2),
                labels=column.labels(),
                first=tuple(map(float, shares[0])),
                second=tuple(map(float, shares[1])),
            )
        )
    return tuple(found)
