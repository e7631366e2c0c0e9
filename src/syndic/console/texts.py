"""Studies and statements as flat lists of keys and texts, to show what differs between two of them."""

from typing import Any

from syndic.console.views import Change
from syndic.document import to_builtins

_LONGEST = 400


def changes(before: Any, after: Any) -> tuple[Change, ...]:
    """Return every key whose text differs between two documents, in the order of the second one."""
    first, second = dict(_flat(to_builtins(before))), dict(_flat(to_builtins(after)))
    keys = [*second, *(key for key in first if key not in second)]
    return tuple(
        Change(key=key, before=_cut(first.get(key, "")), after=_cut(second.get(key, "")))
        for key in keys
        if first.get(key, "") != second.get(key, "")
    )


def _flat(value: Any, key: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [pair for name, inner in value.items() for pair in _flat(inner, f"{key}.{name}" if key else str(name))]
    if isinstance(value, list | tuple):
        if all(not isinstance(one, dict | list | tuple) for one in value):
            return [(key, ", ".join(str(one) for one in value))]
        return [pair for place, one in enumerate(value) for pair in _flat(one, f"{key}[{_name(one, place)}]")]
    return [(key, "" if value is None else str(value))]


def _name(value: Any, place: int) -> str:
    """Return what a member of a list is known by, so that one that moved is not told as two changes."""
    found = value.get("name") or value.get("party") if isinstance(value, dict) else None
    return str(found or place + 1)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
