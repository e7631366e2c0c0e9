"""Keys, masks and sealed messages: against the library's own functions, and against every change on the way."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from syndic.errors import InputError, RefusedError
from syndic.mpc.key import agree, agree_all, agree_with, context, derive, key_pair, public_of
from syndic.mpc.mask import expand, stream
from syndic.mpc.ring import Ring
from syndic.mpc.seal import OVERHEAD_BYTES, Place, seal, unseal
from syndic.random import SimulationRandomness

PLACE = Place(study="s" * 64, label="round 1", sender="north", receiver="south")
SOURCE = SimulationRandomness(1, "seal")
SECRET = SOURCE.bytes(32)


def test_derive_is_hkdf() -> None:
    theirs = HKDF(algorithm=SHA256(), length=32, salt=None, info=context("a", b"b", 3)).derive(SECRET)
    assert derive(SECRET, "a", b"b", 3) == theirs


def test_two_parties_agree_with_what_ties_their_identities_in_it() -> None:
    """Both keys of this run and the bond count: whoever lacks one of them has another secret."""
    one, other = key_pair(SOURCE), key_pair(SOURCE)
    bonds = {"south": b"b" * 32, "east": b"c" * 32, "west": b""}
    north: Any = SimpleNamespace(bond=bonds.__getitem__)
    found = agree_with(north, one.private, dict.fromkeys(bonds, other.public))
    shared = agree(other.private, one.public)
    for name, bond in bonds.items():
        theirs = HKDF(algorithm=SHA256(), length=32, salt=None, info=context("bonded")).derive(shared + bond)
        assert found[name] == (theirs if bond else shared)
    assert len(set(found.values())) == 3


@given(st.lists(st.binary(max_size=9), max_size=4), st.lists(st.binary(max_size=9), max_size=4))
def test_contexts_can_be_told_apart(one: list[bytes], other: list[bytes]) -> None:
    assert (context(*one) == context(*other)) == (one == other)


def test_agreement_is_the_published_one() -> None:
    # RFC 7748, section 6.1: Bob's private key, Alice's public key, their secret
    private = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    public = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    secret = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
    assert agree(private, public).hex() == secret
    assert public_of(private).hex() == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    one, other = key_pair(SOURCE), key_pair(SOURCE)
    assert agree_all(one.private, [public, other.public])[1] == agree(other.private, one.public)


def test_keys_of_small_order_are_refused() -> None:
    with pytest.raises(RefusedError, match="invalid public key"):
        agree(SECRET, bytes(32))
    with pytest.raises(RefusedError, match="invalid public key"):
        agree(SECRET, b"short")


def test_masks_are_the_chacha20_stream_of_the_derived_key() -> None:
    theirs = Cipher(ChaCha20(derive(SECRET, b"mask", b"here"), bytes(16)), mode=None).encryptor().update(bytes(40))
    assert stream(SECRET, b"here", 40) == theirs
    assert expand(SECRET, b"here", 10, Ring(32)).tolist() == np.frombuffer(theirs, "<u4").tolist()
    assert expand(SECRET, b"here", 10, Ring(30)).tolist() == (np.frombuffer(theirs, "<u4") % 2**30).tolist()
    assert stream(SECRET, b"there", 40) != theirs
    assert stream(derive(SECRET, "x"), b"here", 40) != theirs
    with pytest.raises(InputError, match="found 16"):
        stream(bytes(16), b"here", 40)
    with pytest.raises(InputError, match="several contexts"):
        stream(SECRET, b"here", 2**38 + 1)


@given(st.binary(max_size=200))
def test_a_sealed_message_opens_at_its_place(text: bytes) -> None:
    box = seal(SECRET, text, PLACE, SOURCE)
    assert len(box) == len(text) + OVERHEAD_BYTES
    assert unseal(SECRET, box, PLACE) == text


def test_key_pairs_seal_for_each_other() -> None:
    north, south, other = (key_pair(SOURCE) for _ in range(3))
    box = seal(agree(north.private, south.public), b"text", PLACE, SOURCE)
    assert unseal(agree(south.private, north.public), box, PLACE) == b"text"
    with pytest.raises(RefusedError):
        unseal(agree(other.private, north.public), box, PLACE)


def test_every_change_is_refused() -> None:
    box = seal(SECRET, b"a text of some length", PLACE, SOURCE)
    for place in range(8 * len(box)):
        changed = bytearray(box)
        changed[place // 8] ^= 1 << (place % 8)
        with pytest.raises(RefusedError, match="from north to south"):
            unseal(SECRET, bytes(changed), PLACE)
    for cut in (b"", box[:5], box[:12], box[:-1], box + b"\x00"):
        with pytest.raises(RefusedError):
            unseal(SECRET, cut, PLACE)


@pytest.mark.parametrize(
    "other", [{"study": "t" * 64}, {"label": "round 2"}, {"sender": "east"}, {"receiver": "east"}, {"turned": True}]
)
def test_a_message_opens_at_no_other_place(other: dict[str, str]) -> None:
    box = seal(SECRET, b"text", PLACE, SOURCE)
    if "turned" in other:
        other = {"sender": "south", "receiver": "north"}
    with pytest.raises(RefusedError):
        unseal(SECRET, box, dataclasses.replace(PLACE, **other))


def test_the_same_text_is_never_sealed_alike() -> None:
    boxes = {seal(SECRET, b"text", PLACE, SOURCE) for _ in range(100)}
    assert len(boxes) == 100
