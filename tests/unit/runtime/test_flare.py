"""The coordinator's side of the way through a server, against a server and a site that are made up here."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from syndic.errors import InputError
from syndic.kernel import Message, decode, encode
from syndic.runtime.flare.coordinator import Flare, reachable
from syndic.runtime.flare.parts import PART_BYTES, Forward, Forwarded, Part, Pull, Push
from syndic.runtime.frame import receive_frame, send_frame

Answer = Callable[[Forward], Forwarded]


class Server:
    """Listens like a relay; `answer` is what it says."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "relay.sock"
        self.answer: Answer = lambda _question: Forwarded(reason="nothing here")
        self.asked: list[Forward] = []
        self._door = socket.socket(socket.AF_UNIX)
        with reachable(self.path) as address:
            self._door.bind(address)
        self._door.listen()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._door.accept()
            except OSError:
                return
            with connection:
                frame = receive_frame(connection, most=10**8)
                if frame is not None:
                    question = decode(frame, Forward)
                    self.asked.append(question)
                    send_frame(connection, encode(self.answer(question)))

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()


class EchoingSite:
    """Takes a call in parts and returns it reversed, in parts; `forget` makes it a process that was started anew."""

    def __init__(self) -> None:
        self.data = b""
        self.reply = b""
        self.working = 0

    def forget(self) -> None:
        self.data, self.reply = b"", b""

    def __call__(self, question: Forward) -> Forwarded:
        return Forwarded(body=encode(self._part(question)))

    def _part(self, question: Forward) -> Message:
        if question.kind == "push":
            push = decode(question.body, Push)
            assert len(push.body) <= PART_BYTES
            assert push.offset == len(self.data) or push.offset == 0
            self.data = self.data[: push.offset] + push.body
            if len(self.data) < push.total:
                return Part(state="more", total=len(self.data))
            self.reply = self.data[::-1]
            return self._from(0)
        pull = decode(question.body, Pull)
        return self._from(pull.offset) if self.reply else Part(state="lost")

    def _from(self, offset: int) -> Part:
        if self.working:
            self.working -= 1
            return Part(state="working")
        body = self.reply[offset : offset + PART_BYTES]
        return Part(state="part", total=len(self.reply), offset=offset, body=body)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    # longer than the address of a socket may be
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    made = Server(folder)
    yield made
    made.close()


def sent(server: Server, data: bytes, **options: Any) -> bytes | str:
    runtime = Flare(server.path, study="s" * 64, **{"most": 10**8, "patience": 1.5, **options})
    delivery = runtime.send({"north": data}, seconds=20.0, arrived=lambda _done: None)
    assert set(delivery.replies) | set(delivery.silent) == {"north"}
    return delivery.replies.get("north", delivery.silent.get("north", ""))


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, 2 * PART_BYTES + 3])
def test_messages_travel_in_parts(server: Server, size: int) -> None:
    server.answer = EchoingSite()
    data = os.urandom(size)
    assert sent(server, data) == data[::-1]


def test_a_site_that_takes_its_time_is_asked_again(server: Server) -> None:
    site = EchoingSite()
    site.working = 3
    server.answer = site
    assert sent(server, b"hello") == b"olleh"
    assert [question.kind for question in server.asked] == ["push", "pull", "pull", "pull"]


def test_a_site_that_was_started_anew_gets_the_call_again(server: Server) -> None:
    site = EchoingSite()
    forgotten: list[Forward] = []
    data = os.urandom(3 * PART_BYTES)

    def forgetful(question: Forward) -> Forwarded:
        if question.kind == "pull" and len(forgotten) < 2:
            forgotten.append(question)
            site.forget()
        return site(question)

    server.answer = forgetful
    assert sent(server, data) == data[::-1]
    assert len(forgotten) == 2


def test_a_question_of_a_later_run_is_another_transfer(server: Server) -> None:
    server.answer = EchoingSite()
    for _ in range(2):
        assert sent(server, b"ready?") == b"?ydaer"
    first, second = (decode(question.body, Push) for question in server.asked)
    assert first.body == second.body
    assert first.transfer != second.transfer


def test_a_site_that_is_away_for_a_moment_is_waited_for(server: Server) -> None:
    site, away = EchoingSite(), [1]

    def absent(question: Forward) -> Forwarded:
        return Forwarded(reason="its site is not connected") if away and away.pop() else site(question)

    server.answer = absent
    assert sent(server, b"hello") == b"olleh"


def test_a_site_that_stays_away_is_given_up(server: Server) -> None:
    server.answer = lambda _question: Forwarded(reason="its site is not connected")
    assert sent(server, b"hello") == "its site is not connected for 1.5 seconds"


def test_time_is_over_for_a_site_that_only_works(server: Server) -> None:
    server.answer = lambda _question: Forwarded(body=encode(Part(state="working")))
    runtime = Flare(server.path, study="s", most=10, patience=1.0)
    delivery = runtime.send({"north": b"x"}, seconds=1.0, arrived=lambda _done: None)
    assert delivery.silent == {"north": "no answer in time; its stored answers are kept"}


def test_a_reply_that_is_too_large_is_not_taken(server: Server) -> None:
    server.answer = lambda _question: Forwarded(body=encode(Part(state="part", total=10**12, body=b"x")))
    assert sent(server, b"x", most=10**6) == "a reply of 1000000000000 bytes was announced; the limit is 1000000"


def test_a_server_that_does_not_run_is_named(tmp_path: Path) -> None:
    runtime = Flare(tmp_path / "relay.sock", study="s", most=10, patience=0.5)
    with pytest.raises(InputError, match="syndic coordinator start"):
        runtime.connected()
    delivery = runtime.send({"north": b"x"}, seconds=5.0, arrived=lambda _done: None)
    assert delivery.silent == {"north": "the server on this machine is not running for 0.5 seconds"}


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_a_site_that_answers_rubbish_is_silent_and_does_not_end_the_run(server: Server, size: int) -> None:
    server.answer = lambda _question: Forwarded(body=bytes(size))
    told = sent(server, b"x")
    assert isinstance(told, str)
    assert "not a valid Part" in told
