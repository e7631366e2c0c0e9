"""Studies between organisations: certificates, kits, sites, the coordinator's run, and a doctor for all of it."""

from syndic.deploy.coordinator import Coordinator
from syndic.deploy.papers import Admitted, Approval, Request
from syndic.deploy.party import accept, check_site, prepare
from syndic.deploy.run import run_study

__all__ = ["Admitted", "Approval", "Coordinator", "Request", "accept", "check_site", "prepare", "run_study"]
