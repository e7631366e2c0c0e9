"""Parties without ledger, folders or sockets: a protocol's own steps, with every message counted.

For measurements and attacks on data that are public or made up. Nothing is charged, so nobody is protected; a study
with real people runs through `syndic.study` and its ledgers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Domain, Factor
from syndic.errors import RefusedError
from syndic.kernel import Message, Plan, Progress, Terms, decode, encode, silent_progress
from syndic.kernel.view import View
from syndic.mpc.product_messages import ProductInbox, ServerTurn
from syndic.random import Randomness

Kept = TypeVar("Kept", bound=Message)
_BATCH = 1 << 16


@final
@dataclass(frozen=True)
class CodedTable:
    """Rows that were coded before, a column of small integers each."""

    domain: Domain
    codes: Mapping[str, NDArray[Any]]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.codes[self.domain.names[0]])

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the codes of some columns, a batch of rows at a time."""
        rows = len(self.codes[names[0]])
        for start in range(0, rows, _BATCH):
            yield {name: self.codes[name][start : start + _BATCH] for name in names}

    def marginals(self, cliques: Sequence[tuple[str, ...]]) -> list[Factor]:
        """Return the exact counts of each set of columns."""
        tables = []
        for names in cliques:
            domain = self.domain.project(names)
            cells = domain.index([self.codes[name] for name in names])
            tables.append(Factor(domain, np.bincount(cells, minlength=domain.size).reshape(domain.sizes)))
        return tables


@final
@dataclass(kw_only=True)
class OpenVertical:
    """What a step may touch, without a ledger: `contribute` applies the mechanism and charges nobody.

    Without `noisy` it returns the exact values, to see whether they are. `drawn` is the noise so far, which only the
    party itself knows.
    """

    name: str
    plan: Plan
    study: str
    table: CodedTable
    randomness: Randomness
    noisy: bool = True
    memory: dict[str, bytes] = field(default_factory=dict)
    drawn: list[NDArray[np.int64]] = field(default_factory=list)

    @property
    def terms(self) -> Terms:
        """The public terms of the study."""
        return self.plan.terms

    @property
    def view(self) -> bytes:
        """What the party was told; the carrier here tells everybody the same."""
        return View.of(self.study).digest

    def key_randomness(self, label: str) -> Randomness:
        """Return randomness for keys and masks."""
        del label
        return self.randomness

    def bond(self, peer: str) -> bytes:
        """Return no bond: nobody has an identity here."""
        del peer
        return b""

    def contribute(self, share: Any, values: Any, *, why: str) -> Any:
        """Return the values with this party's share of the noise."""
        del why
        released = share.apply(values, self.randomness) if self.noisy else values
        self.drawn.append(released - values)
        return released

    def remember(self, name: str, value: Message) -> None:
        """Keep a message for later steps."""
        self.memory[name] = encode(value)

    def recall(self, name: str, kind: type[Kept]) -> Kept:
        """Return what an earlier step kept."""
        value = self.kept(name, kind)
        if value is None:
            raise RefusedError(f"nothing is kept under '{name}'")
        return value

    def kept(self, name: str, kind: type[Kept]) -> Kept | None:
        """Return what an earlier step kept, or None if none did."""
        return decode(self.memory[name], kind) if name in self.memory else None


@final
@dataclass(kw_only=True)
class OpenCarrier:
    """The coordinator's view of open parties: a step is called, not sent; every message is encoded and counted.

    `relayed` is the part of `down` that another party had sent `up`. `seen` keeps what came and went, by step and
    party, for those who look for leaks; it is None otherwise.
    """

    plan: Plan
    study: str
    members: Mapping[str, OpenVertical]
    randomness: Randomness
    progress: Progress = silent_progress
    seen: list[tuple[str, str, Any, Any]] | None = None
    up: int = 0
    down: int = 0
    relayed: int = 0

    @property
    def terms(self) -> Terms:
        """The public terms of the study."""
        return self.plan.terms

    @property
    def parties(self) -> tuple[str, ...]:
        """The names of the parties."""
        return tuple(self.members)

    def ask(
        self, step: Callable[[Any, Any], Any], message: Message | Mapping[str, Message], *, missing: int = 0
    ) -> dict[str, Any]:
        """Return every party's answer to one step; nobody is ever missing."""
        del missing
        answers = {}
        for name, asked in (message if isinstance(message, Mapping) else dict.fromkeys(self.members, message)).items():
            question = encode(asked)
            answer = step(self.members[name], decode(question, type(asked)))
            reply = encode(answer)
            self.down += len(question)
            self.up += len(reply)
            self.relayed += _relayed(asked)
            if self.seen is not None:
                self.seen.append((step.__name__, name, asked, answer))
            answers[name] = decode(reply, type(answer))
        return answers


def _relayed(message: Message) -> int:
    """Return how many bytes of a question other parties wrote."""
    if isinstance(message, ProductInbox):
        boxes = [*message.bodies.values(), *message.keys.values()]
        boxes += [
            box
            for each in (message.proofs, message.tests)
            for proof in each.values()
            for box in (proof.body, proof.key)
        ]
        return sum(map(len, boxes))
    if isinstance(message, ServerTurn):
        return sum(len(box) for boxes in (message.rows, message.proofs, message.boxes) for box in boxes.values())
    return 0
