"""Syndic: publish something together from tables that may not be pooled."""

from syndic.advise import Advice, Assumptions, Task, VerticalAdvice, advise, advise_vertical
from syndic.data import Boolean, Categorical, Date, Domain, Instead, Integer, Ordinal, Real, Schema
from syndic.document import exact
from syndic.estimators import PrivateLogisticRegression, PrivateRidge
from syndic.evaluate import Evaluation, PaidScores, evaluate, paid_scores
from syndic.kernel import Limits, Member
from syndic.privacy import Budget, Ledger, Unit
from syndic.protocols import (
    Average,
    CrossTabulation,
    DistDiffGen,
    Estimation,
    Glued,
    GramMatrix,
    Homm,
    LatentTreeSynthesis,
    Marginals,
    PooledGram,
    Risk,
    Synthesis,
    Vertical,
)
from syndic.regression import GramClassifier, GramRegression
from syndic.study import Plan, Release, Statement, Study, plan, simulate
from syndic.synthesizer import HommSynthesizer, MarkovSynthesizer
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
    "DistDiffGen",
    "Domain",
    "Estimation",
    "Evaluation",
    "Glued",
    "GramClassifier",
    "GramMatrix",
    "GramRegression",
    "Homm",
    "HommSynthesizer",
    "Instead",
    "Integer",
    "LatentTreeSynthesis",
    "Ledger",
    "Limits",
    "Marginals",
    "MarkovSynthesizer",
    "Member",
    "Ordinal",
    "PaidScores",
    "Plan",
    "PooledGram",
    "PrivateLogisticRegression",
    "PrivateRidge",
    "Real",
    "Release",
    "Risk",
    "Schema",
    "Statement",
    "Study",
    "Synthesis",
    "Task",
    "Unit",
    "Vertical",
    "VerticalAdvice",
    "__version__",
    "advise",
    "advise_vertical",
    "evaluate",
    "exact",
    "paid_scores",
    "plan",
    "simulate",
]
