"""Alignment (private set intersection): every party learns which of its ids ALL parties hold, and nothing else.

1. The parties agree on a secret and hash their ids to points of a curve with it (`syndic.mpc.align.point`).
2. Every party has a secret power. A party blinds its points and sends them round: each of the others takes its power of
   them, and the owner turns the blinding into its own power. So it gets, for its own ids and no others, a label that is
   the same wherever the id is held, and that nobody can compute for another id: all parties' powers are in it.
3. From labels and the secrets of pairs of parties come shares that add up to zero where all hold the id. Every party
   encodes its own as a table, and the sum of all tables shows each party where it is zero (`syndic.mpc.align.table`).
   The coordinator adds up under a cover, and a test under secret weights finds a wrong sum (`syndic.mpc.align.sums`).
   Two parties need neither blinding nor tables: each blinds by its own power, and so computes the other's labels. It
   compares them with its own, which shows who is common and nothing else, as points come in a random order.
4. Common people are ordered by their labels: the same everywhere, unknown beforehand. Every two parties test whether
   they found the same without revealing it to a partner that found something else: each sends a power of its order's
   digest, as a point, and both have the same key in the end if their digests are the same (Jablon 1996). The digest
   has hashes of the ids in it: whoever returns somebody's own points as its own, without the ids, does not know it.

*Who learns what.* Every set is padded with random points to its party's public bound, so sizes stay hidden. The
coordinator carries sealed boxes and tables that are uniform to it: it learns how many people are common if the parties
tell it. A party learns which of its ids are common, and so how many; of its other ids it does not learn who else holds
them, and it cannot test ids that it did not submit. Colluding parties learn, of ids that one of them submitted, whether
all the others hold them. A coordinator that adds correctly adds nothing to that. One that sends a wrong sum and helps
one of three or more parties lets it test one guess in each set, which of its ids another party holds; a wrong one ends
the run. Steps are answered once, so nobody gets more powers than its bound. *Semi-honest*: a party may submit ids that
it does not hold, as many as its bound, and learns which of them are common: no private set intersection can detect
that. Between two, each of its points may be the sum of several ids' points, and so ask whether the other holds them
all: it has the other's points under the power that it gets. *Abort*: parties compare their results before they publish
anything about them, and a party whose order differs ends the run.

After Meadows 1986 and Huberman, Franklin and Hogg 1999 (powers that commute).
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from syndic.data.aligned import NAME_BYTES, Alignment, IdRule, name_of
from syndic.document import Document
from syndic.errors import RefusedError
from syndic.kernel import Nothing, Party
from syndic.mpc.align.point import HASH_BYTES, POINT_BYTES, Blinding, new_blinding, new_power, points_of, raised
from syndic.mpc.align.sums import SUM_BYTES, TableSums
from syndic.mpc.align.table import TableShape, Words, add, bins_of, encoded, field_words, subtract, zeros
from syndic.mpc.align.work import (
    AlignBox,
    AlignDone,
    AlignTable,
    AlignTurn,
    Ids,
    Meeting,
    OtherKeys,
    Own,
    StoredOrder,
    Tags,
    Zeros,
    blinded,
    digests_of,
    hash_of,
    mixed,
    neighbour_of,
    order_name,
    piece,
)
from syndic.mpc.key import KEY_BYTES, context, derive
from syndic.mpc.order import advance
from syndic.mpc.seal import Mail, Place, seal, unseal
from syndic.mpc.secret import SharedSecret

_TAG_BYTES = 8 + 8 + 16  # an id's key in a table, its bin, its place in the common order
_KEY_BYTES = 16  # of a tag: what two parties compare


class PrivateIntersection(Document):
    """Which ids all parties of a set hold: the public bound on each party's ids, by name, and what follows from them.

    `rule`: how ids are normalised. `shape`: size of every party's table. `chunk`: points in a message. `secret`: for
    hashing ids, shared by all parties of the study. `name`: of the set, if a study has several; it is part of every
    key, seal and stored name. `told`: whether the parties tell the coordinator how many people are common. A method's
    own step reads the ids, between `begin` and `keep`.
    `syndic.mpc.align.sets` has the steps, which lead here.
    """

    bounds: Mapping[str, int]
    rule: IdRule
    shape: TableShape
    chunk: int
    secret: SharedSecret
    name: str = ""
    told: bool = True

    @property
    def label(self) -> str:
        """What the names of all that is stored and sealed for this set begin with; no set's begins another's."""
        return f"align {self.name}" if self.name else "align"

    @property
    def order_name(self) -> str:
        """The name under which a party stores its order of this set."""
        return order_name(self.name)

    # Public numbers.

    @property
    def two(self) -> bool:
        """Whether the set has two parties, which compare their labels: no blinding, no tables."""
        return len(self.bounds) == 2

    @property
    def names(self) -> tuple[str, ...]:
        """The parties, in the order in which points are passed on."""
        return tuple(self.bounds)

    @property
    def chunks(self) -> int:
        """Messages for the points of the largest party."""
        return -(-max(self.bounds.values()) // self.chunk)

    @property
    def parts(self) -> int:
        """The number of messages for a table."""
        return len(self.shape.parts())

    def count(self, name: str, number: int) -> int:
        """Return how many points a party has in a chunk."""
        return min(max(self.bounds[name] - number * self.chunk, 0), self.chunk)

    def stage(self, number: int, hop: int) -> int:
        """Return the position of a step on a chunk among all steps; refuse an invalid chunk."""
        if not 0 <= number < self.chunks:
            raise RefusedError(f"this study has {self.chunks} chunks of points; there is no chunk {number}")
        return 2 + number * (len(self.bounds) + 1) + hop

    def later_stage(self, number: int) -> int:
        """Return the position of a later step, on tables or after them, among all steps."""
        return 2 + self.chunks * (len(self.bounds) + 1) + number

    def part(self, number: int) -> range:
        """Return the bins of a message; refuse an invalid part of the table."""
        parts = self.shape.parts()
        if not 0 <= number < len(parts):
            raise RefusedError(f"a table has {len(parts)} parts in this study; there is no part {number}")
        return parts[number]

    # The parties' side.

    def begin(self, party: Party) -> None:
        """Refuse, before any id is read, if this is not the next step."""
        self._advance(party, 1)

    def keep(self, party: Party, ids: Sequence[bytes], columns: tuple[str, ...]) -> None:
        """Hash this party's first ids up to the public bound, add random ones up to it, and store them in random order.

        Two parties see each other's points where they are equal: in the table's order these would show a part of it.
        """
        bound, randomness = self.bounds[party.name], party.key_randomness(self.label)
        secret, key = derive(self.secret.value(party), "ids", *self._named), randomness.bytes(KEY_BYTES)
        power = new_power(randomness)
        blinding = Blinding(on=power, off=b"") if self.two else new_blinding(power, randomness)
        party.remember(
            f"{self.label} own", Own(power=power, on=blinding.on, off=blinding.off, key=key, columns=columns)
        )
        order = np.argsort(randomness.words(bound))
        hashes, names = (
            mixed([made(each, with_key) for each in ids[:bound]], size, order, randomness)
            for made, with_key, size in ((hash_of, secret, HASH_BYTES), (name_of, key, NAME_BYTES))
        )
        for number in range(self.chunks):
            some = slice(number * self.chunk, (number + 1) * self.chunk)
            kept = Ids(hashes=hashes[some].tobytes(), names=names[some].tobytes())
            party.remember(f"{self.label} ids {number}", kept)

    def align_blind(self, party: Party, message: AlignTurn) -> Mail:
        """Blind a chunk of this party's points and seal it for the next party."""
        number = message.number
        self._advance(party, self.stage(number, 0))
        own, kept = party.recall(f"{self.label} own", Own), party.recall(f"{self.label} ids {number}", Ids)
        hashes = (kept.hashes[start : start + HASH_BYTES] for start in range(0, len(kept.hashes), HASH_BYTES))
        points = raised(points_of(hashes), own.on)
        party.remember(f"{self.label} ids {number}", kept.blinded())
        return self.send_on(party, points, number, 1)

    def align_raise(self, party: Party, message: AlignBox) -> Mail:
        """Raise another party's blinded points to this party's secret power, and seal them for the next party."""
        if not 1 <= message.hop < len(self.bounds):
            raise RefusedError(f"expected a hop from 1 to {len(self.bounds) - 1}, found {message.hop}")
        self._advance(party, self.stage(message.number, message.hop))
        points = raised(self._receive(party, message), party.recall(f"{self.label} own", Own).power)
        if self.two:
            keys = np.ascontiguousarray(self._digests(party, points)[:, :_KEY_BYTES]).tobytes()
            party.remember(f"{self.label} other {message.number}", OtherKeys(keys=keys))
        return self.send_on(party, points, message.number, message.hop + 1)

    def align_finish(self, party: Party, message: AlignBox) -> Nothing:
        """Replace the blinding of this party's points by its own power, and store the labels. Sends nothing."""
        if message.hop != len(self.bounds):
            raise RefusedError("points came back before every party had processed them")
        self._advance(party, self.stage(message.number, message.hop))
        labels, ids = self._receive(party, message), party.recall(f"{self.label} ids {message.number}", Ids)
        if not self.two:
            labels = raised(labels, party.recall(f"{self.label} own", Own).off)
        party.remember(f"{self.label} tags {message.number}", self._tag(party, labels, ids.hashes))
        party.remember(f"{self.label} ids {message.number}", Ids(hashes=b"", names=ids.names))
        return Nothing()

    def align_table(self, party: Party, message: AlignTurn) -> AlignTable:
        """Encode this party's shares as a table: uniform without the secret of every pair of parties."""
        part = self.part(message.number)
        self._advance(party, self.later_stage(2 * message.number))
        tags, shares = self.tags(party)
        keys, bins = field_words(tags[:, :8].tobytes()), bins_of(tags[:, 8:16].tobytes(), self.shape)
        words = encoded(keys, bins, shares, part, self.shape, party.key_randomness(f"{self.label} table"))
        is_first = party.name == self.names[0]
        return AlignTable(number=message.number, words=self.sums(party).sent(message.number, words, is_first))

    def align_match(self, party: Party, message: AlignTable) -> Nothing:
        """Store for which of this party's ids the sum of all tables is zero. Sends nothing."""
        part = self.part(message.number)
        self._advance(party, self.later_stage(2 * message.number + 1))
        words = self.sums(party).got(message.number, message.words)
        tags, _ = self.tags(party)
        keys, bins = field_words(tags[:, :8].tobytes()), bins_of(tags[:, 8:16].tobytes(), self.shape)
        places = zeros(words, keys, bins, part)
        party.remember(f"{self.label} zeros {message.number}", Zeros(places=places))
        return Nothing()

    def align_vouch(self, party: Party, message: Nothing) -> Mail:
        """Order and store the common people, and seal a blinded digest of the order for every other party."""
        del message
        self._advance(party, self.later_stage(2 * self.parts))
        done, alignment = self._order(party)
        party.remember(f"{self.label} done", done)
        party.remember(f"{self.label} draft", StoredOrder(alignment=alignment))
        power = new_power(party.key_randomness(f"{self.label} vouch"))
        party.remember(f"{self.label} meeting", Meeting(power=power, keys={}))
        others = [name for name in self.names if name != party.name]
        text = blinded(party, done, power) + self.sums(party).proof()
        return self._seal_for_all(party, "vouch", dict.fromkeys(others, text))

    def align_confirm(self, party: Party, message: Mail) -> Mail:
        """Derive a key with every other party, equal if the results are equal, and seal a proof of knowing it."""
        self._advance(party, self.later_stage(2 * self.parts + 1))
        power = party.recall(f"{self.label} meeting", Meeting).power
        texts = self._open_from_all(party, "vouch", message, POINT_BYTES + SUM_BYTES)
        self.sums(party).check(text[POINT_BYTES:] for text in texts.values())
        keys = {name: raised(text[:POINT_BYTES], power) for name, text in texts.items()}
        party.remember(f"{self.label} meeting", Meeting(power=power, keys=keys))
        proofs = {name: derive(key, "align confirm", *self._named, party.name, name) for name, key in keys.items()}
        return self._seal_for_all(party, "confirm", proofs)

    def align_done(self, party: Party, message: Mail) -> AlignDone:
        """Check that all parties found the same; then store the order and return the number of common people, if told.

        The digest goes with the number: that of no people is known to everybody.
        """
        self._advance(party, self.later_stage(2 * self.parts + 2))
        done, keys = party.recall(f"{self.label} done", AlignDone), party.recall(f"{self.label} meeting", Meeting).keys
        for name, proof in self._open_from_all(party, "confirm", message, KEY_BYTES).items():
            if not hmac.compare_digest(proof, derive(keys[name], "align confirm", *self._named, name, party.name)):
                raise RefusedError(
                    f"{name} and {party.name} found different common people: set a new edition and run again"
                )
        party.remember(self.order_name, party.recall(f"{self.label} draft", StoredOrder))
        self._forget(party)
        return done if self.told else AlignDone()

    # What the parties' steps are made of.

    def send_on(self, party: Party, points: bytes, number: int, hop: int) -> Mail:
        """Return points sealed for the next party."""
        receiver = neighbour_of(self.names, party.name, 1)
        place = self._place(party, f"{number} {hop}", party.name, receiver)
        box = seal(self._pairs(party)[receiver], points, place, party.key_randomness(f"{self.label} box"))
        return Mail(boxes={receiver: box})

    def _receive(self, party: Party, message: AlignBox) -> bytes:
        """Return the points in a box; refuse another number of them than their owner's public bound gives."""
        sender = neighbour_of(self.names, party.name, -1)
        owner = neighbour_of(self.names, party.name, -message.hop)
        place = self._place(party, f"{message.number} {message.hop}", sender, party.name)
        points = unseal(self._pairs(party)[sender], message.box, place)
        if len(points) != POINT_BYTES * self.count(owner, message.number):
            raise RefusedError(f"{sender} sent a wrong number of points for {owner}")
        return points

    def _seal_for_all(self, party: Party, what: str, texts: Mapping[str, bytes]) -> Mail:
        """Return a text for each other party, sealed."""
        secrets, randomness = self._pairs(party), party.key_randomness(f"{self.label} {what} box")
        return Mail(
            boxes={
                name: seal(secrets[name], text, self._place(party, what, party.name, name), randomness)
                for name, text in texts.items()
            }
        )

    def _open_from_all(self, party: Party, what: str, message: Mail, size: int) -> dict[str, bytes]:
        """Return the texts that all other parties sealed for this one; refuse if one is missing or not of `size`."""
        secrets = self._pairs(party)
        if message.boxes.keys() != secrets.keys():
            raise RefusedError("the sealed messages about the order are not those of all other parties")
        texts = {
            name: unseal(secret, message.boxes[name], self._place(party, what, name, party.name))
            for name, secret in secrets.items()
        }
        if any(len(text) != size for text in texts.values()):
            raise RefusedError("a sealed message about the order has the wrong length")
        return texts

    def _tag(self, party: Party, labels: bytes, hashes: bytes) -> Tags:
        """Return what follows from each label: a key, a bin, a place in the order, and this party's share of zero."""
        tags = self._digests(party, labels)
        # the place needs the id too: whoever made a party accept a label that is not its own does not know it
        tags[:, _KEY_BYTES:] ^= np.frombuffer(hashes, dtype=np.uint8).reshape(-1, _TAG_BYTES - _KEY_BYTES)
        shares: Words = np.zeros(0 if self.two else len(tags), dtype=np.uint64)
        for name, secret in {} if self.two else self._pairs(party).items():
            key = derive(secret, "zero shares", party.study, *self._named)
            drawn = field_words(digests_of(labels, 8, key))
            earlier = self.names.index(party.name) < self.names.index(name)
            shares = (add if earlier else subtract)(shares, drawn)
        return Tags(tags=tags.tobytes(), shares=shares)

    def _digests(self, party: Party, labels: bytes) -> NDArray[np.uint8]:
        """Return a digest of each label, that only parties of the study can compute."""
        key = derive(self.secret.value(party), "tags", *self._named)
        digests = bytearray(digests_of(labels, _TAG_BYTES, key))
        return np.frombuffer(digests, dtype=np.uint8).reshape(-1, _TAG_BYTES)

    def sums(self, party: Party) -> TableSums:
        """Return what hides and tests the sum of all tables."""
        key = derive(self.secret.value(party), "tables", *self._named)
        return TableSums(party=party, label=self.label, shape=self.shape, key=key)

    def tags(self, party: Party) -> tuple[NDArray[np.uint8], Words]:
        """Return key, bin and order of all this party's ids, and their shares. Private."""
        kept = [party.recall(f"{self.label} tags {number}", Tags) for number in range(self.chunks)]
        tags = np.frombuffer(b"".join(each.tags for each in kept), dtype=np.uint8).reshape(-1, _TAG_BYTES)
        return tags, np.concatenate([each.shares for each in kept])

    def _order(self, party: Party) -> tuple[AlignDone, Alignment]:
        """Return this party's result: public numbers for comparison, and its own record."""
        own = party.recall(f"{self.label} own", Own)
        kept = [party.recall(f"{self.label} ids {number}", Ids).names for number in range(self.chunks)]
        names, (tags, _) = b"".join(kept), self.tags(party)
        orders = np.ascontiguousarray(tags[:, _KEY_BYTES:]).tobytes()
        # a random point that stands for nobody is as any other: it is never common, unless somebody lied
        sequence = sorted((piece(orders, place, _TAG_BYTES - _KEY_BYTES), place) for place in self._common(party, tags))
        chosen = b"".join([piece(names, place, NAME_BYTES) for _, place in sequence])
        digest = hashlib.sha256(context("alignment", party.study, *self._named, *(order for order, _ in sequence)))
        alignment = Alignment(rule=self.rule, columns=own.columns, key=own.key, names=chosen)
        return AlignDone(people=len(sequence), digest=digest.digest()), alignment

    def _common(self, party: Party, tags: NDArray[np.uint8]) -> list[int]:
        """Return the places of the ids that all parties of the set hold. Private."""
        if not self.two:
            found = [party.recall(f"{self.label} zeros {number}", Zeros).places for number in range(self.parts)]
            return [int(place) for place in np.concatenate(found)]
        own = np.ascontiguousarray(tags[:, :_KEY_BYTES]).tobytes()
        kept = [party.recall(f"{self.label} other {number}", OtherKeys).keys for number in range(self.chunks)]
        theirs = {piece(keys, place, _KEY_BYTES) for keys in kept for place in range(len(keys) // _KEY_BYTES)}
        return [place for place in range(len(tags)) if piece(own, place, _KEY_BYTES) in theirs]

    def _forget(self, party: Party) -> None:
        """Overwrite the stored values that only the alignment needed."""
        nothing = Ids(hashes=b"", names=b"")
        for number in range(self.chunks):
            party.remember(f"{self.label} ids {number}", nothing)
            party.remember(f"{self.label} tags {number}", Tags(tags=b"", shares=np.zeros(0, dtype=np.uint64)))
            if self.two:
                party.remember(f"{self.label} other {number}", OtherKeys(keys=b""))
        for name in ("draft", "own", "meeting"):
            party.remember(f"{self.label} {name}", nothing)

    @property
    def _named(self) -> tuple[str, ...]:
        """What sets keys and digests of several sets apart."""
        return (self.name,) if self.name else ()

    def _pairs(self, party: Party) -> dict[str, bytes]:
        """Return the secrets of this party with each of the others of the set."""
        return {name: secret for name, secret in self.secret.pairs(party).items() if name in self.bounds}

    def _advance(self, party: Party, stage: int) -> None:
        advance(party, self.label, stage)

    def _place(self, party: Party, what: str, sender: str, receiver: str) -> Place:
        """Return the place that a box of this set's alignment is bound to."""
        return Place(study=party.study, label=f"{self.label} {what}", sender=sender, receiver=receiver)
