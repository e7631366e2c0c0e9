"""Who is protected, what was done with their data, what it costs, and the ledger that remembers it."""

from syndic.privacy.account import (
    Accountant,
    curve,
    epsilon_of,
    gaussian_epsilon,
    gaussian_sigma,
    mu_squared_for,
    pure_for,
    rho_for,
    zcdp_epsilon,
)
from syndic.privacy.chain import Entry
from syndic.privacy.cost import Cost, joint_cost
from syndic.privacy.event import ApproximateEvent, ConcentratedEvent, Event, GaussianEvent, PureEvent
from syndic.privacy.ledger import Called, Ledger, Reservation, Spending
from syndic.privacy.unit import Budget, Unit, check_delta, default_delta

__all__ = [
    "Accountant",
    "ApproximateEvent",
    "Budget",
    "Called",
    "ConcentratedEvent",
    "Cost",
    "Entry",
    "Event",
    "GaussianEvent",
    "Ledger",
    "PureEvent",
    "Reservation",
    "Spending",
    "Unit",
    "check_delta",
    "curve",
    "default_delta",
    "epsilon_of",
    "gaussian_epsilon",
    "gaussian_sigma",
    "joint_cost",
    "mu_squared_for",
    "pure_for",
    "rho_for",
    "zcdp_epsilon",
]
