"""The sections of methods that publish a synthetic table: how it was made, and which relations can be relied on."""

from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syndic.data import Date
from syndic.data.column import Listed
from syndic.methods.histogram.homm import HommPlan, MergedTable
from syndic.methods.synthesis.result import SyntheticTable
from syndic.methods.synthesis.trust import POOR, PairTrust, Reliability
from syndic.model.interval import MOST_LETTERS, quoted
from syndic.model.markov import Measurement
from syndic.report.figure import Heat
from syndic.report.page import Grid, Section
from syndic.report.pictures import in_map, left_out
from syndic.report.svg import number
from syndic.study.release import Release

_SHOWN: Final = 20


def reliability_section(reliability: Reliability) -> Section:
    """Return the section: the sentence, the map, the worst pairs, and the relations to the target."""
    target = reliability.target
    marked = f" The target, {target}, is first and outlined." if target is not None else ""
    listed = reliability.worst() if target is None else reliability.with_target()
    caption = "Parts of the largest expected errors" if target is None else f"Relations to {target}, the worst first"
    head = ("columns", "expected error", "noise", "merged values", "model", "drawn rows", "association", "at most")
    return Section(
        title="Which relations can be relied on",
        paragraphs=(
            reliability.sentence,
            "An expected error is the total variation distance between this table and the rows behind it: 0 means the "
            "same shares, 1 nothing in common. It is computed from the release alone, from the noise on the counts, "
            "the values that were merged, and what the model does not hold. It is an expectation and not a bound: on "
            "made-up tables, most true errors are at most 1.5 times the expected one.",
        ),
        points=tuple(f"{pair}." for pair in reliability.worst()),
        figures=(_map(reliability, marked),),
        tables=(Grid(caption, head, tuple(map(_row, listed))),),
    )


def _map(reliability: Reliability, marked: str) -> Heat:
    target = reliability.target
    every = sorted((one.column for one in reliability.columns), key=lambda name: name != target)
    worst = (pair.columns for pair in reliability.worst(len(reliability.pairs)))
    names = in_map(every, ((target,) if target else (), *worst)) if len(every) > 1 else every
    labels = tuple(f"▸ {name}" if name == target else name for name in names)
    errors = {frozenset(pair.columns): pair.expected.error for pair in reliability.pairs}
    errors |= {frozenset((one.column,)): one.expected.error for one in reliability.columns}
    return Heat(
        title="Expected error of every column and every pair",
        description=f"Numbers are hundredths of the largest possible error, 1. The diagonal has the single columns. "
        f"Above {POOR:g} (10), a relation is not held well.{marked}{left_out(names, len(every))}",
        rows=labels,
        columns=labels,
        values=tuple(tuple(errors[frozenset((one, other))] for other in names) for one in names),
        hundredths=True,
        marked=f"▸ {target}",
        width=680,
    )


def _row(pair: PairTrust) -> tuple[str, ...]:
    one = pair.expected
    values = (one.error, one.noise, one.merged, one.model, one.drawn, pair.strength, pair.limit)
    return " x ".join(pair.columns), *(f"{value:.3f}" for value in values)


def homm_section(release: Release, result: MergedTable) -> Section:
    """Return how many cells each party's noisy histogram keeps, and how noisy it is."""
    study, plan = release.study, release.study.plan_as(HommPlan)
    size = max(one.domain.size for one in plan.schemas.values())
    grid = "public grid of all columns" if plan.one_grid else "largest of the parties' public grids"
    rows = []
    for name, counts in result.histograms.items():
        noise, total = plan.noise[name], int(counts.counts.sum())
        rows.append((name, number(len(counts.cells)), number(total), f"{noise.variance**0.5:.3g}", noise.event.what))
    table = Grid(
        "Noisy histogram of each party (published: cells.parquet)",
        ("party", "cells kept", "sum of noisy counts", "standard deviation of the noise", "noise"),
        tuple(rows),
    )
    return Section(
        title="How the table was made: noisy counts",
        paragraphs=(
            f"The {grid} has {number(size)} cells. Each party counted its rows in every cell "
            "and added noise to every count, empty cells too. The cells that were kept are published and rows were "
            "drawn from them: a category as it is, a number uniformly within its bin.",
            _rule(study.protocol),
        ),
        points=tuple(f"Known before any row was read: {note}." for note in study.plan.resources.notes[1:2]),
        tables=(table,),
    )


def _rule(protocol: Any) -> str:
    if not protocol.clamp:
        return "Every cell is published with its signed count; rows of negative cells carry the weight -1."
    least = protocol.at_least
    return (
        f"Cells with a noisy count below {least} are left out. Small cells that noise raised remain, and nothing "
        "balances them: the table has more rows, and flatter columns, than the data."
    )


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
