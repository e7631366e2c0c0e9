"""Two processes that serve one party take turns: a question under two ids is charged once."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from runtimes import session_over
from support import ONE, Case, charges, open_nodes, rows, study_text
from syndic import Study
from syndic.data import Table
from syndic.kernel import Call, Delivery, Node, Reply, answer, decode, encode, run
from syndic.runtime import Local
from syndic.study import PartyFolder

PARTY = '[[parties]]\nname = "north"\npeople = 60\n'
STUDY = Study.loads(study_text(budget=ONE, parties=PARTY, protocol='method = "synthesis"\nmodel_cells = 60'))
CASE = Case("one curator", STUDY, {"north": rows(60, 1)})


class Recording:
    """A local runtime that keeps the calls."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.local = Local(nodes)
        self.calls: list[Call] = []

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        self.calls += [decode(data, Call) for data in calls.values()]
        return self.local.send(calls, seconds=seconds, arrived=arrived)

    def close(self) -> None:
        self.local.close()


def slow(node: Node) -> Node:
    """Let the node take its time to read rows, so that two of them overlap."""

    def open_table() -> Table:
        time.sleep(0.3)
        return node.state.open_table()

    return replace(node, state=replace(node.state, open_table=open_table))


@pytest.mark.parametrize("ids", [("a" * 32, "b" * 32), ("a" * 32, "a" * 32)], ids=["two ids", "one id"])
def test_one_question_is_charged_once_in_two_processes(ids: tuple[str, str], tmp_path: Path) -> None:
    recording = Recording(open_nodes(CASE, tmp_path))
    run(STUDY.protocol, session_over(recording, STUDY))
    recording.close()
    first = next(call for call in recording.calls if call.step == "measure")
    folder = PartyFolder(folder=tmp_path / "third" / "parties" / "north")
    party = PartyFolder(folder=tmp_path / "parties" / "north").known()
    assert party is not None
    folder.keep(STUDY, party)
    nodes = [folder.node(seed=7, source=CASE.sources["north"]) for _ in ids]
    replies: dict[int, Reply] = {}

    def ask(place: int) -> None:
        call = Call(study=first.study, party="north", step="measure", call=ids[place], body=first.body).checked()
        replies[place] = decode(answer(slow(nodes[place]), encode(call)), Reply)

    threads = [threading.Thread(target=ask, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for node in nodes:
        node.close()
    assert len(charges(tmp_path / "third", "north")) == 1
    if ids[0] == ids[1]:
        assert replies[0].body == replies[1].body != b""
    else:
        assert sorted(reply.code for reply in replies.values()) == ["ok", "refused"]
