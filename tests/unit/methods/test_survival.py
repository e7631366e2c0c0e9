"""A survival study over parties: the curves of the pooled people, intervals, files, and refusals with a way out."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import charges
from syndic import Study, simulate
from syndic.advice.published import advise_published
from syndic.data import Table, open_source
from syndic.errors import InputError, PartyError
from syndic.kernel import Party
from syndic.methods.layout import TableLayout
from syndic.methods.survival.result import EVERYBODY, SurvivalResult
from syndic.methods.survival.survival import SurvivalPlan
from syndic.noise import GaussianShare
from syndic.report import report
from syndic.study import Release

STUDY = """
name = "cohort"
[unit]
neighbours = "add_remove"
[budget]
epsilon = 1.0
delta = 1e-6
[protocol]
method = "survival"
time = "months"
event = "ended"
censored = "no"
by = ["arm", "age"]
[[parties]]
name = "north"
people = 3000
[[parties]]
name = "south"
people = 3000
[[schema.columns]]
kind = "integer"
name = "months"
lower = 1
upper = 25
[[schema.columns]]
kind = "categorical"
name = "ended"
values = ["no", "relapse", "death"]
[[schema.columns]]
kind = "boolean"
name = "arm"
[[schema.columns]]
kind = "integer"
name = "age"
lower = 40
upper = 79
bins = 2
"""


def people(count: int, seed: int) -> pa.Table:
    """Return people whose hazard is .6 times as high in one arm, and who are watched for at most 30 months."""
    rng = np.random.default_rng(seed)
    arm = rng.random(count) < 0.5
    time = np.ceil(rng.exponential(1 / (0.06 * np.where(arm, 0.6, 1.0)))).astype(int)
    watched = rng.integers(5, 31, count)
    ended = np.where(time <= watched, rng.choice(["relapse", "death"], count), "no")
    return pa.table(
        {"months": np.minimum(time, watched), "ended": ended, "arm": arm, "age": rng.integers(40, 80, count)}
    )


ROWS = {"north": people(3000, 1), "south": people(3000, 2)}


@pytest.fixture(scope="module")
def release() -> Release:
    return simulate(Study.loads(STUDY), ROWS, seed=1)


def result(release: Release) -> SurvivalResult:
    assert isinstance(release.result, SurvivalResult)
    return release.result


def exact(monkeypatch: pytest.MonkeyPatch) -> SurvivalResult:
    """Return the result without noise: what is left is arithmetic of masks, tables and risk sets."""
    monkeypatch.setattr("syndic.noise.GaussianShare.draw", lambda *given: np.zeros(given[1], np.int64))
    return result(simulate(Study.loads(STUDY), ROWS, seed=1))


def kaplan_meier(rows: pa.Table, until: int) -> float:
    time, ended = rows["months"].to_numpy(), np.array(rows["ended"].to_pylist())
    left = 1.0
    for now in range(1, until + 1):
        left *= 1 - np.sum((time == now) & (ended != "no")) / np.sum(time >= now)
    return float(left)


def test_without_noise_it_is_the_curve_of_all_people(monkeypatch: pytest.MonkeyPatch) -> None:
    found = exact(monkeypatch)
    pooled = pa.concat_tables(ROWS.values())
    curve = found.curves()[EVERYBODY]
    assert curve.times.tolist() == list(range(1, 25)), "the last value stands for this long or longer"
    assert curve.raw[11] == pytest.approx(kaplan_meier(pooled, 12))
    treated = pooled.filter(pooled["arm"])
    assert found.curves("arm")["true"].raw[19] == pytest.approx(kaplan_meier(treated, 20))
    both = [found.curves(cause=cause)[EVERYBODY].raw[11] for cause in ("relapse", "death")]
    assert sum(both) == pytest.approx(1 - curve.raw[11])


def test_the_effect_of_an_arm_is_found_with_noise(release: Release) -> None:
    found = result(release)
    ratios = found.hazard_ratios()
    test = found.log_rank("arm")
    assert ratios is not None
    assert test is not None
    assert ratios[0].lower < 0.6 < ratios[0].upper < 1
    assert test.p_value < 0.001
    assert ratios[1].term == "age, per unit"
    assert ratios[1].lower < 1 < ratios[1].upper
    assert all(1 < one.widened < 4 for one in ratios)
    curve = found.curves()[EVERYBODY]
    plain = kaplan_meier(pa.concat_tables(ROWS.values()), 12)
    assert abs(curve.values[11] - plain) < 5 * np.sqrt(curve.noise[11, 11])


def test_the_release_says_the_same_when_read_again(release: Release, tmp_path: Path) -> None:
    release.write(tmp_path / "out")
    again = result(Release.load(tmp_path / "out"))
    assert again.files()["estimates.csv"] == result(release).files()["estimates.csv"]
    lines = (tmp_path / "out" / "estimates.csv").read_text().splitlines()
    assert lines[0] == "what,group,value,lower,upper,p_value"
    assert {line.split(",")[0] for line in lines[1:]} == {
        "median time",
        "restricted mean",
        "log-rank test",
        "hazard ratio",
    }


def test_a_release_whose_cells_are_read_otherwise_is_refused(release: Release, tmp_path: Path) -> None:
    release.write(tmp_path / "out")
    note = tmp_path / "out" / "survival.json"
    note.write_text(note.read_text().replace('"censored": 0', '"censored": 1'))
    with pytest.raises(InputError, match="does not belong to this study"):
        Release.load(tmp_path / "out")


def test_the_report_has_a_picture_for_every_view(release: Release, tmp_path: Path) -> None:
    page = report(release, tmp_path / "report.html").read_text()
    for title in ("Survival by arm", "Survival by age", "Cumulative incidence of relapse", "Hazard ratios (Cox)"):
        assert title in page


def test_advice_forecasts_the_width(release: Release) -> None:
    told = {one.what: one for one in advise_published(Study.loads(STUDY)).errors}
    ratios = result(release).hazard_ratios()
    assert ratios is not None
    assert "hazard ratio of arm: true against false" in told
    said = float(told["hazard ratio of arm: true against false"].words.split("about ")[1].split(" ")[0])
    assert said == pytest.approx(ratios[0].widened, rel=0.5)


def test_late_entry_uses_the_same_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    column = '[[schema.columns]]\nkind = "integer"\nname = "since"\nlower = 1\nupper = 25\n'
    text = STUDY.replace('by = ["arm", "age"]', 'entry = "since"') + column
    tables = {name: rows.append_column("since", pa.array(np.ones(len(rows), np.int64))) for name, rows in ROWS.items()}
    monkeypatch.setattr("syndic.noise.GaussianShare.draw", lambda *given: np.zeros(given[1], np.int64))
    curve = result(simulate(Study.loads(text), tables, seed=1)).curves()[EVERYBODY]
    assert curve.start == 1
    later = pa.concat_tables(ROWS.values())
    later = later.filter(pa.array(later["months"].to_numpy() > 1))
    assert curve.raw[10] == pytest.approx(kaplan_meier(later, 12))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('time = "months"', 'time = "age"', "must be different columns"),
        ('time = "months"\nevent = "ended"', 'time = "ended"\nevent = "months"', "must be an integer or real column"),
        ('censored = "no"', 'censored = "none"', r"one of at least two values of 'ended' \(no, relapse, death\)"),
        ('by = ["arm", "age"]', 'by = ["arm"]\nentry = "age"', "same kind, bounds and bins as 'months'"),
        ('by = ["arm", "age"]', 'by = ["arm"]\ncell_cap = 10', "use fewer bins for the time"),
        ('by = ["arm", "age"]', 'by = ["height"]', "height"),
        ("delta = 1e-6", "", "delta"),
        ("[unit]\n", "[unit]\nrows = 2\n", "one time and one end"),
    ],
)
def test_a_study_that_makes_no_sense_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Study.loads(STUDY.replace(old, new)).check()


# Times at one party, groups at another.

CLINIC, REGISTRY = ("arm", "age"), ("months", "ended")
ACROSS = (
    STUDY.replace('"add_remove"', '"replace"')
    .replace('"north"\npeople = 3000', f'"clinic"\npeople = 3000\ncolumns = {list(CLINIC)}')
    .replace('"south"\npeople = 3000', f'"registry"\npeople = 3000\ncolumns = {list(REGISTRY)}')
)
APART = {"clinic": ROWS["north"].select(CLINIC), "registry": ROWS["north"].select(REGISTRY)}


def test_columns_at_two_parties_have_the_same_table_and_the_same_release(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    study = Study.loads(ACROSS)
    assert study.partition == "vertical"
    noise = study.plan_as(SurvivalPlan).noise
    assert isinstance(noise, GaussianShare)
    assert noise.sensitivity_squared == 2
    assert noise.honest == 1, "one partner's share is enough"
    assert study.costs["clinic"] == study.costs["registry"] == study.joint
    made = simulate(study, APART, seed=1, folder=tmp_path / "run")
    found = result(made)
    ratios = found.hazard_ratios()
    assert found.note.standard_deviation == pytest.approx(noise.total_variance(2) ** 0.5)
    assert [len(charges(tmp_path / "run", name)) for name in APART] == [1, 1]
    assert ratios is not None
    assert ratios[0].lower < 0.6 < ratios[0].upper
    made.write(tmp_path / "out")
    assert result(Release.load(tmp_path / "out")).files()["estimates.csv"] == found.files()["estimates.csv"]
    assert "times as wide as on pooled rows" in str(advise_published(study))
    monkeypatch.setattr("syndic.noise.GaussianShare.draw", lambda *given: np.zeros(given[1], np.int64))
    exact = result(simulate(study, APART, seed=1)).table
    counted = Table(study.schema, open_source(ROWS["north"])).count(exact.domain.names)
    assert exact.values.tolist() == counted.values.tolist()


@pytest.mark.parametrize("proven", [True, False])
def test_a_party_that_counts_one_person_often_is_refused(monkeypatch: pytest.MonkeyPatch, proven: bool) -> None:
    """The clinic puts a person into its matrix many times: without the proof the noise no longer hides the time."""
    victim = 7

    honest = TableLayout.rows

    def heavy(self: TableLayout, party: Party, span: tuple[int, int], recode: Any) -> Any:
        found = honest(self, party, span, recode).astype(np.int64)
        if party.name == "clinic" and span[0] <= victim < span[1]:
            found[victim - span[0]] *= 100
        return found

    monkeypatch.setattr(TableLayout, "rows", heavy)
    monkeypatch.setattr("syndic.mpc.product.SecureProduct.check_unchanged", lambda *_: None)
    monkeypatch.setattr("syndic.noise.GaussianShare.draw", lambda *given: np.zeros(given[1], np.int64))
    if not proven:
        monkeypatch.setattr("syndic.methods.histogram.marginals.adversary_of", lambda *_: "passive")
    study = Study.loads(ACROSS.replace('name = "cohort"', f'name = "cohort-{proven}"'))
    if proven:
        with pytest.raises(PartyError, match="rows are one-hot does not hold"):
            simulate(study, APART, seed=1)
    else:
        table = result(simulate(study, APART, seed=1)).table
        counted = Table(study.schema, open_source(ROWS["north"])).count(table.domain.names)
        assert np.abs(table.values - counted.values).max() >= 99


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"replace"', '"add_remove"', "replace"),
        ("columns = ['months', 'ended']", "columns = ['months']", "held by no party"),
        ('by = ["arm", "age"]', 'by = ["arm", "age"]\ncolluding = 2', "colluding must be from 0 to one less"),
        ("people = 3000\ncolumns = ['months'", "people = 2999\ncolumns = ['months'", "same number"),
    ],
)
def test_what_cannot_be_counted_across_parties_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Study.loads(ACROSS.replace(old, new)).check()


def test_questions_beyond_the_study_are_refused(release: Release) -> None:
    found = result(release)
    with pytest.raises(InputError, match=r"not in `by` of the study \(arm, age\)"):
        found.curves("height")
    with pytest.raises(InputError, match="not a cause; they are relapse, death"):
        found.curves(cause="cured")


def test_the_plan_says_where_noise_cannot_be_as_small_as_the_budget_allows() -> None:
    plans = [Study.loads(STUDY.replace("epsilon = 1.0", f"epsilon = {epsilon}")).plan for epsilon in (1.0, 4.0)]
    said = [any("noise cannot be smaller" in note for note in plan.resources.notes) for plan in plans]
    assert said == [False, True]
