"""What the console shows, as documents: the local interface sends them, and the pages are made from them.

All of it is for the person at this machine. Documents of a coordinator contain nothing that only an owner may see.
"""

from datetime import datetime
from typing import Literal

from syndic.document import Document
from syndic.errors import InputError
from syndic.study.differences import Change, ColumnDistance
from syndic.study.statement import PlanSummary, Statement

Role = Literal["party", "coordinator"]
State = Literal[
    "pending", "declined", "agreed", "running", "withdrawn", "expired", "finished", "failed", "stopped", "damaged"
]


class UnknownError(InputError):
    """There is no such study, release or file here."""


class Overview(Document):
    """Whose console this is, and how many studies are in which state."""

    role: Role
    name: str
    syndic: str
    studies: dict[str, int]
    fingerprint: str = ""


class StudyLine(Document):
    """A study in a list; `run` is the digest of the run, which differs from the study's for a rehearsal.

    `since` is the time of the last change of its state, `by` who agreed here.
    """

    study: str
    run: str
    state: State
    edition: int = 1
    method: str = ""
    rehearsal: int | None = None
    expires: datetime | None = None
    since: datetime | None = None
    by: str = ""


class MemberLine(Document):
    """An organisation of a study: what the study costs its people, and the fingerprint to compare by telephone."""

    name: str
    fingerprint: str
    cost: str
    mine: bool
    columns: tuple[str, ...]
    people: int | None = None


class CostLine(Document):
    """What a study costs one person in the owner's data set. For the owner only.

    `epsilon` is at the study's `delta`. `spent` before the study, `after` it and the `cap` are at `cap_delta`; None
    where no epsilon at that delta covers it. `words` is the sentence for the owner.
    """

    dataset: str
    epsilon: float | None
    delta: float
    spent: float | None
    after: float | None
    cap: float
    cap_delta: float
    fits: bool
    words: str


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
    """All about one study. `problem` says why it cannot be agreed to or run, `warning` that its forecast is poor."""

    line: StudyLine
    digest: str
    purpose: str
    plan: PlanSummary | None
    members: tuple[MemberLine, ...]
    columns: tuple[ColumnLine, ...]
    problem: str = ""
    cost: CostLine | None = None
    earlier: Difference | None = None
    others: tuple[StudyLine, ...] = ()
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


class SetLine(Document):
    """What was spent on a data set, at the cap's delta; `epsilon` is None if none at that delta covers it."""

    dataset: str
    epsilon: float | None
    cap: float
    delta: float
    left: float


class EntryLine(Document):
    """An entry of the ledger."""

    number: int
    time: str
    kind: str
    dataset: str
    study: str
    charge: str
    why: str
    hash: str


class Point(Document):
    """Spent and capped epsilon of a data set after an entry."""

    number: int
    time: str
    epsilon: float
    cap: float


class StudyCostLine(Document):
    """What one study cost, as the ledger has it; `row` has the texts of a table."""

    study: str
    epsilon: float | None
    delta: float
    charged: float | None
    row: tuple[str, ...]
    discloses: tuple[str, ...]


class LedgerView(Document):
    """The owner's ledger: spent per data set, by each study and over time, and the last entries without calls."""

    sets: tuple[SetLine, ...]
    studies: tuple[StudyCostLine, ...]
    history: dict[str, tuple[Point, ...]]
    entries: tuple[EntryLine, ...]
    total: int
    head: str
    whole: bool


class Verified(Document):
    """The result of verifying the ledger."""

    whole: bool
    words: str
    entries: int
    head: str


class FileLine(Document):
    """A file of a release."""

    name: str
    size: int


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


class CoefficientTable(Document):
    """Coefficients of a release, as texts: the first of each row names the feature."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class ReleaseView(Document):
    """All about one release."""

    line: ReleaseLine
    statement: Statement
    files: tuple[FileLine, ...]
    others: tuple[ReleaseLine, ...]
    coefficients: tuple[CoefficientTable, ...] = ()


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
