"""A sum with noise that nobody knows, opened by two servers that do not collude.

Each party splits its integers in two: values masked by a seed go to the second server, the sealed seed to the first.
The servers toss the coins of the noise (`syndic.mpc.gmw`, `syndic.noise.circuit_bits`) on shares, add noise and sum on
shares modulo 2^b, and open once. One copy of noise serves all parties, and no party, server or coordinator can
subtract any part of it.

*Unit*: that of the sensitivity for which the noise was calibrated; every party charges the whole release before it
shares.
*Who learns what.* Coordinator (it deals the triples and carries sealed boxes), each server, each other party, and
any of the other parties together with one server or with the coordinator: the opened sum only (and the values that
colluding parties submitted themselves).
*What breaks it.* Both servers together, or the coordinator and one server: they learn the noise and the exact sum; with
the second server's masked values and the first one's seeds, every party's own values too. *Semi-honest*: all follow
the steps. A party can submit any numbers; a server can shift the result; in a study without identities a coordinator
that forges public keys can read what the servers exchange. Steps are answered once and in order, so the sum opens
once. No party may be missing. A coordinator that restarts must deal the same triples, from the secret in its journal.

What each server returns at the end is masked once more by numbers that only the two servers know: the dealer, who knows
its own triples, could otherwise solve for the coins. Digests of replies are published; therefore a reply whose mask
somebody other than the coordinator can compute also has random bytes. Private keys stay in the party's ledger file
until its stored answers are deleted: whoever gets the files of parties that must not collude can do what those could.
"""

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import Message, Nothing, Party, Session, SubProtocol, step
from syndic.mpc import gmw
from syndic.mpc.key import KEY_BYTES, KeyPair, agree_with, derive, key_pair
from syndic.mpc.mask import expand
from syndic.mpc.order import advance
from syndic.mpc.ring import Ring
from syndic.mpc.seal import Place, PublicKeys, seal, unseal
from syndic.noise.circuit_bits import BitNoise

_WHAT = "noisy sum"
_NO_WORDS = np.empty(0, dtype=np.uint64)


class TwoKey(Message):
    """A party's public key."""

    public: bytes


class TwoShares(Message):
    """A party's masked values, packed to the bits of the ring, and the mask's seed sealed for the first server.

    `blind` is random and not used: digests of replies are public, and the first server, which opens the box, could
    otherwise try values until the digest matches.
    """

    masked: bytes
    box: bytes
    blind: bytes


class TwoStart(Message):
    """What a server starts with: a dealer's key.

    Also the sealed seeds (first server), or the masked total and the dealer's corrections (second server).
    """

    key: bytes
    boxes: dict[str, bytes]
    total: bytes
    products: NDArray[np.uint64]
    masks: bytes


class TwoBits(Message):
    """Masked bits of one level, sealed for the other server."""

    level: int
    box: bytes


class TwoOpened(Message):
    """A server's share of the noisy sum, packed to the bits of the ring."""

    share: bytes


class _Setup(Message):
    key: bytes
    total: bytes
    products: NDArray[np.uint64]
    masks: bytes


class _Tree(Message):
    less: NDArray[np.uint64]
    equal: NDArray[np.uint64]


@final
class TwoServers(SubProtocol):
    """Public parameters: the two servers, the number of values, the ring, and the noise on each value.

    A method's own step, `reveals="masked"`, takes `PublicKeys`, passes them to `meet`, counts, charges, and returns
    `shares` of its values; its `coordinate` calls `open` with that step.
    """

    servers: tuple[str, str]
    dimension: int
    ring: Ring
    noise: BitNoise

    @property
    def coins(self) -> gmw.Coins:
        """The coins of all values, in order."""
        return gmw.toss(self.noise.thresholds, self.noise.sources, self.dimension, self.ring)

    def other(self, server: str) -> str:
        """Return the other server's name."""
        return self.servers[1] if server == self.servers[0] else self.servers[0]

    def noise_from(self, coins: NDArray[Any], *, first: bool) -> NDArray[Any]:
        """Return a server's share of the noise from its shares of the coins."""
        weights = self.ring.reduce(np.array(self.noise.weights, dtype=np.int64))
        weighted = np.multiply(coins.reshape(self.dimension, -1), weights, dtype=self.ring.dtype)
        total = self.ring.reduce(weighted.sum(axis=1, dtype=self.ring.dtype))
        offset = self.ring.reduce(np.full(self.dimension, self.noise.offset, dtype=np.int64))
        return self.ring.add(total, offset) if first else total

    def rounds(self, contribute: str) -> tuple[str, ...]:
        """Return the names of the steps of one noisy sum, including the method's own step, in order."""
        return ("two_keys", contribute, "two_begin", "two_toss", "two_open")

    @step(reveals="public")
    def two_keys(self, party: Party, message: Nothing) -> TwoKey:
        """Create a key pair and publish its public key."""
        del message
        advance(party, _WHAT, 1)
        pair = key_pair(party.key_randomness("key"))
        party.remember("two pair", pair)
        return TwoKey(public=pair.public)

    def meet(self, party: Party, message: PublicKeys) -> None:
        """Store all public keys; call it first in the step that shares values, which is answered once."""
        advance(party, _WHAT, 2)
        if set(message.keys) != {member.name for member in party.terms.parties}:
            raise RefusedError(
                "the message does not have one public key for each party of the study: run the study again"
            )
        party.remember("two keys", message)
        # an invalid key is refused here, before the step has charged anything
        _secret(party, self.servers[0])

    def shares(self, party: Party, values: NDArray[np.int64]) -> TwoShares:
        """Split the values: masked for the second server, the seed sealed for the first."""
        seed = party.key_randomness("seed").bytes(KEY_BYTES)
        masks = expand(seed, b"two server values", self.dimension, self.ring)
        masked = self.ring.add(self.ring.reduce(values), masks)
        receiver = self.servers[0]
        box = seal(
            _secret(party, receiver), seed, _place(party, "seed", party.name, receiver), party.key_randomness("box")
        )
        return TwoShares(masked=self.ring.pack(masked), box=box, blind=party.key_randomness("blind").bytes(KEY_BYTES))

    @step(reveals="sealed")
    def two_begin(self, party: Party, message: TwoStart) -> TwoBits:
        """Store the parties' shares and the dealer's half, and start the coin toss."""
        advance(party, _WHAT, 3)
        if party.name not in self.servers:
            raise RefusedError(f"{party.name} is not one of the two servers")
        total = _seeds_total(party, message, self) if party.name == self.servers[0] else message.total
        party.remember(
            "two setup", _Setup(key=message.key, total=total, products=message.products, masks=message.masks)
        )
        half, coins = _half(party, self)
        node = gmw.begin(half, derive(_common(party, self), "coins"), coins)
        return _send_bits(party, self, 1, node, gmw.open_level(half, 1, node, coins))

    @step(reveals="sealed")
    def two_toss(self, party: Party, message: TwoBits) -> TwoBits:
        """Combine one level with the other server's bits, and mask the next level."""
        advance(party, _WHAT, 3 + message.level)
        half, coins = _half(party, self)
        theirs = _receive_bits(party, self, message, coins)
        node = gmw.close_level(half, message.level, _node(party), theirs, coins)
        level = message.level + 1
        if level <= gmw.LEVELS:
            return _send_bits(party, self, level, node, gmw.open_level(half, level, node, coins))
        return _send_bits(party, self, level, node, gmw.open_coins(half, node, coins))

    @step(reveals="masked")
    def two_open(self, party: Party, message: TwoBits) -> TwoOpened:
        """Convert the coins into a share of the noise, add it to the share of the sum, mask it and return it."""
        advance(party, _WHAT, 4 + gmw.LEVELS)
        if message.level != gmw.LEVELS + 1:
            raise RefusedError(f"expected the bits of the coins, found those of level {message.level}")
        half, coins = _half(party, self)
        theirs = _receive_bits(party, self, message, coins)
        noise = self.noise_from(gmw.close_coins(half, _node(party), theirs, coins), first=half.first)
        total = self.ring.unpack(party.recall("two setup", _Setup).total, self.dimension)
        zero = expand(derive(_common(party, self), "open"), b"zero", self.dimension, self.ring)
        change = self.ring.add if half.first else self.ring.subtract
        return TwoOpened(share=self.ring.pack(change(self.ring.add(total, noise), zero)))

    def open(self, session: Session, contribute: Callable[[Any, PublicKeys], TwoShares]) -> NDArray[np.int64]:
        """Run the coordinator's side and return the parties' sum with its noise."""
        ring = self.ring
        keys = session.ask(self.two_keys, Nothing())
        answers = session.ask(contribute, PublicKeys(keys={name: key.public for name, key in keys.items()}))
        total = ring.reduce(np.zeros(self.dimension, dtype=np.int64))
        for answer in answers.values():
            total = ring.add(total, ring.unpack(answer.masked, self.dimension))
        boxes = {name: answer.box for name, answer in answers.items()}
        bits = session.ask(self.two_begin, _starts(session, self, boxes, total))
        for _ in range(gmw.LEVELS):
            bits = session.ask(self.two_toss, _swapped(self, bits))
        opened = session.ask(self.two_open, _swapped(self, bits))
        first, second = (ring.unpack(opened[name].share, self.dimension) for name in self.servers)
        return ring.lift(ring.add(first, second))


def _starts(
    session: Session, agreed: TwoServers, boxes: Mapping[str, bytes], total: NDArray[Any]
) -> dict[str, TwoStart]:
    one, two = (session.randomness.bytes(KEY_BYTES) for _ in agreed.servers)
    half = gmw.deal(one, two, agreed.coins)
    pack = agreed.ring.pack
    return {
        agreed.servers[0]: TwoStart(key=one, boxes=dict(boxes), total=b"", products=_NO_WORDS, masks=b""),
        agreed.servers[1]: TwoStart(
            key=two, boxes={}, total=pack(total), products=half.products, masks=pack(half.masks)
        ),
    }


def _swapped(agreed: TwoServers, bits: Mapping[str, TwoBits]) -> dict[str, TwoBits]:
    return {name: bits[agreed.other(name)] for name in agreed.servers}


def _seeds_total(party: Party, message: TwoStart, agreed: TwoServers) -> bytes:
    """Return minus the sum of all parties' masks; a party that is missing would leave the sum uniform."""
    ring = agreed.ring
    names = [member.name for member in party.terms.parties]
    if sorted(message.boxes) != sorted(names):
        raise RefusedError("the message does not have one sealed seed for each party of the study: run the study again")
    total = ring.reduce(np.zeros(agreed.dimension, dtype=np.int64))
    for name in names:
        seed = unseal(_secret(party, name), message.boxes[name], _place(party, "seed", name, party.name))
        total = ring.subtract(total, expand(seed, b"two server values", agreed.dimension, ring))
    return ring.pack(total)


def _half(party: Party, agreed: TwoServers) -> tuple[gmw.Half, gmw.Coins]:
    setup, coins = party.recall("two setup", _Setup), agreed.coins
    if party.name == agreed.servers[0]:
        return gmw.Half(key=setup.key, first=True, products=_NO_WORDS, masks=_NO_WORDS), coins
    if setup.products.size != gmw.correction_words(coins):
        raise RefusedError("the dealer's corrections have the wrong size: run the study again")
    masks = agreed.ring.unpack(setup.masks, coins.count)
    return gmw.Half(key=setup.key, first=False, products=setup.products, masks=masks), coins


def _node(party: Party) -> gmw.Node:
    tree = party.recall("two tree", _Tree)
    return gmw.Node(less=tree.less, equal=tree.equal)


def _send_bits(party: Party, agreed: TwoServers, level: int, node: gmw.Node, planes: gmw.Planes) -> TwoBits:
    party.remember("two tree", _Tree(less=node.less, equal=node.equal))
    receiver = agreed.other(party.name)
    place = _place(party, f"level {level}", party.name, receiver)
    text = planes.astype("<u8", copy=False).tobytes()
    return TwoBits(level=level, box=seal(_secret(party, receiver), text, place, party.key_randomness("box")))


def _receive_bits(party: Party, agreed: TwoServers, message: TwoBits, coins: gmw.Coins) -> gmw.Planes:
    sender = agreed.other(party.name)
    place = _place(party, f"level {message.level}", sender, party.name)
    text = unseal(_secret(party, sender), message.box, place)
    if len(text) != 8 * gmw.rows_at(message.level) * coins.words:
        raise RefusedError(f"the other server's bits of level {message.level} have the wrong size: run the study again")
    planes = np.frombuffer(text, dtype="<u8").astype(np.uint64, copy=False)
    return planes.reshape(gmw.rows_at(message.level), coins.words)


def _secret(party: Party, other: str) -> bytes:
    private = party.recall("two pair", KeyPair).private
    public = party.recall("two keys", PublicKeys).keys[other]
    return agree_with(party, private, {other: public})[other]


def _common(party: Party, agreed: TwoServers) -> bytes:
    """Return the secret that the two servers share, bound to the study."""
    return derive(_secret(party, agreed.other(party.name)), "two servers", party.study, *agreed.servers)


def _place(party: Party, what: str, sender: str, receiver: str) -> Place:
    return Place(study=party.study, label=f"two servers, {what}", sender=sender, receiver=receiver)
