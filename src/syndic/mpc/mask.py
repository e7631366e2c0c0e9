"""Masks: one 256-bit key becomes any number of uniform ring elements, by ChaCha20.

Whoever lacks the key cannot tell the elements from uniform ones, so a value plus a mask tells nothing. A mask must
hide one vector only: two vectors under one mask tell their difference. So every use has its own context.
"""

from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.mpc.key import KEY_BYTES, derive
from syndic.mpc.ring import Ring

_NONCE = bytes(16)
# the block counter of ChaCha20 has 32 bits, and a block 64 bytes
_MOST_BYTES = 1 << 38


def stream(key: bytes, context: bytes, length: int) -> bytes:
    """Return `length` bytes of the ChaCha20 stream that belongs to a key and a context."""
    if len(key) != KEY_BYTES:
        raise InputError(f"a key of {len(key)} bytes: keys have {KEY_BYTES}")
    if length > _MOST_BYTES:
        raise InputError(f"{length} bytes from one key and context: the most is {_MOST_BYTES}; use more contexts")
    # the nonce may be constant, because the derived key belongs to this context alone
    cipher = Cipher(ChaCha20(derive(key, b"mask", context), _NONCE), mode=None)
    return cipher.encryptor().update(bytes(length))


def expand(key: bytes, context: bytes, count: int, ring: Ring) -> NDArray[Any]:
    """Return the `count` uniform elements of `ring` that belong to a 32-byte key and a context."""
    data = stream(key, context, count * ring.dtype.itemsize)
    return ring.reduce(np.frombuffer(data, dtype=ring.dtype.newbyteorder("<")))
