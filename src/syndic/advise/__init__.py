"""Is sharing worth it? Bounds of the theory, and predictions from public numbers; no row is read."""

from syndic.advise.advice import Advice, PartyAdvice, TaskAdvice
from syndic.advise.assume import Assumptions, ColumnAssumption
from syndic.advise.predict import advise
from syndic.advise.task import Task
from syndic.advise.vertical import advise_vertical
from syndic.advise.vertical_advice import VariantAdvice, VerticalAdvice

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
