"""The arithmetic of a masked sum: masks that cancel, masks that are opened, and what opens them.

Every party has two key pairs, one to seal shares and one to make masks, and a seed. It adds to its values the mask of
its seed, and for every neighbour the mask of their common secret: plus at the earlier of the two in the study's list,
minus at the later, so these cancel. Seed and private mask key are shared among the neighbours: for a party whose masked
values arrived the seed is opened, for one whose values did not the key, never both.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import Message
from syndic.mpc.graph import SumPlan, neighbours_of
from syndic.mpc.key import KEY_BYTES, KeyPair, agree_all, context, key_pair, public_of
from syndic.mpc.mask import expand
from syndic.mpc.ring import Ring
from syndic.mpc.seal import OVERHEAD_BYTES, Place, seal, unseal
from syndic.mpc.shamir import recover, share
from syndic.random import Randomness

SHARE_BYTES = 2 * KEY_BYTES
BOX_BYTES = SHARE_BYTES + OVERHEAD_BYTES


class Secrets(Message):
    """What a party makes for one masked sum and keeps: private."""

    seal: KeyPair
    mask: KeyPair
    seed: bytes


@final
@dataclass(frozen=True, kw_only=True)
class Table:
    """What one masked sum is bound to, and who takes part: `names` in the study's order. Public."""

    study: str
    label: str
    names: tuple[str, ...]
    plan: SumPlan

    def neighbours(self, party: int) -> list[int]:
        """Return a party's neighbours, by their place in the study's list."""
        return [int(place) for place in neighbours_of(self.plan, self.study, party)]

    def place(self, sender: int, receiver: int) -> Place:
        """Return where the shares of `sender` for `receiver` belong."""
        return Place(
            study=self.study, label=f"sum {self.label}", sender=self.names[sender], receiver=self.names[receiver]
        )

    def pair(self, one: int, other: int) -> bytes:
        """Return what a pair's mask is bound to."""
        first, second = sorted((one, other))
        return context("sum pair", self.study, self.label, self.names[first], self.names[second])

    def own(self, party: int) -> bytes:
        """Return what the mask of a party's seed is bound to."""
        return context("sum own", self.study, self.label, self.names[party])

    def commitment(self, party: int, seed: bytes) -> bytes:
        """Return the digest by which everybody can tell the opened seed from any other; it tells nothing of it."""
        return hashlib.sha256(context("sum seed", self.own(party), seed)).digest()


def make_secrets(randomness: Randomness) -> Secrets:
    """Return new keys and a new seed."""
    return Secrets(seal=key_pair(randomness), mask=key_pair(randomness), seed=randomness.bytes(KEY_BYTES))


def deal(
    table: Table, party: int, secrets: Secrets, agreed: Mapping[int, bytes], randomness: Randomness
) -> dict[int, bytes]:
    """Return for every neighbour in `agreed` a sealed share of the seed and of the private mask key.

    `agreed` has the secrets of the sealing keys. A neighbour's point is its place among all neighbours, from 1.
    """
    points = {neighbour: place for place, neighbour in enumerate(table.neighbours(party), 1) if neighbour in agreed}
    if len(points) < table.plan.threshold:
        raise RefusedError(
            f"{table.names[party]} has {len(points)} neighbours left, and {table.plan.threshold} are needed to open "
            f"the sum '{table.label}': run the study again when more parties can answer"
        )
    shares = share(secrets.seed + secrets.mask.private, list(points.values()), table.plan.threshold, randomness)
    return {
        neighbour: seal(agreed[neighbour], text, table.place(party, neighbour), randomness)
        for neighbour, text in zip(points, shares, strict=True)
    }


def collect(table: Table, party: int, agreed: Mapping[int, bytes], boxes: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return what the neighbours dealt to this party; a box that does not open is refused."""
    if len(boxes) < table.plan.threshold:
        raise RefusedError(
            f"{table.names[party]} got shares of {len(boxes)} neighbours, and {table.plan.threshold} are needed to "
            f"open the sum '{table.label}': run the study again when more parties can answer"
        )
    opened = {sender: unseal(agreed[sender], box, table.place(sender, party)) for sender, box in boxes.items()}
    for sender, text in opened.items():
        if len(text) != SHARE_BYTES:
            raise RefusedError(f"{table.names[sender]} dealt a share of the wrong length: it does not follow the study")
    return opened


def masks_of(
    table: Table, party: int, secrets: Secrets, neighbours: Mapping[int, bytes], count: int, ring: Ring
) -> NDArray[Any]:
    """Return what a party adds to its `count` values, given the public mask keys of its neighbours."""
    masks = expand(secrets.seed, table.own(party), count, ring)
    return add_pairs(table, party, secrets.mask.private, neighbours, masks, ring)


def add_pairs(
    table: Table, party: int, private: bytes, neighbours: Mapping[int, bytes], start: NDArray[Any], ring: Ring
) -> NDArray[Any]:
    """Return `start` with the masks that a party has in common with some neighbours, given their public mask keys."""
    total = start
    for neighbour, secret in zip(neighbours, agree_all(private, neighbours.values()), strict=True):
        mask = expand(secret, table.pair(party, neighbour), len(start), ring)
        total = ring.add(total, mask) if party < neighbour else ring.subtract(total, mask)
    return total


def openings(held: Mapping[int, bytes], survived: Iterable[int]) -> dict[int, bytes]:
    """Return one half of every share: of the seed of a party that survived, of the key of one that did not."""
    alive = set(survived)
    return {
        dealer: text[:KEY_BYTES] if dealer in alive else text[KEY_BYTES:SHARE_BYTES] for dealer, text in held.items()
    }


@final
@dataclass(frozen=True, kw_only=True)
class Gathered:
    """What the coordinator has at the end of a masked sum: all of it may be seen by anyone.

    `dealt` are the parties whose shares were passed on, `commitments` and `mask_keys` what they published, and
    `opened[holder][dealer]` is a half share.
    """

    table: Table
    commitments: Mapping[int, bytes]
    mask_keys: Mapping[int, bytes]
    dealt: frozenset[int]
    masked: Mapping[int, NDArray[Any]]
    opened: Mapping[int, Mapping[int, bytes]]


def unmask(gathered: Gathered, ring: Ring) -> NDArray[np.int64]:
    """Return the sum of the values of all parties whose masked values arrived."""
    table = gathered.table
    arrived = list(gathered.masked.items())
    total = np.zeros_like(arrived[0][1])
    for party, values in arrived:
        seed = _recovered(gathered, party)
        if table.commitment(party, seed) != gathered.commitments[party]:
            raise _wrong_share(table, party, "seed")
        total = ring.add(total, ring.subtract(values, expand(seed, table.own(party), len(values), ring)))
    for party in sorted(gathered.dealt - gathered.masked.keys()):
        private = _recovered(gathered, party)
        if public_of(private) != gathered.mask_keys[party]:
            raise _wrong_share(table, party, "mask key")
        others = [other for other in table.neighbours(party) if other in gathered.masked]
        # the mask this party would have added is the one that its neighbours' sums lack
        total = add_pairs(table, party, private, {other: gathered.mask_keys[other] for other in others}, total, ring)
    return ring.lift(total)


def _recovered(gathered: Gathered, party: int) -> bytes:
    table = gathered.table
    holders = {
        place: gathered.opened[neighbour][party]
        for place, neighbour in enumerate(table.neighbours(party), 1)
        if party in gathered.opened.get(neighbour, {})
    }
    points = sorted(holders)[: table.plan.threshold]
    if len(points) < table.plan.threshold:
        raise RefusedError(
            f"only {len(points)} shares of {table.names[party]} came back, and {table.plan.threshold} are needed: "
            "the sum stays closed; what was charged stays charged"
        )
    return recover([holders[point] for point in points], points)


def _wrong_share(table: Table, party: int, what: str) -> RefusedError:
    return RefusedError(
        f"the shares of {table.names[party]}'s {what} do not fit what it published: it dealt wrong shares or a "
        "neighbour gave a wrong one. The sum stays closed; what was charged stays charged"
    )
