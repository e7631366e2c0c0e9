"""The Gram matrix of different people, a group for each party: what it may ask, what it costs, what it publishes."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from support import COLUMNS, PARTIES, charges, rows, study_text
from syndic import Study, simulate
from syndic.errors import InputError, SyndicError
from syndic.methods.regression.gram_plan import GramPlan
from syndic.methods.regression.gram_result import GramResult
from syndic.model.gram.matrix import squares_of
from syndic.model.gram.scaling import Scale, Scaling
from syndic.sklearn import GramRegression
from syndic.study import Release
from unit.methods.exact_gram import exact_rows

TINY = "epsilon = 1.0\ndelta = 1e-15"
SIZES = {"north": 1500, "south": 900, "east": 600}


def study_of(
    options: str = "",
    *,
    sizes: dict[str, int] = SIZES,
    unit: str = 'neighbours = "replace"',
    budget: str = "epsilon = 1.0\ndelta = 1e-6",
    more: str = "",
    limits: str = "",
) -> Study:
    parties = "".join(f'[[parties]]\nname = "{name}"\npeople = {count}\n{more}\n' for name, count in sizes.items())
    parties += limits
    return Study.loads(study_text(unit=unit, budget=budget, parties=parties, protocol=f'method = "gram"\n{options}'))


def sources() -> dict[str, pa.Table]:
    return {name: rows(count, place) for place, (name, count) in enumerate(SIZES.items())}


@pytest.mark.parametrize(
    "options", ["", "scaling = 0", 'products = [["age", "colour"]]', "norm = 0.4", "colluding = 2\nbits = 6"]
)
def test_a_release_is_the_exact_matrix_plus_noise_of_the_stated_size(options: str, tmp_path: Path) -> None:
    study = study_of(options)
    release = simulate(study, sources(), seed=3, folder=tmp_path)
    assert isinstance(release.result, GramResult)
    gram, scales = release.result.opened, release.result.note.scales
    matrix = exact_rows(study, sources(), scales)
    assert gram.rows == len(matrix) == 3000
    noise = (gram.matrix - matrix.T @ matrix) / gram.sigma
    assert not noise[gram.places < 0].any()
    assert 0.5 < np.sqrt((noise[gram.places >= 0] ** 2).mean()) < 1.6
    assert [len(charges(tmp_path, name)) for name in SIZES] == [1 + bool(scales)] * 3
    assert bool(scales) == gram.halved == (not any(word in options for word in ("scaling", "products", "norm")))


def test_noise_is_that_of_one_curator_but_for_those_who_collude() -> None:
    study = study_of("scaling = 0")
    plan = study.plan_as(GramPlan)
    noise = plan.noise
    # colour, age, score and the intercept; a list and two numbers
    assert plan.sensitivity == 16
    assert noise.total_variance(3) / 16.0**10 == pytest.approx(1.5 * 16 / float(noise.mu_squared), rel=1e-6)
    assert study.joint == study.costs["north"]
    assert 0.99999 < study.joint.epsilon(study.delta) <= 1
    shorter = study_of("norm = 0.4\nexempt = []")
    # age is the only column of nothing but numbers: score has a level for missing values
    assert not shorter.plan_as(GramPlan).stages.clips


def test_rescaled_numbers_are_paid_for_within_the_budget() -> None:
    study = study_of()
    stages = study.plan_as(GramPlan).stages
    assert stages.first is not None
    # age and score, each with one count up and one down
    assert stages.first.sensitivity_squared == 4
    assert stages.first.mu_squared == pytest.approx((stages.first.mu_squared + stages.noise.mu_squared) / 5)
    assert study.costs["north"] == study.joint
    assert 0.99999 < study.joint.epsilon(study.delta) <= 1


def test_scales_that_do_not_belong_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lie = (Scale(name="score", centre=0, width=1),)
    monkeypatch.setattr(Scaling, "scales", lambda *_: lie)
    with pytest.raises(SyndicError, match="do not belong"):
        simulate(study_of(), sources(), seed=3, folder=tmp_path)
    # the counts were charged; the sums were not, and did not leave
    assert [len(charges(tmp_path, name)) for name in SIZES] == [1, 1, 1]


def far(low: bool) -> pa.Table:
    """Return a person with all numbers at one of their bounds."""
    return pa.table({"colour": ["red" if low else "green"], "age": [0 if low else 99], "score": [-1.0 if low else 1.0]})


def test_no_scales_make_a_person_count_more_than_was_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator sends the narrowest widths that are accepted, far from a person: all of its rows are long."""
    study = study_of(sizes={"north": 3, "south": 2})
    plan, unit = study.plan_as(GramPlan), 1 << 10
    lie = tuple(Scale(name=name, centre=unit, width=1) for name in ("age", "score"))
    assert plan.stages.allowed(plan.codings, lie)
    monkeypatch.setattr(Scaling, "scales", lambda *_: lie)
    monkeypatch.setattr("syndic.noise.FineGaussianShare.draw", lambda *given: np.zeros(given[1], np.int64))
    one, other = (
        simulate(study, {"north": pa.concat_tables([far(low), rows(2, 1)]), "south": rows(2, 2)}, seed=3).result
        for low in (True, False)
    )
    assert isinstance(one, GramResult)
    assert isinstance(other, GramResult)
    moved = (one.sums - other.sums).astype(float) / unit**2
    # two halves of a square move by half of it each
    moved[squares_of(plan.features)] /= 2**0.5
    assert 1 < float(moved @ moved) <= plan.sensitivity


def test_missing_parties_are_left_out_and_paid_for() -> None:
    six = {f"p{place}": 100 for place in range(6)}
    study, whole = study_of("missing = 1", sizes=six), study_of(sizes=six)
    # four shares have to be enough instead of five
    noise, less = (one.plan_as(GramPlan).noise for one in (study, whole))
    assert noise.variance == pytest.approx(5 / 4 * less.variance, rel=1e-6)


def test_a_model_from_all_parties(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    columns = {}
    for name, count in SIZES.items():
        age = generator.integers(0, 100, count)
        score = np.clip(age / 100 - 0.5 + generator.normal(0, 0.1, count), -1, 1)
        columns[name] = pa.table({"colour": ["red"] * count, "age": age, "score": score})
    study = study_of(budget="epsilon = 8.0\ndelta = 1e-6")
    release = simulate(study, columns, seed=2)
    release.write(tmp_path)
    model = GramRegression("score", features=["age"]).fit(Release.load(tmp_path))
    # bins of ten years flatten the slope a little, 0.0092 in expectation; the noise comes on top
    assert model.coef_[0] == pytest.approx(0.0092, abs=6 * model.inference_.standard_errors()[1])
    assert model.predict(columns["north"]).shape == (1500,)
    (tmp_path / "study.json").write_text((tmp_path / "study.json").read_text().replace('"bits": 10', '"bits": 8'))
    with pytest.raises(InputError, match="does not belong to this study"):
        Release.load(tmp_path)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"unit": 'neighbours = "add_remove"'}, 'set neighbours = "replace"'),
        ({"unit": 'neighbours = "replace"\nrows = 2'}, "rows = 1"),
        ({"budget": "epsilon = 1.0"}, "delta above 0"),
        ({"options": 'products = [["age", "height"]]'}, "no column height"),
        ({"options": 'exempt = ["height"]'}, "no column height"),
        ({"options": 'target = "height"'}, "no column height"),
        ({"options": 'target = "colour"'}, "colour is not a column of numbers"),
        ({"options": 'target = "age"\nscaling = 0.0'}, "it needs rescaled numbers"),
        ({"more": 'columns = ["age"]'}, "held by no party"),
        ({"options": "bits = 16", "sizes": {"north": 2**29, "south": 2**29}, "budget": TINY}, "no room"),
        ({"limits": "[limits]\nmemory_mb = 50\n"}, "MB of memory"),
    ],
)
def test_what_cannot_work_is_refused(parts: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        study_of(**parts).check()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("colluding = 0", "at least 1"),
        ("bits = 3", "from 4 to 16"),
        ("norm = 2.0", "at most 1"),
        ('products = [["age", "colour"], ["colour", "age"]]', "twice"),
    ],
)
def test_parameters_are_checked(options: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        study_of(options)


def test_the_strictest_budget_holds() -> None:
    parties = PARTIES.replace("people = 60", "people = 60\nbudget = {epsilon = 0.25, delta = 1e-7}")
    text = study_text(
        unit='neighbours = "replace"',
        budget="epsilon = 1.0\ndelta = 1e-5",
        parties=parties,
        columns=COLUMNS,
        protocol='method = "gram"',
    )
    study = Study.loads(text)
    assert study.costs["south"].epsilon(Fraction(1, 10**7)) <= Fraction(1, 4)
