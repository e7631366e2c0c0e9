"""Synthesis in the manner of scikit-learn: parameters in the constructor, `fit` on frames, `sample` synthetic rows."""

from syndic.synthesizer.homm import HommSynthesizer
from syndic.synthesizer.markov import MarkovSynthesizer

__all__ = ["HommSynthesizer", "MarkovSynthesizer"]
