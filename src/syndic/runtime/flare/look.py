"""A request beside the engine's messages, on the same port and channel: how the server sees a site.

`syndic doctor` sends it with a site's own certificate, through the proxy that the site would use. It registers nothing,
so it does not disturb the site that is connected.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import grpc

from syndic.kernel import Message, Nothing, decode, encode
from syndic.version import __version__

_METHOD: Final = "/syndic.Server/look"
_GONE: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class Looked(Message):
    """How the server sees a site, and the server's own clock (seconds since 1970, UTC) and version.

    `admitted`: its certificate is on the list. `twice`: two processes are connected under its name.
    """

    time: float
    syndic: str
    admitted: bool
    connected: bool
    twice: bool


class NoLookError(Exception):
    """The request was not answered; `reached` if the server was reached and knows no such request."""

    def __init__(self, text: str, *, reached: bool) -> None:
        super().__init__(text)
        self.reached = reached


def serve_look(server: Any, see: Callable[[str, list[bytes]], tuple[bool, bool, bool]]) -> None:
    """Answer the request on a gRPC server; `see` gets the name and certificates that the caller's TLS has proven."""

    def answer(_body: bytes, context: Any) -> bytes:
        shown = context.auth_context()
        name = shown.get("x509_common_name", [b""])[0].decode(errors="replace")
        admitted, connected, twice = see(name, list(shown.get("x509_pem_cert", [])))
        return encode(Looked(time=time.time(), syndic=__version__, admitted=admitted, connected=connected, twice=twice))

    handler = grpc.unary_unary_rpc_method_handler(answer)
    service, method = _METHOD.strip("/").split("/")
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))


def look(host: str, port: int, startup: Path, *, seconds: float) -> Looked:
    """Ask the server as a site would reach it: gRPC, mutual TLS, and the proxy variables of this process.

    Raises:
        NoLookError: if nothing, or not this server, answers in time.
    """
    root, chain, key = ((startup / name).read_bytes() for name in ("rootCA.pem", "client.crt", "client.key"))
    credentials = grpc.ssl_channel_credentials(root_certificates=root, private_key=key, certificate_chain=chain)
    with grpc.secure_channel(f"{host}:{port}", credentials) as channel:
        try:
            return decode(channel.unary_unary(_METHOD)(encode(Nothing()), timeout=seconds), Looked)
        except grpc.RpcError as error:
            raise NoLookError(str(error.details()), reached=error.code() not in _GONE) from None
