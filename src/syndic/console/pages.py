"""The pages of the console: what each shows and what its forms do. Templates turn the content into HTML."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar, final
from urllib.parse import quote, urlencode

from msgspec.structs import fields

from syndic.advice import Advice
from syndic.console import drafts, federation, ledgers, releases, studies, users
from syndic.console.access import sign_in_of
from syndic.console.users import UserRole
from syndic.console.views import Role
from syndic.document import Document, from_builtins
from syndic.errors import InputError, RefusedError, SyndicError
from syndic.study.agreement import Standing
from syndic.study.fit import COLUMN_HEAD
from syndic.study.fit_people import BOUND_HEAD, FORM_HEAD

D = TypeVar("D", bound=Document)
Fields = Mapping[str, str]
Content = dict[str, Any]


@final
@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request to a page: the parts of its path and query, the fields of its form, and the user's name."""

    path: Fields
    user: str = ""
    query: Fields = field(default_factory=dict)
    form: Fields = field(default_factory=dict)


Show = Callable[[Path, Asked], Content]
# an action returns where to go next, or more to show on the same page
Action = Callable[[Path, Asked], str | Content]


@final
@dataclass(frozen=True)
class Page:
    """A page: its path, its template, its content, and its actions by the value of their button.

    Users of the role `needs` may see it, and those of `acts` may use its forms.
    """

    path: str
    template: str
    title: str
    show: Show
    actions: Mapping[str, Action] = field(default_factory=dict)
    needs: UserRole = "reader"
    acts: UserRole = "owner"


def _of(**calls: Callable[..., Any]) -> Show:
    """Return the content that functions for programs answer to the parts of the path."""
    return lambda folder, asked: {name: call(folder, *asked.path.values()) for name, call in calls.items()}


def _filled(asked: Asked, kind: type[D]) -> D:
    """Read a document from the form: whole numbers, ticks and texts; an empty number has its default."""
    given: Content = {}
    for one in fields(kind):
        text = asked.form.get(one.name, "")
        if one.type is bool:
            given[one.name] = text == "yes"
        elif one.type is str:
            given[one.name] = text
        elif text.strip():
            try:
                given[one.name] = int(text)
            except ValueError:
                raise InputError(f"{one.name}: write a whole number") from None
    return from_builtins(given, kind, where="form")


def _decides(call: Callable[..., Standing], kind: type[Document], then: str = "") -> Action:
    """Return the action that passes the form to a function about a study, and goes on to a page of this study."""
    return lambda folder, asked: f"/studies/{call(folder, *asked.path.values(), _filled(asked, kind)).run}{then}"


def _agree(folder: Path, asked: Asked) -> str | Content:
    if asked.form.get("read") != "yes":
        raise InputError("confirm that you have read what the study costs and reveals: tick the box")
    return _decides(studies.agree, studies.Agree)(folder, asked)


def _advice(folder: Path, asked: Asked) -> Content:
    view = studies.study(folder, asked.path["run"])
    try:
        found = studies.any_advice(folder, asked.path["run"])
    except SyndicError as error:
        return {"view": view, "advice": None, "text": "", "unknown": str(error)}
    own = isinstance(found, Advice)
    return {"view": view, "advice": found if own else None, "text": "" if own else str(found), "unknown": ""}


def _fit(folder: Path, asked: Asked) -> Content:
    view = studies.study(folder, asked.path["run"])
    try:
        fit = studies.fit(folder, asked.path["run"])
    except SyndicError as error:
        return {"view": view, "fit": None, "unread": str(error)}
    tables = [(f"{fit.source}, {fit.rows:,} rows (private)", COLUMN_HEAD, [one.row() for one in fit.columns])]
    if fit.bounds:
        tables.append((f"{fit.people:,} people (private)", BOUND_HEAD, fit.bound_rows()))
    if fit.ids is not None:
        what = "; ".join(f"{name}: {value}" for name, value in fit.ids.lines().items())
        tables.append((f"ids (private); {what}", FORM_HEAD, [one.row() for one in fit.ids.forms]))
    return {"view": view, "fit": fit, "tables": tables}


def _difference(folder: Path, asked: Asked) -> Content:
    run, other = asked.path["run"], asked.query.get("other", "")
    return {"view": studies.study(folder, run), "difference": studies.difference(folder, run, other)}


def _ledger(folder: Path, _asked: Asked) -> Content:
    view = ledgers.ledger(folder)
    return {"ledger": view, "verified": None if view.whole else ledgers.verify(folder, ledgers.Verify())}


def _compare(folder: Path, asked: Asked) -> Content:
    return {"comparison": releases.compare(folder, asked.path["name"], asked.query.get("other", ""))}


def _draft(folder: Path, asked: Asked) -> Content:
    source = (asked.form or asked.query).get("source", "")
    content: Content = {"draft": None, "source": source, "written": None, "typed": asked.form}
    if not (folder / drafts.DRAFT).is_file():
        return {**content, "choices": drafts.choices(folder)}
    view = drafts.view(folder, source)
    return {**content, "draft": view, "cards": drafts.cards(view)}


def _make_draft(folder: Path, asked: Asked) -> str:
    drafts.make(folder, _filled(asked, drafts.Make))
    return _draft_place(asked)


def _edit_draft(folder: Path, asked: Asked) -> str:
    # browsers send a line break in a name as two characters
    table, name = asked.form.get("table", ""), asked.form.get("name", "").replace("\r\n", "\n")
    typed = {key.removeprefix("value-"): text for key, text in asked.form.items() if key.startswith("value-")}
    given = {
        "table": table,
        "name": name,
        "source": asked.form.get("source", ""),
        "kind": asked.form.get("kind") or None,
        "values": drafts.typed_values(folder, table, name, typed),
    }
    drafts.edit(folder, from_builtins(given, drafts.Edit, where="form"))
    return f"{_draft_place(asked)}#{quote(asked.form.get('card', ''))}"


def _confirm_draft(folder: Path, asked: Asked) -> Content:
    public = tuple(key.removeprefix("public-") for key in asked.form if key.startswith("public-"))
    return {"written": drafts.confirm_draft(folder, drafts.Confirm(public=public, file=asked.form.get("file", "")))}


def _discard_draft(folder: Path, _asked: Asked) -> str:
    (folder / drafts.DRAFT).unlink(missing_ok=True)
    return "/draft"


def _draft_place(asked: Asked) -> str:
    return f"/draft?{urlencode({'source': asked.form.get('source', '')})}"


def _users(folder: Path, _asked: Asked) -> Content:
    return {"users": users.users(folder), "secret": "", "added": ""}


def _add_user(folder: Path, asked: Asked) -> Content:
    role = next((one for one in users.ROLES if one == asked.form.get("role")), None)
    if role is None:
        raise InputError(f"role: choose one of {', '.join(users.ROLES)}")
    user, secret = users.with_token(asked.form.get("name", "").strip(), role)
    users.put(folder, user)
    return {"secret": secret, "added": user.name}


def _remove_user(folder: Path, asked: Asked) -> str:
    users.remove(folder, asked.form.get("name", ""))
    return "/users"


def _password(folder: Path, asked: Asked) -> str:
    """Change the user's own password; every session of the user ends."""
    user = users.find(folder, asked.user)
    if user is None or not (user.password or user.token):
        # a password would outlive the account at the proxy
        raise RefusedError("you sign in through the reverse proxy")
    present = asked.form.get("present", "").strip() if user.token else asked.form.get("present", "")
    if (users.by_token(folder, present) if user.token else sign_in_of(folder).user(user.name, present)) != user:
        raise RefusedError("the present password or token is wrong")
    if asked.form.get("new") != asked.form.get("again"):
        raise InputError("the two new passwords differ")
    changed = users.with_password(user.name, user.role, asked.form.get("new", ""))
    # a password takes time, in which an administrator may remove the user
    users.put(folder, changed, instead_of=user)
    return "/login"


_RELEASES: Final = (
    Page("/releases", "releases.html", "Releases", _of(releases=releases.releases)),
    Page("/releases/{name}", "release.html", "Release", _of(view=releases.release)),
    Page("/releases/{name}/compare", "compare.html", "Two releases", _compare),
)

_USERS: Final = (
    Page(
        "/users", "users.html", "Users", _users, {"add": _add_user, "remove": _remove_user}, "administrator",
        "administrator",
    ),
    Page("/account", "account.html", "Your account", _of(), {"set": _password}, acts="reader"),
)  # fmt: skip

_AGREE: Final[Mapping[str, Action]] = {
    "agree": _agree,
    "decline": _decides(studies.decline, studies.Decline),
    "withdraw": _decides(studies.withdraw, studies.Withdraw),
}
_VERIFY: Final[Mapping[str, Action]] = {
    "verify": lambda folder, asked: {"verified": ledgers.verify(folder, _filled(asked, ledgers.Verify))}
}
_RUN: Final[Mapping[str, Action]] = {"run": _decides(federation.run, federation.Run, "/progress")}
_DRAFT: Final[Mapping[str, Action]] = {
    "make": _make_draft,
    "edit": _edit_draft,
    "confirm": _confirm_draft,
    "discard": _discard_draft,
}
_PARTY_PAGES: Final = (
    Page(
        "/studies", "studies.html", "Studies", _of(studies=studies.studies, overview=studies.overview),
        {"receive": _decides(studies.receive, studies.Sent)},
    ),
    Page("/studies/{run}", "study.html", "Study", _of(view=studies.study), _AGREE),
    Page("/studies/{run}/advice", "advice.html", "Is joining worth it?", _advice),
    Page("/studies/{run}/fit", "fit.html", "How your rows fit", _fit, needs="owner"),
    Page("/studies/{run}/difference", "difference.html", "What changed", _difference),
    Page("/studies/{run}/progress", "progress.html", "Run", _of(progress=studies.progress)),
    Page("/ledger", "ledger.html", "Ledger", _ledger, _VERIFY, acts="reader"),
    Page("/draft", "draft.html", "Draft a study", _draft, _DRAFT, needs="owner"),
    *_RELEASES,
    *_USERS,
)  # fmt: skip

_COORDINATOR_PAGES: Final = (
    Page(
        "/studies", "studies.html", "Studies", _of(studies=federation.studies, overview=federation.overview),
        {"receive": _decides(federation.receive, studies.Sent)},
    ),
    Page("/studies/{run}", "study.html", "Study", _of(view=federation.study), _RUN),
    Page("/studies/{run}/progress", "progress.html", "Run", _of(progress=federation.progress)),
    Page("/parties", "parties.html", "Parties", _of(parties=federation.parties)),
    *_RELEASES,
    *_USERS,
)  # fmt: skip

PAGES: Final[dict[Role, tuple[Page, ...]]] = {"party": _PARTY_PAGES, "coordinator": _COORDINATOR_PAGES}
"""The pages of a console, by its role."""
