"""Who masks with whom in masked sums, and the masks that two of them share.

Up to 32 parties everybody is everybody's neighbour. Beyond, the parties sit in a circle, in an order drawn from the
study's digest, and each has the next ones on either side as neighbours, more than colluding + missing (the sparse graph
of Bell, Bonawitz, Gascon, Lepoint and Raykova 2020, with enough edges for the worst case). Whoever colludes and
whoever is said to be missing, those left are connected: no group of parties is cut off and summed alone. This holds for
any choice of these parties, so the order may be known, nothing can fail, and nothing is charged for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import InputError
from syndic.mpc.key import context, derive
from syndic.mpc.mask import expand, stream
from syndic.mpc.ring import Ring

MOST_PARTIES: Final = 50_000
_COMPLETE: Final = 32


@final
class SumGraph(Document):
    """Public numbers of masked sums: parties, how many may collude and be missing, neighbours of each party."""

    parties: int
    colluding: int
    missing: int
    neighbours: int

    def __post_init__(self) -> None:
        """Refuse a graph with which two lists of survivors could both be answered, or a party could be cut off."""
        who = f"of {self.parties} parties {self.colluding} may collude and {self.missing} be missing"
        if self.colluding < 0 or self.missing < 0 or self.colluding >= self.parties:
            raise InputError(f"{who}: colluding must be from 0 to one less than all, missing must not be negative")
        if 2 * self.missing >= self.parties - self.colluding:
            most = -(-(self.parties - self.colluding) // 2)
            raise InputError(f"{who}: masked sums are safe where fewer than {most} may be missing")
        side, odd = divmod(self.neighbours, 2)
        sparse = not odd and self.colluding + self.missing < side and self.neighbours < self.parties - 1
        if self.neighbours != self.parties - 1 and not sparse:
            raise InputError(f"{who}: {self.neighbours} neighbours a party do not keep the others connected")

    @property
    def least(self) -> int:
        """How many parties a list of survivors must have."""
        return self.parties - self.missing


def sum_graph(parties: int, *, colluding: int, missing: int) -> SumGraph:
    """Return who masks with whom, such that no coalition and no list of survivors cuts anybody off."""
    if not 2 <= parties <= MOST_PARTIES:
        raise InputError(f"masked sums of {parties} parties: they take 2 to {MOST_PARTIES:,}")
    # as many as a party's number has bits would do if nobody colluded; it does not rest on that alone
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
    """Return who sits on each seat and the seat of each party."""
    key = derive(study.encode(), "sum graph", parties)
    order = np.argsort(np.frombuffer(stream(key, b"", 8 * parties), dtype="<u8"), kind="stable")
    seats = np.empty_like(order)
    seats[order] = np.arange(parties)
    return order, seats


@final
@dataclass(frozen=True, kw_only=True)
class Seats:
    """What the sums are bound to, and who takes part: `names` in the study's order. Public."""

    study: str
    label: str
    names: tuple[str, ...]
    graph: SumGraph

    def neighbours(self, place: int) -> list[int]:
        """Return a party's neighbours, by their place in the study's list."""
        return [int(each) for each in neighbours_of(self.graph, self.study, place)]

    def bound(self, what: str, number: int, more: bytes = b"") -> bytes:
        """Return what the masks of one message of one sum are bound to."""
        return context("sums", self.study, self.label, what, number, more)

    def add_pairs(
        self, start: NDArray[Any], place: int, pairs: Mapping[int, bytes], bound: bytes, ring: Ring
    ) -> NDArray[Any]:
        """Return `start` with the masks of some pairs: plus at the earlier party, minus at the later."""
        total = start
        for other, secret in pairs.items():
            first, second = sorted((place, other))
            mask = expand(secret, context("pair", bound, self.names[first], self.names[second]), len(start), ring)
            total = ring.add(total, mask) if place < other else ring.subtract(total, mask)
        return total
