"""Models in the manner of scikit-learn on a published Gram matrix."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LinearRegression
from sklearn.utils.validation import check_is_fitted

from consoles import Visitor
from syndic import Study, simulate
from syndic.cli.study import facts_of
from syndic.errors import InputError
from syndic.federation.coordinator import Coordinator
from syndic.model.gram.matrix import GramMatrix
from syndic.report import coefficient_tables, report
from syndic.sklearn import GramClassifier, GramRegression
from syndic.study import Release

COUNT = 6000
STUDY = f"""
name = "regression"
[unit]
neighbours = "replace"
[budget]
epsilon = 10.0
delta = 1e-7
[protocol]
method = "gram"
products = [["dose", "ward"]]
[[parties]]
name = "clinic"
people = {COUNT}
columns = ["dose", "ward"]
[[parties]]
name = "laboratory"
people = {COUNT}
columns = ["result", "positive"]
[[schema.columns]]
name = "dose"
kind = "real"
lower = 0.0
upper = 20.0
bins = 400
missing = {{ value = 0.0 }}
[[schema.columns]]
name = "ward"
kind = "categorical"
values = ["a", "b", "c"]
outside = {{ value = "a" }}
missing = {{ value = "a" }}
[[schema.columns]]
name = "result"
kind = "real"
lower = 0.0
upper = 100.0
bins = 1000
missing = {{ value = 50.0 }}
[[schema.columns]]
name = "positive"
kind = "boolean"
missing = {{ value = false }}
"""


def table(seed: int, count: int = COUNT) -> pa.Table:
    generator = np.random.default_rng(seed)
    dose, ward = generator.uniform(0, 20, count), generator.choice(["a", "b", "c"], count)
    result = np.clip(20 + 2 * dose + 10 * (ward == "b") + generator.normal(0, 5, count), 0, 100)
    return pa.table(
        {"dose": dose, "ward": ward, "result": result, "positive": result + generator.normal(0, 8, count) > 45}
    )


@pytest.fixture(scope="module")
def release() -> Release:
    rows = table(1)
    sources = {"clinic": rows.select(["dose", "ward"]), "laboratory": rows.select(["result", "positive"])}
    return simulate(Study.loads(STUDY), sources, seed=5)


def test_coefficients_are_near_those_of_the_rows(release: Release) -> None:
    model = GramRegression("result", features=["dose", "ward=b", "ward=c"]).fit(release)
    rows = table(1)
    ward = np.array(rows["ward"].to_pylist())
    x = np.column_stack([rows["dose"], ward == "b", ward == "c"]).astype(float)
    best = LinearRegression().fit(x, np.asarray(rows["result"]))
    errors = model.inference_.standard_errors()
    assert np.all(np.abs(model.coef_ - best.coef_) < 6 * errors[1:])
    assert abs(model.intercept_ - best.intercept_) < 6 * errors[0]
    bounds = model.inference_.intervals(0.999999)
    assert np.all((bounds[:, 0] < [20, 2, 10, 0]) & (bounds[:, 1] > [20, 2, 10, 0]))
    assert model.statement_.epsilon == pytest.approx(10)


def test_a_table_and_a_matrix_are_predicted_alike(release: Release) -> None:
    model = GramRegression("result", features=["dose", "ward=b"]).fit(release)
    rows = table(2, 500)
    matrix = np.column_stack([rows["dose"], np.array(rows["ward"].to_pylist()) == "b"]).astype(float)
    # a table goes through the schema's bins, 0.05 wide
    assert np.abs(model.predict(rows) - model.predict(matrix)).max() < 0.1
    assert np.allclose(model.predict(matrix), np.clip(model.intercept_ + matrix @ model.coef_, 0, 100))
    assert model.score(rows, rows["result"].to_numpy()) > 0.75
    assert model.predict(rows.to_pandas()).shape == (500,)


def test_products_are_made_from_the_columns(release: Release) -> None:
    model = GramRegression("result").fit(release)
    assert "dose*ward=b" in model.feature_names_in_
    assert model.n_features_in_ == len(model.coef_)
    assert "positive" in model.feature_names_in_
    assert model.score(table(3), table(3)["result"].to_numpy()) > 0.8


def test_the_model_of_a_release_fits_any_label(release: Release, tmp_path: Path) -> None:
    rows = table(2, 500)
    chosen = ["dose", "ward=b"]
    model = release.model.regression("result", features=chosen)
    same = GramRegression("result", features=chosen).fit(release)
    assert np.array_equal(model.predict(rows), same.predict(rows))
    assert np.array_equal(model.predict(rows.to_pydict()), same.predict(rows))
    found = model.coefficients_.to_pydict()
    assert found["feature"] == ["(intercept)", *chosen]
    assert found["coefficient"] == pytest.approx([same.intercept_, *same.coef_])
    # dose spans 20, result 100: a scaled coefficient is per half of the one, in halves of the other
    assert found["scaled"][1] == pytest.approx(found["coefficient"][1] * 10 / 50)
    assert np.array_equal(release.model.predict("result", rows), GramRegression("result").fit(release).predict(rows))
    assert release.model.coefficients("result")["feature"].to_pylist()[0] == "(intercept)"
    odds = release.model.classifier("positive", features=["result"])
    assert odds.coefficients_["coefficient"].to_pylist() == pytest.approx([odds.intercept_[0], odds.coef_[0, 0]])
    assert {"dose", "ward=a", "result", "positive", "dose*ward=b"} <= set(release.model.feature_names)
    page = report(release, tmp_path / "report.html").read_text()
    wanted = GramRegression("result").fit(release)
    assert "Regressions from the matrix" in page
    known = wanted.inference_
    assert known.reliable
    place = known.names.index("dose")
    low, high = known.intervals()[place]
    shown = f"{known.estimates()[place]:.4g} [{low:.4g}, {high:.4g}]"
    assert shown in page
    (grid,) = coefficient_tables(release)
    assert dict(zip(grid.head, next(row for row in grid.rows if row[0] == "dose"), strict=True))["result"] == shown


def test_a_categorical_column_stands_for_all_its_levels(release: Release) -> None:
    named = GramRegression("result", features=["dose", "ward"]).fit(release)
    assert named.feature_names_in_.tolist() == ["dose", "ward=b", "ward=c"]
    one_by_one = GramRegression("result", features=["dose", "ward=b", "ward=c"]).fit(release)
    assert np.array_equal(named.coef_, one_by_one.coef_)
    with pytest.raises(InputError, match="none twice"):
        GramRegression("result", features=["ward", "ward=b"]).fit(release)
    with pytest.raises(InputError, match="no feature 'world'"):
        GramRegression("result", features=["world"]).fit(release)


def test_console_and_command_line_show_coefficients(release: Release, tmp_path: Path) -> None:
    (grid,) = coefficient_tables(release)
    assert facts_of(release, [])["coefficients"] == [{"head": grid.head, "rows": grid.rows}]
    Coordinator.create(tmp_path / "federation", name="health", host="127.0.0.1", port=1)
    release.write(tmp_path / "federation" / "releases" / "gram")
    page = Visitor(tmp_path / "federation").get("/releases/gram")
    assert all(text in page for text in ("<h2>Coefficients</h2>", grid.rows[0][1]))


def test_a_classifier(release: Release) -> None:
    model = GramClassifier("positive", features=["dose", "ward=b", "ward=c"]).fit(release)
    rows = table(4)
    truth = rows["positive"].to_numpy(zero_copy_only=False)
    assert model.score(rows, truth) > 0.75
    likely = model.predict_proba(rows)
    assert np.allclose(likely.sum(axis=1), 1)
    # of those who get a probability near one half about half are positive
    near = np.abs(likely[:, 1] - 0.5) < 0.1
    assert abs(truth[near].mean() - 0.5) < 0.1
    assert model.classes_.tolist() == [False, True]
    matrix = np.array([[3.0, 1.0, 0.0], [18.0, 0.0, 0.0]])
    odds = model.intercept_ + matrix @ model.coef_[0]
    assert np.allclose(model.predict_proba(matrix)[:, 1], 1 / (1 + np.exp(-odds)))


def test_rows_that_were_shortened_are_so_again() -> None:
    text = STUDY.replace('products = [["dose", "ward"]]', 'norm = 0.5\nexempt = ["result"]')
    kind = 'kind = "real"\nlower = 0.0\nupper = 20.0\nbins = 400\nmissing = {{ value = 0.0 }}\n'
    more = '[[schema.columns]]\nname = "{}"\n' + kind
    text = (
        text.replace('["dose", "ward"]', '["dose", "ward", "more", "most"]') + more.format("more") + more.format("most")
    )
    study, rows = Study.loads(text), table(1)
    rows = rows.append_column("more", rows["dose"]).append_column("most", rows["dose"])
    sources = {party.name: rows.select(list(party.columns or ())) for party in study.parties}
    model = GramRegression("result", features=["dose"]).fit(simulate(study, sources, seed=5))
    doses = pa.table({name: [0.0, 5.0, 10.0, 20.0] for name in ("dose", "more", "most")})
    likewise = doses.append_column("ward", pa.array(["a"] * 4))
    # three equal columns, squares of one half each at most: 0.71 of the way from the middle to a bound
    z = np.clip(np.array([0.025, 5.025, 10.025, 19.975]) / 10 - 1, -(0.5**0.5), 0.5**0.5)
    wanted = 50 + 50 * (model.model_.intercept + z * model.model_.coefficients[0])
    assert np.allclose(model.predict(likewise), wanted, atol=0.2)


def test_scikit_learn_takes_them_for_its_own(release: Release) -> None:
    model = GramRegression("result", alpha=1.0)
    copy = clone(model)
    assert copy.get_params() == model.get_params() == {"label": "result", "features": None, "alpha": 1.0}
    assert copy.set_params(alpha="adassp").alpha == "adassp"
    assert is_regressor(model)
    assert is_classifier(GramClassifier("positive"))
    check_is_fitted(copy.fit(release.result))
    assert repr(model) == "GramRegression(label='result', alpha=1.0)"


def test_a_bare_matrix_knows_no_schema() -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    gram = GramMatrix.of(np.column_stack([rows, 0.5 * rows[:, 0]]), ["a", "b", "y"])
    model = GramRegression("y").fit(gram)
    assert np.allclose(model.predict(rows), 0.5 * rows[:, 0])
    assert not hasattr(model, "statement_")
    with pytest.raises(InputError, match="fitted without a release"):
        model.predict(pa.table({"a": [1.0], "b": [1.0]}))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: GramRegression().fit(GramMatrix.of(np.zeros((3, 1)), ["a"])), "label is missing"),
        (lambda: GramRegression("a").fit(np.zeros((3, 1))), "a release of the method gram"),
        (lambda: GramRegression("a").fit(GramMatrix.of(np.zeros((3, 1)), ["a"]), [1]), "y must be None"),  # type: ignore[arg-type]
        (lambda: GramRegression("a").predict(np.zeros((3, 1))), "not fitted: call fit"),
        (lambda: GramRegression("a").set_params(ridge=1), "unknown parameter 'ridge'"),
        (
            lambda: GramRegression("a").fit(GramMatrix.of(np.eye(3)[:, :2], ["a", "b"])).predict(np.zeros((3, 4))),
            "rows must have 1 columns",
        ),
    ],
)
def test_what_cannot_be_is_refused(call: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        call()
