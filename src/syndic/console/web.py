"""The console as a web application: signing in, routing to pages and functions, and reporting errors."""

import base64
import hashlib
import logging
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, final, get_args
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from syndic.console import access, releases, users
from syndic.console.access import Proxy
from syndic.console.endpoints import BASE, ENDPOINTS, Endpoint, Media, description
from syndic.console.guard import TOO_LARGE, Guard, fault
from syndic.console.ledgers import spending_figure
from syndic.console.pages import PAGES, Asked, Page
from syndic.console.studies import TYPED_LETTERS, shown_time
from syndic.console.users import User, UserRole
from syndic.console.views import Role, UnknownError
from syndic.data.profile import Kind
from syndic.document import from_json, to_json
from syndic.errors import InputError, MissingExtraError, SyndicError
from syndic.privacy import shown
from syndic.privacy.audit import AuditLog, acting
from syndic.privacy.spending import STUDY_COLUMNS
from syndic.report.page import grid_html
from syndic.report.record import sentence
from syndic.report.svg import STYLE
from syndic.study.fit_people import BOUND_HEAD
from syndic.study.statement import costs_of, meaning_of
from syndic.version import __version__

COOKIE: Final = "syndic_console"
MOST_BYTES: Final = 10**6
_FORM: Final = "application/x-www-form-urlencoded"
_ASSETS: Final = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "figures.css": "text/css",
    "icon.svg": "image/svg+xml",
}
_MOST_FIELDS: Final = 5000
_LOG = logging.getLogger("syndic.console")


@final
@dataclass(frozen=True, kw_only=True)
class Site:
    """One console: its folder, its role, its name, its sessions, and its reverse proxy if any."""

    folder: Path
    role: Role
    name: str
    proxy: Proxy | None = None
    sessions: access.Sessions = field(default_factory=access.Sessions)


def application(folder: Path, *, role: Role, name: str, hosts: list[str], proxy: Proxy | None = None) -> ASGIApp:
    """Return the console of a folder as an ASGI application that answers under `hosts`, each with its port."""
    site = Site(folder=folder.absolute(), role=role, name=name, proxy=proxy)
    routes = [
        Route("/", lambda _request: RedirectResponse("/studies", status_code=303)),
        Route("/login", partial(_login, site), methods=["GET", "POST"]),
        Route("/logout", partial(_logout, site), methods=["POST"]),
        Route("/assets/{file}", _asset),
        Route(f"{BASE}/openapi.json", partial(_described, site)),
        Route("/releases/{name}/report", partial(_report, site)),
        *(Route(page.path, partial(_page, site, page), methods=["GET", "POST"]) for page in PAGES[role]),
        *(Route(BASE + one.path, partial(_answer, site, one), methods=[one.method]) for one in ENDPOINTS[role]),
    ]
    inner = Starlette(routes=routes, exception_handlers=_HANDLERS)
    larger = {f"{BASE}/releases": releases.ARCHIVE_BYTES}
    return Guard(inner, hosts=hosts, most=MOST_BYTES, larger=larger, url=proxy.url if proxy else "")


# pages


async def _login(site: Site, request: Request) -> Response:
    form = await _form(request) if request.method == "POST" else {}
    proxied = _proxied(site, request)
    if not form and not proxied:
        return _html(site, "login.html", {"title": "Sign in"})
    status, alert = 401, "Name, password or token is wrong."
    try:
        user = await run_in_threadpool(access.signed_in, site.folder, proxied, form)
    except SyndicError as error:
        user, status, alert = None, 403, str(error)
    if user is not None:
        return _begin(site, request, user)
    response = _html(site, "login.html", {"title": "Sign in", "alert": alert}, status)
    # after the answer, whose time would tell whether a line was written, and so whether the user exists
    name = proxied or form.get("name", "").strip()
    response.background = BackgroundTask(access.record_refusal, site.folder, name, alert)
    return response


def _begin(site: Site, request: Request, user: User) -> Response:
    """Begin a new session, never one that a request names, and end the one before."""
    site.sessions.end(request.cookies.get(_cookie(request), ""))
    response: Response = RedirectResponse("/studies", status_code=303)
    if _proxied(site, request):
        # a browser that comes from the proxy's sign-in page withholds the cookie from a redirect
        response = _html(site, "login.html", {"title": "Signed in"})
        response.headers["refresh"] = "0; url=/studies"
    session = site.sessions.begin(user.name, user.edition)
    secure = site.proxy is not None and site.proxy.url.startswith("https:")
    response.set_cookie(_cookie(request), session, httponly=True, samesite="strict", path="/", secure=secure)
    return response


async def _logout(site: Site, request: Request) -> Response:
    who = _who(site, request)
    form = await _form(request)
    if who is not None and access.same(who[0].token, form.get("token", "")):
        site.sessions.end(request.cookies.get(_cookie(request), ""))
    response = RedirectResponse("/login", status_code=303)
    response.delete_cookie(_cookie(request))
    return response


async def _page(site: Site, page: Page, request: Request) -> Response:
    who = _who(site, request)
    if who is None:
        return RedirectResponse("/login", status_code=303)
    visit, user = who
    extra: dict[str, Any] = {"token": visit.token, "user": user}
    refusal = _refusal(site, user, page.acts if request.method == "POST" else page.needs, f"open {page.path}")
    if refusal:
        return _html(site, "error.html", {"title": "Refused", "alert": refusal, **extra}, 403)
    asked = Asked(path=dict(request.path_params), query=dict(request.query_params), user=user.name)
    status = 200
    if request.method == "POST":
        form = await _form(request)
        if not access.same(visit.token, form.get("token", "")):
            alert = {"title": "Refused", "alert": "The form's token is missing or wrong: reload the page.", **extra}
            return _html(site, "error.html", alert, 403)
        asked = replace(asked, form=form)
        status, done = await run_in_threadpool(_as, user, _done, site, page, asked)
        if isinstance(done, str):
            return RedirectResponse(done, status_code=303)
        extra |= done
    return await run_in_threadpool(_shown, site, page, asked, extra, status)


def _done(site: Site, page: Page, asked: Asked) -> tuple[int, str | dict[str, Any]]:
    """Do what a form asks; return the next page, or what to show in addition."""
    try:
        action = page.actions.get(asked.form.get("action", ""))
        if action is None:
            raise InputError("the form names no action of this page: reload the page")
        return 200, action(site.folder, asked)
    except SyndicError as error:
        kept = {"text": asked.form["text"]} if "text" in asked.form else {}
        return _status(error), {"alert": str(error), **kept}


def _shown(site: Site, page: Page, asked: Asked, extra: dict[str, Any], status: int) -> Response:
    try:
        content = page.show(site.folder, asked)
    except SyndicError as error:
        content = {**extra, "title": "This cannot be shown", "alert": str(error)}
        return _html(site, "error.html", content, _status(error))
    return _html(site, page.template, {"title": page.title, **content, **extra}, status)


async def _report(site: Site, request: Request) -> Response:
    if _who(site, request) is None:
        return RedirectResponse("/login", status_code=303)
    try:
        content = await run_in_threadpool(releases.report_page, site.folder, request.path_params["name"])
    except SyndicError as error:
        return _html(site, "error.html", {"title": "This cannot be shown", "alert": str(error)}, _status(error))
    return _standalone(content)


def _standalone(content: bytes) -> Response:
    """Return a report under a policy that allows no script and only its own style."""
    styles = re.findall(rb"<style>(.*?)</style>", content, re.DOTALL)
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one).digest()).decode()}'" for one in styles)
    allowed = hashes or "'none'"
    policy = f"default-src 'none'; style-src {allowed}; frame-ancestors 'none'; base-uri 'none'; sandbox"
    return Response(content, media_type="text/html", headers={"content-security-policy": policy})


def _asset(request: Request) -> Response:
    name = request.path_params["file"]
    if name not in _ASSETS:
        return fault(404, "there is no such file")
    content = STYLE if name == "figures.css" else (files("syndic.console") / "assets" / name).read_text("utf-8")
    return Response(content, media_type=_ASSETS[name])


# the interface for programs


async def _answer(site: Site, endpoint: Endpoint, request: Request) -> Response:
    try:
        user = _caller(site, request, endpoint.needs, endpoint.path)
        given = [site.folder, *request.path_params.values()]
        if endpoint.body is not None:
            given.append(await _body(endpoint, request))
        found = await run_in_threadpool(_as, user, endpoint.call, *given)
    except SyndicError as error:
        return fault(_status(error), str(error))
    if not isinstance(endpoint.answer, Media):
        return Response(to_json(found), status_code=endpoint.status, media_type="application/json")
    if endpoint.answer.kind == "text/html":
        return _standalone(found)
    name = str(request.path_params.get("file") or endpoint.path.rpartition("/")[2])
    name = f"{request.path_params['name']}.zip" if name == "archive" else name
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(found, media_type=endpoint.answer.kind, headers=headers)


def _described(site: Site, request: Request) -> Response:
    _caller(site, request, "reader", "/openapi.json")
    return Response(to_json(description(site.role)), media_type="application/json")


def _caller(site: Site, request: Request, needed: UserRole, path: str) -> User:
    """Return who asks; refuse a stranger, a session without its token, and a lower role."""
    scheme, _, offered = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        user = users.by_token(site.folder, offered.strip())
        if user is None:
            raise _StatusError(401, "this is not the token of a user of this console")
    else:
        who = _who(site, request)
        if who is None:
            raise _StatusError(401, "send a user's token: Authorization: Bearer ...")
        visit, user = who
        if request.method not in {"GET", "HEAD"} and not access.same(
            visit.token, request.headers.get("x-syndic-token", "")
        ):
            raise _StatusError(403, "send the session's token: X-Syndic-Token")
    # without the names in the address: a user can make up any number, each a new line of the log
    refusal = _refusal(site, user, needed, f"{request.method} {BASE}{path}")
    if refusal:
        raise _StatusError(403, refusal)
    return user


async def _body(endpoint: Endpoint, request: Request) -> Any:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    wanted = endpoint.body.kind if isinstance(endpoint.body, Media) else "application/json"
    if kind != wanted:
        raise _StatusError(415, f"the body must be of the type {wanted}")
    content = await request.body()
    return content if isinstance(endpoint.body, Media) else from_json(content, endpoint.body, where="body")


class _StatusError(SyndicError):
    """A refusal with its HTTP status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


# both


def _cookie(request: Request) -> str:
    """Return the cookie's name, with the port: a browser sends cookies to every port of a host."""
    return f"{COOKIE}_{request.headers.get('host', '').rpartition(':')[2]}"


def _who(site: Site, request: Request) -> tuple[access.Visit, User] | None:
    """Return the session and its user, as the users are now; None if the proxy names somebody else."""
    name = request.cookies.get(_cookie(request), "")
    visit = site.sessions.find(name)
    user = None if visit is None else users.find(site.folder, visit.user)
    if visit is None or user is None:
        return None
    if user.edition != visit.edition or _proxied(site, request).lower() not in {"", user.name.lower()}:
        site.sessions.end(name)
        return None
    return visit, user


def _proxied(site: Site, request: Request) -> str:
    """Return the user whom the reverse proxy names; what anybody else sends in its header counts for nothing."""
    if site.proxy is None or request.client is None or not site.proxy.sends_from(request.client.host):
        return ""
    named = request.headers.getlist(site.proxy.header)
    return named[0].strip() if len(named) == 1 else ""


def _refusal(site: Site, user: User, needed: UserRole, what: str) -> str:
    """Return why the user's role does not suffice, and record it; empty if it does."""
    if user.may(needed):
        return ""
    why = f"this needs the role {needed}; {user.name} has the role {user.role}"
    AuditLog(site.folder).refuse(what, who=f"user {user.name}", why=why)
    return why


def _as(user: User, call: Callable[..., Any], *given: Any) -> Any:
    """Call a function in the name of a user, whom the audit log and agreements then name."""
    with acting(user.name):
        return call(*given)


async def _form(request: Request) -> dict[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        return {}
    content = await request.body()
    try:
        pairs = parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except (UnicodeDecodeError, ValueError):
        return {}
    return dict(pairs)


def _status(error: SyndicError) -> int:
    if isinstance(error, _StatusError):
        return error.status
    if isinstance(error, UnknownError):
        return 404
    return 400 if isinstance(error, InputError | MissingExtraError) else 409


def _html(site: Site, template: str, content: dict[str, Any], status: int = 200) -> Response:
    values = {"site": site, "version": __version__, "alert": "", "token": "", "user": None, **content}
    return Response(_TEMPLATES.get_template(template).render(**values), status_code=status, media_type="text/html")


def _no_answer(_request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    response = fault(status, _NO_ANSWER[status])
    response.headers.update(getattr(error, "headers", None) or {})
    return response


def _broken(_request: Request, error: Exception) -> Response:
    # the text may quote a row, and logs are passed on: only the place is logged
    places = [f"{Path(one.filename).name}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)]
    _LOG.error("a page failed: %s at %s", type(error).__name__, ", ".join(places[-8:]))
    return fault(500, "internal error; the place is in the console's own log")


def _megabytes(size: int) -> str:
    return f"{size:,} bytes" if size < 10**4 else f"{size / 1e6:,.2f} MB"


_NO_ANSWER: Final = {404: "there is no such page", 405: "this method is not allowed here", 413: TOO_LARGE}
_HANDLERS: Final = {
    404: _no_answer,
    405: _no_answer,
    413: _no_answer,
    _StatusError: lambda _, error: fault(_status(error), str(error)),
    Exception: _broken,
}
_TEMPLATES: Final = Environment(
    loader=PackageLoader("syndic.console", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {"size": _megabytes, "epsilon": shown, "sentence": sentence, "utc": shown_time}
_TEMPLATES.filters |= {"costs": costs_of, "meaning": meaning_of, "table": grid_html}
_TEMPLATES.globals |= {
    "letters": TYPED_LETTERS,
    "roles": users.ROLES,
    "kinds": get_args(Kind),
    "columns": STUDY_COLUMNS,
    "bounds": BOUND_HEAD,
    "spending_figure": spending_figure,
    "comparison_figure": releases.comparison_figure,
}
