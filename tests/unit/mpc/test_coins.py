"""The product of coins that pairs of parties toss: their shares add up to the noise of what both tossed."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, final

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import decode, encode
from syndic.mpc.coins import CHUNK_BYTES, CoinProduct, Coins, coin_product
from syndic.mpc.dealer import deal_products
from syndic.mpc.product_messages import UNPROVEN, Pair, ProductInbox, ProductOpening, ProductStart
from syndic.mpc.ring import Residues, field_for
from syndic.mpc.triple import Stock
from syndic.noise.binomial import BinomialNoise, binomial_of
from syndic.random import SimulationRandomness

NOISE = BinomialNoise(weights=(1, 3, 7), counts=(30, 31, 40), power=2)
FIELD = field_for(NOISE.reach + 100)
TWO: dict[Pair, int] = {("p", "q"): 5}
THREE: dict[Pair, int] = {("p", "q"): 3, ("p", "r"): 11, ("q", "r"): 1}
STAR: dict[Pair, int] = {("r", "q"): 2, ("p", "q"): 9, ("q", "s"): 4}


@final
class Tosser:
    """A party that has a memory only."""

    study = "study"

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed
        self.memory: dict[str, bytes] = {}
        self.calls = 0

    def remember(self, name: str, value: Any) -> None:
        self.memory[name] = encode(value)

    def recall(self, name: str, kind: Any) -> Any:
        return decode(self.memory[name], kind)

    def kept(self, name: str, kind: Any) -> Any:
        return decode(self.memory[name], kind) if name in self.memory else None

    def bond(self, _: str) -> bytes:
        return b""

    def key_randomness(self, label: str) -> SimulationRandomness:
        self.calls += 1
        return SimulationRandomness(self.seed, self.name, label, str(self.calls))


Lie = Callable[[str, str, Any], Any]


@final
class Table:
    """A dealer and parties around a table: steps are called, not sent."""

    study = "study"

    def __init__(self, product: Coins, seed: int = 3, lie: Lie = lambda *given: given[2]) -> None:
        self.product, self.lie = product, lie
        self.randomness = SimulationRandomness(seed, "dealer")
        self.parties = {name: Tosser(name, seed) for name in (*product.groups, *getattr(product, "servers", ()))}
        self.sent: list[tuple[str, str, Any]] = []
        self.heard: list[tuple[str, str, Any]] = []

    def progress(self, *_: Any) -> None:
        pass

    def ask(self, step: Callable[[Any, Any], Any], messages: Mapping[str, Any]) -> dict[str, Any]:
        replies = {}
        for name, message in messages.items():
            given = self.lie(step.__name__, name, message)
            self.sent.append((step.__name__, name, given))
            replies[name] = step(self.parties[name], given)
            self.heard.append((step.__name__, name, replies[name]))
        return replies

    def product_masked(self, party: Any, message: Any) -> Any:
        return self.product.mask(party, message)

    def product_proved(self, party: Any, message: Any) -> Any:
        return self.product.prove(party, message)

    def product_multiplied(self, party: Any, message: Any) -> Any:
        return self.product.multiply(party, message)

    def deal(self) -> "Table":
        session: Any = self
        deal_products(session, self, self.product)
        return self

    def coins(self, name: str) -> NDArray[np.int64]:
        party: Any = self.parties[name]
        return self.product.coins(party, 0, self.product.sizes.rows).astype(np.int64)

    def shares(self) -> dict[str, dict[str, NDArray[np.int64]]]:
        return {name: self.share(name) for name in self.product.groups}

    def share(self, name: str) -> dict[str, NDArray[np.int64]]:
        """Return a party's shares by partner, from a copy of its memory: a second look is refused."""
        party: Any = self.parties[name]
        before = dict(party.memory)
        try:
            return self.product.noise_shares(party)
        finally:
            party.memory = before

    def noise(self) -> dict[Pair, NDArray[np.int64]]:
        """Return what the shares of every pair add up to in the ring."""
        ring, shares = self.product.sizes.ring, self.shares()
        return {
            (one, other): ring.lift(ring.add(ring.reduce(shares[one][other]), ring.reduce(shares[other][one])))
            for one, other in self.product.pairs
        }

    def expected(self) -> dict[Pair, NDArray[np.int64]]:
        """Add up what both tossed, column by column: each has its columns pair after pair."""
        weights, starts = np.array(self.product.noise.coins), dict.fromkeys(self.product.groups, 0)
        found = {}
        for pair in self.product.pairs:
            size = len(self.product.cells[pair])
            tossed = [self.coins(name)[:, starts[name] : starts[name] + size] for name in pair]
            found[pair] = weights @ (tossed[0] ^ tossed[1]) - self.product.noise.mean
            for name in pair:
                starts[name] += size
        return found


def made(
    values: dict[Pair, int],
    field: Residues = FIELD,
    noise: BinomialNoise = NOISE,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    servers: tuple[str, ...] = (),
) -> Coins:
    return coin_product("noise", noise, values, field, chunk_bytes, servers)


@pytest.mark.parametrize("values", [TWO, THREE, STAR], ids=["two", "three", "star"])
@pytest.mark.parametrize("chunk_bytes", [CHUNK_BYTES, 400], ids=["a chunk", "chunks"])
@pytest.mark.parametrize("servers", [(), ("q", "x", "p"), ("y", "q", "x", "p")], ids=["dealer", "three", "four"])
def test_shares_add_up_to_the_coins_of_both(
    values: dict[Pair, int], chunk_bytes: int, servers: tuple[str, ...]
) -> None:
    product = made(values, chunk_bytes=chunk_bytes, servers=servers)
    assert (product.sizes.chunks > 1) is (chunk_bytes == 400)
    table = Table(product).deal()
    found, expected = table.noise(), table.expected()
    assert found.keys() == values.keys()
    for pair, noise in found.items():
        assert noise.tolist() == expected[pair].tolist()
        assert noise.size == values[pair]


def test_noise_of_many_values_has_the_law_of_fair_coins_and_no_two_values_share_any() -> None:
    noise = binomial_of(Fraction(NOISE.variance))
    table = Table(made({("p", "q"): 900, ("q", "r"): 900}, field_for(noise.reach), noise)).deal()
    values = np.stack(list(table.noise().values()))
    deviation = noise.variance**0.5
    assert abs(values.mean()) < 6 * deviation / values.size**0.5
    assert abs(values.var() / noise.variance - 1) < 6 * (2 / values.size) ** 0.5
    assert told_by(values[0], values[1]) < 6
    assert told_by(values[0, 1:], values[0, :-1]) < 6
    assert not any((table.coins(one) == table.coins(other)).all() for one, other in [("p", "r")])


# Who knows what.


def told_by(view: NDArray[Any], noise: NDArray[np.int64]) -> float:
    """Return how far a number of the view goes along with the noise, in standard deviations of chance."""
    together: NDArray[np.float64] = np.asarray(np.corrcoef(view, noise))
    return float(abs(together[0, 1]) * noise.size**0.5)


def test_a_partys_own_coins_and_share_say_nothing_of_the_noise() -> None:
    table = Table(made({("p", "q"): 900}, field_for(NOISE.reach))).deal()
    noise, weights = table.noise()["p", "q"], np.array(NOISE.coins)
    for name, other in (("p", "q"), ("q", "p")):
        own, share = table.coins(name), table.shares()[name][other]
        assert told_by(weights @ own, noise) < 6
        assert told_by(FIELD.reduce(share).astype(np.float64), noise) < 6
    # what would show it: both
    assert told_by(weights @ (table.coins("p") ^ table.coins("q")), noise) > 25


def test_the_dealer_knows_masks_and_halves_and_not_a_coin() -> None:
    """A share that were sent without a mask would show the coins: the dealer knows half of its triples."""
    field = field_for(NOISE.reach)
    table = Table(made({("p", "q"): 900}, field)).deal()
    noise, weights, sizes = table.noise()["p", "q"], np.array(NOISE.coins), table.product.sizes
    seeds = {name: message.seed for step, name, message in table.sent if step == "product_keys"}
    stocks = {
        name: Stock(seed=seed, study="study", party=name, sizes=sizes, label="noise") for name, seed in seeds.items()
    }
    masks = {name: stock.mask(0, 900).astype(np.int64) for name, stock in stocks.items()}
    half = stocks["p"].half("q", 0, (900, 1)).astype(np.int64).ravel()
    for view in (weights @ masks["p"], weights @ masks["q"], half, weights @ (masks["p"] * masks["q"] % field.modulus)):
        assert told_by((view % field.modulus).astype(np.float64), noise) < 6
    # the right share less its half is linear in the left coins alone, with numbers that the dealer knows
    share = table.shares()["q"]["p"]
    products = field.reduce(np.array([0])).astype(np.int64)
    own = weights @ table.coins("q")
    products = (own - share) * ((field.modulus + 1) // 2) % field.modulus
    inbox = next(message for step, name, message in table.sent if (step, name) == ("product_multiplied", "q"))
    dealt = field.unpack(inbox.halves["p"], 900).astype(np.int64)
    opened = table.coins("p") - masks["p"]
    expected = (weights[:, None] * opened % field.modulus * masks["q"] % field.modulus).sum(axis=0) + dealt
    assert (products == expected % field.modulus).all()


def test_what_travels_is_sealed_or_uniform() -> None:
    """The masked coins leave a party only under a seal, and each copy for one partner."""
    table = Table(made(THREE)).deal()
    for step, name, reply in table.heard:
        if step == "product_masked":
            assert isinstance(reply, ProductOpening)
            assert set(reply.keys) == {other for pair in THREE if name in pair for other in pair} - {name}
            packed = FIELD.pack(table.coins(name).astype(np.uint64))
            assert packed[:40] not in reply.body


# Lies.


def test_coins_are_tossed_once_and_in_order() -> None:
    table = Table(made(TWO)).deal()
    party: Any = table.parties["p"]
    before = dict(table.parties["p"].memory)
    for step, name, message in list(table.sent):
        if name == "p":
            call = table.product.product_keys if step == "product_keys" else getattr(table, step)
            with pytest.raises(RefusedError, match="answered once, in order"):
                call(party, message)
    assert table.parties["p"].memory["noise stage"] == before["noise stage"]


def test_a_share_is_refused_before_all_coins_are_proven() -> None:
    product = made(TWO, chunk_bytes=200)
    assert product.sizes.chunks > 2
    refused: list[str] = []

    def asking(step: str, name: str, message: Any) -> Any:
        with pytest.raises(RefusedError if step != "product_keys" else (RefusedError, KeyError)):
            table.share(name)
        refused.append(name)
        return message

    table = Table(product, lie=asking)
    table.deal()
    assert len(refused) == 2 * (1 + 3 * product.sizes.chunks)
    assert table.noise()["p", "q"].tolist() == table.expected()["p", "q"].tolist()


@pytest.mark.parametrize("liar", ["p", "q"])
@pytest.mark.parametrize("false", [2, FIELD.modulus - 1, (FIELD.modulus + 1) // 2])
def test_one_coin_of_many_that_is_no_bit_is_refused(liar: str, false: int, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = CoinProduct.coins

    def coins(self: CoinProduct, party: Any, start: int, stop: int) -> NDArray[Any]:
        found = honest(self, party, start, stop).astype(np.int64)
        if party.name == liar:
            found[-1, -1] = false
        return found

    monkeypatch.setattr(CoinProduct, "coins", coins)
    with pytest.raises(RefusedError, match=UNPROVEN[:40]):
        Table(made(THREE)).deal()


def test_a_party_that_is_put_back_tosses_other_coins() -> None:
    table = Table(made(TWO)).deal()
    (asked,) = [message for step, name, message in table.sent if (step, name) == ("product_masked", "p")]
    (start,) = [message for step, name, message in table.sent if (step, name) == ("product_keys", "p")]
    before, party = table.coins("p"), table.parties["p"]
    party.memory.clear()
    back: Any = party
    table.product.product_keys(back, start)
    table.product.mask(back, asked)
    assert 0.3 < (table.coins("p") != before).mean() < 0.7


def test_one_seed_for_both_products_or_both_parties_gives_other_masks() -> None:
    """A dealer may deal one seed to all; no two matrices have one mask."""
    same = ProductStart(seed=bytes(32))
    masks = [
        Stock(seed=same.seed, study="study", party=name, sizes=made(TWO).sizes, label=label).mask(0, 5)
        for name in ("p", "q")
        for label in ("round 2", "round 2, coins")
    ]
    assert len({mask.tobytes() for mask in masks}) == 4


def test_a_dealer_that_changes_halves_shifts_the_noise_by_what_it_added() -> None:
    def wrong(step: str, name: str, message: Any) -> Any:
        if (step, name) != ("product_multiplied", "q"):
            return message
        assert isinstance(message, ProductInbox)
        half = FIELD.unpack(message.halves["p"], 5)
        message.halves["p"] = FIELD.pack(FIELD.add(half, FIELD.reduce(np.arange(5))))
        return message

    honest, lied = Table(made(TWO)).deal(), Table(made(TWO), lie=wrong).deal()
    assert (lied.noise()["p", "q"] - honest.noise()["p", "q"]).tolist() == [-2 * one for one in range(5)]
