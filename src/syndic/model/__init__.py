"""Statistical models: what is summed over rows, and what parameters follow from it."""

from syndic.model.families.continuous import Exponential, Gamma, GammaRate, Normal, NormalMean, NormalVariance
from syndic.model.families.discrete import Bernoulli, Binomial, Geometric, Multinomial, Poisson
from syndic.model.families.family import Family

AnyFamily = (
    Bernoulli
    | Binomial
    | Exponential
    | Gamma
    | GammaRate
    | Geometric
    | Multinomial
    | Normal
    | NormalMean
    | NormalVariance
    | Poisson
)

__all__ = [
    "AnyFamily",
    "Bernoulli",
    "Binomial",
    "Exponential",
    "Family",
    "Gamma",
    "GammaRate",
    "Geometric",
    "Multinomial",
    "Normal",
    "NormalMean",
    "NormalVariance",
    "Poisson",
]
