"""Secret sharing: any threshold of shares opens it; one fewer leaves every secret possible, equally often."""

from collections import Counter
from typing import ClassVar, final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.mpc.shamir import multiply, recover, share
from syndic.random import SimulationRandomness


def slow_product(left: int, right: int) -> int:
    """Multiply polynomials over two elements, one bit after the other, modulo x^16 + x^12 + x^3 + x + 1."""
    product = 0
    for bit in range(16):
        product ^= (left << bit) if right >> bit & 1 else 0
    for bit in range(31, 15, -1):
        product ^= (0x1100B << (bit - 16)) if product >> bit & 1 else 0
    return product


@given(st.integers(0, 65535), st.integers(0, 65535))
def test_products_are_those_of_polynomials(left: int, right: int) -> None:
    ours = multiply(np.array([left], np.uint16), np.array([right], np.uint16))
    assert int(ours[0]) == slow_product(left, right)


def test_the_field_has_no_divisors_of_zero() -> None:
    every = np.arange(1, 65536, dtype=np.uint16)
    for factor in (2, 3, 0x1234, 65535):
        assert len(np.unique(multiply(every, np.array([factor], np.uint16)))) == 65535


@given(st.data())
def test_any_threshold_of_shares_opens_the_secret(data: st.DataObject) -> None:
    secret = data.draw(st.binary(min_size=1, max_size=20)) * 2
    count = data.draw(st.integers(1, 30))
    threshold = data.draw(st.integers(1, count))
    points = data.draw(st.lists(st.integers(1, 65535), min_size=count, max_size=count, unique=True))
    shares = share(secret, points, threshold, SimulationRandomness(data.draw(st.integers(0, 9))))
    chosen = data.draw(st.permutations(range(count)))[:threshold]
    assert recover([shares[place] for place in chosen], [points[place] for place in chosen]) == secret


@final
class Given:
    """Randomness that hands out the given bytes."""

    simulated: ClassVar[bool] = True

    def __init__(self, data: bytes) -> None:
        self.data = data

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(self.bytes(8 * count), dtype=np.uint64)

    def bytes(self, count: int) -> bytes:
        assert len(self.data) == count
        return self.data


def test_one_share_of_two_is_uniform_whatever_the_secret() -> None:
    # every value of the one random coefficient is tried, as 65,536 secrets of one element side by side
    every = np.arange(65536, dtype="<u2")
    for secret in (0, 1, 4711):
        for point in (1, 2, 65535):
            (text, _) = share(every.size * bytes([secret % 256, secret // 256]), [point, 3], 2, Given(every.tobytes()))
            assert np.array_equal(np.sort(np.frombuffer(text, "<u2")), every)


def test_two_shares_of_three_fit_every_secret() -> None:
    # whoever has two shares and guesses any third finds another secret for each guess: each is as likely
    points = [1, 2, 3]
    shares = share(b"\x12\x34", points, 3, SimulationRandomness(1))
    guesses = np.arange(65536, dtype="<u2")
    opened = recover([shares[0] * 65536, shares[1] * 65536, guesses.tobytes()], points)
    assert set(Counter(np.frombuffer(opened, "<u2").tolist()).values()) == {1}


def test_a_wrong_share_opens_another_secret() -> None:
    shares = share(bytes(32), [1, 2, 3], 3, SimulationRandomness(1))
    assert recover([shares[0], shares[1], bytes(32)], [1, 2, 3]) != bytes(32)


def test_what_is_refused() -> None:
    source = SimulationRandomness(0)
    for points, threshold in (([1, 2], 3), ([1, 2], 0), ([0, 1], 1), ([1, 65536], 1)):
        with pytest.raises(InputError):
            share(b"ab", points, threshold, source)
    with pytest.raises(InputError, match="same point"):
        recover([b"ab", b"ab"], [1, 1])
