"""Linear, logistic and Poisson regression from noisy sums of the outcome in groups with the same regressors.

Standard errors are robust (Huber and White): they do not rest on the variance that a model claims. With N, A and B the
number of people of a group, their sum of outcomes and of squared outcomes, the score is sum x (A - N m(x'b)), its
sampling covariance sum x x' (B - 2 m A + m^2 N), and its derivatives by A and N give that of the noise.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final, Literal, final

import numpy as np

from syndic.model.describe.sums import CLEAR, Floats, Statistic, statistic_of
from syndic.model.interval.measured import NoValueError
from syndic.model.interval.regression import inverse_of

Kind = Literal["linear", "logistic", "poisson"]

_STEPS: Final = 60
_LONGEST: Final = 2.0
_CLOSE: Final = 1e-10
_MOST: Final = 30.0


@final
@dataclass(frozen=True, eq=False)
class Fitted:
    """Coefficients, the covariance of their error by sampling, and in all; `hidden` are not known for the noise."""

    coefficients: Floats
    sampling: Floats
    covariance: Floats
    hidden: tuple[bool, ...]

    def statistic(self, place: int, *, exponential: bool) -> Statistic:
        """Return a coefficient with its interval, or its exponential: an odds ratio or a ratio of rates."""
        value, error = float(self.coefficients[place]), sqrt(max(float(self.covariance[place, place]), 0.0))
        if self.hidden[place] or error == 0:
            return Statistic()
        sampled = sqrt(max(float(self.sampling[place, place]), 0.0))
        return statistic_of(value, error, error / sampled if sampled > 0 else None, logarithm=exponential)


@np.errstate(all="ignore")
def regression(kind: Kind, cells: Floats, noise: Floats, design: Floats, repeated: int = 1) -> Fitted | None:
    """Fit the outcome's mean to the regressors in the rows of `design`; None if the noise leaves nothing to fit.

    `cells`: number of people, sum of the outcome and of its square, for each row of `design`; `noise`: the covariance
    of the noise of these three.
    """
    scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
    x = design / scale
    people, total, squares = cells.T
    try:
        weights = _solved(kind, x, people, total)
        expected, slopes = _link(kind, x @ weights)
        inverse = inverse_of((x * (people * slopes)[:, None]).T @ x)
    except NoValueError:
        return None
    spread = squares - 2 * expected * total + expected**2 * people
    meat = repeated * _positive((x * spread[:, None]).T @ x)
    off = noise[1, 1] - 2 * expected * noise[0, 1] + expected**2 * noise[0, 0]
    sampling, noisy = (inverse @ each @ inverse / np.outer(scale, scale) for each in (meat, (x * off[:, None]).T @ x))
    return Fitted(weights / scale, sampling, sampling + noisy, _hidden(kind, x, cells, noise))


def _hidden(kind: Kind, x: Floats, cells: Floats, noise: Floats) -> tuple[bool, ...]:
    """Return which coefficients the noise hides: their divisor is not clear of 0 if nothing differs.

    The divisor is the variation of the regressor that the others do not explain. With the outcomes of single groups it
    would be clear where noise made these large, and the coefficients shown would be too large.
    """
    people, total, _ = cells.sum(axis=0)
    expected = np.full(len(x), total / people)
    slopes = expected * (1 - expected if kind == "logistic" else 1.0) if kind != "linear" else np.ones(len(x))
    try:
        inverse = inverse_of((x * (cells[:, 0] * slopes)[:, None]).T @ x)
    except NoValueError:
        return (True,) * len(x.T)
    known = 1 / np.diag(inverse)
    error = np.sqrt(_of_weights(kind, expected, noise) @ (x @ inverse * known) ** 4)
    clear: list[bool] = (known >= CLEAR * error).tolist()
    return tuple(not one for one in clear)


def _solved(kind: Kind, x: Floats, people: Floats, total: Floats) -> Floats:
    """Return the root of the score by Newton's method."""
    if kind == "linear":
        return inverse_of((x * people[:, None]).T @ x) @ (x.T @ total)
    weights = np.zeros(x.shape[1])
    share = total.sum() / max(people.sum(), 1e-300)
    if share <= 0 or (kind == "logistic" and share >= 1):
        raise NoValueError("the outcome is the same for everybody")
    weights[0] = np.log(share) if kind == "poisson" else np.log(share / (1 - share))
    for _ in range(_STEPS):
        expected, slopes = _link(kind, x @ weights)
        step = inverse_of((x * (people * slopes)[:, None]).T @ x) @ (x.T @ (total - people * expected))
        longest = float(np.abs(step).max())
        weights = weights + step * min(1.0, _LONGEST / max(longest, 1e-300))
        if longest < _CLOSE and np.abs(x @ weights).max() < _MOST:
            return weights
        if longest < _CLOSE:
            break
    raise NoValueError("the regression has no finite coefficients")


def _link(kind: Kind, linear: Floats) -> tuple[Floats, Floats]:
    """Return the outcome's mean and its derivative."""
    if kind == "linear":
        return linear, np.ones(linear.shape)
    clipped = np.clip(linear, -_MOST, _MOST)
    if kind == "poisson":
        return np.exp(clipped), np.exp(clipped)
    chance = 1 / (1 + np.exp(-clipped))
    return chance, chance * (1 - chance)


def _of_weights(kind: Kind, expected: Floats, noise: Floats) -> Floats:
    """Return the variance of each group's weight in the fit: its people, sum of outcomes, or A (1 - A / N)."""
    of_people, of_total = {
        "linear": (np.ones(expected.shape), np.zeros(expected.shape)),
        "poisson": (np.zeros(expected.shape), np.ones(expected.shape)),
        "logistic": (expected**2, 1 - 2 * expected),
    }[kind]
    return np.asarray(of_people**2 * noise[0, 0] + 2 * of_people * of_total * noise[0, 1] + of_total**2 * noise[1, 1])


def _positive(matrix: Floats) -> Floats:
    """Return the nearest matrix that is a covariance: noise may have made one that is not."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
