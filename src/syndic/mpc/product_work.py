"""What is multiplied in one go by a secure product, and the messages that it takes until shares are opened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from syndic.kernel import Message
from syndic.mpc.triple import ProductSizes

Pair = tuple[str, str]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ProductWork:
    """What is multiplied in one go, the same at everybody. Public.

    `pairs` are those of parties (left, right) whose matrices are multiplied, `groups` how many columns each group of a
    party's matrix has, and `cells` which cells of a pair's product are wanted, if not all. With `checked`, rows sum to
    one in each group and partners check that. `label` tells the products of a study apart.
    """

    label: str
    sizes: ProductSizes
    pairs: tuple[Pair, ...]
    groups: Mapping[str, tuple[int, ...]]
    checked: bool = False
    cells: Mapping[Pair, NDArray[np.int64]] = field(default_factory=dict)

    def shape(self, pair: Pair) -> tuple[int, int]:
        """Return the shape of a pair's share of the product: that of the product, or wanted cells in one column."""
        if pair in self.cells:
            return len(self.cells[pair]), 1
        left, right = pair
        return sum(self.groups[left]), sum(self.groups[right])

    def pair(self, one: str, other: str) -> Pair:
        """Return two partners, the left one first."""
        return (one, other) if (one, other) in self.pairs else (other, one)


class ProductStart(Message):
    """The dealer's seed for one party. It travels on the coordinator's own link to that party."""

    seed: bytes


class ProductKey(Message):
    """A party's public key."""

    public: bytes


class ProductTurn(Message):
    """Mask the rows of one chunk; `keys` are the public keys of this party's partners."""

    chunk: int
    keys: dict[str, bytes]


class ProductOpening(Message):
    """A party's masked rows, sealed once, and the key of that seal, sealed for each partner."""

    body: bytes
    keys: dict[str, bytes]


class ProductInbox(Message):
    """For one party and chunk, by partner: masked rows, the key to them, the dealer's halves, digests of row sums."""

    chunk: int
    bodies: dict[str, bytes]
    keys: dict[str, bytes]
    halves: dict[str, bytes]
    sums: dict[str, bytes]


def partners_of(pairs: tuple[Pair, ...], name: str) -> tuple[str, ...]:
    """Return with whom a party multiplies."""
    return tuple(right if left == name else left for left, right in pairs if name in (left, right))
