"""Tables of shares: arithmetic as Python's, polynomials through every point, zeros where shares cancel."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from syndic.errors import RefusedError
from syndic.mpc.align.table import (
    FIELD,
    TableShape,
    Words,
    add,
    bins_of,
    encoded,
    field_words,
    multiply,
    subtract,
    table_shape,
    zeros,
)
from syndic.random import SimulationRandomness

numbers = st.integers(0, FIELD - 1) | st.sampled_from([0, 1, 2, FIELD - 1, FIELD - 2, 2**32, 2**60])


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=20))
def test_arithmetic_is_that_of_the_integers_modulo_the_prime(pairs: list[tuple[int, int]]) -> None:
    left, right = (np.array([pair[side] for pair in pairs], dtype=np.uint64) for side in (0, 1))
    assert multiply(left, right).tolist() == [a * b % FIELD for a, b in pairs]
    assert add(left, right).tolist() == [(a + b) % FIELD for a, b in pairs]
    assert subtract(left, right).tolist() == [(a - b) % FIELD for a, b in pairs]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_bytes_are_reduced(words: list[int]) -> None:
    data = np.array(words, dtype="<u8").tobytes()
    assert field_words(data).tolist() == [word % FIELD for word in words]
    assert bins_of(data, TableShape(bins=7, points=3)).tolist() == [word % 7 for word in words]


def drawn(count: int, seed: int) -> tuple[Words, Words]:
    randomness = SimulationRandomness(seed)
    return field_words(randomness.bytes(8 * count)), field_words(randomness.bytes(8 * count))


@pytest.mark.parametrize("count", [1, 2, 33, 500])
def test_a_table_takes_every_key_to_its_share(count: int) -> None:
    shape = table_shape(count)
    keys, shares = drawn(count, count)
    bins = np.arange(count) % shape.bins
    table = encoded(keys, bins, shares, range(shape.bins), shape, SimulationRandomness(2))
    assert table.shape == (shape.bins, shape.points)
    assert table.size == shape.words
    for key, own, share in zip(keys.tolist(), bins.tolist(), shares.tolist(), strict=True):
        value = sum(int(word) * pow(key, power, FIELD) for power, word in enumerate(table[own]))
        assert value % FIELD == share


def test_a_full_bin_takes_every_key_to_its_share_and_an_empty_one_is_random() -> None:
    shape = TableShape(bins=3, points=3)
    keys, shares = drawn(6, 7)
    bins = np.array([0, 2, 0, 2, 0, 2])
    one, other = (encoded(keys, bins, shares, range(3), shape, SimulationRandomness(seed)) for seed in (2, 3))
    assert (one[[0, 2]] == other[[0, 2]]).all(), "three points are all of a parabola"
    for key, own, share in zip(keys.tolist(), bins.tolist(), shares.tolist(), strict=True):
        assert sum(int(word) * key**power for power, word in enumerate(one[own])) % FIELD == share
    assert not np.intersect1d(one[1], other[1]).size
    # a party may have no id in a whole part of the table: it must not show
    first, second = (encoded(keys, bins, shares, range(1, 2), shape, SimulationRandomness(seed)) for seed in (2, 3))
    assert first.shape == (1, 3)
    assert not np.intersect1d(first, second).size


@pytest.mark.parametrize("block", [1 << 15, 7])
def test_zeros_are_the_ids_that_everybody_holds_in_whatever_parts(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syndic.mpc.align.table._BLOCK", block)
    count, shape = 400, TableShape(bins=20, points=60)
    keys, _ = drawn(count, 1)
    bins = np.arange(count) % shape.bins
    first, second = drawn(count, 2)
    shares = [first, second, subtract(np.zeros_like(first), add(first, second))]
    held = [np.arange(count) % modulus != 0 for modulus in (2, 3, 5)]
    found = []
    for part in (range(8), range(8, 20)):
        tables = [
            encoded(keys[own], bins[own], share[own], part, shape, SimulationRandomness(place + 10))
            for place, (own, share) in enumerate(zip(held, shares, strict=True))
        ]
        found += zeros(add(add(tables[0], tables[1]), tables[2]), keys, bins, part).tolist()
    assert sorted(found) == [place for place in range(count) if place % 2 and place % 3 and place % 5]


@pytest.mark.parametrize("people", [1, 50, 64, 1000, 20_000, 300_000, 5_000_000])
def test_a_bin_is_too_small_less_than_once_in_two_to_the_forty(people: int) -> None:
    shape = table_shape(people)
    assert shape.bins * stats.binom.sf(shape.points, people, 1 / shape.bins) <= 2**-40
    assert shape.words <= 3.2 * people + 100
    parts = shape.parts()
    assert [each for part in parts for each in part] == list(range(shape.bins))
    assert all(len(part) * shape.points <= 2**20 for part in parts)
    assert all((len(part) + 1) * shape.points > 2**20 for part in parts[:-1]), "no more messages than it takes"


def test_a_bin_that_is_too_small_and_a_key_twice_are_refused() -> None:
    shape = TableShape(bins=1, points=2)
    keys, shares = drawn(3, 5)
    bins = np.zeros(3, dtype=np.int64)
    with pytest.raises(RefusedError, match="too small"):
        encoded(keys, bins, shares, range(1), shape, SimulationRandomness(1))
    with pytest.raises(RefusedError, match="same key"):
        encoded(keys[[0, 0]], bins[:2], shares[:2], range(1), shape, SimulationRandomness(1))
    two = TableShape(bins=2, points=3)
    with pytest.raises(RefusedError, match="same key"):
        encoded(
            keys[[0, 1, 0, 1, 1]], np.array([0, 0, 1, 1, 1]), shares[[0] * 5], range(2), two, SimulationRandomness(1)
        )


@pytest.mark.statistical
def test_the_words_of_a_table_are_uniform() -> None:
    """Whatever the keys, uniform shares make uniform coefficients: 64 classes of their highest bits."""
    shape = TableShape(bins=300, points=40)
    keys = np.arange(1, 6001, dtype=np.uint64)
    shares = field_words(SimulationRandomness(3).bytes(8 * 6000))
    table = encoded(keys, np.arange(6000) % 300, shares, range(300), shape, SimulationRandomness(4))
    counts = np.bincount((table.ravel() >> np.uint64(55)).astype(np.int64), minlength=64)
    assert stats.chisquare(counts).pvalue > 1e-7
