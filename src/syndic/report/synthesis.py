"""The section of the synthesis: what was measured, how well the model fits it, and the groups of the model."""

from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Date
from syndic.data.column import Listed
from syndic.methods.synthesis.result import SyntheticTable
from syndic.model.interval import MOST_LETTERS, quoted
from syndic.model.markov import Measurement
from syndic.report.page import Grid, Section
from syndic.report.svg import number
from syndic.study.release import Release

_SHOWN: Final = 20


def synthesis_section(release: Release, result: SyntheticTable) -> Section:
    """Return the section on how the table was made."""
    note = result.note
    opened = sum(len(one.tables) for one in note.rounds)
    return Section(
        title="How the table was made: noisy tables and a model",
        paragraphs=(
            f"In {len(note.rounds)} rounds {number(opened)} tables of counts of all rows together were opened, "
            "each with noise, and no other table. What later rounds asked was chosen from what earlier ones had "
            "opened. A model was fitted to all of them, and every row of the synthetic table was drawn from it.",
            f"By the noisy counts there are about {number(round(note.total))} rows{_between(release)}. The model "
            f"has {number(note.cells)} cells in {number(len(note.cliques))} groups of columns. Columns in no "
            "common group are related only through the columns that the groups share.",
        ),
        tables=(_intervals(release), _groups(result), _rounds(result), _measured(result)),
    )


def _between(release: Release) -> str:
    """Return the 95 % interval of the number of rows, unless it is public: all tables' sums, by their precision."""
    measured = release.measured
    if measured.public:
        return ""
    half = NormalDist().inv_cdf(0.975) / sum(1 / (one.variance * one.values.size) for one in measured.tables) ** 0.5
    return f" (95 % interval: {number(round(measured.rows - half))} to {number(round(measured.rows + half))})"


def _made(result: SyntheticTable, table: Measurement) -> NDArray[np.float64] | None:
    """Return the model's own table, or None if the noisy one has bins that only its method knows."""
    field = result.model.fitted.field
    # noisy tables are of levels in the first round and of the model's groups of levels later
    grouped = table.values.shape == field.domain.project(table.names).sizes
    made = (field if grouped else result.model).marginal(table.names).values
    return made if made.shape == table.values.shape else None


def _intervals(release: Release) -> Grid:
    """Return the mean of every column of numbers and the share of every other column's most frequent value."""
    rows = []
    for column in release.study.schema.columns[:_SHOWN]:
        if isinstance(column, Date):
            continue
        counts = release.model.marginal((column.name,)).values
        value = f" == {column.labels()[int(counts.argmax())]!r}" if isinstance(column, Listed) else ""
        question = f"mean({quoted(column.name)}{value})"
        if len(question) > MOST_LETTERS:
            continue
        found = release.interval(question)
        ends = found.reason if found.low is None else f"{found.low:.4g} to {found.high:.4g}"
        rows.append((found.question, "" if found.value is None else f"{found.value:.4g}", ends or ""))
    return Grid(
        "Means and shares with 95 % intervals, which account for sampling and noise. Intervals from the "
        "synthetic rows are too narrow: use release.interval or syndic interval",
        ("question", "value", "95 % interval"),
        tuple(rows),
    )


def _groups(result: SyntheticTable) -> Grid:
    """Return the groups of columns whose joint distribution the model holds."""
    domain = result.model.fitted.field.domain
    groups = sorted((-domain.project(names).size, names) for names in result.note.cliques)[:_SHOWN]
    rows = tuple((", ".join(names), number(-cells)) for cells, names in groups)
    return Grid(f"Groups of columns of the model, the largest {len(rows)}", ("columns", "cells"), rows)


def _rounds(result: SyntheticTable) -> Grid:
    rows = []
    for place, one in enumerate(result.note.rounds, 1):
        # a table across parties of different columns has more noise than one within a party
        deviations = " or ".join(f"{each:.3g}" for each in sorted(set(one.deviation_of)))
        rows.append((str(place), f"{len(one.tables)} tables", deviations, number(len(one.present))))
    head = ("round", "opened", "standard deviation of every count", "parties in the sum")
    return Grid("Rounds", head, tuple(rows))


def _measured(result: SyntheticTable) -> Grid:
    """Return the largest noisy tables with the root mean square difference of the model's, in standard deviations."""
    rows = []
    for one in sorted(result.tables, key=lambda one: (-one.values.size, one.names))[:_SHOWN]:
        made = _made(result, one)
        off = "" if made is None else f"{np.sqrt(np.mean((made - one.values) ** 2) / one.variance):.3g}"
        rows.append((" x ".join(one.names), number(one.values.size), f"{one.variance**0.5:.3g}", off))
    left = len(result.tables) - len(rows)
    more = f" The {left} others are in tables.parquet." if left else ""
    return Grid(
        "Noisy tables, the largest first, and how far the model is from each, in standard deviations of a count: about "
        f"1 is what noise explains, more is what the model leaves out.{more}",
        ("columns", "cells", "standard deviation of a count", "distance of the model"),
        tuple(rows),
    )
