"""What noisy sums say about features and weights, and what follows from it for the next sum. All of it is public."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Final, Literal, final

import numpy as np

from syndic.model.erm.loss import Numbers

CUT: Final = 3.0
"""Standard deviations that numbers are cut at."""
ROOM: Final = 4.0 / 3.0
"""Times that, within which they are measured again."""
OFF: Final = 2.0
"""Standard deviations of the noise of a centre that features are taken to be off by."""
# of rows for products, over the root mean square of their norms
_WIDER: Final = 1.15
# keeps rare levels from being scaled up without end
_RARE: Final = 0.003
# how many times the noise of the gradients counts against what a cut loses
_NOISY: Final = 30.0

Stage = Literal["moments", "spreads", "products", "gradients"]


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

    `errors` are the standard deviations of the centres' noise, the label's last; `covariance` the mean products of x,
    with what they may shift z by. `label` is its centre and factor, `usual` its slopes' norm at the constant and `most`
    what hardly any exceeds. `noise` is that of all mean gradients together, cut to 1. `prior` has the intercepts
    without features. The model is a score `weights` x + `intercepts` for each class, or for the label.
    """

    centres: Numbers
    factors: Numbers
    variances: Numbers
    errors: Numbers
    usual: float
    most: float
    noise: float
    label: tuple[float, float]
    own: Numbers
    prior: Numbers
    weights: Numbers
    intercepts: Numbers
    covariance: Numbers = field(default_factory=lambda: np.zeros((0, 0)))
    seen: tuple[Seen, ...] = ()

    @property
    def offsets(self) -> Numbers:
        """The squares of what noisy centres may shift z by."""
        return np.square(OFF * self.factors * self.errors[:-1])

    @property
    def cut(self) -> float:
        """The norm that gradients are cut to: what is usual for rows times what slopes are cut to.

        Where an outcome is rare, nearly all that a fit learns from are the long gradients of the few. What they lose is
        a bias that no number of rows makes smaller; the noise grows with the cut and with the features that vary. So
        hardly anything is cut where there is little noise, and all that is longer than usual where there is much.
        """
        known = np.square(self.scales) * (self.variances + self.offsets)
        varied = float(known.sum()) ** 2 / float(np.square(known).sum())
        slope = self.most / (1 + _NOISY * self.noise * varied * len(self.weights))
        return sqrt(1 + float(known.sum())) * max(self.usual, slope)

    @property
    def scales(self) -> Numbers:
        """Halfway to the scale at which all variances are 1."""
        return np.asarray((self.variances + _RARE) ** -0.25)

    @property
    def width(self) -> float:
        """The norm that rows are cut to before products are summed."""
        return _WIDER * sqrt(float(self.variances.sum()))

    def sent(self, stage: Stage) -> Numbers:
        """Return centres, factors, limits and weights, so that what is cut is cut to 1."""
        each, room = self.scales / self.cut, 1.0
        if stage == "products":
            each = np.ones(len(self.scales)) / self.width
        if stage == "spreads":
            each, room = np.ones(len(self.scales)), ROOM
        head = np.stack([self.centres, self.factors * each / room, each])
        label = np.array([[self.label[0]], [self.label[1] / room], [1.0]])
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
