"""What the console shows, as documents: the local interface sends them, and the pages are made from them.

All of it is for the person at this machine. Documents of a coordinator contain nothing that only an owner may see.
"""

from typing import Literal

from syndic.document import Document
from syndic.errors import InputError
from syndic.privacy import Entry, Spending, StudySpending
from syndic.report.page import Grid
from syndic.study.agreement import Offer, Standing, State
from syndic.study.differences import Change, ColumnDistance
from syndic.study.statement import PlanSummary, Statement

Role = Literal["party", "coordinator"]


class UnknownError(InputError):
    """There is no such study, release or file here."""


class Overview(Document):
    """Whose console this is, and how many studies are in which state."""

    role: Role
    name: str
    syndic: str
    studies: dict[str, int]
    fingerprint: str = ""


class MemberLine(Document):
    """An organisation of a study: what the study costs its people, and the fingerprint to compare by telephone."""

    name: str
    fingerprint: str
    cost: str
    mine: bool
    columns: tuple[str, ...]
    people: int | None = None


class Difference(Document):
    """The keys in which two studies differ."""

    run: str
    other: str
    other_study: str
    other_edition: int
    changes: tuple[Change, ...]


class ColumnLine(Document):
    """A column of a study: its public kind and bounds."""

    name: str
    kind: str
    levels: int
    words: str


class StudyView(Document):
    """All about one study. `problem` says why it cannot be agreed to or run, `warning` that its forecast is poor.

    `offer` is what an owner decides about, with what was spent before and after. For the owner only.
    """

    line: Standing
    digest: str
    purpose: str
    plan: PlanSummary | None
    members: tuple[MemberLine, ...]
    columns: tuple[ColumnLine, ...]
    problem: str = ""
    offer: Offer | None = None
    earlier: Difference | None = None
    others: tuple[Standing, ...] = ()
    warning: str = ""


class StepLine(Document):
    """A step of a run: how many of its calls were answered and refused, and the time of the last one."""

    step: str
    reveals: str
    means: str
    answered: int = 0
    refused: int = 0
    last: str = ""


class ProgressView(Document):
    """The progress of a run. A party knows what it answered; a coordinator also knows which parties it waits for."""

    run: str
    study: str
    state: State
    words: str
    steps: tuple[StepLine, ...]
    waiting: tuple[str, ...]
    said: str
    updated: str


class Point(Document):
    """Spent and capped epsilon of a data set after an entry."""

    number: int
    time: str
    epsilon: float
    cap: float


class LedgerView(Document):
    """The owner's ledger: spent per data set, by each study and over time, and the last entries without calls."""

    sets: tuple[Spending, ...]
    studies: tuple[StudySpending, ...]
    history: dict[str, tuple[Point, ...]]
    entries: tuple[Entry, ...]
    total: int
    head: str
    whole: bool


class Verified(Document):
    """The result of verifying the ledger."""

    whole: bool
    words: str
    entries: int
    head: str


class ReleaseLine(Document):
    """A release in a list: `cost` in words; `agreed` says whether its study is in this folder."""

    name: str
    study: str
    digest: str
    method: str
    epsilon: float
    delta: float
    cost: str
    protects: bool
    agreed: bool


class ReleaseView(Document):
    """All about one release; `files` has their sizes in bytes."""

    line: ReleaseLine
    statement: Statement
    files: dict[str, int]
    others: tuple[ReleaseLine, ...]
    coefficients: tuple[Grid, ...] = ()


class Comparison(Document):
    """A comparison of two releases."""

    first: ReleaseLine
    second: ReleaseLine
    changes: tuple[Change, ...]
    columns: tuple[ColumnDistance, ...]


class PartyLine(Document):
    """A party that a coordinator admitted; `connected` is None while the server is not running."""

    party: str
    fingerprint: str
    expires: str
    connected: bool | None


class Fault(Document):
    """Why a request was refused or failed."""

    error: str
