"""Syndic: publish something together from tables that may not be pooled."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from syndic.version import __version__

if TYPE_CHECKING:
    from syndic.advice import Advice, Assumptions, Task, VerticalAdvice, advise, advise_vertical
    from syndic.data import Boolean, Categorical, Date, Domain, Instead, Integer, Ordinal, Real, Schema
    from syndic.document import exact
    from syndic.evaluation import Evaluation, PaidScores, evaluate, paid_scores
    from syndic.kernel import Limits, Member
    from syndic.methods import (
        Average,
        Crosstables,
        Distdiffgen,
        Dplt,
        Estimation,
        Glued,
        Gram,
        Homm,
        Marginals,
        PooledGram,
        Risk,
        Synthesis,
        Vertical,
    )
    from syndic.privacy import Budget, Ledger, Unit
    from syndic.sklearn.homm import HommSynthesizer
    from syndic.sklearn.markov import MarkovSynthesizer
    from syndic.sklearn.models import PrivateLogisticRegression, PrivateRidge
    from syndic.sklearn.regression import GramClassifier, GramRegression
    from syndic.study import PlanSummary, Release, Statement, Study, plan, simulate

__all__ = [
    "Advice",
    "Assumptions",
    "Average",
    "Boolean",
    "Budget",
    "Categorical",
    "Crosstables",
    "Date",
    "Distdiffgen",
    "Domain",
    "Dplt",
    "Estimation",
    "Evaluation",
    "Glued",
    "Gram",
    "GramClassifier",
    "GramRegression",
    "Homm",
    "HommSynthesizer",
    "Instead",
    "Integer",
    "Ledger",
    "Limits",
    "Marginals",
    "MarkovSynthesizer",
    "Member",
    "Ordinal",
    "PaidScores",
    "PlanSummary",
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

# each name is loaded when it is first asked for: a party's process needs no advisor, no estimators and no plots
_HOMES = {
    "Advice": "syndic.advice",
    "Assumptions": "syndic.advice",
    "Average": "syndic.methods",
    "Boolean": "syndic.data",
    "Budget": "syndic.privacy",
    "Categorical": "syndic.data",
    "Crosstables": "syndic.methods",
    "Date": "syndic.data",
    "Distdiffgen": "syndic.methods",
    "Domain": "syndic.data",
    "Estimation": "syndic.methods",
    "Evaluation": "syndic.evaluation",
    "Glued": "syndic.methods",
    "GramClassifier": "syndic.sklearn.regression",
    "Gram": "syndic.methods",
    "GramRegression": "syndic.sklearn.regression",
    "Homm": "syndic.methods",
    "HommSynthesizer": "syndic.sklearn.homm",
    "Instead": "syndic.data",
    "Integer": "syndic.data",
    "Dplt": "syndic.methods",
    "Ledger": "syndic.privacy",
    "Limits": "syndic.kernel",
    "Marginals": "syndic.methods",
    "MarkovSynthesizer": "syndic.sklearn.markov",
    "Member": "syndic.kernel",
    "Ordinal": "syndic.data",
    "PaidScores": "syndic.evaluation",
    "PlanSummary": "syndic.study",
    "PooledGram": "syndic.methods",
    "PrivateLogisticRegression": "syndic.sklearn.models",
    "PrivateRidge": "syndic.sklearn.models",
    "Real": "syndic.data",
    "Release": "syndic.study",
    "Risk": "syndic.methods",
    "Schema": "syndic.data",
    "Statement": "syndic.study",
    "Study": "syndic.study",
    "Synthesis": "syndic.methods",
    "Task": "syndic.advice",
    "Unit": "syndic.privacy",
    "Vertical": "syndic.methods",
    "VerticalAdvice": "syndic.advice",
    "advise": "syndic.advice",
    "advise_vertical": "syndic.advice",
    "evaluate": "syndic.evaluation",
    "exact": "syndic.document",
    "paid_scores": "syndic.evaluation",
    "plan": "syndic.study",
    "simulate": "syndic.study",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module 'syndic' has no attribute {name!r}"
        raise AttributeError(message)
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
