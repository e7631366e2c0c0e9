"""`unit.choose`: which rows of a person count, the same ones during a whole run."""

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

from support import CASES, study_text
from syndic import Study, simulate
from syndic.data.sources.ibis import IbisSource
from syndic.errors import InputError
from syndic.kernel import Node
from syndic.kernel.in_memory import in_memory_node
from syndic.privacy import Unit
from syndic.random import SystemRandomness
from syndic.study.party_folder import PartyFolder
from syndic.study.party_rows import open_table
from syndic.study.simulate import _open
from syndic.study.statement import words_for

UNIT = 'neighbours = "add_remove"\nperson = "id"\nrows = 2\nchoose = "random"'


def study(choose: str = "random") -> Study:
    return Study.loads(study_text(unit=UNIT.replace("random", choose)))


def visits(seed: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.repeat(np.arange(30), 10),
            "colour": generator.choice(["red", "green", "blue"], 300),
            "age": generator.integers(0, 100, 300),
            "score": generator.uniform(-1, 1, 300),
        }
    )


SOURCES = {"north": visits(1), "south": visits(2)}


def test_the_key_is_checked_and_the_default_leaves_old_digests_as_they_are() -> None:
    first = Study.loads(study_text(unit=UNIT.replace('\nchoose = "random"', "")))
    assert first.unit.choose == "first"
    assert study("first").digest == first.digest
    assert len({study(choose).digest for choose in ("first", "last", "random")}) == 3
    with pytest.raises(ValueError, match="choose \\(last\\) needs person"):
        Unit(neighbours="add_remove", choose="last")
    with pytest.raises(InputError, match="use one of first, last, random"):
        Study.loads(study_text(unit=UNIT.replace("random", "best")))


@pytest.mark.parametrize(("choose", "words"), [("first", "further rows"), ("last", "last rows"), ("random", "random")])
def test_the_statement_says_which_rows_count(choose: str, words: str) -> None:
    assert words in words_for(study(choose).unit, "horizontal")


def test_every_sensitivity_is_the_same() -> None:
    units = [study(choose).unit for choose in ("first", "last", "random")]
    assert len({(unit.l1_of_counts(), unit.l2_squared_of_counts()) for unit in units}) == 1
    assert study("random").costs == study("first").costs


def test_one_run_keeps_the_same_rows_also_after_a_restart_and_another_run_other_ones(tmp_path: Path) -> None:
    kept = []
    for edition in (1, 1, 2):
        node = opened(replace(study(), edition=edition), tmp_path)
        kept.append(node.state.open_table().count(["age", "colour"]).values.tolist())
        assert kept[-1] == node.state.open_table().count(["age", "colour"]).values.tolist()
        node.close()
    assert kept[0] == kept[1]
    assert kept[0] != kept[2]


def opened(of: Study, folder: Path) -> Node:
    homes = {name: PartyFolder(folder=folder / name) for name in SOURCES}
    with ExitStack() as stack:
        _open(of, SOURCES, homes, seed=None, runtime="local", stack=stack).close()
    return homes["north"].node(seed=None, source=SOURCES["north"])


@pytest.mark.parametrize("choose", ["last", "random"])
def test_a_seeded_run_is_reproducible_in_both_runtimes(choose: str) -> None:
    releases = [
        simulate(study(choose), SOURCES, seed=5, runtime="local"),
        simulate(study(choose), SOURCES, seed=5, runtime="processes"),
        simulate(study("first"), SOURCES, seed=5),
    ]
    tables = [release.table.to_arrow() for release in releases]
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])


def test_rows_in_memory_have_a_key_too() -> None:
    one = study()
    nodes = [
        in_memory_node(one.protocol, one.plan, "north", SOURCES["north"], lambda _: SystemRandomness(), study="0" * 64)
        for _ in range(2)
    ]
    counts = [node.state.open_table().count(["age", "colour"]).values for node in nodes]
    assert [int(count.sum()) for count in counts] == [60, 60]
    assert not np.array_equal(counts[0], counts[1])


@pytest.mark.parametrize("case", [case for case in CASES if case.study.protocol.requires.people == "same"])
def test_no_value_moves_rows_that_are_matched_by_their_places(case: Any, tmp_path: Path) -> None:
    """Another age of one of 1,000 people moved the rows of all: 984 of a table's counts, where 2 were charged."""
    file = tmp_path / "rows.csv"
    engine: Any = None
    file.write_text("id,colour,age\n")
    rows = SimpleNamespace(columns=["id", "colour", "age"])

    def opened(source: Any) -> Any:
        return open_table(case.study, "north", source, ledger=tmp_path, id_columns=(), seed=None).source

    def ordered(by: str) -> IbisSource:
        return IbisSource(engine=engine, rows=rows, order=(by,))

    # where several have one id, no value of the study says who comes first
    assert set(opened(ordered("id")).fixed) >= set(case.study.parties[0].columns or ())
    opened({"path": str(file)})
    with pytest.raises(InputError, match="'colour' is a column of the study, whose rows are matched by their places"):
        opened(ordered("colour"))
    with pytest.raises(InputError, match="multiline: a wrong quote moves all rows after it"):
        opened({"path": str(file), "multiline": True})
