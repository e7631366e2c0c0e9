"""HOMM where parties share only some columns, and have bins of their own."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from support import rows, study_text
from syndic import Release, Study, advise, simulate
from syndic.advice import NoiseAdvice
from syndic.errors import InputError, RefusedError
from syndic.methods.histogram.homm import Homm, HommPlan, MergedTable, Sanitised
from syndic.methods.histogram.homm_columns import merged
from syndic.study import plan

PARTIES = """
[[parties]]
name = "north"
people = 50
columns = ["age", "colour"]

[[parties]]
name = "south"
people = 40
columns = ["age", "score"]

[[parties]]
name = "east"
people = 30
"""
EDGES = '{ party = "east", column = "score", edges = [-1, 0.1, 1] }'
OWN = f'bins = [{{ party = "south", column = "age", bins = 4 }}, {EDGES}]'


def agreed(more: str = OWN, parties: str = PARTIES, budget: str = "epsilon = 60.0", columns: str = "") -> Study:
    text = {"columns": columns} if columns else {}
    return Study.loads(study_text(protocol=f'method = "homm"\n{more}', parties=parties, budget=budget, **text))


def sources() -> dict[str, pa.Table]:
    return {
        "north": rows(50, 1).select(["colour", "age"]),
        "south": rows(40, 2).select(["age", "score"]),
        "east": rows(30, 3),
    }


def counted(table: pa.Table, study: Study, party: str) -> Counter[tuple[int, ...]]:
    columns = study.plan_as(HommPlan).schemas[party].columns
    return Counter(zip(*(one.encode(table[one.name].combine_chunks()).tolist() for one in columns), strict=True))


def test_without_noise_every_party_has_its_own_counts_and_the_rest_is_missing(tmp_path: Path) -> None:
    study = agreed()
    release = simulate(study, sources())
    table, start = release.table.to_arrow(), 0
    assert table.column_names == list(study.schema.names)
    for name, own in sources().items():
        part, start = table.slice(start, len(own)), start + len(own)
        assert counted(part, study, name) == counted(own, study, name)
        lacking = [column for column in study.schema.names if column not in own.column_names]
        assert all(part[column].null_count == len(part) for column in lacking)
    assert start == len(table)
    assert isinstance(release.result, MergedTable)
    size = study.schema.domain
    assert {name: one.domain.size for name, one in release.result.histograms.items()} == {
        "north": size["age"] * size["colour"],
        "south": 4 * size["score"],
        "east": size["age"] * size["colour"] * (size["score"] - 2),
    }
    release.write(tmp_path)
    back = Release.load(tmp_path)
    assert back.table.to_arrow() == table
    assert back.known_reliability is None
    assert "largest of the parties" in back.report(tmp_path / "report.html").read_text()


def test_noise_is_calibrated_as_in_one_grid_and_the_plan_says_who_lacks_what() -> None:
    study = agreed(budget="epsilon = 1.0")
    same = Study.loads(study_text(parties=PARTIES.replace('columns = ["age", "colour"]', "")))
    assert study.plan_as(HommPlan).noise["north"] == same.plan_as(HommPlan).noise["north"]
    notes = plan(study).resources.notes
    assert "north does not have score: missing in its rows" in notes
    assert not any("east does not" in note for note in notes)
    assert isinstance(advise(study), NoiseAdvice)
    with pytest.raises(InputError, match="same bins"):
        advise(study, tasks=["mean:age"])


def test_matched_rows_take_what_is_missing_from_rows_with_the_same_levels() -> None:
    columns = "".join(
        f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = 9\n' for name in "abc"
    )
    parties = '[[parties]]\nname = "p"\ncolumns = ["a"]\n[[parties]]\nname = "q"\ncolumns = ["a", "b", "c"]\n'
    study = agreed('absent = "matched"', parties, "epsilon = 80.0", columns)
    levels = np.arange(200) % 9
    table = {"p": pa.table({"a": [*levels, 9]}), "q": pa.table({"a": levels, "b": 9 - levels, "c": (levels + 3) % 9})}
    made = simulate(study, table).table.to_arrow()
    assert len(made) == 401
    known = made.filter(pc.less(made["a"], 9))
    a, b, c = (np.asarray(known[name]) for name in "abc")
    assert (b == 9 - a).all()
    assert (c == (a + 3) % 9).all()
    # nobody has a = 9 with the others: any row will do
    assert made.filter(pc.equal(made["a"], 9))["b"].null_count == 0


def test_matched_columns_of_the_same_parties_come_from_one_row() -> None:
    study = agreed('absent = "matched"', PARTIES)
    empty = {name: table.slice(0, 0) for name, table in sources().items()}
    assert len(merged(study.schema, empty, "matched", np.random.default_rng(1))) == 0
    only = {"north": sources()["north"], "east": sources()["east"].slice(0, 0)}
    assert merged(study.schema, only, "matched", np.random.default_rng(1))["score"].null_count == 50


def test_own_bins_of_a_column_that_is_derived() -> None:
    columns = '[[schema.columns]]\nname = "twice"\nkind = "integer"\nlower = 0\nupper = 9\nderive = "2 * a"\n'
    parties = '[[parties]]\nname = "p"\n[[parties]]\nname = "q"\n'
    study = agreed('bins = [{ party = "q", column = "twice", edges = [0, 3, 10] }]', parties, "epsilon = 80.0", columns)
    result = simulate(study, {"p": pa.table({"a": [0, 1, 4]}), "q": pa.table({"a": [0, 1, 4, 4]})}).result
    assert isinstance(result, MergedTable)
    found = {
        name: dict(zip(one.cells.tolist(), one.counts.tolist(), strict=True)) for name, one in result.histograms.items()
    }
    assert found == {"p": {0: 1, 2: 1, 8: 1}, "q": {0: 2, 1: 2}}


@pytest.mark.parametrize(
    ("more", "parties", "words"),
    [
        ('bins = [{ party = "north", column = "colour", bins = 2 }]', PARTIES, "listed values"),
        ('bins = [{ party = "north", column = "score", bins = 2 }]', PARTIES, "no column 'score'"),
        ('bins = [{ party = "west", column = "age", bins = 2 }]', PARTIES, "not a party"),
        ('bins = [{ party = "north", column = "age" }]', PARTIES, "either bins or edges"),
        ('bins = [{ party = "east", column = "score", edges = [0, 0.5] }]', PARTIES, "bins of score at east"),
        ('bins = [{ party = "east", column = "age", edges = [0, 0.5, 99] }]', PARTIES, "bins of age at east"),
        (f"bins = [{EDGES}, {EDGES}]", PARTIES, "given twice"),
        ("", PARTIES.replace('\n[[parties]]\nname = "east"\npeople = 30\n', "").replace(', "colour"', ""), "no party"),
        ('clamp = false\nabsent = "matched"', PARTIES, "weights cannot be matched"),
    ],
)
def test_what_does_not_fit_is_refused(more: str, parties: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        agreed(more, parties).check()


@pytest.mark.parametrize(
    ("cells", "counts"),
    [
        ([0, 20], [1, 1]),  # beyond the grid of its two columns, within that of all columns
        ([2**64 - 1, 3], [1, 1]),
        ([3, 2**63], [1, 1]),
        ([3, 1], [1, 1]),
        ([1, 1], [1, 1]),
        ([1, 2], [1]),
        ([[1, 2]], [[1, 1]]),
        ([1], [-(2**63)]),
    ],
)
def test_counts_that_do_not_fit_the_grid_of_a_party_are_refused(
    cells: Any, counts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest: Any = Homm.sanitise
    lie = Sanitised(cells=np.array(cells, dtype=np.uint64), counts=np.array(counts, dtype=np.int64))

    def lies(self: Any, party: Any, message: Any) -> Any:
        return lie if party.name == "north" and honest(self, party, message) else honest(self, party, message)

    monkeypatch.setattr(lies, "__name__", "sanitise", raising=False)
    for name in vars(honest):
        setattr(lies, name, getattr(honest, name))
    monkeypatch.setattr(Homm, "sanitise", lies)
    study = agreed()
    assert study.plan_as(HommPlan).schemas["north"].domain.size <= 20 < study.schema.domain.size
    with pytest.raises(RefusedError, match="north sent counts"):
        simulate(study, sources())
