"""Events: what a mechanism did, as the guarantee proven for it. An accountant turns events into a cost.

Each event is for one unit (see `syndic.privacy.unit`) at one party. Events contain public parameters only.
"""

from fractions import Fraction

import msgspec

from syndic.document import Document


class PureEvent(Document, frozen=True, kw_only=True, tag_field="kind", tag="pure"):
    """A release that is `epsilon`-DP with delta 0; `what` describes it in words."""

    epsilon: Fraction
    what: str = ""

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)


class ConcentratedEvent(Document, frozen=True, kw_only=True, tag_field="kind", tag="concentrated"):
    """A release that is `rho`-zCDP (Bun and Steinke 2016, Definition 1.1)."""

    rho: Fraction
    what: str = ""

    def __post_init__(self) -> None:
        check_positive("rho", self.rho)


class ApproximateEvent(Document, frozen=True, kw_only=True, tag_field="kind", tag="approximate"):
    """A release that is (`epsilon`, `delta`)-DP with nothing better proven for it."""

    epsilon: Fraction
    delta: Fraction
    what: str = ""

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_positive("delta", self.delta)
        if self.delta >= 1:
            raise ValueError(f"delta ({self.delta}) must be in (0, 1)")


class GaussianEvent(Document, frozen=True, kw_only=True, tag_field="kind", tag="gaussian"):
    """A release that is nearly mu-GDP (Dong, Roth and Su 2022), mu^2 being `mu_squared`.

    For any two neighbours, each one's law is within total variation `slack` of a law, such that those two laws are
    no easier to tell apart than N(0, 1) and N(mu, 1). Up to the same slack it is (mu^2 / 2)-zCDP. Several releases,
    questions perhaps chosen in view of outcomes, add their mu^2 and their slacks.
    """

    mu_squared: Fraction
    slack: Fraction = msgspec.field(default_factory=Fraction)
    what: str = ""

    def __post_init__(self) -> None:
        check_positive("mu_squared", self.mu_squared)
        if type(self.slack) is not Fraction or not 0 <= self.slack < 1:
            raise ValueError(f"slack ({self.slack}) must be a Fraction in [0, 1)")


Event = PureEvent | ConcentratedEvent | ApproximateEvent | GaussianEvent


def check_positive(name: str, value: Fraction) -> None:
    """Raise `ValueError` unless the value is an exact positive number."""
    # another number type would give the same event another digest, and floats may be infinite or NaN
    if type(value) is not Fraction:
        raise ValueError(f"{name} ({value}) must be a Fraction: write syndic.document.exact({value!r})")
    if value <= 0:
        raise ValueError(f"{name} ({value}) must be positive and finite")
