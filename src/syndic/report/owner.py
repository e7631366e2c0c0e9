"""The private sections of an owner's report: exact shares beside synthetic ones, and the ledger."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.data import Table, open_source
from syndic.errors import InputError
from syndic.kernel import schema_of
from syndic.privacy import Entry, Ledger, Spending, shown
from syndic.privacy.covered import run_of
from syndic.privacy.spending import STUDY_COLUMNS
from syndic.report.figure import Series
from syndic.report.page import Grid, Section
from syndic.report.pictures import Coded, marginal, own_counts
from syndic.report.svg import number
from syndic.study.document import alignment_of
from syndic.study.release import Release

_MOST_ENTRIES = 20
_SPENT_COLUMNS = ("data set", "spent epsilon", "delta", "cap", "left")
_ENTRY_COLUMNS = ("no.", "time (UTC)", "kind", "data set", "study", "charge", "why")


def own_columns_section(release: Release, table: Coded | None, party: str, source: Any) -> Section:
    """Return every column's exact shares at the party beside the synthetic ones. Private."""
    unit, schema = release.study.unit.unweighted, schema_of(release.study, party)
    own = Table(
        schema=schema,
        source=open_source(source),
        person=unit.person,
        rows_per_person=unit.rows,
        choose=unit.choose,
    )
    groupings = [] if table is None else [one for name, one in table.groupings.items() if name in schema.names]
    if table is None or not groupings:
        raise InputError("source: the release has no columns of this party to compare with: leave it out")
    counts, rows = own_counts(own, groupings)
    figures = []
    for one, exact in zip(groupings, counts, strict=True):
        synthetic = one.count(table.codes[one.column.name], table.weights)
        series = (Series("synthetic", _shares(synthetic)), Series(f"{party}, exact", _shares(exact)))
        figures.append(marginal(one, series, percent=True))
    aligned = (
        " Rows of people whom the alignment left out are counted too." if alignment_of(release.study, party) else ""
    )
    return Section(
        title=f"{party}'s own rows beside the synthetic table",
        paragraphs=(
            f"{party} has {number(rows)} rows that count.{aligned} The figures show shares: the synthetic table is "
            "about all parties together. Bars differ by noise, by what is left out, and because the parties differ.",
        ),
        figures=tuple(figures),
        owner=True,
    )


def ledger_section(release: Release, party: str, path: str | Path) -> Section:
    """Return the content of the party's ledger, after verifying it."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such ledger")
    with Ledger.open(path) as book:
        book.verify()
        spendings, studies = [book.spent(dataset) for dataset in book.datasets()], book.studies()
        entries = list(book.entries())
        head = book.head()
    ours = sum(run_of(entry.study) == release.study.digest for entry in entries if entry.kind == "reserve")
    listed = [entry for entry in entries if entry.kind != "call"]
    last = listed[-_MOST_ENTRIES:]
    cut = f" The last {len(last)} are shown." if len(last) < len(listed) else ""
    return Section(
        title=f"{party}'s ledger",
        paragraphs=(
            f"The ledger is verified: {len(entries)} entries, each linked to the one before. {ours} charge(s) have "
            f"this study's digest.{cut}",
            *(
                f"Study {one.study[:12]} disclosed, exactly and outside any epsilon: {text}."
                for one in studies
                for text in one.price.discloses
            ),
        ),
        tables=(
            Grid("Spent on each data set", _SPENT_COLUMNS, tuple(map(_spent_row, spendings))),
            Grid("What each study cost, and what was spent after it", STUDY_COLUMNS, tuple(one.row for one in studies)),
            Grid("Entries", _ENTRY_COLUMNS, tuple(map(_entry_row, last))),
        ),
        notes=(f"Head of the chain: {head}. Publish it or have it countersigned, to make later changes visible.",),
        owner=True,
    )


def _spent_row(one: Spending) -> tuple[str, ...]:
    """Return what was spent on a data set, as `_SPENT_COLUMNS` lists it."""
    return one.dataset, shown(one.epsilon), f"{float(one.delta):g}", shown(one.cap.epsilon), f"{float(one.left):.4g}"


def _entry_row(one: Entry) -> tuple[str, ...]:
    charge = "; ".join(event.what for event in one.events)
    return str(one.number), one.time, one.kind, one.dataset, one.study[:12], charge, one.why


def _shares(counts: NDArray[np.int64]) -> tuple[float, ...]:
    total = int(counts.sum())
    return tuple(float(count) / total if total > 0 else 0.0 for count in counts)
