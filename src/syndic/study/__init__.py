"""The agreed document, its plan, its run and its release."""

from syndic.study.document import Study
from syndic.study.party_folder import PartyFile, PartyFolder
from syndic.study.release import Release
from syndic.study.simulate import simulate
from syndic.study.statement import PlanSummary, Statement, plan

__all__ = ["PartyFile", "PartyFolder", "PlanSummary", "Release", "Statement", "Study", "plan", "simulate"]
