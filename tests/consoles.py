"""Consoles for tests: party folders of three organisations with a common study, and a client that is signed in."""

import asyncio
import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import pyarrow as pa
from starlette.types import ASGIApp

from organisations import COORDINATOR, homes_for
from support import rows, study_text
from syndic.console.access import Proxy, role_of
from syndic.console.serve import hosts_of
from syndic.console.users import UserRole, put, with_token
from syndic.console.web import application
from syndic.document import to_readable_json
from syndic.runtime import Local
from syndic.study import PartyFolder, Release, Study
from syndic.study.agreement import agree
from syndic.study.run import run_study

HOST = "127.0.0.1:8765"
ORIGIN = f"http://{HOST}"
NAMES = ("north", "south", "east")
PARTIES = "".join(f'[[parties]]\nname = "{name}"\npeople = 60\n' for name in NAMES)


def study_between(folder: Path, *, name: str = "test", **parts: str) -> tuple[Study, dict[str, PartyFolder]]:
    """Return a study of three organisations and their homes in the folder."""
    study = Study.loads(study_text(**{"parties": PARTIES, **parts}).replace('"test"', f'"{name}"', 1))
    sources: dict[str, pa.Table] = {party: rows(60, seed) for seed, party in enumerate(NAMES)}
    return homes_for(study, sources, folder)


def study_file(study: Study) -> str:
    """Return the study as a file that somebody sends."""
    return to_readable_json(study).decode()


def run_between(study: Study, homes: Mapping[str, PartyFolder]) -> Release:
    """Run the study with the homes that agreed to it."""
    local = Local({name: home.agreed_node(study.digest) for name, home in homes.items()})
    try:
        return run_study(study, local, identity=COORDINATOR)
    finally:
        local.close()


def agree_all(study: Study, homes: Mapping[str, PartyFolder]) -> None:
    """Let every owner agree."""
    for home in homes.values():
        agree(home, study)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the application answered."""

    status: int
    headers: dict[str, str]
    cookies: list[str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


def request(
    app: ASGIApp, method: str, path: str, headers: Mapping[str, str], body: bytes = b"", *, piece: int = 65536
) -> Answer:
    """Send one request straight into the application, the body in pieces; headers are sent as they are."""
    place, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(place),
        "raw_path": place.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8765),
    }
    pieces = [body[start : start + piece] for start in range(0, len(body), piece)] or [b""]
    incoming = [
        {"type": "http.request", "body": one, "more_body": place + 1 < len(pieces)} for place, one in enumerate(pieces)
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    try:
        asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]  # an ASGI application is a coroutine function
    except Exception:
        # an error that was answered is raised again, for the server's log
        if not sent:
            raise
    start = sent[0]
    given = [(name.decode().lower(), value.decode()) for name, value in start["headers"]]
    return Answer(
        status=start["status"],
        headers=dict(given),
        cookies=[value for name, value in given if name == "set-cookie"],
        body=b"".join(message.get("body", b"") for message in sent[1:]),
    )


class Visitor:
    """A browser of the owner, signed in unless told otherwise."""

    def __init__(
        self,
        folder: Path,
        *,
        signed_in: bool = True,
        name: str = "maria",
        role: UserRole = "administrator",
        proxy: Proxy | None = None,
    ) -> None:
        self.folder = folder
        user, self.secret = with_token(name, role)
        put(folder, user)
        kind, hosts = role_of(folder), hosts_of("127.0.0.1", 8765)
        self.app = application(folder, role=kind, name=folder.name, hosts=hosts, proxy=proxy)
        self.cookie = ""
        self.token = ""
        if signed_in:
            self.sign_in()

    def sign_in(self) -> None:
        answer = self.form("/login", {"secret": self.secret})
        assert answer.status == 303
        self.cookie = "; ".join(f"{one.key}={one.value}" for one in SimpleCookie(answer.cookies[0]).values())
        found = re.search('name="token" value="([0-9a-f]{64})"', self.get("/studies"))
        assert found
        self.token = found[1]

    def send(self, method: str, path: str, *, body: bytes = b"", **headers: str) -> Answer:
        """Send anything; a header that is given empty is left out, underlines stand for hyphens."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"host": HOST, "cookie": self.cookie, "content-length": str(len(body)), **given}
        return request(self.app, method, path, {name: value for name, value in sent.items() if value}, body)

    def form(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        body = urlencode(fields).encode()
        kind = "application/x-www-form-urlencoded"
        return self.send("POST", path, body=body, **{"origin": ORIGIN, "content_type": kind, **headers})

    def get(self, path: str, status: int = 200) -> str:
        answer = self.send("GET", path)
        assert answer.status == status, answer.text
        return answer.text

    def post(self, path: str, status: int = 303, **fields: str) -> str:
        """Send a form; return where it leads, or the page that comes instead."""
        answer = self.form(path, {"token": self.token, **fields})
        assert answer.status == status, answer.text
        return answer.headers["location"] if status == 303 else answer.text

    def ask(self, method: str, path: str, status: int = 200, *, body: Any = None) -> Any:
        """Ask the interface for programs with the secret; bytes are sent as an archive."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        kind = "application/zip" if isinstance(body, bytes) else "application/json"
        secret = f"Bearer {self.secret}"
        answer = self.send(method, f"/api/v1{path}", body=content, content_type=kind, authorization=secret, cookie="")
        assert answer.status == status, answer.text
        return answer.json() if answer.headers.get("content-type") == "application/json" else answer.body


class Running:
    """A console as its own process, started by the command line."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as door:
            door.bind(("127.0.0.1", 0))
            self.port = int(door.getsockname()[1])
        self.place = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "syndic", "console", str(folder), "--port", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        link = self._process.stdout.readline()
        found = re.search(r"open (http://\S+#([0-9a-f]{64}))", link)
        assert found, link
        self.link, self.secret = found[1], found[2]
        end = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{self.place}/login", timeout=5).close()
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.2)
            else:
                return

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()
