"""Many masked sums after one key agreement: one sum an iteration, each opened by itself.

Two neighbours agree on a secret once. In round t a party sends its values plus a fresh mask of its own and, for every
neighbour, the mask that their secret gives for t: plus at the earlier of the two, minus at the later. The coordinator
then says whose values arrived, the survivors. Each survivor answers with its own mask and those shared with parties
that are no survivors, and hides this answer in turn under masks shared with the other survivors, which their secrets
give for t AND for that list. If all of them were told the same list these cancel, and the difference of the two sums is
the total of the survivors' values. Where nobody may be missing (`plan.missing` is 0) the first message is enough.

*Why nothing else opens.* A party sends values once and an answer once in a round, and only for a list that holds itself
and at least parties - missing of them, of its neighbours only such as it has a secret with. Two different lists in one
round would both have to be answered by all of their honest members; they are too long for that, since 2 missing <
parties - colluding. Without the answers of its whole list an answer is uniform, so a single own mask or pair mask is
never seen: values that come late, or of a party that was said to be silent, stay hidden by a mask of which nobody has a
part. A mask is made for one study, label and round.

*Who could learn what.* Coordinator and up to `plan.colluding` parties together: the total of the other survivors of
every round. Where the graph cannot fail this holds for whatever lists the coordinator makes up; a sparse graph holds
for silent parties that do not depend on it. *Forged public keys*: with identities in the study the masks of two honest
parties that were shown wrong keys do not cancel, and nothing opens; without identities they are not covered. *Not
covered*: made-up values.
*Missing*: up to `plan.missing` parties in each round, others in the next one. If a survivor does not answer, the round
is lost: it stays closed, and what was charged for it stays charged.
*Unit*: sums hide vectors, not people; noise does that, a share of it at each party, in every round anew.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final, Generic, TypeVar, final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from syndic.errors import InputError, RefusedError
from syndic.kernel import Message, Nothing, Party, Session, SubProtocol, step
from syndic.mpc.graph import MOST_PARTIES, SumPlan
from syndic.mpc.key import KEY_BYTES, KeyPair, agree_with, context, key_pair
from syndic.mpc.listing import bits, marked, pieces
from syndic.mpc.mask import expand
from syndic.mpc.order import advance
from syndic.mpc.ring import Ring
from syndic.mpc.seats import Seats

_COMPLETE: Final = 32
# who was silent so many times in a row is not waited for again
_PATIENCE: Final = 3


class RoundsStart(Message):
    """Begin the sums called `label`."""

    label: str


class RoundsKey(Message):
    """A party's public key for all rounds."""

    public: bytes


class RoundsDirectory(Message):
    """For one party: which of its neighbours take part (a bit each, in order) and their 32 bytes of keys."""

    label: str
    present: bytes
    keys: bytes


class RoundMasked(Message):
    """A party's masked values, or its hidden answer about masks, packed to the bits of the ring."""

    values: bytes


class RoundSurvivors(Message):
    """Whose masked values arrived in a round: a bit for each party of the study, in order."""

    label: str
    round: int
    arrived: bytes


class _Own(Message):
    pair: KeyPair
    root: bytes


class _Met(Message):
    """What a party keeps for all rounds: its neighbours' places and secrets, and the root of its own masks."""

    places: tuple[int, ...]
    secrets: bytes
    root: bytes


class _Sent(Message):
    """The last round that a party sent values in, and whether it has answered about its masks."""

    round: int
    count: int
    bits: int
    question: bytes
    answered: bool


class MaskedRounds(SubProtocol):
    """Masked sums under one label: who masks with whom. Computed by each party from its own study.

    A method's own step, `reveals="masked"`, takes a message with the round's number, asks `masks` for the masks, adds
    noise through `party.contribute` and returns `hide`. Its `coordinate` uses `start`.
    """

    label: str
    graph: SumPlan

    def __post_init__(self) -> None:
        """Refuse a graph with which two lists of survivors could both be answered in one round."""
        check_rounds(self.graph)

    def rounds(self, contribute: str) -> tuple[str, ...]:
        """Return the names of the steps of all sums, with that of the method's own step, in their order."""
        return ("rounds_keys", "rounds_meet", contribute, *(("round_open",) if self.graph.missing else ()))

    @step(reveals="public")
    def rounds_keys(self, party: Party, message: RoundsStart) -> RoundsKey:
        """Make a key for all masked sums of this study; publish its public half."""
        self._check(message.label)
        advance(party, f"rounds {self.label}", 1)
        randomness = party.key_randomness("rounds keys")
        own = _Own(pair=key_pair(randomness), root=randomness.bytes(KEY_BYTES))
        party.remember(f"rounds {self.label} own", own)
        return RoundsKey(public=own.pair.public)

    @step(reveals="public")
    def rounds_meet(self, party: Party, message: RoundsDirectory) -> Nothing:
        """Agree on a secret with every neighbour, from which the masks of all rounds are made."""
        label = self._check(message.label)
        advance(party, f"rounds {label}", 2)
        seats, place = self._seats(party)
        neighbours = seats.neighbours(place)
        present = marked(neighbours, message.present)
        if len(present) < max(1, len(neighbours) - self.graph.missing):
            raise RefusedError(
                f"{len(present)} of {party.name}'s {len(neighbours)} neighbours take part in the sums '{label}', and "
                f"{self.graph.missing} may be missing: run the study again when more parties can answer"
            )
        own = party.recall(f"rounds {label} own", _Own)
        keys = pieces(message.keys, KEY_BYTES, len(present))
        publics = {seats.names[each]: key for each, key in zip(present, keys, strict=True)}
        # these secrets never leave the party, whoever is missing: only masks made of them do
        secrets = b"".join(agree_with(party, own.pair.private, publics).values())
        party.remember(f"rounds {label} met", _Met(places=tuple(present), secrets=secrets, root=own.root))
        return Nothing()

    def masks(self, party: Party, number: int, count: int, ring: Ring, question: bytes = b"") -> NDArray[Any]:
        """Return the masks of this party's `count` values in a round; later rounds have higher numbers.

        Each round is answered once. Nothing is charged yet. Masks cancel between parties with the same `question`,
        a digest of what the round asked them, so that a sum of answers to different questions does not open.
        """
        label = self.label
        sent = party.kept(f"rounds {label} sent", _Sent)
        if number < 1 or (sent is not None and number <= sent.round):
            raise RefusedError(
                f"round {number} of the sums '{label}' was asked after round {sent.round if sent else 0}: each is "
                "answered once, in order"
            )
        seats, place = self._seats(party)
        met = party.recall(f"rounds {label} met", _Met)
        party.remember(
            f"rounds {label} sent",
            _Sent(round=number, count=count, bits=ring.bits, question=question, answered=self.graph.missing == 0),
        )
        own = _own_mask(seats, place, met, number, count, ring)
        return seats.add_pairs(own, place, _pairs(met), seats.bound("values", number, question), ring)

    def hide(self, values: NDArray[np.int64], masks: NDArray[Any], ring: Ring) -> RoundMasked:
        """Return values, with their share of the noise, under their masks: uniform without the others'."""
        return RoundMasked(values=ring.pack(ring.add(ring.reduce(values), masks)))

    @step(reveals="masked")
    def round_open(self, party: Party, message: RoundSurvivors) -> RoundMasked:
        """Answer with the masks that the others' do not cancel, hidden from everybody who has not all answers."""
        label, number = self._check(message.label), message.round
        seats, place = self._seats(party)
        sent = party.recall(f"rounds {label} sent", _Sent)
        if sent.round != number or sent.answered:
            raise RefusedError(
                f"the masks of round {number} of the sums '{label}' were asked for after those of round {sent.round}: "
                "a party answers once, about the round that it sent values in last"
            )
        arrived = set(marked(list(range(len(seats.names))), message.arrived))
        if len(arrived) < seats.least or place not in arrived:
            raise RefusedError(
                f"the values of {len(arrived)} parties arrived in round {number} of the sums '{label}', and the "
                f"study's noise is enough from {seats.least} on: it stays closed, and what was charged stays charged"
            )
        met, ring = party.recall(f"rounds {label} met", _Met), Ring(sent.bits)
        strangers = arrived & set(seats.neighbours(place)) - set(met.places)
        if strangers:
            # two lists that leave out others each would leave nobody but colluding parties to hide an answer from
            raise RefusedError(
                f"round {number} of the sums '{label}' has values of {len(strangers)} neighbour(s) that {party.name} "
                "was told take no part: its masks stay closed"
            )
        party.remember(f"rounds {label} sent", replace(sent, answered=True))
        pairs = _pairs(met)
        gone = {each: secret for each, secret in pairs.items() if each not in arrived}
        here = {each: secret for each, secret in pairs.items() if each in arrived}
        masks = _own_mask(seats, place, met, number, sent.count, ring)
        masks = seats.add_pairs(masks, place, gone, seats.bound("values", number, sent.question), ring)
        hidden = seats.add_pairs(masks, place, here, seats.bound("answer", number, message.arrived), ring)
        return RoundMasked(values=ring.pack(hidden))

    def start(self, session: Session) -> "Rounds[Any]":
        """Let the parties agree on the secrets of all rounds; return the coordinator's side of them.

        Raises:
            PartyError: if more parties than the graph allows fall silent or refuse.
        """
        seats = Seats(study=session.study, label=self.label, names=session.parties, plan=self.graph)
        keys = session.ask(self.rounds_keys, RoundsStart(label=self.label), missing=self.graph.missing)
        places = {name: place for place, name in enumerate(seats.names)}
        directories = {}
        for name in keys:
            neighbours = [seats.names[each] for each in seats.neighbours(places[name])]
            directories[name] = RoundsDirectory(
                label=self.label,
                present=bits(each in keys for each in neighbours),
                keys=b"".join(keys[each].public for each in neighbours if each in keys),
            )
        met = session.ask(self.rounds_meet, directories, missing=len(keys) - seats.least)
        return Rounds(session, self, seats, tuple(name for name in seats.names if name in met))

    def _check(self, label: str) -> str:
        if label != self.label:
            raise RefusedError(f"values are summed under the label '{self.label}' here and under no other")
        return label

    def _seats(self, party: Party) -> tuple[Seats, int]:
        names = tuple(member.name for member in party.terms.parties)
        return Seats(study=party.study, label=self.label, names=names, plan=self.graph), names.index(party.name)


def _own_mask(seats: Seats, place: int, met: _Met, number: int, count: int, ring: Ring) -> NDArray[Any]:
    if seats.plan.missing == 0:
        return ring.reduce(np.zeros(count, dtype=np.int64))
    return expand(met.root, context("own", seats.bound("values", number), seats.names[place]), count, ring)


Asked = TypeVar("Asked", bound=Message)


@final
@dataclass(frozen=True, kw_only=True)
class RoundTotal:
    """The opened sum of one round, and the parties whose values are in it."""

    values: NDArray[np.int64]
    present: tuple[str, ...]


@final
class Rounds(Generic[Asked]):
    """The coordinator's side of many sums: `total` runs the next round."""

    def __init__(self, session: Session, sums: MaskedRounds, seats: Seats, members: tuple[str, ...]) -> None:
        """Use `MaskedRounds.start`."""
        self.round = 0
        self._session = session
        self._sums = sums
        self._seats = seats
        self._silences = dict.fromkeys(members, 0)

    def total(
        self, contribute: Callable[[Any, Asked], RoundMasked], ask: Callable[[int], Asked], *, count: int, ring: Ring
    ) -> RoundTotal | None:
        """Run one round: `contribute` is the parties' step, `ask` makes its message from the round's number.

        Returns None where the round is lost: more parties than may be missing did not answer about their masks.

        Raises:
            PartyError: if more parties than may be missing sent no values.
        """
        self.round += 1
        asked = [name for name, silences in self._silences.items() if silences < _PATIENCE]
        missing = len(asked) - self._seats.least
        if missing < 0:
            raise RefusedError(f"{len(asked)} parties are left in the sums '{self._seats.label}': too few to go on")
        sent = self._session.ask(contribute, dict.fromkeys(asked, ask(self.round)), missing=missing)
        for name in asked:
            self._silences[name] = 0 if name in sent else self._silences[name] + 1
        total = _added(sent, count, ring)
        if self._seats.plan.missing:
            survivors = RoundSurvivors(
                label=self._seats.label, round=self.round, arrived=bits(name in sent for name in self._seats.names)
            )
            # too late to end the run: what the others sent is charged, and the next round may go well
            opened = self._session.ask(self._sums.round_open, dict.fromkeys(sent, survivors), missing=len(sent))
            if opened.keys() != sent.keys():
                return None
            total = ring.subtract(total, _added(opened, count, ring))
        return RoundTotal(values=ring.lift(total), present=tuple(name for name in self._seats.names if name in sent))


def plan_rounds(parties: int, *, colluding: int, missing: int) -> SumPlan:
    """Return who masks with whom in many rounds, such that no list of survivors cuts anybody off.

    Up to 32 parties everybody with everybody; beyond, neighbours on a circle, more than colluding + missing on
    either side: with any so many parties taken out, those left are still connected.
    """
    if not 2 <= parties <= MOST_PARTIES:
        raise InputError(f"masked sums of {parties} parties: they take 2 to {MOST_PARTIES:,}")
    side = max(colluding + missing + 1, (parties - 1).bit_length())
    neighbours = 2 * side if parties > _COMPLETE and 2 * side < parties - 1 else parties - 1
    plan = SumPlan(
        parties=parties,
        colluding=colluding,
        missing=missing,
        neighbours=neighbours,
        threshold=max(1, neighbours - missing),
        failure_bits=inf,
    )
    check_rounds(plan)
    return plan


def check_rounds(plan: SumPlan) -> None:
    """Refuse a plan with which two lists of survivors could both be answered in one round, or nobody is honest."""
    if plan.colluding < 0 or plan.missing < 0 or plan.colluding >= plan.parties:
        raise InputError(
            f"of {plan.parties} parties {plan.colluding} may collude and {plan.missing} be missing: colluding must be "
            "from 0 to one less than all, missing not negative"
        )
    if 2 * plan.missing >= plan.parties - plan.colluding:
        raise InputError(
            f"of {plan.parties} parties {plan.colluding} may collude and {plan.missing} be missing: sums round by "
            f"round are safe with fewer than {-(-(plan.parties - plan.colluding) // 2)} missing"
        )


def _added(sent: Mapping[str, RoundMasked], count: int, ring: Ring) -> NDArray[Any]:
    total = ring.reduce(np.zeros(count, dtype=np.int64))
    for each in sent.values():
        total = ring.add(total, ring.unpack(each.values, count))
    return total


def _pairs(met: _Met) -> dict[int, bytes]:
    return dict(zip(met.places, pieces(met.secrets, KEY_BYTES, len(met.places)), strict=True))
