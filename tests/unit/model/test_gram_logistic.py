"""Logistic models from second moments, held against scikit-learn on the rows themselves."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from syndic.data.coding import Feature
from syndic.errors import InputError
from syndic.model.gram.logistic import classify
from syndic.model.gram.matrix import GramMatrix, intercept, places_of

Numbers = NDArray[np.float64]
COUNT, WIDTH = 20_000, 5


def gram_of(x: Numbers, truth: NDArray[np.bool_], *, sign: bool = True, sigma: float = 0.0) -> GramMatrix:
    label = 2.0 * truth - 1 if sign else truth.astype(float)
    matrix = np.column_stack([np.ones(len(x)), x, label])
    features = (
        intercept(),
        *(Feature(name=f"x{place}", block=f"x{place}") for place in range(x.shape[1])),
        Feature(name="y", block="y", values="sign" if sign else "indicator"),
    )
    places = places_of(features)
    values = np.zeros(places.max() + 1)
    values[places[places >= 0]] = (matrix.T @ matrix)[places >= 0]
    noise = sigma * np.random.default_rng(9).standard_normal(len(values))
    return GramMatrix(features=features, rows=len(x), values=values + noise, sigma=sigma)


def drawn(law: str, size: float, start: float = 0.0) -> tuple[Numbers, NDArray[np.bool_]]:
    generator = np.random.default_rng(3)
    shape = (COUNT, WIDTH)
    x = {
        "normal": np.clip(generator.normal(0, 0.35, shape), -1, 1),
        "uniform": generator.uniform(-1, 1, shape),
        "skewed": 2 * generator.beta(1, 6, shape) - 1,
        "rare": np.where(generator.random(shape) < 0.2, 1.0, -1.0),
    }[law]
    weights = size * np.array([1.0, -0.8, 0.5, -0.3, 0.9])
    return x, generator.random(COUNT) < expit(start + (x - x.mean(axis=0)) @ weights)


@pytest.mark.parametrize("sign", [True, False])
def test_it_is_fishers_discriminant(sign: bool) -> None:
    x, truth = drawn("uniform", 1.0, -1.0)
    odds = classify(gram_of(x, truth, sign=sign), "y")
    fisher = LinearDiscriminantAnalysis().fit(x, truth)
    # the library divides the scatter by n - 2, we by n
    assert np.allclose(odds.coefficients, fisher.coef_[0], rtol=1e-3)
    assert odds.intercept == pytest.approx(fisher.intercept_[0], abs=1e-3)
    assert np.allclose(odds.probability(x), fisher.predict_proba(x)[:, 1], atol=1e-3)


@pytest.mark.parametrize(
    ("law", "size", "start", "most"),
    [
        ("normal", 1.0, 0.0, 0.001),
        ("normal", 3.0, -1.0, 0.01),
        ("uniform", 1.0, 0.0, 0.001),
        ("uniform", 1.5, -2.0, 0.01),
        ("skewed", 2.0, 0.0, 0.01),
        ("rare", 0.3, 0.0, 0.01),
        # rare binary features that nearly decide the class: second moments are not enough
        ("rare", 1.5, 0.0, 0.25),
    ],
)
def test_loss_beside_maximum_likelihood(law: str, size: float, start: float, most: float) -> None:
    x, truth = drawn(law, size, start)
    best = log_loss(truth, LogisticRegression(C=1e6).fit(x, truth).predict_proba(x)[:, 1])
    for sigma in (0.0, 3.73 * (WIDTH + 2)):
        loss = log_loss(truth, classify(gram_of(x, truth, sigma=sigma), "y").probability(x))
        assert best - 1e-5 < loss < (1 + most) * best + (0.002 if sigma else 0.0)


def test_hopeless_noise_still_gives_probabilities() -> None:
    x, truth = drawn("uniform", 1.0)
    likely = classify(gram_of(x[:50], truth[:50], sigma=1e4), "y").probability(x)
    assert np.isfinite(likely).all()
    assert ((likely >= 0) & (likely <= 1)).all()


def test_a_number_is_no_label() -> None:
    with pytest.raises(InputError, match="is a number"):
        classify(gram_of(*drawn("uniform", 1.0)), "x0")
