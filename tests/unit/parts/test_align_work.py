"""After an alignment a party keeps its order, and nothing with which somebody who takes its file could try ids."""

from pathlib import Path

from aligning import carried, table
from support import align_study
from syndic.kernel import Node, decode, run
from syndic.parts.align_work import ORDER_NAME, AlignDone, Ids, Tags


def kept(node: Node, name: str) -> bytes:
    found = node.desk.memory.kept(node.desk.study, name)
    assert found is not None
    return found


def test_what_only_the_alignment_needed_is_written_over(tmp_path: Path) -> None:
    study = align_study()
    carrier, session = carried(study, {"north": table(list(range(9))), "south": table(list(range(5, 15)))}, tmp_path)
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
