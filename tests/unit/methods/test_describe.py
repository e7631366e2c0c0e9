"""A descriptive study over parties: figures of the pooled people, sensitivity by enumeration, files and refusals."""

from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from syndic import Study, advise, simulate
from syndic.advice import Assumptions, NoiseAdvice
from syndic.data import ArrowSource, Schema, Table
from syndic.document import from_builtins
from syndic.errors import InputError
from syndic.methods.describe.describe import DescribePlan
from syndic.methods.describe.opened import ONE, Block, Readings
from syndic.methods.describe.result import DescribeResult
from syndic.noise import GaussianShare
from syndic.report import report
from syndic.study import Release

COLUMNS = """
[[schema.columns]]
kind = "categorical"
name = "arm"
values = ["a", "b"]
[[schema.columns]]
kind = "integer"
name = "age"
lower = 20
upper = 99
[[schema.columns]]
kind = "categorical"
name = "sex"
values = ["f", "m"]
[[schema.columns]]
kind = "boolean"
name = "ill"
[[schema.columns]]
kind = "integer"
name = "visits"
lower = 0
upper = 9
"""
STUDY = (
    """
name = "trial"
[unit]
neighbours = "add_remove"
[budget]
epsilon = 1.0
delta = 5e-7
[protocol]
method = "describe"
group = "arm"
stratum = "party"
columns = ["age", "sex", "ill"]
[[protocol.regressions]]
kind = "linear"
outcome = "age"
on = ["arm", "sex"]
[[protocol.regressions]]
kind = "logistic"
outcome = "ill"
on = ["arm", "sex"]
[[protocol.regressions]]
kind = "poisson"
outcome = "visits"
on = ["arm"]
[[parties]]
name = "north"
people = 6000
[[parties]]
name = "south"
people = 6000
"""
    + COLUMNS
)


def people(count: int, seed: int) -> pa.Table:
    """Return people of whom one arm is older and more often ill."""
    rng = np.random.default_rng(seed)
    arm, sex = rng.integers(0, 2, count), rng.integers(0, 2, count)
    chance = 1 / (1 + np.exp(1 + seed / 4 - 0.8 * arm - 0.3 * sex))
    return pa.table(
        {
            "arm": np.array(["a", "b"])[arm],
            "age": np.clip(rng.normal(55 + 2 * arm, 12).round().astype(int), 20, 99),
            "sex": np.array(["f", "m"])[sex],
            "ill": rng.random(count) < chance,
            "visits": np.minimum(rng.poisson(np.exp(0.5 + 0.3 * arm)), 9),
        }
    )


ROWS = {"north": people(6000, 1), "south": people(5000, 2)}
POOLED: dict[str, Any] = {
    name: np.array(pa.concat_tables(ROWS.values())[name].to_pylist()) for name in ROWS["north"].column_names
}


@pytest.fixture(scope="module")
def release() -> Release:
    return simulate(Study.loads(STUDY), ROWS, seed=1)


def result(release: Release) -> DescribeResult:
    assert isinstance(release.result, DescribeResult)
    return release.result


@pytest.fixture(scope="module")
def exact() -> DescribeResult:
    """Return the result without noise: what is left is arithmetic of masks, sums and readings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("syndic.noise.GaussianShare.draw", lambda *given: np.zeros(given[1], np.int64))
        return result(simulate(Study.loads(STUDY), ROWS, seed=1))


def test_without_noise_it_describes_all_people(exact: DescribeResult) -> None:
    treated = POOLED["arm"] == "b"
    assert exact.people[:2] == pytest.approx([(~treated).sum(), treated.sum()])
    assert exact.mean("age", "b").value == pytest.approx(POOLED["age"][treated].mean(), abs=0.01)
    assert exact.deviation("age", "a").value == pytest.approx(POOLED["age"][~treated].std(), rel=1e-3)
    assert exact.quantile("age", 0.5, "a").value == pytest.approx(np.median(POOLED["age"][~treated]), abs=1)
    assert exact.share("ill", "true", "b").value == pytest.approx(POOLED["ill"][treated].mean())
    assert exact.mean_difference("age", "b", "a").value == pytest.approx(
        POOLED["age"][treated].mean() - POOLED["age"][~treated].mean(), abs=0.01
    )


def test_without_noise_strata_are_the_parties(exact: DescribeResult) -> None:
    tables = []
    for rows in ROWS.values():
        arm, ill = np.array(rows["arm"].to_pylist()) == "b", rows["ill"].to_numpy(zero_copy_only=False)
        tables.append([[np.sum((arm == one) & (ill == has)) for has in (True, False)] for one in (True, False)])
    (a, b), (c, d) = np.moveaxis(np.array(tables, dtype=float), 0, -1)
    n = a + b + c + d
    found = exact.compare("ill", "true", "odds ratio", "b", "a")
    assert found.value == pytest.approx((a * d / n).sum() / (b * c / n).sum())


def test_without_noise_regressions_are_those_of_all_rows(exact: DescribeResult) -> None:
    arm, sex = POOLED["arm"] == "b", POOLED["sex"] == "m"
    plain = np.linalg.lstsq(np.column_stack([np.ones(len(arm)), arm, sex]), POOLED["age"], rcond=None)[0]
    linear, logistic, poisson = (exact.regression(place) for place in range(3))
    assert linear is not None
    assert logistic is not None
    assert poisson is not None
    assert linear["arm: b against a"].value == pytest.approx(plain[1], abs=0.01)
    rates = [POOLED["visits"][arm == one].mean() for one in (True, False)]
    assert poisson["arm: b against a"].value == pytest.approx(rates[0] / rates[1], rel=1e-3)
    odds = logistic["arm: b against a"]
    assert odds.lower is not None
    assert odds.upper is not None
    assert odds.lower < np.exp(0.8) < odds.upper


def test_effects_are_found_with_noise(release: Release, exact: DescribeResult) -> None:
    found = result(release)
    plain = {(row.what, row.column, row.group): row.found for row in exact.rows()}
    for row in found.rows():
        real = plain[row.what, row.column, row.group].value
        if row.found.lower is None or row.found.upper is None:
            continue
        assert real is not None
        width = row.found.upper - row.found.lower
        assert row.found.lower - width < real < row.found.upper + width, row
    p_value = found.p_value("ill")
    assert p_value is not None
    assert p_value < 1e-6
    assert found.summary()["hidden by the noise"] == 0


# Privacy.


SMALL = """
name = "small"
[unit]
neighbours = "{neighbours}"
[budget]
epsilon = 1.0
delta = 5e-7
[protocol]
method = "describe"
group = "arm"
stratum = "party"
regressions = [
  {{ kind = "linear", outcome = "score", on = ["ill"] }},
  {{ kind = "logistic", outcome = "ill", on = ["arm"] }},
]
[[parties]]
name = "north"
people = {people}
[[parties]]
name = "south"
people = {people}
[[schema.columns]]
kind = "categorical"
name = "arm"
values = ["a", "b"]
[[schema.columns]]
kind = "real"
name = "score"
lower = -1.0
upper = 3.0
bins = 9
[[schema.columns]]
kind = "boolean"
name = "ill"
"""


def sums_of(plan: DescribePlan, rows: pa.Table, party: str = "north") -> Any:
    """Return what one party adds up, without its noise, by the method's own step."""
    caught: list[Any] = []

    class Spy:
        table = Table(plan.terms.schema, ArrowSource(rows))
        name, terms = party, plan.terms

        def __init__(self) -> None:
            self.plan = plan

        def contribute(self, noise: Any, values: Any, *, why: str) -> Any:
            del noise, why
            caught.append(values)
            return values

    class Masks:
        def masks(self, party: Any) -> Any:
            del party
            return self

        def hide(self, values: Any) -> Any:
            return values

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(plan.masked_sum), "masks", lambda *_: Masks())
        method: Any = Study.loads(SMALL.format(neighbours="replace", people=3)).protocol
        method.count(Spy(), None)
    return caught[0]


def every_row() -> list[dict[str, Any]]:
    """Return a row for every combination of values, bounds, outliers and things that are no value."""
    scores = [-1.0, -0.5, 0.2, 1.0, 3.0, 1e300, float("-inf"), float("nan"), None]
    return [
        {"arm": arm, "score": score, "ill": ill}
        for arm, score, ill in product(("a", "b", "?", None), scores, (True, False, None))
    ]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("bound", [1, 1000])
def test_no_two_neighbours_are_further_apart_than_is_charged(neighbours: str, bound: int) -> None:
    """All pairs of rows beside a third one, also where the public bound on people clips the counts."""
    plan = Study.loads(SMALL.format(neighbours=neighbours, people=bound)).plan_as(DescribePlan)
    schema = pa.schema({"arm": pa.string(), "score": pa.float64(), "ill": pa.bool_()})
    rows, third = every_row(), {"arm": "a", "score": 3.0, "ill": True}
    without = sums_of(plan, pa.Table.from_pylist([third], schema))
    each = np.array([sums_of(plan, pa.Table.from_pylist([third, row], schema)) for row in rows])
    if neighbours == "add_remove":
        worst = int(((each - without) ** 2).sum(axis=1).max())
    else:
        worst = max(int(((each - one) ** 2).sum(axis=1).max()) for one in each)
    assert worst <= plan.sensitivity
    if bound > 1:
        assert worst >= 0.8 * plan.sensitivity, "the bound is nearly reached, so less noise would be too little"
    assert isinstance(plan.noise, GaussianShare)
    assert plan.noise.sensitivity_squared == plan.sensitivity


@pytest.mark.parametrize("most", [0, 1, 2, 3, 7, 40, 300])
def test_numbers_in_one_cell_are_not_further_apart_than_in_two(most: int) -> None:
    """All pairs of levels of integer and real columns: the argument of `Readings.sensitivity`."""
    columns = [{"kind": "real", "name": "x", "lower": -3.0, "upper": 7.0, "bins": most + 1}]
    if most:
        columns.append({"kind": "integer", "name": "x", "lower": -5, "upper": most - 5})
    for column in columns:
        readings = Readings(
            Block(by=(), of="x", read="moments"), from_builtins({"columns": [column]}, Schema, where="")
        )
        rows = readings.matrix
        worst = max(int(((rows - one) ** 2).sum(axis=1).max()) for one in rows)
        assert worst <= readings.sensitivity("replace")
        assert (rows**2).sum(axis=1).max() == readings.sensitivity("add_remove")
        assert np.abs(rows).max() <= ONE


def test_more_people_than_declared_count_as_the_bound() -> None:
    plan = Study.loads(SMALL.format(neighbours="add_remove", people=2)).plan_as(DescribePlan)
    schema = pa.schema({"arm": pa.string(), "score": pa.float64(), "ill": pa.bool_()})
    rows = [{"arm": "a", "score": score, "ill": True} for score in (2.9, 2.5, 2.1, 2.9)]
    assert np.abs(sums_of(plan, pa.Table.from_pylist(rows, schema))).max() == 2 * ONE


def test_outliers_count_as_the_bound_and_stop_nothing() -> None:
    plan = Study.loads(SMALL.format(neighbours="add_remove", people=100)).plan_as(DescribePlan)
    schema = pa.schema({"arm": pa.string(), "score": pa.string(), "ill": pa.string()})
    wild = pa.Table.from_pylist(
        [{"arm": "a", "score": "1e308", "ill": "yes!"}, {"arm": "", "score": "x", "ill": None}], schema
    )
    tame = pa.Table.from_pylist(
        [{"arm": "a", "score": "3", "ill": None}, {"arm": None, "score": None, "ill": None}], schema
    )
    assert (sums_of(plan, wild) == sums_of(plan, tame)).all()


def test_a_party_is_in_its_own_stratum_only() -> None:
    plan = Study.loads(SMALL.format(neighbours="add_remove", people=100)).plan_as(DescribePlan)
    schema = pa.schema({"arm": pa.string(), "score": pa.float64(), "ill": pa.bool_()})
    rows = pa.Table.from_pylist(every_row(), schema)
    start = 0
    north, south = (sums_of(plan, rows, party) for party in ("north", "south"))
    for one in plan.readings:
        stop = start + one.cells(2)
        if one.block.within:
            half = (start + stop) // 2
            assert not north[half:stop].any()
            assert not south[start:half].any()
            assert (north[start:half] == south[half:stop]).all()
        else:
            assert (north[start:stop] == south[start:stop]).all()
        start = stop


def test_tables_by_party_are_disclosed() -> None:
    told = Study.loads(STUDY).plan.disclosure
    assert "each party by itself" in told.sees["anyone with the release"]
    plain = Study.loads(STUDY.replace('stratum = "party"', "")).plan.disclosure
    assert "each party by itself" not in plain.sees["anyone with the release"]


@pytest.mark.parametrize("deviation", [0.0, 3.0, 1e4])
def test_whatever_is_opened_gives_finite_numbers_or_none(exact: DescribeResult, deviation: float) -> None:
    """Noise alone, nobody at all, and cells that cannot be: a run never ends in an error after it was charged."""
    rng = np.random.default_rng(19)
    count = exact.sums.size
    for values in (np.zeros(count), rng.normal(0, 300, count), rng.choice([0.0, 40.0, -40.0], count)):
        note = msgspec.structs.replace(exact.note, standard_deviation=deviation)
        sums = np.rint(values * ONE).astype(np.int64)
        for row in DescribeResult(note=note, sums=sums, schema=exact.schema).rows():
            found = row.found
            for end in (found.value, found.lower, found.upper, found.p_value, found.widened):
                assert end is None or np.isfinite(end), row


# Files, report, advice, refusals.


def test_the_release_says_the_same_when_read_again(release: Release, tmp_path: Path) -> None:
    release.write(tmp_path / "out")
    again = result(Release.load(tmp_path / "out"))
    assert again.files()["estimates.csv"] == result(release).files()["estimates.csv"]
    note = tmp_path / "out" / "describe.json"
    note.write_text(note.read_text().replace('"ill"', '"sex"', 1))
    with pytest.raises(InputError, match="does not belong to this study"):
        Release.load(tmp_path / "out")


def test_the_report_is_one_page(release: Release, tmp_path: Path) -> None:
    page = report(release, tmp_path / "report.html").read_text()
    assert "A ratio is hidden by noise if its parts would not stand out with the same shares in all groups." in page
    for text in ("All columns by arm", "age, median (quartiles)", "odds ratio within strata", "chi-squared test"):
        assert text in page


def test_advice_forecasts_the_widths(release: Release) -> None:
    assumptions = Assumptions.of(("arm.shares=1/1", "sex.shares=1/1", "ill.mean=0.35", "age.mean=56", "age.sd=12"))
    study = Study.loads(STUDY)
    told = advise(study, assumptions=assumptions, wider=1.5)
    assert isinstance(told, NoiseAdvice)
    found = {f"{row.what}, {row.column}, {row.group}": row.found.widened for row in result(release).rows()}
    known = [one for one in told.errors if one.wider is not None and "visits" not in one.what]
    assert len(known) > 5
    for one in known:
        assert one.wider == pytest.approx(found[one.what], rel=0.25), one.what
    assert told.epsilon is not None
    assert "epsilon" in str(told)
    assert told.epsilon > 1, "at epsilon 1 some intervals are wider"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('columns = ["age", "sex", "ill"]', 'columns = ["arm"]', "must be different columns"),
        ('columns = ["age", "sex", "ill"]', 'columns = ["height"]', "height"),
        ('group = "arm"\n', "", "set group"),
        ('outcome = "visits"', 'outcome = "sex"', "poisson needs a number"),
        ('outcome = "ill"\n', 'outcome = "ill"\nvalue = "maybe"\n', "needs a `value` to predict, one of false, true"),
        ('on = ["arm"]', 'on = ["visits"]', "none its outcome"),
        ('stratum = "party"\n', "cell_cap = 3\n", "use fewer bins or columns"),
        ('group = "arm"\nstratum = "party"\ncolumns = ["age", ', 'group = "age"\ncolumns = [', "at most 32"),
        ("[unit]\n", "[unit]\nrows = 2\n", "each with one row"),
        ("delta = 5e-7", "", "delta"),
        (
            '"integer"\nname = "age"\nlower = 20\nupper = 99',
            '"real"\nname = "age"\nlower = -9e150\nupper = 9e150',
            "too far apart",
        ),
        (
            '"integer"\nname = "age"\nlower = 20\nupper = 99',
            '"real"\nname = "age"\nlower = -9e98\nupper = 9e98',
            "too far apart",
        ),
        (
            '"integer"\nname = "age"\nlower = 20\nupper = 99',
            '"real"\nname = "age"\nlower = 0.0\nupper = 1e-160',
            "too close",
        ),
    ],
)
def test_a_study_that_makes_no_sense_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Study.loads(STUDY.replace(old, new)).check()


def test_a_ratio_per_unit_of_a_narrow_column_is_forecast() -> None:
    """The lower end of its interval is 0 in floating point."""
    narrow = 'kind = "real"\nname = "age"\nlower = 0.0\nupper = 1e-6\nbins = 5'
    study = STUDY.replace('kind = "integer"\nname = "age"\nlower = 20\nupper = 99', narrow)
    told = advise(Study.loads(study.replace('on = ["arm"]', 'on = ["arm", "age"]')))
    assert isinstance(told, NoiseAdvice)
    assert any("age, per unit" in one.what for one in told.errors)


def test_groups_of_close_numbers_stay_apart() -> None:
    """Edges that agree in six digits are written with more: groups with one label would be one group."""
    study = Study.loads(
        STUDY.replace(
            'kind = "categorical"\nname = "arm"\nvalues = ["a", "b"]',
            'kind = "real"\nname = "arm"\nlower = 2600000.0\nupper = 2600004.0\nbins = 4',
        )
    )
    plan = study.plan_as(DescribePlan)
    found = DescribeResult(
        note=msgspec.structs.replace(plan.note, present=plan.note.parties, standard_deviation=1.0),
        sums=np.full(plan.masked_sum.count, 1000 * ONE),
        schema=study.schema,
    )
    assert list(found.groups.values()) == [0, 1, 2, 3]
    assert list(found.groups)[1] == "[2600001, 2600002)"


def test_questions_beyond_the_study_are_refused(release: Release) -> None:
    found = result(release)
    with pytest.raises(InputError, match="not among the columns"):
        found.mean("visits", "a")
    with pytest.raises(InputError, match="is a number"):
        found.share("age", "30", "a")
    with pytest.raises(InputError, match="is no number"):
        found.mean("sex", "a")
    with pytest.raises(InputError, match=r"not a group that stands out from the noise \(a, b\)"):
        found.mean("age", "c")
