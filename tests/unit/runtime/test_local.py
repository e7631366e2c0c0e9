"""Many parties in one process: few ledgers are open at once, and nothing else can be told from that."""

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from faulty_runtime import DISTURBED, LOSING, charged, published, run_over, stored
from support import Case, ledger_entries
from syndic.errors import IntegrityError
from syndic.kernel import Delivery, Node
from syndic.runtime import Local
from syndic.study import PartyFolder, simulate

FIVE = LOSING[0]
LAST = FIVE.study.parties[-1].name


class Few:
    """A runtime with few open nodes, which counts them and sends every call again after the others were answered."""

    def __init__(self, local: Any, most: int, before: Callable[[int], None] = lambda _: None) -> None:
        self.open = self.largest = self.opened = self.sent = 0
        self.before = before
        self._local = Local({}, reopen=partial(self._counted, local._reopen), most=most)

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        self.before(self.sent)
        self.sent += 1
        found = self._local.send(calls, seconds=seconds, arrived=arrived)
        assert self._local.send(calls, seconds=seconds, arrived=arrived) == found
        return found

    def close(self) -> None:
        self._local.close()
        assert self.open == 0

    def _counted(self, reopen: Callable[[str], Node], party: str) -> Node:
        node = reopen(party)
        close = node.state.ledger.close

        def closed() -> None:
            close()
            self.open -= 1

        node.state.ledger.close = closed  # type: ignore[method-assign]
        self.open += 1
        self.opened += 1
        self.largest = max(self.largest, self.open)
        return node


def run_few(
    case: Case,
    folder: Path,
    most: int,
    before: Callable[[int], None] = lambda _: None,
    kept: list[Few] | None = None,
) -> tuple[Any, Few]:
    found = [] if kept is None else kept

    def few(local: Any) -> Any:
        found.append(Few(local, most, before))
        return found[0]

    return run_over(case, folder, few), found[0]


def said(folder: Path, party: str) -> list[tuple[Any, ...]]:
    return [(one.kind, one.call, one.door, one.events, one.cost, one.reply) for one in ledger_entries(folder, party)]


@pytest.mark.parametrize("case", [*LOSING, *DISTURBED], ids=lambda case: case.name)
def test_nothing_can_be_told_from_how_many_are_open(case: Case, tmp_path: Path) -> None:
    whole = simulate(case.study, case.sources, seed=7, folder=tmp_path / "whole")
    release, few = run_few(case, tmp_path / "few", 1)
    assert few.largest == 1
    assert few.opened > len(case.sources)
    assert published(release, tmp_path / "a") == published(whole, tmp_path / "b")
    assert charged(case, tmp_path / "few") == charged(case, tmp_path / "whole")
    for party in case.sources:
        assert said(tmp_path / "few", party) == said(tmp_path / "whole", party)
        assert stored(tmp_path / "few", party) == stored(tmp_path / "whole", party)


def test_no_more_are_open_than_allowed_and_the_first_stay_open(tmp_path: Path) -> None:
    _, few = run_few(FIVE, tmp_path, 3)
    assert few.largest == 3
    # all five once, and each later time those but the first two
    assert few.opened == 5 + 3 * (2 * few.sent - 1)


def test_a_file_that_was_put_back_while_it_was_closed_is_noticed(tmp_path: Path) -> None:
    ledger, copy = PartyFolder(folder=tmp_path / "parties" / LAST).ledger, tmp_path / "copy"

    def put_back(sent: int) -> None:
        # after the keys; and after all have met
        if sent == 2:
            shutil.copy(ledger, copy)
        if sent == 3:
            shutil.copy(copy, ledger)

    release, _ = run_few(FIVE, tmp_path, 1, put_back)
    assert LAST not in release.result.note.present
    log = (tmp_path / "parties" / LAST / "party.log").read_text()
    assert "this party's stored state went back in time" in log


@pytest.mark.parametrize("content", [b"", b"no ledger"])
def test_a_party_whose_ledger_is_lost_while_it_was_closed_is_missing(content: bytes, tmp_path: Path) -> None:
    ledger = PartyFolder(folder=tmp_path / "parties" / LAST).ledger

    def lose(sent: int) -> None:
        if sent == 2:
            ledger.write_bytes(content)

    release, few = run_few(FIVE, tmp_path, 1, lose)
    assert LAST not in release.result.note.present
    assert few.open == 0


def test_everything_is_closed_after_an_error(tmp_path: Path) -> None:
    def stop(sent: int) -> None:
        if sent == 2:
            raise IntegrityError("stopped")

    kept: list[Few] = []
    with pytest.raises(IntegrityError, match="stopped"):
        run_few(FIVE, tmp_path, 2, stop, kept)
    assert kept[0].open == 0
    assert kept[0].opened > 0


def test_parties_share_one_copy_of_the_study_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes = [PartyFolder(folder=tmp_path / "parties" / party.name) for party in FIVE.study.parties]
    for _ in range(2):
        shutil.rmtree(tmp_path / "coordinator", ignore_errors=True)
        simulate(FIVE.study, FIVE.sources, seed=7, folder=tmp_path)
        assert len({home.study.stat().st_ino for home in homes}) == 1
        assert {home.node(seed=7).state.study for home in homes} == {homes[0].node(seed=7).state.study}
        assert not [path for home in homes for path in home.folder.glob("study.json.*")]

    def fail(path: Path, _: Path) -> None:
        raise OSError(path)

    monkeypatch.setattr(Path, "hardlink_to", fail)
    simulate(FIVE.study, FIVE.sources, seed=7, folder=tmp_path)
    assert len({home.study.stat().st_ino for home in homes}) == len(homes)
    assert len({home.study.read_bytes() for home in homes}) == 1
