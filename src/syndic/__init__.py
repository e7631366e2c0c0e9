"""Syndic: publish something together from tables that may not be pooled."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# each name is loaded when it is first asked for: a party's process needs no advisor, no estimators and no plots
_NAMES = {
    "syndic.advice": "Advice Assumptions Task VerticalAdvice advise advise_vertical",
    "syndic.data": "Boolean Categorical Date Domain Instead Integer Ordinal Real Schema",
    "syndic.document": "exact",
    "syndic.evaluation": "Evaluation PrivateScores evaluate private_scores",
    "syndic.kernel": "Limits Member",
    "syndic.methods": "Average Crosstables Distdiffgen Dplt Estimate Glued Gram Homm Marginals PooledGram Learn "
    "Synthesis Vertical",
    "syndic.privacy": "Budget Ledger Unit",
    "syndic.sklearn.homm": "HommSynthesizer",
    "syndic.sklearn.markov": "MarkovSynthesizer",
    "syndic.sklearn.models": "PrivateLogisticRegression PrivateRidge",
    "syndic.sklearn.regression": "GramClassifier GramRegression",
    "syndic.study": "PlanSummary Release Statement Study plan simulate",
    "syndic.version": "__version__",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = list(_HOMES)

if TYPE_CHECKING:
    from syndic.advice import Advice as Advice
    from syndic.advice import Assumptions as Assumptions
    from syndic.advice import Task as Task
    from syndic.advice import VerticalAdvice as VerticalAdvice
    from syndic.advice import advise as advise
    from syndic.advice import advise_vertical as advise_vertical
    from syndic.data import Boolean as Boolean
    from syndic.data import Categorical as Categorical
    from syndic.data import Date as Date
    from syndic.data import Domain as Domain
    from syndic.data import Instead as Instead
    from syndic.data import Integer as Integer
    from syndic.data import Ordinal as Ordinal
    from syndic.data import Real as Real
    from syndic.data import Schema as Schema
    from syndic.document import exact as exact
    from syndic.evaluation import Evaluation as Evaluation
    from syndic.evaluation import PrivateScores as PrivateScores
    from syndic.evaluation import evaluate as evaluate
    from syndic.evaluation import private_scores as private_scores
    from syndic.kernel import Limits as Limits
    from syndic.kernel import Member as Member
    from syndic.methods import Average as Average
    from syndic.methods import Crosstables as Crosstables
    from syndic.methods import Distdiffgen as Distdiffgen
    from syndic.methods import Dplt as Dplt
    from syndic.methods import Estimate as Estimate
    from syndic.methods import Glued as Glued
    from syndic.methods import Gram as Gram
    from syndic.methods import Homm as Homm
    from syndic.methods import Learn as Learn
    from syndic.methods import Marginals as Marginals
    from syndic.methods import PooledGram as PooledGram
    from syndic.methods import Synthesis as Synthesis
    from syndic.methods import Vertical as Vertical
    from syndic.privacy import Budget as Budget
    from syndic.privacy import Ledger as Ledger
    from syndic.privacy import Unit as Unit
    from syndic.sklearn.homm import HommSynthesizer as HommSynthesizer
    from syndic.sklearn.markov import MarkovSynthesizer as MarkovSynthesizer
    from syndic.sklearn.models import PrivateLogisticRegression as PrivateLogisticRegression
    from syndic.sklearn.models import PrivateRidge as PrivateRidge
    from syndic.sklearn.regression import GramClassifier as GramClassifier
    from syndic.sklearn.regression import GramRegression as GramRegression
    from syndic.study import PlanSummary as PlanSummary
    from syndic.study import Release as Release
    from syndic.study import Statement as Statement
    from syndic.study import Study as Study
    from syndic.study import plan as plan
    from syndic.study import simulate as simulate
    from syndic.version import __version__ as __version__


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module 'syndic' has no attribute {name!r}"
        raise AttributeError(message)
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
