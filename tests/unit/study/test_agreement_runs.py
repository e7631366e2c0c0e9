"""Runs between organisations: every call is in the owner's log, and what a cap leaves stays at home."""

import hashlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from organisations import COORDINATOR, Organisations, agreed_nodes, homes_for, signed_call
from support import study_text, two_parties
from syndic import Study
from syndic.errors import PartyError
from syndic.kernel import Call, Delivery, Nothing, answer, encode
from syndic.methods.histogram.homm import Homm
from syndic.privacy import Ledger
from syndic.runtime import Local
from syndic.study.agreement import agree
from syndic.study.run import run_study


def test_a_run_from_agreement_to_release(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    release = run_study(organisations.study, Local(nodes), identity=COORDINATOR)
    assert release.statement.protects
    assert [each.step for each in release.transcript][:4] == ["ready", "ready", "meet", "meet"]
    entries = organisations.entries()
    assert [entry.kind for entry in entries] == ["declare", "agree", "call", "call", "reserve", "commit", "call"]
    calls = [entry for entry in entries if entry.kind == "call"]
    assert [entry.why for entry in calls] == ["ready", "meet", "sanitise"]
    replies = {(each.step, each.party): each.reply_sha256 for each in release.transcript}
    assert [entry.reply for entry in calls] == [replies[entry.why, "north"] for entry in calls]
    assert {entry.study for entry in entries[1:]} == {organisations.run}


def test_every_call_is_logged_with_the_digest_of_what_was_asked(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    call = Call(study=organisations.run, party="north", step="ready", call="a" * 32, body=encode(Nothing()))
    for data in (signed_call(call), b"rubbish", signed_call(replace(call, step="sanitise"))):
        answer(nodes["north"], data)
        entry = organisations.entries()[-1]
        assert entry.kind == "call"
        assert entry.asked == hashlib.sha256(data).hexdigest()
    entries = organisations.entries()
    calls = [(entry.why, entry.reply[:7], entry.call) for entry in entries if entry.kind == "call"][1:]
    assert calls == [("", "refused", ""), ("sanitise", "refused", "a" * 32)]
    # asking more of the same does not fill the owner's ledger
    for data in (
        signed_call(replace(call, call="b" * 32)),
        b"more rubbish",
        signed_call(replace(call, study="f")),
        encode(call),
    ):
        answer(nodes["north"], data)
    assert organisations.entries() == entries


def test_runs_that_were_never_agreed_to_are_logged_as_one(organisations: Organisations) -> None:
    """A sender can make up any number of digests, and each entry stays for ever."""
    organisations.nodes()
    before = organisations.entries()
    for number in range(20):
        organisations.home.log_refusal(f"{number:064x}", f"call {number}".encode(), "refused", "no agreement")
    organisations.home.log_refusal(organisations.run, b"call", "refused", "no agreement")
    added = organisations.entries()[len(before) :]
    assert [(entry.kind, entry.study) for entry in added] == [("call", ""), ("call", organisations.run)]


def test_what_a_cap_leaves_stays_at_home(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    party = organisations.home.folder / "party.toml"
    party.write_text(party.read_text().replace("epsilon = 50", "epsilon = 0.5"))
    nodes["north"] = organisations.node()
    with organisations.home.logging("north"), pytest.raises(PartyError) as error:
        run_study(organisations.study, Local(nodes), identity=COORDINATOR)
    assert "north: the study exceeds the cap that north's owner set" in str(error.value)
    assert error.value.exit_code == 3
    for private in ("people of north", "0.5", "spent", "left"):
        assert private not in str(error.value)
    log = (organisations.home.folder / "party.log").read_text()
    assert "data set 'people of north', at delta 0.0001: spent 0 of epsilon 0.5" in log
    assert organisations.entries()[-1].reply == "budget"


def test_an_answer_that_cannot_be_logged_is_not_sent(
    organisations: Organisations, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = organisations.nodes()

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on secret disk")

    monkeypatch.setattr(nodes["north"].state.ledger, "log_call", full)
    reply = organisations.ask(nodes["north"], "ready", Nothing())
    assert (reply.code, reply.body, "secret" in reply.text) == ("internal", b"", False)


class StoppedError(Exception):
    """The coordinator is killed."""


class Stopping:
    """A runtime whose coordinator dies after some asks."""

    def __init__(self, carrier: Local, asks: int) -> None:
        self.carrier, self.asks = carrier, asks

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        self.asks -= 1
        if self.asks < 0:
            raise StoppedError
        return self.carrier.send(calls, seconds=seconds, arrived=arrived)

    def close(self) -> None:
        self.carrier.close()


@pytest.mark.parametrize("asks", range(1, 5))
def test_a_stopped_run_goes_on_after_owners_agreed_anew(tmp_path: Path, asks: int) -> None:
    gaussian = study_text(budget="epsilon = 1.0\ndelta = 1e-5", protocol='method = "marginals"')
    study, homes = homes_for(Study.loads(gaussian), two_parties(), tmp_path)
    carrier = Local(agreed_nodes(study, homes))
    with pytest.raises(StoppedError):
        run_study(study, Stopping(carrier, asks), folder=tmp_path / "coordinator", identity=COORDINATOR)
    agree(homes["south"], study, lasts=timedelta(days=1))
    run_study(study, carrier, folder=tmp_path / "coordinator", identity=COORDINATOR)
    carrier.close()
    for home in homes.values():
        with Ledger.open(home.ledger) as ledger:
            ledger.verify()
            assert [entry.kind for entry in ledger.entries()].count("reserve") == 1


def test_two_studies_share_one_ledger_and_one_cap(organisations: Organisations) -> None:
    second = replace(organisations.study, name="second")
    for study in (organisations.study, second):
        nodes = agreed_nodes(study, organisations.homes)
        organisations.open += nodes.values()
        run_study(study, Local(nodes), identity=COORDINATOR)
    with Ledger.open(organisations.home.ledger) as ledger:
        assert ledger.spent("people of north").epsilon == 2
    shelves = {path.name for path in (organisations.home.folder / "studies").iterdir()}
    assert shelves == {organisations.run[:16], second.digest[:16]}


def test_the_audit_log_has_every_call_once_and_no_private_text(
    organisations: Organisations, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = organisations.nodes()
    run_study(organisations.study, Local(nodes), identity=COORDINATOR)
    log = organisations.home.audit
    told = [(one.what, one.allowed) for one in log.verify()]
    assert told == [("agree", True), *((f"call {step}", True) for step in ("ready", "meet", "sanitise"))]
    assert all(one.study == organisations.run for one in log.records())
    assert log.records()[1].who == f"coordinator {COORDINATOR.public.fingerprint}"
    # a call that was answered before, one that nobody signed, and one that fails with a text from a row
    run_study(organisations.study, Local(nodes), identity=COORDINATOR)
    assert len(log.records()) == len(told)
    answer(nodes["north"], b"whatever")

    def fail(*_: object) -> None:
        raise ValueError("the row of Ada Lovelace")

    monkeypatch.setattr(Homm, "ready", fail)
    assert organisations.ask(nodes["north"], "ready", Nothing()).code == "internal"
    assert [(one.who, one.what, one.allowed) for one in log.verify()[-2:]] == [
        ("unsigned call", "call", False),
        (f"coordinator {COORDINATOR.public.fingerprint}", "call ready", False),
    ]
    assert log.records()[-1].why == "internal error"
    assert "Ada" not in log.path.read_text()
