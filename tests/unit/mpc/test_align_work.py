"""What a party of an alignment refuses, and what it keeps: nothing with which a thief of its file could try ids."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aligning import carried, table
from support import THREE_VERTICAL, align_study
from syndic.data.aligned import NAME_BYTES, IdRule
from syndic.errors import PartyError, RefusedError
from syndic.kernel import Call, Message, Node, Reply, answer, decode, encode, run
from syndic.methods.align import CommonPeople
from syndic.mpc.align import steps
from syndic.mpc.align.point import HASH_BYTES, POINT_BYTES
from syndic.mpc.align.steps import PrivateIntersection
from syndic.mpc.align.table import FIELD, TableShape
from syndic.mpc.align.work import ORDER_NAME, AlignBox, AlignDone, AlignTable, Ids, Tags
from syndic.mpc.seal import Mail
from syndic.mpc.secret import SharedSecret

SOURCES = {"north": table(list(range(9))), "south": table(list(range(5, 15)))}


def kept(node: Node, name: str) -> bytes:
    found = node.state.memory.kept(name)
    assert found is not None
    return found


def test_what_only_the_alignment_needed_is_written_over(tmp_path: Path) -> None:
    study = align_study()
    carrier, session = carried(study, SOURCES, tmp_path)
    run(study.protocol, session)
    nothing = Ids(hashes=b"", names=b"")
    for node in carrier.nodes.values():
        for name in ("align ids 0", "align own", "align draft", "align meeting"):
            assert decode(kept(node, name), Ids) == nothing, name
        tags = decode(kept(node, "align tags 0"), Tags)
        assert (tags.tags, tags.shares.size) == (b"", 0)
        assert decode(kept(node, "align done"), AlignDone).people == 4
        assert kept(node, ORDER_NAME)
    carrier.close()


def test_a_party_has_as_many_points_as_its_bound_and_every_step_a_place_of_its_own() -> None:
    """One point more would be one more guess; a chunk after the last would come at the place of a later step."""
    parted = PrivateIntersection(
        bounds={"north": 90, "south": 20, "east": 70},
        rule=IdRule(),
        shape=TableShape(bins=4, points=3),
        chunk=16,
        secret=SharedSecret(label="align"),
    )
    counts = {name: [parted.count(name, number) for number in range(6)] for name in parted.names}
    assert counts == {
        "north": [16, 16, 16, 16, 16, 10],
        "south": [16, 4, 0, 0, 0, 0],
        "east": [16, 16, 16, 16, 6, 0],
    }
    stages = [parted.stage(number, hop) for number in range(6) for hop in range(4)]
    assert [*stages, *(parted.later_stage(number) for number in range(5))] == list(range(2, 31))
    for number in (-1, 6):
        with pytest.raises(RefusedError, match="there is no chunk"):
            parted.stage(number, 0)
    for number in (-1, 1):
        with pytest.raises(RefusedError, match="there is no part"):
            parted.part(number)


def test_hashes_are_gone_as_soon_as_labels_are_there(tmp_path: Path) -> None:
    """Points are made of 64 bytes, and the place in the order of 16 that are kept until the labels come back."""
    study = align_study()
    carrier, session = carried(study, SOURCES, tmp_path)
    seen = []

    def look(step: str, party: str, body: bytes) -> bytes:
        if step in ("align_blind", "align_raise", "align_finish", "align_vouch"):
            ids = decode(kept(carrier.nodes[party], "align ids 0"), Ids)
            seen.append((step, len(ids.hashes), len(ids.names) // NAME_BYTES))
        return body

    carrier.change = look
    run(study.protocol, session)
    carrier.close()
    # 60 is the public bound of each: random ones among them
    assert sorted(seen) == [("align_blind", 60 * HASH_BYTES, 60), ("align_blind", 60 * HASH_BYTES, 60)] + [
        (step, 60 * 16 * (step in {"align_finish", "align_raise"}), 60)
        for step in ("align_finish", "align_finish", "align_raise", "align_raise", "align_vouch", "align_vouch")
    ]


@pytest.mark.parametrize("told", [("north", "south", "east"), ("south",)])
def test_a_wrong_sum_ends_the_run_whoever_is_common(told: tuple[str, ...], tmp_path: Path) -> None:
    """Under its cover a wrong sum leaves people out, at all parties alike, or of one party only.

    Without a test of the sum, results are the same then: with no common people, or where all leave the same out.
    """
    study = align_study(parties=THREE_VERTICAL)
    alone = {name: table([f"{name}{each}" for each in range(9)]) for name in ("north", "south", "east")}
    held = alone if len(told) == 1 else dict.fromkeys(alone, SOURCES["north"])
    carrier, session = carried(study, held, tmp_path)

    def lie(step: str, party: str, body: bytes) -> bytes:
        if step != "align_match" or party not in told:
            return body
        words = decode(body, AlignTable).words.copy()
        words[0, 0] = (words[0, 0] + np.uint64(1)) % np.uint64(FIELD)
        return encode(AlignTable(number=0, words=words))

    carrier.change = lie
    with pytest.raises(PartyError, match="do not add up to the sum"):
        run(study.protocol, session)
    carrier.close()


def wrong_questions(step: str, body: bytes) -> list[tuple[str, Message, str]]:
    """Return steps and messages that a party refuses at the very place where `step` is due, and its words."""
    round_text, sum_text = "expected a hop from 1 to", "the shape or the range of numbers"
    if step == "align_blind":
        return [("align_raise", AlignBox(number=0, hop=0, box=bytes(2000)), round_text)]
    if step == "align_finish":
        box = decode(body, AlignBox).box
        return [("align_raise", AlignBox(number=0, hop=3, box=box), round_text)]
    if step == "align_match":
        words = decode(body, AlignTable).words
        one, last = words.copy(), words.copy()
        one[0, 0], last[-1, -1] = FIELD, 2**64 - 1
        sums = (one, last, words[:, :-1], words[:0], np.zeros((len(words), 0), dtype=np.uint64), words.T)
        return [(step, AlignTable(number=0, words=each), sum_text) for each in sums]
    if step == "align_confirm":
        return [("align_done", Mail(boxes={}), "each is answered once, in order")]
    return []


def test_a_wrong_question_at_the_right_time_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """What comes at its time is stopped by its own check, not by the order of the steps."""
    study = align_study(parties=THREE_VERTICAL)
    carrier, session = carried(study, {**SOURCES, "east": table(list(range(12)))}, tmp_path)
    asked = 0

    def ask(step: str, party: str, body: bytes) -> bytes:
        nonlocal asked
        for wrong, message, text in wrong_questions(step, body):
            asked += 1
            call = Call(study=session.study, party=party, step=wrong, call=f"{asked:032x}", body=encode(message))
            reply = decode(answer(carrier.nodes[party], encode(call)), Reply)
            assert reply.code == "refused"
            assert text in reply.text
        return body

    carrier.change = ask
    result = run(study.protocol, session)
    carrier.close()
    assert asked == 3 * 9
    assert isinstance(result, CommonPeople)
    assert result.note.people == 4


@pytest.mark.parametrize("step", ["align_confirm", "align_done"])
def test_a_message_about_the_order_that_is_missing_ends_the_run(step: str, tmp_path: Path) -> None:
    study = align_study()
    carrier, session = carried(study, SOURCES, tmp_path)
    carrier.change = lambda asked, _, body: encode(Mail(boxes={})) if asked == step else body
    with pytest.raises(PartyError, match="about the order are not those of all other parties"):
        run(study.protocol, session)
    carrier.close()


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("blinded", "about the order has the wrong length"),
        ("send_on", "north sent a wrong number of points for north"),
    ],
)
def test_a_party_that_seals_less_than_the_study_says_is_found(
    function: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner: Any = PrivateIntersection if function == "send_on" else steps
    original = getattr(owner, function)

    def short_digest(party: Any, *rest: Any) -> Any:
        return original(party, *rest)[: -1 if party.name == "north" else None]

    def short_points(intersection: Any, party: Any, points: bytes, *rest: Any) -> Any:
        return original(intersection, party, points[:-POINT_BYTES] if party.name == "north" else points, *rest)

    # of three parties, so that one of the two messages that a party gets is right
    study = align_study(parties=THREE_VERTICAL)
    carrier, session = carried(study, {**SOURCES, "east": table(list(range(12)))}, tmp_path)
    monkeypatch.setattr(owner, function, short_digest if function == "blinded" else short_points)
    with pytest.raises(PartyError, match=text):
        run(study.protocol, session)
    carrier.close()
