"""The model of a release predicts from rows as they are, as scikit-learn does on the same rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from support import study_text
from syndic import Release, Study, simulate
from syndic.errors import InputError
from syndic.methods.learning.result import LinearPredictor
from syndic.report import report

COUNT = 3000
COLUMNS = """
[[schema.columns]]
name = "weight"
kind = "real"
lower = 0.0
upper = 200.0
bins = 2000
missing = { value = 100.0 }
[[schema.columns]]
name = "visits"
kind = "integer"
lower = 0
upper = 400
missing = { value = 0 }
[[schema.columns]]
name = "ill"
kind = "boolean"
missing = { value = false }
[[schema.columns]]
name = "stage"
kind = "categorical"
values = ["early", "middle", "late"]
outside = { value = "early" }
missing = { value = "early" }
[[schema.columns]]
name = "pressure"
kind = "real"
lower = 0.0
upper = 200.0
bins = 2000
missing = { value = 100.0 }
"""
PARTIES = f'[[parties]]\nname = "a"\npeople = {COUNT // 2}\n[[parties]]\nname = "b"\npeople = {COUNT // 2}\n'


def frame() -> pd.DataFrame:
    """Return rows in the middle halves of the bounds, so that no row of two numbers is clipped."""
    draws = np.random.default_rng(3)
    weight, visits = draws.uniform(51, 149, COUNT), draws.integers(101, 300, COUNT)
    odds = 0.06 * (weight - 100) - 0.02 * (visits - 200) + 0.5
    ill = draws.random(COUNT) < 1 / (1 + np.exp(-odds))
    late = (weight / 50 + draws.normal(0, 0.3, COUNT)).astype(int).clip(0, 2)
    pressure = np.clip(40 + 0.6 * weight + 0.05 * visits + draws.normal(0, 4, COUNT), 0, 200)
    stage = np.array(["early", "middle", "late"])[late]
    return pd.DataFrame({"weight": weight, "visits": visits, "ill": ill, "stage": stage, "pressure": pressure})


def released(options: str) -> Release:
    rows = frame()
    text = study_text(
        unit='neighbours = "replace"',
        budget="epsilon = 1000000.0\ndelta = 1e-7",
        parties=PARTIES,
        columns=COLUMNS,
        protocol=f'method = "learn"\nscheme = "newton"\nregularisation = 1e-5\nclip = 20.0\n{options}',
    )
    halves = {"a": rows[: COUNT // 2], "b": rows[COUNT // 2 :]}
    return simulate(Study.loads(text), halves, seed=1)


NUMBERS = 'features = ["weight", "visits"]\nscale = "symmetric"\n'


@pytest.fixture(scope="module")
def binary() -> Release:
    return released(f'label = "ill"\n{NUMBERS}')


def test_a_binary_model_is_that_of_scikit_learn(binary: Release) -> None:
    rows = frame()
    matrix = rows[["weight", "visits"]]
    other = LogisticRegression(C=1e6, max_iter=2000).fit(matrix, rows["ill"])
    model = binary.model
    assert isinstance(model, LinearPredictor)
    assert model.shortening == 1.0
    assert model.classes == (False, True)
    assert np.abs(model.predict_proba(rows) - other.predict_proba(matrix)).max() < 0.02
    assert (model.predict(rows) == other.predict(matrix)).mean() > 0.99
    found = model.coefficients.to_pydict()
    assert found["feature"] == ["(intercept)", "weight", "visits"]
    assert found["coefficient"] == pytest.approx([other.intercept_[0], *other.coef_[0]], rel=0.05)
    # half of the bounds' distance, for features scaled to [-1, 1]
    assert found["scaled"][1:] == pytest.approx([100 * found["coefficient"][1], 200 * found["coefficient"][2]])


def test_rows_may_be_a_frame_a_table_or_a_dict_without_the_label(binary: Release, tmp_path: Path) -> None:
    rows = frame()[["visits", "weight"]][:7]
    model = binary.model
    wanted = model.predict_proba(rows).tolist()
    assert model.predict_proba(pa.Table.from_pandas(rows)).tolist() == wanted
    assert model.predict_proba(rows.to_dict("list")).tolist() == wanted
    binary.write(tmp_path)
    again = Release.load(tmp_path).model
    assert again.predict_proba(rows).tolist() == wanted
    assert again.coefficients == model.coefficients
    with pytest.raises(InputError, match=r"\['visits'\] are missing"):
        model.predict({"weight": [3.0]})
    with pytest.raises(InputError, match="all of one length") as error:
        model.predict({"weight": [3.0, "private"], "visits": [1]})
    assert "private" not in str(error.value)


def test_a_number_is_predicted_in_its_own_unit(tmp_path: Path) -> None:
    rows = frame()
    release = released(f'label = "pressure"\nloss = "ridge"\n{NUMBERS}')
    matrix = rows[["weight", "visits"]]
    other = LinearRegression().fit(matrix, rows["pressure"])
    assert release.model.predict(rows) == pytest.approx(other.predict(matrix), abs=0.5)
    found = release.model.coefficients.to_pydict()
    assert found["coefficient"] == pytest.approx([other.intercept_, *other.coef_], rel=0.05)
    with pytest.raises(InputError, match="no probabilities"):
        release.model.predict_proba(rows)
    page = report(release, tmp_path / "report.html").read_text()
    assert f"{found['coefficient'][1]:.4g}" in page
    assert "change of pressure, in its own unit" in page


def encoded(release: Release, rows: pd.DataFrame) -> Any:
    """Return the features as the method encodes them, clipping included; the intercept is the last."""
    model = release.model
    coded = {name: release.study.schema[name].encode(pa.array(rows[name])) for name in model.design.schema.names}
    return model.design.rows(coded)


def test_scores_are_those_by_hand_from_the_coefficients() -> None:
    """Also where numbers and booleans are missing: they add nothing but the coefficient of their level for it."""
    with_level = COLUMNS.replace("missing = { value = 100.0 }\n", "").replace("missing = { value = false }\n", "")
    rows, draws = frame(), np.random.default_rng(5)
    rows["weight"] = rows["weight"].where(draws.random(COUNT) < 0.8)
    rows["ill"] = rows["ill"].astype(object).where(draws.random(COUNT) < 0.8, None)
    text = study_text(
        unit='neighbours = "replace"',
        budget="epsilon = 1000.0\ndelta = 1e-7",
        parties=PARTIES,
        columns=with_level,
        protocol='method = "learn"\nlabel = "stage"\npositive = "late"\nfeatures = ["weight", "ill", "pressure"]',
    )
    model = simulate(Study.loads(text), {"a": rows[: COUNT // 2], "b": rows[COUNT // 2 :]}, seed=1).model
    known = model.coefficients.to_pydict()
    of = dict(zip(known["feature"], known["coefficient"], strict=True))
    for weight, ill in ((90.05, True), (110.05, False), (None, True), (100.05, None), (None, None)):
        score = of["(intercept)"] + of["pressure=(missing)"]
        score += of["weight=(missing)"] if weight is None else weight * of["weight"]
        score += of["ill=(missing)"] if ill is None else ill * of["ill"]
        chance = model.predict_proba({"weight": [weight], "ill": [ill], "pressure": [None]})[0, 1]
        assert 1 / (1 + np.exp(-score)) == pytest.approx(chance, abs=1e-3), (weight, ill)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_several_classes_and_clipped_rows(loss: str) -> None:
    rows = frame()
    release = released(f'label = "stage"\nloss = "{loss}"\niterations = 60\n')
    model, matrix = release.model, encoded(release, rows)
    assert model.classes == ("early", "middle", "late")
    assert 0 < model.shortening < 1
    assert model.coefficients.column_names == ["class", "feature", "coefficient", "scaled"]
    assert model.coefficients.num_rows == 3 * (1 + len(model.feature_names))
    chances = model.predict_proba(rows)
    assert chances.sum(axis=1) == pytest.approx(1)
    plain = LogisticRegression(C=1e5 / COUNT, fit_intercept=False, max_iter=2000)
    codes = np.array([model.classes.index(each) for each in rows["stage"]])
    assert (model.predict(rows) == np.array(model.classes)[plain.fit(matrix, codes).predict(matrix)]).mean() > 0.95


def test_ridge_on_clipped_rows_is_that_of_scikit_learn() -> None:
    rows = frame()
    release = released('label = "pressure"\nloss = "ridge"\niterations = 60\n')
    matrix = encoded(release, rows)
    other = Ridge(alpha=1e-5 * COUNT, fit_intercept=False).fit(matrix, (rows["pressure"] - 100) / 100)
    # with four seeds the noise of sixty rounds moved no prediction by more than 2.8
    assert release.model.predict(rows) == pytest.approx(100 + 100 * other.predict(matrix), abs=4.0)


def test_one_class_of_several_against_the_others() -> None:
    release = released('label = "stage"\npositive = "late"\n')
    assert release.model.classes == ("not late", "late")
    assert set(release.model.predict(frame())) <= {"not late", "late"}
    assert (release.model.predict_proba(frame())[:, 1] > 0.5).tolist() == [
        each == "late" for each in release.model.predict(frame())
    ]


def test_hinge_has_no_probabilities() -> None:
    release = released(f'label = "ill"\nloss = "hinge"\niterations = 4\n{NUMBERS}')
    assert release.model.predict(frame()).dtype == np.bool_
    with pytest.raises(InputError, match="loss hinge has no probabilities"):
        release.model.predict_proba(frame())
