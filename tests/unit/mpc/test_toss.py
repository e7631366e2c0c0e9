"""A public coin toss: the same for all, of nobody's choosing, and whoever changes a piece is named."""

from pathlib import Path
from typing import Any

import pytest

from support import Case, mixing_study, open_nodes, rows
from syndic.errors import RefusedError
from syndic.kernel import Call, Reply, answer, decode, encode
from syndic.mpc.toss import (
    PublicToss,
    Toss,
    TossCommitment,
    TossCommitments,
    TossPiece,
    TossStart,
    check_pieces,
    toss_commitment,
    tossed,
)
from syndic.study.party_folder import run_digest

STUDY = mixing_study()
DIGEST = run_digest(STUDY, 7)
PARTIES = ("north", "south")


def case() -> Case:
    table = rows(60, 3)
    return Case("toss", STUDY, {party.name: table.select(list(party.columns or ())) for party in STUDY.parties})


def ask(node: Any, step: str, message: Any, number: int) -> Reply:
    call = Call(study=DIGEST, party=node.name, step=step, call=f"{number:032d}", body=encode(message))
    return decode(answer(node, encode(call)), Reply)


def committed(nodes: Any) -> dict[str, bytes]:
    replies = {name: ask(nodes[name], "toss_commit", TossStart(label="signs"), 1) for name in PARTIES}
    # a commitment is a message of one field of 32 bytes
    return {name: reply.body[-32:] for name, reply in replies.items()}


def revealed(nodes: Any, commitments: dict[str, bytes]) -> dict[str, bytes]:
    message = TossCommitments(label="signs", commitments=commitments)
    return {name: decode(ask(nodes[name], "toss_reveal", message, 2).body, TossPiece).piece for name in PARTIES}


def test_pieces_fit_their_commitments_and_all_of_them_count(tmp_path: Path) -> None:
    nodes = open_nodes(case(), tmp_path)
    commitments = committed(nodes)
    toss = Toss(label="signs", pieces=revealed(nodes, commitments))
    check_pieces(toss, commitments, study=DIGEST)
    bytes_made = tossed(toss, study=DIGEST)
    assert len(bytes_made) == 32
    for name in PARTIES:
        other = Toss(label="signs", pieces={**toss.pieces, name: bytes(32)})
        assert tossed(other, study=DIGEST) != bytes_made
        with pytest.raises(RefusedError, match=f"{name}'s piece"):
            check_pieces(other, commitments, study=DIGEST)
    assert tossed(toss, study="another") != bytes_made


def test_a_party_refuses_a_piece_that_was_changed_after_the_commitments(tmp_path: Path) -> None:
    nodes = open_nodes(case(), tmp_path)
    pieces = revealed(nodes, committed(nodes))
    reply = ask(nodes["north"], "mix", Toss(label="signs", pieces={**pieces, "south": b"x" * 32}), 3)
    assert (reply.code, "south's piece" in reply.text) == ("refused", True)
    assert [entry.kind for entry in nodes["north"].state.ledger.entries()] == ["declare"]
    assert ask(nodes["north"], "mix", Toss(label="signs", pieces=pieces), 4).code == "ok"
    again = ask(nodes["north"], "mix", Toss(label="signs", pieces=pieces), 5)
    assert (again.code, "answered once, in order" in again.text) == ("refused", True)


def test_a_party_reveals_nothing_before_all_are_bound(tmp_path: Path) -> None:
    nodes = open_nodes(case(), tmp_path)
    commitments = committed(nodes)
    short = TossCommitments(label="signs", commitments={"north": commitments["north"]})
    assert ask(nodes["north"], "toss_reveal", short, 2).code == "refused"
    forged = {**commitments, "north": toss_commitment(bytes(32), study=DIGEST, label="signs", party="north")}
    message = TossCommitments(label="signs", commitments=forged)
    assert ask(nodes["north"], "toss_reveal", message, 3).code == "refused"


def test_steps_out_of_order_and_other_labels_are_refused(tmp_path: Path) -> None:
    nodes = open_nodes(case(), tmp_path)
    toss = Toss(label="signs", pieces=dict.fromkeys(PARTIES, bytes(32)))
    assert ask(nodes["north"], "mix", toss, 1).code == "refused"
    assert "unknown toss" in ask(nodes["north"], "mix", Toss(label="other", pieces={}), 2).text


def test_pieces_of_some_parties_or_of_another_length_are_refused() -> None:
    pieces = {name: name.encode().ljust(32) for name in PARTIES}
    made = {name: toss_commitment(piece, study="s", label="l", party=name) for name, piece in pieces.items()}
    check_pieces(Toss(label="l", pieces=pieces), made, study="s")
    for some in ({"north": pieces["north"]}, {**pieces, "east": bytes(32)}):
        with pytest.raises(RefusedError, match="does not have one piece from every party"):
            check_pieces(Toss(label="l", pieces=some), made, study="s")
    # bound to its own short piece, but 31 bytes are not what the others drew
    short = {**made, "north": toss_commitment(bytes(31), study="s", label="l", party="north")}
    with pytest.raises(RefusedError, match="north's piece"):
        check_pieces(Toss(label="l", pieces={**pieces, "north": bytes(31)}), short, study="s")


def test_a_commitment_is_to_one_piece_of_one_party_in_one_toss() -> None:
    place = {"study": "s", "label": "l", "party": "north"}
    places = [place, {**place, "study": "t"}, {**place, "label": "m"}, {**place, "party": "south"}]
    made = {toss_commitment(piece, **each) for piece in (bytes(32), b"x" * 32) for each in places}
    assert len(made) == 8


class View:
    """A session in which every party answers as it is told."""

    study = "s"

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def ask(self, step: Any, message: Any) -> Any:
        return self.answers[step.__name__]


def test_a_coordinator_publishes_no_toss_with_a_changed_piece() -> None:
    pieces = {name: name.encode().ljust(32) for name in PARTIES}
    made = {
        name: TossCommitment(commitment=toss_commitment(piece, study="s", label="l", party=name))
        for name, piece in pieces.items()
    }
    told: Any = View(toss_commit=made, toss_reveal={name: TossPiece(piece=piece) for name, piece in pieces.items()})
    assert PublicToss(label="l").run(told) == Toss(label="l", pieces=pieces)
    told.answers["toss_reveal"]["south"] = TossPiece(piece=bytes(32))
    with pytest.raises(RefusedError, match="south's piece"):
        PublicToss(label="l").run(told)
