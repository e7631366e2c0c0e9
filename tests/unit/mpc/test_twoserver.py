"""The noisy sum between two servers, message by message."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pytest

from support import Case, open_nodes, study_text
from syndic import Study
from syndic.errors import PartyError
from syndic.kernel import Call, Delivery, Node, Reply, Session, answer, decode, encode, run
from syndic.methods.histogram.average import AveragePlan
from syndic.mpc import gmw
from syndic.mpc.key import KeyPair, agree
from syndic.mpc.ring import Ring
from syndic.mpc.seal import Place, PublicKeys, seal, unseal
from syndic.mpc.twoserver import TwoBits, TwoOpened, TwoServers, TwoShares, TwoStart
from syndic.noise.circuit_bits import gaussian_bits, laplace_bits
from syndic.random import SimulationRandomness
from syndic.study.party_folder import run_digest

PARTIES = "".join(f'[[parties]]\nname = "{name}"\npeople = 20\n' for name in ("north", "south", "east"))
AGE = '[[schema.columns]]\nname = "age"\nkind = "integer"\nlower = 0\nupper = 99\nmissing = { value = 0 }\n'
SEED = 7


def case(ages: Mapping[str, int]) -> Case:
    text = study_text(
        unit='neighbours = "replace"',
        budget="epsilon = 1.0\ndelta = 1e-5",
        protocol='method = "average"\nservers = ["south", "east"]',
        parties=PARTIES,
        columns=AGE,
    )
    return Case("average", Study.loads(text), {name: pa.table({"age": [age] * 20}) for name, age in ages.items()})


@final
class Wire:
    """A local runtime that keeps every call and reply, and may change a call on its way."""

    def __init__(self, nodes: Mapping[str, Node], change: Callable[[Call], Call] = lambda call: call) -> None:
        self.nodes = nodes
        self.change = change
        self.seen: list[tuple[Call, Reply]] = []

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        replies = {}
        for party, data in calls.items():
            replies[party] = answer(self.nodes[party], encode(self.change(decode(data, Call))))
            self.seen.append((decode(data, Call), decode(replies[party], Reply)))
        return Delivery(replies=replies, silent={})

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()


def play(
    played: Case, folder: Path, change: Callable[[Call], Call] = lambda call: call, *, seed: int = SEED
) -> tuple[Any, Wire]:
    wire = Wire(open_nodes(played, folder, seed=seed), change)
    return started(played, wire, seed), wire


def started(played: Case, wire: Wire, seed: int = SEED) -> Any:
    session = Session(
        runtime=wire,
        study=run_digest(played.study, seed),
        method=played.study.protocol,
        plan=played.study.plan,
        randomness=SimulationRandomness(1),
    )
    return run(played.study.protocol, session)


def bodies(wire: Wire, kind: type[Any], step: str) -> list[Any]:
    return [decode(reply.body, kind) for call, reply in wire.seen if call.step == step]


def changed(original: Call, **new: Any) -> Call:
    return Call(**{**fields(original), **new})


def test_the_sum_is_exact_before_noise(tmp_path: Path) -> None:
    """The same keys give the same noise, so that two inputs differ by exactly what was put in."""
    one, _ = play(case({"north": 10, "south": 20, "east": 30}), tmp_path / "one")
    two, _ = play(case({"north": 99, "south": 0, "east": 31}), tmp_path / "two")
    difference = two.averages.averages[0] - one.averages.averages[0]
    assert difference * 60 == pytest.approx(20 * (89 - 20 + 1), abs=1e-9)
    assert one.averages.averages[0] != pytest.approx(20.0, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_what_opens_is_the_sum_with_noise_of_the_studys_size(seed: int, tmp_path: Path) -> None:
    """Twelve scales are a fourteenth of the ring: what masks leave behind, or coins that do not fit, would show."""
    played = case({"north": 10, "south": 20, "east": 30})
    result, _ = play(played, tmp_path, seed=seed)
    noise = result.averages.averages[0] * 60 - 20 * (10 + 20 + 30)
    assert abs(noise) < 12 * 99
    assert played.study.plan_as(AveragePlan).two_servers.ring.bits == 15


def test_nothing_that_is_carried_shows_the_values(tmp_path: Path) -> None:
    """Everything but the opened total is the same or unrelated between two inputs under the same keys."""
    _, one = play(case({"north": 10, "south": 20, "east": 30}), tmp_path / "one")
    _, two = play(case({"north": 10, "south": 20, "east": 31}), tmp_path / "two")
    first, second = (bodies(wire, TwoShares, "contribute") for wire in (one, two))
    # only east's masked value moved: by 20, modulo the ring, under one and the same mask
    assert [a == b for a, b in zip(first, second, strict=True)] == [True, True, False]
    assert first[2].box == second[2].box
    for step in ("two_begin", "two_toss"):
        assert bodies(one, TwoBits, step) == bodies(two, TwoBits, step)
    opened, other = (bodies(wire, TwoOpened, "two_open") for wire in (one, two))
    assert opened[0] == other[0]
    assert opened[1] != other[1]


def test_digests_of_replies_do_not_let_the_first_server_try_values(tmp_path: Path) -> None:
    """It opens the seed, so that the right guess of a sum gives it all of the reply but the blind."""
    _, wire = play(case({"north": 10, "south": 20, "east": 30}), tmp_path)
    shares = {
        call.party: (number, decode(reply.body, TwoShares), sha256(reply.body).digest())
        for number, (call, reply) in enumerate(wire.seen)
        if call.step == "contribute"
    }
    assert len({share.blind for _, share, _ in shares.values()}) == 3
    for number, share, digest in shares.values():
        assert sha256(encode(share)).digest() == digest
        for blind in (b"", bytes(32)):
            guess = TwoShares(masked=share.masked, box=share.box, blind=blind)
            assert sha256(encode(guess)).digest() != digest
        assert len(share.blind) == 32
        # it leaves the party in this reply and is in no other message
        others = [call.body + reply.body for place, (call, reply) in enumerate(wire.seen) if place != number]
        assert not any(share.blind in other for other in others)
        assert any(share.box in other for other in others)


def test_rounds_and_sizes_are_as_stated(tmp_path: Path) -> None:
    played = case({"north": 1, "south": 2, "east": 3})
    _, wire = play(played, tmp_path)
    asked = [call.step for call, _ in wire.seen]
    assert asked.count("two_toss") == 2 * gmw.LEVELS == 12
    estimate = played.study.plan.resources
    assert estimate.rounds == 5 + gmw.LEVELS
    assert max(len(reply.body) for _, reply in wire.seen) <= estimate.reply_bytes
    start = [decode(call.body, TwoStart) for call, _ in wire.seen if call.step == "two_begin"]
    assert [bool(each.products.size) for each in start] == [False, True]
    assert [bool(each.boxes) for each in start] == [True, False]


@pytest.mark.parametrize("step", ["contribute", "two_begin", "two_toss", "two_open"])
def test_a_step_is_answered_once(step: str, tmp_path: Path) -> None:
    """A second opening under new triples would be a second release of the same charge."""
    _, wire = play(case({"north": 1, "south": 2, "east": 3}), tmp_path)
    call = next(call for call, _ in wire.seen if call.step == step and call.party == "east")
    reply = decode(answer(wire.nodes["east"], encode(changed(call, call="d" * 32))), Reply)
    assert reply.code == "refused"
    assert "answered once, in order" in reply.text


def test_who_is_no_server_does_not_toss(tmp_path: Path) -> None:
    _, wire = play(case({"north": 1, "south": 2, "east": 3}), tmp_path)
    call = next(call for call, _ in wire.seen if call.step == "two_begin" and call.party == "east")
    reply = decode(answer(wire.nodes["north"], encode(changed(call, party="north"))), Reply)
    assert (reply.code, "not one of the two servers" in reply.text) == ("refused", True)


def left_out(call: Call) -> Call:
    if call.step != "two_begin" or call.party != "south":
        return call
    start = decode(call.body, TwoStart)
    kept = {name: box for name, box in start.boxes.items() if name != "north"}
    return changed(call, body=encode(TwoStart(**{**fields(start), "boxes": kept})))


def swapped_boxes(call: Call) -> Call:
    if call.step != "two_begin" or call.party != "south":
        return call
    start = decode(call.body, TwoStart)
    boxes = {**start.boxes, "north": start.boxes["east"]}
    return changed(call, body=encode(TwoStart(**{**fields(start), "boxes": boxes})))


def cut_corrections(call: Call) -> Call:
    if call.step != "two_begin" or call.party != "east":
        return call
    start = decode(call.body, TwoStart)
    return changed(call, body=encode(TwoStart(**{**fields(start), "products": start.products[:-1]})))


def flipped_bit(call: Call) -> Call:
    if call.step != "two_toss" or call.party != "east":
        return call
    bits = decode(call.body, TwoBits)
    box = bits.box[:-1] + bytes([bits.box[-1] ^ 1])
    return changed(call, body=encode(TwoBits(level=bits.level, box=box)))


def another_level(call: Call) -> Call:
    if call.step != "two_open" or call.party != "east":
        return call
    bits = decode(call.body, TwoBits)
    return changed(call, body=encode(TwoBits(level=bits.level - 1, box=bits.box)))


def fewer_keys(call: Call) -> Call:
    if call.step != "contribute" or call.party != "north":
        return call
    keys = decode(call.body, PublicKeys).keys
    return changed(call, body=encode(PublicKeys(keys={name: keys[name] for name in ("south", "east")})))


def fields(message: Any) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message.__struct_fields__ if name != "check"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (fewer_keys, "does not have one public key for each party"),
        (left_out, "does not have one sealed seed for each party"),
        (swapped_boxes, "does not open"),
        (cut_corrections, "wrong size"),
        (flipped_bit, "does not open"),
        (another_level, "expected the bits of the coins"),
    ],
)
def test_what_was_changed_on_its_way_is_refused(change: Callable[[Call], Call], text: str, tmp_path: Path) -> None:
    with pytest.raises(PartyError, match=text):
        play(case({"north": 1, "south": 2, "east": 3}), tmp_path, change)


def no_key(call: Call) -> Call:
    if call.step != "contribute":
        return call
    keys = decode(call.body, PublicKeys).keys
    return changed(call, body=encode(PublicKeys(keys={**keys, "south": bytes(32)})))


def test_a_key_that_is_none_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    played = case({"north": 30, "south": 40, "east": 50})
    wire = Wire(open_nodes(played, tmp_path, seed=SEED), no_key)
    with pytest.raises(PartyError, match="key"):
        started(played, wire)
    assert {entry.kind for node in wire.nodes.values() for entry in node.state.ledger.entries()} == {"declare"}


def test_a_server_that_seals_too_few_bits_for_the_other_is_refused(tmp_path: Path) -> None:
    played = case({"north": 1, "south": 2, "east": 3})
    wire = Wire(open_nodes(played, tmp_path, seed=SEED))

    def short(call: Call) -> Call:
        if call.step != "two_toss" or call.party != "east":
            return call
        kept = {name: wire.nodes[name].state.memory.kept("two pair") or b"" for name in ("south", "east")}
        pairs = {name: decode(pair, KeyPair) for name, pair in kept.items()}
        secret = agree(pairs["south"].private, pairs["east"].public)
        bits = decode(call.body, TwoBits)
        place = Place(study=call.study, label=f"two servers, level {bits.level}", sender="south", receiver="east")
        box = seal(secret, unseal(secret, bits.box, place)[:-8], place, SimulationRandomness(1))
        return changed(call, body=encode(TwoBits(level=bits.level, box=box)))

    wire.change = short
    with pytest.raises(PartyError, match="the other server's bits of level 1 have the wrong size"):
        started(played, wire)


@pytest.mark.parametrize("noise", [laplace_bits(Fraction(5)), gaussian_bits(Fraction(700))])
def test_noise_from_coins_is_the_weighted_sum(noise: Any) -> None:
    agreed = TwoServers(servers=("a", "b"), dimension=3, ring=Ring(20), noise=noise)
    coins = SimulationRandomness(1).words(agreed.coins.count) & np.uint64(1)
    shares = SimulationRandomness(2).words(coins.size)
    parts = agreed.ring.reduce(shares), agreed.ring.subtract(agreed.ring.reduce(coins), agreed.ring.reduce(shares))
    noises = [agreed.noise_from(part, first=first) for part, first in zip(parts, (True, False), strict=True)]
    found = agreed.ring.lift(agreed.ring.add(*noises))
    plain = noise.offset + coins.astype(np.int64).reshape(3, -1) @ np.array(noise.weights)
    assert found.tolist() == agreed.ring.lift(agreed.ring.reduce(plain)).tolist()
