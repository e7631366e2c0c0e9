"""Variants for simulation only: parties hand over exact numbers, and a functionality that is not there adds the noise.

What the authors ran (`as_printed`), laws that cannot be drawn exactly, methods that need a trusted third party, and
methods without privacy. None of it protects anybody; events say what would hold in real arithmetic.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log1p, sqrt
from typing import Final, final

import numpy as np
import scipy
from numpy.typing import NDArray

from syndic.document import Document
from syndic.methods.learning.query import PartyRows, Query
from syndic.model.erm.loss import Numbers, Objective
from syndic.model.erm.noise_law import CoordinateLaplace, Gaussian, Law, ObjectiveNoise, law
from syndic.model.erm.private import (
    GradientMethod,
    ModelMethod,
    Setting,
    Variant,
    gradient_noise,
    local_objective,
    model_noise,
    two_noises,
)
from syndic.privacy import Event, GaussianEvent, PureEvent
from syndic.privacy.concentrated import PICO
from syndic.privacy.unit import LARGEST_EPSILON
from syndic.random import Randomness

Draw = Callable[[np.random.Generator], Numbers]
_MODELS: Final[dict[str, ModelMethod]] = {"mpc_out": "MPC Out P", "pathak": "Pathak", "local_out": "Local Out P"}
_GRADIENTS: Final[dict[str, GradientMethod]] = {"mpc_grad": "MPC Grad P", "local_grad": "Local Grad P"}


@final
class Exact(Document):
    """No noise at all; `event` is what the functionality's noise would pay for."""

    event: Event

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:  # noqa: ARG002 (unused)
        """Return the values as they are."""
        return values


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class OpenNoise:
    """The event of each round, the noise on the average of each round, a fixed vector and a further penalty."""

    event: Event
    law: Law | None = None
    copies: int = 1
    start: Gaussian | None = None
    extra: float = 0.0

    def draw(self, dimension: int, generator: np.random.Generator) -> Numbers:
        """Return the noise of one round. It protects nobody."""
        if self.law is None:
            return np.zeros(dimension)
        if isinstance(self.law, Gaussian):  # an average of normal numbers is normal
            return Gaussian(self.law.scale / sqrt(self.copies)).simulate((dimension,), generator)
        return np.asarray(self.law.simulate((self.copies, dimension), generator).mean(axis=0))


def open_noise(scheme: str, query: Query, setting: Setting, smoothness: float, *, printed: bool) -> OpenNoise:
    """Return the noise of a round of a scheme for simulation; the first that fits of the module's list."""
    variant: Variant = "as_printed" if printed else "sound"
    if scheme in ("distributed", "central"):
        rounds = setting.iterations if scheme == "central" else 1
        return OpenNoise(event=PureEvent(epsilon=Fraction(LARGEST_EPSILON, rounds), what="no noise at all"))
    if scheme == "local_obj":
        return OpenNoise(event=_objective_event(setting, smoothness, variant))
    if scheme == "rajkumar_agarwal":
        both = two_noises(setting, smoothness, variant)
        return OpenNoise(event=_event(both.fresh, setting, query), law=both.fresh, start=both.start, extra=both.extra)
    if scheme in _GRADIENTS:
        noise = gradient_noise(_GRADIENTS[scheme], setting, variant)
        ratio = Fraction(noise.sensitivity / noise.law.scale) ** 2
        event = GaussianEvent(mu_squared=_up(ratio), what="continuous Gaussian, as printed")
        return OpenNoise(event=event, law=noise.law, copies=noise.copies)
    if printed:
        models = model_noise(_MODELS[scheme], setting, "as_printed")
        whose = setting.party_sensitivity if scheme == "local_out" else setting.model_sensitivity
        return OpenNoise(event=_event(models.law, setting, query, whose), law=models.law, copies=models.copies)
    # one spherical vector for the average, or one for each party's own model: then its change is not shared out
    local = scheme == "local_out"
    whose = float(query.reach) * query.unit * (setting.parties if local else 1)
    spherical = law("spherical", whose, setting.dimension, setting.epsilon, setting.delta)
    event_ = PureEvent(epsilon=setting.epsilon, what="continuous spherical noise")
    return OpenNoise(event=event_, law=spherical, copies=setting.parties if local else 1)


def objective_model(
    objective: Objective,
    holding: PartyRows,
    noise: ObjectiveNoise,
    generator: np.random.Generator | None,
    shared: Numbers,
) -> Numbers:
    """Return the minimiser of one party's objective with a random linear term; `shared` where all have the same."""
    rows, labels = holding.matrix()
    linear = shared.ravel() if generator is None else noise.law.simulate((rows.shape[1],), generator)
    penalised = Objective(objective.loss, objective.regularisation + noise.extra, clip=objective.clip)

    def both(weights: Numbers) -> tuple[float, Numbers]:
        value = penalised.value(weights, rows, labels[:, 0]) + linear @ weights / len(rows)
        return float(value), penalised.gradient(weights, rows, labels[:, 0]) + linear / len(rows)

    if len(rows) == 0:
        return np.zeros((1, rows.shape[1]))
    found = scipy.optimize.minimize(both, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options={"gtol": 1e-10})
    return np.asarray(found.x, dtype=np.float64)[None, :]


def _objective_event(setting: Setting, smoothness: float, variant: Variant) -> PureEvent:
    noise = local_objective(setting, smoothness, variant)
    if variant == "sound":
        return PureEvent(epsilon=setting.epsilon, what="objective perturbation, continuous noise")
    # the Jacobian's part, and Laplace coordinates where the Euclidean norm was meant
    ratio = smoothness / (setting.records * (setting.regularisation + noise.extra))
    holds = 2 * log1p(ratio) + sqrt(setting.dimension) * noise.left
    return PureEvent(epsilon=_up(Fraction(holds)), what="objective perturbation, as printed")


def _event(noise: Law, setting: Setting, query: Query, sensitivity: float | None = None) -> Event:
    moved = setting.gradient_sensitivity if sensitivity is None else sensitivity
    if isinstance(noise, CoordinateLaplace):
        holds = Fraction(noise.epsilon(moved, query.dimension))
        return PureEvent(epsilon=_up(holds), what="continuous Laplace coordinates, as printed")
    return GaussianEvent(mu_squared=_up(Fraction(moved / noise.scale) ** 2), what="continuous Gaussian")


def _up(value: Fraction) -> Fraction:
    return Fraction(ceil(value * PICO), PICO)
