"""Masked sum: a coordinator that follows the steps learns the sum of the parties' integer vectors, and no vector.

*Unit*: a sum hides vectors, not people; noise does that. Each party adds its share of the noise before it masks, and
the sum is charged as one release. *Rounds*: keys, shares, masked values, openings. *Missing*: up to `plan.missing`
parties may fall silent at any point; the total is then of those whose masked values arrived.

*Who could learn what.* Coordinator and up to `plan.colluding` parties together: the total of the others, nothing more.
More colluding parties could open single vectors, which carry a share of the noise only. *Semi-honest*: parties and
coordinator follow the steps. A party can put in any numbers, and nothing checks their range. A coordinator that tells
different parties different stories about who dealt or survived never gets seed and mask key of one party (each party
opens one kind of share once, and 2 threshold exceeds neighbours plus colluding), but it may get the seed of one and the
mask keys of enough others to open that one's vector, which carries a share of the noise only: against it, nothing is
claimed. One that forges public keys is found out before anything is charged, since boxes do not open then, if the study
gives the parties' identities; without them it can sit between the parties. Keys and shares stay in a party's memory
file until it is deleted: who takes more of these files than may collude can do what the parties could. Digests of
replies are published, and do not help those who may collude to try values: the seed of a party's own mask takes
`threshold` of its neighbours to find.
*Abort*: wrong shares, changed boxes and too few survivors end the run with an error; what was charged stays charged.

Bonawitz et al. 2017, with the sparse graph of Bell et al. 2020.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import Message, Party, Session, SubProtocol, step
from syndic.mpc.graph import SumPlan
from syndic.mpc.key import KEY_BYTES, agree_with, derive
from syndic.mpc.listing import bits, marked, pieces
from syndic.mpc.masked import (
    BOX_BYTES,
    SHARE_BYTES,
    Gathered,
    Secrets,
    Table,
    collect,
    deal,
    make_secrets,
    masks_of,
    openings,
    unmask,
)
from syndic.mpc.order import advance
from syndic.mpc.ring import Ring

_PAIR_BYTES = 2 * KEY_BYTES


class SumStart(Message):
    """Begin the sum called `label`; one study may have many sums, each with keys of its own."""

    label: str


class SumKeys(Message):
    """A party's two public keys (to seal, to mask) and its commitment to the seed of its own mask."""

    seal: bytes
    mask: bytes
    commitment: bytes


class SumDirectory(Message):
    """For one party: which of its neighbours take part (a bit each, in order) and their 64 bytes of keys."""

    label: str
    present: bytes
    keys: bytes


class SumBoxes(Message):
    """A sealed pair of shares for every neighbour of the directory, in order, 92 bytes each."""

    boxes: bytes


class SumInbox(Message):
    """For one party: which neighbours dealt shares (a bit each, in order) and their boxes for it."""

    label: str
    dealt: bytes
    boxes: bytes


class SumMasked(Message):
    """A party's masked values, packed to the bits of the ring."""

    values: bytes


class SumSurvivors(Message):
    """Whose masked values arrived: a bit for each party of the study, in order."""

    label: str
    arrived: bytes


class SumOpenings(Message):
    """Half a share of every neighbour that dealt, in order, 32 bytes each."""

    halves: bytes


class _Met(Message):
    present: bytes
    keys: bytes
    agreed: bytes


class _Held(Message):
    dealt: bytes
    shares: bytes


@final
@dataclass(frozen=True, kw_only=True)
class Total:
    """The opened sum, and the parties whose values are in it."""

    values: NDArray[np.int64]
    present: tuple[str, ...]


class MaskedSum(SubProtocol):
    """One masked sum: what it is called, who masks with whom, how many values of which ring. Computed by each party.

    A method's own step, `reveals="masked"`, takes a `SumInbox`, asks `masks` for its masks, counts, adds noise through
    `party.contribute` and returns `hide`; its `coordinate` calls `open` with that step.
    """

    label: str
    graph: SumPlan
    count: int
    ring: Ring

    def rounds(self, contribute: str) -> tuple[str, ...]:
        """Return the names of the steps of one sum, with that of the method's own step, in their order."""
        return ("sum_keys", "sum_shares", contribute, "sum_open")

    @step(reveals="public")
    def sum_keys(self, party: Party, message: SumStart) -> SumKeys:
        """Make keys and a seed for one masked sum; publish the public keys and a commitment."""
        table, place = self._begin(party, message.label, 1)
        secrets = make_secrets(party.key_randomness("sum keys"))
        party.remember(f"sum {self.label} secrets", secrets)
        commitment = table.commitment(place, secrets.seed)
        return SumKeys(seal=secrets.seal.public, mask=secrets.mask.public, commitment=commitment)

    @step(reveals="sealed")
    def sum_shares(self, party: Party, message: SumDirectory) -> SumBoxes:
        """Seal for every neighbour a share of what opens this party's masks if it, or others, fall silent."""
        table, place = self._begin(party, message.label, 2)
        secrets = party.recall(f"sum {self.label} secrets", Secrets)
        present = marked(table.neighbours(place), message.present)
        keys = dict(zip(present, pieces(message.keys, _PAIR_BYTES, len(present)), strict=True))
        agreed = _agreed(party, table, secrets, keys)
        boxes = deal(table, place, secrets, agreed, party.key_randomness("sum shares"))
        met = _Met(present=message.present, keys=message.keys, agreed=b"".join(agreed.values()))
        party.remember(f"sum {self.label} met", met)
        return SumBoxes(boxes=b"".join(boxes.values()))

    def masks(self, party: Party, message: SumInbox) -> NDArray[Any]:
        """Open the boxes, keep the shares in them, and return the masks of this party's values.

        Nothing is charged yet: a box that was changed on its way costs nobody anything.
        """
        label = self.label
        table, place = self._begin(party, message.label, 3)
        met = party.recall(f"sum {label} met", _Met)
        present = marked(table.neighbours(place), met.present)
        agreed = dict(zip(present, pieces(met.agreed, KEY_BYTES, len(present)), strict=True))
        keys = dict(zip(present, pieces(met.keys, _PAIR_BYTES, len(present)), strict=True))
        dealt = marked(table.neighbours(place), message.dealt)
        if not agreed.keys() >= set(dealt):
            raise RefusedError(f"shares for the sum '{label}' came from a party that published no keys")
        boxes = dict(zip(dealt, pieces(message.boxes, BOX_BYTES, len(dealt)), strict=True))
        shares = collect(table, place, agreed, boxes)
        party.remember(f"sum {label} held", _Held(dealt=message.dealt, shares=b"".join(shares.values())))
        secrets = party.recall(f"sum {label} secrets", Secrets)
        others = {each: keys[each][KEY_BYTES:] for each in dealt}
        return masks_of(table, place, secrets, others, self.count, self.ring)

    def hide(self, values: NDArray[np.int64], masks: NDArray[Any]) -> SumMasked:
        """Return values, with their share of the noise, under their masks: uniform without the others' shares."""
        return SumMasked(values=self.ring.pack(self.ring.add(self.ring.reduce(values), masks)))

    @step(reveals="public")
    def sum_open(self, party: Party, message: SumSurvivors) -> SumOpenings:
        """Open one kind of share of every neighbour: of the seed if its values arrived, else of its mask key."""
        table, place = self._begin(party, message.label, 4)
        arrived = marked(list(range(len(table.names))), message.arrived)
        least = len(table.names) - table.plan.missing
        if len(arrived) < least or place not in arrived:
            raise RefusedError(
                f"the values of {len(arrived)} parties arrived for the sum '{message.label}', and the study's noise "
                f"is enough from {least} on: it stays closed, and what was charged stays charged"
            )
        held = party.recall(f"sum {message.label} held", _Held)
        dealt = marked(table.neighbours(place), held.dealt)
        shares = dict(zip(dealt, pieces(held.shares, SHARE_BYTES, len(dealt)), strict=True))
        return SumOpenings(halves=b"".join(openings(shares, arrived).values()))

    def open(self, session: Session, contribute: Callable[[Any, SumInbox], SumMasked]) -> Total:
        """Run the coordinator's side: pass on keys and boxes, add up masked values, open the total.

        Raises:
            PartyError: if more parties than the plan allows fall silent or refuse.
            RefusedError: if shares do not open what was published. The total stays closed.
        """
        table = Table(study=session.study, label=self.label, names=session.parties, plan=self.graph)
        places = {name: place for place, name in enumerate(table.names)}
        least = len(places) - table.plan.missing
        keys = _ask(session, self.sum_keys, dict.fromkeys(places.values(), SumStart(label=self.label)), least)
        boxes = _ask(session, self.sum_shares, {place: _directory(table, place, keys) for place in keys}, least)
        masked = _ask(session, contribute, _inboxes(table, keys, boxes), least)
        survivors = SumSurvivors(label=self.label, arrived=bits(place in masked for place in range(len(places))))
        opened = _ask(session, self.sum_open, dict.fromkeys(masked, survivors), least)
        gathered = Gathered(
            table=table,
            commitments={place: each.commitment for place, each in keys.items()},
            mask_keys={place: each.mask for place, each in keys.items()},
            dealt=frozenset(boxes),
            masked={place: self.ring.unpack(each.values, self.count) for place, each in masked.items()},
            opened={
                place: _halves([other for other in table.neighbours(place) if other in boxes], each)
                for place, each in opened.items()
            },
        )
        return Total(values=unmask(gathered, self.ring), present=tuple(table.names[place] for place in masked))

    def _begin(self, party: Party, label: str, number: int) -> tuple[Table, int]:
        if label != self.label:
            raise RefusedError(f"values are summed under the label '{self.label}' here and under no other")
        advance(party, f"sum {label}", number)
        names = tuple(member.name for member in party.terms.parties)
        return Table(study=party.study, label=label, names=names, plan=self.graph), names.index(party.name)


Asked = TypeVar("Asked", bound=Message)
Answered = TypeVar("Answered", bound=Message)


def _ask(
    session: Session, question: Callable[[Any, Asked], Answered], messages: Mapping[int, Asked], least: int
) -> dict[int, Answered]:
    """Ask some parties, by place; at least `least` must answer."""
    names = session.parties
    named = {names[place]: message for place, message in messages.items()}
    answers = session.ask(question, named, missing=len(messages) - least)
    places = {name: place for place, name in enumerate(names)}
    return {places[name]: answer for name, answer in answers.items()}


def _directory(table: Table, place: int, keys: Mapping[int, SumKeys]) -> SumDirectory:
    neighbours = table.neighbours(place)
    present = [each for each in neighbours if each in keys]
    return SumDirectory(
        label=table.label,
        present=bits(each in keys for each in neighbours),
        keys=b"".join(keys[each].seal + keys[each].mask for each in present),
    )


def _inboxes(table: Table, keys: Mapping[int, SumKeys], boxes: Mapping[int, SumBoxes]) -> dict[int, SumInbox]:
    """Sort the boxes of all dealers by receiver."""
    sent: dict[int, dict[int, bytes]] = {place: {} for place in boxes}
    for dealer, answer in boxes.items():
        receivers = [each for each in table.neighbours(dealer) if each in keys]
        for receiver, box in zip(receivers, pieces(answer.boxes, BOX_BYTES, len(receivers)), strict=True):
            sent.setdefault(receiver, {})[dealer] = box
    return {
        place: SumInbox(
            label=table.label,
            dealt=bits(each in boxes for each in table.neighbours(place)),
            boxes=b"".join(sent[place][each] for each in table.neighbours(place) if each in boxes),
        )
        for place in boxes
    }


def _halves(dealers: list[int], answer: SumOpenings) -> dict[int, bytes]:
    return dict(zip(dealers, pieces(answer.halves, KEY_BYTES, len(dealers)), strict=True))


def _agreed(party: Party, table: Table, secrets: Secrets, keys: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return the secrets that seal shares, by place, given both public keys of every neighbour.

    Mask keys are opened if a party falls silent, so no bond may be in their secrets. Instead a box opens only between
    two parties that were shown each other's true mask keys.
    """
    names = {table.names[each]: each for each in keys}
    sealing = agree_with(party, secrets.seal.private, {name: keys[each][:KEY_BYTES] for name, each in names.items()})
    masks = {each: sorted((secrets.mask.public, key[KEY_BYTES:])) for each, key in keys.items()}
    return {names[name]: derive(secret, "sum boxes", *masks[names[name]]) for name, secret in sealing.items()}
