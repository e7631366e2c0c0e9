"""A party with a good certificate that speaks the engine's own protocol, to pass for the server or to reach others.

Run as `python dishonest.py HOME NAME ADDRESS TARGET STUDY` it registers, also as what it is not, and sends the target
calls that claim to come from the server. As `python dishonest.py HOME NAME ADDRESS` it only connects, which is enough
to be written to. It prints what came back, as JSON.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from syndic.kernel import Call, Nothing, encode
from syndic.runtime.flare_parts import CHANNEL, Push

CALL = "evil"
_SECONDS = 4.0
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
    time.sleep(3.0)
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
        msg_timeout=15.0,
        retry_interval=1.0,
        timeout=60.0,
    ).authenticate(FLContext(), Signal())
    token, signature, session, _ = answered
    return {Keys.CLIENT_NAME: name, Keys.TOKEN: token, Keys.TOKEN_SIGNATURE: signature, Keys.SSID: session}


def _asker(cell: Any) -> Callable[..., str]:
    """Return what sends a request under headers of our choice and tells what came back."""
    from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey  # noqa: PLC0415
    from nvflare.fuel.f3.message import Message  # noqa: PLC0415

    core = cell.core_cell
    honest = core._send_to_endpoint
    forged: dict[str, str] = {}

    def send(to_endpoint: Any, message: Any, *more: Any, **options: Any) -> Any:
        message.add_headers(forged)
        return honest(to_endpoint, message, *more, **options)

    core._send_to_endpoint = send

    def ask(headers: dict[str, str], origin: str, channel: str, topic: str, target: str, payload: Any) -> str:
        forged.clear()
        forged.update({**headers, MessageHeaderKey.ORIGIN: origin})
        reply = core.send_request(
            channel=channel, topic=topic, target=target, request=Message({}, payload), timeout=_SECONDS, optional=True
        )
        forged.clear()
        code = reply.get_header(MessageHeaderKey.RETURN_CODE)
        return f"{code} {'with an answer' if reply.payload else ''}".strip()

    return ask


def main(home: str, name: str, address: str, *aim: str) -> None:
    """Try everything, and print what came back."""
    startup = Path(home) / "flare" / "startup"
    cell = _connected(startup, name, address)
    told = _attack(cell, startup, name, *aim) if aim else {"greeted": _greeted(cell, name)}
    sys.stdout.write("\n" + json.dumps(told) + "\n")
    sys.stdout.flush()
    os._exit(0)


def _greeted(cell: Any, name: str) -> str:
    """Ask for the engine's challenge: whoever is connected is answered, before it has shown anything."""
    return _asker(cell)({"cn": name, "nonce": "any"}, name, "task", "challenge", "server", None)


def _attack(cell: Any, startup: Path, name: str, target: str, study: str) -> dict[str, str]:
    told = {}
    try:
        relay = _registered(cell, startup, name, "relay")
        told["registered as a relay"] = "accepted"
    except Exception as error:
        # the engine raises what it likes
        relay, told["registered as a relay"] = None, str(error)
    older = _registered(cell, startup, name, "regular")
    newer = _registered(cell, startup, name, "regular")
    ask = _asker(cell)
    call = encode(Call(study=study, party=target, step="ready", call=CALL, body=encode(Nothing())))
    push = encode(Push(study=study, transfer="forged", total=len(call), offset=0, body=call, seconds=1.0))
    for what, token in (("relay", relay), ("older", older), ("newer", newer)):
        for origin in (name, "server", "server.more"):
            if token is not None:
                told[f"push, {what} token, from {origin}"] = ask(token, origin, CHANNEL, "push", target, push)
    for place in (target, "server"):
        told[f"looks into {place}"] = ask(newer, name, "_net_manager", "process_info", place, None)
    return told


if __name__ == "__main__":
    main(*sys.argv[1:])
