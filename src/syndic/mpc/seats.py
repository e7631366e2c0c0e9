"""Who sits where in masked sums of many rounds, and the masks that two of them share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from numpy.typing import NDArray

from syndic.mpc.graph import SumPlan, neighbours_of
from syndic.mpc.key import context
from syndic.mpc.mask import expand
from syndic.mpc.ring import Ring


@final
@dataclass(frozen=True, kw_only=True)
class Seats:
    """What the sums are bound to, and who takes part: `names` in the study's order. Public."""

    study: str
    label: str
    names: tuple[str, ...]
    plan: SumPlan

    @property
    def least(self) -> int:
        """How many parties a list of survivors must have."""
        return len(self.names) - self.plan.missing

    def neighbours(self, place: int) -> list[int]:
        """Return a party's neighbours, by their place in the study's list."""
        return [int(each) for each in neighbours_of(self.plan, self.study, place)]

    def bound(self, what: str, number: int, more: bytes = b"") -> bytes:
        """Return what the masks of one message of one round are bound to."""
        return context("rounds", self.study, self.label, what, number, more)

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
