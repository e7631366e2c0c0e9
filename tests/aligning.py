"""Parties of an alignment in one process, and a runtime that records the coordinator's view and can change requests."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec.structs import replace

from runtimes import session_over
from support import Case, open_nodes, rows
from syndic import Study
from syndic.kernel import Call, Delivery, Node, Reply, Session, answer, decode, encode


def table(ids: Any, party: int = 0) -> pa.Table:
    count = len(ids)
    return pa.table({**{name: rows(count, party)[name] for name in ("colour", "age", "score")}, "id": pa.array(ids)})


class Carrier:
    """A runtime in this process that shows a coordinator's view, and may change what is asked."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        self.sizes: list[tuple[str, str, int]] = []
        self.seen: list[bytes] = []
        self.change: Callable[[str, str, bytes], bytes] = lambda _step, _party, body: body

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        replies = {}
        for party, data in calls.items():
            call = decode(data, Call)
            body = self.change(call.step, party, call.body)
            given = replace(call, body=body, check=None)
            reply = decode(answer(self.nodes[party], encode(given)), Reply)
            replies[party] = encode(Reply(code=reply.code, body=reply.body, text=reply.text))
            self.sizes.append((call.step, party, len(reply.body)))
            self.seen += [data, replies[party]]
        return Delivery(replies=replies, silent={})

    def reply(self, step: str, party: str) -> bytes:
        """Return the body of a party's last answer to a step."""
        asked = zip(self.seen[::2], self.seen[1::2], strict=True)
        found = [decode(reply, Reply).body for data, reply in asked if _is(decode(data, Call), step, party)]
        return found[-1]

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()


def _is(call: Call, step: str, party: str) -> bool:
    return (call.step, call.party) == (step, party)


def carried(study: Study, sources: Mapping[str, Any], folder: Path) -> tuple[Carrier, Session]:
    """Return a carrier over homes that `simulate` laid out for the same study and rows, and were not used yet."""
    carrier = Carrier(open_nodes(Case("carried", study, sources), folder, seed=None))
    return carrier, session_over(carrier, study, seed=None)
