"""The report of a release as one HTML file, its metadata for catalogues, and documents for a privacy officer.

A method adds a `Section` to a report; `figure` has the figures, also for other modules.
"""

from syndic.report.catalogues import About as About
from syndic.report.catalogues import Curator as Curator
from syndic.report.catalogues import croissant as croissant
from syndic.report.catalogues import healthdcat as healthdcat
from syndic.report.dossier import Case as Case
from syndic.report.dossier import write_dossier as write_dossier
from syndic.report.figure import Bars as Bars
from syndic.report.figure import Curve as Curve
from syndic.report.figure import Line as Line
from syndic.report.figure import Series as Series
from syndic.report.page import Section as Section
from syndic.report.registry import registry_entry as registry_entry
from syndic.report.registry import write_catalogue as write_catalogue
from syndic.report.write import coefficient_tables as coefficient_tables
from syndic.report.write import owner_report as owner_report
from syndic.report.write import report as report
