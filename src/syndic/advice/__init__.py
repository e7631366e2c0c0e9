"""Predict what a study would be worth, from public numbers alone: no row is read."""

from syndic.advice.advice import Advice as Advice
from syndic.advice.advice import NoiseAdvice as NoiseAdvice
from syndic.advice.advice import VerticalAdvice as VerticalAdvice
from syndic.advice.assume import Assumptions as Assumptions
from syndic.advice.dispatch import advise as advise
from syndic.advice.published import warning as warning
from syndic.advice.task import Task as Task
