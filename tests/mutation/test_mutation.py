"""The runner itself: mutants are what they say, a patch reaches the function, and a child's end is told."""

import ast
import json
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

from mutation.child import Gave, forked, limit
from mutation.choice import Runs
from mutation.mutants import Mutant, mutants_of, mutated
from mutation.patch import ColdError, living_functions, put_in
from mutation.report import report

_SOURCE = '''
"""Text 1."""
LIMIT = 3

def inside(value: int = 1) -> bool:
    """Text 2."""
    if value < 0 or value > LIMIT:
        raise ValueError(f"{value + 1} is outside")
    return value - LIMIT <= 0
'''


def _mutants(folder: Path, source: str = _SOURCE) -> list[Mutant]:
    (folder / "inside.py").write_text(source)
    return mutants_of(folder / "inside.py", folder)


def test_every_change_is_there_once_and_texts_are_left_alone(tmp_path: Path) -> None:
    changes = [mutant.change for mutant in _mutants(tmp_path)]
    assert sorted(changes) == sorted(
        [
            *("3 -> 4", "3 -> 2", "1 -> 2", "1 -> 0"),
            *("value < 0 -> value <= 0", "value < 0 -> value >= 0"),
            *("value > LIMIT -> value >= LIMIT", "value > LIMIT -> value <= LIMIT"),
            "value < 0 or value > LIMIT -> value < 0 and value > LIMIT",
            *("value < 0 or value > LIMIT -> value > LIMIT", "value < 0 or value > LIMIT -> value < 0"),
            *("0 -> 1", "0 -> -1") * 2,
            "raise ValueError(f'{value + 1} is outside') -> pass",
            "value - LIMIT -> value + LIMIT",
            *("value - LIMIT <= 0 -> value - LIMIT < 0", "value - LIMIT <= 0 -> value - LIMIT > 0"),
            "return value - LIMIT <= 0 -> return None",
        ]
    )


def test_a_mutated_tree_differs_in_the_one_change(tmp_path: Path) -> None:
    for mutant in _mutants(tmp_path):
        before, after = ast.unparse(ast.parse(_SOURCE)).splitlines(), ast.unparse(mutated(_SOURCE, mutant)).splitlines()
        assert sum(one != other for one, other in zip(before, after, strict=True)) == 1, mutant.title


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("f(a, b, b)", {"f(a, b, b) -> f(b, a, b)", "f(a, b, b) -> pass"}),
        ("x = max(a, b)", {"max(a, b) -> min(a, b)"}),
        ("x = ring.add(a, b)", {"ring.add -> ring.subtract"}),
        ("x = -(-a // b)", {"-(-a // b) -> -a // b", "-a -> a", "-a // b -> -a * b"}),
        ("x = [a for a in b if a]", {"for a in b if a -> for a in b"}),
        ("x = 'text' + text", set()),
    ],
)
def test_further_operators(tmp_path: Path, source: str, changes: set[str]) -> None:
    assert {mutant.change for mutant in _mutants(tmp_path, source)} == changes


# whoever looks at all living objects meets names that torch has given up
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_patch_reaches_a_function_that_others_hold_and_an_import_is_cold(tmp_path: Path) -> None:
    path = tmp_path / "inside.py"
    mutants = {mutant.change: mutant for mutant in _mutants(tmp_path)}
    space: dict[str, object] = {}
    original = compile(_SOURCE, str(path), "exec")
    exec(original, space)
    held = space["inside"]
    assert callable(held)
    living = living_functions(str(tmp_path))[str(path)]
    edge = compile(mutated(_SOURCE, mutants["value > LIMIT -> value >= LIMIT"]), str(path), "exec")
    assert held(3)
    put_in(original, edge, living)
    with pytest.raises(ValueError, match="outside"):
        held(3)
    for change in ("3 -> 4", "1 -> 2"):
        with pytest.raises(ColdError):
            put_in(original, compile(mutated(_SOURCE, mutants[change]), str(path), "exec"), living)


def _give(outcome: str) -> None:
    raise Gave(outcome, "test_x")


def _never_end() -> None:
    limit(-0.38)
    while True:
        time.sleep(0)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_the_end_of_a_child_is_told() -> None:
    assert forked(lambda: None).outcome == "survived"
    told = forked(lambda: _give("killed"))
    assert (told.outcome, told.by) == ("killed", "test_x")
    assert forked(lambda: print(int("none"))).outcome == "killed"
    assert forked(_never_end).outcome == "time"


def test_the_tests_of_a_line_come_first_then_the_own_ones_and_the_time_is_limited() -> None:
    own, quick, slow = "tests/unit/mpc/test_sum.py::a", "tests/unit/x/test_y.py::b", "tests/unit/x/test_y.py::c"
    other = "tests/unit/mpc/test_sum.py::d"
    runs = Runs(
        seconds={own: 2.0, quick: 0.1, slow: 3.0, other: 0.1},
        lines={"mpc/sum.py": {1: [other], 5: [slow, quick, own]}},
        modules=[],
    )
    assert runs.tests_for("mpc/sum.py", 5, cold=False) == [own, quick, other]
    assert runs.tests_for("mpc/sum.py", 1, cold=False) == [other, own]
    assert runs.tests_for("mpc/sum.py", 9, cold=True) == [other, own, quick]


def _report(folder: Path, source: str, outcomes: Iterable[str]) -> int:
    """Report on the mutants of a file, with these outcomes, of which one constant of `inside` is explained."""
    sources = folder / "sources"
    sources.mkdir(exist_ok=True)
    lines = [
        json.dumps(mutant.record() | {"outcome": outcome, "phase": "cold", "by": "", "seconds": 0})
        for mutant, outcome in zip(_mutants(sources, source), outcomes, strict=False)
    ]
    (folder / "results.jsonl").write_text("\n".join(lines))
    explained = folder / "survivors"
    explained.mkdir(exist_ok=True)
    (explained / "reasons.toml").write_text('speed = "another way to the same result"')
    (explained / "package.toml").write_text('["inside.py::inside"]\nspeed = { constant = 1 }')
    return report(folder, explained, sources)


_KILLED, _ONE, _TWO = ["killed"] * 7, ["survived", *["killed"] * 6], ["survived", "survived", *["killed"] * 5]


@pytest.mark.parametrize(
    "source",
    [
        _SOURCE,
        _SOURCE.replace("value", "number"),
        _SOURCE.replace("value < 0 or", "(\n        value < 0\n    ) or"),
        f"import math\n{_SOURCE}",
    ],
)
def test_an_explained_survivor_stays_explained_when_lines_are_renamed_or_moved(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # the first mutants change LIMIT, which is in no function
    assert _report(tmp_path, source, ["killed", "killed", *_ONE]) == 0
    assert "| 9 | 8 | 1 | 1 | 0 |" in capsys.readouterr().out
    assert _report(tmp_path, source, ["killed", "killed", *_KILLED]) == 0


def test_the_report_names_a_function_with_more_survivors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _report(tmp_path, _SOURCE, ["killed", "killed", *_TWO]) == 1
    shown = capsys.readouterr().out
    assert "| 9 | 7 | 2 | 1 | 0 |" in shown
    assert "unexplained: inside.py::inside: 2 of the kind constant survived, 1 are explained" in shown
    assert "inside.py:5 | def inside(value: int = 1) -> bool: | 1 -> 2" in shown


@pytest.mark.parametrize("place", [0, 4])
def test_a_survivor_elsewhere_or_of_another_kind_is_not_explained(place: int, tmp_path: Path) -> None:
    outcomes = ["killed"] * 9
    outcomes[place] = "survived"
    assert _mutants(tmp_path)[place].operator == ("constant" if place == 0 else "boolean")
    assert _report(tmp_path, _SOURCE, outcomes) == 1


def test_the_report_names_what_is_gone_and_what_was_not_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _report(tmp_path, _SOURCE.replace("inside", "within"), ["killed"] * 9) == 1
    assert "gone: inside.py::inside" in capsys.readouterr().out
    assert _report(tmp_path, _SOURCE, ["killed", "cold"]) == 1
    assert "| 2 | 1 | 0 | 0 | 1 |" in capsys.readouterr().out


def test_functions_are_named_with_the_classes_around_them(tmp_path: Path) -> None:
    inner = "    def d(self):\n        def e(x=3): return 4\n        x = 5\n        return lambda: 6\n"
    source = f"A = 1\nclass B:\n    c: int = 2\n{inner}if 7: pass\n"
    named = {
        mutant.change[0]: mutant.function for mutant in _mutants(tmp_path, source) if mutant.operator == "constant"
    }
    assert list(named.items()) == [
        *(("1", "A"), ("2", "B.c"), ("3", "B.d.e"), ("4", "B.d.e")),
        *(("5", "B.d"), ("6", "B.d"), ("7", "<module>")),
    ]


def test_the_lists_have_reasons() -> None:
    survivors = Path(__file__).with_name("survivors")
    reasons = tomllib.loads((survivors / "reasons.toml").read_text())
    used = {
        reason
        for path in survivors.glob("*.toml")
        if path.name != "reasons.toml"
        for by_reason in tomllib.loads(path.read_text()).values()
        for reason in by_reason
    }
    assert used == reasons.keys()
