"""The local interface for programs: every function of the console with its path, what it takes and what it returns."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, final

from syndic.advice import Advice
from syndic.console import federation, ledgers, releases, studies
from syndic.console.progress import party_progress
from syndic.console.views import (
    Comparison,
    Difference,
    LedgerView,
    Overview,
    PartyLine,
    ProgressView,
    ReleaseLine,
    ReleaseView,
    StudyLine,
    StudyView,
    Verified,
)
from syndic.study import schema_check
from syndic.study.schema_check import SchemaCheck, SchemaText

BASE: Final = "/api/v1"
ZIP: Final = "application/zip"


@final
@dataclass(frozen=True, kw_only=True)
class Media:
    """A body or an answer that is a file."""

    kind: str


JSON: Final = Media(kind="application/json")


@final
@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One thing that a program may ask: `call` gets the folder, what stands in the path, and the body if any."""

    method: Literal["GET", "POST", "PUT"]
    path: str
    name: str
    summary: str
    call: Callable[..., Any]
    answer: Any
    body: Any = None
    status: int = 200


def progress(folder: Path, run: str) -> ProgressView:
    """Return how far a run of the owner's is."""
    view = studies.study(folder, run)
    return party_progress(folder, view.line.run, studies.folder_of_study(folder, run).study(), view.line.state)


def _get(path: str, name: str, summary: str, call: Callable[..., Any], answer: Any) -> Endpoint:
    return Endpoint(method="GET", path=path, name=name, summary=summary, call=call, answer=answer)


def _post(path: str, name: str, summary: str, call: Callable[..., Any], answer: Any, body: Any) -> Endpoint:
    return Endpoint(method="POST", path=path, name=name, summary=summary, call=call, answer=answer, body=body)


_RELEASES: Final = (
    _get("/releases", "releases", "The releases in this folder", releases.releases, tuple[ReleaseLine, ...]),
    Endpoint(
        method="POST",
        path="/releases",
        name="add_release",
        summary="Keep a release that arrived as an archive",
        call=releases.add_release,
        answer=ReleaseLine,
        body=Media(kind=ZIP),
        status=201,
    ),
    _get("/releases/{name}", "release", "What a release states, and its files", releases.release, ReleaseView),
    _get("/releases/{name}/archive", "archive", "All files in one archive", releases.archive, Media(kind=ZIP)),
    _get("/releases/{name}/report", "report", "The report for reading", releases.report_page, Media(kind="text/html")),
    _get(
        "/releases/{name}/files/{file}",
        "release_file",
        "One file of a release",
        releases.release_file,
        Media(kind="application/octet-stream"),
    ),
    _get("/releases/{name}/comparison/{other}", "compare", "Two releases compared", releases.compare, Comparison),
)

PARTY: Final = (
    _get("/overview", "overview", "Whose console this is", studies.overview, Overview),
    _get("/studies", "studies", "The studies in this home", studies.studies, tuple[StudyLine, ...]),
    _post("/studies", "receive", "Keep a study file as pending", studies.receive, StudyLine, studies.Sent),
    _get("/studies/{run}", "study", "What the owner decides about", studies.study, StudyView),
    _get("/studies/{run}/advice", "advice", "Is it worth it?", studies.advice, Advice),
    _get("/studies/{run}/difference/{other}", "difference", "What changed", studies.difference, Difference),
    _get("/studies/{run}/progress", "progress", "How far the run is", progress, ProgressView),
    _post("/studies/{run}/agreement", "agree", "Sign the agreement", studies.agree, StudyLine, studies.Agree),
    _post("/studies/{run}/refusal", "decline", "Say no", studies.decline, StudyLine, studies.Decline),
    _post("/studies/{run}/withdrawal", "withdraw", "Take it back", studies.withdraw, StudyLine, studies.Withdraw),
    _get("/ledger", "ledger", "Spent and left, and the entries", ledgers.ledger, LedgerView),
    _post("/ledger/verification", "verify", "Check the chain", ledgers.verify, Verified, ledgers.Verify),
    _get("/ledger/export.json", "export_json", "All entries as JSON", ledgers.export_json, JSON),
    _get("/ledger/export.csv", "export_csv", "All entries as CSV", ledgers.export_csv, Media(kind="text/csv")),
    _get("/schema", "schema", "The schema that the owner saved", schema_check.saved_schema, SchemaText),
    Endpoint(
        method="PUT",
        path="/schema",
        name="save_schema",
        summary="Save a schema that is public knowledge",
        call=schema_check.save_schema,
        answer=SchemaText,
        body=schema_check.Save,
    ),
    _post(
        "/schema/check", "check_schema", "Hold a schema against the rows", schema_check.check_schema, SchemaCheck,
        schema_check.Write,
    ),
    *_RELEASES,
)  # fmt: skip

COORDINATOR: Final = (
    _get("/overview", "overview", "Which federation this is", federation.overview, Overview),
    _get("/studies", "studies", "The studies in this folder", federation.studies, tuple[StudyLine, ...]),
    _post("/studies", "receive", "Keep a study file", federation.receive, StudyLine, studies.Sent),
    _get("/studies/{run}", "study", "The plan and the parties", federation.study, StudyView),
    _get("/studies/{run}/progress", "progress", "How far the run is", federation.progress, ProgressView),
    _post("/studies/{run}/run", "run", "Start the run, or go on with it", federation.run, StudyLine, federation.Run),
    _get("/parties", "parties", "Who is admitted, and who is connected", federation.parties, tuple[PartyLine, ...]),
    *_RELEASES,
)
