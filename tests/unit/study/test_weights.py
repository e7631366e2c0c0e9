"""`choose = "weighted"`: all rows of a person count, together as one row."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import CASES, study_text
from syndic import Release, Study, simulate
from syndic.data import ArrowSource, Instead, Integer, Schema, Table
from syndic.data.people import RowWeights, rows_of_people
from syndic.errors import InputError
from syndic.privacy import Unit
from syndic.privacy.unit import MOST_WEIGHTED, WHOLE
from syndic.study.fit import fit
from syndic.study.statement import words_for

SCHEMA = Schema(
    columns=(
        Integer(name="a", lower=0, upper=1, missing=Instead(value=0)),
        Integer(name="b", lower=0, upper=1, missing=Instead(value=0)),
    )
)
CELLS = list(itertools.product((0, 1), (0, 1)))
OTHERS = [("other", 0, 1), ("third", 1, 1), ("other", 0, 0), (None, 1, 1)]
TABLES = [("a",), ("b",), ("a", "b")]


def unit_of(neighbours: Any, rows: int = 3, parties: int = 1) -> Unit:
    return Unit(neighbours=neighbours, rows=rows, person="id", choose="weighted", parties=parties)


def counted(unit: Unit, own: tuple[tuple[int, int], ...]) -> list[np.ndarray[Any, Any]]:
    """The exact tables of fixed other people and of one person with these rows, between the rows of others."""
    mine = [("person", *row) for row in own]
    rows = [*mine[:1], *OTHERS[:2], *mine[1:2], *OTHERS[2:], *mine[2:]]
    source = pa.table({name: [row[place] for row in rows] for place, name in enumerate(("id", "a", "b"))})
    table = Table(
        SCHEMA, ArrowSource(source), person="id", rows_per_person=unit.rows, choose="weighted", whole=unit.scale
    )
    return [factor.values.ravel() for factor in table.marginals(TABLES)]


def moved(unit: Unit) -> Iterator[tuple[int, int]]:
    """How far, in l1 and squared l2, each table moves between two neighbours: every pair of at most four rows."""
    least = 0 if unit.neighbours == "add_remove" else 1
    choices = [own for size in range(least, 5) for own in itertools.product(CELLS, repeat=size)]
    tables = [counted(unit, own) for own in choices]
    # an absent person against every choice, or every pair of choices
    pairs = ((tables[0], one) for one in tables) if least == 0 else itertools.combinations(tables, 2)
    for one, other in pairs:
        for first, second in zip(one, other, strict=True):
            change = first - second
            yield int(np.abs(change).sum()), int((change**2).sum())


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_no_neighbour_moves_a_table_further_than_is_charged(neighbours: str) -> None:
    unit = unit_of(neighbours)
    found = list(moved(unit))
    # tight: some neighbours move a table as far as one row would at this scale
    assert max(l1 for l1, _ in found) == unit.l1_of_counts() == WHOLE * (1 if neighbours == "add_remove" else 2)
    assert max(l2 for _, l2 in found) == unit.l2_squared_of_counts()


def test_the_attack_finds_rows_that_are_not_weighted(monkeypatch: pytest.MonkeyPatch) -> None:
    weigh = RowWeights.__call__
    monkeypatch.setattr(RowWeights, "__call__", lambda rows, people: np.where(weigh(rows, people) > 0, WHOLE, 0))
    unit = unit_of("add_remove")
    assert max(l1 for l1, _ in moved(unit)) == 3 * unit.l1_of_counts()


@pytest.mark.parametrize("limit", [2, 7, 11, MOST_WEIGHTED])
def test_weights_add_up_whatever_the_batches_and_the_other_people(limit: int) -> None:
    generator = np.random.default_rng(limit)
    people = generator.integers(0, 40, 3000) ** 2 // 60
    parts = [pa.array(part) for part in np.split(people, [7, 900, 901, 2500])]
    weigh = RowWeights("weighted", limit, rows_of_people(parts)[0], whole=WHOLE)
    weights = np.concatenate([weigh(part) for part in parts])
    assert weights.min() >= 0
    assert set(np.bincount(people, weights)[np.unique(people)]) == {WHOLE}
    for person in np.unique(people):
        own = weights[people == person]
        alone = pa.array([person] * len(own))
        assert RowWeights("weighted", limit, rows_of_people([alone])[0], whole=WHOLE)(alone).tolist() == own.tolist()
        kept = own[own > 0]
        assert len(kept) == min(limit, len(own))
        assert kept.max() - kept.min() <= (WHOLE % len(kept) > 0)


def test_rows_that_come_later_do_not_count() -> None:
    weigh = RowWeights("weighted", 9, rows_of_people([pa.array([1, 1])])[0], whole=WHOLE)
    assert weigh(pa.array([1, 1, 1, 2, None])).tolist() == [WHOLE // 2, WHOLE // 2, 0, 0, 0]


def test_weighted_rows_are_never_handed_out_without_their_weights() -> None:
    source = ArrowSource(pa.table({"id": [1, 1], "a": [0, 1], "b": [0, 1]}))
    table = Table(SCHEMA, source, person="id", rows_per_person=3, choose="weighted", whole=WHOLE)
    assert table.count(["a"]).values.tolist() == [WHOLE // 2, WHOLE // 2]
    for use in (lambda: list(table.batches()), table.cells, table.rows, table.sums):
        with pytest.raises(ValueError, match="have weights"):
            use()


def visits(seed: int, people: int) -> pa.Table:
    """Five rows for each person, the first of which is not like the others."""
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.repeat(np.arange(people), 5),
            "earlier": np.tile(np.arange(5), people),
            "group": np.repeat(generator.integers(0, 3, people), 5),
        }
    )


SOURCES = {"north": visits(1, 500), "south": visits(2, 300)}
PARTIES = '[[parties]]\nname = "north"\npeople = 500\n[[parties]]\nname = "south"\npeople = 300\n'
COLUMNS = """
[[schema.columns]]
name = "earlier"
kind = "integer"
lower = 0
upper = 4
missing = { value = 0 }
[[schema.columns]]
name = "group"
kind = "integer"
lower = 0
upper = 2
missing = { value = 0 }
"""


def study(
    choose: str, rows: int, protocol: str = "synthesis", neighbours: str = "add_remove", parties: int = 1
) -> Study:
    unit = f'neighbours = "{neighbours}"\nperson = "id"\nrows = {rows}\nchoose = "{choose}"\nparties = {parties}'
    return Study.loads(
        study_text(
            unit=unit,
            budget="epsilon = 1.0\ndelta = 1e-6",
            protocol=f'method = "{protocol}"' if "=" not in protocol else protocol,
            parties=PARTIES,
            columns=COLUMNS,
        )
    )


@pytest.mark.parametrize("protocol", ["synthesis", "marginals", 'method = "marginals"\nnoise = "laplace"'])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_the_cost_and_the_noise_are_those_of_one_row(protocol: str, neighbours: str) -> None:
    one, weighted, five = (study(*unit, protocol, neighbours) for unit in (("first", 1), ("weighted", 9), ("first", 9)))
    assert weighted.costs["north"].epsilon(weighted.delta) == pytest.approx(one.costs["north"].epsilon(one.delta))
    deviations = [_deviation(each) for each in (one, weighted, five)]
    assert deviations[1] == pytest.approx(deviations[0], rel=0.02)
    assert deviations[2] == pytest.approx(9 * deviations[0], rel=0.02)


def _deviation(one: Study) -> float:
    """The standard deviation of a count, in rows, as the plan announces it."""
    note = next(note for note in one.plan.resources.notes if note.startswith("standard deviation"))
    return float(note.split()[2])


def test_a_mean_over_rows_is_nearer_the_truth_than_with_the_first_rows() -> None:
    means = {}
    for choose, rows in (("first", 1), ("weighted", 5)):
        release = simulate(study(choose, rows), SOURCES, seed=4)
        means[choose] = float(np.mean(release.table.to_arrow()["earlier"].to_numpy()))
        # a row for each person, about
        assert abs(len(release.table) - 800) < 150
    assert abs(means["weighted"] - 2) < 0.2
    assert abs(means["first"] - 2) > 1.5


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_released_tables_are_in_rows_and_can_be_read_back(noise: str, tmp_path: Path) -> None:
    release = simulate(study("weighted", 5, f'method = "marginals"\nnoise = "{noise}"'), SOURCES, seed=4)
    result: Any = release.result
    earlier = result.tables[0].values
    assert np.abs(earlier - 160).max() < 6 * result.note.standard_deviation < 100
    release.write(tmp_path / "run")
    read: Any = Release.load(tmp_path / "run").result
    assert read.tables[0].values.tolist() == earlier.tolist()
    assert "1/2520 row" in release.statement.sensitivity


def test_people_at_two_parties_and_a_single_party() -> None:
    two = study("weighted", 5, parties=2)
    assert _deviation(two) == pytest.approx(_deviation(study("first", 1, parties=2)), rel=0.02)
    alone = Study.loads(
        study_text(
            unit='neighbours = "add_remove"\nperson = "id"\nrows = 5\nchoose = "weighted"',
            budget="epsilon = 1.0\ndelta = 1e-6",
            protocol='method = "synthesis"',
            parties='[[parties]]\nname = "north"\npeople = 500\n',
            columns=COLUMNS,
        )
    )
    assert abs(len(simulate(alone, {"north": SOURCES["north"]}, seed=4).table) - 500) < 100


def test_which_methods_take_weights() -> None:
    taken = {case.name.split()[0] for case in CASES if case.study.protocol.requires.weights}
    assert taken == {"synthesis", "marginals"}


@pytest.mark.parametrize("protocol", ["homm", 'method = "marginals"\nnoise = "skellam"'])
def test_other_methods_refuse_weights(protocol: str) -> None:
    with pytest.raises(InputError, match='choose = "weighted" is for `synthesis`'):
        study("weighted", 5, protocol).check()


def test_the_unit_is_checked_and_said_in_words() -> None:
    for rows in (1, MOST_WEIGHTED + 1):
        with pytest.raises(ValueError, match=f"from 2 to {MOST_WEIGHTED} if choose is 'weighted'"):
            unit_of("add_remove", rows)
    with pytest.raises(ValueError, match="needs person"):
        Unit(neighbours="replace", rows=3, choose="weighted")
    assert "together they count as one row" in words_for(unit_of("add_remove"), "horizontal")
    assert unit_of("replace").unweighted == Unit(neighbours="replace", person="id", choose="random")


def test_the_fit_shows_what_weights_keep() -> None:
    first = Unit(neighbours="add_remove", person="id")
    schema, source = study("first", 1).schema, ArrowSource(SOURCES["north"])
    found = fit(schema, source, unit=first)
    assert found.bound_rows()[0] == ("rows = 1", "20 %", "0 %")
    assert found.bound_rows()[-1] == ('rows = 5, choose = "weighted"', "100 %", "100 %")
    assert 'rows = 5, choose = "weighted" keeps 100 % with the noise of one row' in found.advice[0]
    assert not fit(schema, source, unit=unit_of("add_remove", 5)).advice
