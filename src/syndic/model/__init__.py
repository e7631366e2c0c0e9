"""Statistical models: the statistics that are summed over rows, and parameters estimated from them."""

from syndic.model.families.continuous import Exponential as Exponential
from syndic.model.families.continuous import Gamma as Gamma
from syndic.model.families.continuous import GammaRate as GammaRate
from syndic.model.families.continuous import Normal as Normal
from syndic.model.families.continuous import NormalMean as NormalMean
from syndic.model.families.continuous import NormalVariance as NormalVariance
from syndic.model.families.discrete import Bernoulli as Bernoulli
from syndic.model.families.discrete import Binomial as Binomial
from syndic.model.families.discrete import Geometric as Geometric
from syndic.model.families.discrete import Multinomial as Multinomial
from syndic.model.families.discrete import Poisson as Poisson
from syndic.model.families.family import Family as Family

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
