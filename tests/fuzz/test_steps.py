"""A coordinator that sends anything: every step of every method answers or refuses, and nothing of a row comes back."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, final

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import CANARY, bounded, check_text, copied, fuzz, part_at, places, spoiled, spoiled_document, words_of
from support import CASES, Case
from syndic.data import SourceSpec
from syndic.errors import PartyError, RefusedError
from syndic.kernel import Call, Delivery, Node, Reply, answer, decode, encode
from syndic.privacy import Budget
from syndic.study import PartyFile, PartyFolder
from syndic.study.run import run_study

pytestmark = pytest.mark.fuzz

SEED: Final = 7
# without torch there is nothing to run, and with it a run takes seconds
EACH = [case for case in CASES if case.name != "vertigan"]
CODES: Final = {"ok", "input", "budget", "refused"}
SPOILT_CALLS: Final = 6
Change = Callable[[bytes], list[bytes]]


@final
class Hostile:
    """Carries a run up to one call, and puts spoiled copies of that call before it, each under another id."""

    def __init__(self, nodes: Mapping[str, Node], place: int, change: Change) -> None:
        self.nodes = nodes
        self.place = place
        self.change = change
        self.calls = 0
        self.taken = False

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        replies = {}
        for party, data in calls.items():
            if self.calls == self.place:
                self._try(party, decode(data, Call))
            self.calls += 1
            replies[party] = answer(self.nodes[party], data)
        return Delivery(replies=replies, silent={})

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()

    def _try(self, party: str, call: Call) -> None:
        for number, body in enumerate(self.change(call.body)):
            asked = Call(study=call.study, party=call.party, step=call.step, call=f"spoiled {number}", body=body)
            with bounded():
                data = answer(self.nodes[party], encode(asked))
            reply = decode(data, Reply)
            assert reply.code in CODES, f"{call.step} fails on {body[:300]!r}"
            assert CANARY.encode() not in data
            if reply.code != "ok":
                check_text(reply.text)
            # a step that was answered may not be asked again: the run itself need not get through
            self.taken |= reply.code == "ok"


@st.composite
def other_array(draw: st.DrawFn, body: bytes) -> bytes:
    """Return a message with one array of another shape, or of strange values."""
    tree = msgspec.msgpack.decode(body)
    arrays = [path for path in places(tree) if path and _is_array(part_at(tree, path))]
    if not arrays:
        return draw(spoiled(body))
    changed, path = copied(tree), draw(st.sampled_from(arrays))
    array = part_at(tree, path)
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 60, 2**40]), max_size=3))
    cells = int(np.prod(shape)) if max(shape, default=0) < 100 else 0
    width = {0: 8, 1: 8, 2: 8, 3: 1, 4: 2, 5: 4, 6: 4}[array[0]]
    cell = draw(st.sampled_from([bytes(width), b"\xff" * width, b"\x01" + bytes(width - 1), b"\x7f" * width]))
    header = bytes([array[0], len(shape)]) + b"".join(side.to_bytes(8, "little") for side in shape)
    part_at(changed, path[:-1])[path[-1]] = header + cell * cells
    return bytes(msgspec.msgpack.encode(changed))


def _is_array(value: Any) -> bool:
    return isinstance(value, bytes) and len(value) >= 2 and value[0] < 7 and value[1] <= 3 and len(value) % 2 == 0


@st.composite
def spoiled_bodies(draw: st.DrawFn, body: bytes) -> list[bytes]:
    """Return some spoiled copies of a message."""
    found = []
    tree = msgspec.msgpack.decode(body)
    for _ in range(SPOILT_CALLS):
        way = draw(st.sampled_from(["bytes", "fields", "array"]))
        if way == "bytes" or not tree:
            found.append(draw(spoiled(body)))
        elif way == "array":
            found.append(draw(other_array(body)))
        else:
            try:
                found.append(msgspec.msgpack.encode(draw(spoiled_document(tree, words_of([tree])))))
            except OverflowError:
                # numbers beyond 64 bits cannot even be written
                continue
    return found


def with_canary(rows: pa.Table) -> pa.Table:
    """Plant a value in a row that nothing may ever repeat."""
    if "colour" not in rows.column_names:
        return rows
    colours = [CANARY, *rows.column("colour").to_pylist()[1:]]
    return rows.set_column(rows.column_names.index("colour"), "colour", pa.array(colours))


def attacked(case: Case, folder: Path, place: int, change: Change) -> Hostile:
    """Run a case with a hostile coordinator."""
    nodes = {}
    with ExitStack() as stack:
        for name, rows in case.sources.items():
            home = PartyFolder(folder=folder / name)
            source = SourceSpec(path="rows in memory")
            party = PartyFile(name=name, dataset=name, source=source, cap=Budget.of(10**5, "1e-3"), id=("id",))
            home.keep(case.study, party)
            stack.enter_context(home.logging(name))
            nodes[name] = home.node(seed=SEED, source=with_canary(rows))
        carrier = Hostile(nodes, place, change)
        stack.callback(carrier.close)
        try:
            run_study(case.study, carrier, seed=SEED)
        except (PartyError, RefusedError) as error:
            # what a refused call was charged for stays spent, as every charge does
            if not carrier.taken and "budget" not in str(error):
                raise
    return carrier


@pytest.fixture(scope="module")
def lengths() -> dict[str, int]:
    """How many calls each case has, found when it is first run."""
    return {}


@fuzz(0.1)
@given(case=st.sampled_from(EACH), data=st.data())
def test_a_spoiled_call_is_answered_or_refused(
    case: Case, data: st.DataObject, lengths: dict[str, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    if case.name not in lengths:
        lengths[case.name] = attacked(case, tmp_path_factory.mktemp("first"), -1, lambda _: []).calls
    place = data.draw(st.integers(0, lengths[case.name] - 1))
    attacked(case, tmp_path_factory.mktemp("run"), place, lambda body: data.draw(spoiled_bodies(body)))
