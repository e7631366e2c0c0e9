"""`bench`: measure, beside what was published and beside a baseline in the same run."""

import click

from syndic.bench import BENCHES, Row
from syndic.cli import show
from syndic.document import to_json


@click.command(epilog="\b\nExample: syndic bench noise --quick --json")
@click.argument("name", type=click.Choice(sorted(BENCHES)))
@click.option("--quick", is_flag=True, help="At most five minutes on two cores.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def bench(name: str, quick: bool, as_json: bool) -> None:
    """Measure one part of Syndic."""
    rows = []
    for row in BENCHES[name](quick):
        if as_json:
            click.echo(to_json(row).decode())
        else:
            rows.append(row)
            click.echo(f"measured {row.row}: {row.metric}", err=True)
    if not as_json:
        columns = ("row", "metric", "value", "unit", "baseline", "published")
        show.as_table(f"bench {name}", columns, (_cells(row) for row in rows))


def _cells(row: Row) -> tuple[str, ...]:
    numbers = ("" if number is None else f"{number:.4g}" for number in (row.baseline, row.published))
    return (row.row, row.metric, f"{row.value:.4g}", row.unit, *numbers)
