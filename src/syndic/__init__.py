"""Syndic: publish something together from tables that may not be pooled."""

from syndic.advise import Advice, Assumptions, Task, advise
from syndic.data import Boolean, Categorical, Date, Domain, Instead, Integer, Ordinal, Real, Schema
from syndic.document import exact
from syndic.evaluate import Evaluation, PaidScores, evaluate, paid_scores
from syndic.kernel import Limits, Member
from syndic.privacy import Budget, Ledger, Unit
from syndic.protocols import Average, CrossTabulation, Estimation, Homm, Marginals
from syndic.study import Plan, Release, Statement, Study, plan, simulate
from syndic.synthesizer import HommSynthesizer
from syndic.version import __version__

__all__ = [
    "Advice",
    "Assumptions",
    "Average",
    "Boolean",
    "Budget",
    "Categorical",
    "CrossTabulation",
    "Date",
    "Domain",
    "Estimation",
    "Evaluation",
    "Homm",
    "HommSynthesizer",
    "Instead",
    "Integer",
    "Ledger",
    "Limits",
    "Marginals",
    "Member",
    "Ordinal",
    "PaidScores",
    "Plan",
    "Real",
    "Release",
    "Schema",
    "Statement",
    "Study",
    "Task",
    "Unit",
    "__version__",
    "advise",
    "evaluate",
    "exact",
    "paid_scores",
    "plan",
    "simulate",
]
