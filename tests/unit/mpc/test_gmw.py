"""Coins on shares against plain comparison of the same bits."""

import random

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.mpc import gmw
from syndic.mpc.mask import stream
from syndic.mpc.ring import Ring
from syndic.noise.circuit_bits import WIDTH
from syndic.random import SimulationRandomness

NO_WORDS = np.empty(0, dtype=np.uint64)


def halves(coins: gmw.Coins, seed: int) -> tuple[gmw.Half, gmw.Half, bytes]:
    keys = [SimulationRandomness(seed, label).bytes(32) for label in ("one", "two", "common")]
    one = gmw.Half(key=keys[0], first=True, products=NO_WORDS, masks=NO_WORDS)
    return one, gmw.deal(keys[0], keys[1], coins), keys[2]


def run(coins: gmw.Coins, seed: int) -> tuple[NDArray[np.int64], list[tuple[gmw.Planes, gmw.Planes]]]:
    """Toss; return the coins and what each server told the other, level by level."""
    one, two, common = halves(coins, seed)
    nodes = [gmw.begin(half, common, coins) for half in (one, two)]
    told = []
    for level in range(1, gmw.LEVELS + 1):
        said = [gmw.open_level(half, level, node, coins) for half, node in zip((one, two), nodes, strict=True)]
        assert all(planes.shape == (gmw.rows_at(level), coins.words) for planes in said)
        told.append((said[0], said[1]))
        nodes = [
            gmw.close_level(one, level, nodes[0], said[1], coins),
            gmw.close_level(two, level, nodes[1], said[0], coins),
        ]
    said = [gmw.open_coins(half, node, coins) for half, node in zip((one, two), nodes, strict=True)]
    told.append((said[0], said[1]))
    shares = gmw.close_coins(one, nodes[0], said[1], coins), gmw.close_coins(two, nodes[1], said[0], coins)
    return coins.ring.lift(coins.ring.add(*shares)), told


def fair_numbers(coins: gmw.Coins, seed: int) -> list[int]:
    """The fair numbers, put together from the three keys by hand."""
    one, two, common = halves(coins, seed)
    size = 8 * WIDTH * coins.source_words
    parts = [(one.key, b"fair"), (two.key, b"fair"), (common, b"fair bits")]
    planes = np.bitwise_xor.reduce([np.frombuffer(stream(*part, size), dtype=np.uint8) for part in parts])
    bits = np.unpackbits(planes.reshape(WIDTH, -1), axis=1, bitorder="little")
    return [int("".join(map(str, column)), 2) for column in bits.T]


@pytest.mark.parametrize("bits", [5, 16, 37, 64])
def test_coins_are_comparisons_of_the_fair_bits(bits: int) -> None:
    random.seed(bits)
    thresholds = [random.getrandbits(WIDTH) for _ in range(9)]
    coins = gmw.toss(tuple(thresholds), tuple(range(9)), 30, Ring(bits))
    fair = fair_numbers(coins, bits)
    found, _ = run(coins, bits)
    assert found.tolist() == [int(fair[i] < thresholds[i % 9]) for i in range(270)]
    assert 0 < found.sum() < 270


def test_thresholds_at_the_very_edge() -> None:
    # thresholds are set to the fair numbers themselves, where every bit of the comparison counts
    probe = gmw.toss((0,) * 70, tuple(range(70)), 1, Ring(8))
    fair = fair_numbers(probe, 1)[:70]
    for shift, expected in [(0, 0), (1, 1), (-1, 0)]:
        coins = gmw.toss(tuple(each + shift for each in fair), tuple(range(70)), 1, Ring(8))
        assert run(coins, 1)[0].tolist() == [expected] * 70
    ends = gmw.toss((0, 2**WIDTH - 1), (0, 1), 100, Ring(8))
    assert run(ends, 2)[0].tolist() == [0, 1] * 100


def test_one_fair_number_against_many_thresholds() -> None:
    thresholds = tuple(sorted(random.Random(3).getrandbits(WIDTH) for _ in range(12)))
    coins = gmw.toss(thresholds, (0,) * 12, 40, Ring(12))
    assert coins.source_words == 1
    fair = fair_numbers(coins, 3)
    found = run(coins, 3)[0].reshape(40, 12)
    assert np.all(np.diff(found, axis=1) >= 0)
    assert found.sum(axis=1).tolist() == [sum(fair[i] < each for each in thresholds) for i in range(40)]


@pytest.mark.parametrize(("copies", "words"), [(64, 1), (65, 2), (66, 2), (128, 2), (129, 3)])
def test_every_coin_has_a_fair_number_where_words_end(copies: int, words: int) -> None:
    coins = gmw.toss((2 ** (WIDTH - 1),), (0,), copies, Ring(8))
    assert (coins.words, coins.source_words) == (words, words)
    assert run(coins, 4)[0].tolist() == [int(each < 2 ** (WIDTH - 1)) for each in fair_numbers(coins, 4)[:copies]]


def test_the_second_server_alone_gets_corrections_of_the_stated_size() -> None:
    coins = gmw.toss((2**100, 2**127), (0, 1), 100, Ring(20))
    _, two, _ = halves(coins, 1)
    assert two.products.size == gmw.correction_words(coins)
    assert two.masks.size == coins.count == 200


def test_what_servers_tell_each_other_looks_uniform_whatever_falls() -> None:
    """Coins that never and that always show 1: the same share of ones in everything that is told, level by level."""
    for threshold in (0, 2**WIDTH - 1, 2**WIDTH // 3):
        coins = gmw.toss((threshold,), (0,), 64 * 40, Ring(10))
        _, told = run(coins, threshold % 97)
        for said in told:
            for planes in said:
                bits = gmw.unpacked(planes)
                assert abs(bits.mean() - 0.5) < 6 / (2 * bits.size**0.5)
                # bit planes are pairwise uncorrelated: 6 standard deviations each
                signs = bits.astype(np.float64) * 2 - 1
                products = signs @ signs.T / signs.shape[1]
                assert np.abs(products - np.eye(len(bits))).max() < 6.5 / signs.shape[1] ** 0.5


def test_shares_of_one_server_say_nothing_about_the_coins() -> None:
    coins = gmw.toss((2**WIDTH // 3,), (0,), 64 * 100, Ring(6))
    one, two, common = halves(coins, 5)
    found, told = run(coins, 5)
    # the opened, masked coin is independent of the coin
    opened = gmw.unpacked(told[-1][0] ^ told[-1][1])[0]
    assert abs(np.corrcoef(opened, found)[0, 1]) < 6 / found.size**0.5
    for half in (one, two):
        less = gmw.unpacked(gmw.begin(half, common, coins).less)
        assert max(abs(np.corrcoef(row, found)[0, 1]) for row in less if row.std() > 0) < 6.5 / found.size**0.5


def test_agrees_with_mpyc_on_the_same_bits() -> None:
    mpc = pytest.importorskip("mpyc.runtime").mpc
    thresholds = [random.Random(8).getrandbits(WIDTH) for _ in range(6)]
    coins = gmw.toss(tuple(thresholds), tuple(range(6)), 2, Ring(8))
    fair = fair_numbers(coins, 8)
    whole = mpc.SecInt(WIDTH + 2)
    compared = [whole(fair[i]) < whole(thresholds[i % 6]) for i in range(12)]
    assert run(coins, 8)[0].tolist() == [int(each) for each in mpc.run(mpc.output(compared))]
