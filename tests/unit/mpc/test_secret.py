"""A shared secret: the same at all parties, of no party's choosing, and whoever cheats is named."""

from pathlib import Path

import pytest

from many_parties import AddUp, Fleet
from syndic.errors import PartyError, RefusedError
from syndic.kernel import Nothing, decode, encode
from syndic.mpc.key import agree, derive
from syndic.mpc.seal import Mail, Place, seal, unseal
from syndic.mpc.secret import (
    SecretDone,
    SecretMail,
    SecretOffer,
    SecretOffers,
    SecretStart,
    SharedSecret,
    _Own,
    checked_pieces,
    combined,
    commitment_to,
    digest_of,
)
from syndic.random import SystemRandomness


def run(fleet: Fleet) -> set[bytes]:
    session = fleet.session()
    SharedSecret(label="one").run(session)
    return {told.secret for told in session.ask(fleet.protocol.tell, Nothing()).values()}


@pytest.mark.parametrize("parties", [2, 3, 10])
def test_all_parties_have_the_same_secret(parties: int, tmp_path: Path) -> None:
    secrets = run(Fleet(AddUp(), parties, tmp_path))
    assert len(secrets) == 1
    assert len(secrets.pop()) == 32


def own(fleet: Fleet, party: str) -> _Own:
    kept = fleet.nodes[party].state.memory.kept("secret one own")
    assert kept is not None
    return decode(kept, _Own)


def test_the_secret_is_made_of_every_piece_and_crosses_nowhere(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 3, tmp_path)
    (secret,) = run(fleet)
    pieces = {name: own(fleet, name).piece for name in fleet.names}
    assert secret == combined(pieces, study=fleet.study.digest, label="one")
    for name in pieces:
        assert combined({**pieces, name: bytes(32)}, study=fleet.study.digest, label="one") != secret
    carried = b"".join(body for (step, _), body in fleet.seen.items() if step != "tell")
    assert derive(secret, "check") in carried
    for hidden in (secret, *pieces.values()):
        assert hidden not in carried


def test_a_party_that_changes_its_piece_is_named(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 3, tmp_path)
    offers: dict[str, SecretOffer] = {}

    def note(step: str, party: str, body: bytes) -> bytes:
        if step == "secret_send":
            offers.update(decode(body, SecretOffers).offers)
        return body

    def cheat(step: str, party: str, body: bytes) -> bytes:
        if (step, party) != ("secret_send", "p1"):
            return body
        boxes = {}
        for receiver in decode(body, Mail).boxes:
            secret = agree(own(fleet, "p1").pair.private, offers[receiver].public)
            place = Place(study=fleet.study.digest, label="secret one", sender="p1", receiver=receiver)
            boxes[receiver] = seal(secret, b"c" * 32 + digest_of(offers), place, SystemRandomness())
            assert unseal(secret, boxes[receiver], place)
        return encode(Mail(boxes=boxes))

    fleet.ask, fleet.reply = note, cheat
    with pytest.raises(PartyError, match=r"p1's piece .* does not match its commitment"):
        run(fleet)


def test_different_offers_are_found_out(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 3, tmp_path)

    def lie(step: str, party: str, body: bytes) -> bytes:
        if step != "secret_send" or party != "p0":
            return body
        offers = decode(body, SecretOffers)
        forged = SecretOffer(public=offers.offers["p2"].public, commitment=bytes(32))
        return encode(SecretOffers(label="one", offers={**offers.offers, "p2": forged}))

    fleet.ask = lie
    with pytest.raises(PartyError, match="received different offers"):
        run(fleet)


def test_a_party_whose_own_commitment_was_changed_sends_nothing(tmp_path: Path) -> None:
    """Or the others would call it a liar, and its piece would be out."""
    fleet = Fleet(AddUp(), 3, tmp_path)

    def lie(step: str, party: str, body: bytes) -> bytes:
        if step != "secret_send":
            return body
        offers = decode(body, SecretOffers).offers
        forged = SecretOffer(public=offers["p0"].public, commitment=bytes(32))
        return encode(SecretOffers(label="one", offers={**offers, "p0": forged}))

    fleet.ask = lie
    with pytest.raises(PartyError, match="are incomplete or were changed"):
        run(fleet)
    assert fleet.seen["secret_send", "p0"] == b""


def test_what_is_refused(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 3, tmp_path)
    assert "requested after step 0" in fleet.asked_again("secret_send", "p0", SecretOffers(label="one", offers={})).text
    run(fleet)
    assert fleet.asked_again("secret_offer", "p0", SecretStart(label="one")).code == "refused"
    assert fleet.asked_again("secret_offer", "p0", SecretStart(label="two")).code == "ok"


def test_no_label_writes_over_what_another_keeps(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 3, tmp_path)
    session = fleet.session()
    for label in ("one", "one stage", "one own", "one shared"):
        SharedSecret(label=label).run(session)
    reply = fleet.asked_again("secret_offer", "p0", SecretStart(label="one"))
    assert (reply.code, "requested after step 3" in reply.text) == ("refused", True)


def test_a_stage_that_cannot_be_read_is_not_the_beginning(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 3, tmp_path)
    fleet.nodes["p0"].state.memory.keep("secret one stage", b"\xc1")
    reply = fleet.asked_again("secret_offer", "p0", SecretStart(label="one"))
    assert (reply.code, "not a valid Stage" in reply.text) == ("refused", True)


def test_offers_of_some_parties_only_are_refused(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 3, tmp_path)

    def fewer(step: str, party: str, body: bytes) -> bytes:
        if step != "secret_send":
            return body
        offers = decode(body, SecretOffers).offers
        return encode(SecretOffers(label="one", offers={name: offers[name] for name in ("p0", "p1")}))

    fleet.ask = fewer
    with pytest.raises(PartyError, match="incomplete or were changed"):
        run(fleet)


def test_checked_pieces() -> None:
    piece = b"p" * 32
    offers = {"a": SecretOffer(public=b"", commitment=commitment_to(piece, study="s", label="l", party="a"))}
    assert checked_pieces({"a": piece + digest_of(offers)}, offers, study="s", label="l") == {"a": piece}
    for study, label in (("t", "l"), ("s", "m")):
        with pytest.raises(RefusedError, match="does not match"):
            checked_pieces({"a": piece + digest_of(offers)}, offers, study=study, label=label)


def test_a_party_that_leaves_one_out_and_boxes_of_some_parties_only_are_refused(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 3, tmp_path)

    def keep_back(step: str, party: str, body: bytes) -> bytes:
        if (step, party) != ("secret_send", "p1"):
            return body
        boxes = decode(body, Mail).boxes
        return encode(Mail(boxes={"p0": boxes["p0"]}))

    fleet.reply = keep_back
    with pytest.raises(RefusedError, match="p1 did not send its piece of the secret 'one' to every other party"):
        run(fleet)


def test_pieces_of_some_parties_only_make_no_secret(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 3, tmp_path)

    def fewer(step: str, party: str, body: bytes) -> bytes:
        if (step, party) != ("secret_check", "p0"):
            return body
        return encode(SecretMail(label="one", boxes={"p1": decode(body, SecretMail).boxes["p1"]}))

    fleet.ask = fewer
    with pytest.raises(PartyError, match="the secret 'one' does not have one piece from every other party"):
        run(fleet)


def test_parties_without_a_common_secret_do_not_go_on(tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 3, tmp_path)

    def other(step: str, party: str, body: bytes) -> bytes:
        return encode(SecretDone(check=bytes(32))) if (step, party) == ("secret_check", "p2") else body

    fleet.reply = other
    with pytest.raises(RefusedError, match="the parties do not have the same secret 'one': the run stops"):
        run(fleet)
