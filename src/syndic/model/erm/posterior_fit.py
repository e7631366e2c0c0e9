"""Compute linear models from noisy moments, products and gradients whose noise is known. All of it is public.

G(w) is the gradient that normal features with the estimated moments would have, without the labels' part, which does
not depend on w. So g_t + G(w) - G(w_t) is what the noisy gradient of round t says about the gradient at w; their
weighted mean, late rounds first, is solved for w by least squares with the known noise and a normal prior.

- The prior's variance has the least estimated loss (Stein's unbiased estimate). If none is below that of the constant
  by a standard deviation of the estimate, the weights are next to zero.
- Noisy centres shift scores, which costs as much as a larger variance of the features: it is added to it.
- Guard. Where columns are strongly correlated, noisy products make G too flat and a step too long. The gradients of two
  rounds show the curvature between them: if it is significantly above G's, the covariance is raised along the step.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Final, final

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.model.erm.loss import Logistic, Loss, Numbers
from syndic.model.erm.multiclass import Softmax

# numbers are cut at so many standard deviations, a label that is a number at more
_CUT, _LABEL_CUT = 3.0, 3.5
# of rows for products, over the root mean square of their norms
_WIDER: Final = 1.15
_LEAST_VARIANCE: Final = 3e-4
_PRIOR: Final = 0.7
# keeps rare levels from being scaled up without end
_RARE: Final = 0.003
_LEAST_ROOT: Final = 1e-5
# how much an older gradient counts, and standard deviations of the scores that one step may move them by
_AGE, _STEP = 0.6, 1.0
# standard deviations of noise that the guard allows for
_SIGNIFICANT: Final = 2.0
# steps that move scores by less, in standard deviations, show no curvature
_SHORT: Final = 0.05
# standard deviations by which an estimated loss must be below that of the constant
_MARGIN: Final = 1.0
# standard deviations of the noise of a centre that features are taken to be off by
_OFF: Final = 2.0
_INNER, _INNER_STEP = 40, 0.7
# variances of scores, of 1 for classes: the largest, and the prior of intercepts
_SCORES: Final = np.geomspace(0.02, 3.0, 20)
_INTERCEPTS: Final = 1.0
_NUMBER_SCORES: Final = 0.04


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Seen:
    """A noisy mean gradient, the weights it was asked at, its noise's standard deviation, and its budget."""

    weights: Numbers
    intercepts: Numbers
    gradient: Numbers
    slopes: Numbers
    noise: float
    intercept_noise: float
    share: float


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Belief:
    """What the noisy sums so far say. Features are z = clip((u - centres) factors, -1, 1), and x = `scales` z.

    `offsets` are the squares of what noisy centres may shift z by, `covariance` the mean products of x with them;
    `cut` the norm that gradients are cut to. `label` is its centre and factor. `prior` has
    the intercepts without features. The model is a score `weights` x + `intercepts` for each class, or for the label.
    """

    centres: Numbers
    factors: Numbers
    variances: Numbers
    offsets: Numbers
    covariance: Numbers
    cut: float
    label: tuple[float, float]
    prior: Numbers
    weights: Numbers
    intercepts: Numbers
    seen: tuple[Seen, ...] = ()

    @property
    def scales(self) -> Numbers:
        """Halfway to the scale at which all variances are 1."""
        return np.asarray((self.variances + _RARE) ** -0.25)

    @property
    def width(self) -> float:
        """The norm that rows are cut to before products are summed."""
        return _WIDER * sqrt(float(self.variances.sum()))

    def sent(self, *, products: bool) -> Numbers:
        """Return centres, factors, limits and weights, so that what is cut is cut to 1."""
        each = np.ones(len(self.scales)) / self.width if products else self.scales / self.cut
        head = np.stack([self.centres, self.factors * each, each])
        label = np.array([[self.label[0]], [self.label[1]], [1.0]])
        body = np.column_stack([self.weights * self.cut, self.intercepts])
        return np.concatenate([np.column_stack([head, label]), body])

    def linear(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return coefficients (model, feature) and intercepts for features cut to limits (feature, 2), and these."""
        coefficients = self.weights * (self.scales * self.factors) / self.label[1]
        intercepts = self.intercepts / self.label[1] - coefficients @ self.centres + self.label[0]
        return (
            coefficients,
            intercepts,
            np.column_stack([self.centres - 1 / self.factors, self.centres + 1 / self.factors]),
        )


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """The estimates of the few-sum method; see the module. `columns` and `numbers` are those of the features."""

    columns: NDArray[np.int64]
    numbers: NDArray[np.bool_]
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]]
    loss: Loss
    models: int

    def moments(self, means: Numbers, deviation: float) -> Belief:
        """Return centres and spreads from the mean features, the mean squares of numbers and the label's."""
        size, numbers = len(self.columns), self.numbers
        first, second, own = np.split(means, [size, size + int(numbers.sum())])
        centres, factors = np.clip(first, 0.0, 1.0), np.ones(size)
        for column in set(self.columns[~numbers].tolist()):
            levels = (self.columns == column) & ~numbers
            alone = not numbers[self.columns == column].any()
            centres[levels] = _on_simplex(first[levels]) if alone else centres[levels]
        variances = np.maximum(centres * (1 - centres), _LEAST_ROOT)
        centres[numbers] = np.clip(first[numbers], -1.0, 1.0)
        spread = _spread(second - first[numbers] ** 2, centres[numbers], deviation)
        factors[numbers], variances[numbers] = 1 / (_CUT * spread), 1 / _CUT**2
        label, prior, usual = self._label(own, deviation)
        known = self._known(centres, factors, variances)
        scales = (variances + _RARE) ** -0.25
        offsets = np.square(_OFF * factors * deviation)
        covariance = np.outer(scales, scales) * _raised(known + np.diag(offsets))
        zero = np.zeros((self.models, size))
        return Belief(
            centres=centres,
            factors=factors,
            variances=variances,
            offsets=offsets,
            covariance=covariance,
            cut=sqrt(1 + float(np.trace(covariance))) * usual,
            label=label,
            prior=prior,
            weights=zero,
            intercepts=prior,
        )

    def _label(self, own: Numbers, deviation: float) -> tuple[tuple[float, float], Numbers, float]:
        """Return the label's centre and factor, the intercepts of the constant, and the usual norm of slopes."""
        if not self._classes:
            centre = float(np.clip(own[0], -1.0, 1.0))
            spread = _spread(own[1:] - own[0] ** 2, np.array([centre]), deviation)
            return (centre, float(1 / (_LABEL_CUT * spread[0]))), np.zeros(1), 1 / _LABEL_CUT + 0.1
        places = (np.arange(1000) + 0.5) / 1000
        odds = _posterior_mean(own, np.full(len(own), deviation), places, places / (1 - places))
        share = odds / (1 + odds)
        if isinstance(self.loss, Softmax):
            share = share / share.sum()
            prior = np.log(share) - np.log(share).mean()
        else:
            prior = np.log(share / (1 - share))
        usual = float((2 * share * (1 - share)).sum()) + 0.25
        return (0.0, 1.0), np.asarray(prior), usual if self.models == 1 else usual / sqrt(2)

    def _known(self, centres: Numbers, factors: Numbers, variances: Numbers) -> Numbers:
        """Return the covariance of z that moments alone give: variances, and that of features of one column."""
        centred = np.where(self.numbers, 0.0, centres)
        # where a number is missing its feature is 0
        missing = np.clip(-centres * factors, -1.0, 1.0)
        cross = np.where(self.numbers, missing, 0.0)[:, None] * centred
        same = self.columns[:, None] == self.columns
        known = np.where(same, cross + cross.T - np.outer(centred, centred), 0.0)
        np.fill_diagonal(known, variances)
        return known

    def products(self, before: Belief, means: Numbers, deviation: float) -> Belief:
        """Return the belief with a covariance from noisy products, shrunk by their estimated size and noise."""
        size, noise = len(self.columns), deviation * before.width**2
        noisy, variances = np.zeros((size, size)), before.variances
        noisy[self.pairs] = means * before.width**2
        noisy += noisy.T
        roots, axes = np.linalg.eigh(noisy)
        # the largest root of a symmetric matrix of noise is about 2 sqrt(features) sd
        edge = 2 * sqrt(size) * noise
        clear = np.where(roots > edge, np.sqrt(np.maximum(roots**2 - edge**2, 0.0)), 0.0)
        seen = (axes * clear) @ axes.T
        full = np.outer(variances, variances)
        expected = full * _correlation(noisy[self.pairs], full[self.pairs], noise)
        shrunk = seen + (noisy - seen) * (expected / (expected + noise**2))
        same = self.columns[:, None] == self.columns
        known = self._known(before.centres, before.factors, variances)
        whole = np.where(same, known, shrunk) + np.diag(before.offsets)
        scales = before.scales
        return replace(before, covariance=np.outer(scales, scales) * _raised(whole))

    def gradients(
        self, before: Belief, slopes: Numbers, gradient: Numbers, noise: float, factor: float, share: float
    ) -> Belief:
        """Return the belief with the weights after one more noisy gradient, in units of the cut."""
        seen = Seen(
            weights=before.weights,
            intercepts=before.intercepts,
            gradient=gradient * before.cut,
            slopes=slopes,
            noise=noise * before.cut,
            intercept_noise=noise * factor,
            share=share,
        )
        belief = replace(before, seen=(*before.seen, seen))
        belief = replace(belief, covariance=self._guarded(belief))
        weights, intercepts = self._solved(belief)
        moved = weights - before.weights
        length = sqrt(max(0.0, float(np.einsum("ki,ij,kj->k", moved, belief.covariance, moved).max())))
        part = min(1.0, _STEP / length) if length > 0 else 1.0
        return replace(
            belief,
            weights=before.weights + part * moved,
            intercepts=before.intercepts + part * (intercepts - before.intercepts),
        )

    def _guarded(self, belief: Belief) -> Numbers:
        """Return the covariance, raised along the last step if two gradients show more curvature than it has."""
        covariance = belief.covariance
        if len(belief.seen) < 2:
            return covariance
        old, new = belief.seen[-2:]
        step = new.weights - old.weights
        length, along = float(np.linalg.norm(step)), step @ covariance
        if float((along * step).sum()) < _SHORT**2:
            return covariance
        (_, before, first), (_, after, second) = (self._expected(covariance, one) for one in (old, new))
        seen = float((step * (new.gradient - old.gradient)).sum()) / length
        expected = float((step * (after - before)).sum()) / length
        excess = seen - expected - _SIGNIFICANT * sqrt(old.noise**2 + new.noise**2)
        # no root of a covariance is above the sum of the variances
        room = float(np.trace(covariance)) - float((along * step).sum()) / length**2
        raised, curvature = along.T @ along, (first + second) / 2
        moved = float(np.einsum("kl,li,ij,kj->", curvature, step, raised, step)) / length
        if excess <= 0 or room <= 0 or moved <= 0:
            return covariance
        most = room * length**2 / float((step @ raised * step).sum())
        return np.asarray(covariance + raised * min(excess / moved, most))

    def _expected(self, covariance: Numbers, at: "Seen") -> tuple[Numbers, Numbers, Numbers]:
        """Return the mean slopes, the gradient and the curvature (model, model) of normal features, labels left out."""
        return self._normal(covariance, at.weights, at.intercepts)

    def _normal(self, covariance: Numbers, weights: Numbers, intercepts: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        if not self._classes:
            return intercepts, weights @ covariance, np.eye(1)
        spread = weights @ covariance @ weights.T
        roots, axes = np.linalg.eigh(spread)
        scores = intercepts + (self._points * np.sqrt(np.maximum(roots, 0.0))) @ axes.T
        share = self.loss.slope(scores, np.full_like(scores, -1.0))
        curvature = np.diag(share.mean(axis=0))
        if isinstance(self.loss, Logistic):
            curvature = curvature - np.diag(np.square(share).mean(axis=0))
        else:
            curvature = curvature - share.T @ share / len(share)
        return share.mean(axis=0), curvature @ weights @ covariance, curvature

    @cached_property
    def _points(self) -> Numbers:
        """Points (point, model) whose mean stands for that of normal numbers."""
        line = scipy.special.ndtri((np.arange(101) + 0.5) / 101)
        if self.models == 1:
            return np.asarray((line / line.std())[:, None])
        drawn = np.random.default_rng(0).standard_normal((128, self.models))
        both = np.concatenate([drawn, -drawn])
        return np.asarray(both / np.sqrt(np.square(both).mean(axis=0)))

    def _solved(self, belief: Belief) -> tuple[Numbers, Numbers]:
        """Return weights and intercepts at which the combined gradient and the prior balance."""
        parts = np.array([one.share for one in belief.seen]) * _AGE ** np.arange(len(belief.seen))[::-1]
        parts = parts / parts.sum()
        rest, rest_slopes = np.zeros_like(belief.weights), np.zeros(self.models)
        for part, one in zip(parts, belief.seen, strict=True):
            slopes, gradient, _ = self._expected(belief.covariance, one)
            rest, rest_slopes = rest + part * (one.gradient - gradient), rest_slopes + part * (one.slopes - slopes)
        noise = float(sum((part * one.noise) ** 2 for part, one in zip(parts, belief.seen, strict=True)))
        alone = float(sum((part * one.intercept_noise) ** 2 for part, one in zip(parts, belief.seen, strict=True)))
        roots, axes = np.linalg.eigh(belief.covariance)
        prior = self._variance(belief, rest @ axes, roots, noise)
        own = _INTERCEPTS if self._classes else _NUMBER_SCORES
        weights, intercepts = belief.weights @ axes, belief.intercepts
        for _ in range(_INNER):
            slopes, gradient, curvature = self._normal(belief.covariance, weights @ axes.T, intercepts)
            bends, turn = np.linalg.eigh(curvature)
            bends = np.maximum(bends, 0.0)[:, None]
            wrong, far = turn.T @ (rest_slopes + slopes)[:, None], turn.T @ (intercepts - belief.prior)[:, None]
            step = -(bends * wrong / alone + far / own) / (bends**2 / alone + 1 / own)
            intercepts = intercepts + np.clip((turn @ step)[:, 0], -1.0, 1.0)
            steep = bends * roots
            wrong, far = turn.T @ (rest + gradient) @ axes, turn.T @ weights
            step = -(steep * wrong / noise + far / prior) / (steep**2 / noise + 1 / prior)
            weights = weights + _INNER_STEP * (turn @ step)
        return weights @ axes.T, intercepts

    def _variance(self, belief: Belief, gradient: Numbers, roots: Numbers, noise: float) -> float:
        """Return the prior's variance of a weight: that of the least estimated loss, next to none if none lowers it."""
        at = np.zeros_like(belief.weights)
        bends, turn = np.linalg.eigh(self._normal(belief.covariance, at, belief.prior)[2])
        steep, wrong = np.maximum(bends, 0.0)[:, None] * roots, turn.T @ gradient
        clear = np.maximum(wrong**2 - noise, 0.0)
        best, chosen = 0.0, _SCORES[0] * 1e-4
        for score in _SCORES * (1.0 if self._classes else _NUMBER_SCORES):
            under = steep**2 + noise * roots.sum() / score
            each = 0.5 * steep**3 / under**2 - steep / under
            loss = float((each * wrong**2 + noise * steep / under).sum())
            # the error of this estimate, with the squares of the noiseless gradient as far as they are seen
            error = sqrt(float((each**2 * (2 * noise**2 + 4 * noise * clear)).sum()))
            if loss < best and loss < -_MARGIN * error:
                best, chosen = loss, score
        return float(chosen / roots.sum())

    @property
    def _classes(self) -> bool:
        return isinstance(self.loss, Logistic | Softmax)


def _spread(variances: Numbers, centres: Numbers, deviation: float) -> Numbers:
    """Return standard deviations of numbers from noisy variances and means.

    Under the prior a number spreads about as far as its mean lies from the nearer bound, times or over 2. What is cut
    at too few deviations is lost, also because the centre itself is noisy: twice its noise is added.
    """
    places = np.geomspace(_LEAST_VARIANCE, 1.0, 61)
    room = 1 - np.abs(centres) + deviation
    prior = -0.5 * np.square(np.log(np.sqrt(places) / room[:, None]) / _PRIOR)
    found = _posterior_mean(variances, deviation * np.sqrt(1 + 4 * centres**2), places, places, prior)
    return np.asarray(np.sqrt(found + min(1.0, 2 * deviation) ** 2))


def _posterior_mean(
    values: Numbers, deviations: Numbers, places: Numbers, means: Numbers, prior: Numbers | float = 0.0
) -> Numbers:
    """Return the geometric mean of what places mean, given noisy values and the logarithms of the places' chances."""
    chance = prior - 0.5 * np.square((values[:, None] - places) / deviations[:, None])
    chance = np.exp(chance - chance.max(axis=1, keepdims=True))
    return np.asarray(np.exp((chance * np.log(means)).sum(axis=1) / chance.sum(axis=1)))


def _on_simplex(values: Numbers) -> Numbers:
    """Return the nearest shares that are not negative and add up to 1."""
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - over[np.nonzero(falling > over)[0][-1]], 0.0))


def _correlation(values: Numbers, variances: Numbers, noise: float) -> float:
    """Return the most likely mean square of correlations, given noisy products."""
    squares = np.geomspace(0.01, 0.6, 12) ** 2
    spread = squares[:, None] * variances + noise**2
    return float(squares[np.argmin((np.log(spread) + values**2 / spread).sum(axis=1))])


def _raised(matrix: Numbers) -> Numbers:
    """Return a symmetric matrix with its roots raised to something positive."""
    roots, axes = np.linalg.eigh(matrix)
    return np.asarray((axes * np.maximum(roots, _LEAST_ROOT)) @ axes.T)
