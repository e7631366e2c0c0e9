"""Audits: attempts to break every privacy claim as shipped, and faults planted to see that they would be found."""

from syndic.audit.page import write_page
from syndic.audit.planted import Caught, faults
from syndic.audit.planted_laws import Fault
from syndic.audit.registry import Audit, audits
from syndic.audit.run import ALARM, AuditReport, BrokenClaimError, PlantedReport, audit, plant, told
from syndic.audit.trial import Finding

__all__ = [
    "ALARM",
    "Audit",
    "AuditReport",
    "BrokenClaimError",
    "Caught",
    "Fault",
    "Finding",
    "PlantedReport",
    "audit",
    "audits",
    "faults",
    "plant",
    "told",
    "write_page",
]
