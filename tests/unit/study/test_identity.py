"""Identities: keys made once, lines that do not survive a slip of the pen, bonds that only two can compute."""

import base64
import dataclasses
import hashlib
import json
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support import study_text
from syndic import Schema, Study
from syndic.errors import InputError, IntegrityError
from syndic.kernel import CoordinatorKey, Member, PublicIdentity
from syndic.mpc.key import context
from syndic.study.identity import Identity

LINE = str(PublicIdentity(signing=bytes(range(32)), sealing=bytes(range(32, 64))))


def identity_of(number: int) -> Identity:
    return Identity(signing=bytes([number] * 32), sealing=bytes([number + 1] * 32))


def test_keys_are_made_once_and_only_their_owner_may_read_them(tmp_path: Path) -> None:
    made = Identity.make(tmp_path / "home" / "identity.key")
    path = tmp_path / "home" / "identity.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Identity.load(path) == made
    written = path.read_bytes()
    with pytest.raises(InputError, match="never overwritten"):
        Identity.make(path)
    assert path.read_bytes() == written
    assert [each.name for each in path.parent.iterdir()] == ["identity.key"]
    assert Identity.make(tmp_path / "other.key") != made


def test_the_public_line_is_of_the_two_public_keys(tmp_path: Path) -> None:
    made = Identity.make(tmp_path / "identity.key")
    written = json.loads((tmp_path / "identity.key").read_text())
    signing = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(written["signing"])).public_key()
    sealing = X25519PrivateKey.from_private_bytes(bytes.fromhex(written["sealing"])).public_key()
    keys = signing.public_bytes_raw() + sealing.public_bytes_raw()
    check = hashlib.sha256(b"syndic identity 1\n" + keys).digest()
    assert str(made.public) == "sy1-" + base64.b32encode(keys + check[:6]).decode().lower() == written["public"]
    assert made.public.fingerprint.replace(" ", "") == f"{int.from_bytes(check, 'big') % 10**30:030d}"
    assert PublicIdentity.read(str(made.public)) == made.public


def test_no_text_form_of_the_private_keys(tmp_path: Path) -> None:
    made = Identity.make(tmp_path / "identity.key")
    written = json.loads((tmp_path / "identity.key").read_text())
    assert written["signing"] not in repr(made)
    assert written["sealing"] not in f"{made} {made!r}"
    assert repr(made.signing) not in repr(made)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("syndic identity 1", "syndic identity 2"),
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"signing": "', '"signing": "00', 1),
        lambda text: text.replace('"sealing": "', '"sealing": "zz', 1),
        lambda text: json.dumps({**json.loads(text), "sealing": "11" * 32}),
    ],
)
def test_damaged_keys_are_refused_and_not_quoted(tmp_path: Path, change: object) -> None:
    path = tmp_path / "identity.key"
    Identity.make(path)
    secret = json.loads(path.read_text())["signing"]
    path.write_text(change(path.read_text()))  # type: ignore[operator]
    with pytest.raises(IntegrityError) as error:
        Identity.load(path)
    assert secret not in str(error.value)
    assert secret[:16] not in str(error.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_keys_that_others_may_read_are_refused(tmp_path: Path, mode: int) -> None:
    Identity.make(tmp_path / "identity.key")
    (tmp_path / "identity.key").chmod(mode)
    with pytest.raises(InputError, match="others may read"):
        Identity.load(tmp_path / "identity.key")


@given(st.integers(0, len(LINE) - 1), st.characters(min_codepoint=32, max_codepoint=126))
def test_a_slip_of_the_pen_is_found(place: int, letter: str) -> None:
    changed = LINE[:place] + letter + LINE[place + 1 :]
    if changed != LINE:
        with pytest.raises(ValueError, match="identity"):
            PublicIdentity.read(changed)


@pytest.mark.parametrize(
    "line", ["", "sy1-", LINE[:-1], LINE + "a", LINE.upper(), " " + LINE, LINE[4:], "sy2-" + LINE[4:]]
)
def test_a_line_of_another_form_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="identity"):
        PublicIdentity.read(line)
    with pytest.raises(ValueError, match="identity"):
        Member(name="north", identity=line)


def test_every_swap_of_two_letters_is_found() -> None:
    for place in range(4, len(LINE) - 1):
        changed = LINE[:place] + LINE[place + 1] + LINE[place] + LINE[place + 2 :]
        if changed != LINE:
            with pytest.raises(ValueError, match="identity"):
                PublicIdentity.read(changed)


def test_signatures_are_those_of_the_library() -> None:
    one, other = identity_of(1), identity_of(3)
    signature = one.sign(b"text")
    Ed25519PublicKey.from_public_bytes(one.public.signing).verify(signature, b"text")
    assert one.public.signed(b"text", signature)
    assert not one.public.signed(b"texts", signature)
    assert not other.public.signed(b"text", signature)
    assert not one.public.signed(b"text", signature[:-1])
    assert not one.public.signed(b"text", b"")


def with_identities(*identities: Identity) -> Study:
    study = Study.loads(study_text())
    lines = [str(one.public) for one in identities]
    return replace(
        study, parties=tuple(replace(one, identity=line) for one, line in zip(study.parties, lines, strict=True))
    )


def test_a_bond_is_what_both_can_compute_for_one_run() -> None:
    north, south = identity_of(1), identity_of(3)
    study = with_identities(north, south)
    bond = north.bonds(study, "run", "north")("south")
    assert bond == south.bonds(study, "run", "south")("north")
    # independent of our own HKDF and key agreement
    exchanged = X25519PrivateKey.from_private_bytes(north.sealing).exchange(
        X25519PublicKey.from_public_bytes(south.public.sealing)
    )
    bound = context("bond", "run", "north", "south")
    assert bond == HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=bound).derive(exchanged)
    assert bond != north.bonds(study, "other run", "north")("south")
    assert bond != north.bonds(study, "run", "north")("north")
    assert bond != identity_of(5).bonds(study, "run", "north")("south")


def test_identities_are_all_or_none_and_each_its_own() -> None:
    north, south = identity_of(1), identity_of(3)
    study = with_identities(north, south)
    assert study.digest != with_identities(south, north).digest
    for parties in (
        (study.parties[0], replace(study.parties[1], identity=None)),
        (study.parties[0], replace(study.parties[1], identity=study.parties[0].identity)),
    ):
        with pytest.raises(ValueError, match="give each party its own"):
            replace(study, parties=parties)


@pytest.mark.parametrize("key", ["signing", "sealing"])
def test_a_coordinator_with_the_keys_of_a_party_is_refused(key: str) -> None:
    """Methods protect from the coordinator or a party; who is both could read the exact sums of `average`."""
    study, other = with_identities(identity_of(1), identity_of(3)), identity_of(5)
    replace(study, coordinator=CoordinatorKey(identity=str(other.public)))
    same = dataclasses.replace(other, **{key: getattr(identity_of(3), key)})
    with pytest.raises(ValueError, match="its identity is that of a party"):
        replace(study, coordinator=CoordinatorKey(identity=str(same.public)))


def test_a_digest_covers_the_keys_of_a_column_that_are_used() -> None:
    study = Study.loads(study_text())
    column = study.schema.columns[0]
    used = replace(study, schema=Schema(columns=(replace(column, derive="age + 1"), *study.schema.columns[1:])))
    assert used.digest != study.digest


def test_the_person_is_no_part_of_a_derived_column() -> None:
    study = Study.loads(study_text())
    column = replace(study.schema.columns[0], derive="2 * patient")
    with pytest.raises(ValueError, match="identifies people"):
        replace(study, unit=replace(study.unit, person="patient"), schema=Schema(columns=(column,)))
