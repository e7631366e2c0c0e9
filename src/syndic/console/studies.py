"""An owner's studies: received, agreed to, declined and withdrawn; their costs, and the progress of runs."""

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from syndic.advice import Advice, NoiseAdvice, VerticalAdvice, warning
from syndic.advice import advise as advise_on
from syndic.console.views import (
    ColumnLine,
    Difference,
    MemberLine,
    Overview,
    ProgressView,
    StepLine,
    StudyView,
    UnknownError,
)
from syndic.data import Column
from syndic.document import Document, from_json, from_toml
from syndic.errors import InputError, RefusedError, SyndicError
from syndic.kernel import PublicIdentity
from syndic.kernel.memory import Memory, look_up
from syndic.privacy import Entry, Ledger
from syndic.study import PartyFolder, Study
from syndic.study import agreement as owner
from syndic.study.agreement import Standing, State
from syndic.study.differences import changes
from syndic.study.document import price_of
from syndic.study.draft_text import unconfirmed
from syndic.study.fit import Fit, own_fit
from syndic.study.identity import Identity
from syndic.study.statement import PlanSummary, plan
from syndic.study.study_folder import StudyFolder
from syndic.version import __version__

TYPED_LETTERS = 8
_MOST_DAYS = 3650
_LIVE = timedelta(minutes=15)
_DIGEST_LETTERS = 64


class Sent(Document):
    """The text of a study file, TOML or JSON."""

    text: str


class Agree(Document):
    """The owner's agreement: the typed first letters of the study's digest, and the days until it expires.

    `despite_fit` confirms it for rows that fit the study poorly.
    """

    typed: str
    days: int = owner.DEFAULT_DAYS
    rehearsal: int | None = None
    despite_fit: bool = False


class Withdraw(Document):
    """The owner's withdrawal: the typed first letters of the run's digest."""

    typed: str
    why: str = ""


class Decline(Document):
    """The owner declines; the reason stays in the party folder."""

    why: str = ""


def overview(folder: Path) -> Overview:
    """Return whose party folder this is, and how many studies are in which state."""
    home = PartyFolder(folder=folder)
    found = Counter(line.state for line in studies(folder))
    return Overview(
        role="party",
        name=home.owner().name,
        syndic=__version__,
        studies=dict(sorted(found.items())),
        fingerprint=Identity.load(home.keys).public.fingerprint if home.keys.exists() else "",
    )


def studies(folder: Path) -> tuple[Standing, ...]:
    """Return the studies of the party folder, those that wait for the owner first."""
    home = PartyFolder(folder=folder)
    lines = [_with_calls(home, one) for one in owner.studies(home)]
    order = ("pending", "running", "agreed")
    return tuple(sorted(lines, key=lambda line: (order.index(line.state) if line.state in order else 9, line.study)))


def receive(folder: Path, sent: Sent) -> Standing:
    """Store a study file as pending. Nothing is agreed to."""
    return _found(folder, owner.receive(PartyFolder(folder=folder), read_study(sent)))


def read_study(sent: Sent) -> Study:
    """Read the text of a study file.

    Raises:
        RefusedError: if it is a draft with values that were read from rows.
    """
    drafted = len(unconfirmed(sent.text))
    if drafted:
        raise RefusedError(f"this is a private draft: {drafted} of its values were read from rows. Confirm it first")
    return (from_json if sent.text.lstrip().startswith("{") else from_toml)(sent.text, Study, where="study file")


def study(folder: Path, run: str) -> StudyView:
    """Return everything that the owner needs to decide. Reads no row."""
    home, line = PartyFolder(folder=folder), _found(folder, run)
    if line.state == "damaged":
        return StudyView(line=line, digest="", purpose="", plan=None, members=(), columns=(), problem=line.study)
    content = folder_of_study(folder, run).study()
    planned, offer, problem = None, None, ""
    try:
        planned = plan(content)
        offer = owner.consider(home, content, rehearsal=line.rehearsal)
    except SyndicError as error:
        problem = str(error)
    others = tuple(one for one in studies(folder) if one.run != line.run and one.state != "damaged")
    view = view_of(content, line, planned, problem, mine=home.owner().name)
    return replace(view, offer=offer, earlier=_earlier(folder, content, others), others=others)


def agree(folder: Path, run: str, answer: Agree) -> Standing:
    """Sign the owner's agreement; the typed letters show that the owner read the digest."""
    home, content, line = PartyFolder(folder=folder), folder_of_study(folder, run).study(), _found(folder, run)
    if not content.digest.startswith(run) and not line.run.startswith(run):
        raise RefusedError("the study in this folder is not the one that was shown: reload its page")
    _check_typed(answer.typed, content.digest)
    if not 1 <= answer.days <= _MOST_DAYS:
        raise InputError(f"days ({answer.days}) must be 1 to {_MOST_DAYS}")
    fitted, _unread = own_fit(home, content)
    if fitted is not None and fitted.poor and not answer.despite_fit:
        raise RefusedError(
            "nothing was signed: your rows fit this study poorly. Read how they fit, then confirm that you agree"
        )
    signed = owner.agree(home, content, lasts=timedelta(days=answer.days), rehearsal=answer.rehearsal)
    return _found(folder, signed.run)


def fit(folder: Path, run: str) -> Fit:
    """Return how the owner's rows fit the study. Private, for the owner's screen.

    Raises:
        InputError: if the rows cannot be read.
    """
    found, unread = own_fit(PartyFolder(folder=folder), folder_of_study(folder, run).study())
    if found is None:
        raise InputError(unread)
    return found


def decline(folder: Path, run: str, answer: Decline) -> Standing:
    """Store the owner's refusal of a study that was never agreed to. Nobody else learns of it."""
    owner.decline(PartyFolder(folder=folder), _found(folder, run).run, why=answer.why)
    return _found(folder, run)


def withdraw(folder: Path, run: str, answer: Withdraw) -> Standing:
    """Withdraw the agreement. From the next call on, nothing is answered."""
    line = _found(folder, run)
    _check_typed(answer.typed, line.run)
    owner.withdraw(PartyFolder(folder=folder), line.run, why=answer.why[:1000])
    return _found(folder, run)


def difference(folder: Path, run: str, other: str) -> Difference:
    """Return the differences between two studies of the party folder."""
    one, two = folder_of_study(folder, run).study(), folder_of_study(folder, other).study()
    return _difference(one, two, run=_found(folder, run).run, other=_found(folder, other).run)


def advice(folder: Path, run: str) -> Advice:
    """Return the advice on what each party gains.

    Raises:
        InputError: if the advice on this method is of another kind, or `any_advice` raises it.
    """
    found = any_advice(folder, run)
    if not isinstance(found, Advice):
        raise InputError("the advice on this method does not compare parties: read it on the page, or `syndic advise`")
    return found


def any_advice(folder: Path, run: str) -> Advice | VerticalAdvice | NoiseAdvice:
    """Return the advice on a study, from public numbers; takes some seconds.

    Raises:
        InputError: if nothing can be forecast, or if a public number is missing.
    """
    try:
        return advise_on(folder_of_study(folder, run).study())
    except InputError:
        raise
    except (SyndicError, ValueError, NotImplementedError) as error:
        raise InputError(f"there is no advice for this study: {error}") from None


def progress(folder: Path, run: str) -> ProgressView:
    """Return which steps of a run the owner's party answered. It learns nothing about other parties."""
    line, study, home = _found(folder, run), folder_of_study(folder, run).study(), PartyFolder(folder=folder)
    book, booked = home.ledger, home.booked(line.run)
    calls = _calls(book, booked)
    # a reply that is not a digest is the code of a refusal
    answered = Counter(one.why for one in calls if len(one.reply) == _DIGEST_LETTERS)
    refused = Counter(one.why for one in calls if len(one.reply) != _DIGEST_LETTERS)
    steps = steps_of(study, {one.why: (answered[one.why], refused[one.why], one.time) for one in calls})
    return ProgressView(
        run=line.run,
        study=study.name,
        state=line.state,
        words=_words(line.state, steps),
        steps=steps,
        waiting=("the coordinator's next question",) if line.state == "running" else (),
        said=f"answers of {look_up(book, booked, Memory.stored_bytes) or 0:,} bytes",
        updated=shown_time(calls[-1].time) if calls else "",
    )


def folder_of_study(folder: Path, run: str) -> StudyFolder:
    """Return the folder of a stored run; only digests ever become part of a path."""
    if not re.fullmatch("[0-9a-f]{16,64}", run):
        raise UnknownError("a run is named by 16 to 64 hexadecimal letters of its digest")
    stored = StudyFolder.of(folder, run)
    if not (stored.folder / "study.json").is_file():
        raise UnknownError(f"there is no study {run[:12]} in this folder")
    return stored


def view_of(content: Study, line: Standing, planned: PlanSummary | None, problem: str, *, mine: str = "") -> StudyView:
    """Return what every role may see about a study; `mine` is the party that looks, if any."""
    costs = {}
    # the plan names the problem
    with suppress(SyndicError, ValueError):
        costs = {one.name: str(price_of(content, one.name)) for one in content.parties}
    members = tuple(
        MemberLine(
            name=one.name,
            fingerprint=PublicIdentity.read(one.identity).fingerprint if one.identity else "",
            cost=costs.get(one.name, ""),
            mine=one.name == mine,
            columns=content.schema.names if one.columns is None else one.columns,
            people=one.people,
        )
        for one in content.parties
    )
    return StudyView(
        line=line,
        digest=content.digest,
        purpose=content.purpose,
        plan=planned,
        members=members,
        columns=tuple(_column_line(one) for one in content.schema.columns),
        problem=problem,
        warning=warning(content),
    )


def _column_line(column: Column) -> ColumnLine:
    """Return a column's public description in words."""
    bounds = (getattr(column, "lower", None), getattr(column, "upper", None))
    if bounds != (None, None):
        words = f"{bounds[0]} to {bounds[1]}"
    else:
        words = ", ".join(column.labels()[:40]) + (" ..." if column.size > 40 else "")
    words += f"; computed at each party: {column.derive}" if column.derive else ""
    kind: Any = column.__struct_config__.tag
    return ColumnLine(name=column.name, kind=str(kind), levels=column.size, words=words)


def _with_calls(home: PartyFolder, one: Standing) -> Standing:
    """Return the standing, as running if a call came a short time ago."""
    calls = _calls(home.ledger, home.booked(one.run)) if one.state == "agreed" else ()
    last = datetime.fromisoformat(calls[-1].time) if calls else None
    return replace(one, state="running", since=last) if last and datetime.now(UTC) - last < _LIVE else one


def _found(folder: Path, run: str) -> Standing:
    folder_of_study(folder, run)
    for line in studies(folder):
        if line.run[:16] == run[:16]:
            return line
    raise RefusedError(f"study {run[:12]}: its file was changed, so nothing is answered: ask for the study file again")


def _check_typed(typed: str, digest: str) -> None:
    letters = re.sub(r"\s", "", typed).lower()
    if len(letters) < TYPED_LETTERS or not digest.startswith(letters):
        raise InputError(f"type at least the first {TYPED_LETTERS} letters of the digest that is shown")


def _earlier(folder: Path, content: Study, others: tuple[Standing, ...]) -> Difference | None:
    """Return the changes since the last earlier edition of the study of the same name."""
    alike = [one for one in others if one.study == content.name and one.rehearsal is None]
    before = [one for one in alike if one.edition <= content.edition]
    if not before:
        return None
    last = max(before, key=lambda one: one.edition)
    return _difference(content, folder_of_study(folder, last.run).study(), run=content.digest, other=last.run)


def _difference(one: Study, two: Study, *, run: str, other: str) -> Difference:
    return Difference(run=run, other=other, other_study=two.name, other_edition=two.edition, changes=changes(two, one))


def _calls(book: Path, run: str) -> tuple[Entry, ...]:
    with Ledger.open(book) as ledger:
        return ledger.calls(run)


def steps_of(study: Study, asked: Mapping[str, tuple[int, int, str]]) -> tuple[StepLine, ...]:
    """Return all steps; `asked` has the numbers of answers and of refusals, and the time of the last."""
    known, found = study.steps, []
    for name in [*known, *sorted(set(asked) - set(known))]:
        reveals, means = (known[name].reveals, known[name].means) if name in known else ("", "")
        answered, refused, last = asked.get(name, (0, 0, ""))
        line = StepLine(step=name or "(unreadable)", reveals=reveals, means=means, answered=answered, refused=refused)
        found.append(replace(line, last=shown_time(last)))
    return tuple(found)


def shown_time(time: str) -> str:
    """Return a time of a log for reading, in UTC."""
    return time[:19].replace("T", " ")


def _words(state: State, steps: tuple[StepLine, ...]) -> str:
    done, all_steps = sum(one.answered > 0 for one in steps), len(steps)
    refused = sum(one.refused for one in steps)
    told = f"{done} of {all_steps} steps were answered" + (f", {refused} calls were refused" if refused else "")
    ends = {
        "finished": "; everything that the study may charge was charged",
        "agreed": "; no call came recently" if done else "; the coordinator has not started the run",
        "withdrawn": "; nothing more is answered",
        "expired": "; the agreement has expired, and nothing more is answered",
    }
    return told + ends.get(state, "")
