"""Survival from counts: risk sets, curves, the log-rank test and proportional hazards, with noise in every variance."""

from syndic.model.survival.curve import Curve as Curve
from syndic.model.survival.curve import Estimate as Estimate
from syndic.model.survival.curve import incidence as incidence
from syndic.model.survival.curve import survival as survival
from syndic.model.survival.hazard import LogRank as LogRank
from syndic.model.survival.hazard import log_rank as log_rank
from syndic.model.survival.hazard import proportional_hazards as proportional_hazards
from syndic.model.survival.risk import RiskSets as RiskSets
from syndic.model.survival.risk import risk_sets as risk_sets
