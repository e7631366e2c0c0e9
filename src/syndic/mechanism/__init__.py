"""Mechanisms: noise and its event in one frozen object. Every law is exact; bits come from outside."""

from syndic.mechanism.base import Mechanism
from syndic.mechanism.exponential import ExponentialMechanism, ReportNoisyMax
from syndic.mechanism.fine import FineGaussian, FineGaussianShare
from syndic.mechanism.gaussian import DiscreteGaussian
from syndic.mechanism.laplace import DiscreteLaplace
from syndic.mechanism.response import RandomisedResponse
from syndic.mechanism.shares import GaussianShare, LaplaceShare, SkellamShare
from syndic.mechanism.sparse import Cells, SparseHistogram

__all__ = [
    "Cells",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "FineGaussian",
    "FineGaussianShare",
    "GaussianShare",
    "LaplaceShare",
    "Mechanism",
    "RandomisedResponse",
    "ReportNoisyMax",
    "SkellamShare",
    "SparseHistogram",
]
