"""Syndic: publish something together from tables that may not be pooled."""

from syndic.data import Boolean, Categorical, Date, Domain, Integer, Ordinal, Real, Schema
from syndic.document import exact
from syndic.kernel import Limits, Member
from syndic.privacy import Budget, Ledger, Unit
from syndic.protocols import Homm
from syndic.study import Plan, Release, Statement, Study, plan, simulate
from syndic.version import __version__

__all__ = [
    "Boolean",
    "Budget",
    "Categorical",
    "Date",
    "Domain",
    "Homm",
    "Integer",
    "Ledger",
    "Limits",
    "Member",
    "Ordinal",
    "Plan",
    "Real",
    "Release",
    "Schema",
    "Statement",
    "Study",
    "Unit",
    "__version__",
    "exact",
    "plan",
    "simulate",
]
