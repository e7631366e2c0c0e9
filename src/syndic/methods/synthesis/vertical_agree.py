"""Parties make sure that all of them were asked the same before a round of a vertical synthesis opens anything.

The noise of a round is calibrated to the tables of one question, wherever they are counted. A person is at all parties,
so a coordinator that asked each of them for one table of its own would get all of these with the noise of one. So every
party vouches for its question to every other, by a key that the two agree on, and opens nothing without the vouchers
of all others for its own question. With identities in the study nobody else can make such a voucher; without them a
coordinator that forges public keys can.
"""

import hmac

from syndic.errors import RefusedError
from syndic.kernel import Message, Party
from syndic.methods.synthesis.measure import Question
from syndic.mpc.key import KeyPair, agree_with, derive, key_pair
from syndic.mpc.seal import Mail


class RoundKey(Message):
    """A party's public key of one round."""

    public: bytes


class RoundKeys(Message):
    """The public keys of all other parties, by name."""

    keys: dict[str, bytes]


class RoundClose(Message):
    """For one party: the vouchers of all other parties, by name."""

    vouchers: dict[str, bytes]


class _Own(Message):
    pair: KeyPair


class _Met(Message):
    keys: dict[str, bytes]


def key_of(party: Party, question: Question) -> RoundKey:
    """Make and keep a key pair for the round."""
    pair = key_pair(party.key_randomness("round key"))
    party.remember(_name(question, "own"), _Own(pair=pair))
    return RoundKey(public=pair.public)


def vouchers_of(party: Party, question: Question, keys: dict[str, bytes]) -> Mail:
    """Return for every other party what shows it, and nobody else, what this party was asked."""
    others = {one.name for one in party.terms.parties} - {party.name}
    if keys.keys() != others:
        raise RefusedError(f"round {question.number}: the public keys are not those of all other parties")
    party.remember(_name(question, "met"), _Met(keys=keys))
    return Mail(boxes={name: _voucher(party, question, party.name, name) for name in sorted(others)})


def check_vouchers(party: Party, question: Question, vouchers: dict[str, bytes]) -> None:
    """Refuse unless every other party vouched for the question that this party was asked."""
    for name in party.recall(_name(question, "met"), _Met).keys:
        if not hmac.compare_digest(vouchers.get(name, b""), _voucher(party, question, name, party.name)):
            raise RefusedError(
                f"round {question.number}: {name} was not asked the same as {party.name}, so nothing is opened: "
                "use a new edition"
            )


def _voucher(party: Party, question: Question, sender: str, receiver: str) -> bytes:
    own = party.recall(_name(question, "own"), _Own).pair
    keys = party.recall(_name(question, "met"), _Met).keys
    other = receiver if sender == party.name else sender
    secret = agree_with(party, own.private, {other: keys[other]})[other]
    return derive(secret, "round asked", party.study, question.digest, sender, receiver)


def _name(question: Question, what: str) -> str:
    return f"vouching in round {question.number} {what}"
