"""Learning in few noisy sums: moments of the columns, products of columns, then gradients clipped to what is usual.

Round 1 sums every feature u and the label. Two rounds measure numbers again, around the centres and in units of the
spreads that are known by then: z, |z| and z^2. So noise falls with a number's spread, however wide its bounds are. One
round sums the products of two columns' centred features. The others sum gradients at public weights for features that
are centred, cut at some spreads and scaled. `posterior_fit` computes the weights. All noise is known, so each quantity
is shrunk as far as its noise requires, and weights as far as is estimated to lower the loss.

What a coordinator sends (centres, factors, limits, weights) changes values, never a sensitivity: every record's vector
is cut to a fixed norm, whatever was sent. In units of 2^32 steps and for a person with r records:

- Moments. A number adds u with |u| <= 1: square at most 1, and 4 for two such. A value that is missing adds one
  indicator instead: 1, and at most 2 from a number's. A list adds one indicator: 1, and 2 apart. So adding or removing
  r records changes the sum by at most r sqrt(numbers + lists), replacing them by r sqrt(4 numbers + 2 lists), the label
  counted as a column.
- Spreads. The vector of all z, |z| and z^2 is cut to norm^2 L = (numbers + 6) / 8. Two such vectors have no negative
  product, as z z' >= -|z| |z'|, so they are at most sqrt(2 L) apart: r sqrt(L), or r sqrt(2 L) if replaced.
- Products. Rows are cut to norm 1. The products x_i x_j with i < j have norm^2 (|x|^4 - sum x_i^4) / 2 <= 1 / 2; for
  two rows |xx' - yy'|_F^2 <= 2. So r / sqrt(2), or r if replaced.
- Gradients. A record adds w times its slopes, cut to norm 1, for the intercepts, and slopes times features, cut to norm
  1. So r sqrt(1 + w^2), or twice that if replaced. w is public, 3/8 or more, see `intercept_weight`.

All terms are whole numbers: features and slopes are rounded towards zero, so nothing gets longer, and predictions are
exact sums of whole numbers. A record changes a sum by its own term and by nothing else.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, isqrt, sqrt
from typing import Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError
from syndic.model.erm.belief import Belief, Stage
from syndic.model.erm.loss import SQUARED, Huber, Logistic, Loss, Numbers, Softmax, joint_slope, shortening
from syndic.model.erm.posterior_fit import Fit
from syndic.model.erm.second_order import STEPS, within_norm

MOST_FEATURES: Final = 2048
_CHUNK: Final = 2**16
# beyond this many products they cost more than they tell
_MOST_PRODUCTS: Final = 2**17
# largest feature that predictions are exact for, in steps, and largest norm of weights, in steps of 2^-16
_LARGEST: Final = 2.0**20
_LARGEST_NORM: Final = 2.0**10
_SENT: Final = 2.0**20
# the least weight of the intercepts' slopes, the most, and what features must stand out of, see `intercept_weight`
_INTERCEPT, _MOST, _HIDDEN = Fraction(3, 8), 2, 26
_MOMENTS, _SPREADS, _PRODUCTS = Fraction(12, 100), Fraction(3, 100), Fraction(3, 100)
_SHARES: Final = {"moments": _MOMENTS, "spreads": _SPREADS, "products": _PRODUCTS}
# how much more a sum of gradients gets than the one before, and how many of the last ones do
_GROWTH, _GROWING = Fraction(3, 2), 12


@final
@dataclass(frozen=True, eq=False)
class Layout:
    """The features of a row: the column that each belongs to, and whether it is a number in [-1, 1] or an indicator."""

    columns: NDArray[np.int64]
    numbers: NDArray[np.bool_]

    @cached_property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The places of all products of features of two columns."""
        first, second = np.triu_indices(len(self.columns), 1)
        across = self.columns[first] != self.columns[second]
        return first[across], second[across]

    @property
    def counts(self) -> tuple[int, int]:
        """How many columns are numbers, and how many are lists."""
        numbers = len(set(self.columns[self.numbers].tolist()))
        return numbers, len(set(self.columns.tolist())) - numbers


@final
@dataclass(frozen=True, kw_only=True)
class Posterior:
    """The sums of each round, their sensitivity to one person, and the update. `gradients` counts rounds of gradients.

    `people` is the public number that sums are divided by, `rows` the most records of one person, `intercept` the
    weight of the intercepts' slopes, in eighths.
    """

    loss: Loss
    layout: Layout
    models: int
    people: int
    rows: int = 1
    neighbours: Literal["add_remove", "replace"] = "replace"
    gradients: int = 7
    intercept: Fraction = _INTERCEPT

    def __post_init__(self) -> None:
        if min(self.features, self.models, self.people, self.rows, self.gradients) < 1:
            raise InputError("features, models, people, rows and rounds must be at least 1")
        if self.intercept <= 0 or (8 * self.intercept).denominator != 1:
            # the reach is exact for eighths, and sums are whole numbers
            raise InputError(f"the weight of intercepts ({self.intercept}) must be above 0, in eighths")
        if self.features > MOST_FEATURES:
            raise InputError(
                f"{self.features} features are more than the {MOST_FEATURES} that the scheme posterior learns from: "
                'name fewer, or set scheme = "mpc_grad"'
            )
        if not isinstance(self.loss, Logistic | Softmax | Huber):
            raise InputError('the scheme posterior does not support this loss: set scheme = "mpc_grad"')

    @property
    def features(self) -> int:
        """How many features a row has."""
        return len(self.layout.columns)

    @property
    def asked(self) -> tuple[int, int]:
        """The shape of what parties are sent: centres, factors and limits of the features, and each model's weights.

        The last column has the label's centre, factor and limit, and the intercepts.
        """
        return 3 + self.models, self.features + 1

    @property
    def rounds(self) -> int:
        """How many sums are opened."""
        return len(self._first) + self.gradients

    def stage(self, number: int) -> Stage:
        """Return what a round sums."""
        return self._first[number - 1] if number <= len(self._first) else "gradients"

    def share(self, number: int) -> Fraction:
        """Return the round's share of the budget; the shares of all rounds add up to 1."""
        if number <= len(self._first):
            return _SHARES[self.stage(number)]
        parts = [_GROWTH ** max(0, place + _GROWING - self.gradients) for place in range(self.gradients)]
        return (1 - sum(_SHARES[each] for each in self._first)) * parts[number - 1 - self.rounds] / sum(parts)

    def dimension(self, number: int) -> int:
        """Return how many numbers a round sums."""
        match self.stage(number):
            case "moments":
                return self.features + self.models
            case "spreads":
                return 3 * self._measured
            case "products":
                return len(self.layout.pairs[0])
        return self.models * (1 + self.features)

    def reach(self, number: int) -> Fraction:
        """Return the l2 sensitivity of a round's sum to one person, in steps."""
        replaced = self.neighbours == "replace"
        match self.stage(number):
            case "moments":
                numbers, lists = self.layout.counts
                # a label with one model is one indicator, which two records differ by at most 1 in
                own = (1 if self.models == 1 or not replaced else 2) if self._classes else (4 if replaced else 1)
                square = Fraction((4 * numbers + 2 * lists if replaced else numbers + lists) + own)
            case "spreads":
                square = self._length * (2 if replaced else 1)
            case "products":
                square = Fraction(1) if replaced else Fraction(1, 2)
            case "gradients":
                square = (1 + self.intercept**2) * (4 if replaced else 1)
        # rounded up
        return Fraction(isqrt(int(square * 64) * (self.rows * STEPS**2) ** 2) + 1, 8)

    def largest(self, number: int, people: int) -> int:  # noqa: ARG002 (the same in every round)
        """Return a public bound on each number of a sum over this many people."""
        return people * self.rows * max(ceil(self.intercept), 1) * STEPS**2

    # The party's side.

    def sums(self, number: int, sent: Numbers, rows: Numbers, labels: Numbers) -> NDArray[np.int64]:
        """Return the round's sum over rows of features, with labels (record, model), in steps. Private."""
        terms = {
            "moments": self._moments,
            "spreads": self._spreads,
            "products": self._products,
            "gradients": self._gradients,
        }
        term = terms[self.stage(number)]
        total, sent = np.zeros(self.dimension(number), dtype=np.int64), np.clip(sent, -_SENT, _SENT)
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            total += np.rint(term(sent, rows[part], labels[part])).astype(np.int64)
        return total

    def _moments(self, sent: Numbers, rows: Numbers, labels: Numbers) -> Numbers:  # noqa: ARG002 (nothing is sent)
        own = (labels > 0).astype(np.float64) if self._classes else np.trunc(labels * STEPS) / STEPS
        return np.concatenate([np.trunc(rows * STEPS).sum(axis=0) * STEPS, own.sum(axis=0) * float(STEPS**2)])

    def _spreads(self, sent: Numbers, rows: Numbers, labels: Numbers) -> Numbers:
        whole = self._features(sent, rows)[0][:, self.layout.numbers]
        if not self._classes:
            whole = np.column_stack([whole, np.trunc(self._targets(sent, labels) * STEPS)])
        within = np.clip(whole, -STEPS, STEPS)
        every = np.column_stack([within, np.abs(within), np.trunc(np.square(within) / STEPS)])
        lengths = np.sqrt(np.square(every).sum(axis=1)) / STEPS
        cut = np.trunc(every * shortening(lengths, sqrt(self._length))[:, None])
        return np.asarray(cut.sum(axis=0) * STEPS)

    def _features(self, sent: Numbers, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Return centred, cut and scaled features, in steps, and the norm of each row, from exact squares."""
        centres, factors, limits = sent[:3, :-1]
        values = np.clip((rows - centres) * factors, -np.abs(limits), np.abs(limits))
        whole = np.trunc(np.clip(values * STEPS, -_LARGEST, _LARGEST))
        return whole, np.sqrt(np.square(whole).sum(axis=1))

    def _products(self, sent: Numbers, rows: Numbers, labels: Numbers) -> Numbers:  # noqa: ARG002 (of features only)
        whole, norms = self._features(sent, rows)
        cut = np.trunc(whole * shortening(norms, float(STEPS))[:, None])
        return np.asarray((cut.T @ cut)[self.layout.pairs])

    def _gradients(self, sent: Numbers, rows: Numbers, labels: Numbers) -> Numbers:
        whole, norms = self._features(sent, rows)
        weights = np.rint(within_norm(sent[3:, :-1], _LARGEST_NORM) * STEPS)
        intercepts = np.rint(np.clip(sent[3:, -1], -_LARGEST_NORM, _LARGEST_NORM) * STEPS)
        predictions = (whole @ weights.T) / STEPS**2 + intercepts / STEPS
        slopes = self._slopes(predictions, self._targets(sent, labels))
        lengths = np.linalg.norm(slopes, axis=1)
        alone = np.trunc(slopes * (shortening(lengths, self.slope) / self.slope * STEPS)[:, None])
        cut = np.trunc(slopes * (shortening(lengths * norms / STEPS, 1.0) * STEPS)[:, None])
        return np.concatenate([alone.sum(axis=0) * float(self.intercept * STEPS), (cut.T @ whole).ravel()])

    def _targets(self, sent: Numbers, labels: Numbers) -> Numbers:
        if self._classes:
            return labels
        centre, factor, limit = sent[:3, -1]
        return np.asarray(np.clip((labels - centre) * factor, -abs(limit), abs(limit)))

    def _slopes(self, predictions: Numbers, targets: Numbers) -> Numbers:
        # slopes of numbers are cut to `slope` anyway: a Huber loss
        return self.loss.slope(predictions, targets) if self._classes else predictions - targets

    # Everybody's side.

    def start(self) -> Belief:
        """Return what is known before the first sum: the prior."""
        return self._fit.moments(np.zeros(self.dimension(1)), deviation=1e3, noise=1e3)

    def sent(self, belief: Belief, number: int) -> Numbers:
        """Return what parties are sent in a round."""
        return belief.sent(self.stage(number))

    def update(self, before: Belief, number: int, total: Numbers, people: int, deviation: float) -> Belief:
        """Return what is known after a round's noisy sum over this many people, in units of 2^32 steps."""
        means, noise = total / people, deviation / people
        match self.stage(number):
            case "moments":
                return self._fit.moments(means, noise, noise * self._quieter)
            case "spreads":
                return self._fit.spreads(before, means, noise)
            case "products":
                return self._fit.products(before, means, noise)
        intercepts, gradients = means[: self.models], means[self.models :].reshape(self.models, -1)
        factor = self.slope / float(self.intercept)
        return self._fit.gradients(before, intercepts * factor, gradients, noise, factor, float(self.share(number)))

    # The public arithmetic.

    @property
    def slope(self) -> float:
        """What the slopes of a record's intercepts are cut to: no cut for two classes and for softmax."""
        return min(joint_slope(self.loss, self.models), sqrt(2.0)) if self._classes else 1.0

    @cached_property
    def _quieter(self) -> float:
        """The noise of all sums of gradients together over that of the moments."""
        reach = float(self.reach(self.rounds) / self.reach(1))
        return reach * sqrt(_MOMENTS / (1 - sum(_SHARES[each] for each in self._first)))

    @property
    def _classes(self) -> bool:
        return isinstance(self.loss, Logistic | Softmax)

    @property
    def _measured(self) -> int:
        """How many numbers are measured again at the scale of their spreads, the label counted."""
        return int(self.layout.numbers.sum()) + (not self._classes)

    @property
    def _length(self) -> Fraction:
        """What the squared norm of a record's numbers and their squares is cut to: about twice what is usual."""
        return Fraction(self._measured + 6, 8)

    @cached_property
    def _first(self) -> tuple[Stage, ...]:
        """What the rounds before those of gradients sum."""
        spreads: tuple[Stage, ...] = ("spreads", "spreads") if self._measured else ()
        products: tuple[Stage, ...] = ("products",) if 0 < len(self.layout.pairs[0]) <= _MOST_PRODUCTS else ()
        return "moments", *spreads, *products

    @cached_property
    def _fit(self) -> Fit:
        return Fit(
            columns=self.layout.columns,
            numbers=self.layout.numbers,
            pairs=self.layout.pairs,
            loss=self.loss if self._classes else SQUARED,
            models=self.models,
            slope=self.slope,
        )


def intercept_weight(people: float, features: int) -> Fraction:
    """Return the weight of intercepts beside features in sums of gradients, in eighths, from public numbers.

    A weight of w makes the noise of features sqrt(1 + w^2) times as large, and that of intercepts sqrt(1 + 1 / w^2).
    With N people times mu, and gradients cut to a norm that grows with sqrt(d), the noise of d features costs about q =
    1.3 (1 + w^2) (d / N)^2 nats, but hardly more than they can gain, S: S q / (q + S). With S = 1 / 20, the sum of both
    losses is least at w^2 proportional to 1 + 26 (1 + w^2) (d / N)^2. Where noise hides the features, the shares of
    classes are what can still be learnt.
    """
    least, hidden = float(_INTERCEPT) ** 2, _HIDDEN * (features / max(people, 1e-9)) ** 2
    room = max(1 - least * hidden, 1e-9)
    return Fraction(round(8 * min(sqrt(least * (1 + hidden) / room), _MOST)), 8)
