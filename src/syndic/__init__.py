"""Syndic: publish something together from tables that may not be pooled."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from syndic.version import __version__

if TYPE_CHECKING:
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

# each name is loaded when it is first asked for: a party's process needs no advisor, no estimators and no plots
_HOMES = {
    "Advice": "syndic.advise",
    "Assumptions": "syndic.advise",
    "Average": "syndic.protocols",
    "Boolean": "syndic.data",
    "Budget": "syndic.privacy",
    "Categorical": "syndic.data",
    "CrossTabulation": "syndic.protocols",
    "Date": "syndic.data",
    "DistDiffGen": "syndic.protocols",
    "Domain": "syndic.data",
    "Estimation": "syndic.protocols",
    "Evaluation": "syndic.evaluate",
    "Glued": "syndic.protocols",
    "GramClassifier": "syndic.regression",
    "GramMatrix": "syndic.protocols",
    "GramRegression": "syndic.regression",
    "Homm": "syndic.protocols",
    "HommSynthesizer": "syndic.synthesizer",
    "Instead": "syndic.data",
    "Integer": "syndic.data",
    "LatentTreeSynthesis": "syndic.protocols",
    "Ledger": "syndic.privacy",
    "Limits": "syndic.kernel",
    "Marginals": "syndic.protocols",
    "MarkovSynthesizer": "syndic.synthesizer",
    "Member": "syndic.kernel",
    "Ordinal": "syndic.data",
    "PaidScores": "syndic.evaluate",
    "Plan": "syndic.study",
    "PooledGram": "syndic.protocols",
    "PrivateLogisticRegression": "syndic.estimators",
    "PrivateRidge": "syndic.estimators",
    "Real": "syndic.data",
    "Release": "syndic.study",
    "Risk": "syndic.protocols",
    "Schema": "syndic.data",
    "Statement": "syndic.study",
    "Study": "syndic.study",
    "Synthesis": "syndic.protocols",
    "Task": "syndic.advise",
    "Unit": "syndic.privacy",
    "Vertical": "syndic.protocols",
    "VerticalAdvice": "syndic.advise",
    "advise": "syndic.advise",
    "advise_vertical": "syndic.advise",
    "evaluate": "syndic.evaluate",
    "exact": "syndic.document",
    "paid_scores": "syndic.evaluate",
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


class _Package(ModuleType):
    """This module: `evaluate` and `advise` are functions here, and folders that importing binds to the same names."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _HOMES.get(name) == value.__name__:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
