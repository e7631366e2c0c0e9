"""Studies between organisations: certificates, kits, sites, the coordinator's run, and a doctor for all of it."""

from syndic.federation.coordinator import Coordinator
from syndic.federation.party import accept, check_site, prepare
from syndic.federation.requests import Admitted, Approval, Request
from syndic.federation.run import run_federated

__all__ = ["Admitted", "Approval", "Coordinator", "Request", "accept", "check_site", "prepare", "run_federated"]
