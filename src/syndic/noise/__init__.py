"""Mechanisms: noise and its privacy event in one frozen object. Sampling is exact; random bits are passed in."""

from syndic.noise.gaussian import DiscreteGaussian
from syndic.noise.gaussian_grid import FineGaussian, FineGaussianShare
from syndic.noise.integer import Mechanism
from syndic.noise.laplace import DiscreteLaplace
from syndic.noise.response import RandomisedResponse
from syndic.noise.shares import GaussianShare, LaplaceShare, SkellamShare
from syndic.noise.sparse import Cells, SparseHistogram

__all__ = [
    "Cells",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "FineGaussian",
    "FineGaussianShare",
    "GaussianShare",
    "LaplaceShare",
    "Mechanism",
    "RandomisedResponse",
    "SkellamShare",
    "SparseHistogram",
]
