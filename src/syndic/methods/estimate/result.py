"""What a study of estimates publishes, and the paper's noise, for simulation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel import Result
from syndic.model.families.estimate import Noisy
from syndic.model.families.family import Array
from syndic.privacy import PureEvent
from syndic.privacy.concentrated import PICO
from syndic.random import Randomness, generator


class Group(Document):
    """Parties that get a joint estimate of their own, at no further cost. `parties` may name groups declared before."""

    name: str
    parties: tuple[str, ...]


class GroupEstimate(Document):
    """Parameters of one group of parties, with standard errors and intervals that include the noise."""

    of: str
    people: int
    estimate: tuple[float, ...]
    standard_error: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]


class Estimates(Document):
    """Parameters of all parties together; `groups` has each party alone and each declared group."""

    column: str
    family: str
    scheme: str
    parameters: tuple[str, ...]
    confidence: float
    present: tuple[str, ...]
    together: GroupEstimate
    groups: tuple[GroupEstimate, ...] = ()

    def group(self, name: str) -> GroupEstimate:
        """Return the estimate of one party or declared group."""
        return next(found for found in self.groups if found.of == name)


@final
@dataclass(frozen=True, kw_only=True)
class EstimatesResult(Result):
    """Estimates from the parties' noisy sums. They are released: anyone may see them."""

    estimates: Estimates

    def files(self) -> Mapping[str, Any]:
        """Return `estimates.json`."""
        return {"estimates.json": self.estimates}

    def summary(self) -> Mapping[str, Any]:
        """Return every parameter with its interval, of all and of each declared group."""
        of, found = self.estimates, dict[str, str]()
        for one in (of.together, *(group for group in of.groups if group.of not in of.present)):
            what = of.column if one is of.together else f"{of.column} of {one.of}"
            for name, value, low, high in zip(of.parameters, one.estimate, one.lower, one.upper, strict=True):
                ends = f"{100 * of.confidence:g} % interval {low:.6g} to {high:.6g}"
                found[f"{name} ({of.family}, {what})"] = f"{value:.6g}, {ends}"
        return found


@final
class PublishedLaplace(Document):
    """The paper's noise on fixed-point sums: a floating-point Laplace draw of this scale, rounded. Not private.

    `sensitivity`: the l1 change of the sums by one row; the paper uses the Euclidean diameter instead.
    """

    scale: float
    sensitivity: float

    @property
    def event(self) -> PureEvent:
        """The cost in real arithmetic."""
        holds = Fraction(ceil(Fraction(self.sensitivity) / Fraction(self.scale) * PICO), PICO)
        return PureEvent(epsilon=holds, what="continuous Laplace, as published")

    @property
    def variance(self) -> float:
        """Variance of one draw, in squared steps."""
        return 2 * self.scale**2

    def apply(self, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        """Return the values with noise, rounded to whole steps."""
        noise = generator(randomness).laplace(0.0, self.scale, values.shape)
        return np.rint(values + noise).astype(np.int64)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyMean:
    """A noisy mean of `people` rows, of one party or of all in a masked sum, with the noise's variance and kurtosis."""

    mean: Array
    people: int
    noise: Array
    peaked: float


def stacked(means: Sequence[NoisyMean], unit: Array) -> Noisy:
    """Return several noisy means as arrays."""
    return Noisy(
        means=np.stack([one.mean for one in means]),
        people=np.array([one.people for one in means], dtype=np.float64),
        noise=np.stack([one.noise for one in means]),
        peaked=np.array([one.peaked for one in means]),
        unit=unit,
    )


def parts_of(groups: Sequence[Group], parties: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the parties by the groups they are in: every group is a union of these parts."""
    members, parts = members_of(groups, parties), dict[tuple[str, ...], list[str]]()
    for party in parties:
        parts.setdefault(tuple(name for name, inside in members.items() if party in inside), []).append(party)
    return tuple(map(tuple, parts.values()))


def members_of(groups: Sequence[Group], parties: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the parties of every group, those of the groups in it included."""
    known: dict[str, tuple[str, ...]] = {name: (name,) for name in parties}
    for group in groups:
        if group.name in known or group.name == "all":
            raise InputError(f"groups: '{group.name}' is already the name of a party or group: choose another name")
        unknown = [name for name in group.parties if name not in known]
        if unknown or not group.parties:
            raise InputError(f"groups: '{group.name}' must list parties, or groups declared before it, not {unknown}")
        inside = [party for name in group.parties for party in known[name]]
        if len(set(inside)) != len(inside):
            raise InputError(f"groups: '{group.name}' lists a party twice")
        known[group.name] = tuple(inside)
    return {group.name: known[group.name] for group in groups}
