"""Alignment: every party learns which of its ids ALL parties hold, and nothing else of anybody's ids.

1. The parties agree on a secret and hash their ids to points of a curve with it (`syndic.mpc.align.point`).
2. Every party has a secret power. A party blinds its points and sends them round: each of the others takes its power of
   them, and the owner turns the blinding into its own power. So it gets, for its own ids and no others, a label that is
   the same wherever the id is held, and that nobody can compute for another id: all parties' powers are in it.
3. From labels and the secrets of pairs of parties come shares that add up to zero where all hold the id. Every party
   encodes its own as a table, and the sum of all tables shows each party where it is zero (`syndic.mpc.align.table`).
4. Common people are ordered by their labels: the same everywhere, unknown beforehand. Every two parties test whether
   they found the same without showing it to a partner who found something else: each sends a power of its order's
   digest, as a point, and both have the same key in the end if their digests are the same (Jablon 1996).

*Who could learn what.* Every set is filled up with random points to its party's public bound, so sizes do not show. The
coordinator carries sealed boxes and tables that are uniform to it: it learns how many people are common, which it
publishes. A party learns which of its ids are common; of its other ids it does not learn who else holds them, and it
cannot try ids that it did not bring. Parties that pool what they know learn, of ids that one of them brought, whether
all the others hold them. A coordinator that adds up right adds nothing to that; one that sends another sum and helps
one of three or more parties lets it test one guess, which of its ids another party holds, and the run ends. Steps are
answered once, so nobody gets more powers than its bound. *Semi-honest*: a party may bring ids that it does not hold, as
many as its bound, and learns which of them are common: no private set intersection can tell. *Abort*: parties compare
what they found before they say anything about it, and a party whose order is another one ends the run.

After Meadows 1986 and Huberman, Franklin and Hogg 1999 (powers that commute).
"""

import abc
import hmac
from collections.abc import Mapping

from syndic.data.aligned import IdRule, distinct_ids, name_of
from syndic.errors import InputError, RefusedError
from syndic.kernel import Nothing, Party, Session, step
from syndic.mpc.align.point import HASH_BYTES, new_blinding, new_power, points_of, raised
from syndic.mpc.align.table import FIELD, add, bins_of, encoded, field_words, table_shape, zeros
from syndic.mpc.align.work import (
    CHUNK,
    LABEL,
    ORDER_NAME,
    AlignBox,
    AlignDone,
    AlignMail,
    AlignTable,
    AlignTurn,
    Ids,
    Meeting,
    Own,
    StoredOrder,
    Zeros,
    all_tags,
    blinded,
    bound_of,
    chunks_of,
    count_of,
    forget,
    later_stage_of,
    most_people,
    opened_from_all,
    ordered,
    part_of,
    parts_of,
    passed_on,
    received,
    sealed_for_all,
    sent_on,
    stage_of,
    tags_of,
)
from syndic.mpc.key import KEY_BYTES, derive
from syndic.mpc.order import advance
from syndic.mpc.seal import Mail
from syndic.mpc.secret import UsesSharedSecret, pair_secrets, secret_of, shared_secret


class UsesAlignment(UsesSharedSecret):
    """What a protocol inherits to align its parties; `align` runs it."""

    @abc.abstractmethod
    def align_rule(self) -> IdRule:
        """Return how ids are read."""

    @step(reveals="sealed")
    def align_collect(self, party: Party, message: Nothing) -> Nothing:
        """Read this party's ids, hash them, and fill up with random ones to the public bound. Sends nothing."""
        advance(party, LABEL, 1)
        table, rule = party.table, self.align_rule()
        ids = distinct_ids(table.source, table.id_columns, rule)
        bound = bound_of(party.terms, party.name)
        if len(ids) > bound:
            raise InputError(f"party '{party.name}': its source has more people than the {bound} of the study")
        randomness = party.key_randomness("align")
        secret, key = derive(secret_of(party, LABEL), "ids"), randomness.bytes(KEY_BYTES)
        power = new_power(randomness)
        blinding = new_blinding(power, randomness)
        own = Own(power=power, on=blinding.on, off=blinding.off, key=key, real=len(ids), columns=table.id_columns)
        party.remember("align own", own)
        for number in range(chunks_of(party.terms)):
            some = ids[number * CHUNK : (number + 1) * CHUNK]
            lacking = count_of(party.terms, party.name, number) - len(some)
            hashes = [hmac.digest(secret, each, "sha512") for each in some]
            kept = Ids(
                hashes=b"".join(hashes) + randomness.bytes(HASH_BYTES * lacking),
                names=b"".join(name_of(each, key) for each in some),
            )
            party.remember(f"align ids {number}", kept)
        return message

    @step(reveals="sealed")
    def align_blind(self, party: Party, message: AlignTurn) -> Mail:
        """Blind a chunk of this party's points and seal it for the next party."""
        number = message.number
        advance(party, LABEL, stage_of(party.terms, number, 0))
        own, kept = party.recall("align own", Own), party.recall(f"align ids {number}", Ids)
        hashes = (kept.hashes[start : start + HASH_BYTES] for start in range(0, len(kept.hashes), HASH_BYTES))
        points = raised(points_of(hashes), own.on)
        party.remember(f"align ids {number}", Ids(hashes=b"", names=kept.names))
        return sent_on(party, points, number, 1)

    @step(reveals="sealed")
    def align_raise(self, party: Party, message: AlignBox) -> Mail:
        """Take this party's secret power of another party's blinded points, and seal them for the next."""
        if not 1 <= message.hop < len(party.terms.parties):
            raise RefusedError("points came from a place that is none in this study's round")
        advance(party, LABEL, stage_of(party.terms, message.number, message.hop))
        points = received(party, message)
        return sent_on(party, raised(points, party.recall("align own", Own).power), message.number, message.hop + 1)

    @step(reveals="sealed")
    def align_finish(self, party: Party, message: AlignBox) -> Nothing:
        """Turn the blinding of this party's points into its power, and keep the labels. Sends nothing."""
        parties = len(party.terms.parties)
        if message.hop != parties:
            raise RefusedError("points came back before they were through every party")
        advance(party, LABEL, stage_of(party.terms, message.number, parties))
        labels = raised(received(party, message), party.recall("align own", Own).off)
        party.remember(f"align tags {message.number}", tags_of(party, labels))
        return Nothing()

    @step(reveals="masked")
    def align_table(self, party: Party, message: AlignTurn) -> AlignTable:
        """Encode this party's shares: uniform to whoever lacks the secret of one pair of parties."""
        shape = table_shape(most_people(party.terms))
        part = part_of(shape, message.number)
        advance(party, LABEL, later_stage_of(party.terms, 2 * message.number))
        tags, shares = all_tags(party)
        keys, bins = field_words(tags[:, :8].tobytes()), bins_of(tags[:, 8:16].tobytes(), shape)
        words = encoded(keys, bins, shares, part, shape, party.key_randomness("align table"))
        return AlignTable(number=message.number, words=words)

    @step(reveals="sealed")
    def align_match(self, party: Party, message: AlignTable) -> Nothing:
        """Keep at which of this party's ids the sum of all tables is zero. Sends nothing."""
        shape = table_shape(most_people(party.terms))
        part = part_of(shape, message.number)
        advance(party, LABEL, later_stage_of(party.terms, 2 * message.number + 1))
        if message.words.shape != (len(part), shape.points) or (message.words >= FIELD).any():
            raise RefusedError("the sum of the tables has another shape or other numbers than the study says")
        tags, _ = all_tags(party)
        keys, bins = field_words(tags[:, :8].tobytes()), bins_of(tags[:, 8:16].tobytes(), shape)
        places = zeros(message.words, keys, bins, part)
        party.remember(f"align zeros {message.number}", Zeros(places=places))
        return Nothing()

    @step(reveals="sealed")
    def align_vouch(self, party: Party, message: Nothing) -> Mail:
        """Put the common people in order, keep them, and seal a blinded digest of the order for every other party."""
        del message
        advance(party, LABEL, later_stage_of(party.terms, 2 * parts_of(party.terms)))
        done, alignment = ordered(party, self.align_rule())
        party.remember("align done", done)
        party.remember("align draft", StoredOrder(alignment=alignment))
        power = new_power(party.key_randomness("align vouch"))
        party.remember("align meeting", Meeting(power=power, keys={}))
        return sealed_for_all(party, "vouch", dict.fromkeys(pair_secrets(party, LABEL), blinded(party, done, power)))

    @step(reveals="sealed")
    def align_confirm(self, party: Party, message: AlignMail) -> Mail:
        """Make a key with every other party that is the same if it found the same, and seal a proof of knowing it."""
        advance(party, LABEL, later_stage_of(party.terms, 2 * parts_of(party.terms) + 1))
        power = party.recall("align meeting", Meeting).power
        keys = {name: raised(point, power) for name, point in opened_from_all(party, "vouch", message).items()}
        party.remember("align meeting", Meeting(power=power, keys=keys))
        return sealed_for_all(
            party, "confirm", {name: derive(key, "align confirm", party.name, name) for name, key in keys.items()}
        )

    @step(reveals="public")
    def align_done(self, party: Party, message: AlignMail) -> AlignDone:
        """Check that all parties found the same; then keep the order, and say how many people are common."""
        advance(party, LABEL, later_stage_of(party.terms, 2 * parts_of(party.terms) + 2))
        done, keys = party.recall("align done", AlignDone), party.recall("align meeting", Meeting).keys
        for name, proof in opened_from_all(party, "confirm", message).items():
            if not hmac.compare_digest(proof, derive(keys[name], "align confirm", name, party.name)):
                raise RefusedError(f"{name} found other common people than {party.name}: use a new edition")
        party.remember(ORDER_NAME, party.recall("align draft", StoredOrder))
        forget(party)
        return done


def align(session: Session, uses: UsesAlignment) -> AlignDone:
    """Run the coordinator's side: carry boxes round, add up tables, return what all parties found."""
    names, terms = session.parties, session.terms
    shared_secret(session, uses, label=LABEL)
    session.ask(uses.align_collect, Nothing())
    for number in range(chunks_of(terms)):
        session.progress("chunks of ids", number, chunks_of(terms))
        mail = session.ask(uses.align_blind, AlignTurn(number=number))
        for hop in range(1, len(names)):
            mail = session.ask(uses.align_raise, passed_on(names, mail, number, hop))
        session.ask(uses.align_finish, passed_on(names, mail, number, len(names)))
    session.progress("chunks of ids", chunks_of(terms), chunks_of(terms))
    for number in range(parts_of(terms)):
        tables = list(session.ask(uses.align_table, AlignTurn(number=number)).values())
        total = tables[0].words
        for table in tables[1:]:
            total = add(total, table.words)
        session.ask(uses.align_match, AlignTable(number=number, words=total))
    vouched = session.ask(uses.align_vouch, Nothing())
    confirmed = session.ask(uses.align_confirm, _inboxes(vouched))
    return next(iter(session.ask(uses.align_done, _inboxes(confirmed)).values()))


def _inboxes(sent: Mapping[str, Mail]) -> dict[str, AlignMail]:
    return {
        name: AlignMail(boxes={sender: mail.boxes[name] for sender, mail in sent.items() if sender != name})
        for name in sent
    }
