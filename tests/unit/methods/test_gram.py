"""The Gram matrix of a vertical study: what it may ask, what it costs, what it publishes."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import COLUMNS, MISSING_LEVELS, THREE_VERTICAL, VERTICAL, charges, gram_study, rows
from syndic import Study, simulate
from syndic.data import Table, open_source
from syndic.errors import InputError
from syndic.methods.regression.gram_plan import GramPlan
from syndic.methods.regression.gram_result import GramResult
from syndic.model.gram.fit import infer
from syndic.model.gram.moments import moments_of
from syndic.privacy import Cost, gaussian_epsilon, shown
from syndic.study import Release, plan
from unit.methods.exact_gram import exact_rows

BUDGET = "epsilon = 1.0\ndelta = 1e-7"


def sized(count: int, parties: str = VERTICAL) -> str:
    return parties.replace("60", str(count))


def sources(study: Study, table: pa.Table) -> dict[str, pa.Table]:
    return {party.name: table.select(list(party.columns or ())) for party in study.parties}


def plan_of(study: Study) -> GramPlan:
    return study.plan_as(GramPlan)


def result_of(release: Release) -> GramResult:
    assert isinstance(release.result, GramResult)
    return release.result


OPTIONS: list[tuple[str, str, str]] = [
    ("", VERTICAL, ""),
    ("scaling = 0", VERTICAL, ""),
    ('products = [["colour", "age"]]\nbits = 5', VERTICAL, ""),
    ("colluding = 2", THREE_VERTICAL, ""),
    ("bits = 16", VERTICAL, ""),
    ("overlap = true", THREE_VERTICAL, MISSING_LEVELS),
    ("", THREE_VERTICAL, MISSING_LEVELS),
]


@pytest.mark.parametrize(("options", "parties", "columns"), OPTIONS)
def test_a_release_is_the_exact_matrix_plus_noise_of_the_stated_size(
    options: str, parties: str, columns: str, tmp_path: Path
) -> None:
    chosen = {"columns": columns} if columns else {}
    study = gram_study(options, parties=sized(2000, parties), budget=BUDGET, **chosen)
    table = holed(rows(2000, 3)) if columns else rows(2000, 3)
    release = simulate(study, sources(study, table), seed=3, folder=tmp_path)
    gram, scales = result_of(release).opened, result_of(release).note.scales
    matrix = exact_rows(study, sources(study, table), scales)
    noise = (gram.matrix - matrix.T @ matrix) / gram.sigma
    assert gram.matrix.shape == (matrix.shape[1],) * 2
    opened = gram.places >= 0
    assert not noise[~opened].any()
    assert 0 < np.abs(noise[opened]).max() < 6
    assert 0.4 < np.sqrt((noise[opened] ** 2).mean()) < 1.8
    assert [len(charges(tmp_path, party.name)) for party in study.parties] == [1 + bool(scales)] * len(study.parties)
    assert bool(scales) == gram.halved == (not any(word in options for word in ("scaling", "products", "overlap")))


def holed(table: pa.Table) -> pa.Table:
    """Return the table with people who are absent somewhere, and values that are missing by themselves."""
    generator = np.random.default_rng(4)
    columns = {}
    for name in table.column_names:
        gone = generator.random(table.num_rows) < 0.2
        columns[name] = pa.array(
            [None if lost else value for lost, value in zip(gone, table[name].to_pylist(), strict=True)]
        )
    return pa.table(columns)


def test_a_release_is_read_back(tmp_path: Path) -> None:
    study = gram_study()
    release = simulate(study, sources(study, rows(60, 3)), seed=1)
    release.write(tmp_path)
    again, first = result_of(Release.load(tmp_path)), result_of(release)
    assert again.note == first.note
    assert np.array_equal(again.gram.matrix, first.gram.matrix)
    gram = first.opened
    for row in pq.read_table(tmp_path / "gram.parquet").to_pylist():
        place = gram.index(row["first"]), gram.index(row["second"])
        assert gram.matrix[place] == row["sum"] / 4.0**10
    (tmp_path / "gram.parquet").write_bytes(b"junk")
    with pytest.raises(InputError, match="cannot be read"):
        Release.load(tmp_path)
    pq.write_table(pa.table({"sum": [1]}), tmp_path / "gram.parquet")
    with pytest.raises(InputError, match="does not have the sums"):
        Release.load(tmp_path)
    other = simulate(gram_study("bits = 8"), sources(study, rows(60, 3)), seed=1)
    other.result.write(tmp_path)
    with pytest.raises(InputError, match="does not belong to this study"):
        Release.load(tmp_path)


def test_noise_follows_from_blocks_and_shares() -> None:
    study = gram_study("bits = 4\nscaling = 0")
    noise = plan_of(study).noise
    # three columns and the intercept; score has a level for missing values, which adds nothing; a list is complete
    assert noise.sensitivity_squared == 16 * 16**4
    assert noise.sigma_squared == noise.sensitivity_squared / noise.mu_squared + Fraction(1, 12)
    assert study.costs["north"] == study.costs["south"] == study.joint
    assert 0.999999 < study.joint.epsilon(study.delta) <= 1
    more = gram_study('products = [["colour", "age"]]')
    # one more block, which can change from one number to another
    assert plan_of(more).sensitivity == 26
    three = gram_study("scaling = 0", parties=THREE_VERTICAL)
    # of three shares two are enough: three halves of the curator's variance, not twice
    assert plan_of(three).sigma == pytest.approx(plan_of(study).sigma * (1.5 / 2) ** 0.5, rel=1e-3)


NUMBERS = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "real"\nlower = -1.0\nupper = 1.0\nbins = 200\n'
    "missing = { value = 0.0 }\n"
    for name in "abcdy"
)
HELD = VERTICAL.replace('"colour", "age"', '"a", "b", "c"').replace('"score"', '"d", "y"')


def test_long_rows_are_shortened_but_for_exempt_columns() -> None:
    study = gram_study('norm = 0.5\nexempt = ["y"]', parties=sized(1000, HELD), columns=NUMBERS, budget=BUDGET)
    made = plan_of(study)
    # three columns count one and a half, a column alone counts in full
    assert {name: (clip.blocks, clip.length) for name, clip in made.stages.clips.items()} == {
        "north": (3, Fraction(3, 2))
    }
    assert made.sensitivity == (1 + Fraction(3, 2) + 2) ** 2 + Fraction(3, 2)
    generator = np.random.default_rng(2)
    table = pa.table({name: generator.uniform(-1, 1, 1000) for name in "abcdy"})
    matrix = exact_rows(study, sources(study, table))
    assert (matrix[:, 1:4] ** 2).sum(axis=1).max() <= 1.5
    assert np.abs(matrix[:, 4:] - np.column_stack([table["d"], table["y"]])).max() < 0.01
    gram = result_of(simulate(study, sources(study, table), seed=3)).opened
    noise = (gram.matrix - matrix.T @ matrix)[gram.places >= 0] / gram.sigma
    assert 0.5 < np.sqrt((noise**2).mean()) < 1.5
    # coefficients of shortened rows are not those of the rows
    assert gram.shortened
    assert not infer(gram, "y").reliable
    with pytest.raises(InputError, match="no column q"):
        gram_study('exempt = ["q"]').check()


def test_the_strictest_budget_holds() -> None:
    strict = VERTICAL.replace('columns = ["score"]', 'columns = ["score"]\nbudget = {epsilon = 0.5, delta = 1e-6}')
    study = gram_study(parties=strict)
    events = study.plan.events("north")
    assert len(events) == 2
    assert Cost.of(events).epsilon(Fraction(1, 10**6)) <= Fraction(1, 2)


def test_epsilon_is_stated_both_ways() -> None:
    study = gram_study()
    outside, pooled = plan_of(study).epsilons
    first, noise = plan_of(study).stages.first, plan_of(study).noise
    assert first is not None
    # nobody else knows a party's noise on its own counts
    mu_squared = first.mu_squared + noise.mu_squared / 2
    assert pooled == pytest.approx(1, abs=1e-6)
    assert outside == pytest.approx(float(gaussian_epsilon(mu_squared, study.delta)), rel=1e-4)
    assert f"epsilon {shown(outside)} against everyone but the parties" in str(plan(study))


PARTIES_ONE = VERTICAL.split("[[parties]]")[1]


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"options": 'products = [["age", "score"]]'}, "two columns of one party"),
        ({"options": 'products = [["age", "age"]]'}, "two columns of one party"),
        ({"options": "colluding = 2"}, "one less than all"),
        ({"budget": "epsilon = 1.0"}, "delta above 0"),
        ({"parties": VERTICAL.replace("people = 60", "people = 61", 1)}, "the same people"),
        ({"parties": VERTICAL.replace('columns = ["score"]', "")}, "set `group` for each party"),
        ({"options": "missing = 1", "parties": THREE_VERTICAL}, "set missing = 0"),
        ({"options": "overlap = true"}, "a row of missing values"),
        ({"options": "bits = 16", "budget": "epsilon = 1e-7\ndelta = 1e-9"}, "no noise can be calibrated"),
    ],
)
def test_what_cannot_work_is_refused(parts: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        gram_study(**parts).check()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("colluding = 0", "at least 1"),
        ("missing = -1", "not be negative"),
        ("bits = 3", "from 4 to 16"),
        ("bits = 17", "from 4 to 16"),
        ("norm = 0.0", "above 0"),
        ("norm = 1.5", "at most 1"),
        ('products = [["age", "colour"], ["colour", "age"]]', "twice"),
    ],
)
def test_parameters_are_checked(options: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        gram_study(options)


def test_the_plan_says_where_the_middle_of_a_wide_bin_stands_for_its_values() -> None:
    def notes(more: str) -> str:
        before, score = COLUMNS.split('name = "score"')
        opened = f'{before}name = "score"{score.replace("bins = 4", more)}'
        return " ".join(plan_of(gram_study(columns=opened)).resources.notes)

    assert "score: a value counts as the middle of one of 64 bins" in notes("")
    assert "64 bins" not in notes("bins = 1000")
    assert "64 bins" not in notes('scale = "symlog"')


def test_a_study_that_does_not_fit_is_refused() -> None:
    text = VERTICAL.replace("60", "60000") + "[limits]\nmemory_mb = 50\n"
    with pytest.raises(InputError, match="MB of memory"):
        gram_study(parties=text, budget="epsilon = 1.0\ndelta = 1e-9").check()


@pytest.mark.parametrize("name", ["(intercept)", "colour=red", "age*colour"])
def test_columns_that_could_not_be_told_apart_are_refused(name: str) -> None:
    columns = COLUMNS.replace('"score"', f'"{name}"')
    parties = VERTICAL.replace('"score"', f'"{name}"')
    with pytest.raises(InputError, match="would be called"):
        gram_study('products = [["age", "colour"]]', parties=parties, columns=columns).check()


def test_sums_must_leave_room_for_noise() -> None:
    budget = "epsilon = 1.0\ndelta = 1e-15"
    with pytest.raises(InputError, match="leave no room"):
        gram_study("bits = 16", parties=sized(2**30), budget=budget).check()
    # fields for proofs are smaller
    with pytest.raises(InputError, match="fewer bits, or set adversary"):
        _ = gram_study("bits = 16", parties=sized(2**24), budget=budget).plan
    _ = gram_study('bits = 16\nadversary = "passive"', parties=sized(2**24), budget=budget).plan


def test_absent_people_are_left_out_pair_by_pair() -> None:
    study = gram_study(
        "overlap = true",
        parties=sized(20_000),
        columns=MISSING_LEVELS,
        budget="epsilon = 15.0\ndelta = 1e-8",
    )
    generator = np.random.default_rng(5)
    common = generator.normal(0, 0.3, 20_000)
    age = np.clip(50 + 60 * common + generator.normal(0, 8, 20_000), 0, 99)
    score = np.clip(common + generator.normal(0, 0.1, 20_000), -1, 1)
    at_north, at_south = generator.random((2, 20_000)) < [[0.8], [0.6]]
    table = pa.table(
        {
            "colour": pa.array(["red" if there else None for there in at_north]),
            "age": pa.array(age, mask=~at_north),
            "score": pa.array(score, mask=~at_south),
        }
    )
    gram = result_of(simulate(study, sources(study, table), seed=2)).gram
    assert gram.overlapping
    assert gram.matrix[gram.index("(at north)"), gram.index("(at north)")] == pytest.approx(at_north.sum(), abs=20)
    assert gram.matrix[0, gram.index("(at south)")] == pytest.approx((at_north & at_south).sum(), abs=20)
    both = at_north & at_south
    found = moments_of(gram, ["age", "score"])
    # five bins of age and four of score: coarse, but the same for both sides of the comparison
    coded: Any = next(iter(Table(study.schema, open_source(table)).batches()))
    wanted = np.corrcoef(coded["age"][both].astype(float), coded["score"][both].astype(float))[0, 1]
    assert found.correlation()[0, 1] == pytest.approx(wanted, abs=0.01)
    middles = (20 * coded["age"][at_north].astype(float) + 9.5 - 49.5) / 49.5
    assert found.means[0] == pytest.approx(middles.mean(), abs=0.01)
