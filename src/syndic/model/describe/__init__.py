"""Everyday statistics from noisy sums over people: value, interval and p-value, with the noise in every variance."""

from syndic.model.describe.numbers import deviation as deviation
from syndic.model.describe.numbers import equal_means as equal_means
from syndic.model.describe.numbers import mean as mean
from syndic.model.describe.numbers import mean_difference as mean_difference
from syndic.model.describe.numbers import quantile as quantile
from syndic.model.describe.numbers import standardised_difference as standardised_difference
from syndic.model.describe.regression import Kind as Kind
from syndic.model.describe.regression import regression as regression
from syndic.model.describe.sums import ChiSquared as ChiSquared
from syndic.model.describe.sums import Statistic as Statistic
from syndic.model.describe.sums import Sums as Sums
from syndic.model.describe.tables import Comparison as Comparison
from syndic.model.describe.tables import compare as compare
from syndic.model.describe.tables import independence as independence
from syndic.model.describe.tables import share as share
from syndic.model.describe.tables import tested as tested
from syndic.model.describe.tables import trend as trend
