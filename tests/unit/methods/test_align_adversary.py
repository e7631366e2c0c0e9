"""Whoever tries ids against what it saw does so in vain, and with every secret the same search finds them."""

import hashlib
import sqlite3
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aligning import Carrier, carried, table
from support import THREE_VERTICAL, align_study
from syndic import Study
from syndic.data.aligned import NAME_BYTES, id_batches, name_of
from syndic.errors import PartyError
from syndic.kernel import Call, Message, Party, Reply, decode, encode, run, steps_of
from syndic.methods.align import Align, AlignPlan
from syndic.mpc.align.point import points_of, raised
from syndic.mpc.align.table import FIELD, add, bins_of, field_words, multiply, subtract, table_shape, weighed
from syndic.mpc.align.work import AlignBox, AlignDone, AlignTable, Ids, Own, digests_of, hash_of, piece
from syndic.mpc.key import context, derive
from syndic.mpc.seal import Mail, Place, seal, unseal
from syndic.random import SystemRandomness

HELD = {"north": range(40), "south": range(20, 60), "east": [*range(30), *range(50, 60)]}
COMMON = {20, 21, 22, 23, 24, 25, 26, 27, 28, 29}


def inside(carrier: Carrier, study: Study, name: str) -> Party[AlignPlan]:
    """Return a party as its own steps see it: all its secrets."""
    state: Any = carrier.nodes[name].state
    return Party(state, call="0" * 32, step=steps_of(Align)["align_collect"], view=state.view)


def kept(party: Party, name: str, kind: type[Message]) -> Any:
    return party.recall(name, kind)


def people_of(party: Party, ids: Iterable[int]) -> list[int | None]:
    """Return who stands at each of a party's places, None for random points."""
    key, names = kept(party, "align own", Own).key, kept(party, "align ids 0", Ids).names
    known = {name_of(written, key): each for each, written in zip(ids, identities(ids), strict=True)}
    return [known.get(piece(names, place, NAME_BYTES)) for place in range(len(names) // NAME_BYTES)]


def identities(ids: Iterable[int]) -> list[bytes]:
    (read,) = id_batches([pa.record_batch({"id": pa.array(list(ids))})], ["id"], Align().rule)
    return [each for each in read if each is not None]


class Spied:
    """One run of two or three parties; `secrets` are what each knew just before it wrote over them."""

    def __init__(self, study: Study, folder: Path) -> None:
        sources = {party.name: table(list(HELD[party.name]), 1) for party in study.parties}
        self.study = study
        self.carrier, session = carried(study, sources, folder)
        self.owns: dict[str, Own] = {}
        self.shared: dict[str, bytes] = {}
        self.pairs: dict[str, dict[str, bytes]] = {}
        self.tags: dict[str, Any] = {}
        self.people: dict[str, list[int | None]] = {}
        self.sums: list[AlignTable] = []
        self.covers: list[Any] = []

        def look(step: str, party: str, body: bytes) -> bytes:
            if step == "align_match":
                self.sums.append(decode(body, AlignTable))
            if step == "align_vouch":
                own = inside(self.carrier, study, party)
                self.owns[party] = kept(own, "align own", Own)
                self.shared[party] = own.plan.intersection.secret.value(own)
                self.pairs[party] = own.plan.intersection.secret.pairs(own)
                self.tags[party] = own.plan.intersection.turn(own).tags(own)[0]
                self.people[party] = people_of(own, HELD[party])
                if len(study.parties) > 2:
                    self.covers.append(own.plan.intersection.turn(own).sums(own).drawn("cover", 0))
            return body

        self.carrier.change = look
        self.result: Any = run(study.protocol, session)
        self.carrier.close()

    def asked(self, step: str) -> dict[str, bytes]:
        """Return the bodies of the questions of a step."""
        calls = [decode(data, Call) for data in self.carrier.seen[::2]]
        return {call.party: call.body for call in calls if call.step == step}

    def answers(self, step: str) -> dict[str, bytes]:
        """Return the bodies of the answers to a step."""
        calls = [decode(data, Call) for data in self.carrier.seen[::2]]
        replies = [decode(data, Reply) for data in self.carrier.seen[1::2]]
        return {call.party: reply.body for call, reply in zip(calls, replies, strict=True) if call.step == step}


def hashed(ids: Iterable[int], secret: bytes, study: Study) -> list[bytes]:
    assert study.protocol == Align()
    key = derive(secret, "ids")
    points = points_of(hash_of(each, key) for each in identities(ids))
    return [points[start : start + 32] for start in range(0, len(points), 32)]


def test_the_coordinator_tries_every_id_in_vain(tmp_path: Path) -> None:
    spied = Spied(align_study(), tmp_path)
    view = b"".join(spied.carrier.seen)
    north, secret = spied.owns["north"], spied.shared["north"]
    assert secret == spied.shared["south"]
    secrets = [secret, north.power, north.key, spied.pairs["north"]["south"]]
    assert not any(each in view for each in secrets)
    candidates = hashed(range(60), secret, spied.study)
    # neither points nor their powers were shown, even to somebody who got hold of the hash's key
    for power in (None, north.power, spied.owns["south"].power):
        tried = candidates if power is None else [raised(each, power) for each in candidates]
        assert not any(each in view for each in tried)

    box = decode(spied.answers("align_blind")["north"], Mail).boxes["south"]
    place = Place(study=spied.study.digest, label="align 0 1", sender="north", receiver="south")
    opened = unseal(spied.pairs["north"]["south"], box, place)
    points = {opened[start : start + 32] for start in range(0, len(opened), 32)}
    assert len(points) == 60
    assert not points & set(candidates)
    found = [each for each, point in enumerate(candidates) if raised(point, north.on) in points]
    assert found == list(HELD["north"]), "with the seal's key, the hash's key and the blinding the same search works"


def test_a_party_finds_no_id_of_another_that_is_not_common(tmp_path: Path) -> None:
    """South has every message to it, its own power and all keys that it shares; it lacks north's power."""
    spied = Spied(align_study(), tmp_path)
    south = spied.owns["south"]
    candidates = hashed(range(60), spied.shared["south"], spied.study)
    got = decode(spied.asked("align_raise")["south"], AlignBox)
    place = Place(study=spied.study.digest, label="align 0 1", sender="north", receiver="south")
    opened = unseal(spied.pairs["south"]["north"], got.box, place)
    got_back = decode(spied.asked("align_finish")["south"], AlignBox)
    place = Place(study=spied.study.digest, label="align 0 2", sender="north", receiver="south")
    returned = unseal(spied.pairs["south"]["north"], got_back.box, place)
    theirs, labels = ([text[start : start + 32] for start in range(0, len(text), 32)] for text in (opened, returned))
    seen = {*theirs, *labels}
    seen |= {raised(point, south.power) for point in seen}
    tried = set(candidates) | {raised(point, south.power) for point in candidates}
    assert not seen & tried
    # labels of north's points that south computes are equal to its own for common people, and for nobody else
    found = {person for label, person in zip(labels, spied.people["south"], strict=True)
             if label in {raised(point, south.power) for point in theirs}}  # fmt: skip
    assert found == set(HELD["north"]) & set(HELD["south"])
    assert spied.result.note.people == len(set(HELD["north"]) & set(HELD["south"]))


def test_a_party_of_three_does_not_learn_who_else_holds_its_other_people(tmp_path: Path) -> None:
    """The sum of tables is zero at common ids, and elsewhere shows no difference between one other holder and none.

    A share of two parties would show as the sum of the two parties' shares; it never does.
    """
    study = align_study(parties=THREE_VERTICAL)
    spied = Spied(study, tmp_path)
    assert spied.result.note.people == len(COMMON)
    shape = table_shape(60)
    keys = {name: field_words(tags[:, :8].tobytes()).tolist() for name, tags in spied.tags.items()}
    bins = {name: bins_of(tags[:, 8:16].tobytes(), shape).tolist() for name, tags in spied.tags.items()}
    prime, words = 2**61 - 1, subtract(spied.sums[0].words, spied.covers[0])
    values = {
        person: sum(int(word) * pow(keys["north"][place], power, prime) for power, word in enumerate(words[own]))
        % prime
        for place, (person, own) in enumerate(zip(spied.people["north"], bins["north"], strict=True))
        if person is not None
    }
    assert {person for person, value in values.items() if value == 0} == COMMON
    assert len(set(values.values())) == len(HELD["north"]) - len(COMMON) + 1
    held_by_south_too = set(HELD["south"]) & set(HELD["north"]) - COMMON
    assert held_by_south_too
    # the same label everywhere: what the parties compare; north's other labels are in nobody's table but its own
    assert set(keys["north"]) & set(keys["south"]) & set(keys["east"]) == {
        keys["north"][spied.people["north"].index(person)] for person in COMMON
    }
    assert not any(key.to_bytes(8, "little") in b"".join(spied.carrier.seen) for key in keys["north"])


def zeros_of(polynomial: list[int]) -> int:
    """Return how many zeros a polynomial modulo 2^61 - 1 has, coefficients lowest first: a gcd with x^prime - x."""
    power = [0, 1]
    for _ in range(61):  # x^(prime + 1) in the end
        square = [0] * (2 * len(power) - 1)
        for place, factor in enumerate(power):
            for other, word in enumerate(power):
                square[place + other] += factor * word
        power = remainder(square, polynomial)
    power += [0] * (3 - len(power))
    power[2] -= 1
    left, right = polynomial, remainder(power, polynomial)
    while right:
        left, right = right, remainder(left, right)
    return len(left) - 1


def remainder(polynomial: list[int], divisor: list[int]) -> list[int]:
    rest, inverse = [each % FIELD for each in polynomial], pow(divisor[-1], -1, FIELD)
    while rest and (len(rest) >= len(divisor) or not rest[-1]):
        factor = rest.pop() * inverse % FIELD
        for place in range(1, len(divisor) if factor else 0):
            rest[-place] = (rest[-place] - factor * divisor[-place - 1]) % FIELD
    return rest


def test_the_coordinator_cannot_count_the_zeros_of_the_sum_of_tables(tmp_path: Path) -> None:
    """A polynomial has about one zero by chance, and one for every common person: their number would be known."""
    study = align_study('sizes = "private"', parties=THREE_VERTICAL)
    sources = {name: table(list(range(30)), 1) for name in HELD}
    carrier, session = carried(study, sources, tmp_path)
    seen: dict[str, Any] = {}

    def look(step: str, party: str, body: bytes) -> bytes:
        if step == "align_match":
            own = inside(carrier, study, party)
            cover = own.plan.intersection.turn(own).sums(own).drawn("cover", 0)
            seen.update(sum=decode(body, AlignTable).words, open=subtract(decode(body, AlignTable).words, cover))
        return body

    carrier.change = look
    run(study.protocol, session)
    carrier.close()
    covered, uncovered = (sum(zeros_of(row) for row in seen[each].tolist()) for each in ("sum", "open"))
    # 15 zeros by chance: once in 10^12 runs
    assert covered < 15
    assert uncovered >= 30, "without the cover the same count finds them"


def test_a_finished_run_leaves_no_power_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a party's power and its partner's messages every id can be tried. Many SQLite keep what is overwritten."""
    connect = sqlite3.connect

    def careless(*args: Any, **options: Any) -> Any:
        connection = connect(*args, **options)
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    monkeypatch.setattr(sqlite3, "connect", careless)
    spied = Spied(align_study(), tmp_path)
    files = {name: (tmp_path / "parties" / name / "ledger.sqlite").read_bytes() for name in spied.owns}
    for name, own in spied.owns.items():
        assert own.key in files[name], "the key of the party's record is stored"
        assert own.power not in files[name]


def subsets(tags: list[bytes]) -> list[tuple[bytes, ...]]:
    """Return all sets of these places in the order, as a party that found them would have them."""
    return [some for count in range(len(tags) + 1) for some in combinations(sorted(tags), count)]


def test_a_lying_coordinator_and_one_of_three_do_not_read_whom_another_holds(tmp_path: Path) -> None:
    """They send a sum that is zero at ten ids of their choice; what north then says must not tell which it holds.

    Of 30 to 34 north is the only other holder, of 50 to 54 east is: each holds half, and nobody is common.
    """
    study, probes = align_study(parties=THREE_VERTICAL), [*range(30, 35), *range(50, 55)]
    carrier, session = carried(study, {name: table(list(HELD[name]), 1) for name in HELD}, tmp_path)
    known: dict[str, Any] = {}
    shape = table_shape(60)

    def lie(step: str, party: str, body: bytes) -> bytes:
        if step != "align_match":
            return body
        south = inside(carrier, study, "south")
        places = [people_of(south, HELD["south"]).index(person) for person in probes]
        tags = south.plan.intersection.turn(south).tags(south)[0][places]
        known.update(tags=[each[16:].tobytes() for each in tags], secrets=south.plan.intersection.secret.pairs(south))
        known["powers"] = [south.recall("align own", Own).power]
        polynomial = [1]
        for key in field_words(tags[:, :8].tobytes()).tolist():
            longer = zip([0, *polynomial], [*polynomial, 0], strict=True)
            polynomial = [(higher - key * lower) % FIELD for higher, lower in longer]
        words = np.zeros((shape.bins, shape.points), dtype=np.uint64)
        words[:, : len(polynomial)] = polynomial
        # south tells the cover and the weights: a multiple of the polynomial passes the test of the sum
        sums = south.plan.intersection.turn(south).sums(south)
        cover, weights = sums.drawn("cover", 0), sums.drawn("weights", 0)
        lacking = weighed(subtract(decode(body, AlignTable).words, cover), weights)
        factor = lacking * pow(weighed(words, weights), -1, FIELD) % FIELD
        words = add(multiply(words, np.full_like(words, factor)), cover)
        return encode(AlignTable(number=0, words=words))

    carrier.change = lie
    with pytest.raises(PartyError, match="found different common people"):
        run(study.protocol, session)
    carrier.close()
    boxes = [
        (decode(data, Call).step, decode(decode(reply, Reply).body, Mail).boxes["south"])
        for data, reply in zip(carrier.seen[::2], carrier.seen[1::2], strict=True)
        if decode(data, Call).party == "north" and decode(data, Call).step in {"align_vouch", "align_confirm"}
    ]
    labels = {"align_vouch": "align vouch", "align_confirm": "align confirm"}
    told = [
        unseal(known["secrets"]["north"], box, Place(study=study.digest, label=labels[step], sender="north",
               receiver="south"))
        for step, box in boxes
    ]  # fmt: skip
    digests = [hashlib.sha256(context("alignment", study.digest, *some)).digest() for some in subsets(known["tags"])]
    assert len(digests) == 1024
    points = [points_of([hashlib.sha512(context("align vouch", study.digest, each)).digest()]) for each in digests]
    tried = {*digests, *points, *(raised(point, power) for point in points for power in known["powers"])}
    assert told
    assert not tried & set(told)


def test_points_come_in_an_order_that_shows_neither_the_tables_nor_its_size(tmp_path: Path) -> None:
    """In the table's order, the last common place would bound how many ids the other party has at least."""
    orders = []
    for number in range(2):
        spied = Spied(align_study(), tmp_path / str(number))
        places = spied.people["north"]
        assert sorted(each for each in places if each is not None) == list(HELD["north"])
        # 20 of 60 are random points; that none of them comes among the first 40 has a chance of 1 in 10^15
        assert None in places[:40]
        orders.append(places)
    assert orders[0] != orders[1]


def test_a_party_that_returns_the_others_points_as_its_own_ends_the_run(tmp_path: Path) -> None:
    """North's points then have the labels of "south's": all of north's people seem to be common, and random points.

    South knows every label, but no id, and so not what north found. It learns nothing, not even how many ids north has.
    """
    study = align_study()
    carrier, session = carried(study, {name: table(list(HELD[name]), 1) for name in ("north", "south")}, tmp_path)
    known: dict[int, bytes] = {}

    def reflect(step: str, party: str, body: bytes) -> bytes:
        hop = {"align_raise": 1, "align_finish": 2}.get(step)
        if party == "north" and hop is not None:
            south = inside(carrier, study, "south")
            pair = south.plan.intersection.secret.pairs(south)["north"]
            got = Place(study=study.digest, label=f"align 0 {hop}", sender="north", receiver="south")
            given = Place(study=study.digest, label=f"align 0 {hop}", sender="south", receiver="north")
            answer = decode(carrier.reply("align_blind" if hop == 1 else "align_raise", "north"), Mail)
            points = unseal(pair, answer.boxes["south"], got)
            known[hop] = points
            return encode(AlignBox(number=0, hop=hop, box=seal(pair, points, given, SystemRandomness())))
        if party == "north" and step == "align_confirm":
            north = inside(carrier, study, "north")
            done, key = (
                north.recall("align done", AlignDone),
                derive(north.plan.intersection.secret.value(north), "tags"),
            )
            assert done.people == 60, "up to here the attack works: every point of north's is in what it got"
            tags = digests_of(known[2], 32, key)
            orders = sorted(piece(tags, 2 * place + 1, 16) for place in range(60))
            # south has all labels, the key and the order of places; it lacks the ids
            assert done.digest != hashlib.sha256(context("alignment", study.digest, *orders)).digest()
        return body

    carrier.change = reflect
    with pytest.raises(PartyError, match="found different common people"):
        run(study.protocol, session)
    carrier.close()


@pytest.mark.parametrize("parties", [2, 3])
def test_a_party_that_returns_points_in_another_order_ends_the_run(parties: int, tmp_path: Path) -> None:
    """North would take other people for common: labels alone do not tell whose they are."""
    study = align_study(**({"parties": THREE_VERTICAL} if parties == 3 else {}))
    names = [party.name for party in study.parties]
    carrier, session = carried(study, {name: table(list(HELD[name]), 1) for name in names}, tmp_path)
    before = names[names.index("north") - 1]

    def turn(step: str, party: str, body: bytes) -> bytes:
        if step != "align_finish" or party != "north":
            return body
        own = inside(carrier, study, before)
        pair = own.plan.intersection.secret.pairs(own)["north"]
        place = Place(study=study.digest, label=f"align 0 {parties}", sender=before, receiver="north")
        points = unseal(pair, decode(body, AlignBox).box, place)
        turned = points[32:] + points[:32]
        return encode(AlignBox(number=0, hop=parties, box=seal(pair, turned, place, SystemRandomness())))

    carrier.change = turn
    with pytest.raises(PartyError, match="found different common people"):
        run(study.protocol, session)
    carrier.close()
