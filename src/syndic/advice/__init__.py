"""Is sharing worth it? Bounds of the theory, and predictions from public numbers; no row is read."""

from syndic.advice.advice import Advice, PartyAdvice, TaskAdvice
from syndic.advice.assume import Assumptions, ColumnAssumption
from syndic.advice.predict import advise
from syndic.advice.task import Task
from syndic.advice.vertical import advise_vertical
from syndic.advice.vertical_advice import VariantAdvice, VerticalAdvice

__all__ = [
    "Advice",
    "Assumptions",
    "ColumnAssumption",
    "PartyAdvice",
    "Task",
    "TaskAdvice",
    "VariantAdvice",
    "VerticalAdvice",
    "advise",
    "advise_vertical",
]
