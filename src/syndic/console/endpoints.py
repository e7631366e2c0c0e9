"""The local interface for programs: every function of the console with its path, input and output.

Its OpenAPI 3.1 description is generated from the same table.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, final

from syndic.advice import Advice
from syndic.console import drafts, federation, ledgers, releases, studies
from syndic.console.drafts import DraftView
from syndic.console.users import UserRole
from syndic.console.views import (
    Comparison,
    Difference,
    Fault,
    LedgerView,
    Overview,
    PartyLine,
    ProgressView,
    ReleaseLine,
    ReleaseView,
    Role,
    StudyView,
    Verified,
)
from syndic.document import schema_parts
from syndic.study.agreement import Standing
from syndic.study.fit import Fit
from syndic.version import __version__

BASE: Final = "/api/v1"


@final
@dataclass(frozen=True)
class Media:
    """A request body or an answer that is a file."""

    kind: str


_JSON: Final = Media("application/json")
_CSV: Final = Media("text/csv")
_HTML: Final = Media("text/html")
_ZIP: Final = Media("application/zip")
_BYTES: Final = Media("application/octet-stream")


@final
@dataclass(frozen=True)
class Endpoint:
    """One operation for programs: `call` gets the folder, the parts of the path, and the body if any.

    `needs` is the role of users who may call it.
    """

    method: Literal["GET", "POST", "PUT"]
    path: str
    name: str
    summary: str
    call: Callable[..., Any]
    answer: Any
    body: Any = None
    status: int = 200
    needs: UserRole = "owner"


_get: Final = partial(Endpoint, "GET", needs="reader")
# shows what was read from rows
_private: Final = partial(Endpoint, "GET")
_post: Final = partial(Endpoint, "POST")

_RELEASES: Final = (
    _get("/releases", "releases", "The releases in this folder", releases.releases, tuple[ReleaseLine, ...]),
    _post(
        "/releases", "add_release", "Add a release from an archive", releases.add_release, ReleaseLine,
        body=_ZIP, status=201,
    ),
    _get("/releases/{name}", "release", "The statement of a release, and its files", releases.release, ReleaseView),
    _get("/releases/{name}/archive", "archive", "All files in one archive", releases.archive, _ZIP),
    _get("/releases/{name}/report", "report", "The report for reading", releases.report_page, _HTML),
    _get("/releases/{name}/files/{file}", "release_file", "One file of a release", releases.release_file, _BYTES),
    _get("/releases/{name}/comparison/{other}", "compare", "Two releases compared", releases.compare, Comparison),
)  # fmt: skip

_PARTY: Final = (
    _get("/overview", "overview", "Whose console this is", studies.overview, Overview),
    _get("/studies", "studies", "The studies in this party folder", studies.studies, tuple[Standing, ...]),
    _post("/studies", "receive", "Add a study file as pending", studies.receive, Standing, studies.Sent),
    _get("/studies/{run}", "study", "What the owner decides about", studies.study, StudyView),
    _get("/studies/{run}/advice", "advice", "Is joining worth it?", studies.advice, Advice),
    _private("/studies/{run}/fit", "fit", "How the owner's rows fit (private)", studies.fit, Fit),
    _get("/studies/{run}/difference/{other}", "difference", "What changed", studies.difference, Difference),
    _get("/studies/{run}/progress", "progress", "Progress of the run", studies.progress, ProgressView),
    _post("/studies/{run}/agreement", "agree", "Sign the agreement", studies.agree, Standing, studies.Agree),
    _post("/studies/{run}/refusal", "decline", "Decline", studies.decline, Standing, studies.Decline),
    _post("/studies/{run}/withdrawal", "withdraw", "Withdraw", studies.withdraw, Standing, studies.Withdraw),
    _get("/ledger", "ledger", "What was spent, and the entries", ledgers.ledger, LedgerView),
    _post(
        "/ledger/verification", "verify", "Verify the chain", ledgers.verify, Verified, ledgers.Verify, needs="reader"
    ),
    _get("/ledger/export.json", "export_json", "All entries as JSON", partial(ledgers.exported, "ledger.json"), _JSON),
    _get("/ledger/export.csv", "export_csv", "All entries as CSV", partial(ledgers.exported, "ledger.csv"), _CSV),
    _private("/draft", "draft", "The draft of a study, for the owner only", drafts.view, DraftView),
    _private("/draft/choices", "draft_choices", "The files to draft from", drafts.choices, drafts.Choices),
    _post("/draft", "make_draft", "Draft a study from rows", drafts.make, DraftView, drafts.Make, 201),
    Endpoint("PUT", "/draft", "edit_draft", "Change values of the draft", drafts.edit, DraftView, drafts.Edit),
    _post(
        "/draft/study", "confirm_draft", "Write the confirmed study", drafts.confirm_draft, drafts.Written,
        drafts.Confirm, 201,
    ),
    *_RELEASES,
)  # fmt: skip

_COORDINATOR: Final = (
    _get("/overview", "overview", "Which federation this is", federation.overview, Overview),
    _get("/studies", "studies", "The studies in this folder", federation.studies, tuple[Standing, ...]),
    _post("/studies", "receive", "Add a study file", federation.receive, Standing, studies.Sent),
    _get("/studies/{run}", "study", "The plan and the parties", federation.study, StudyView),
    _get("/studies/{run}/progress", "progress", "Progress of the run", federation.progress, ProgressView),
    _post("/studies/{run}/run", "run", "Start or continue the run", federation.run, Standing, federation.Run),
    _get("/parties", "parties", "Admitted and connected parties", federation.parties, tuple[PartyLine, ...]),
    *_RELEASES,
)

ENDPOINTS: Final[dict[Role, tuple[Endpoint, ...]]] = {"party": _PARTY, "coordinator": _COORDINATOR}
"""The operations of a console, by its role."""

_FAULTS: Final = {
    "400": "the request is not valid",
    "401": "the token is missing or wrong",
    "403": "the user's role does not suffice, a form's token is missing, or another site asked",
    "404": "not found",
    "409": "refused: the state of the folder does not allow it",
    "413": "too large",
    "415": "unsupported type of body",
}
_PATTERNS: Final = {"run": "^[0-9a-f]{16,64}$", "other": "^[0-9A-Za-z_-]{1,80}$", "name": "^[0-9A-Za-z_-]{1,80}$"}


def description(role: Role) -> dict[str, Any]:
    """Return the OpenAPI document of a console for this role."""
    endpoints = ENDPOINTS[role]
    kinds = [kind for one in endpoints for kind in (one.answer, one.body) if not isinstance(kind, Media | None)]
    schemas, components = schema_parts([*kinds, Fault], "#/components/schemas/{name}")
    known = dict(zip(map(str, [*kinds, Fault]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(BASE + one.path, {})[one.method.lower()] = _operation(one, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Syndic console of a {role}",
            "version": __version__,
            "description": "Local, for programs of the same user. Send a user's token as a bearer token.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(one: Endpoint, known: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "responses": {
            str(one.status): {"description": one.summary, "content": _content(one.answer, known)},
            **{code: {"description": words, "content": _content(Fault, known)} for code, words in _FAULTS.items()},
        },
    }
    names = re.findall(r"{(\w+)}", one.path)
    if names:
        told["parameters"] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {"type": "string", "minLength": 1, "pattern": _PATTERNS.get(name, "^[0-9A-Za-z_.-]{1,80}$")},
            }
            for name in names
        ]
    if one.body is not None:
        told["requestBody"] = {"required": True, "content": _content(one.body, known)}
    return told


def _content(kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    if isinstance(kind, Media):
        return {kind.kind: {"schema": {}}}
    return {"application/json": {"schema": known[str(kind)]}}
