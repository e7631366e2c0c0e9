"""The kernel against one block at a time and loops over people."""

import hashlib
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from syndic.errors import InputError
from syndic.methods.vertimrf.sketch.encode import (
    People,
    SketchPlan,
    encode,
    person_digests,
    person_words,
    ranks_of,
    value_maxima,
)
from syndic.random import SimulationRandomness

KEY = bytes(range(16))
SIZES = (3, 1, 40)
COUNT = 5000  # more than the rows hashed together


def people(count: int = COUNT) -> People:
    generator = np.random.default_rng(7)
    codes = np.column_stack([generator.integers(0, size - (size > 30), count) for size in SIZES])
    return People(person_digests(KEY, (f"person {place}".encode() for place in range(count))), codes)


def one_word(person: bytes, repetition: int) -> int:
    """Return one hash by the definition: a block of the keyed digest and the pair's number, half of its cipher text."""
    digest = hashlib.blake2b(person, digest_size=12, key=KEY, person=b"syndic people").digest()
    key = hashlib.blake2b(b"", digest_size=16, key=KEY, person=b"syndic ranks").digest()
    block = digest + (repetition // 2).to_bytes(4, "little")
    found = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)
    return int.from_bytes(found[8 * (repetition % 2) :][:8], "little")


def brute(all_people: People, repetitions: int, least: int = 0) -> np.ndarray:
    words = person_words(KEY, all_people.digests, repetitions)
    found = np.zeros((repetitions, sum(SIZES)), dtype=np.uint64)
    starts = np.concatenate(([0], np.cumsum(SIZES)[:-1]))
    for repetition in range(repetitions):
        kept = np.where(words[repetition] >= np.uint64(least), words[repetition], np.uint64(0))
        for column, start in enumerate(starts):
            np.maximum.at(found[repetition], start + all_people.codes[:, column], kept)
    return found


def test_a_hash_is_half_a_block() -> None:
    words = person_words(KEY, person_digests(KEY, [b"ann", b"bob"]), 5)
    assert words.shape == (5, 2)
    assert words.tolist() == [[one_word(person, place) for person in (b"ann", b"bob")] for place in range(5)]


@pytest.mark.parametrize("least", [0, 2**62, 2**64 - 2**54])
def test_maxima_are_those_of_loops(least: int) -> None:
    everybody = people()
    found = value_maxima(KEY, [everybody], SIZES, repetitions=37, least=least)
    assert (found == brute(everybody, 37, least)).all()
    assert (found[:, -1] == 0).all()  # nobody has the last value


@pytest.mark.parametrize("least", [0, 2**64 - 2**54])
def test_batches_and_threads_change_nothing(least: int) -> None:
    everybody = people()
    cuts = [0, 1, 1700, 1700, COUNT]
    parts = [People(everybody.digests[a:b], everybody.codes[a:b]) for a, b in pairwise(cuts)]
    whole = value_maxima(KEY, [everybody], SIZES, repetitions=20, least=least, threads=1)
    assert (value_maxima(KEY, iter(parts), SIZES, repetitions=20, least=least, threads=3) == whole).all()


def test_memory_is_that_of_a_batch_and_the_result() -> None:
    def batches() -> Iterator[People]:
        for batch in range(20):
            digests = person_digests(KEY, (f"{batch} {place}".encode() for place in range(5000)))
            yield People(digests, np.zeros((5000, 3), dtype=np.uint8))

    tracemalloc.start()
    value_maxima(KEY, batches(), SIZES, repetitions=200, least=2**64 - 2**54)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6  # all hashes together are 160 MB


def test_another_key_gives_other_hashes_and_nobody_gives_none() -> None:
    some = people(50)
    same = value_maxima(KEY, [some], SIZES, repetitions=4)
    assert (same != value_maxima(KEY[::-1], [some], SIZES, repetitions=4)).any()
    assert (value_maxima(KEY, [], SIZES, repetitions=4) == 0).all()


@pytest.mark.parametrize("floor", [0, 6])
def test_sketch_is_the_largest_rank_of_people_and_phantoms(floor: int) -> None:
    everybody = people(600)
    bare = SketchPlan(phantoms=0, floor=floor, repetitions=16)
    words = brute(everybody, 16)
    ranks = np.where(words == 0, 0, ranks_of(words, bare.gamma))
    found = encode(bare, KEY, [everybody], SIZES, SimulationRandomness(1))
    assert (found == np.maximum(ranks, floor)).all()
    plan = SketchPlan(phantoms=30, floor=floor, repetitions=16, cap=9)
    noisy = encode(plan, KEY, [everybody], SIZES, SimulationRandomness(1))
    assert (noisy >= np.minimum(found, 9)).all()
    assert noisy.max() == 9
    assert (noisy[:, -1] > 0).all()  # phantoms stand where nobody is


def test_what_cannot_be_hashed_is_refused() -> None:
    some = people(10)
    with pytest.raises(InputError, match="16"):
        person_digests(b"short", [b"ann"])
    with pytest.raises(InputError, match="16"):
        value_maxima(b"short", [some], SIZES, repetitions=4)
    with pytest.raises(InputError, match="below its column's size"):
        value_maxima(KEY, [People(some.digests, some.codes + 3)], SIZES, repetitions=4)
    with pytest.raises(InputError, match="3 codes for 2 columns"):
        value_maxima(KEY, [some], SIZES[:2], repetitions=4)
    with pytest.raises(InputError, match="repetitions"):
        value_maxima(KEY, [some], SIZES, repetitions=0)
    with pytest.raises(InputError, match="person_digests"):
        People(some.digests[:, :5], some.codes)
    with pytest.raises(InputError, match="as many rows of codes as there are digests"):
        People(some.digests, some.codes[:4])
