"""Masked sums, one or many after one key agreement: the coordinator learns totals of vectors, never a single vector.

Two neighbours agree on a secret once. For sum number t a party sends its values plus a fresh mask of its own and, for
every neighbour, the mask that their secret gives for t: plus at the earlier of the two, minus at the later. The
coordinator then names the parties whose values arrived, the survivors. Each survivor answers with its own mask and
those shared with parties that did not survive. It hides this answer in turn under masks shared with the other
survivors. All masks of pairs are also bound to the party's view (`syndic.kernel.view`): a digest of everything that it
was told in the run, this list included. If all survivors were told the same these cancel, and the difference of the two
sums is the total of their values. If no party may be missing (`graph.missing` is 0) the first message is enough. After
Bonawitz et al. 2017, without shares of keys: no party's key can ever be reconstructed.

*Why nothing else opens.* A party sends values once and an answer once for each sum. It answers only for a list with
itself and at least parties - missing parties, all of them among those that it met. Two different lists or views for
one sum would both have to be answered by all of their honest members; they are too long for that, since 2 missing <
parties - colluding. Without the answers of its whole list an answer is uniform, since the honest members of a list are
connected (`syndic.mpc.graph`); so a single own mask or pair mask is never seen. Values that arrive late, or of a
party that was reported as silent, stay hidden by a mask of which nobody else has any part. A mask is for one study,
label and number.

*Who learns what.* Coordinator and up to `graph.colluding` parties together: the total of the other survivors of
every sum, at least parties - missing with the colluding ones. This holds whatever the coordinator sends, also if it
tells parties different lists, questions or earlier requests. More colluding parties could open single vectors, which
contain only a share of the noise. *Forged public keys*: with identities in the study the masks of two honest parties
that received wrong keys do not cancel, and nothing opens; without identities this is not covered. *Not covered*:
invented values; somebody who gets the ledger files, which contain the secrets, of more parties than may collude.

*Missing*: up to `graph.missing` parties for each sum; they may differ between sums. If a survivor does not answer about
its masks, the sum stays closed, and its charge remains. With many sums, one of them is lost. A run with one sum ends,
and continues when it is run again and the party answers.
*Unit*: sums hide vectors; noise protects people. Each party adds a fresh share of it to every sum.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from syndic.errors import PartyError, RefusedError
from syndic.kernel import Message, Nothing, Party, Session, SubProtocol, step
from syndic.mpc.graph import Seats, SumGraph, bits, marked, pieces
from syndic.mpc.key import KEY_BYTES, KeyPair, PublicKey, agree_with, context, key_pair
from syndic.mpc.mask import expand
from syndic.mpc.order import advance
from syndic.mpc.ring import Integers, Residues, Ring

Asked = TypeVar("Asked", bound=Message)

# a party that was silent this many times in a row is not asked again
_PATIENCE: Final = 3


class SumStart(Message, omit_defaults=True):
    """Start the sums called `label`. `drawn` is new in every journal, if the coordinator adds to what opens.

    Parties that answered refuse another `drawn`, so the sums do not open a second time.
    """

    common = ("label",)
    label: str
    drawn: bytes = b""


class SumDirectory(Message):
    """Who takes part, a bit for each party of the study, and 32 bytes of key for each of one party's neighbours."""

    common = ("label", "present")
    label: str
    present: bytes
    keys: bytes


class SumMasked(Message):
    """A party's masked values, or its hidden answer about masks, packed to the bits of the ring."""

    values: bytes


class SumSurvivors(Message):
    """Whose masked values arrived for one sum: a bit for each party of the study, in order."""

    common = ("label", "number", "arrived")
    label: str
    number: int
    arrived: bytes


class _Own(Message):
    pair: KeyPair
    root: bytes


class _Met(Message):
    """What a party stores for all sums: who takes part, its neighbours' secrets, and the root of its own masks."""

    present: bytes
    places: tuple[int, ...]
    secrets: bytes
    root: bytes

    @property
    def pairs(self) -> dict[int, bytes]:
        return dict(zip(self.places, pieces(self.secrets, KEY_BYTES, len(self.places)), strict=True))


class _Sent(Message):
    """The last sum that a party sent values for, and whether it has answered about its masks."""

    number: int
    count: int
    bits: int
    modulus: int
    view: bytes
    answered: bool

    @property
    def ring(self) -> Integers:
        return Residues(self.modulus) if self.modulus else Ring(self.bits)


@final
@dataclass(frozen=True)
class Masks:
    """The masks of one party's values for one sum. Private."""

    values: NDArray[Any]
    ring: Integers

    def hide(self, values: NDArray[np.int64]) -> SumMasked:
        """Return the values, including their share of the noise, masked: uniform without the others' replies."""
        return SumMasked(values=self.ring.pack(self.ring.add(self.ring.reduce(values), self.values)))


@final
@dataclass(frozen=True, kw_only=True)
class Total:
    """The opened sum, and the parties whose values are in it."""

    values: NDArray[np.int64]
    present: tuple[str, ...]


class MaskedSums(SubProtocol):
    """Masked sums with one label and the graph of shared masks. Each party computes it from its own study.

    A method's own step, `reveals="masked"`, takes a message with the sum's number, gets the masks from `masks_for`,
    adds noise through `party.contribute` and returns the masks' `hide`. Its `coordinate` uses `start`. A method with a
    single sum uses `MaskedSum`.
    """

    label: str
    graph: SumGraph

    def rounds(self, contribute: str) -> tuple[str, ...]:
        """Return the names of the steps of all sums, including the method's own step, in order."""
        return ("sum_keys", "sum_meet", contribute, *(("sum_open",) if self.graph.missing else ()))

    @step(reveals="public")
    def sum_keys(self, party: Party, message: SumStart) -> PublicKey:
        """Create a key pair for all masked sums of this study, and publish the public key."""
        self._check(message.label)
        advance(party, f"sums {self.label}", 1)
        randomness = party.key_randomness("sum keys")
        own = _Own(pair=key_pair(randomness), root=randomness.bytes(KEY_BYTES))
        party.remember(f"sums {self.label} own", own)
        return PublicKey(public=own.pair.public)

    @step(reveals="public")
    def sum_meet(self, party: Party, message: SumDirectory) -> Nothing:
        """Agree on a secret with every neighbour, from which the masks of all sums are derived."""
        label = self._check(message.label)
        advance(party, f"sums {label}", 2)
        seats, place = self._seats(party)
        neighbours = seats.neighbours(place)
        listed = marked(len(seats.names), message.present)
        if listed.sum() < self.graph.least or not listed[place]:
            raise RefusedError(
                f"the list of participants of the sums '{label}' has {listed.sum()} parties; {party.name} answers only "
                f"one with itself and at least {self.graph.least}. Run the study again when more parties can answer"
            )
        present = [each for each in neighbours if listed[each]]
        own = party.recall(f"sums {label} own", _Own)
        keys = pieces(message.keys, KEY_BYTES, len(present))
        publics = {seats.names[each]: key for each, key in zip(present, keys, strict=True)}
        # these secrets never leave the party, whoever is missing: only masks derived from them do
        secrets = b"".join(agree_with(party, own.pair.private, publics).values())
        met = _Met(present=message.present, places=tuple(present), secrets=secrets, root=own.root)
        party.remember(f"sums {label} met", met)
        return Nothing()

    def masks_for(self, party: Party, number: int, count: int, ring: Integers) -> Masks:
        """Return the masks of this party's `count` values for a sum; later sums have higher numbers, from 1.

        Each sum is answered once. Nothing is charged yet. Masks cancel between parties with the same view, so that a
        sum of answers to different questions does not open: a message that asks one declares its fields `common`.
        """
        label = self.label
        sent = party.kept(f"sums {label} sent", _Sent)
        if number < 1 or (sent is not None and number <= sent.number):
            raise RefusedError(
                f"sum {number} of '{label}' was requested after sum {sent.number if sent else 0}: each is answered "
                "once, in order"
            )
        seats, place = self._seats(party)
        met = party.recall(f"sums {label} met", _Met)
        party.remember(
            f"sums {label} sent",
            _Sent(
                number=number,
                count=count,
                bits=ring.bits,
                modulus=ring.modulus if isinstance(ring, Residues) else 0,
                view=party.view,
                answered=self.graph.missing == 0,
            ),
        )
        own = _own_mask(seats, place, met, number, count, ring)
        return Masks(seats.add_pairs(own, place, met.pairs, seats.bound("values", number, party.view), ring), ring)

    @step(reveals="masked")
    def sum_open(self, party: Party, message: SumSurvivors) -> SumMasked:
        """Return the masks that do not cancel, hidden from everybody who does not have all survivors' answers."""
        label, number = self._check(message.label), message.number
        seats, place = self._seats(party)
        sent = party.recall(f"sums {label} sent", _Sent)
        if sent.number != number or sent.answered:
            raise RefusedError(
                f"the masks of sum {number} of '{label}' were requested after those of sum {sent.number}: a party "
                "answers once, for the last sum that it sent values for"
            )
        arrived = marked(len(seats.names), message.arrived)
        if arrived.sum() < self.graph.least or not arrived[place]:
            raise RefusedError(
                f"the values of {arrived.sum()} parties arrived for sum {number} of '{label}', but the study's noise "
                f"suffices only for {self.graph.least} or more: the sum stays closed, and its charge remains"
            )
        met, ring = party.recall(f"sums {label} met", _Met), sent.ring
        strangers = (arrived & ~marked(len(seats.names), met.present)).sum()
        if strangers:
            # two lists that omit different parties could leave only colluding parties to hide an answer from
            raise RefusedError(
                f"sum {number} of '{label}' has values of {strangers} that were not listed to {party.name} as "
                "participants: its masks stay closed"
            )
        party.remember(f"sums {label} sent", replace(sent, answered=True))
        gone = {each: secret for each, secret in met.pairs.items() if not arrived[each]}
        here = {each: secret for each, secret in met.pairs.items() if arrived[each]}
        masks = _own_mask(seats, place, met, number, sent.count, ring)
        masks = seats.add_pairs(masks, place, gone, seats.bound("values", number, sent.view), ring)
        hidden = seats.add_pairs(masks, place, here, seats.bound("answer", number, party.view), ring)
        return SumMasked(values=ring.pack(hidden))

    def start(self, session: Session, *, once: bool = False) -> "SumCoordinator[Any]":
        """Let the parties agree on the secrets of all sums; return the coordinator's side.

        `once`: whether a coordinator that lost its journal is refused, since it would draw other noise for the sums.

        Raises:
            PartyError: if more parties than the graph allows refuse or do not answer.
        """
        seats = Seats(study=session.study, label=self.label, names=session.parties, graph=self.graph)
        begin = SumStart(label=self.label, drawn=session.randomness.bytes(KEY_BYTES) if once else b"")
        keys = session.ask(self.sum_keys, begin, missing=self.graph.missing)
        places = {name: place for place, name in enumerate(seats.names)}
        present, directories = bits(name in keys for name in seats.names), {}
        for name in keys:
            neighbours = [seats.names[each] for each in seats.neighbours(places[name])]
            directories[name] = SumDirectory(
                label=self.label,
                present=present,
                keys=b"".join(keys[each].public for each in neighbours if each in keys),
            )
        met = session.ask(self.sum_meet, directories, missing=len(keys) - self.graph.least)
        return SumCoordinator(session, self, tuple(name for name in seats.names if name in met))

    def _check(self, label: str) -> str:
        if label != self.label:
            raise RefusedError(f"unknown sums; the label of this study's masked sums is '{self.label}'")
        return label

    def _seats(self, party: Party) -> tuple[Seats, int]:
        names = tuple(party.terms.by_name)
        return Seats(study=party.study, label=self.label, names=names, graph=self.graph), names.index(party.name)


@final
class MaskedSum(MaskedSums):
    """One masked sum of `count` numbers of one ring.

    A method's own step, `reveals="masked"`, calls `masks` before it reads rows, adds noise through
    `party.contribute` and returns the masks' `hide`; its `coordinate` calls `open` with that step.
    """

    count: int
    ring: Integers

    def masks(self, party: Party) -> Masks:
        """Return the masks of this party's values. Nothing is charged yet; a second request is refused."""
        return self.masks_for(party, 1, self.count, self.ring)

    def open(self, session: Session, contribute: Callable[[Any, Nothing], SumMasked]) -> Total:
        """Run the coordinator's side: pass on keys, add up masked values, open the total.

        Raises:
            PartyError: if more parties than the graph allows refuse or do not answer, or a party whose values arrived
                does not answer about its masks. A second run continues from the stored answers.
        """
        return self.open_next(self.start(session), contribute, Nothing(), self.count, self.ring)

    def open_next(
        self,
        sums: "SumCoordinator[Any]",
        contribute: Callable[[Any, Asked], SumMasked],
        message: Asked,
        count: int,
        ring: Integers,
    ) -> Total:
        """Open the next of several sums after one `start`; like `open`."""
        sent = sums.send(contribute, lambda _: message)
        try:
            answers = sums.answers(sent, missing=0)
        except PartyError as error:
            raise PartyError(
                f"{error}. The sum '{self.label}' stays closed until every party whose values arrived has answered; "
                "its charge remains. Run the study again from the same folder when they can answer: nothing is "
                "charged twice",
                exit_code=error.exit_code,
            ) from None
        return sums.opened(sent, answers, count, ring)

    @property
    def message_bytes(self) -> int:
        """The approximate size of the largest message in bytes: masked values, or the neighbours' keys."""
        return max(self.ring.packed_bytes(self.count), self.graph.neighbours * KEY_BYTES) + 64


def _own_mask(seats: Seats, place: int, met: _Met, number: int, count: int, ring: Integers) -> NDArray[Any]:
    if seats.graph.missing == 0:
        return ring.reduce(np.zeros(count, dtype=np.int64))
    return expand(met.root, context("own", seats.bound("values", number), seats.names[place]), count, ring)


Replies = Mapping[str, SumMasked]


@final
class SumCoordinator(Generic[Asked]):
    """The coordinator's side of masked sums: `total` opens the next one."""

    def __init__(self, session: Session, sums: MaskedSums, members: tuple[str, ...]) -> None:
        """Create the coordinator's side; call `MaskedSums.start` instead."""
        self.number = 0
        self._session = session
        self._sums = sums
        self._silences = dict.fromkeys(members, 0)

    def total(
        self, contribute: Callable[[Any, Asked], SumMasked], ask: Callable[[int], Asked], *, count: int, ring: Integers
    ) -> Total | None:
        """Open the next sum: `contribute` is the parties' step, `ask` makes its message from the sum's number.

        Returns None if the sum is lost: a party whose values arrived did not answer about its masks.

        Raises:
            PartyError: if more parties than may be missing sent no values.
        """
        sent = self.send(contribute, ask)
        # too late to end the run: the others have charged for this sum, and the next one may succeed
        answers = self.answers(sent, missing=len(sent))
        lost = self._sums.graph.missing > 0 and answers.keys() != sent.keys()
        return None if lost else self.opened(sent, answers, count, ring)

    def send(self, contribute: Callable[[Any, Asked], SumMasked], ask: Callable[[int], Asked]) -> Replies:
        """Ask for the masked values of the next sum; return those that arrived."""
        self.number += 1
        asked = [name for name, silences in self._silences.items() if silences < _PATIENCE]
        missing = len(asked) - self._sums.graph.least
        if missing < 0:
            raise RefusedError(
                f"only {len(asked)} parties are left in the sums '{self._sums.label}': too few to continue"
            )
        sent = self._session.ask(contribute, dict.fromkeys(asked, ask(self.number)), missing=missing)
        for name in asked:
            self._silences[name] = 0 if name in sent else self._silences[name] + 1
        return sent

    def answers(self, sent: Replies, *, missing: int) -> Replies:
        """Ask the survivors for their masks; if no party may be missing, all masks cancel and nothing is asked."""
        if self._sums.graph.missing == 0:
            return {}
        arrived = bits(name in sent for name in self._session.parties)
        survivors = SumSurvivors(label=self._sums.label, number=self.number, arrived=arrived)
        return self._session.ask(self._sums.sum_open, dict.fromkeys(sent, survivors), missing=missing)

    def opened(self, sent: Replies, answers: Replies, count: int, ring: Integers) -> Total:
        """Return the total of values whose masks were all answered."""
        total = ring.subtract(_added(sent, count, ring), _added(answers, count, ring))
        return Total(values=ring.lift(total), present=tuple(name for name in self._session.parties if name in sent))


def _added(sent: Replies, count: int, ring: Integers) -> NDArray[Any]:
    total = ring.reduce(np.zeros(count, dtype=np.int64))
    for each in sent.values():
        total = ring.add(total, ring.unpack(each.values, count))
    return total
