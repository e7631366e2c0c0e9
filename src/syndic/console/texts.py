"""Studies and statements as flat lists of keys and texts, to show what differs between two of them."""

import json
from typing import Any

from syndic.console.views import Change
from syndic.document import to_builtins

_LONGEST = 400


def changes(before: Any, after: Any) -> tuple[Change, ...]:
    """Return every key whose text differs between two documents, in the order of the second one."""
    first, second = dict(_flat(to_builtins(before))), dict(_flat(to_builtins(after)))
    keys = [*second, *(key for key in first if key not in second)]
    return tuple(
        Change(key=key, before=_cut(first.get(key, ""), start), after=_cut(second.get(key, ""), start))
        for key in keys
        if first.get(key, "") != second.get(key, "")
        for start in [_shared(first.get(key, ""), second.get(key, ""))]
    )


def _flat(value: Any, key: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [pair for name, inner in value.items() for pair in _flat(inner, f"{key}.{name}" if key else str(name))]
    if isinstance(value, list | tuple):
        if all(not isinstance(one, dict | list | tuple) for one in value):
            return [(key, ", ".join(_item(one) for one in value))]
        return [pair for place, one in enumerate(value) for pair in _flat(one, f"{key}[{_name(one, place)}]")]
    return [(key, "" if value is None else str(value))]


def _name(value: Any, place: int) -> str:
    """Return what a member of a list is known by, so that one that moved is not told as two changes."""
    found = value.get("name") or value.get("party") if isinstance(value, dict) else None
    return str(found or place + 1)


def _item(value: Any) -> str:
    """Return a member of a list so that two lists never read alike: one that holds a comma is quoted."""
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if "," in text or '"' in text else text


def _shared(one: str, two: str) -> int:
    """Return how many letters two texts share at their beginning."""
    return next((place for place, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))


def _cut(text: str, start: int) -> str:
    """Return the part of a long text in which it begins to differ."""
    if len(text) <= _LONGEST:
        return text
    begin = max(0, start - _LONGEST // 4)
    end = begin + _LONGEST
    return ("... " if begin else "") + text[begin:end] + (" ..." if end < len(text) else "")
