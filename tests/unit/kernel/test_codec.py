"""The codec: what goes in comes out, and anything else is refused."""

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import Message, Nothing, decode, encode


class Mixed(Message):
    name: str
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]
    ratio: float = 0.5


def mixed() -> Mixed:
    return Mixed(name="x", counts=np.arange(6).reshape(2, 3), weights=np.array([0.5, np.inf]))


def test_round_trip() -> None:
    back = decode(encode(mixed()), Mixed)
    assert (back.name, back.ratio) == ("x", 0.5)
    assert back.counts.dtype == np.int64
    assert back.counts.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert back.weights.tolist() == [0.5, np.inf]


def test_received_arrays_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        decode(encode(mixed()), Mixed).counts[0, 0] = 5


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_cut_messages_are_refused(cut: int) -> None:
    with pytest.raises(RefusedError):
        decode(encode(mixed())[:-cut], Mixed)


@pytest.mark.parametrize(
    "change",
    [
        {"name": 3},
        {"unknown": 1},
        {"counts": [1, 2]},
        {"counts": b""},
        {"counts": b"\x00"},
        {"counts": b"\x02\x01" + bytes(16)},  # float64 where int64 is expected
        {"counts": b"\x00\x01" + (9).to_bytes(8, "little") + bytes(64)},  # says nine, holds eight
        {"counts": b"\x00\x02" + (2**63).to_bytes(8, "little") * 2},  # a shape that overflows
        {"counts": b"\x00\xff" + bytes(3000)},  # 255 dimensions
        {"counts": b"\xfe\x01" + bytes(16)},  # no such dtype
    ],
    ids=str,
)
def test_messages_of_another_shape_are_refused(change: dict[str, Any]) -> None:
    good = msgspec.msgpack.decode(encode(mixed()))
    with pytest.raises(RefusedError, match="not a valid Mixed"):
        decode(msgspec.msgpack.encode({**good, **change}), Mixed)


def test_a_refusal_quotes_nothing_of_the_message() -> None:
    data = msgspec.msgpack.encode({"name": 3, "secret": "4711"})
    with pytest.raises(RefusedError) as error:
        decode(data, Mixed)
    assert "4711" not in str(error.value)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(RefusedError):
        decode(b"\x91" * 100_000, Nothing)


@pytest.mark.parametrize(
    "value", [object(), np.array([1 + 2j]), np.zeros((1,) * 9)], ids=lambda value: type(value).__name__
)
def test_what_cannot_travel_is_an_error_at_the_sender(value: Any) -> None:
    with pytest.raises((NotImplementedError, TypeError)):
        encode(Mixed(name="x", counts=value, weights=np.zeros(1)))
