"""Encode messages as bytes and decode them. Received bytes can never cause an import or an execution.

The reader states which class it expects. Unknown fields, wrong types, wrong dtypes and inconsistent sizes are
refused. An array is sent as a header (dtype, shape) and its raw little-endian values.
"""

import math
import struct
from typing import Any, ClassVar, TypeVar, get_args, get_origin

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import RefusedError

M = TypeVar("M")

_DTYPES = tuple(np.dtype(name) for name in ("int64", "uint64", "float64", "uint8", "uint16", "uint32", "int32"))
_MAX_DIMENSIONS = 8


class Message(Document):
    """Base of everything that is sent: numbers, text, bytes and numpy arrays in a frozen record.

    `common` names the fields that an honest coordinator sends to all parties alike (`syndic.kernel.view`).
    """

    common: ClassVar[tuple[str, ...]] = ()


class Nothing(Message):
    """An empty message."""


def encode(message: Message) -> bytes:
    """Return the message as bytes."""
    return msgspec.msgpack.encode(message, enc_hook=_encode_hook)


def common_part(message: Message) -> bytes:
    """Return the common fields of a message as bytes; equal fields give equal bytes."""
    return msgspec.msgpack.encode([getattr(message, name) for name in message.common], enc_hook=_encode_hook)


def decode(data: bytes, kind: type[M]) -> M:
    """Decode a message of class `kind`; refuse anything else without quoting its content."""
    try:
        return msgspec.msgpack.decode(data, type=kind, dec_hook=_decode_hook)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RefusedError(f"the message is not a valid {kind.__name__}: {_public_reason(error)}") from None


def _public_reason(error: Exception) -> str:
    """Return what is wrong and where, without quoting a value."""
    if not isinstance(error, msgspec.ValidationError):
        return "malformed or cut short"
    text = str(error)
    if text.startswith(("Expected ", "Object missing ", "it was damaged ")):
        return text
    # msgspec quotes words that are not allowed, and our own checks quote numbers
    _, at, place = text.rpartition(" - at ")
    return f"a value is not allowed - at {place}" if at else "a value is not allowed"


def _encode_hook(value: Any) -> bytes:
    if not isinstance(value, np.ndarray):
        raise NotImplementedError(f"{type(value).__name__} cannot be part of a message")
    if value.dtype not in _DTYPES or value.ndim > _MAX_DIMENSIONS:
        raise NotImplementedError(f"arrays of {value.dtype} with {value.ndim} dimensions cannot be part of a message")
    header = struct.pack(f"<BB{value.ndim}Q", _DTYPES.index(value.dtype), value.ndim, *value.shape)
    little = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return header + little.tobytes()


def _decode_hook(kind: Any, value: Any) -> NDArray[Any]:
    if get_origin(kind) is not np.ndarray:
        raise NotImplementedError(f"{kind} cannot be part of a message")
    if not isinstance(value, bytes) or len(value) < 2:
        raise ValueError("Expected an array")
    wanted = np.dtype(get_args(get_args(kind)[1])[0])
    code, dimensions = value[0], value[1]
    start = 2 + 8 * dimensions
    if code >= len(_DTYPES) or _DTYPES[code] != wanted:
        raise ValueError(f"Expected an array of {wanted}")
    if dimensions > _MAX_DIMENSIONS or len(value) < start:
        raise ValueError("Expected an array header")
    shape = struct.unpack_from(f"<{dimensions}Q", value, 2)
    if math.prod(shape) * wanted.itemsize != len(value) - start:
        raise ValueError("Expected as many values as the array's shape says")
    return np.frombuffer(value, dtype=wanted.newbyteorder("<"), offset=start).astype(wanted, copy=False).reshape(shape)
