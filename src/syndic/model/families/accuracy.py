"""Mean squared error of block estimates (DSaA, Chen and Sung), and the best number of blocks, from public numbers.

M parties of N people each, k blocks, epsilon each; `information` is the Fisher information I of one value, `diameter`
the length of the interval of the parameter. For one parameter and Laplace noise.
"""

import math
from dataclasses import dataclass
from math import ceil, floor
from typing import final


@final
@dataclass(frozen=True, kw_only=True)
class Setting:
    """The public numbers that an error is predicted from."""

    parties: int
    people: int
    epsilon: float
    information: float

    @property
    def bound(self) -> float:
        """The Cramer-Rao bound 1 / (M N I): the error of all rows together without noise."""
        return 1 / (self.parties * self.people * self.information)


def blocks_error(at: Setting, *, blocks: int, diameter: float, bias: float = 1.0) -> float:
    """Return the error of DSaA: (1/MN) (1/I + 2 N diameter^2 / (k epsilon)^2 + bias M k^3 / N^2).

    The bias of a block estimate is at most sqrt(bias) (k/N)^(3/2); it does not average out over parties.
    """
    noise = 2 * (diameter / (blocks * at.epsilon)) ** 2 / at.parties
    return at.bound + noise + bias * (blocks / at.people) ** 3


def best_blocks(at: Setting, *, diameter: float, bias: float = 1.0) -> int:
    """Return the k with the smallest error of DSaA: (4 diameter^2 N^3 / (3 bias M epsilon^2))^(1/5), from 1 to N/2."""
    best = math.pow(4 * diameter**2 * at.people**3 / (3 * bias * at.parties * at.epsilon**2), 0.2)
    most = max(1, at.people // 2)
    near = [min(most, max(1, each)) for each in (floor(best), ceil(best))]
    return min(near, key=lambda blocks: blocks_error(at, blocks=blocks, diameter=diameter, bias=bias))


def printed_blocks(people: int, epsilon: float) -> int:
    """Return the k behind the rate of Theorem 3.1: N^(3/5) epsilon^(-2/5), from 1 to N."""
    return min(people, max(1, round(math.pow(people, 0.6) * math.pow(epsilon, -0.4))))


def blocks_condition(people: int, parties: int) -> float:
    """Return N^(-1/6) M^(1/3): epsilon must be well above it for DSaA to be efficient; more parties make it harder."""
    return math.pow(people, -1 / 6) * math.pow(parties, 1 / 3)
