"""Points of ids: on the curve, by the standard's map; powers as a plain ladder takes them, and taken back."""

import hashlib
import os
from functools import reduce
from itertools import combinations
from operator import and_, or_
from typing import ClassVar, final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.mpc.align.point import Blinding, _is_square, new_blinding, new_power, points_of, raised
from syndic.random import SimulationRandomness

PRIME = 2**255 - 19
CURVE = 486662
digests = st.binary(max_size=8).map(lambda text: hashlib.sha512(text).digest())


def coordinate(point: bytes) -> int:
    return int.from_bytes(point, "little")


def is_square(number: int) -> bool:
    return pow(number, (PRIME - 1) // 2, PRIME) in (0, 1)


def ladder(scalar: int, start: int) -> int:
    """Return the x-coordinate of a multiple by Montgomery's ladder, for any scalar."""
    low, high = (1, 0), (start, 1)
    for place in reversed(range(256)):
        bit = scalar >> place & 1
        if bit:
            low, high = high, low
        (a, b), (c, d) = low, high
        total, difference = (a + b) % PRIME, (a - b) % PRIME
        crossed, other = (c - d) * total % PRIME, (c + d) * difference % PRIME
        high = ((crossed + other) ** 2 % PRIME, start * (crossed - other) ** 2 % PRIME)
        square, less = total**2 % PRIME, difference**2 % PRIME
        apart = square - less
        low = (square * less % PRIME, apart * (less + (CURVE + 2) // 4 * apart) % PRIME)
        if bit:
            low, high = high, low
    return low[0] * pow(low[1], -1, PRIME) % PRIME


def test_the_map_is_that_of_the_standard() -> None:
    """RFC 9380, suite curve25519_XMD:SHA-512_ELL2_NU_, the empty message."""
    field = 0x608D892B641F0328523802A6603427C26E55E6F27E71A91A478148D45B5093CD
    mapped = 0x51125222DA5E763D97F3C10FCC92EA6860B9CCBBD2EB1285728F566721C1E65B
    point = points_of([field.to_bytes(64, "little")])
    assert coordinate(point) == mapped
    # the standard's point is eight times the mapped one
    assert ladder(8, mapped) == 0x1BB913F0C9DAEFA0B3375378FFA534BDA5526C97391952A7789EB976EDFE4D08


@given(st.lists(digests, max_size=5))
def test_every_point_is_on_the_curve_and_from_one_of_two_candidates(given_digests: list[bytes]) -> None:
    points = points_of(given_digests)
    assert len(points) == 32 * len(given_digests)
    for place, digest in enumerate(given_digests):
        x = coordinate(points[32 * place : 32 * place + 32])
        assert is_square(x**3 + CURVE * x**2 + x)
        squared = coordinate(digest) ** 2 % PRIME
        assert (x * (1 + 2 * squared) + CURVE) % PRIME == 0 or ((x + CURVE) * (1 + 2 * squared) - CURVE) % PRIME == 0


@given(st.one_of(st.integers(0, PRIME - 1), st.integers(0, 300), st.integers(0, 230).map(lambda twos: 3 << twos)))
def test_squares_are_those_of_eulers_criterion(number: int) -> None:
    assert _is_square(number) == is_square(number)


def test_half_of_all_hashes_taken_as_coordinates_would_not_be_on_the_curve() -> None:
    """Why the map is needed; a binomial of 400 is outside these bounds less than once in a million."""
    found = [coordinate(os.urandom(32)) % PRIME for _ in range(400)]
    assert 150 < sum(is_square(x**3 + CURVE * x**2 + x) for x in found) < 250


@settings(max_examples=10)
@given(digests, st.integers(0, 2**32))
def test_powers_are_multiples_and_commute_and_blindings_come_off(digest: bytes, seed: int) -> None:
    randomness = SimulationRandomness(seed)
    one, other = new_power(randomness), new_power(randomness)
    blinding = new_blinding(one, randomness)
    points = points_of([digest])
    assert coordinate(raised(points, one)) == ladder(coordinate(one), coordinate(points))
    assert raised(raised(points, one), other) == raised(raised(points, other), one)
    hidden = raised(raised(points, blinding.on), other)
    assert hidden != raised(raised(points, one), other)
    assert raised(hidden, blinding.off) == raised(raised(points, one), other)


def test_powers_and_blindings_are_read_as_they_are_written() -> None:
    """X25519 sets some bits of a scalar: if they were not set already, a blinding would not come off."""
    randomness = SimulationRandomness(1)
    blindings = [new_blinding(new_power(randomness), randomness) for _ in range(50)]
    assert len({(each.on, each.off) for each in blindings}) == 50
    for each in blindings:
        assert isinstance(each, Blinding)
        for scalar in (coordinate(each.on), coordinate(each.off)):
            assert scalar % 8 == 0
            assert scalar >> 254 == 1


def test_powers_and_blindings_take_every_bit_that_the_standard_leaves_free() -> None:
    """RFC 7748: bits 3 to 253 of a scalar are free, 254 is set, the others are not; a missing one halves the secret."""
    randomness = SimulationRandomness(1)
    powers = [new_power(randomness) for _ in range(100)]
    blindings = [new_blinding(power, randomness) for power in powers]
    for scalars in (powers, [each.on for each in blindings], [each.off for each in blindings]):
        numbers = [coordinate(each) for each in scalars]
        assert len(set(numbers)) == 100
        assert reduce(or_, numbers) == 2**255 - 8
        assert reduce(and_, numbers) == 2**254


@final
class View:
    """Randomness that draws the given numbers."""

    simulated: ClassVar[bool] = True

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(self.bytes(8 * count), dtype=np.uint64)

    def bytes(self, count: int) -> bytes:
        return self.numbers.pop(0).to_bytes(count, "little")


@pytest.mark.parametrize(
    ("on", "is_taken"), [(2**254 - 8, False), (2**254, True), (2**255 - 8, True), (2**255, False), (2**255 + 8, False)]
)
def test_a_blinding_that_x25519_would_read_otherwise_is_drawn_again(on: int, is_taken: bool) -> None:
    """The power is chosen so that its blinding would be `on`: outside 2^254 to 2^255 it would not come off."""
    first = 2**200 + 12345
    order = 2**252 + 27742317777372353535851937790883648493
    power = on * (2**254 + 8 * first) % order
    blinding = new_blinding(power.to_bytes(32, "little"), View(first, *range(1, 60)))
    assert (coordinate(blinding.on) == on) == is_taken
    assert (coordinate(blinding.off) == 2**254 + 8 * first) == is_taken
    assert 2**254 <= coordinate(blinding.on) < 2**255


@pytest.mark.parametrize("bad", [bytes(32), (1).to_bytes(32, "little"), b"short"])
def test_points_that_nobody_sends_are_refused(bad: bytes) -> None:
    with pytest.raises(RefusedError, match="small order"):
        raised(bad, new_power(SimulationRandomness(1)))


def ordinate(x: int) -> int:
    """Return a y-coordinate of a point of the curve."""
    square = (x**3 + CURVE * x**2 + x) % PRIME
    root = pow(square, (PRIME + 3) // 8, PRIME)
    return root if root**2 % PRIME == square else root * pow(2, (PRIME - 1) // 4, PRIME) % PRIME


def added(one: bytes, other: bytes) -> list[bytes]:
    """Return the x-coordinates of the sum and the difference of two points."""
    x, u = coordinate(one), coordinate(other)
    slopes = [(ordinate(x) - sign * ordinate(u)) * pow(x - u, -1, PRIME) for sign in (1, -1)]
    return [((slope**2 - CURVE - x - u) % PRIME).to_bytes(32, "little") for slope in slopes]


def test_a_point_may_ask_for_two_ids_at_once_where_parties_do_not_blind() -> None:
    """A limit that the plan states: who has another's points under a power can look for sums of them."""
    power = new_power(SimulationRandomness(1))
    ids = [points_of([hashlib.sha512(bytes([each])).digest()]) for each in range(8)]
    held = [raised(each, power) for each in ids[:6]]
    sums = {point for one, other in combinations(held, 2) for point in added(one, other)}
    for one, other, is_there in ((1, 4, True), (1, 7, False), (6, 7, False)):
        assert (raised(added(ids[one], ids[other])[0], power) in sums) == is_there
