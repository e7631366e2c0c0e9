"""The graph of masked sums: which parties share masks, these masks, and lists of parties as bits.

Up to 32 parties the graph is complete. With more, the parties form a circle, in an order drawn from the study's digest.
The neighbours of each are the next ones on either side, more than colluding + missing on a side (the sparse graph of
Bell, Bonawitz, Gascon, Lepoint and Raykova 2020, with enough edges for the worst case). Whichever parties collude or
are said to be missing, the others stay connected: no group of parties can be isolated and summed alone. This holds for
any choice of these parties and any order. So the order may be public, also one that the study's writer searched for by
changing the study, there is no failure probability, and nothing is charged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import InputError, RefusedError
from syndic.mpc.key import context, derive
from syndic.mpc.mask import expand, stream
from syndic.mpc.ring import Integers

MOST_PARTIES: Final = 50_000
_COMPLETE: Final = 32


@final
class SumGraph(Document):
    """Public numbers of masked sums: parties, how many may collude or be missing, neighbours of each party."""

    parties: int
    colluding: int
    missing: int
    neighbours: int

    def __post_init__(self) -> None:
        """Refuse a graph with which two lists of survivors could both be answered, or a party could be isolated."""
        who = f"of {self.parties} parties {self.colluding} may collude and {self.missing} be missing"
        if self.colluding < 0 or self.missing < 0 or self.colluding >= self.parties:
            raise InputError(f"{who}: colluding must be from 0 to one less than all, missing must not be negative")
        if 2 * self.missing >= self.parties - self.colluding:
            most = -(-(self.parties - self.colluding) // 2)
            raise InputError(f"{who}: masked sums are secure only if fewer than {most} may be missing")
        side, odd = divmod(self.neighbours, 2)
        sparse = not odd and self.colluding + self.missing < side and self.neighbours < self.parties - 1
        if self.neighbours != self.parties - 1 and not sparse:
            raise InputError(f"{who}: with {self.neighbours} neighbours for each party the graph may be disconnected")

    @property
    def least(self) -> int:
        """The least number of parties in a list of survivors."""
        return self.parties - self.missing


def sum_graph(parties: int, *, colluding: int, missing: int) -> SumGraph:
    """Return a graph in which no coalition and no list of survivors can isolate a party."""
    if not 2 <= parties <= MOST_PARTIES:
        alone = ": add a party, or choose a method that one party can run, such as synthesis" if parties == 1 else ""
        raise InputError(f"masked sums need 2 to {MOST_PARTIES:,} parties, not {parties}{alone}")
    # at least the bits of a party's number, which would suffice if nobody colluded
    side = max(colluding + missing + 1, (parties - 1).bit_length())
    neighbours = 2 * side if parties > _COMPLETE and 2 * side < parties - 1 else parties - 1
    return SumGraph(parties=parties, colluding=colluding, missing=missing, neighbours=neighbours)


def neighbours_of(graph: SumGraph, study: str, party: int) -> NDArray[np.int64]:
    """Return the neighbours of a party, as ascending places in the study's list."""
    if graph.neighbours == graph.parties - 1:
        return np.delete(np.arange(graph.parties), party)
    order, seats = _circle(graph.parties, study)
    half = graph.neighbours // 2
    steps = np.concatenate([np.arange(-half, 0), np.arange(1, half + 1)])
    return np.sort(order[(seats[party] + steps) % graph.parties])


@lru_cache(maxsize=16)
def _circle(parties: int, study: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the party at each place of the circle, and the place of each party."""
    key = derive(study.encode(), "sum graph", parties)
    order = np.argsort(np.frombuffer(stream(key, b"", 8 * parties), dtype="<u8"), kind="stable")
    seats = np.empty_like(order)
    seats[order] = np.arange(parties)
    return order, seats


@final
@dataclass(frozen=True, kw_only=True)
class Seats:
    """What the masks are bound to, and the participants: `names` in the study's order. Public."""

    study: str
    label: str
    names: tuple[str, ...]
    graph: SumGraph

    def neighbours(self, place: int) -> list[int]:
        """Return a party's neighbours, by their place in the study's list."""
        return list(neighbours_of(self.graph, self.study, place).tolist())

    def bound(self, what: str, number: int, more: bytes = b"") -> bytes:
        """Return the context of the masks of one message of one sum."""
        return context("sums", self.study, self.label, what, number, more)

    def add_pairs(
        self, start: NDArray[Any], place: int, pairs: Mapping[int, bytes], bound: bytes, ring: Integers
    ) -> NDArray[Any]:
        """Return `start` with the masks of some pairs: added by the earlier party, subtracted by the later one."""
        total = start
        for other, secret in pairs.items():
            first, second = sorted((place, other))
            mask = expand(secret, context("pair", bound, self.names[first], self.names[second]), len(start), ring)
            total = ring.add(total, mask) if place < other else ring.subtract(total, mask)
        return total


def bits(flags: Iterable[bool]) -> bytes:
    """Return a bit for each flag, in order."""
    return np.packbits(np.fromiter(flags, dtype=bool)).tobytes()


def marked(count: int, data: bytes) -> NDArray[np.bool_]:
    """Return the first `count` bits, as `bits` wrote them; refuse data of the wrong length."""
    if len(data) != -(-count // 8):
        raise RefusedError("a list of parties has the wrong length")
    return np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=count).astype(bool)


def pieces(data: bytes, size: int, count: int) -> list[bytes]:
    """Return `count` pieces of `size` bytes; refuse data of any other length."""
    if len(data) != size * count:
        raise RefusedError(f"expected {count} pieces of {size} bytes, found {len(data)} bytes in all")
    return [data[start : start + size] for start in range(0, len(data), size)]
