"""Public coin toss: 32 public random bytes that no party can choose.

Every party draws a piece and publishes a commitment to it; once all commitments are published it publishes the piece.
Every party checks every piece against its commitment and derives the bytes from all of them. One honest party's piece
makes them uniform.

*Who learns what*: everybody learns the bytes; they contain no other information. Use them only where the guarantee
holds for any bytes, and just the quality of a result depends on their being random. *Not covered*: a coordinator that
ends the run after it saw the pieces, and so chooses between this toss and another; or one that forges commitments, as
they are not signed. *Abort*: a piece that does not match its commitment ends the run and names its sender.
"""

import hashlib
from collections.abc import Mapping

from syndic.errors import RefusedError
from syndic.kernel import Message, Party, Session, SubProtocol, step
from syndic.mpc.key import KEY_BYTES, context, derive
from syndic.mpc.order import advance


class TossStart(Message):
    """Start the toss called `label`."""

    common = ("label",)
    label: str


class TossCommitment(Message):
    """A party's commitment to its piece."""

    commitment: bytes


class TossCommitments(Message):
    """The commitments of all parties, by name."""

    common = ("label", "commitments")
    label: str
    commitments: dict[str, bytes]


class TossPiece(Message):
    """A party's piece."""

    piece: bytes


class Toss(Message):
    """The pieces of all parties, by name; the tossed bytes are derived from them."""

    common = ("label", "pieces")
    label: str
    pieces: dict[str, bytes]


class _Seen(Message):
    commitments: dict[str, bytes]


def toss_commitment(piece: bytes, *, study: str, label: str, party: str) -> bytes:
    """Return the commitment to a piece: binding for its party, and hiding, as a piece is 32 uniform bytes."""
    return hashlib.sha256(context("toss piece", study, label, party, piece)).digest()


def tossed(toss: Toss, *, study: str) -> bytes:
    """Return the 32 bytes derived from all pieces."""
    ordered = [part for name in sorted(toss.pieces) for part in (name, toss.pieces[name])]
    return derive(context(*ordered), "toss", study, toss.label)


def check_pieces(toss: Toss, commitments: Mapping[str, bytes], *, study: str) -> None:
    """Refuse pieces that do not match the commitments, and name the party whose piece was changed."""
    if toss.pieces.keys() != commitments.keys():
        raise RefusedError(f"the toss '{toss.label}' does not have one piece from every party")
    for name, piece in toss.pieces.items():
        made = toss_commitment(piece, study=study, label=toss.label, party=name)
        if len(piece) != KEY_BYTES or made != commitments[name]:
            raise RefusedError(f"{name}'s piece of the toss '{toss.label}' does not match its commitment")


class PublicToss(SubProtocol):
    """One toss with a public label. The coordinator calls `run`; a step that receives the pieces calls `check`."""

    label: str

    @property
    def rounds(self) -> tuple[str, ...]:
        """The names of its steps, in order."""
        return ("toss_commit", "toss_reveal")

    @step(reveals="public")
    def toss_commit(self, party: Party, message: TossStart) -> TossCommitment:
        """Draw a piece of a public coin toss and publish a commitment to it."""
        self._begin(party, message.label, 1)
        piece = party.key_randomness("toss").bytes(KEY_BYTES)
        party.remember(f"toss {self.label} own", TossPiece(piece=piece))
        return TossCommitment(commitment=self._commitment(party, piece))

    @step(reveals="public")
    def toss_reveal(self, party: Party, message: TossCommitments) -> TossPiece:
        """Publish this party's piece of the toss, now that every party is committed to its own."""
        commitments = message.commitments
        self._begin(party, message.label, 2)
        own = party.recall(f"toss {self.label} own", TossPiece)
        names = {member.name for member in party.terms.parties}
        if commitments.keys() != names or commitments[party.name] != self._commitment(party, own.piece):
            raise RefusedError(f"the commitments for the toss '{self.label}' are incomplete or were changed")
        party.remember(f"toss {self.label} seen", _Seen(commitments=commitments))
        return own

    def check(self, party: Party, toss: Toss) -> bytes:
        """Check every piece against the commitment that this party received, and return the tossed bytes."""
        self._begin(party, toss.label, 3)
        check_pieces(toss, party.recall(f"toss {self.label} seen", _Seen).commitments, study=party.study)
        return tossed(toss, study=party.study)

    def run(self, session: Session) -> Toss:
        """Run the coordinator's side and return the pieces; `tossed` derives the bytes from them."""
        started = session.ask(self.toss_commit, TossStart(label=self.label))
        commitments = {name: answer.commitment for name, answer in started.items()}
        revealed = session.ask(self.toss_reveal, TossCommitments(label=self.label, commitments=commitments))
        toss = Toss(label=self.label, pieces={name: answer.piece for name, answer in revealed.items()})
        check_pieces(toss, commitments, study=session.study)
        return toss

    def _begin(self, party: Party, label: str, number: int) -> None:
        if label != self.label:
            raise RefusedError(f"unknown toss; the label of this study's toss is '{self.label}'")
        advance(party, f"toss {label}", number)

    def _commitment(self, party: Party, piece: bytes) -> bytes:
        return toss_commitment(piece, study=party.study, label=self.label, party=party.name)
