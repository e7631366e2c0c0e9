"""One copy of noise over all parties that count tables: who has a share of it, and on which counts."""

from dataclasses import dataclass
from typing import Final, Protocol, final

import numpy as np
from msgspec import UnsetType
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.kernel import Terms
from syndic.privacy import Event
from syndic.random import Randomness

COORDINATOR: Final = ""
"""Stands for the coordinator among the names of those who share noise."""


class Drawn(Protocol):
    """Integer noise."""

    def draw(self, shape: int, randomness: Randomness) -> NDArray[np.int64]:
        """Return independent draws."""


def noise_shares(terms: Terms, *, coordinator: bool | UnsetType, dealt: bool) -> int:
    """Return how many roles share the noise of counts: the parties and, if the study says so, the coordinator.

    `dealt`: whether the coordinator deals the triples of products, and so is trusted to collude with no party; and
    whether a party counts as colluding. With p shares, of which any p - colluding are enough, a party subtracts its own
    share and the coordinator its own. Together they subtract two.

    Raises:
        InputError: if the coordinator's share would be counted on where it may collude.
    """
    if coordinator and not dealt:
        raise InputError(
            "coordinator_noise: the coordinator may share the noise only where it is trusted to collude with no party: "
            "parties of a group count tables together, colluding is at least 1, and there are no servers. Leave it out"
        )
    return len(terms.parties) + bool(coordinator)


@final
@dataclass(frozen=True)
class TableNoise:
    """One copy of noise over all parties: a share where several count a table, the whole noise where one does.

    `shared` and `own` mark these counts; a count that another party has alone gets no noise here. Each noise has at
    least what `event` charges, which covers all tables together.
    """

    event: Event
    share: Drawn
    whole: Drawn
    shared: NDArray[np.bool_]
    own: NDArray[np.bool_]
    scale: int = 1

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with their noise, in units of 1 / `scale`."""
        noisy = values * self.scale
        for noise, marked in ((self.share, self.shared), (self.whole, self.own)):
            noisy[marked] += noise.draw(int(marked.sum()), randomness)
        return noisy
