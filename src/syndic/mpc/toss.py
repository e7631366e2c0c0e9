"""Public coin toss: 32 random bytes that everybody may know and that nobody chose.

Every party draws a piece and publishes a commitment to it; when all commitments are there it publishes the piece.
Everybody checks every piece against its commitment and derives the bytes from all of them: one honest party's piece
makes them uniform.

*Who could learn what*: everybody the bytes, and nothing else is in them. Use them where a guarantee holds whatever they
are, and only the quality of a result asks that nobody picked them. *Not covered*: a coordinator that ends the run after
it saw the pieces, and so chooses between this toss and another try; or one that forges commitments, since nobody signs
them. *Abort*: a piece that does not fit its commitment ends the run and names its sender.
"""

import hashlib
from collections.abc import Mapping

from syndic.errors import RefusedError
from syndic.kernel import Message, Party, Session, SubProtocol, step
from syndic.mpc.key import KEY_BYTES, context, derive
from syndic.mpc.order import advance


class TossStart(Message):
    """Begin the toss called `label`."""

    label: str


class TossCommitment(Message):
    """A party's commitment to its piece."""

    commitment: bytes


class TossCommitments(Message):
    """The commitments of all parties, by name."""

    label: str
    commitments: dict[str, bytes]


class TossPiece(Message):
    """A party's piece."""

    piece: bytes


class Toss(Message):
    """The pieces of all parties, by name: what the tossed bytes are made of."""

    label: str
    pieces: dict[str, bytes]


class _Own(Message):
    piece: bytes


class _Seen(Message):
    commitments: dict[str, bytes]


def toss_commitment(piece: bytes, *, study: str, label: str, party: str) -> bytes:
    """Return the commitment to a piece: it binds its party, and hides 32 uniform bytes."""
    return hashlib.sha256(context("toss piece", study, label, party, piece)).digest()


def tossed(toss: Toss, *, study: str) -> bytes:
    """Return the 32 bytes made of all pieces."""
    ordered = [part for name in sorted(toss.pieces) for part in (name, toss.pieces[name])]
    return derive(context(*ordered), "toss", study, toss.label)


def check_pieces(toss: Toss, commitments: Mapping[str, bytes], *, study: str) -> None:
    """Refuse pieces that are not those of the commitments; name who changed its own."""
    if toss.pieces.keys() != commitments.keys():
        raise RefusedError(f"the pieces of the toss '{toss.label}' are not those of all parties")
    for name, piece in toss.pieces.items():
        made = toss_commitment(piece, study=study, label=toss.label, party=name)
        if len(piece) != KEY_BYTES or made != commitments[name]:
            raise RefusedError(f"{name}'s piece of the toss '{toss.label}' does not fit its commitment: it changed it")


class PublicToss(SubProtocol):
    """One toss, under a public label. The coordinator calls `run`; a step that gets its pieces calls `check`."""

    label: str

    @property
    def rounds(self) -> tuple[str, ...]:
        """The names of its steps, in their order."""
        return ("toss_commit", "toss_reveal")

    @step(reveals="public")
    def toss_commit(self, party: Party, message: TossStart) -> TossCommitment:
        """Draw a piece of a public coin toss and publish a commitment to it."""
        self._begin(party, message.label, 1)
        piece = party.key_randomness("toss").bytes(KEY_BYTES)
        party.remember(f"toss {self.label} own", _Own(piece=piece))
        return TossCommitment(commitment=self._commitment(party, piece))

    @step(reveals="public")
    def toss_reveal(self, party: Party, message: TossCommitments) -> TossPiece:
        """Publish this party's piece of the toss, now that everybody is bound to one."""
        commitments = message.commitments
        self._begin(party, message.label, 2)
        own = party.recall(f"toss {self.label} own", _Own)
        names = {member.name for member in party.terms.parties}
        if commitments.keys() != names or commitments[party.name] != self._commitment(party, own.piece):
            raise RefusedError(f"the commitments for the toss '{self.label}' are not those of all parties of the study")
        party.remember(f"toss {self.label} seen", _Seen(commitments=commitments))
        return TossPiece(piece=own.piece)

    def check(self, party: Party, toss: Toss) -> bytes:
        """Return the tossed bytes, after a check of every piece against the commitment that this party saw."""
        self._begin(party, toss.label, 3)
        check_pieces(toss, party.recall(f"toss {self.label} seen", _Seen).commitments, study=party.study)
        return tossed(toss, study=party.study)

    def run(self, session: Session) -> Toss:
        """Run the coordinator's side and return the pieces; `tossed` makes bytes of them."""
        started = session.ask(self.toss_commit, TossStart(label=self.label))
        commitments = {name: answer.commitment for name, answer in started.items()}
        revealed = session.ask(self.toss_reveal, TossCommitments(label=self.label, commitments=commitments))
        toss = Toss(label=self.label, pieces={name: answer.piece for name, answer in revealed.items()})
        check_pieces(toss, commitments, study=session.study)
        return toss

    def _begin(self, party: Party, label: str, number: int) -> None:
        if label != self.label:
            raise RefusedError(f"'{self.label}' is tossed here, under this label and no other")
        advance(party, f"toss {label}", number)

    def _commitment(self, party: Party, piece: bytes) -> bytes:
        return toss_commitment(piece, study=party.study, label=self.label, party=party.name)
