"""Intervals for questions about a population, from noisy tables alone."""

from syndic.model.interval.measured import Measured, NoisyTable
from syndic.model.interval.one_step import Interval, interval_of
from syndic.model.interval.question import MOST_LETTERS, quoted

__all__ = ["MOST_LETTERS", "Interval", "Measured", "NoisyTable", "interval_of", "quoted"]
