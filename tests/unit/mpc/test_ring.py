"""Rings: packing against Python's big integers, lifting at the very bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndic.errors import InputError, RefusedError
from syndic.mpc.ring import Ring, ring_for

EVERY = range(1, 65)


@pytest.mark.parametrize("bits", EVERY)
def test_packing_is_the_little_endian_number_of_all_elements(bits: int) -> None:
    ring = Ring(bits)
    draws = np.random.default_rng(bits)
    for count in (0, 1, 7, 63, 64, 65, 1000):
        elements = ring.reduce(draws.integers(0, 2**64, count, dtype=np.uint64))
        number = sum(int(element) << (bits * place) for place, element in enumerate(elements))
        packed = ring.pack(elements)
        assert packed == number.to_bytes(-(-bits * count // 8), "little")
        unpacked = ring.unpack(packed, count)
        assert unpacked.dtype == ring.dtype
        assert np.array_equal(unpacked, elements)


@given(bits=st.integers(1, 64), data=st.data())
def test_arithmetic_is_that_of_integers_modulo_two_to_the_bits(bits: int, data: st.DataObject) -> None:
    ring = Ring(bits)
    numbers = st.integers(-(2**63), 2**63 - 1)
    left, right = data.draw(numbers), data.draw(numbers)
    one, other = ring.reduce(np.array([left])), ring.reduce(np.array([right]))
    assert int(ring.add(one, other)[0]) == (left + right) % 2**bits
    assert int(ring.subtract(one, other)[0]) == (left - right) % 2**bits
    lifted = int(ring.lift(one)[0])
    assert (lifted - left) % 2**bits == 0
    assert -(2 ** (bits - 1)) <= lifted < 2 ** (bits - 1)


@pytest.mark.parametrize("bound", [0, 1, 2, 3, 127, 128, 255, 256, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1])
def test_the_ring_of_a_bound_is_the_smallest_that_holds_it(bound: int) -> None:
    ring = ring_for(bound)
    ends = np.array([-bound, bound])
    assert ring.lift(ring.reduce(ends)).tolist() == [-bound, bound]
    assert len({int(element) for element in ring.reduce(ends)}) == (1 if bound == 0 else 2)
    if bound:
        smaller = Ring(ring.bits - 1)
        assert smaller.lift(smaller.reduce(ends)).tolist() != [-bound, bound]


def test_what_is_refused() -> None:
    for bound in (-1, 2**63):
        with pytest.raises(InputError):
            ring_for(bound)
    for bits in (0, 65):
        with pytest.raises(InputError):
            Ring(bits)
    with pytest.raises(RefusedError, match="expected 5 bytes for 3 numbers of 12 bits, found 4"):
        Ring(12).unpack(b"1234", 3)
