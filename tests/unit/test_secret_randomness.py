"""A stream that can be drawn again by whoever has the key."""

import hashlib

import numpy as np
import pytest

from syndic.random import SecretRandomness

KEY = bytes(range(32))


def test_the_stream_is_shake_of_key_labels_and_block() -> None:
    expected = b"".join(
        hashlib.shake_256(KEY + b"study\x00draws\x00" + number.to_bytes(8, "little")).digest(4096)
        for number in range(3)
    )
    stream = SecretRandomness(KEY, "study", "draws")
    drawn = [stream.bytes(count) for count in (1, 0, 4095, 5000, 16)]
    assert b"".join(drawn) == expected[: 1 + 4095 + 5000 + 16]
    assert SecretRandomness(KEY, "study", "draws").words(3).tobytes() == expected[:24]


def test_streams_of_other_keys_and_labels_are_others() -> None:
    streams = [
        SecretRandomness(KEY, "a", "b"),
        SecretRandomness(KEY, "ab"),
        SecretRandomness(KEY, "a"),
        SecretRandomness(KEY),
        SecretRandomness(bytes(32), "a"),
    ]
    assert len({stream.bytes(16) for stream in streams}) == len(streams)


def test_it_is_uniform_enough_to_see_and_not_simulated() -> None:
    ones = np.unpackbits(np.frombuffer(SecretRandomness(KEY).bytes(1 << 16), dtype=np.uint8))
    # 6 standard deviations of half a million coins
    assert abs(ones.mean() - 0.5) < 6 * 0.5 / np.sqrt(ones.size)
    assert not SecretRandomness.simulated


def test_a_key_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        SecretRandomness(b"short")
