"""`bench`: measure Syndic, and compare with published figures and with a baseline in the same run."""

from collections.abc import Iterator
from pathlib import Path

import click

from syndic.cli import show
from syndic.document import to_json
from syndic.errors import InputError
from syndic_lab.bench.align import rows as alignments
from syndic_lab.bench.benches import BENCHES
from syndic_lab.bench.guard import run as guard
from syndic_lab.bench.interval import run as intervals
from syndic_lab.bench.row import Row
from syndic_lab.bench.vertical import plan as vertical_plan


@click.command(epilog="\b\nExample: syndic bench noise --quick --json")
@click.argument("name", type=click.Choice(sorted(BENCHES)))
@click.option("--quick", is_flag=True, help="Shorter measurement: at most five minutes on two cores.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(list(vertical_plan.EXPERIMENTS)),
    help="(vertical) Run this experiment only. May be repeated.",
)
@click.option(
    "--table",
    type=click.Path(path_type=Path),
    help="(vertical) Use this .csv or .parquet file instead of Adult and Fire. Its rows are not protected.",
)
@click.option(
    "--refresh",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="(guard) Measure and write a new baseline to FILE. The stored one is the lab's bench/guard/baseline.json.",
)
@click.option(
    "--processes",
    type=click.IntRange(0),
    help="(interval) Run releases in so many processes; 0 shows only what --resume FILE has.  [default: 1]",
)
@click.option(
    "--resume",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="(interval) Append each release to FILE, and do not run again those that it has.",
)
@click.option("--ids", type=click.IntRange(1), help="(align) Two parties with so many ids each.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def bench(  # noqa: PLR0913, PLR0917  # every option is a parameter
    name: str,
    quick: bool,
    only: tuple[str, ...],
    table: Path | None,
    refresh: Path | None,
    processes: int | None,
    resume: Path | None,
    ids: int | None,
    as_json: bool,
) -> None:
    """Measure the speed or accuracy of one part of Syndic."""
    if refresh is not None:
        if name != "guard":
            raise InputError(f"--refresh is for the bench guard only; {name} has no stored baseline")
        click.echo(f"wrote {guard.refresh(refresh)}")
        return
    rows = []
    many = (processes, resume) != (None, None)
    if many and name != "interval":
        raise click.UsageError("--processes and --resume are for the bench interval only")
    if ids is not None and name != "align":
        raise click.UsageError("--ids is for the bench align only")
    measured = (
        intervals.rows(quick, 1 if processes is None else processes, resume)
        if many
        else _measured(name, quick, only, table)
        if ids is None
        else alignments(quick, ids)
    )
    try:
        for row in measured:
            if as_json:
                click.echo(to_json(row).decode())
            else:
                rows.append(row)
                click.echo(f"measured {row.row}: {row.metric}", err=True)
    finally:  # a figure beyond its limit is an error at the end, and a run may be interrupted
        if rows:
            columns = ("row", "metric", "value", "unit", "baseline", "published")
            show.as_table(f"bench {name}", columns, (_cells(row) for row in rows))


def _measured(name: str, quick: bool, only: tuple[str, ...], table: Path | None) -> Iterator[Row]:
    if not only and table is None:
        return BENCHES[name](quick)
    if name != "vertical":
        raise click.UsageError("--only and --table are for the bench vertical only")
    return vertical_plan.rows(quick, only, table)


def _cells(row: Row) -> tuple[str, ...]:
    numbers = ("" if number is None else f"{number:.4g}" for number in (row.baseline, row.published))
    return (row.row, row.metric, f"{row.value:.4g}", row.unit, *numbers)
