"""The public names are those of docs/reference/python.md, and each says what it is."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import syndic

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"


def documented() -> list[str]:
    """Return the names in the first column of the table of the first section."""
    first = REFERENCE.read_text().split("\n## ")[1]
    return re.findall(r"^\| `(\w+)` \|", first, re.MULTILINE)


def test_reference_lists_every_public_name_once() -> None:
    assert sorted(documented()) == sorted(syndic.__all__)


def test_public_names_are_all_there_is() -> None:
    assert dir(syndic) == sorted(syndic.__all__)
    with pytest.raises(AttributeError, match="Studyy"):
        _ = syndic.Studyy


def test_a_name_is_loaded_when_it_is_asked_for() -> None:
    program = "import sys, syndic; print('numpy' in sys.modules); syndic.Study; print('numpy' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["False", "True"]


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
