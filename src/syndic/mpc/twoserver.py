"""A sum with noise that nobody knows, opened by two servers that do not collude.

Each party splits its integers in two: values masked by a seed go to the second server, the sealed seed to the first.
The noise of a value is the weighted sum of its coins less the mean (`syndic.noise.binomial`). A coin is b xor c, b
tossed by the first server and c by the second, which is b + c - 2 b c: the weighted sum of b c is a secure product of
the servers' coins, in which each proves to the other that its coins are bits (`syndic.mpc.product`). One server that
follows the steps makes every coin fair and unknown to all others. One copy of noise serves all parties.

*Unit*: that of the sensitivity for which the noise was calibrated; every party charges the whole release before it
shares. Coins are tossed and proven before that.
*Who learns what.* The coordinator (it deals the product and carries sealed boxes), each server, each other party, and
any of the other parties together with one server or with the coordinator: the opened sum only (and the values that
colluding parties submitted themselves).
*Who may lie.* The coordinator alone, or any parties but at most one server: what opens is the sum with the whole noise,
plus shifts that they chose. They can stop or falsify a run. False coins are refused but for a chance of 2^-60.
*What breaks it.* Both servers together, or the coordinator and one server, even if one of these two only looks and the
other lies: they learn the noise and the exact sum; with the second server's masked values and the first one's seeds,
every party's own values too. In a study without identities a coordinator that forges public keys can read what the
servers exchange. Steps are answered once and in order, so the sum opens once. No party may be missing.

What each server returns at the end is masked once more by numbers that only the two servers know: the dealer, who knows
half of its own triples, could otherwise solve for the coins. Digests of replies are published; therefore a reply whose
mask somebody other than the coordinator can compute also has random bytes. Coins are fresh in every computed reply: a
server that was put back and tossed the same ones again would show them. Private keys stay in the party's ledger file
until its stored answers are deleted: whoever gets the files of parties that must not collude can do what those could.
"""

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import Message, Nothing, Party, Session, SubProtocol, step
from syndic.mpc.coins import Coins, coin_product
from syndic.mpc.dealer import deal_products
from syndic.mpc.key import KEY_BYTES, KeyPair, PublicKey, agree_with, key_pair
from syndic.mpc.mask import expand
from syndic.mpc.order import advance
from syndic.mpc.product_messages import (
    ProductChallenge,
    ProductInbox,
    ProductOpening,
    ProductProof,
    ProductStart,
    ProductTurn,
)
from syndic.mpc.ring import Residues, field_for
from syndic.mpc.seal import Place, PublicKeys, seal, unseal
from syndic.noise.binomial import BinomialNoise

_WHAT = "noisy sum"


class TwoShares(Message):
    """A party's masked values, packed to the bits of the field, and the mask's seed sealed for the first server.

    `blind` is random and not used: digests of replies are public, and the first server, which opens the box, could
    otherwise try values until the digest matches.
    """

    masked: bytes
    box: bytes
    blind: bytes


class TwoStart(Message):
    """What a server opens: the sealed seeds (first server), or the masked total (second server)."""

    boxes: dict[str, bytes]
    total: bytes


class TwoOpened(Message):
    """A server's share of the noisy sum, packed to the bits of the field."""

    share: bytes


class _Noise(Message):
    share: NDArray[np.int64]


@final
class TwoServers(SubProtocol):
    """Public parameters: the two servers, the number of values, the largest sum, and the noise on each value.

    A method's own step, `reveals="masked"`, takes `PublicKeys`, passes them to `meet`, counts, charges, and returns
    `shares` of its values, which add up to 0 .. `largest`; its `coordinate` calls `open` with that step.
    """

    servers: tuple[str, str]
    dimension: int
    largest: int
    noise: BinomialNoise

    @property
    def field(self) -> Residues:
        """The field that holds every sum with its noise."""
        return field_for(self.largest // 2 + self.noise.reach + 1)

    @property
    def product(self) -> Coins:
        """The secure product of the servers' coins."""
        return coin_product("noise", self.noise, {self.servers: self.dimension}, self.field)

    def other(self, server: str) -> str:
        """Return the other server's name."""
        return self.servers[1] if server == self.servers[0] else self.servers[0]

    def _check_server(self, party: Party) -> None:
        if party.name not in self.servers:
            raise RefusedError(f"{party.name} is not one of the two servers")

    def rounds(self, contribute: str) -> tuple[str, ...]:
        """Return the names of the steps of one noisy sum, including the method's own step, in order."""
        return ("two_keys", *self.product.rounds, contribute, "two_open")

    @step(reveals="public")
    def two_keys(self, party: Party, message: Nothing) -> PublicKey:
        """Create a key pair and publish its public key."""
        del message
        advance(party, _WHAT, 1)
        pair = key_pair(party.key_randomness("key"))
        party.remember("two pair", pair)
        return PublicKey(public=pair.public)

    @step(reveals="public")
    def product_keys(self, party: Party, message: ProductStart) -> PublicKey:
        """Store the dealer's seed, create a server's key pair and publish the public key."""
        self._check_server(party)
        return self.product.product_keys(party, message)

    @step(reveals="sealed")
    def product_masked(self, party: Party, message: ProductTurn) -> ProductOpening:
        """Toss a server's coins, mask them and seal them for the other server."""
        return self.product.mask(party, message)

    @step(reveals="sealed")
    def product_proved(self, party: Party, message: ProductChallenge) -> ProductProof:
        """Prove that the masked coins are bits."""
        return self.product.prove(party, message)

    @step(reveals="sealed")
    def product_multiplied(self, party: Party, message: ProductInbox) -> Nothing:
        """Check the proof of the other server's coins, and multiply with them."""
        return self.product.multiply(party, message)

    def meet(self, party: Party, message: PublicKeys) -> None:
        """Store all public keys; call it first in the step that shares values, which is answered once.

        A server refuses unless the other one's coins were proven: nothing is charged for noise that is not there.
        """
        advance(party, _WHAT, 2)
        if set(message.keys) != {member.name for member in party.terms.parties}:
            raise RefusedError(
                "the message does not have one public key for each party of the study: run the study again"
            )
        party.remember("two keys", message)
        # an invalid key is refused here, before the step has charged anything
        _secret(party, self.servers[0])
        if party.name in self.servers:
            (share,) = self.product.noise_shares(party).values()
            party.remember("two noise", _Noise(share=share))

    def shares(self, party: Party, values: NDArray[np.int64]) -> TwoShares:
        """Split the values: masked for the second server, the seed sealed for the first."""
        field, seed, receiver = self.field, party.key_randomness("seed").bytes(KEY_BYTES), self.servers[0]
        masked = field.add(field.reduce(values), expand(seed, b"two server values", self.dimension, field))
        box = seal(_secret(party, receiver), seed, _place(party, party.name, receiver), party.key_randomness("box"))
        return TwoShares(masked=field.pack(masked), box=box, blind=party.key_randomness("blind").bytes(KEY_BYTES))

    @step(reveals="masked")
    def two_open(self, party: Party, message: TwoStart) -> TwoOpened:
        """Add the share of the noise to the share of the sum, mask it and return it."""
        self._check_server(party)
        advance(party, _WHAT, 3)
        field, noise = self.field, party.recall("two noise", _Noise).share
        first = party.name == self.servers[0]
        total = self._minus_masks(party, message.boxes) if first else field.unpack(message.total, self.dimension)
        noisy = total.astype(np.int64) + noise
        return TwoOpened(share=field.pack(self.product.hide(party, self.other(party.name), noisy, field)))

    def _minus_masks(self, party: Party, boxes: Mapping[str, bytes]) -> NDArray[Any]:
        """Return minus the sum of all parties' masks; a party that is missing would leave the sum uniform."""
        names = [member.name for member in party.terms.parties]
        if sorted(boxes) != sorted(names):
            raise RefusedError(
                "the message does not have one sealed seed for each party of the study: run the study again"
            )
        field = self.field
        total = field.reduce(np.zeros(self.dimension, dtype=np.int64))
        for name in names:
            seed = unseal(_secret(party, name), boxes[name], _place(party, name, party.name))
            total = field.subtract(total, expand(seed, b"two server values", self.dimension, field))
        return total

    def open(self, session: Session, contribute: Callable[[Any, PublicKeys], TwoShares]) -> NDArray[np.int64]:
        """Run the coordinator's side and return the parties' sum with its noise."""
        field = self.field
        keys = session.ask(self.two_keys, Nothing())
        deal_products(session, self, self.product)
        answers = session.ask(contribute, PublicKeys(keys={name: key.public for name, key in keys.items()}))
        total = field.reduce(np.zeros(self.dimension, dtype=np.int64))
        for answer in answers.values():
            total = field.add(total, field.unpack(answer.masked, self.dimension))
        first, second = self.servers
        boxes = {name: answer.box for name, answer in answers.items()}
        starts = {first: TwoStart(boxes=boxes, total=b""), second: TwoStart(boxes={}, total=field.pack(total))}
        opened = session.ask(self.two_open, starts)
        one, other = (field.unpack(opened[name].share, self.dimension).astype(np.int64) for name in self.servers)
        # sums are 0 .. largest, and noise goes as far below as above
        reach = self.noise.reach
        return field.reduce(one + other + reach).astype(np.int64) - reach


def _secret(party: Party, other: str) -> bytes:
    private = party.recall("two pair", KeyPair).private
    public = party.recall("two keys", PublicKeys).keys[other]
    return agree_with(party, private, {other: public})[other]


def _place(party: Party, sender: str, receiver: str) -> Place:
    return Place(study=party.study, label="two servers, seed", sender=sender, receiver=receiver)
