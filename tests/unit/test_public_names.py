"""The public names are those of docs/reference/python.md, and each says what it is."""

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

import syndic.sklearn as estimators
from syndic.methods import AnyMethod

# by name: type checkers read the stub, which has no `__all__`
syndic: Any = import_module("syndic")
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"


def documented(place: int = 1) -> list[str]:
    """Return the names in the first column of the tables of a section, where a cell may hold several."""
    section = REFERENCE.read_text().split("\n## ")[place]
    cells = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def test_reference_lists_every_public_name_once() -> None:
    assert sorted(documented()) == sorted(syndic.__all__)


def test_every_method_is_among_them_under_its_own_name() -> None:
    methods = get_args(AnyMethod)
    assert len(methods) == 16
    for method in methods:
        assert getattr(syndic, method.__struct_config__.tag.capitalize()) is method


def test_type_checkers_are_told_the_same_names() -> None:
    stub = (Path(syndic.__file__).parent / "__init__.pyi").read_text()
    found = {name: home for home, name in re.findall(r"^from (\S+) import (\w+) as \2$", stub, re.MULTILINE)}
    assert found == {name: home for home, names in syndic._NAMES.items() for name in names.split()}
    assert len(stub.splitlines()) == len(found)


def test_source_and_page_list_them_on_one_screen() -> None:
    assert len((Path(syndic.__file__).parent / "__init__.py").read_text().splitlines()) <= 50
    assert len(REFERENCE.read_text().split("\n## ")[1].splitlines()) <= 50


def test_scikit_learns_side_is_one_module() -> None:
    assert sorted(estimators.__all__) == sorted(documented(2))
    assert all(getattr(estimators, name).__doc__ for name in estimators.__all__)


def test_public_names_are_all_there_is() -> None:
    assert dir(syndic) == sorted(syndic.__all__)
    with pytest.raises(AttributeError, match="Studyy"):
        _ = syndic.Studyy


def test_a_name_is_loaded_when_it_is_asked_for_and_heavy_libraries_when_they_are_used() -> None:
    """A party's process, which a study starts for each party, loads what `Study` does."""
    loaded = "print(*(name in sys.modules for name in ('numpy', 'scipy.special')))"
    program = f"import sys, syndic; {loaded}; syndic.Study; {loaded}"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == ["False False", "True False"]


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
