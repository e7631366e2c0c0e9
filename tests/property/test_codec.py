"""The codec, on whatever hypothesis thinks of."""

from typing import Any

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import Message, decode, encode


class Everything(Message):
    whole: int
    real: float
    text: str
    data: bytes
    names: tuple[str, ...]
    signed: NDArray[np.int64]
    unsigned: NDArray[np.uint64]
    floats: NDArray[np.float64]
    small: NDArray[np.uint8]


def arrays(dtype: type) -> st.SearchStrategy[Any]:
    return hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))


MESSAGES = st.builds(
    Everything,
    whole=st.integers(-(2**63), 2**63 - 1),
    real=st.floats(allow_nan=False),
    text=st.text(),
    data=st.binary(),
    names=st.lists(st.text(), max_size=4).map(tuple),
    signed=arrays(np.int64),
    unsigned=arrays(np.uint64),
    floats=arrays(np.float64),
    small=arrays(np.uint8),
)


@given(MESSAGES)
def test_what_goes_in_comes_out(message: Everything) -> None:
    back = decode(encode(message), Everything)
    for name in Everything.__struct_fields__:
        sent, received = getattr(message, name), getattr(back, name)
        if isinstance(sent, np.ndarray):
            assert received.dtype == sent.dtype
            np.testing.assert_array_equal(received, sent)
        else:
            assert received == sent


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        decode(data, Everything)
    except RefusedError:
        return
    raise AssertionError("random bytes were taken for a message")


@given(MESSAGES, st.integers(0, 10**6), st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused(message: Everything, place: int, value: int) -> None:
    data = bytearray(encode(message))
    data[place % len(data)] = value
    try:
        back = decode(bytes(data), Everything)
    except RefusedError:
        return
    assert msgspec.structs.fields(back)
