"""The noisy sum between two servers, message by message, and servers and dealers that lie."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from support import Case, open_nodes, study_text
from syndic import Study
from syndic.errors import PartyError
from syndic.kernel import Call, Delivery, Node, Party, Reply, Session, answer, decode, encode, run
from syndic.methods.histogram.average import AveragePlan
from syndic.mpc import product, twoserver
from syndic.mpc.coins import CoinProduct, _Coins
from syndic.mpc.product_messages import ProductInbox, ProductOpening, ProductProof, ProductStart
from syndic.mpc.proof import OneHotProof
from syndic.mpc.seal import PublicKeys
from syndic.mpc.triple import Stock, left_share
from syndic.mpc.twoserver import TwoOpened, TwoServers, TwoShares, TwoStart
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


@final
class Liar:
    """A coordinator that changes what it sends to a party."""

    def __init__(self, session: Session, lie: Callable[[str, str, Any], Any]) -> None:
        self.session, self.lie = session, lie

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)

    def ask(self, step: Any, message: Any) -> Any:
        asked = message if isinstance(message, Mapping) else dict.fromkeys(self.session.parties, message)
        return self.session.ask(step, {name: self.lie(step.__name__, name, one) for name, one in asked.items()})


def started(
    played: Case, wire: Wire, seed: int = SEED, lie: Callable[[str, str, Any], Any] = lambda *given: given[2]
) -> Any:
    session = Session(
        runtime=wire,
        study=run_digest(played.study, seed),
        method=played.study.protocol,
        plan=played.study.plan,
        randomness=SimulationRandomness(1),
    )
    lying: Any = Liar(session, lie)
    return run(played.study.protocol, lying)


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
    """Nine standard deviations are a twentieth of the field: what masks or products leave behind would show."""
    played = case({"north": 10, "south": 20, "east": 30})
    result, _ = play(played, tmp_path, seed=seed)
    noise = result.averages.averages[0] * 60 - 20 * (10 + 20 + 30)
    agreed = played.study.plan_as(AveragePlan).two_servers
    assert abs(noise) < 9 * agreed.noise.variance**0.5 < agreed.field.modulus / 20


def test_nothing_that_is_carried_shows_the_values(tmp_path: Path) -> None:
    """Everything but the opened total is the same or unrelated between two inputs under the same keys."""
    _, one = play(case({"north": 10, "south": 20, "east": 30}), tmp_path / "one")
    _, two = play(case({"north": 10, "south": 20, "east": 31}), tmp_path / "two")
    first, second = (bodies(wire, TwoShares, "contribute") for wire in (one, two))
    # only east's masked value moved: by 20, modulo the ring, under one and the same mask
    assert [a == b for a, b in zip(first, second, strict=True)] == [True, True, False]
    assert first[2].box == second[2].box
    for step, kind in (("product_masked", ProductOpening), ("product_proved", ProductProof)):
        assert bodies(one, kind, step) == bodies(two, kind, step)
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
    estimate = played.study.plan.resources
    assert estimate.rounds == len({call.step for call, _ in wire.seen}) - 1 == 7  # less "ready"
    assert max(len(reply.body) for _, reply in wire.seen) <= estimate.reply_bytes
    assert {call.party for call, _ in wire.seen if call.step.startswith("product")} == {"south", "east"}
    start = [decode(call.body, TwoStart) for call, _ in wire.seen if call.step == "two_open"]
    assert [(bool(each.boxes), bool(each.total)) for each in start] == [(True, False), (False, True)]


@pytest.mark.parametrize("step", ["product_masked", "product_proved", "product_multiplied", "contribute", "two_open"])
def test_a_step_is_answered_once(step: str, tmp_path: Path) -> None:
    """A second opening under other coins would be a second release of the same charge."""
    _, wire = play(case({"north": 1, "south": 2, "east": 3}), tmp_path)
    call = next(call for call, _ in wire.seen if call.step == step and call.party == "east")
    reply = decode(answer(wire.nodes["east"], encode(changed(call, call="d" * 32))), Reply)
    assert reply.code == "refused"
    assert "answered once, in order" in reply.text


def test_who_is_no_server_does_not_toss(tmp_path: Path) -> None:
    _, wire = play(case({"north": 1, "south": 2, "east": 3}), tmp_path)
    call = next(call for call, _ in wire.seen if call.step == "two_open" and call.party == "east")
    reply = decode(answer(wire.nodes["north"], encode(changed(call, party="north"))), Reply)
    assert reply.code == "refused"
    assert "not one of the two servers" in reply.text


def left_out(call: Call) -> Call:
    if call.step != "two_open" or call.party != "south":
        return call
    start = decode(call.body, TwoStart)
    kept = {name: box for name, box in start.boxes.items() if name != "north"}
    return changed(call, body=encode(TwoStart(**{**fields(start), "boxes": kept})))


def swapped_boxes(call: Call) -> Call:
    if call.step != "two_open" or call.party != "south":
        return call
    start = decode(call.body, TwoStart)
    boxes = {**start.boxes, "north": start.boxes["east"]}
    return changed(call, body=encode(TwoStart(**{**fields(start), "boxes": boxes})))


def cut_total(call: Call) -> Call:
    if call.step != "two_open" or call.party != "east":
        return call
    start = decode(call.body, TwoStart)
    return changed(call, body=encode(TwoStart(**{**fields(start), "total": start.total[:-1]})))


def flipped_bit(call: Call) -> Call:
    if call.step != "product_multiplied" or call.party != "east":
        return call
    inbox = decode(call.body, ProductInbox)
    body = inbox.bodies["south"]
    bodies = {"south": body[:-1] + bytes([body[-1] ^ 1])}
    return changed(call, body=encode(ProductInbox(**{**fields(inbox), "bodies": bodies})))


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
        (cut_total, "expected 3 bytes"),
        (flipped_bit, "does not open"),
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


# Servers and dealers that lie. Each attack comes with the weakening that lets it through.

UNPROVEN = "the proof that a partner's rows are one-hot does not hold"
AGES = {"north": 10, "south": 20, "east": 30}
EXACT = 20 * (10 + 20 + 30)


def charges(wire: Wire) -> int:
    return sum(entry.kind == "reserve" for node in wire.nodes.values() for entry in node.state.ledger.entries())


def noise_of(result: Any) -> int:
    average: float = result.averages.averages[0]
    return round(average * 60) - EXACT


@pytest.mark.parametrize("liar", ["south", "east"])
@pytest.mark.parametrize("coin", ["half", "two", "minus one"])
@pytest.mark.parametrize("weak", [False, True], ids=["proven", "unproven"])
def test_a_server_whose_coins_are_no_bits(
    liar: str, coin: str, weak: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coins of (p + 1) / 2 would take the other server's out: the noise is a number that the liar knows."""
    played = case(AGES)
    agreed = played.study.plan_as(AveragePlan).two_servers
    prime, weights, honest = agreed.field.modulus, agreed.noise.coins, CoinProduct.coins
    false = {"half": (prime + 1) // 2, "two": 2, "minus one": prime - 1}[coin]

    def coins(self: CoinProduct, party: Party, start: int, stop: int) -> NDArray[Any]:
        drawn = honest(self, party, start, stop)
        return np.full(drawn.shape, false, dtype=np.int64) if party.name == liar else drawn

    wire = Wire(open_nodes(played, tmp_path, seed=SEED))
    monkeypatch.setattr(CoinProduct, "coins", coins)
    if not weak:
        with pytest.raises(PartyError, match=UNPROVEN):
            started(played, wire)
        assert charges(wire) == 0
        return
    monkeypatch.setattr(OneHotProof, "holds", lambda *_: True)
    noise = noise_of(started(played, wire))
    if coin == "half":
        assert (noise - (false * sum(weights) - agreed.noise.mean)) % prime == 0
    else:
        assert abs(noise) > 0


def test_a_dealer_that_deals_wrong_products_only_shifts_the_sums(tmp_path: Path) -> None:
    """The dealer has no masks of coins any more whose being bits would need a check: all it has is added."""

    def wrong(step: str, party: str, inbox: Any) -> Any:
        if (step, party) != ("product_multiplied", "east"):
            return inbox
        half = agreed.field.unpack(inbox.halves["south"], 1)
        halves = {"south": agreed.field.pack(agreed.field.add(half, agreed.field.reduce(np.array([123]))))}
        return ProductInbox(**{**fields(inbox), "halves": halves})

    agreed = case(AGES).study.plan_as(AveragePlan).two_servers
    for seed in range(4):
        honest, _ = play(case(AGES), tmp_path / f"{seed} honest", seed=seed)
        wire = Wire(open_nodes(case(AGES), tmp_path / f"{seed} lied", seed=seed))
        assert noise_of(started(case(AGES), wire, seed, wrong)) == noise_of(honest) - 2 * 123


@pytest.mark.parametrize("right", [True, False], ids=["guessed right", "guessed wrong"])
@pytest.mark.parametrize("weak", [False, True], ids=["bound", "unbound"])
def test_a_dealer_that_gives_prover_and_checker_other_seeds(
    right: bool, weak: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless both have one seed, whether the checker refuses tells the dealer if it guessed the prover's coins."""
    played = case(AGES)
    agreed = played.study.plan_as(AveragePlan).two_servers
    wire, proof, field = Wire(open_nodes(played, tmp_path, seed=SEED)), agreed.product.proof("south", 0), agreed.field

    def guessing(step: str, party: str, inbox: Any) -> Any:
        if (step, party) != ("product_multiplied", "east"):
            return inbox
        check = inbox.proofs["south"]
        mask = dealt_mask(wire, played, agreed, "south")
        sent = next(
            decode(reply.body, ProductProof)
            for call, reply in wire.seen
            if (call.step, call.party) == ("product_proved", "south")
        )
        guess = coins_of(wire, agreed, "south").astype(np.int64)
        guess[0] ^= 0 if right else 1
        seed, point = b"2" * 32, field.unpack(check.point, 4)
        share, nothing = proof.drawn(sent.seed, "share", proof.length), np.zeros(proof.length, dtype=field.dtype)
        own = proof.answer(mask, share, seed, point)
        lacks, has = (proof.answer(field.reduce(guess), nothing, each, point) for each in (check.seed, seed))
        made = field.subtract(field.add(own, lacks), has)
        false = type(check)(**{**fields(check), "seed": seed, "answer": field.pack(made)})
        return ProductInbox(**{**fields(inbox), "proofs": {"south": false}})

    if weak:
        monkeypatch.setattr(product, "_same_seed", lambda *_: True)
    if weak and right:
        started(played, wire, lie=guessing)
        return
    with pytest.raises(PartyError, match=UNPROVEN):
        started(played, wire, lie=guessing)
    assert charges(wire) == 0


def test_a_server_that_lies_shows_a_coordinator_that_looks_the_exact_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stays open: it proves coins of 0 and multiplies by 1/2, so that the noise is what the dealer's mask is."""
    played = case(AGES)
    agreed = played.study.plan_as(AveragePlan).two_servers
    field, weights, honest, multiplied = (
        agreed.field,
        np.array(agreed.noise.coins),
        CoinProduct.coins,
        left_share,
    )

    def coins(self: CoinProduct, party: Party, start: int, stop: int) -> NDArray[Any]:
        return honest(self, party, start, stop) * (party.name != "south")

    def lying(_: NDArray[Any], *given: Any) -> NDArray[Any]:
        return multiplied(field.reduce(weights[:, None] * ((field.modulus + 1) // 2)), *given)

    wire = Wire(open_nodes(played, tmp_path, seed=SEED))
    monkeypatch.setattr(CoinProduct, "coins", coins)
    monkeypatch.setattr(product, "left_share", lying)
    noise = noise_of(started(played, wire))
    mask = dealt_mask(wire, played, agreed, "east")[:, 0].astype(np.int64)
    assert (noise - (weights @ mask - agreed.noise.mean)) % field.modulus == 0


def dealt_mask(wire: Wire, played: Case, agreed: TwoServers, server: str) -> NDArray[Any]:
    """Return the mask that the dealer gave a server."""
    call = next(call for call, _ in wire.seen if (call.step, call.party) == ("product_keys", server))
    study, seed = run_digest(played.study, SEED), decode(call.body, ProductStart).seed
    return Stock(seed=seed, study=study, party=server, sizes=agreed.product.sizes, label="noise").mask(0, 1)


def coins_of(wire: Wire, agreed: TwoServers, server: str) -> NDArray[np.uint8]:
    """Return the coins in a server's memory."""
    kept = decode(wire.nodes[server].state.memory.kept("noise coins") or b"", _Coins)

    class Memory:
        name = server

        def recall(self, *_: Any) -> _Coins:
            return kept

    memory: Any = Memory()
    return agreed.product.coins(memory, 0, len(agreed.noise.coins))


def test_noise_is_the_weighted_sum_of_both_servers_coins(tmp_path: Path) -> None:
    played = case(AGES)
    result, wire = play(played, tmp_path)
    agreed = played.study.plan_as(AveragePlan).two_servers
    one, other = (coins_of(wire, agreed, server)[:, 0] for server in ("south", "east"))
    assert not np.array_equal(one, other)
    assert noise_of(result) == np.array(agreed.noise.coins) @ (one ^ other) - agreed.noise.mean


def test_servers_pay_for_nothing_before_coins_are_proven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = case(AGES)
    wire = Wire(open_nodes(played, tmp_path, seed=SEED))
    monkeypatch.setattr(twoserver, "deal_products", lambda *_: None)
    with pytest.raises(PartyError, match="each is answered once, in order"):
        started(played, wire)
    for server in ("south", "east"):
        assert {entry.kind for entry in wire.nodes[server].state.ledger.entries()} == {"declare"}
