"""Shared secret: 32 random bytes that all parties know; the coordinator carries the messages but cannot read them.

Every party draws a piece and publishes a commitment to it together with a public key. Only when all commitments are
published does it seal its piece for each of the others. Every party checks every piece against its commitment and
derives the secret from all of them. One honest party's piece makes it uniform: no party can choose it.

*Who learns what*: each party learns the secret, the coordinator nothing. One party that passes on the secret reveals it
for all. *Not covered*: a party that sees the others' pieces first, because the coordinator delays its own, can still
end the run, and so choose between this secret and another one. In a study without identities, a coordinator that forges
public keys can read the secret; with identities it learns nothing. *Abort*: a piece that does not match its commitment
ends the run and names its sender.
"""

import hashlib
from collections.abc import Mapping

from syndic.errors import RefusedError
from syndic.kernel import Message, Party, Session, SubProtocol, step
from syndic.mpc.key import KEY_BYTES, KeyPair, agree_with, context, derive, key_pair
from syndic.mpc.order import advance
from syndic.mpc.seal import Mail, Place, seal, unseal


class SecretStart(Message):
    """Start the shared secret called `label`."""

    label: str


class SecretOffer(Message):
    """A party's public key and its commitment to its piece."""

    public: bytes
    commitment: bytes


class SecretOffers(Message):
    """The offers of all parties, by name."""

    label: str
    offers: dict[str, SecretOffer]


class SecretMail(Message):
    """The sealed pieces for one party, by sender."""

    label: str
    boxes: dict[str, bytes]


class SecretDone(Message):
    """A digest that shows the coordinator whether all parties have the same secret; it reveals nothing about it."""

    check: bytes


class _Own(Message):
    pair: KeyPair
    piece: bytes


class _Seen(Message):
    offers: dict[str, SecretOffer]


class _Shared(Message):
    secret: bytes


def commitment_to(piece: bytes, *, study: str, label: str, party: str) -> bytes:
    """Return the commitment to a piece: binding for its party, and hiding, as a piece is 32 uniform bytes."""
    return hashlib.sha256(context("secret piece", study, label, party, piece)).digest()


def combined(pieces: Mapping[str, bytes], *, study: str, label: str) -> bytes:
    """Return the secret derived from all pieces."""
    ordered = [part for name in sorted(pieces) for part in (name, pieces[name])]
    return derive(context(*ordered), "shared secret", study, label)


def checked_pieces(
    texts: Mapping[str, bytes], offers: Mapping[str, SecretOffer], *, study: str, label: str
) -> dict[str, bytes]:
    """Return the pieces of unsealed texts; if one does not match the offers, refuse and name its sender."""
    pieces = {}
    for sender, text in texts.items():
        piece, digest = text[:KEY_BYTES], text[KEY_BYTES:]
        if digest != digest_of(offers):
            raise RefusedError(
                f"{sender} received different offers for the secret '{label}': the coordinator or {sender} is dishonest"
            )
        if commitment_to(piece, study=study, label=label, party=sender) != offers[sender].commitment:
            raise RefusedError(f"{sender}'s piece of the secret '{label}' does not match its commitment")
        pieces[sender] = piece
    return pieces


def digest_of(offers: Mapping[str, SecretOffer]) -> bytes:
    """Return a digest of all offers. It is sent with each piece, so that all parties must have the same offers."""
    parts = [part for name in sorted(offers) for part in (name, offers[name].public, offers[name].commitment)]
    return hashlib.sha256(context("secret offers", *parts)).digest()


class SharedSecret(SubProtocol):
    """One shared secret with a public label. The coordinator calls `run`; afterwards parties have `value`."""

    label: str

    @property
    def rounds(self) -> tuple[str, ...]:
        """The names of its steps, in order."""
        return ("secret_offer", "secret_send", "secret_check")

    @step(reveals="public")
    def secret_offer(self, party: Party, message: SecretStart) -> SecretOffer:
        """Draw a piece of a shared secret; publish a key and a commitment to the piece."""
        self._begin(party, message.label, 1)
        randomness = party.key_randomness("secret offer")
        own = _Own(pair=key_pair(randomness), piece=randomness.bytes(KEY_BYTES))
        party.remember(f"secret {self.label} own", own)
        return SecretOffer(public=own.pair.public, commitment=self._commitment(party, own.piece))

    @step(reveals="sealed")
    def secret_send(self, party: Party, message: SecretOffers) -> Mail:
        """Seal this party's piece of the shared secret for every other party."""
        offers = message.offers
        self._begin(party, message.label, 2)
        own = party.recall(f"secret {self.label} own", _Own)
        names = {member.name for member in party.terms.parties}
        if offers.keys() != names or offers[party.name].commitment != self._commitment(party, own.piece):
            raise RefusedError(f"the offers for the secret '{self.label}' are incomplete or were changed")
        party.remember(f"secret {self.label} seen", _Seen(offers=offers))
        randomness = party.key_randomness("secret send")
        text = own.piece + digest_of(offers)
        return Mail(
            boxes={
                name: seal(secret, text, self._place(party, party.name, name), randomness)
                for name, secret in _agreed(party, own, offers).items()
            }
        )

    @step(reveals="public")
    def secret_check(self, party: Party, message: SecretMail) -> SecretDone:
        """Open the other parties' pieces, check them against their commitments, and store the resulting secret."""
        label = self.label
        self._begin(party, message.label, 3)
        own = party.recall(f"secret {label} own", _Own)
        offers = party.recall(f"secret {label} seen", _Seen).offers
        agreed = _agreed(party, own, offers)
        if message.boxes.keys() != agreed.keys():
            raise RefusedError(f"the secret '{label}' does not have one piece from every other party")
        texts = {
            name: unseal(secret, message.boxes[name], self._place(party, name, party.name))
            for name, secret in agreed.items()
        }
        pieces = checked_pieces(texts, offers, study=party.study, label=label)
        secret = combined({**pieces, party.name: own.piece}, study=party.study, label=label)
        # the last word of the name is fixed, so that no label can overwrite what another one stores
        party.remember(f"secret {label} shared", _Shared(secret=secret))
        return SecretDone(check=derive(secret, "check"))

    def value(self, party: Party) -> bytes:
        """Return the secret that all parties share. Private to the parties: `derive` keys from it."""
        return party.recall(f"secret {self.label} shared", _Shared).secret

    def pairs(self, party: Party) -> dict[str, bytes]:
        """Return the secrets that only this party and one other have, by name. Private: `derive` keys."""
        own = party.recall(f"secret {self.label} own", _Own)
        return _agreed(party, own, party.recall(f"secret {self.label} seen", _Seen).offers)

    def run(self, session: Session) -> None:
        """Run the coordinator's side: pass on offers, then sealed pieces. Afterwards every party has the secret."""
        label = self.label
        offers = session.ask(self.secret_offer, SecretStart(label=label))
        mail = session.ask(self.secret_send, SecretOffers(label=label, offers=offers))
        for sender, sent in mail.items():
            if sent.boxes.keys() != set(offers) - {sender}:
                raise RefusedError(f"{sender} did not send its piece of the secret '{label}' to every other party")
        inboxes = {
            name: SecretMail(
                label=label, boxes={sender: sent.boxes[name] for sender, sent in mail.items() if sender != name}
            )
            for name in offers
        }
        done = session.ask(self.secret_check, inboxes)
        if len({answer.check for answer in done.values()}) != 1:
            raise RefusedError(f"the parties do not have the same secret '{label}': the run stops")

    def _begin(self, party: Party, label: str, number: int) -> None:
        if label != self.label:
            raise RefusedError(f"unknown secret; the label of this study's shared secret is '{self.label}'")
        advance(party, f"secret {label}", number)

    def _commitment(self, party: Party, piece: bytes) -> bytes:
        return commitment_to(piece, study=party.study, label=self.label, party=party.name)

    def _place(self, party: Party, sender: str, receiver: str) -> Place:
        return Place(study=party.study, label=f"secret {self.label}", sender=sender, receiver=receiver)


def _agreed(party: Party, own: _Own, offers: Mapping[str, SecretOffer]) -> dict[str, bytes]:
    """Return the secret that this party shares with every other one, by name."""
    publics = {name: offer.public for name, offer in offers.items() if name != party.name}
    return agree_with(party, own.pair.private, publics)
