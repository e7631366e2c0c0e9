"""Audits: attempts to break every privacy claim as shipped, and faults planted to see that they would be found."""

from syndic_lab.audit.observation import Finding
from syndic_lab.audit.page import write_page
from syndic_lab.audit.planted import Caught, faults
from syndic_lab.audit.planted_laws import Fault
from syndic_lab.audit.registry import Audit, audits
from syndic_lab.audit.run import ALARM, AuditReport, BrokenClaimError, PlantedReport, audit, plant, told

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
