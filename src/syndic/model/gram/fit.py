"""Linear models from a noisy Gram matrix: with shrinkage for prediction, unbiased with intervals for inference.

*Shrinkage*. With centred sums C of the features, and centred sums g with the label, noise makes g differ from C w by
about s sqrt(1 + |w|^2) in every direction. First C itself is shrunk: a sum C_ij of two features with squares a and b is
taken to be normal of variance r^2 a b, where r is the size of correlations that explains the opened sums beyond their
noise; its posterior mean is kept, with a share q of the noise. Centring adds noise: with means m of the features and n
of the label, that of g has the covariance s^2 (1 + n^2) (I + m m'), so C and g are multiplied by (I + m m')^(-1/2).
Let l be the eigenvalues and V the directions of what is left. If coefficients are of size t, the best linear estimate
is V diag(l / (l^2 + k)) V'g, k = s^2 (1 + q d t^2) / t^2 (Tikhonov's filter). t is the value that makes the opened g
most likely. If noise is small this is least squares; directions with l below the noise are shrunk to zero, so negative
eigenvalues do no harm. At last all coefficients are multiplied by the chance that there is anything to learn, from the
mean likelihood over t against t = 0: where noise explains g, the prediction is the mean. Wang (2018) adds a ridge of
2 s sqrt(d) instead: see `regress`.

*Intervals*. Least squares w from the opened sums satisfies, to first order, w - w0 = H^-1 (N v + X'e): N is the noise
matrix, v = (-w, 1) over features and label, e the residuals. Both parts are known: N v is linear in the noise of the
opened values, and X'e has covariance (residual variance) H. Residuals are taken to have one variance, since second
moments contain no information about it. The approximation needs eigenvalues of H well above the noise, and rows that
were not clipped; `reliable` says whether this holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, final

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.data.coding import INTERCEPT
from syndic.errors import InputError
from syndic.model.gram.matrix import GramMatrix
from syndic.model.gram.moments import Moments, moments_of

Numbers = NDArray[np.float64]

# sizes of coefficients, squared, for features and labels of one variance
_SIZES: Final = np.exp(np.linspace(np.log(1e-3), np.log(3.0), 40)) ** 2
# odds against there being anything to learn, before the sums are seen
_ODDS: Final = 4.0
# smallest ratio of the least eigenvalue to the size of the noise matrix at which intervals have their stated coverage
_ABOVE_NOISE: Final = 2.0


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """A linear model of `label`; coefficients are for z in [-1, 1], `original` gives them in the columns' own units.

    `r_squared` is the explained share of the label's variance among the people in the data, estimated from the opened
    sums and corrected for fitting the noise; `r_squared_error` is the noise's part of its standard error.
    """

    gram: GramMatrix
    label: str
    features: tuple[str, ...]
    intercept: float
    coefficients: Numbers
    r_squared: float
    r_squared_error: float
    residual_variance: float

    def predict(self, rows: Numbers) -> Numbers:
        """Return the label's z for rows of the features' z, clipped to the label's bounds."""
        label = self.gram.features[self.gram.index(self.label)]
        return np.clip(self.intercept + rows @ self.coefficients, label.lower, label.upper)

    def original(self) -> tuple[float, Numbers]:
        """Return intercept and coefficients in the columns' own units."""
        matrix = in_own_units(self.gram, self.features)
        scaled = np.concatenate([[self.intercept], self.coefficients])
        target = self.gram.features[self.gram.index(self.label)]
        units = target.half * matrix @ scaled
        return float(target.middle + units[0]), units[1:]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Inference:
    """Least squares with the covariance of its error; the intercept is the first coefficient.

    `sampling` and `privacy` are covariances, for z in [-1, 1], of the sampling error and of the error due to the noise.
    """

    fit: Fit
    sampling: Numbers
    privacy: Numbers
    degrees: int
    reliable: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The intercept and the features."""
        return (INTERCEPT, *self.fit.features)

    def estimates(self) -> Numbers:
        """Return the coefficients in the columns' own units."""
        start, rest = self.fit.original()
        return np.concatenate([[start], rest])

    def standard_errors(self, part: str = "both") -> Numbers:
        """Return standard errors in the columns' own units, for `both` errors, or `sampling` or `privacy` alone."""
        covariances = {
            "both": self.sampling + self.privacy,
            "sampling": self.sampling,
            "privacy": self.privacy,
        }
        if part not in covariances:
            raise InputError(f"part ({part}) must be both, sampling or privacy")
        gram, label = self.fit.gram, self.fit.label
        matrix = gram.features[gram.index(label)].half * in_own_units(gram, self.fit.features)
        variances: Numbers = np.einsum("ij,jk,ik->i", matrix, covariances[part], matrix)
        return np.sqrt(np.maximum(variances, 0.0))

    def intervals(self, level: float = 0.95) -> Numbers:
        """Return a lower and an upper bound for each coefficient, in the columns' own units."""
        if not 0 < level < 1:
            raise InputError(f"level ({level}) must be in (0, 1)")
        reach = scipy.special.stdtrit(self.degrees, (1 + level) / 2) * self.standard_errors()
        return np.column_stack([self.estimates() - reach, self.estimates() + reach])


def regress(
    gram: GramMatrix, label: str, features: Sequence[str] | None = None, *, ridge: float | str = "adaptive"
) -> Fit:
    """Return a linear model for prediction.

    Args:
        gram: the opened sums.
        label: the feature to predict.
        features: those to predict it from, and columns for all their levels; by default all other columns. One level
            of each categorical column is left out.
        ridge: "adaptive" shrinks in proportion to the noise; "adassp" adds Wang's ridge; a number is added to every
            centred sum of squares, 0 for least squares.
    """
    chosen = _chosen(gram, label, features)
    moments = moments_of(gram, (*chosen, label))
    places = list(range(len(chosen)))
    square, cross = moments.centred[np.ix_(places, places)], moments.centred[places, -1]
    weights, trace = _adapted(square, cross, moments) if ridge == "adaptive" else _ridged(square, cross, moments, ridge)
    start = float(moments.means[-1]) - float(moments.means[:-1] @ weights)
    fitted = moments.sigma**2 * (1 + float(weights @ weights)) * trace
    return _fit(gram, label, chosen, np.concatenate([[start], weights]), moments, fitted)


def infer(gram: GramMatrix, label: str, features: Sequence[str] | None = None) -> Inference:
    """Return least squares with standard errors that include both sampling error and noise."""
    if gram.overlapping:
        raise InputError("people may be absent at some parties, so there are no intervals: use regress instead")
    chosen = _chosen(gram, label, features)
    if len(chosen) + 1 >= gram.rows:
        raise InputError(f"{len(chosen)} features cannot be fitted to {gram.rows} people")
    places = [gram.index(INTERCEPT), *(gram.index(name) for name in chosen)]
    square, cross = gram.matrix[np.ix_(places, places)], gram.matrix[places, gram.index(label)]
    inverse = np.asarray(np.linalg.pinv(square, hermitian=True), dtype=np.float64)
    weights = inverse @ cross
    vector = np.zeros(len(gram.features))
    vector[places], vector[gram.index(label)] = -weights, 1.0
    spread = gram.noise_map(places, vector)
    noise = gram.sigma**2 * spread @ spread.T
    degrees = gram.rows - len(places)
    # least squares also fits the noise, which makes the residuals smaller by this much
    fitted = float(np.trace(inverse @ noise))
    variance = max(float(vector @ gram.matrix @ vector) + fitted, 0.0) / degrees
    moments = moments_of(gram, (*chosen, label))
    least = np.linalg.eigvalsh(moments.centred[:-1, :-1])[0]
    return Inference(
        fit=_fit(gram, label, chosen, weights, moments, fitted),
        sampling=variance * inverse,
        privacy=inverse @ noise @ inverse,
        degrees=degrees,
        reliable=not gram.shortened and bool(least > gram.sigma * least_above_noise(len(chosen))),
    )


def least_above_noise(features: int) -> float:
    """Return how many times `sigma` the least eigenvalue of so many features must be for intervals."""
    return _ABOVE_NOISE * 2 * float(np.sqrt(features))


def _chosen(gram: GramMatrix, label: str, features: Sequence[str] | None) -> tuple[str, ...]:
    target = gram.features[gram.index(label)]
    if gram.rows < 1:
        raise InputError("this Gram matrix has no people")
    if features is not None:
        features = [name for each in features for name in _named(gram, each)]
        taken = [gram.features[gram.index(name)] for name in features]
        if any(each.block == target.block or each.ones == each.name for each in taken):
            raise InputError(f"features must be of other columns than the label {label!r}, and not the intercept")
    chosen = tuple(
        features
        if features is not None
        else (name for name in default_features(gram) if not _shares(gram, name, target.block))
    )
    if not chosen or len(set(chosen)) != len(chosen):
        raise InputError("features must name at least one feature, and none twice")
    return chosen


def _named(gram: GramMatrix, name: str) -> tuple[str, ...]:
    """Return the feature of this name, or for a categorical column its levels but the first, which the others give."""
    columns = {feature.block for feature in gram.features if feature.values == "indicator" and not feature.parts}
    if name in gram.names or name not in columns:
        return (name,)
    return tuple(each for each in default_features(gram) if gram.features[gram.index(each)].block == name)


def default_features(gram: GramMatrix) -> tuple[str, ...]:
    """Return all features except the ones and the first level of each categorical column, which follows from others."""
    levels: dict[str, list[str]] = {}
    mixed = {feature.block for feature in gram.features if feature.values != "indicator"}
    for feature in gram.features:
        if feature.block not in mixed and not feature.parts and feature.ones != feature.name:
            levels.setdefault(feature.block, []).append(feature.name)
    first = {names[0] for names in levels.values()}
    return tuple(
        feature.name
        for feature in gram.features
        if feature.ones != feature.name and not first & {feature.name, *feature.parts} and feature.name != INTERCEPT
    )


def _shares(gram: GramMatrix, name: str, block: str) -> bool:
    """Return whether a feature is derived from a column."""
    feature = gram.features[gram.index(name)]
    blocks = {gram.features[gram.index(part)].block for part in feature.parts}
    return block in {feature.block, *blocks}


def _ridged(square: Numbers, cross: Numbers, moments: Moments, ridge: float | str) -> tuple[Numbers, float]:
    """Return the coefficients with a ridge, and the trace of the matrix that maps `cross` to them."""
    sigma = moments.sigma
    values, vectors = np.linalg.eigh(square)
    values, turned = np.maximum(values, 0.0), vectors.T @ cross
    if ridge == "adassp":
        filtered = 1 / np.maximum(values + max(0.0, 2 * sigma * np.sqrt(len(values)) - float(values[0])), 1e-9)
    elif isinstance(ridge, str) or not 0 <= ridge < inf:
        raise InputError(f"the ridge ({ridge}) must be adaptive, adassp or a number of at least 0")
    else:
        filtered = np.where(values + ridge > 1e-9 * (1 + values[-1]), 1 / np.maximum(values + ridge, 1e-300), 0.0)
    return vectors @ (filtered * turned), float(filtered.sum())


def _shrunk(square: Numbers, sigma: float) -> tuple[Numbers, float]:
    """Return centred sums with smaller sums of two features, and the share of their noise that is left."""
    size = len(square)
    if size == 1:
        return square, 1.0
    apart = ~np.eye(size, dtype=bool)
    own, mean = np.diag(square), max(float(np.diag(square).mean()), sigma)
    # squares scatter around their mean, with noise of up to twice the variance on top
    scattered = max(float(own.var()) - 2 * sigma**2, 0.0)
    own = np.maximum(mean + (own - mean) * scattered / (scattered + 2 * sigma**2), 0.1 * mean)
    scale = np.outer(own, own)
    correlated = max(float((square[apart] ** 2 - sigma**2).sum()), 0.0) / float(scale[apart].sum())
    kept = correlated * scale / (correlated * scale + sigma**2)
    return np.where(apart, kept * square, np.diag(own)), float(kept[apart].mean())


def _adapted(square: Numbers, cross: Numbers, moments: Moments) -> tuple[Numbers, float]:
    """Return the coefficients of the most likely size, and the trace; none where noise explains the sums."""
    total, sigma, (*means, mean) = float(moments.centred[-1, -1]), moments.sigma, moments.means
    if sigma == 0:
        values, vectors = np.linalg.eigh(square)
        inverse = np.where(values > 1e-9 * (1 + values[-1]), 1 / np.maximum(values, 1e-300), 0.0)
        return vectors @ (inverse * (vectors.T @ cross)), float(inverse.sum())
    shrunk, left = _shrunk(square, sigma)
    even, sigma = _evened(np.array(means)), sigma * float(np.sqrt(1 + mean**2))
    values, vectors = np.linalg.eigh(even @ shrunk @ even)
    values, turned = np.maximum(values, 0.0), vectors.T @ (even @ cross)
    sizes = np.append(_SIZES * max(total, sigma) / max(float(np.diag(shrunk).mean()), sigma), 0.0)
    variances = values[:, None] ** 2 * sizes + sigma**2 * (1 + left * len(values) * sizes)
    likelihoods = -(np.log(variances) + turned[:, None] ** 2 / variances).sum(axis=0) / 2
    best = int(np.argmax(likelihoods[:-1]))
    evidence = float(np.exp(np.clip(likelihoods[:-1] - likelihoods[-1], -700, 700)).mean())
    filtered = evidence / (evidence + _ODDS) * values * sizes[best] / variances[:, best]
    mapped = even @ vectors
    return mapped @ (filtered * turned), float((filtered * (mapped**2).sum(axis=0)).sum())


def _evened(means: Numbers) -> Numbers:
    """Return (I + m m')^(-1/2), which makes noise equal in all directions."""
    square = float(means @ means)
    along = np.outer(means, means) / max(square, 1e-300)
    evened: Numbers = np.eye(len(means)) - (1 - 1 / np.sqrt(1 + square)) * along
    return evened


def _fit(
    gram: GramMatrix, label: str, features: tuple[str, ...], weights: Numbers, moments: Moments, fitted: float
) -> Fit:
    """Return the model; `fitted` is how much fitting the noise reduced its sum of squares."""
    slopes = weights[1:]
    vector = np.append(-slopes, 1.0)
    # once for the gain on the opened sums, once for the loss on the true ones
    residual = float(vector @ moments.centred @ vector) + 2 * fitted
    total = float(moments.centred[-1, -1])
    left = residual / total if total > 0 else 1.0
    # the noise of the label's own sum of squares affects both residual and total
    spread = gram.noise_weights(_placed(gram, (*features, label), vector))
    spread -= left * gram.noise_weights(_placed(gram, (label,), np.ones(1)))
    return Fit(
        gram=gram,
        label=label,
        features=features,
        intercept=float(weights[0]),
        coefficients=slopes,
        # noise can move it outside [0, 1]
        r_squared=float(np.clip(1 - left, 0.0, 1.0)),
        r_squared_error=gram.sigma * float(np.linalg.norm(spread)) / total if total > 0 else 1.0,
        residual_variance=max(residual, 0.0) / moments.rows,
    )


def _placed(gram: GramMatrix, names: Sequence[str], values: Numbers) -> Numbers:
    """Return a vector over all features with these values at the named features."""
    vector = np.zeros(len(gram.features))
    vector[[gram.index(name) for name in names]] = values
    return vector


def in_own_units(gram: GramMatrix, features: Sequence[str]) -> Numbers:
    """Return the matrix that turns intercept and coefficients for z into those for columns in their own units.

    b + sum w (x - m) / h has the coefficients w / h and the intercept b - sum w m / h. A missing x counts as m: its
    w m / h is added to the coefficient of its level for missing values, so that x itself adds nothing.
    """
    used = [gram.features[gram.index(name)] for name in features]
    matrix = np.diag([1.0, *(1 / each.half for each in used)])
    matrix[0, 1:] = [-each.middle / each.half for each in used]
    for place, each in enumerate(used, start=1):
        if each.values == "indicator":
            matrix[place, 1:] += [other.middle / other.half * (other.block == each.block) for other in used]
    return matrix
