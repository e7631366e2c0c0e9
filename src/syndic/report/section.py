"""What a report is made of. A method adds sections of its own by returning these."""

from dataclasses import dataclass
from typing import final

from syndic.report.figure import Figure


@final
@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of texts; the first column names its row. `numbers` are the columns set to the right."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.head) for row in self.rows):
            raise ValueError(f"table '{self.caption}': every row must have {len(self.head)} texts")


@final
@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, what it says, and pictures and tables that show it. All of it is plain text, escaped later.

    `points` are a list, `commands` are lines to type. `owner` marks a section that holds something private.
    """

    title: str
    paragraphs: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Grid, ...] = ()
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    owner: bool = False
