"""Is sharing worth it? Bounds of the theory, and predictions from public numbers; no row is read."""

from syndic.advice.advice import Advice as Advice
from syndic.advice.advice import VerticalAdvice as VerticalAdvice
from syndic.advice.assume import Assumptions as Assumptions
from syndic.advice.predict import advise as advise
from syndic.advice.task import Task as Task
from syndic.advice.vertical import advise_vertical as advise_vertical
