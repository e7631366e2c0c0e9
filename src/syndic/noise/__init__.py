"""Mechanisms: noise and its event in one frozen object. Every law is exact; bits come from outside."""

from syndic.noise.base import Mechanism as Mechanism
from syndic.noise.exponential import ExponentialMechanism as ExponentialMechanism
from syndic.noise.exponential import ReportNoisyMax as ReportNoisyMax
from syndic.noise.gaussian import DiscreteGaussian as DiscreteGaussian
from syndic.noise.gaussian_grid import FineGaussian as FineGaussian
from syndic.noise.gaussian_grid import FineGaussianShare as FineGaussianShare
from syndic.noise.laplace import DiscreteLaplace as DiscreteLaplace
from syndic.noise.response import RandomisedResponse as RandomisedResponse
from syndic.noise.shares import GaussianShare as GaussianShare
from syndic.noise.shares import LaplaceShare as LaplaceShare
from syndic.noise.shares import SkellamShare as SkellamShare
from syndic.noise.sparse import Cells as Cells
from syndic.noise.sparse import SparseHistogram as SparseHistogram
