"""How the command line talks: JSON for programs, a few lines for people, a bar for long work."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from syndic import kernel
from syndic.document import to_readable_json

PATH = click.Path(path_type=Path)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def as_json(content: Any) -> None:
    """Print a document, or anything made of dicts and lists, as indented JSON."""
    click.echo(to_readable_json(content).decode(), nl=False)


def as_json_or(text: object, content: Any, *, as_json: bool) -> None:
    """Print the content for programs, or else the text for people."""
    click.echo(to_readable_json(content).decode() if as_json else str(text), nl=not as_json)


def as_lines(content: Mapping[str, Any]) -> None:
    """Print names and values, one a line."""
    width = max(len(name) for name in content)
    for name, value in content.items():
        click.echo(f"{name:<{width}}  {value}")


def as_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table as wide as the terminal."""
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


@contextmanager
def progress_bar(*, shown: bool) -> Iterator[kernel.Progress]:
    """Give a function that draws progress on standard error, if that is a terminal."""
    if not shown or not sys.stderr.isatty():
        yield kernel.silent_progress
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield report
