"""What a party of an alignment refuses, and what it keeps: nothing with which a thief of its file could try ids."""

from pathlib import Path
from typing import Any

import pytest

from aligning import carried, table
from support import align_study
from syndic.errors import PartyError
from syndic.kernel import Node, decode, encode, run
from syndic.parts import align
from syndic.parts.align_point import POINT_BYTES
from syndic.parts.align_work import ORDER_NAME, AlignDone, AlignMail, Ids, Tags

SOURCES = {"north": table(list(range(9))), "south": table(list(range(5, 15)))}


def kept(node: Node, name: str) -> bytes:
    found = node.desk.memory.kept(node.desk.study, name)
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


@pytest.mark.parametrize("step", ["align_confirm", "align_done"])
def test_a_message_about_the_order_that_is_missing_ends_the_run(step: str, tmp_path: Path) -> None:
    study = align_study()
    carrier, session = carried(study, SOURCES, tmp_path)
    carrier.change = lambda asked, _, body: encode(AlignMail(boxes={})) if asked == step else body
    with pytest.raises(PartyError, match="about the order are not those of all other parties"):
        run(study.protocol, session)
    carrier.close()


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("blinded", "about the order has another length than the study says"),
        ("sent_on", "north sent another number of points for north than the study says"),
    ],
)
def test_a_party_that_seals_less_than_the_study_says_is_found(
    function: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(align, function)

    def short(party: Any, *rest: Any) -> Any:
        if function == "blinded":
            return original(party, *rest)[: -1 if party.name == "north" else None]
        points, *more = rest
        return original(party, points[:-POINT_BYTES] if party.name == "north" else points, *more)

    study = align_study()
    carrier, session = carried(study, SOURCES, tmp_path)
    monkeypatch.setattr(align, function, short)
    with pytest.raises(PartyError, match=text):
        run(study.protocol, session)
    carrier.close()
