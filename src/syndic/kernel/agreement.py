"""An organisation's signed agreement to one run of one study, and the checks that other parties make first."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, Self

import msgspec
from msgspec.structs import replace

from syndic.document import Document, from_json, to_json
from syndic.errors import InputError, RefusedError
from syndic.kernel.codec import Message
from syndic.kernel.identity import PublicIdentity
from syndic.kernel.memory import Head
from syndic.kernel.terms import Terms

_HEADING: Final = b"syndic agreement 2\n"
# more than a thousand times the length of an honest one
_MOST_BYTES: Final = 10**6

Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class Ready(Message, omit_defaults=True):
    """A party is ready to answer. `agreement` is its signed agreement, if the parties have identities.

    `head` is that of its memory of the run, and `seen` has the newest heads that it saw of the others.
    """

    agreement: bytes = b""
    head: Head = Head()
    seen: dict[str, Head] = msgspec.field(default_factory=dict)


class Agreements(Message, omit_defaults=True):
    """The signed agreements of all parties, by name; their heads, and the newest heads that anybody saw of them."""

    agreements: dict[str, bytes]
    heads: dict[str, Head] = msgspec.field(default_factory=dict)
    seen: dict[str, Head] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, ready: Mapping[str, Ready]) -> Self:
        """Return what all parties are shown of each other."""
        seen: dict[str, Head] = {}
        for one in ready.values():
            for name, head in one.seen.items():
                seen[name] = max(seen.get(name, Head()), head, key=lambda each: each.number)
        heads = {name: one.head for name, one in ready.items() if one.head.number}
        return cls(agreements={name: one.agreement for name, one in ready.items()}, heads=heads, seen=seen)


class Agreement(Document):
    """One organisation's agreement to a run. Public; times are in UTC.

    `run` is the digest that every call carries, `syndic` the version of the code that was agreed to. `rehearsal` is
    the seed of a reproducible run, which is not private; its digest differs from the study's. `person` is who agreed
    for the party: a user of its console, or an account of its machine.
    """

    run: str
    party: str
    syndic: str
    signed_at: Moment
    expires: Moment
    rehearsal: int | None = None
    person: str = ""
    signature: str = ""

    def text(self) -> bytes:
        """Return the signed bytes: everything except the signature."""
        return _HEADING + to_json(replace(self, signature=""))

    def check_time(self, now: datetime) -> None:
        """Raise `RefusedError` if the agreement has expired."""
        if now >= self.expires:
            # in its own time zone: the first and last representable days cannot be converted to UTC
            raise RefusedError(f"the agreement of {self.party} expired on {self.expires:%Y-%m-%d %H:%M %Z}")


def read_agreement(written: bytes, *, party: str) -> Agreement:
    """Read an agreement; refuse it if any byte differs from its canonical form."""
    try:
        agreement = from_json(written[:_MOST_BYTES], Agreement, where="agreement")
    except InputError:
        raise RefusedError(f"the agreement of {party} cannot be read: it is not a valid agreement file") from None
    if to_json(agreement) != written:
        raise RefusedError(f"the agreement of {party} was changed after it was written")
    return agreement


def check_agreement(agreement: Agreement, *, identity: str, run: str, party: str, syndic: str) -> None:
    """Raise `RefusedError` unless the party signed this agreement, for this run and version, and it has not expired."""
    try:
        signature = bytes.fromhex(agreement.signature)
    except ValueError:
        signature = b""
    known = PublicIdentity.read(identity)
    if signature.hex() != agreement.signature or not known.signed(agreement.text(), signature):
        raise RefusedError(f"the agreement of {party} does not carry the signature of {party}'s identity in the study")
    if (agreement.run, agreement.party) != (run, party):
        raise RefusedError(
            f"the agreement of {party} names party {agreement.party} and run {agreement.run[:12]}, not run "
            f"{run[:12]}: compare the study files"
        )
    if agreement.syndic != syndic:
        raise RefusedError(
            f"{party} agreed to Syndic {agreement.syndic}, but {syndic} is installed here: install the same version at "
            "every party and agree again"
        )
    agreement.check_time(datetime.now(UTC))


def check_all(agreements: Mapping[str, bytes], terms: Terms, *, run: str, syndic: str) -> None:
    """Raise `RefusedError` unless every party of the study has agreed to this run."""
    for member in terms.parties:
        if member.identity is None or member.name not in agreements:
            raise RefusedError(f"{member.name} has not agreed to study {run[:12]}: parties answer once all have agreed")
        agreement = read_agreement(agreements[member.name], party=member.name)
        check_agreement(agreement, identity=member.identity, run=run, party=member.name, syndic=syndic)
