"""From the largest hashes to what a party sends: ranks with phantoms, floor and cap."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from syndic.methods.vertimrf.sketch.hashing import People, value_maxima
from syndic.methods.vertimrf.sketch.plan import SketchPlan, rank_thresholds, ranks_of
from syndic.noise.interval import Enclosure, power
from syndic.noise.inverse_cdf import LazyTable
from syndic.random import Randomness


def encode(
    plan: SketchPlan,
    key: bytes,
    batches: Iterable[People],
    sizes: Sequence[int],
    randomness: Randomness,
    *,
    threads: int = 2,
) -> NDArray[np.uint16]:
    """Return the sketches of every value (columns one after the other), a row for each repetition.

    They protect people against those who do not have the key, at the price of `sketch_cost`; whoever has the key
    can often prove that somebody is absent from a value. Phantoms come from the party's own randomness.
    """
    least = int(rank_thresholds(plan.gamma)[plan.floor])
    maxima = value_maxima(key, batches, sizes, repetitions=plan.repetitions, least=least, threads=threads)
    phantoms = phantom_ranks(plan, maxima.size, randomness).reshape(maxima.shape)
    # a maximum of 0 stands for "nobody", whose rank of 1 is below any floor; without a floor it must not count
    ranks = np.where(maxima == 0, 0, ranks_of(maxima, plan.gamma)).astype(np.uint16)
    return np.clip(np.maximum(ranks, phantoms), plan.floor, plan.top).astype(np.uint16)


def phantom_ranks(plan: SketchPlan, count: int, randomness: Randomness) -> NDArray[np.uint16]:
    """Draw `count` independent largest ranks of `plan.phantoms` phantoms each, within floor and cap. Exact."""
    return largest_ranks(plan, plan.phantoms, count, randomness)


def largest_ranks(plan: SketchPlan, elements: int, count: int, randomness: Randomness) -> NDArray[np.uint16]:
    """Draw `count` independent sketches of any `elements` people and phantoms without hashing anybody. Exact."""
    if elements == 0:
        return np.full(count, plan.floor, dtype=np.uint16)
    table = _table(plan.gamma, elements, plan.floor, plan.top)
    found = np.empty(count, dtype=np.uint16)
    for start in range(0, count, 2**18):
        words = randomness.words(min(2**18, count - start))
        found[start : start + len(words)] = table.draw(words, randomness) + plan.floor
    return found


@lru_cache(maxsize=256)
def _table(gamma: Fraction, elements: int, floor: int, top: int) -> LazyTable:
    """Return the law of max(largest rank, floor) - floor, where min(., top) has been taken."""

    def law(bits: int) -> Iterator[Enclosure]:
        remains = (1 + gamma) ** -floor
        for _ in range(floor, top):
            # the enclosure of (1 - remains)^elements, rounded outwards from an exact fraction
            low = ((remains.denominator - remains.numerator) << bits) // remains.denominator
            yield power((low, low + 1), elements, bits)
            remains /= 1 + gamma
        yield 1 << bits, 1 << bits

    return LazyTable(law)
