"""Compute linear models from noisy moments, products and gradients whose noise is known. All of it is public.

G(w) is the gradient that normal features with the estimated moments would have, without the labels' part, which does
not depend on w. So g_t + G(w) - G(w_t) is what the noisy gradient of round t says about the gradient at w; their
weighted mean, late rounds first, is solved for w by least squares with the known noise and a normal prior.

- How much the features say is unknown: the prior mixes normal ones, most likely one next to zero. Each counts by the
  chance that it gives to the combined gradient. So weights are near zero where noise explains what is seen.
- The intercepts give the mean slopes that all rounds and the label's own sum show together, each by its noise. As
  shares of classes they are shrunk under a prior of equal chances; without weights this is the noisy base rate.
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

from syndic.model.erm.belief import CUT, OFF, ROOM, Belief, Seen
from syndic.model.erm.loss import Logistic, Loss, Numbers, Softmax
from syndic.model.erm.shrink import (
    LEAST_ROOT,
    correlation,
    likely_share,
    likely_spread,
    measured_spread,
    raised_to_positive,
)
from syndic.model.markov.measurement import onto_simplex

# a label that is a number is cut at so many standard deviations
_LABEL_CUT: Final = 3.5
# of the largest norm of slopes: some rows are longer than usual
_LONG: Final = 1.1
# standard deviations of the scores that one step may move them by
_STEP: Final = 1.0
# how much an older gradient counts, and what part of a difference of mean slopes G is wrong by
_AGE, _WRONG = 0.6, 0.3
# standard deviations of noise that the guard allows for
_SIGNIFICANT: Final = 2.0
# steps that move scores by less, in standard deviations, show more noise than curvature
_SHORT: Final = 0.3
# the chance, before any sum, that features say nothing
_NOTHING: Final = 0.8
# points that stand for a normal number: so many that a large score of few rows is among them
_POINTS: Final = 1001
_INNER, _INNER_STEP = 40, 0.7
# steps to the intercepts of given shares, and the log odds that they may be off by
_MATCHING, _MATCHED, _LEAST_SHARE = 30, 1e-4, 1e-9
# variances that scores may have, of 1 for classes
_SCORES: Final = np.geomspace(0.02, 3.0, 20)
_NUMBER_SCORES: Final = 0.04


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """The estimates of the few-sum method; see the module. `columns` and `numbers` are those of the features."""

    columns: NDArray[np.int64]
    numbers: NDArray[np.bool_]
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]]
    loss: Loss
    models: int
    slope: float

    def moments(self, means: Numbers, deviation: float, noise: float) -> Belief:
        """Return centres and spreads from the mean features and the label's; `noise` is that of later gradients."""
        size, numbers = len(self.columns), self.numbers
        first, own = np.split(means, [size])
        centres, factors = np.clip(first, 0.0, 1.0), np.ones(size)
        for column in set(self.columns[~numbers].tolist()):
            levels = (self.columns == column) & ~numbers
            alone = not numbers[self.columns == column].any()
            centres[levels] = onto_simplex(first[levels], 1.0) if alone else centres[levels]
        variances = np.maximum(centres * (1 - centres), LEAST_ROOT)
        centres[numbers] = np.clip(first[numbers], -1.0, 1.0)
        spread = likely_spread(centres[numbers], deviation)
        label, prior, usual = self._label(own, deviation)
        zero = np.zeros((self.models, size))
        belief = Belief(
            centres=centres,
            factors=factors,
            variances=variances,
            errors=np.full(size + 1, deviation),
            usual=usual,
            most=_LONG * self.slope,
            noise=noise,
            label=label,
            own=own[: self.models] if self._classes else np.zeros(1),
            prior=prior,
            weights=zero,
            intercepts=prior,
        )
        return self._scaled(belief, spread)

    def _scaled(self, belief: Belief, spread: Numbers) -> Belief:
        """Return the belief with numbers in units of their spreads, and the covariance that moments alone give."""
        factors, variances = belief.factors.copy(), belief.variances.copy()
        factors[self.numbers], variances[self.numbers] = 1 / (CUT * spread), 1 / CUT**2
        belief = replace(belief, factors=factors, variances=variances)
        known = self._known(belief.centres, factors, variances) + np.diag(belief.offsets)
        return replace(belief, covariance=np.outer(belief.scales, belief.scales) * raised_to_positive(known))

    def spreads(self, before: Belief, means: Numbers, deviation: float) -> Belief:
        """Return the belief with centres and spreads of numbers measured again, in units of those before."""
        places = np.append(self.numbers, not self._classes)
        first, sizes, squares = np.split(means, 3)
        units = ROOM / np.append(before.factors, before.label[1])[places]
        middle, error = np.append(before.centres, before.label[0])[places], before.errors[places]
        # both measurements of a centre by their noise
        trust = error**2 / (error**2 + (units * deviation) ** 2)
        centres = np.clip(middle + trust * units * np.clip(first, -1.0, 1.0), -1.0, 1.0)
        errors = error * np.sqrt(1 - trust)
        cuts = np.where(np.arange(len(units)) < int(self.numbers.sum()), CUT, _LABEL_CUT)
        spread = measured_spread(first, sizes, squares, deviation, 1 / (ROOM * cuts)) * units
        spread = np.sqrt(spread**2 + np.square(np.minimum(1.0, OFF * errors)))
        moved, wrong = before.centres.copy(), before.errors.copy()
        moved[self.numbers], wrong[places] = centres[: int(self.numbers.sum())], errors
        label = before.label if self._classes else (float(centres[-1]), float(1 / (_LABEL_CUT * spread[-1])))
        belief = replace(before, centres=moved, errors=wrong, label=label)
        return self._scaled(belief, spread[: int(self.numbers.sum())])

    def _label(self, own: Numbers, deviation: float) -> tuple[tuple[float, float], Numbers, float]:
        """Return the label's centre and factor, the intercepts of the constant, and the usual norm of slopes."""
        if not self._classes:
            centre = float(np.clip(own[0], -1.0, 1.0))
            spread = likely_spread(np.array([centre]), deviation)
            return (centre, float(1 / (_LABEL_CUT * spread[0]))), np.zeros(1), 1 / _LABEL_CUT + 0.1
        share, prior = self._constant(own, deviation)
        usual = float((2 * share * (1 - share)).sum()) + 0.25
        return (0.0, 1.0), prior, usual if self.models == 1 else usual / sqrt(2)

    def _constant(self, own: Numbers, deviation: float) -> tuple[Numbers, Numbers]:
        """Return shares of classes from noisy ones, and the intercepts of a model without features."""
        share = likely_share(own, deviation)
        if not isinstance(self.loss, Softmax):
            return share, np.asarray(np.log(share / (1 - share)))
        share = share / share.sum()
        return share, np.asarray(np.log(share) - np.log(share).mean())

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
        expected = full * correlation(noisy[self.pairs], full[self.pairs], noise)
        shrunk = seen + (noisy - seen) * (expected / (expected + noise**2))
        same = self.columns[:, None] == self.columns
        known = self._known(before.centres, before.factors, variances)
        whole = np.where(same, known, shrunk) + np.diag(before.offsets)
        scales = before.scales
        return replace(before, covariance=np.outer(scales, scales) * raised_to_positive(whole))

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
        if float((along * step).sum()) < _SHORT**2 * self._unit:
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
        line = scipy.special.ndtri((np.arange(_POINTS) + 0.5) / _POINTS)
        if self.models == 1:
            return np.asarray((line / line.std())[:, None])
        drawn = np.random.default_rng(0).standard_normal((128, self.models))
        both = np.concatenate([drawn, -drawn])
        return np.asarray(both / np.sqrt(np.square(both).mean(axis=0)))

    def _solved(self, belief: Belief) -> tuple[Numbers, Numbers]:
        """Return weights and intercepts at which the combined gradient and the prior balance."""
        rest, noise = self._combined(belief)
        rest_slopes, alone = self._slopes(belief)
        # the mean slopes that the model is to have: shares of classes, shrunk by their noise
        wanted = self._constant(-rest_slopes, sqrt(alone))[0] if self._classes else -rest_slopes
        roots, axes = np.linalg.eigh(belief.covariance)
        sizes, chances = self._likely(belief, rest @ axes, roots, noise)
        weights, intercepts = belief.weights @ axes, belief.intercepts
        for _ in range(_INNER):
            intercepts = self._matched(belief.covariance, weights @ axes.T, intercepts, wanted)
            _, gradient, curvature = self._normal(belief.covariance, weights @ axes.T, intercepts)
            bends, turn = np.linalg.eigh(curvature)
            steep = np.maximum(bends, 0.0)[:, None] * roots
            # of the one normal prior that shrinks each direction as the mixture does
            under = chances / (steep[..., None] ** 2 * sizes + noise)
            prior = (under * sizes).sum(axis=-1) / under.sum(axis=-1)
            wrong, far = turn.T @ (rest + gradient) @ axes, turn.T @ weights
            step = -(steep * wrong / noise + far / prior) / (steep**2 / noise + 1 / prior)
            step = _INNER_STEP * (turn @ step)
            length = sqrt(float((np.square(step) * roots).sum(axis=1).max()))
            weights = weights + step * min(1.0, _STEP / max(length, LEAST_ROOT))
        weights = weights @ axes.T
        return weights, self._matched(belief.covariance, weights, intercepts, wanted)

    def _matched(self, covariance: Numbers, weights: Numbers, intercepts: Numbers, wanted: Numbers) -> Numbers:
        """Return the intercepts at which normal features give the wanted mean slopes: shares of classes.

        A step is the difference in log odds, which a change of an intercept changes by no more: so none is too long.
        """
        if not self._classes:
            return wanted
        odds = np.log if isinstance(self.loss, Softmax) else scipy.special.logit
        for _ in range(_MATCHING):
            shares = np.clip(self._normal(covariance, weights, intercepts)[0], _LEAST_SHARE, 1 - _LEAST_SHARE)
            step = odds(wanted) - odds(shares)
            intercepts = intercepts + step
            if np.abs(step).max() < _MATCHED:
                break
        return intercepts

    def _combined(self, belief: Belief) -> tuple[Numbers, float]:
        """Return the gradients less those of normal features, late rounds first, and the variance of their noise."""
        parts = np.array([one.share for one in belief.seen]) * _AGE ** np.arange(len(belief.seen))[::-1]
        rest, noise = np.zeros_like(belief.weights), 0.0
        for part, one in zip(parts / parts.sum(), belief.seen, strict=True):
            rest, noise = (
                rest + part * (one.gradient - self._expected(belief.covariance, one)[1]),
                noise + (part * one.noise) ** 2,
            )
        return rest, noise

    def _slopes(self, belief: Belief) -> tuple[Numbers, float]:
        """Return the mean slopes less those of normal features, and the variance of their noise.

        Each round counts by its noise and by how far its weights are, where G may be wrong; without weights G is exact.
        The label's own sum is one more, at weights of 0.
        """
        measured = [
            (np.zeros_like(belief.weights), -belief.own, belief.label[1] * float(belief.errors[-1])),
            *(
                (one.weights, one.slopes - self._expected(belief.covariance, one)[0], one.intercept_noise)
                for one in belief.seen
            ),
        ]
        bend = float(np.trace(self._normal(belief.covariance, belief.weights, belief.intercepts)[2])) / self.models
        rest, noise, total = np.zeros(self.models), 0.0, 0.0
        for weights, slopes, error in measured:
            moved = belief.weights - weights
            distance = float(np.einsum("ki,ij,kj->", moved, belief.covariance, moved)) / self.models
            trust = 1 / (error**2 + (_WRONG * bend) ** 2 * distance)
            rest, noise, total = rest + trust * slopes, noise + (trust * error) ** 2, total + trust
        return rest / total, noise / total**2

    def _likely(self, belief: Belief, gradient: Numbers, roots: Numbers, noise: float) -> tuple[Numbers, Numbers]:
        """Return variances that weights may have, and the chances of these given a gradient at weights of zero."""
        at = np.zeros_like(belief.weights)
        bends, turn = np.linalg.eigh(self._normal(belief.covariance, at, belief.prior)[2])
        steep, wrong = np.maximum(bends, 0.0)[:, None] * roots, turn.T @ gradient
        scores = _SCORES * self._unit
        sizes = np.append(_SCORES[0] * 1e-4, scores) / roots.sum()
        prior = np.append(_NOTHING, np.full(len(scores), (1 - _NOTHING) / len(scores)))
        under = steep[..., None] ** 2 * sizes + noise
        each = np.log(prior) - 0.5 * (np.log(under) + wrong[..., None] ** 2 / under).sum(axis=(0, 1))
        chances = np.exp(each - each.max())
        return sizes, chances / chances.sum()

    @property
    def _unit(self) -> float:
        """What variances of scores are counted in."""
        return 1.0 if self._classes else _NUMBER_SCORES

    @property
    def _classes(self) -> bool:
        return isinstance(self.loss, Logistic | Softmax)
