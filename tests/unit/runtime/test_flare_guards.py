"""Who is heard at a server and at a site, and when a site registers anew; without a running engine."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nvflare", reason="nvflare is not installed: pip install 'syndic[flare]'")

from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, MessagePropKey, MessageType, ReturnCode
from nvflare.fuel.f3.message import Message as CellMessage

from syndic.runtime.flare import gate as flare_gate
from syndic.runtime.flare import site as flare_site
from syndic.runtime.flare.parts import CHANNEL, HELLO


def message(sender: str, kind: str = MessageType.REQ, **head: str) -> CellMessage:
    """A message of a party, honest where nothing else is given."""
    honest = {"origin": sender, "destination": "server", "channel": CHANNEL, "topic": HELLO, **head}
    names = {name: getattr(MessageHeaderKey, name.upper()) for name in honest}
    made = CellMessage({names[name]: value for name, value in honest.items()}, b"")
    made.set_header(MessageHeaderKey.MSG_TYPE, kind)
    made.set_prop(MessagePropKey.ENDPOINT, SimpleNamespace(name=sender))
    return made


def refused(answer: CellMessage | None) -> bool:
    if answer is None:
        return False
    assert answer.get_header(MessageHeaderKey.RETURN_CODE) == ReturnCode.UNAUTHENTICATED
    return True


@pytest.mark.parametrize(
    "head",
    [
        {"origin": "server"},
        {"origin": "south"},
        {"destination": "south"},
        {"channel": "admin"},
        {"topic": "push"},
        {"channel": "_net_manager", "topic": "process_info"},
    ],
    ids=str,
)
def test_a_server_hears_a_site_for_itself_and_about_what_a_site_says(head: dict[str, str]) -> None:
    assert not refused(flare_gate._intercept_request(message("north")))
    assert refused(flare_gate._intercept_request(message("north", **head)))


@pytest.mark.parametrize("kind", [MessageType.REPLY, MessageType.RETURN])
def test_a_server_takes_answers_in_nobody_elses_name(kind: str) -> None:
    assert not refused(flare_gate._filter_reply(message("north", kind, topic="push")))
    assert refused(flare_gate._filter_reply(message("north", kind, topic="push", origin="south")))
    assert refused(flare_gate._filter_reply(message("north", kind, topic="push", destination="south")))
    assert not refused(flare_gate._filter_reply(message("north", origin="south"))), "the other look refuses it"


@pytest.mark.parametrize(
    "head", [{"origin": "south"}, {"channel": "admin"}, {"channel": "cellnet.channel", "topic": "ping"}], ids=str
)
def test_a_site_hears_the_server_about_studies(head: dict[str, str]) -> None:
    assert not refused(flare_site._intercept_request(message("server", destination="north", topic="push")))
    assert refused(flare_site._intercept_request(message("server", destination="north", **head)))


class OverError(BaseException):
    """The test has seen enough; a site goes on after any exception that the engine may raise."""


class Server:
    """Answers greetings and challenges by a list of codes; afterwards the test is over."""

    def __init__(self, *codes: tuple[str, str]) -> None:
        self.codes = list(codes)

    def get_fqcn(self) -> str:
        return "north"

    def send_request(self, *, topic: str, **_more: Any) -> CellMessage:
        if topic == HELLO and not self.codes:
            raise OverError
        hello, challenge = self.codes[0] if topic == HELLO else self.codes.pop(0)
        if topic == HELLO and hello != ReturnCode.TIMEOUT:
            self.codes.pop(0)
        return CellMessage({MessageHeaderKey.RETURN_CODE: hello if topic == HELLO else challenge}, None)


class Site(flare_site.Site):
    def __init__(self, server: Server) -> None:
        super().__init__()
        self._cell = server
        self.registered_anew = 0

    def most(self, study: str) -> int:
        raise NotImplementedError

    def answer(self, study: str, data: bytes) -> bytes:
        raise NotImplementedError

    def lost(self) -> None:
        self.registered_anew += 1


OK = (ReturnCode.OK, "")
UNKNOWN = (ReturnCode.UNAUTHENTICATED, "")
AWAY = (ReturnCode.TARGET_UNREACHABLE, "")
STUCK = (ReturnCode.TIMEOUT, ReturnCode.TIMEOUT)
DROPPED = (ReturnCode.TIMEOUT, ReturnCode.OK)


@pytest.mark.parametrize(
    ("codes", "times"),
    [
        ([OK] * 5, 0),
        ([AWAY] * 5, 0),
        ([STUCK] * 5, 0),
        ([UNKNOWN] * 5, 0),
        ([DROPPED, OK, DROPPED, STUCK, DROPPED], 0),
        ([DROPPED, DROPPED, OK], 1),
        ([OK, DROPPED, DROPPED, DROPPED, OK, AWAY, DROPPED, DROPPED], 2),
    ],
    ids=["known", "away", "stuck", "not known yet", "slow", "another key", "twice another key"],
)
def test_a_site_registers_anew_when_the_server_answers_others_only(
    codes: list[tuple[str, str]], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flare_site, "_LOOK_SECONDS", 0.0)
    site = Site(Server(*codes))
    with pytest.raises(OverError):
        site._stay_known()
    assert site.registered_anew == times


def test_two_processes_of_a_site_are_told_from_one_that_is_started_anew() -> None:
    processes = flare_gate.Processes()
    for process in ("", "first", "first", "", "second", "second", "", "third"):
        processes.connects("north", process)
        assert not processes.twice("north")
    processes.connects("north", "second")
    assert processes.twice("north")
    assert not processes.twice("south")
