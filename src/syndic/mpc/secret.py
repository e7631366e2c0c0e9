"""Shared secret: 32 random bytes that all parties know and the coordinator carries but cannot read.

Every party draws a piece and publishes a commitment to it together with a public key. Only when all commitments are
there does it seal its piece for each of the others. Everybody checks every piece against its commitment and derives the
secret from all of them, so that one honest party's piece makes it uniform: no party chooses it.

*Who could learn what*: each party the secret, the coordinator nothing. One party that hands on the secret breaks it for
all. *Not covered*: a party that sees the others' pieces first, because the coordinator holds back its own, can still
end the run, and so choose between this secret and another try; in a study without identities, a coordinator that
forges public keys and so sits in between. With identities it learns nothing. *Abort*: a piece that does not fit its
commitment ends the run and names its sender.
"""

import hashlib
from collections.abc import Mapping

from syndic.errors import RefusedError
from syndic.kernel import Message, Party, Session, SubProtocol, step
from syndic.mpc.key import KEY_BYTES, KeyPair, agree_with, context, derive, key_pair
from syndic.mpc.order import advance
from syndic.mpc.seal import Mail, Place, seal, unseal


class SecretStart(Message):
    """Begin the shared secret called `label`."""

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
    """A digest by which the coordinator can tell that all parties have the same secret; it tells nothing of it."""

    check: bytes


class _Own(Message):
    pair: KeyPair
    piece: bytes


class _Seen(Message):
    offers: dict[str, SecretOffer]


class _Shared(Message):
    secret: bytes


def commitment_to(piece: bytes, *, study: str, label: str, party: str) -> bytes:
    """Return the commitment to a piece: it binds its party, and hides 32 uniform bytes."""
    return hashlib.sha256(context("secret piece", study, label, party, piece)).digest()


def combined(pieces: Mapping[str, bytes], *, study: str, label: str) -> bytes:
    """Return the secret made of all pieces."""
    ordered = [part for name in sorted(pieces) for part in (name, pieces[name])]
    return derive(context(*ordered), "shared secret", study, label)


def checked_pieces(
    texts: Mapping[str, bytes], offers: Mapping[str, SecretOffer], *, study: str, label: str
) -> dict[str, bytes]:
    """Return the pieces of unsealed texts; refuse, with the sender's name, what differs from the offers."""
    pieces = {}
    for sender, text in texts.items():
        piece, digest = text[:KEY_BYTES], text[KEY_BYTES:]
        if digest != digest_of(offers):
            raise RefusedError(f"{sender} was shown other offers for the secret '{label}': the coordinator or it lies")
        if commitment_to(piece, study=study, label=label, party=sender) != offers[sender].commitment:
            raise RefusedError(f"{sender}'s piece of the secret '{label}' does not fit its commitment: it changed it")
        pieces[sender] = piece
    return pieces


def digest_of(offers: Mapping[str, SecretOffer]) -> bytes:
    """Return a digest of all offers. It travels with each piece, so everybody must have seen the same ones."""
    parts = [part for name in sorted(offers) for part in (name, offers[name].public, offers[name].commitment)]
    return hashlib.sha256(context("secret offers", *parts)).digest()


class SharedSecret(SubProtocol):
    """One shared secret, under a public label. The coordinator calls `run`; afterwards parties have `value`."""

    label: str

    @property
    def rounds(self) -> tuple[str, ...]:
        """The names of its steps, in their order."""
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
            raise RefusedError(f"the offers for the secret '{self.label}' are not those of all parties of the study")
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
        """Open the others' pieces, check them against their commitments, keep the secret they make."""
        label = self.label
        self._begin(party, message.label, 3)
        own = party.recall(f"secret {label} own", _Own)
        offers = party.recall(f"secret {label} seen", _Seen).offers
        agreed = _agreed(party, own, offers)
        if message.boxes.keys() != agreed.keys():
            raise RefusedError(f"the pieces of the secret '{label}' are not those of all other parties")
        texts = {
            name: unseal(secret, message.boxes[name], self._place(party, name, party.name))
            for name, secret in agreed.items()
        }
        pieces = checked_pieces(texts, offers, study=party.study, label=label)
        secret = combined({**pieces, party.name: own.piece}, study=party.study, label=label)
        # the last word of a name is fixed, so that no label writes over what another one keeps
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
            raise RefusedError(f"the parties do not have the same secret '{label}': do not go on")

    def _begin(self, party: Party, label: str, number: int) -> None:
        if label != self.label:
            raise RefusedError(f"the secret '{self.label}' is shared here, under this label and no other")
        advance(party, f"secret {label}", number)

    def _commitment(self, party: Party, piece: bytes) -> bytes:
        return commitment_to(piece, study=party.study, label=self.label, party=party.name)

    def _place(self, party: Party, sender: str, receiver: str) -> Place:
        return Place(study=party.study, label=f"secret {self.label}", sender=sender, receiver=receiver)


def _agreed(party: Party, own: _Own, offers: Mapping[str, SecretOffer]) -> dict[str, bytes]:
    """Return the secret of this party with every other one."""
    publics = {name: offer.public for name, offer in offers.items() if name != party.name}
    return agree_with(party, own.pair.private, publics)
