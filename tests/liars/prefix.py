"""Honest runs, recorded before each request: a liar's run follows one until it first deviates.

Nodes answer nothing before that, and are put back to the state that they had: their files and what a world noted.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final, final

from liars.world import Inside, World, close_with
from syndic.kernel import Delivery, Reply, encode

_NOTED: Final = ("_given", "asked", "answers", "hidden", "answered", "shared", "released", "split", "opened_by")


@final
@dataclass(frozen=True)
class Mark:
    """The state of a world before a request: what it noted, and the file of each party."""

    notes: Mapping[str, Any]
    files: Mapping[str, sqlite3.Connection]

    @classmethod
    def of(cls, world: World) -> "Mark":
        """Return the state now."""
        files = {name: sqlite3.connect(":memory:") for name in world.nodes}
        for name, node in world.nodes.items():
            _connection(node).backup(files[name])
        mark = cls({name: _copied(getattr(world, name)) for name in _NOTED}, files)
        close_with(mark, files.values())
        return mark


@final
@dataclass
class Prefix:
    """A world whose honest run was recorded: the state before each request and after the last, and the replies."""

    world: World
    marks: list[Mark] = field(default_factory=list)
    replies: list[Mapping[str, Reply]] = field(default_factory=list)
    request: int = 0
    seed: int = 0
    live: bool = True
    recording: bool = True

    @property
    def since(self) -> int:
        """How many calls were answered before the first deviation."""
        return len(self.marks[self.request].notes["asked"])

    def begin(self, seed: int) -> None:
        """Follow the recorded run from its start; what is random after the first deviation follows from `seed`."""
        self.seed, self.live, self.world.failed = seed, False, []
        self.world.inside = self.world.inside and Inside(self.world.inside.name)
        self.world.leave = self.leave
        self.go_to(0)

    def end(self) -> None:
        """Bring a world that never deviated to the end of the recorded run."""
        if not self.live:
            self.go_to(len(self.replies))
            self.leave()

    def reach(self, request: int) -> None:
        """Come to a request, counted from 1: as recorded, or to record it."""
        if self.recording:
            self.marks.append(Mark.of(self.world))
        elif not self.live:
            self.go_to(request - 1)

    def record(self, replies: Mapping[str, Reply]) -> None:
        """Note the replies to a request if the run is recorded."""
        if self.recording:
            self.replies.append(replies)

    def go_to(self, request: int) -> None:
        """Note what was noted before a request of the recorded run."""
        self.request = request
        for name, value in self.marks[request].notes.items():
            setattr(self.world, name, _copied(value))

    def leave(self) -> None:
        """Put the nodes back to the state before the request: from now on they answer."""
        if self.live:
            return
        self.live = True
        self.world._seed = self.seed
        for name, node in self.world.nodes.items():
            self.marks[self.request].files[name].backup(_connection(node))
            node.state.memory.last = node.state.memory.head()


def delivered(replies: Mapping[str, Reply], asked: Iterable[str]) -> Delivery:
    """Return replies as a coordinator gets them; the other parties are silent."""
    sent = {party: encode(Reply(code=one.code, body=one.body, text=one.text)) for party, one in replies.items()}
    return Delivery(replies=sent, silent={party: "silent" for party in asked if party not in replies})


def _connection(node: Any) -> Any:
    return node.state.ledger.database._connection


def _copied(value: Any) -> Any:
    """Return a copy to which entries can be added."""
    if isinstance(value, defaultdict):
        return defaultdict(value.default_factory, {key: copy(each) for key, each in value.items()})
    return copy(value)
