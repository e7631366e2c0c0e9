"""Checks of every request (host, origin, size of the body), and headers of every answer.

A page of another site may send requests to this machine, also under its own name (DNS rebinding). So the host must be
one of the console's own, and every request that changes something must come from there.
"""

from collections.abc import Iterable, Mapping
from typing import Final, final

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from syndic.document import to_json

TOO_LARGE: Final = "the body is too large"
_MOST_DIGITS: Final = 18
_SAFE: Final = {"GET", "HEAD", "OPTIONS"}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # 'no-referrer' would also blank the origin of our own forms
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


@final
class Guard:
    """Wraps an ASGI application."""

    def __init__(
        self,
        inner: ASGIApp,
        *,
        hosts: Iterable[str],
        most: int,
        larger: Mapping[str, int],
        url: str = "",
    ) -> None:
        """Accept requests for `hosts` (with port) and bodies of at most `most` bytes, or `larger` by path.

        `url` is the address in browsers, if a reverse proxy has another one.
        """
        self._inner = inner
        own = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(f"http://{host}" for host in own) | ({url.lower()} if url else set())
        self._hosts = own | ({url.lower().partition("://")[2]} if url else set())
        self._most = most
        self._larger = larger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._inner(scope, receive, send)
            return
        refusal = self._refusal(scope, Headers(scope=scope))
        if refusal is not None:
            await fault(*refusal)(scope, receive, send)
            return

        answered = False

        async def sending(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._inner(scope, self._counted(receive, self._limit(scope["path"])), sending)
        except Exception:
            # already answered; raising it would log its text, which may quote a row
            if not answered:
                await fault(500, "internal error")(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        if headers.get("host", "").lower() not in self._hosts:
            return 403, "this console does not answer under that host name"
        if scope["method"] not in _SAFE:
            origin = headers.get("origin")
            if origin is not None and origin.lower() not in self._origins:
                return 403, "requests from another site are refused"
            if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
                return 403, "requests from another site are refused"
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            return 400, "the length of the body is not a number"
        if len(length) > _MOST_DIGITS or int(length) > self._limit(scope["path"]):
            return 413, TOO_LARGE
        return None

    def _limit(self, path: str) -> int:
        return self._larger.get(path, self._most)

    def _counted(self, receive: Receive, most: int) -> Receive:
        seen = 0

        async def receiving() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise HTTPException(413, TOO_LARGE)
            return message

        return receiving


def fault(status: int, text: str) -> Response:
    """Return the answer to a request that is refused or failed, a `Fault`."""
    return Response(to_json({"error": text}), status, HEADERS, media_type="application/json")
