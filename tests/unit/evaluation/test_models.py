"""Regressions, propensities and predictions against closed forms and scikit-learn."""

from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from syndic.data import Boolean, Categorical, Coded, Instead, Integer, Real, Schema
from syndic.errors import InputError
from syndic.evaluation.features import design, middle_of
from syndic.evaluation.prediction import calibration_error, chance_scores, predictions, task_of
from syndic.evaluation.regression import (
    Fit,
    coefficient_overlap,
    interval_overlap,
    linear,
    logistic,
    logistic_ratio,
    pmse,
    predicted,
    tree_ratio,
)

SCHEMA = Schema(
    columns=(
        Real(name="x", lower=0.0, upper=10.0, bins=10, missing=Instead(value=0.0)),
        Categorical(name="g", values=("u", "v", "w"), outside=Instead(value="u"), missing=Instead(value="u")),
        Boolean(name="y", missing=Instead(value=False)),
        Integer(name="z", lower=0, upper=19, missing=Instead(value=0)),
    )
)


def people(count: int, seed: int, *, effect: float = 1.0) -> Coded:
    """Return rows where y and z follow x and g."""
    draws = np.random.default_rng(seed)
    x, g = draws.integers(0, 10, count), draws.integers(0, 3, count)
    chance = 1 / (1 + np.exp(-effect * (0.5 * (x - 4.5) + (g == 1))))
    z = np.clip(np.round(x * effect + 2 * g + draws.normal(0, 1, count)), 0, 19).astype(int)
    codes: Any = {"x": x, "g": g, "y": (draws.random(count) < chance).astype(int), "z": z}
    return {name: values.astype(np.uint8) for name, values in codes.items()}


def test_features_are_bin_middles_and_indicators() -> None:
    codes = people(50, 1)
    built = design(SCHEMA, ["x", "g"], codes, drop_first=True)
    assert built.names == ("x", "g v", "g w")
    middles = codes["x"] + 0.5
    assert built.values[:, 0] == pytest.approx(middles / 5 - 1)
    assert (built.values[:, 1] == (codes["g"] == 1)).all()
    assert design(SCHEMA, ["g"], codes, drop_first=False).values.sum(axis=1).tolist() == [1] * 50


def test_missing_has_its_own_indicator_and_no_number() -> None:
    column = Integer(name="n", lower=10, upper=19, bins=5)
    schema = Schema(columns=(column,))
    codes: Coded = {"n": np.array([0, 4, 5], dtype=np.uint8)}
    assert middle_of(column, codes["n"])[:2].tolist() == [10.5, 18.5]
    assert np.isnan(middle_of(column, codes["n"])[2])
    built = design(schema, ["n"], codes, drop_first=True)
    assert built.names == ("n", "n missing")
    assert built.values[2].tolist() == [0, 1]


def test_many_levels_become_groups() -> None:
    schema = Schema(columns=(Categorical(name="c", values=tuple(map(str, range(200))), missing=Instead(value="0")),))
    codes: Coded = {"c": np.arange(200, dtype=np.uint8)}
    built = design(schema, ["c"], codes, drop_first=False)
    assert built.values.shape == (200, 64)
    assert built.values.sum(axis=1).tolist() == [1] * 200


def constant(values: Any) -> Any:
    return np.column_stack([np.ones(len(values)), values])


def test_linear_fit_is_that_of_scipy_and_scikit_learn() -> None:
    draws = np.random.default_rng(1)
    x = draws.normal(size=200)
    y = 2 * x + 1 + draws.normal(size=200)
    fit, oracle = linear(constant(x), y), stats.linregress(x, y)
    assert fit.coefficients == pytest.approx([oracle.intercept, oracle.slope])
    assert fit.errors == pytest.approx([oracle.intercept_stderr, oracle.stderr])
    many = draws.normal(size=(200, 4))
    model = LinearRegression().fit(many, y)
    assert linear(constant(many), y).coefficients == pytest.approx([model.intercept_, *model.coef_])


def test_logistic_fit_is_that_of_scikit_learn() -> None:
    codes = people(2000, 1)
    features = design(SCHEMA, ["x", "g"], codes, drop_first=True).values
    model = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000).fit(features, codes["y"])
    fit = logistic(constant(features), codes["y"].astype(float))
    assert fit.coefficients == pytest.approx([*model.intercept_, *model.coef_[0]], abs=1e-4)
    chances = model.predict_proba(features)[:, 1]
    assert predicted(constant(features), fit.coefficients) == pytest.approx(chances, abs=1e-5)
    information = (constant(features) * (chances * (1 - chances))[:, None]).T @ constant(features)
    assert fit.errors == pytest.approx(np.sqrt(np.diag(np.linalg.inv(information))), rel=1e-3)


def test_separated_groups_do_not_break_the_fit() -> None:
    features = constant(np.repeat([0.0, 1.0], 50))
    fit = logistic(features, np.repeat([0.0, 1.0], 50))
    assert np.isfinite(fit.coefficients).all()
    assert fit.coefficients[1] > 5


def fit_of(centre: float, half: float) -> Fit:
    """Return a fit with one coefficient whose 95 % interval is centre +- half."""
    return Fit(np.array([centre]), np.array([half / stats.norm.ppf(0.975)]))


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ((0, 1), (0, 1), 1.0),
        ((0, 1), (1, 1), 0.5),  # half of each
        ((0, 1), (0, 2), (1 + 0.5) / 2),  # all of one, half of the other
        ((0, 1), (5, 1), 0.0),
        ((0, 2), (2, 1), (1 / 4 + 1 / 2) / 2),  # [1, 2] of [-2, 2] and of [1, 3]
    ],
)
def test_interval_overlap_by_hand(one: tuple[float, float], other: tuple[float, float], wanted: float) -> None:
    assert interval_overlap(fit_of(*one), fit_of(*other))[0] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("target", ["y", "z", "g"])
def test_overlap_is_one_on_a_copy_and_falls_with_the_effect(target: str) -> None:
    real = people(4000, 1)
    same = coefficient_overlap(SCHEMA, target, real, real)
    assert same is not None
    assert (same.mean, same.worst, same.difference) == pytest.approx((1, 1, 0))
    assert same.same_sign == 1
    fresh, weak = (coefficient_overlap(SCHEMA, target, real, people(4000, 2, effect=effect)) for effect in (1.0, 0.2))
    assert fresh is not None
    assert weak is not None
    assert fresh.mean > 0.5 > weak.mean
    assert weak.difference > 3 > fresh.difference


def test_overlap_says_which_regression_it_is() -> None:
    real = people(500, 1)
    frequent = int(np.bincount(real["g"]).argmax())
    overlaps = [coefficient_overlap(SCHEMA, name, real, real) for name in ("g", "z")]
    assert [one.regression for one in overlaps if one] == [
        f"logistic regression of g = {'uvw'[frequent]}",
        "linear regression of z",
    ]


def test_overlap_needs_rows() -> None:
    real, few = people(500, 1), people(3, 2)
    assert coefficient_overlap(SCHEMA, "z", real, few) is None
    assert coefficient_overlap(SCHEMA, "z", few, real) is None
    assert coefficient_overlap(SCHEMA, "z", real, people(0, 2)) is None


def test_pmse_is_the_direct_formula() -> None:
    real, other = people(600, 1), people(400, 2, effect=0.3)
    features = np.vstack([design(SCHEMA, SCHEMA.names, codes, drop_first=True).values for codes in (real, other)])
    labels = np.repeat([0, 1], [600, 400])
    chances = LogisticRegression(C=1e10, tol=1e-10, max_iter=2000).fit(features, labels).predict_proba(features)[:, 1]
    direct = sum((chance - 0.4) ** 2 for chance in chances) / 1000
    assert pmse(chances, 0.4) == pytest.approx(direct)
    parameters = features.shape[1]  # besides the constant; none is a copy of others
    expected = parameters * 0.4 * 0.6 / 1000
    assert logistic_ratio(SCHEMA, real, other) == pytest.approx(direct / expected, rel=1e-3)


def test_expected_null_is_the_mean_over_permutations() -> None:
    both = people(600, 1)
    draws = np.random.default_rng(1)
    ratios = []
    for _ in range(200):
        order = draws.permutation(600)
        parts = [{name: codes[chosen] for name, codes in both.items()} for chosen in (order[:200], order[200:])]
        ratios.append(logistic_ratio(SCHEMA, *parts))
    # ratios are about chi squared over 5 degrees of freedom: sd sqrt(2 / 5), 200 draws
    assert np.mean(np.array(ratios, dtype=float)) == pytest.approx(1, abs=6 * np.sqrt(2 / 5 / 200))


def test_trees_see_what_goes_together_and_main_effects_do_not() -> None:
    real = people(3000, 1)
    draws = np.random.default_rng(5)
    shuffled: Coded = {name: draws.permutation(codes) for name, codes in real.items()}
    logistic_score, tree_score = logistic_ratio(SCHEMA, real, shuffled), tree_ratio(SCHEMA, real, shuffled, seed=1)
    assert logistic_score == pytest.approx(0, abs=1e-6)  # the same columns one by one
    assert tree_score is not None
    assert tree_score > 2
    fresh = tree_ratio(SCHEMA, real, people(3000, 2), seed=1)
    assert fresh == pytest.approx(1, abs=0.25)


def test_a_tree_on_a_copy_does_no_better_than_chance() -> None:
    real = people(1000, 1)
    same = tree_ratio(SCHEMA, real, real, seed=1)
    assert same is not None
    assert same < 1


def test_ratios_need_rows() -> None:
    real = people(500, 1)
    for few in (people(0, 1), people(2, 1)):
        assert logistic_ratio(SCHEMA, few, few) is None
        assert tree_ratio(SCHEMA, few, few, seed=1) is None
    assert logistic_ratio(SCHEMA, real, people(0, 1)) is None


def test_predictions_are_those_of_scikit_learn() -> None:
    training, test = people(1500, 1), people(800, 2)
    found = {one.model: one for one in predictions(SCHEMA, "y", training, test, seed=1, full=True)}
    names = ["x", "g", "z"]
    features, questions = (design(SCHEMA, names, codes, drop_first=False).values for codes in (training, test))
    model = LogisticRegression(max_iter=500).fit(features, training["y"])
    assert found["logistic regression"].score == model.score(questions, test["y"])
    answers = model.predict(questions)
    balanced = np.mean([(answers[test["y"] == level] == level).mean() for level in (0, 1)])
    assert found["logistic regression"].second == pytest.approx(balanced)
    assert list(found) == ["gradient boosting", "logistic regression", "random forest"]
    chances = model.predict_proba(questions)
    scored = found["logistic regression"].chances
    assert scored is not None
    assert scored.auc == pytest.approx(roc_auc_score(test["y"], chances[:, 1]))
    assert scored.log_loss == pytest.approx(log_loss(test["y"], chances))
    assert scored.brier == pytest.approx(brier_score_loss(test["y"], chances[:, 1]))
    boosted = found["gradient boosting"].chances
    assert boosted is not None
    assert boosted.auc == pytest.approx(scored.auc, abs=0.05)


def test_chances_of_several_classes() -> None:
    draws = np.random.default_rng(1)
    chances = draws.dirichlet(np.ones(3), 2000)
    truth = np.array([draws.choice(3, p=row) for row in chances])
    found = chance_scores(chances, truth)
    assert found.auc == pytest.approx(roc_auc_score(truth, chances, multi_class="ovr", average="weighted"))
    assert found.log_loss == pytest.approx(log_loss(truth, chances))
    assert found.accuracy == pytest.approx((chances.argmax(axis=1) == truth).mean())
    # drawn from the probabilities themselves, so calibrated up to chance
    assert found.calibration_error < 0.03
    # a class that does not occur has no weight; one that is certain and wrong has a finite loss
    assert chance_scores(np.eye(3)[truth], truth).auc == 1
    assert chance_scores(np.eye(3)[[1, 1]], np.array([0, 0])).log_loss == pytest.approx(np.log(1e6))
    assert chance_scores(np.eye(3)[[1, 1]], np.array([0, 0])).auc is None


def test_calibration_error_by_hand() -> None:
    chances, truth = np.array([0.92, 0.94, 0.15, 0.15]), np.array([True, False, False, False])
    # bin 0.9: predicted 1.86, observed 1; bin 0.1: predicted 0.3, observed 0
    assert calibration_error(chances, truth) == pytest.approx((0.86 + 0.3) / 4)
    assert calibration_error(np.array([1.0, 0.0]), np.array([True, False])) == 0


def test_boosting_takes_missing_values_and_many_levels() -> None:
    schema = Schema(
        columns=(
            Integer(name="n", lower=0, upper=9),
            Categorical(name="c", values=tuple(map(str, range(600))), missing=Instead(value="0")),
            Boolean(name="y", missing=Instead(value=False)),
        )
    )
    draws = np.random.default_rng(1)
    codes: Coded = {
        "n": draws.integers(0, 11, 3000).astype(np.uint8),
        "c": draws.integers(0, 600, 3000).astype(np.uint16),
    }
    codes["y"] = (codes["n"] > 4).astype(np.uint8)
    (found,) = predictions(schema, "y", codes, codes, seed=1)
    assert found.score == 1


@pytest.mark.parametrize("target", ["y", "m"])
def test_a_column_that_no_training_row_has_tells_nothing(target: str) -> None:
    numbers = (Integer(name="n", lower=0, upper=9), Integer(name="m", lower=0, upper=9))
    schema = Schema(columns=(*numbers, Boolean(name="y", missing=Instead(value=False))))
    draws = np.random.default_rng(1)
    test: Coded = {name: draws.integers(0, levels, 200).astype(np.uint8) for name, levels in (("n", 11), ("m", 10))}
    test["y"] = (test["m"] > 4).astype(np.uint8)
    without = {**test, "n": np.zeros(200, dtype=np.uint8)}
    expected = predictions(schema, target, without, without, seed=1, full=True)
    training = {**test, "n": np.full(200, 10, dtype=np.uint8)}
    assert predictions(schema, target, training, test, seed=1)[0] == expected[0]
    assert len(predictions(schema, target, training, test, seed=1, full=True)) == 3


def test_regression_is_scored_in_the_targets_unit() -> None:
    training, test = people(3000, 1), people(1000, 2)
    found = {one.model: one for one in predictions(SCHEMA, "z", training, test, seed=1, full=True)}
    # z follows x and g up to noise of sd 1, which no model can explain
    for one in found.values():
        assert 0.9 < one.second < 1.3
        assert one.metric == "R squared"
        assert one.score == pytest.approx(1 - one.second**2 / np.var(test["z"].astype(float)))


def test_one_class_is_predicted_as_such() -> None:
    training, test = people(100, 1), people(400, 2)
    training = {**training, "y": np.ones(100, dtype=np.uint8)}
    for one in predictions(SCHEMA, "y", training, test, seed=1, full=True):
        assert one.score == pytest.approx(float(test["y"].mean()))
        assert one.second == 0.5
    assert predictions(SCHEMA, "y", people(0, 1), test, seed=1) == ()


def test_task_follows_the_column() -> None:
    assert [task_of(SCHEMA, name) for name in ("y", "g", "z")] == ["classification", "classification", "regression"]
    with pytest.raises(InputError, match="'w' is not a column"):
        task_of(SCHEMA, "w")
    with pytest.raises(InputError, match="only column"):
        task_of(SCHEMA.select(["y"]), "y")
