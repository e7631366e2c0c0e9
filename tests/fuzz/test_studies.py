"""Study files and schemas as people write them, and as nobody would: read and planned, or refused with a reason."""

import json
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import fuzz, nested, outcome, spoiled, spoiled_document, words_of
from support import CASES
from syndic import Schema, Study
from syndic.document import from_json, from_toml, to_builtins, to_json
from syndic.errors import InputError
from syndic.study import PartyFile, plan

pytestmark = pytest.mark.fuzz

DEMO = (files("syndic") / "demo" / "study.toml").read_text()
TREES: list[Any] = [json.loads(to_json(case.study)) for case in CASES] + [json.loads(to_json(Study.loads(DEMO)))]
WORDS = words_of(TREES)
PARTY = {
    "name": "north",
    "dataset": "visits",
    "source": {"path": "north.csv", "duckdb": "x.db", "query": "SELECT 1", "order": ["a"]},
    "cap": {"epsilon": "1/3", "delta": 1e-6},
    "id": ["nhs", "born"],
}


def toml(value: Any) -> str:
    """Return a value as TOML writes it; what TOML has no word for becomes a text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, dict):
        inside = (f"{toml(str(key))} = {toml(part)}" for key, part in value.items() if part is not None)
        return "{" + ", ".join(inside) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(part) for part in value if part is not None) + "]"
    return json.dumps(str(value)).replace("\x7f", "\\u007F")


def written(tree: Any) -> str:
    """Return a document as the text of a TOML file."""
    if not isinstance(tree, dict):
        return f"study = {toml(tree)}"
    return "\n".join(f"{toml(str(key))} = {toml(part)}" for key, part in tree.items() if part is not None)


@st.composite
def studies(draw: st.DrawFn) -> str:
    """Return a study file of any method with a few keys spoiled."""
    return written(draw(spoiled_document(draw(st.sampled_from(TREES)), WORDS)))


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Return a study file with lines gone, doubled or in another order, or with bytes spoiled."""
    text = draw(st.sampled_from([DEMO, *("\n".join(written(tree).splitlines()) for tree in TREES[:8])]))
    if draw(st.booleans()):
        return draw(spoiled(text.encode())).decode("utf-8", "replace")
    found = text.splitlines()
    for _ in range(draw(st.integers(1, 4))):
        place, other = (draw(st.integers(0, len(found) - 1)) for _ in range(2))
        match draw(st.sampled_from(["gone", "again", "moved"])):
            case "gone" if len(found) > 1:
                del found[place]
            case "again":
                found.insert(other, found[place])
            case "moved":
                found[place], found[other] = found[other], found[place]
    return "\n".join(found)


def read(text: str) -> Study | None:
    """Return the study; None where it is refused. A study that was read is the same when it is written and read."""
    found = outcome(lambda: Study.loads(text), kinds=(InputError,))
    if not isinstance(found, Study):
        return None
    assert from_json(to_json(found), Study, where="again") == found
    assert len(found.digest) == 64
    return found


def test_a_whole_study_survives_being_written_here() -> None:
    for tree in TREES:
        study = read(written(tree))
        assert study is not None
        assert json.loads(to_json(study)) == tree


@fuzz()
@given(studies())
def test_a_spoiled_study_is_read_or_refused(text: str) -> None:
    read(text)


@fuzz()
@given(lines())
def test_a_study_with_spoiled_lines_is_read_or_refused(text: str) -> None:
    read(text)


@fuzz(0.25)
@given(studies())
def test_a_study_that_was_read_is_planned_or_refused(text: str) -> None:
    study = read(text)
    if study is None:
        return
    checked = outcome(study.check, kinds=(InputError,))
    planned = outcome(lambda: str(plan(study)), kinds=(InputError,))
    assert isinstance(planned, str) or isinstance(checked, InputError)


@fuzz()
@given(st.sampled_from(TREES), st.data())
def test_spoiled_json_is_read_or_refused(tree: Any, data: st.DataObject) -> None:
    whole = json.dumps(tree).encode()
    text = data.draw(spoiled(whole) | spoiled_document(tree, WORDS).map(lambda found: json.dumps(found).encode()))
    outcome(lambda: from_json(text, Study, where="study"), kinds=(InputError,))


@fuzz()
@given(st.sampled_from(TREES), st.data())
def test_a_spoiled_schema_is_read_or_refused(tree: Any, data: st.DataObject) -> None:
    text = written(data.draw(spoiled_document(tree["schema"], WORDS)))
    found = outcome(lambda: from_toml(text, Schema, where="schema"), kinds=(InputError,))
    if isinstance(found, Schema):
        assert from_json(to_json(found), Schema, where="again") == found
        assert all(column.size >= 1 for column in found.columns)


@fuzz()
@given(st.data())
def test_a_spoiled_party_file_is_read_or_refused(data: st.DataObject) -> None:
    text = written(data.draw(spoiled_document(PARTY, words_of([PARTY, *TREES[:3]]))))
    found = outcome(lambda: from_toml(text, PartyFile, where="party"), kinds=(InputError,))
    assert isinstance(found, InputError) or to_builtins(found)


@pytest.mark.parametrize("depth", [10, 200, 5000, 10**5])
@pytest.mark.parametrize("kind", [Study, Schema, PartyFile])
def test_nesting_of_any_depth_is_refused(depth: int, kind: type[Any]) -> None:
    for text in ("x = " + "[" * depth + "]" * depth, "a" + ".a" * depth + " = 1", "[" + "a." * depth + "a]"):
        assert isinstance(outcome(lambda text=text: from_toml(text, kind, where="x"), kinds=(InputError,)), InputError)  # type: ignore[misc]
    for text in ("[" * depth + "]" * depth, '{"name":' * depth, json.dumps({"name": nested(100)})):
        assert isinstance(outcome(lambda text=text: from_json(text, kind, where="x"), kinds=(InputError,)), InputError)  # type: ignore[misc]
