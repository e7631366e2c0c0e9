"""Where random bits come from. Randomness is handed over, never found: no global generator, no default seed.

Noise that protects people is made from `SystemRandomness` only. `SecretRandomness` is for a coordinator, who must be
able to draw the same again after it was killed. `SimulationRandomness` repeats itself from a seed, so it protects
nobody; whatever is made with it says so (`simulated` is true).
"""

import hashlib
import os
from typing import ClassVar, Protocol, final

import numpy as np
from numpy.typing import NDArray

SECRET_BYTES = 32
_BLOCK_BYTES = 4096


class Randomness(Protocol):
    """A stream of uniform bits."""

    simulated: ClassVar[bool]

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` independent uniform 64-bit words."""
        ...

    def bytes(self, count: int) -> bytes:
        """Return `count` independent uniform bytes."""
        ...


@final
class SystemRandomness:
    """The operating system's generator."""

    simulated: ClassVar[bool] = False

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` independent uniform 64-bit words."""
        # bytearray: the array owns writable memory, so that no caller needs a copy
        return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)

    def bytes(self, count: int) -> bytes:
        """Return `count` independent uniform bytes."""
        return os.urandom(count)


@final
class SecretRandomness:
    """A stream that only the holder of a secret key can tell from uniform bits, and can draw again: SHAKE-256."""

    simulated: ClassVar[bool] = False

    def __init__(self, key: bytes, *labels: str) -> None:
        """Start the stream of `key`, 32 uniform bytes; other labels give an independent stream."""
        if len(key) != SECRET_BYTES:
            raise ValueError(f"a key has {SECRET_BYTES} bytes")
        # the key has one length, and labels end before the number of the block: no two inputs are alike
        self._start = hashlib.shake_256(key + "\x00".join([*labels, ""]).encode())
        self._blocks = 0
        self._rest = b""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words of the stream."""
        return np.frombuffer(bytearray(self.bytes(8 * count)), dtype=np.uint64)

    def bytes(self, count: int) -> bytes:
        """Return the next `count` bytes of the stream."""
        parts = [self._rest]
        missing = count - len(self._rest)
        while missing > 0:
            block = self._start.copy()
            block.update(self._blocks.to_bytes(8, "little"))
            self._blocks += 1
            parts.append(block.digest(_BLOCK_BYTES))
            missing -= _BLOCK_BYTES
        drawn = b"".join(parts)
        self._rest = drawn[count:]
        return drawn[:count]


@final
class SimulationRandomness:
    """A repeatable stream for simulation, one per seed and labels. It protects nobody."""

    simulated: ClassVar[bool] = True

    def __init__(self, seed: int, *labels: str) -> None:
        """Start the stream of `seed`; other labels give an independent stream."""
        text = "\x00".join([str(seed), *labels]).encode()
        key = np.frombuffer(hashlib.sha256(text).digest()[:16], dtype=np.uint64)
        self._stream = np.random.Philox(key=key)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` words of the stream."""
        return np.asarray(self._stream.random_raw(count), dtype=np.uint64).reshape(count)

    def bytes(self, count: int) -> bytes:
        """Return `count` bytes of the stream."""
        return self.words(-(-count // 8)).tobytes()[:count]


def generator(randomness: Randomness) -> np.random.Generator:
    """Return a numpy generator seeded from `randomness`, for draws that protect nobody (rows within bins)."""
    return np.random.Generator(np.random.Philox(key=randomness.words(2)))
