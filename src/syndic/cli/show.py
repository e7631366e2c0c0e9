"""Output of the command line: JSON for programs, short lines for people, a progress display, questions."""

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from syndic import kernel
from syndic.document import to_readable_json

Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
STUDY = click.argument("study_file", metavar="STUDY", type=PATH)
FOLDER = click.argument("folder", type=PATH)
_NARROWEST: Final = 40


def home(words: str) -> Callable[[Command], Command]:
    """Return the option that names a folder."""
    return click.option("--home", "folder", required=True, type=PATH, help=words)


def sources(words: str) -> Callable[[Command], Command]:
    """Return the option that names the rows of parties."""
    return click.option("-s", "--source", "sources", multiple=True, metavar="PARTY=FILE", help=words)


def runtime(default: str) -> Callable[[Command], Command]:
    """Return the option that says how the parties of a simulation run."""
    return click.option(
        "--runtime",
        type=click.Choice(["local", "processes"]),
        default=default,
        help="All parties in one process, or one process for each party.",
    )


def as_json(content: Any) -> None:
    """Print a document, or anything made of dicts and lists, as indented JSON."""
    click.echo(to_readable_json(content).decode(), nl=False)


def as_json_or(text: object, content: Any, *, as_json: bool) -> None:
    """Print the content for programs, or else the text for people."""
    click.echo(to_readable_json(content).decode() if as_json else str(text), nl=not as_json)


def as_lines(content: Mapping[str, Any]) -> None:
    """Print names and values, one pair a line."""
    width = max(len(name) for name in content)
    for name, value in content.items():
        click.echo(f"{name:<{width}}  {value}")


def wrapped(start: str, text: str) -> None:
    """Print a text after `start`, in lines that fit the terminal; later lines are indented by as much."""
    room, later = max(shutil.get_terminal_size().columns, len(start) + _NARROWEST), " " * len(start)
    click.echo(textwrap.fill(text, room, initial_indent=start, subsequent_indent=later, break_on_hyphens=False))


def as_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a title and a table that fits the terminal; long cells are wrapped, never cut off."""
    wrapped("", title)
    table = Table(*(Column(name, overflow="fold") for name in columns))
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def confirmed(question: str, *, err: bool = False) -> bool:
    """Ask a question and return whether the answer is yes. No answer, end of input and Ctrl-C count as no."""
    try:
        return click.confirm(question, err=err)
    except click.Abort:
        click.echo(err=True)
        return False


@contextmanager
def progress_bar(what: str = "working", *, shown: bool) -> Iterator[kernel.Progress]:
    """Show a spinner on standard error, if that is a terminal, and a bar for each kind of step that is reported."""
    if not shown or not sys.stderr.isatty():
        yield kernel.silent_progress
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[steps]}"))
    # standard output stays as it is: a program may read it
    display = Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True, redirect_stdout=False
    )
    with display as bar:
        tasks: dict[str, TaskID] = {}
        bar.add_task(what, total=None, steps="")

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total, steps="")
            bar.update(tasks[what], completed=done, total=total, steps=f"{done}/{total}")

        yield report
