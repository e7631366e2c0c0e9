"""The report of a release: one HTML file that a person can read, with pictures.

`Section` is what a method adds to a report; `figure` has the pictures, for other parts too.
"""

from syndic.report.about import About, Curator
from syndic.report.croissant import croissant, write_croissant
from syndic.report.figure import Bars, Curve, Figure, Heat, Line, Series
from syndic.report.registry import registry_entry, write_registry
from syndic.report.section import Grid, Section
from syndic.report.write import METHOD_SECTIONS, owner_report, report

__all__ = [
    "METHOD_SECTIONS",
    "About",
    "Bars",
    "Curator",
    "Curve",
    "Figure",
    "Grid",
    "Heat",
    "Line",
    "Section",
    "Series",
    "croissant",
    "owner_report",
    "registry_entry",
    "report",
    "write_croissant",
    "write_registry",
]
