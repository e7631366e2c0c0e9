"""Files that a party or a coordinator keeps: whatever happens to their bytes, nothing is forgotten in silence."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import fuzz, outcome, spoiled
from support import CASES
from syndic.errors import SyndicError
from syndic.kernel import Delivery, Memory
from syndic.kernel.journal import Journal
from syndic.kernel.memory import Stored, look_up
from syndic.privacy import Budget, Called, ConcentratedEvent, Event, GaussianEvent, Ledger, PureEvent, Spending
from syndic.study import Release, simulate

pytestmark = pytest.mark.fuzz

STUDY, VERSION = "5" * 64, "1"
CAP = Budget.of(3, "1e-6")


@pytest.fixture(scope="module")
def ledger_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A ledger with every kind of entry, as it lies on the disk when it is closed."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    events: list[Event] = [
        PureEvent(epsilon=Fraction(1, 3), what="counts"),
        ConcentratedEvent(rho=Fraction(1, 50), what="sums"),
        GaussianEvent(mu_squared=Fraction(1, 40), slack=Fraction(1, 10**12), what="tables"),
    ]
    with Ledger.open(path) as ledger:
        ledger.declare("visits", CAP, why="the owner's party file")
        ledger.log_agreement(dataset="visits", study=STUDY, agreement="a" * 64, why="until then")
        for number, event in enumerate(events):
            ledger.reserve(
                dataset="visits", study=STUDY, call=f"call {number}", door="release", events=[event], why="for a table"
            )
            ledger.commit(STUDY, f"call {number}", f"{number}" * 64)
        ledger.log_call(Called(dataset="visits", study=STUDY, call="x", step="count", asked="b" * 64, reply="refused"))
        ledger.log_withdrawal(dataset="visits", study=STUDY, why="")
    return path.read_bytes()


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Return a file with faults, half of them where something is written: pages are mostly empty."""
    if draw(st.booleans()):
        return draw(spoiled(data))
    written = [place for place, byte in enumerate(data) if byte]
    found = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        found[draw(st.sampled_from(written))] = draw(st.integers(0, 255))
    return bytes(found)


def laid(folder: Path, name: str, data: bytes) -> Path:
    """Write a file, and take away what SQLite left beside the one before it."""
    for old in folder.glob(f"{name}*"):
        old.unlink()
    (folder / name).write_bytes(data)
    return folder / name


def looked_at(path: Path, *, verify: bool) -> tuple[Spending, int]:
    """Return what was spent and the number of entries."""
    with Ledger.open(path, create=False, patience=0.05) as ledger:
        if verify:
            ledger.verify()
        return ledger.spent("visits"), sum(1 for _ in ledger.entries())


@fuzz(0.5)
@given(st.data())
def test_a_damaged_ledger_that_verifies_has_the_same_balance(
    ledger_bytes: bytes, tmp_path: Path, data: st.DataObject
) -> None:
    expected = looked_at(laid(tmp_path, "whole.sqlite", ledger_bytes), verify=True)
    path = laid(tmp_path, "ledger.sqlite", data.draw(damaged(ledger_bytes)))
    found = outcome(lambda: looked_at(path, verify=True))
    assert isinstance(found, SyndicError) or found == expected


@fuzz(0.5)
@given(st.data())
def test_a_damaged_ledger_never_lets_more_be_spent(ledger_bytes: bytes, tmp_path: Path, data: st.DataObject) -> None:
    expected, _ = looked_at(laid(tmp_path, "whole.sqlite", ledger_bytes), verify=True)
    path = laid(tmp_path, "ledger.sqlite", data.draw(damaged(ledger_bytes)))
    found = outcome(lambda: looked_at(path, verify=False))
    assert isinstance(found, SyndicError) or found[0] == expected
    path = laid(tmp_path, "ledger.sqlite", path.read_bytes())
    taken = outcome(lambda: charged(path, PureEvent(epsilon=expected.left + Fraction(1, 100))))
    assert isinstance(taken, SyndicError), "a charge beyond the cap was let through"


def charged(path: Path, event: PureEvent) -> int:
    with Ledger.open(path, create=False, patience=0.05) as ledger:
        reservation = ledger.reserve(
            dataset="visits", study=STUDY, call="another", door="release", events=[event], why="more"
        )
        return reservation.number


def each_reading(ledger: Ledger) -> list[Callable[[], Any]]:
    """Return everything that may be asked of a ledger without writing to it."""
    return [
        lambda: ledger.spent("visits"),
        lambda: ledger.check(dataset="visits", study=STUDY, events=[PureEvent(epsilon=Fraction(1))]),
        lambda: ledger.charged(STUDY),
        ledger.datasets,
        lambda: list(ledger.entries()),
        lambda: ledger.calls(STUDY),
        lambda: ledger.standing(STUDY),
        ledger.agreed,
        ledger.head,
        ledger.verify,
    ]


@fuzz(0.5)
@given(st.data())
def test_every_question_to_a_damaged_ledger_is_answered_or_refused(
    ledger_bytes: bytes, tmp_path: Path, data: st.DataObject
) -> None:
    path = laid(tmp_path, "ledger.sqlite", data.draw(damaged(ledger_bytes)))
    opened = outcome(lambda: Ledger.open(path, create=False, patience=0.05))
    if isinstance(opened, Ledger):
        with opened:
            for ask in each_reading(opened):
                outcome(ask)
            for target in ("out.json", "out.csv"):
                outcome(lambda target=target: opened.export(tmp_path / target))  # type: ignore[misc]
            outcome(lambda: opened.declare("visits", Budget.of(4, "1e-6")))
            outcome(lambda: opened.commit(STUDY, "call 0", "0" * 64))


ASKED = {"north": b"1" * 32, "south": b"2" * 32}
DELIVERY = Delivery(replies={"north": b"reply of the north" * 9}, silent={"south": "was silent"})


@pytest.fixture(scope="module")
def journal_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A journal of two asks."""
    path = tmp_path_factory.mktemp("journal") / "journal.sqlite"
    journal = Journal.open(path, study=STUDY, version=VERSION)
    journal.record(1, "ready", fresh=True, asked=ASKED, delivery=DELIVERY)
    journal.record(2, "count", fresh=False, asked=ASKED, delivery=DELIVERY, failed=["south"])
    journal.settle(2)
    journal.close()
    return path.read_bytes()


@fuzz(0.5)
@given(st.data())
def test_a_damaged_journal_is_refused_or_recalls(journal_bytes: bytes, tmp_path: Path, data: st.DataObject) -> None:
    path = laid(tmp_path, "journal.sqlite", data.draw(damaged(journal_bytes)))
    journal = outcome(lambda: Journal.open(path, study=STUDY, version=VERSION))
    if isinstance(journal, SyndicError):
        return
    try:
        for number, step in ((1, "ready"), (2, "count"), (3, "count")):
            outcome(lambda number=number, step=step: journal.recall(number, step, fresh=number == 1, asked=ASKED))  # type: ignore[misc]
        outcome(lambda: journal.record(3, "sum", fresh=False, asked=ASKED, delivery=DELIVERY, failed=["south"]))
        outcome(lambda: journal.settle(3))
    finally:
        journal.close()


@pytest.fixture(scope="module")
def memory_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A party's memory of two calls."""
    path = tmp_path_factory.mktemp("memory") / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        for call in ("one", "two"):
            answer_once(Memory(ledger.database, STUDY), call)
    return path.read_bytes()


@fuzz(0.5)
@given(st.data())
def test_a_damaged_memory_is_refused_or_remembers(memory_bytes: bytes, tmp_path: Path, data: st.DataObject) -> None:
    path = laid(tmp_path, "ledger.sqlite", data.draw(damaged(memory_bytes)))
    outcome(lambda: look_up(path, STUDY, lambda memory: memory.kept("one")))
    outcome(lambda: look_up(path, STUDY, Memory.stored_bytes))
    ledger = outcome(lambda: Ledger.open(path, patience=0.05))
    if isinstance(ledger, Ledger):
        with ledger:
            memory = Memory(ledger.database, STUDY)
            for ask in (lambda: memory.answer("one"), lambda: memory.kept("two"), lambda: answer_once(memory, "three")):
                outcome(ask)


READ_BACK = ("homm laplace", "marginals gaussian", "estimate dssa", "gram")


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Releases of several methods, as they are published."""
    folders = []
    for case in (case for case in CASES if case.name in READ_BACK):
        folders.append(tmp_path_factory.mktemp("release"))
        simulate(case.study, case.sources, seed=1).write(folders[-1])
    return folders


@fuzz(0.3)
@given(st.data())
def test_a_damaged_release_is_read_or_refused(releases: list[Path], tmp_path: Path, data: st.DataObject) -> None:
    assert len(releases) == len(READ_BACK)
    whole = data.draw(st.sampled_from(releases))
    for old in tmp_path.iterdir():
        old.unlink()
    for file in whole.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    path = data.draw(st.sampled_from(sorted(tmp_path.iterdir())))
    path.write_bytes(data.draw(spoiled(path.read_bytes())))
    found = outcome(lambda: Release.load(tmp_path))
    if isinstance(found, Release):
        outcome(lambda: str(found))


def answer_once(memory: Memory, call: str) -> bytes:
    answer = Stored(asked="a" * 64, charged=True, reply=b"reply " * 30)
    return memory.answer_once(call, answer.asked, lambda: (answer, {call: b"kept " * 20}), lambda _answer: None)
