"""Runs: what is finished is kept, what was interrupted starts again, nothing is lost by one failure."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from syndic.document import from_file
from syndic.errors import InputError
from syndic.report.figure import Bars, Curve, Line, Series
from syndic_lab.bench.row import Row
from syndic_lab.reproduce import Item, Paper, chosen, reproduce
from syndic_lab.reproduce import run as running
from syndic_lab.reproduce.pace import Pace, calibrated, in_words
from syndic_lab.reproduce.run import Outcome

PAPER = Paper("somebody-2000", "Somebody 2000")
CURVE = Curve(title="c", lines=(Line("x", ((1.0, 2.0), (2.0, 3.0)), dots=True),), x_axis="x", y_axis="y", x_log=True)
BARS = Bars(title="b", labels=("one",), series=(Series("s", (1.0,)),), lying=True)


class Counted:
    """A measurement that counts its calls and may fail."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.calls: list[bool] = []
        self.error = error

    def __call__(self, quick: bool) -> Iterator[Row | Curve | Bars]:
        self.calls.append(quick)
        if self.error is not None:
            raise self.error
        yield Row(bench="b", row="r", metric="loss", value=1.1, unit="", published=1.0)
        yield CURVE
        yield BARS


def item(name: str, measure: Any, **more: Any) -> Item:
    given = {"where": "Table 1", "what": "", "seconds": (1.0, 2.0), **more}
    return Item(name=name, paper=PAPER, measure=measure, **given)


def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    measure = Counted()
    items = (item("a", measure),)
    (first,) = reproduce(items, tmp_path, quick=True)
    (second,) = reproduce(items, tmp_path, quick=True)
    assert (first.state, second.state) == ("done", "kept")
    assert measure.calls == [True]
    assert second.outcome == first.outcome
    assert second.verdicts == ("agrees",)
    assert second.outcome is not None
    assert second.outcome.curves == (CURVE,)
    assert second.outcome.bars == (BARS,)
    (full,) = reproduce(items, tmp_path, quick=False)
    assert full.state == "done"
    assert measure.calls == [True, False]


def test_another_version_or_a_damaged_file_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = Counted()
    items = (item("a", measure),)
    reproduce(items, tmp_path, quick=True)
    monkeypatch.setattr("syndic_lab.reproduce.run.__version__", "9.9.9")
    assert reproduce(items, tmp_path, quick=True)[0].state == "done"
    (tmp_path / "items" / "a.json").write_text("{")
    assert reproduce(items, tmp_path, quick=True)[0].state == "done"
    assert len(measure.calls) == 3


def test_other_data_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("SYNDIC_DATA", str(data))
    measure = Counted()
    items = (item("a", measure, needs=("rows.csv",)),)
    assert reproduce(items, tmp_path, quick=True)[0].state == "no data"
    (data / "rows.csv").write_text("1")
    assert reproduce(items, tmp_path, quick=True)[0].state == "done"
    assert reproduce(items, tmp_path, quick=True)[0].state == "kept"
    (data / "rows.csv").write_text("2")
    assert reproduce(items, tmp_path, quick=True)[0].state == "done"
    assert len(measure.calls) == 2


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    first, broken, third = Counted(), Counted(KeyboardInterrupt()), Counted()
    items = (item("a", first), item("b", broken), item("c", third))
    with pytest.raises(KeyboardInterrupt):
        reproduce(items, tmp_path, quick=True)
    broken.error = None
    assert [one.state for one in reproduce(items, tmp_path, quick=True)] == ["kept", "done", "done"]
    assert (len(first.calls), len(broken.calls), len(third.calls)) == (1, 2, 1)
    assert from_file(tmp_path / "items" / "b.json", Outcome).item == "b"
    assert not list((tmp_path / "items").glob("*.part"))


def test_pieces_of_a_full_run_are_kept_by_themselves(tmp_path: Path) -> None:
    first, broken, whole = Counted(), Counted(KeyboardInterrupt()), Counted()
    items = (item("a", whole, pieces=(("one", first), ("two", broken))),)
    with pytest.raises(KeyboardInterrupt):
        reproduce(items, tmp_path, quick=False)
    broken.error = None
    (done,) = reproduce(items, tmp_path, quick=False)
    assert (first.calls, broken.calls, whole.calls) == ([False], [False, False], [])
    assert done.outcome is not None
    assert len(done.outcome.rows) == len(done.outcome.bars) == 2
    # a quick run has no pieces
    reproduce(items, tmp_path, quick=True)
    assert whole.calls == [True]


def test_one_failure_does_not_lose_the_others(tmp_path: Path) -> None:
    told: list[str] = []
    items = (item("a", Counted(InputError("no such thing"))), item("b", Counted(ZeroDivisionError("by 0"))))
    found = reproduce((*items, item("c", Counted())), tmp_path, quick=True, tell=told.append)
    assert [one.state for one in found] == ["failed", "failed", "done"]
    assert [one.why for one in found] == ["no such thing", "ZeroDivisionError: by 0", ""]
    assert [path.name for path in (tmp_path / "items").iterdir()] == ["c.json"]
    assert told[0].startswith("3 to run, 0 already there: about ")
    assert told[2] == "a failed: no such thing"


def test_what_is_not_run_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYNDIC_DATA", raising=False)
    items = (
        item("a", None, reason="the data are lost"),
        item("b", Counted(), needs=("rows.csv",), reason="Ask the authors."),
        item("c", Counted(), libraries=("no_such_library",)),
        item("d", Counted(), seconds=(None, 2.0)),
    )
    found = reproduce(items, tmp_path, quick=True)
    assert [one.state for one in found] == ["not reproducible", "no data", "no library", "not quick"]
    assert found[1].why.endswith("that has it. Ask the authors.")
    assert [one.why.split(":")[0] for one in found] == [
        *("the data are lost", "needs rows.csv", "needs no_such_library", "left out of a quick run"),
    ]


def test_remaining_time_follows_what_passed() -> None:
    items = [item(name, Counted(), seconds=(40.0, 40.0)) for name in "abc"]
    pace = Pace(items, quick=True, speed=2.0)
    assert pace.remaining == pytest.approx(240)
    pace.done(items[0], passed=20.0)
    assert pace.remaining == pytest.approx(40)
    assert [in_words(seconds) for seconds in (0.1, 60, 600, 7200)] == ["1 s", "60 s", "10 min", "2.0 h"]
    assert calibrated() > 0.05


def test_items_of_the_catalogue_run_in_processes(tmp_path: Path) -> None:
    items = (*chosen(["learning-table-1"]), *chosen(["estimation-figure-1"]))
    beside = reproduce(items, tmp_path / "two", quick=True, jobs=2)
    assert [one.state for one in beside] == ["done", "not reproducible"]
    (alone, _) = reproduce(items, tmp_path / "one", quick=True)
    assert beside[0].outcome is not None
    assert alone.outcome is not None
    assert beside[0].outcome.rows == alone.outcome.rows
    assert beside[0].verdicts == alone.verdicts


def test_nothing_runs_beside_an_item_that_measures_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_work: list[str] = []
    seen: dict[str, set[str]] = {}
    both = threading.Barrier(2, timeout=20)

    def measure_as(name: str) -> Any:
        def measure(quick: bool) -> Iterator[Row]:
            at_work.append(name)
            if name != "timed":
                both.wait()
            seen[name] = set(at_work)
            if name != "timed":
                both.wait()
            at_work.remove(name)
            yield Row(bench="b", row="r", metric="loss", value=1.0, unit="")

        return measure

    items = {name: item(name, measure_as(name), timed=name == "timed") for name in ("a", "b", "timed")}
    monkeypatch.setattr(running, "_processes", ThreadPoolExecutor)
    monkeypatch.setattr(running, "_run_named", lambda name, *given: running._run(items[name], *given))
    found = reproduce(tuple(items.values()), tmp_path, quick=True, jobs=2)
    assert [(one.name, one.state) for one in found] == [("a", "done"), ("b", "done"), ("timed", "done")]
    assert seen == {"timed": {"timed"}, "a": {"a", "b"}, "b": {"a", "b"}}
