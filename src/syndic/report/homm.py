"""HOMM's own section: each party's noisy histogram."""

from typing import Any

from syndic.methods.histogram.homm import HommPlan, MergedTable, spread
from syndic.report.page import Grid, Section
from syndic.report.svg import number
from syndic.study.release import Release


def homm_section(release: Release, result: MergedTable) -> Section:
    """Return how many cells each party's noisy histogram keeps, and how noisy it is."""
    study, plan = release.study, release.study.plan_as(HommPlan)
    size = max(one.domain.size for one in plan.schemas.values())
    grid = "public grid of all columns" if plan.one_grid else "largest of the parties' public grids"
    rows = []
    for name, counts in result.histograms.items():
        noise, total = plan.noise[name], int(counts.counts.sum())
        rows.append((name, number(len(counts.cells)), number(total), f"{spread(noise):.3g}", noise.event.what))
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
