"""A party whose state was put back answers nothing: new noise on an old charge would be a second release.

Before, both servers' memories of `average` were put back 25 times in the middle of a run. The sum opened 25 times with
new noise, on one charge, and the mean of the openings was 287.04 for an exact 287.
"""

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from organisations import COORDINATOR, agreed_nodes, homes_for
from support import CASES
from syndic.errors import RefusedError, SyndicError
from syndic.kernel import Call, Delivery, decode
from syndic.privacy import Ledger
from syndic.runtime import Local
from syndic.study import PartyFolder
from syndic.study.agreement import agree, withdraw
from syndic.study.run import run_study

CASE = next(case for case in CASES if case.name == "average")
TABLES = ("answers", "kept", "calls")
TIMES = 5


class Watched:
    """A runtime that calls `before` ahead of one step."""

    def __init__(self, local: Local, step: str, before: Callable[[], None]) -> None:
        self.local, self.step, self.before = local, step, before

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        if decode(next(iter(calls.values())), Call).step == self.step:
            self.before()
            self.step = ""
        return self.local.send(calls, seconds=seconds, arrived=arrived)

    def close(self) -> None:
        self.local.close()


class Run:
    """A run of `average` between organisations, and copies of everything from the middle of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.study, self.homes = homes_for(CASE.study, CASE.sources, folder)
        self.nodes = agreed_nodes(self.study, self.homes)

    def run(self, step: str = "", before: Callable[[], None] = lambda: None, folder: str = "coordinator") -> Any:
        watched = Watched(Local(self.nodes), step, before)
        return run_study(self.study, watched, folder=self.folder / folder, identity=COORDINATOR).result

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()

    def reopen(self) -> None:
        self.close()
        self.nodes = {name: home.agreed_node(self.study.digest) for name, home in self.homes.items()}

    def copy(self, what: str) -> None:
        shutil.copytree(self.folder / what, self.folder / "copy" / what)

    def put_back(self, what: str) -> None:
        shutil.rmtree(self.folder / what)
        shutil.copytree(self.folder / "copy" / what, self.folder / what)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def tables_of(home: PartyFolder) -> dict[str, list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(home.ledger)) as database:
        return {table: database.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}


def put_tables(home: PartyFolder, rows: dict[str, list[tuple[Any, ...]]]) -> None:
    with closing(sqlite3.connect(home.ledger)) as database, database:
        for table, kept in rows.items():
            database.execute(f"DELETE FROM {table}")
            for row in kept:
                database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def openings(attempt: Callable[[], Any]) -> list[str]:
    """Return what opened in a few attempts, or why nothing did."""
    found = []
    for _ in range(TIMES):
        try:
            found.append(repr(attempt()))
        except SyndicError as error:
            found.append(f"refused: {error}")
    return found


MIDDLE = [name for name in CASE.study.steps if name not in {"ready", "two_keys"}]


@pytest.mark.parametrize("step", MIDDLE)
def test_memories_put_back_under_a_newer_ledger_open_nothing(run: Run, step: str) -> None:
    before: dict[str, Any] = {}

    def keep() -> None:
        run.copy("coordinator")
        before.update({name: tables_of(home) for name, home in run.homes.items()})

    run.run(step, keep)

    def again() -> Any:
        for name, home in run.homes.items():
            put_tables(home, before[name])
        run.put_back("coordinator")
        return run.run()

    assert all("refused: this party's stored answers are older than its ledger" in text for text in openings(again))
    run.close()
    for home in run.homes.values():
        (home.folder / "studies" / run.study.digest[:16] / "head.json").unlink()
    run.reopen()
    assert all("refused: this party's stored answers are older than its ledger" in text for text in openings(again))
    for home in run.homes.values():
        with Ledger.open(home.ledger) as ledger:
            ledger.verify()
            assert sum(entry.kind == "reserve" for entry in ledger.entries()) == 1


@pytest.mark.parametrize("step", MIDDLE)
def test_a_ledger_put_back_by_itself_opens_nothing(run: Run, step: str) -> None:
    """A file beside the ledger has the head of its answers."""

    def keep() -> None:
        for name, home in run.homes.items():
            with (
                closing(sqlite3.connect(home.ledger)) as now,
                closing(sqlite3.connect(run.folder / f"{name}.db")) as copy,
            ):
                now.backup(copy)

    run.run(step, keep)
    run.close()
    for name, home in run.homes.items():
        shutil.copy(run.folder / f"{name}.db", home.ledger)
    with pytest.raises(RefusedError, match="the ledger of north went back in time"):
        run.reopen()


@pytest.mark.parametrize("step", MIDDLE)
def test_a_folder_put_back_opens_nothing_once_the_parties_meet(run: Run, step: str) -> None:
    """The other party saw how far this one came; the coordinator lost its folder and asks from the start."""
    run.run(step, lambda: run.copy("north"))
    run.close()
    run.put_back("north")
    run.reopen()

    def again() -> Any:
        return run.run(folder="new")

    for text in openings(again):
        assert "north: refused: the stored state of north went back in time" in text
        assert "south: refused: the stored state of north went back in time" in text


def test_an_owner_declares_a_restored_ledger_and_all_of_the_study_is_charged(run: Run) -> None:
    run.run("contribute", lambda: run.copy("north"))
    run.close()
    run.put_back("north")
    home, events = run.homes["north"], run.study.plan.events("north")
    party = home.folder / "party.toml"
    party.write_text(party.read_text().replace("epsilon = 50", "epsilon = 0.01"))
    with Ledger.open(home.ledger) as ledger:
        assert ledger.charged(run.study.digest) == ()
    for _ in range(2):
        withdraw(home, run.study.digest[:12], restored=True)
        with Ledger.open(home.ledger) as ledger:
            assert sorted(ledger.charged(run.study.digest), key=repr) == sorted(events, key=repr)
            assert ledger.spent("people of north").left == 0
            ledger.verify()
    with pytest.raises(RefusedError, match="north has withdrawn"):
        home.agreed_node(run.study.digest)
    # else a coordinator that lets nobody compare heads gets new noise for steps after a charge
    with pytest.raises(RefusedError, match="it needs a new edition"):
        agree(home, run.study)
