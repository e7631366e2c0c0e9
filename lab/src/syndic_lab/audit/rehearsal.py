"""A study on a stage: every party in this process, every message kept, every coin known to the audience.

The steps, the envelope of every call, the checks of charges and the memory of answers are those of real parties. Only
the ledger is a note of what was charged, and the coins come from a seed, so nobody is protected: tables are made up.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Table, open_source
from syndic.errors import PartyError
from syndic.kernel import (
    Call,
    Delivery,
    Memory,
    Message,
    Node,
    Reply,
    Session,
    answer,
    decode,
    in_memory_node,
    run,
    steps_of_run,
)
from syndic.kernel import schema_of as columns_of
from syndic.privacy import Event
from syndic.privacy.store import FORMAT
from syndic.random import Randomness, SimulationRandomness
from syndic.sqlite import Database
from syndic.study import Study


@final
@dataclass(frozen=True, kw_only=True)
class Seen:
    """One question and its answer: what the coordinator sent and got, by party and step."""

    party: str
    step: str
    reveals: str
    asked: bytes
    code: str
    body: bytes
    returns: type[Message]

    def message(self) -> Any:
        """Return the answer as the coordinator reads it."""
        return decode(self.body, self.returns)


@dataclass
class _Notes:
    """Stands in for a ledger: notes what is charged."""

    database: Database = field(default_factory=lambda: Database(":memory:", FORMAT))
    events: list[Event] = field(default_factory=list)
    reply: None = None

    def check(self, **_given: Any) -> None:
        """Let everything pass."""

    def reserve(self, *, events: tuple[Event, ...], **_given: Any) -> "_Notes":
        """Note the charge; nothing was answered before."""
        self.events += events
        return self

    def commit(self, study: str, call: str, reply_digest: str) -> None:
        """Note nothing more."""

    def close(self) -> None:
        """Forget the answers."""
        self.database.close()


@final
@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: the release (None if a party refused), all that was sent, the charges, each party's coins by label."""

    study: Study
    result: Any
    seen: tuple[Seen, ...]
    charged: Mapping[str, tuple[Event, ...]]
    coins: Callable[[str, str], Randomness]
    drawn: Mapping[str, tuple[str, ...]]
    asked_again: bool
    remembered: Mapping[str, Sequence[tuple[str, bytes]]]

    def states(self, party: str, name: str, kind: type[Message]) -> list[Any]:
        """Return all that a party kept under a name, one after the other: more than any other role sees."""
        return [decode(value, kind) for kept, value in self.remembered[party] if kept == name]

    def replies(self, step: str) -> dict[str, Any]:
        """Return the last answer of every party to one step."""
        return {each.party: each.message() for each in self.seen if each.step == step}

    def own_noise(self, party: str, share: Any, size: int, charge: int = 0) -> NDArray[np.int64]:
        """Return the noise that a party drew in one of its charges: it knows its coins, so it can draw it again."""
        randomness = self.coins(party, self.drawn[party][charge])
        return np.asarray(share.apply(np.zeros(size, dtype=np.int64), randomness), dtype=np.int64)


class WatchedMemory(Memory):
    """A party's memory, of which the audience keeps a copy."""

    def __init__(self, database: Database, study: str) -> None:
        """Remember nothing yet."""
        super().__init__(database, study)
        self.remembered: list[tuple[str, bytes]] = []

    def keep(self, name: str, value: bytes) -> None:
        """Note the value, and keep it."""
        self.remembered.append((name, value))
        super().keep(name, value)


@final
class Stage:
    """A study with its parties' tables, ready to run many times."""

    def __init__(
        self, study: Study, sources: Mapping[str, Any], *, memory: type[WatchedMemory] = WatchedMemory
    ) -> None:
        """Prepare everything that is the same in every run; `memory` stands in for the parties' own."""
        self.study = study
        self._memory = memory
        self._digest = study.digest
        self._steps = {name: each for name, (each, _owner) in steps_of_run(study.protocol, study.plan).items()}
        self._tables = {
            party.name: Table(
                schema=columns_of(study, party.name),
                source=open_source(sources[party.name]),
                person=study.unit.person,
                rows_per_person=study.unit.rows,
                choose=study.unit.choose,
            )
            for party in study.parties
        }

    def run(self, seed: int, *, again: bool = False, until: str = "") -> Run:
        """Run the study once; with `again`, every question is asked a second time afterwards.

        With `until` the run ends when that step was answered: what the coordinator makes of it is not looked at.
        """
        coins = _Coins(seed, self._digest)
        nodes = {name: self._node(name, coins) for name in self._tables}
        watched = _Watched(nodes, self._steps, until)
        session = Session(
            runtime=watched,
            study=self._digest,
            method=self.study.protocol,
            plan=self.study.plan,
            randomness=coins("coordinator", "draws"),
        )
        with _quiet():
            try:
                result = run(self.study.protocol, session)
            except (PartyError, _EnoughError):
                # a refusal is something to see, too
                result = None
        charged = {name: tuple(node.state.ledger.events) for name, node in nodes.items()}  # type: ignore[attr-defined]
        with _quiet():
            same = watched.same_again() if again else True
        for node in nodes.values():
            node.close()
        return Run(
            study=self.study,
            result=result,
            seen=tuple(watched.seen),
            charged=charged,
            coins=coins,
            drawn={name: tuple(coins.drawn.get(name, ())) for name in nodes},
            asked_again=same,
            remembered={name: node.state.memory.remembered for name, node in nodes.items()},  # type: ignore[attr-defined]
        )

    def _node(self, name: str, coins: "_Coins") -> Node:
        notes: Any = _Notes()
        return in_memory_node(
            self.study.protocol,
            self.study.plan,
            name,
            self._tables[name],
            lambda label: coins.of(name, label),
            study=self._digest,
            ledger=notes,
            memory=self._memory(notes.database, self._digest),
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what parties on the stage would write into their logs from the terminal."""
    log, handler = logging.getLogger("syndic.party"), logging.NullHandler()
    before, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = before


@final
class _Coins:
    """Every role's randomness from one seed, another stream for each label; notes the streams of charges.

    A label that is asked for again gets another stream, as from a real generator: what is drawn twice differs.
    """

    def __init__(self, seed: int, digest: str) -> None:
        self._seed, self._digest = seed, digest
        self._given: Counter[tuple[str, str]] = Counter()
        self.drawn: dict[str, list[str]] = {}

    def __call__(self, role: str, label: str) -> Randomness:
        return SimulationRandomness(self._seed, self._digest, role, label)

    def of(self, role: str, label: str) -> Randomness:
        """Give a party its coins; labels of charges end in the number of the charge."""
        self._given[role, label] += 1
        again = f" again {self._given[role, label]}" if self._given[role, label] > 1 else ""
        if label.rpartition("/")[2].isdigit() and "entropy" not in label:
            self.drawn.setdefault(role, []).append(label + again)
        return self(role, label + again)


class _EnoughError(Exception):
    """All that is looked at was answered."""


@final
class _Watched:
    """Answers calls by the nodes themselves and keeps what was asked and answered."""

    def __init__(self, nodes: Mapping[str, Node], steps: Mapping[str, Any], until: str) -> None:
        self._nodes, self._steps, self._until = nodes, steps, until
        self.seen: list[Seen] = []
        self._bytes: list[tuple[str, bytes, bytes]] = []

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Answer one party after the other."""
        del seconds
        replies: dict[str, bytes] = {}
        for party, data in calls.items():
            replies[party] = answer(self._nodes[party], data)
            self._note(party, data, replies[party])
            arrived(len(replies))
        if self.seen[-1].step == self._until:
            raise _EnoughError
        return Delivery(replies=replies, silent={})

    def same_again(self) -> bool:
        """Ask everything a second time; say whether all answers are the same bytes."""
        return all(answer(self._nodes[party], data) == reply for party, data, reply in self._bytes)

    def _note(self, party: str, data: bytes, reply: bytes) -> None:
        call, told = decode(data, Call), decode(reply, Reply)
        step = self._steps[call.step]
        self._bytes.append((party, data, reply))
        self.seen.append(
            Seen(
                party=party,
                step=call.step,
                reveals=step.reveals,
                asked=call.body,
                code=told.code,
                body=told.body,
                returns=step.returns,
            )
        )

    def close(self) -> None:
        """Nodes are closed by the stage."""
