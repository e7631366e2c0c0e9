"""No value in a row, and no number of rows, stops a run: the coordinator sees the same replies, whatever rows hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtimes import session_over
from support import CASES, Case, charges, study_text
from syndic import Study
from syndic.data import SourceSpec
from syndic.errors import PartyError
from syndic.kernel import Call, Delivery, Node, Reply, answer, decode, run
from syndic.study import PartyFile, PartyFolder, simulate

FIRST = {type(case.study.protocol): case for case in reversed(CASES)}


def shorter(table: pa.Table, folder: Path) -> Any:
    del folder
    return table.slice(1)


def longer(table: pa.Table, folder: Path) -> Any:
    del folder
    more = table.slice(0, 7)
    if "id" in table.column_names:
        more = more.set_column(
            more.column_names.index("id"), "id", pa.array(range(10**6, 10**6 + 7)).cast(table.schema.field("id").type)
        )
    return pa.concat_tables([table, *[more] * 3])


def nobody(table: pa.Table, folder: Path) -> Any:
    del folder
    return table.slice(0, 0)


def malformed(table: pa.Table, folder: Path) -> Any:
    file = folder / "rows.csv"
    arrow_csv.write_csv(table, file)
    lines = file.read_bytes().split(b"\n")
    lines[3:6] = [b'"a note', b'of two lines",1,2', b"\xff\x00,,,,\r,"]
    file.write_bytes(b"\n".join(lines))
    return file


@pytest.mark.parametrize("change", [shorter, longer, nobody, malformed])
@pytest.mark.parametrize("case", FIRST.values(), ids=lambda case: case.name)
def test_other_rows_than_declared_are_answered_and_charged_all_the_same(
    case: Case, change: Callable[[pa.Table, Path], Any], tmp_path: Path
) -> None:
    sources = {**case.sources, "north": change(case.sources["north"], tmp_path)}
    simulate(case.study, sources, seed=7, folder=tmp_path)
    for party in sources:
        charged = [event for entry in charges(tmp_path, party) for event in entry.events]
        assert sorted(charged, key=repr) == sorted(case.study.plan.events(party), key=repr)


@final
@dataclass
class Watching:
    """A coordinator that follows the protocol and notes the code of every reply."""

    nodes: Mapping[str, Node]
    codes: list[tuple[str, str, str]] = field(default_factory=list)

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        del seconds, arrived
        replies = {party: answer(self.nodes[party], data) for party, data in calls.items()}
        self.codes += [
            (party, decode(calls[party], Call).step, decode(data, Reply).code) for party, data in replies.items()
        ]
        return Delivery(replies=replies, silent={})

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()


ONE_COLUMN = '[[schema.columns]]\nname = "sex"\nkind = "categorical"\nvalues = ["F", "M"]\n'
THREE_PEOPLE = "".join(f'[[parties]]\nname = "{name}"\npeople = 3\n' for name in ("north", "south"))


def heard(folder: Path, files: Mapping[str, bytes], *, neighbours: str, protocol: str) -> tuple[Watching, Any]:
    """What the coordinator of a study of one column hears from nodes that read these CSV files, and the result."""
    study = Study.loads(
        study_text(
            unit=f'neighbours = "{neighbours}"',
            parties=THREE_PEOPLE,
            columns=ONE_COLUMN,
            protocol=protocol,
            budget="epsilon = 5000",
        )
    )
    nodes = {}
    for name, content in files.items():
        home = PartyFolder(folder=folder / name)
        home.folder.mkdir(parents=True, exist_ok=True)
        (home.folder / "rows.csv").write_bytes(content)
        source = SourceSpec(path=str(home.folder / "rows.csv"))
        home.keep(study, PartyFile(name=name, dataset=name, source=source, cap=study.budget))
        nodes[name] = home.node(seed=7)
    coordinator, result = Watching(nodes), None
    try:
        result = run(study.protocol, session_over(coordinator, study))
    except PartyError:
        pass
    finally:
        coordinator.close()
    return coordinator, result


METHODS = ['method = "homm"', 'method = "marginals"\nnoise = "laplace"']
HONEST = b"sex\nF\nM\nF\n"


@pytest.mark.parametrize("protocol", METHODS)
@pytest.mark.parametrize("line", [b"", b'"a\nb"', b'"F', b"F\rF", b"F,F", b"\xff\x00"])
def test_a_coordinator_learns_no_bit_about_a_person_from_whether_a_party_answers(
    line: bytes, protocol: str, tmp_path: Path
) -> None:
    codes = []
    for place, other in enumerate((HONEST, HONEST.replace(b"M", line))):
        files = {"north": HONEST, "south": other}
        codes.append(heard(tmp_path / str(place), files, neighbours="replace", protocol=protocol)[0].codes)
    assert codes[0] == codes[1]
    assert {code for *_, code in codes[0]} == {"ok"}


@given(line=st.binary(max_size=12) | st.text('F",\r\n', max_size=6).map(str.encode), place=st.integers(0, 2))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_line_may_be_any_bytes(line: bytes, place: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    lines = [b"F", b"M", b"F"]
    lines[place] = line
    files = {"north": HONEST, "south": b"\n".join([b"sex", *lines, b""])}
    coordinator, result = heard(tmp_path_factory.mktemp("any"), files, neighbours="replace", protocol=METHODS[0])
    assert {code for *_, code in coordinator.codes} == {"ok"}
    assert result is not None


def test_a_blank_line_of_one_column_is_counted_as_missing(tmp_path: Path) -> None:
    files = {"north": HONEST, "south": b"sex\n\nM\n\n"}
    for place, protocol in enumerate(METHODS):
        _, result = heard(tmp_path / str(place), files, neighbours="add_remove", protocol=protocol)
        assert result is not None
        if place:
            assert [one.values.tolist() for one in result.tables] == [[2, 2, 0, 2]]
        else:
            assert result.histograms["south"].dense().values.tolist() == [0, 1, 0, 2]
