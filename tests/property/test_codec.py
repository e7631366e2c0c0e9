"""The codec, on whatever hypothesis thinks of."""

from typing import Any, Literal

import msgspec
import numpy as np
import pytest
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
    assert_same(decode(encode(message), Everything), message)


def assert_same(received: Everything, sent: Everything) -> None:
    for name in Everything.__struct_fields__:
        one, other = getattr(received, name), getattr(sent, name)
        assert type(one) is type(other)
        np.testing.assert_equal(one, other)
        if isinstance(other, np.ndarray):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)


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
    # what was read is a message like any other: it is written and read as itself
    assert_same(decode(encode(back), Everything), back)


class Choice(Message):
    kind: Literal["one", "other"]
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError(f"number ({self.number}) must not be negative")


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"kind": "diabetes 4711", "number": 1}, "a value is not allowed - at `$.kind`"),
        ({"kind": "one", "number": -4711}, "a value is not allowed"),
        ({"kind": "one", "number": "diabetes 4711"}, "Expected `int`, got `str` - at `$.number`"),
        ({"kind": "one", "number": 1, "diabetes 4711": 1}, "a value is not allowed"),
        ({"kind": "one"}, "Object missing required field `number`"),
    ],
)
def test_a_refusal_says_where_and_quotes_nothing(sent: dict[str, Any], told: str) -> None:
    with pytest.raises(RefusedError) as refused:
        decode(msgspec.msgpack.encode(sent), Choice)
    assert str(refused.value) == f"the message is not a valid Choice: {told}"
