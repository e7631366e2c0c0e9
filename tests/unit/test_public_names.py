"""The public names are those of docs/reference.md, and each says what it is."""

import inspect
import re
from pathlib import Path

import pytest

import syndic

REFERENCE = Path(__file__).parents[2] / "docs" / "reference.md"


def documented() -> list[str]:
    """Return the names in the first column of the table of the first section."""
    first = REFERENCE.read_text().split("\n## ")[1]
    return re.findall(r"^\| `(\w+)` \|", first, re.MULTILINE)


def test_reference_lists_every_public_name_once() -> None:
    assert sorted(documented()) == sorted(syndic.__all__)


def test_public_names_are_all_there_is() -> None:
    modules = {name for name, value in vars(syndic).items() if inspect.ismodule(value)}
    names = {name for name in vars(syndic) if not name.startswith("_")} - modules
    assert names | {"__version__"} == set(syndic.__all__)


@pytest.mark.parametrize("name", [name for name in syndic.__all__ if name != "__version__"])
def test_public_name_has_a_docstring(name: str) -> None:
    thing = getattr(syndic, name)
    assert thing.__doc__, name
    assert not thing.__doc__.startswith(f"{name}("), "a signature made by a machine is no docstring"
    members = inspect.getmembers(thing, lambda member: inspect.isfunction(member) or isinstance(member, property))
    for member, value in members:
        if not member.startswith("_") and value.__doc__ is None:
            inherited = any(getattr(getattr(base, member, None), "__doc__", None) for base in thing.__mro__)
            assert inherited, f"{name}.{member} has no docstring"
