"""Agreement: an owner's yes is to one run, by one key, for a time; without everybody's, nobody answers."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from organisations import agreed_nodes, homes_for, rehearse
from support import study_text, two_parties
from syndic import Study
from syndic.document import to_json
from syndic.errors import InputError, PartyError, RefusedError
from syndic.kernel import (
    Agreement,
    Agreements,
    Call,
    Delivery,
    Member,
    Message,
    Node,
    Nothing,
    Ready,
    Reply,
    answer,
    check_all,
    decode,
    encode,
)
from syndic.privacy import Entry, Ledger
from syndic.protocols.homm import Homm
from syndic.runtime import Local
from syndic.study.agreement import agree, consider, keep_offer, studies, withdraw
from syndic.study.conduct import conduct
from syndic.study.home import run_digest
from syndic.study.identity import Identity
from syndic.study.shelf import Shelf


class Organisations:
    """Two organisations, their study, and what a coordinator could send them."""

    def __init__(self, folder: Path) -> None:
        self.study, self.homes = homes_for(Study.loads(study_text()), two_parties(), folder)
        self.home = self.homes["north"]
        self.run = self.study.digest
        self.open: list[Node] = []

    def nodes(self) -> dict[str, Node]:
        nodes = agreed_nodes(self.study, self.homes)
        self.open += nodes.values()
        return nodes

    def node(self) -> Node:
        node = self.home.agreed_node(self.run)
        self.open.append(node)
        return node

    def ask(self, node: Node, step: str, body: Message, call: str = "") -> Reply:
        identifier = call or hashlib.sha256(f"{step}{node.name}".encode()).hexdigest()[:32]
        asked = Call(study=self.run, party=node.name, step=step, call=identifier, body=encode(body))
        return decode(answer(node, encode(asked)), Reply)

    def agreements(self, nodes: dict[str, Node]) -> dict[str, bytes]:
        replies = {name: self.ask(node, "ready", Nothing()) for name, node in nodes.items()}
        return {name: decode(reply.body, Ready).agreement for name, reply in replies.items()}

    def entries(self, name: str = "north") -> list[Entry]:
        with Ledger.open(self.homes[name].ledger) as ledger:
            ledger.verify()
            return list(ledger.entries())

    def signed(self, name: str = "north", **changes: object) -> bytes:
        """Return an agreement that the organisation's own key signed, whatever is in it."""
        now = datetime.now(UTC)
        plain = Agreement(run=self.run, party=name, syndic="0.1.0", signed_at=now, expires=now + timedelta(days=1))
        changed = replace(plain, **changes)
        identity = Identity.load(self.homes[name].keys)
        return to_json(replace(changed, signature=identity.sign(changed.text()).hex()))


KEYS = Identity(signing=bytes(range(32)), sealing=bytes(range(1, 33)))
_PLAIN = Agreement(
    run="run",
    party="north",
    syndic="0.1.0",
    signed_at=datetime(2026, 1, 1, tzinfo=UTC),
    expires=datetime(2300, 1, 1, tzinfo=UTC),
)
SIGNED = to_json(replace(_PLAIN, signature=KEYS.sign(_PLAIN.text()).hex()))
ALONE = replace(Study.loads(study_text()), parties=(Member(name="north", identity=str(KEYS.public)),))


@pytest.fixture
def organisations(tmp_path: Path) -> Iterator[Organisations]:
    made = Organisations(tmp_path)
    yield made
    for node in made.open:
        node.close()


def test_nobody_answers_a_study_without_its_owners_agreement(organisations: Organisations) -> None:
    with pytest.raises(RefusedError, match="has not agreed"):
        organisations.node()
    keep_offer(organisations.home, organisations.study)
    with pytest.raises(RefusedError, match="has not agreed"):
        organisations.node()
    agree(organisations.home, organisations.study)
    assert organisations.node().name == "north"
    # another edition is another study
    second = replace(organisations.study, edition=2)
    with pytest.raises(RefusedError, match="has not agreed"):
        organisations.home.agreed_node(second.digest)
    with pytest.raises(RefusedError, match="has not agreed"):
        organisations.home.agreed_node(run_digest(organisations.study, 7))


class Thief:
    """Sits where one party's answers come from, with everything but its identity's private key."""

    def __init__(self, carrier: Local, change: Callable[[Reply], Reply]) -> None:
        self._carrier, self._change = carrier, change

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        delivery = self._carrier.send(calls, seconds=seconds, arrived=arrived)
        replies = {name: encode(self._change(decode(data, Reply))) for name, data in delivery.replies.items()}
        return Delivery(replies=replies, silent=delivery.silent)

    def close(self) -> None:
        self._carrier.close()


def _body_changed(reply: Reply) -> Reply:
    return replace(reply, body=reply.body[:-1] + bytes([reply.body[-1] ^ 1]), check=None)


@pytest.mark.parametrize(
    "change",
    [
        lambda reply: replace(reply, signature=b""),
        lambda reply: replace(reply, signature=bytes(64)),
        lambda reply: replace(reply, asked=b"", check=None),
        _body_changed,
    ],
)
def test_an_answer_that_its_party_did_not_sign_does_not_count(
    organisations: Organisations, change: Callable[[Reply], Reply]
) -> None:
    with pytest.raises(PartyError, match=r"signature of north's identity|belongs to another call"):
        conduct(organisations.study, Thief(Local(organisations.nodes()), change))


def test_a_refusal_of_the_transport_needs_no_signature(organisations: Organisations) -> None:
    with pytest.raises(PartyError, match="north: refused: gone"):
        conduct(
            organisations.study,
            Thief(Local(organisations.nodes()), lambda _reply: Reply(code="refused", text="gone")),
        )


def test_a_run_from_agreement_to_release(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    release = conduct(organisations.study, Local(nodes))
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
    for data in (encode(call), b"rubbish", encode(replace(call, step="sanitise")), encode(replace(call, study="f"))):
        answer(nodes["north"], data)
        entry = organisations.entries()[-1]
        assert entry.kind == "call"
        assert entry.asked == hashlib.sha256(data).hexdigest()
    calls = [(entry.why, entry.reply[:7], entry.call) for entry in organisations.entries() if entry.kind == "call"][1:]
    assert calls == [("", "refused", ""), ("sanitise", "refused", "a" * 32), ("", "refused", "")]


def test_nothing_but_ready_and_meet_is_answered_before_all_have_met(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    north = nodes["north"]
    reply = organisations.ask(north, "sanitise", Nothing())
    assert (reply.code, "has not seen the agreements" in reply.text) == ("refused", True)
    agreements = organisations.agreements(nodes)
    for bad, why in (
        ({}, "has not agreed"),
        ({"north": agreements["north"]}, "south has not agreed"),
        ({**agreements, "south": b""}, "is none"),
        ({**agreements, "south": agreements["north"]}, "does not carry the signature of south"),
        ({**agreements, "south": organisations.signed("south", expires=datetime(2020, 1, 1, tzinfo=UTC))}, "expired"),
        ({**agreements, "south": organisations.signed("south", run="e" * 64)}, "not to"),
        ({**agreements, "south": organisations.signed("south", party="west")}, "is that of west"),
        ({**agreements, "south": organisations.signed("south", syndic="9.9.9")}, "one version everywhere"),
        ({**agreements, "south": organisations.signed("south")[:-2]}, "is none"),
    ):
        reply = organisations.ask(north, "meet", Agreements(agreements=bad))
        assert (reply.code, why in reply.text) == ("refused", True), reply.text
        assert organisations.ask(north, "sanitise", Nothing()).code == "refused"
    assert organisations.ask(north, "meet", Agreements(agreements=agreements)).code == "ok"
    assert organisations.ask(north, "sanitise", Nothing()).code == "ok"


def test_having_met_survives_a_restart(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    agreements = organisations.agreements(nodes)
    organisations.ask(nodes["north"], "meet", Agreements(agreements=agreements))
    nodes["north"].close()
    organisations.open.remove(nodes["north"])
    assert organisations.ask(organisations.node(), "sanitise", Nothing()).code == "ok"


def test_one_party_without_an_agreement_stops_the_run_before_anything_is_spent(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    withdraw(organisations.homes["south"], organisations.run)
    with pytest.raises(PartyError, match="south has withdrawn"):
        conduct(organisations.study, Local(nodes))
    assert not [entry for entry in organisations.entries() if entry.kind == "reserve"]


def test_withdrawal_works_at_once_and_also_for_stored_answers(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    organisations.ask(nodes["north"], "meet", Agreements(agreements=organisations.agreements(nodes)))
    assert organisations.ask(nodes["north"], "sanitise", Nothing()).code == "ok"
    assert withdraw(organisations.home, organisations.run[:6], why="no longer") == organisations.run
    for step in ("ready", "sanitise"):
        reply = organisations.ask(nodes["north"], step, Nothing())
        assert (reply.code, "has withdrawn" in reply.text) == ("refused", True)
    with pytest.raises(RefusedError, match="has withdrawn"):
        organisations.node()
    standing = [entry for entry in organisations.entries() if entry.kind == "withdraw"]
    assert [(entry.why, entry.study) for entry in standing] == [("no longer", organisations.run)]
    agree(organisations.home, organisations.study)
    assert organisations.ask(nodes["north"], "sanitise", Nothing()).code == "ok"
    # what was charged before is not charged again
    assert sum(entry.kind == "reserve" for entry in organisations.entries()) == 1


def test_an_expired_agreement_stops_answers_in_the_middle_of_a_run(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    organisations.ask(nodes["north"], "meet", Agreements(agreements=organisations.agreements(nodes)))
    agree(organisations.home, organisations.study, lasts=timedelta(microseconds=1))
    reply = organisations.ask(nodes["north"], "sanitise", Nothing())
    assert (reply.code, "expired" in reply.text) == ("refused", True)
    with pytest.raises(RefusedError, match="expired"):
        organisations.node()


@given(st.data())
def test_any_changed_byte_of_an_agreement_is_refused(data: st.DataObject) -> None:
    written = bytearray(SIGNED)
    written[data.draw(st.integers(0, len(written) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(RefusedError):
        check_all({"north": bytes(written)}, ALONE, run="run", syndic="0.1.0")


def test_any_changed_bit_of_an_agreement_is_refused() -> None:
    check_all({"north": SIGNED}, ALONE, run="run", syndic="0.1.0")
    for place in range(8 * len(SIGNED)):
        written = bytearray(SIGNED)
        written[place // 8] ^= 1 << place % 8
        with pytest.raises(RefusedError):
            check_all({"north": bytes(written)}, ALONE, run="run", syndic="0.1.0")


def test_another_writing_of_the_same_agreement_is_refused(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    agreements = organisations.agreements(nodes)
    content = json.loads(agreements["south"])
    for other in (
        json.dumps(content).encode(),
        to_json({**content, "signature": content["signature"].upper()}),
        to_json({**content, "more": 1}),
        agreements["south"] + b" ",
    ):
        reply = organisations.ask(nodes["north"], "meet", Agreements(agreements={**agreements, "south": other}))
        assert reply.code == "refused", other


def test_a_file_that_the_log_does_not_name_is_no_agreement(organisations: Organisations) -> None:
    agree(organisations.home, organisations.study, lasts=timedelta(microseconds=1))
    path = Shelf.of(organisations.home.folder, organisations.run).written
    # signed by the right key and not expired, but not by way of `agree`
    path.write_bytes(organisations.signed())
    with pytest.raises(RefusedError, match="not the one that its owner's log names"):
        organisations.node()


def test_a_changed_copy_of_the_study_is_found(organisations: Organisations) -> None:
    agree(organisations.home, organisations.study)
    path = Shelf.of(organisations.home.folder, organisations.run).folder / "study.json"
    path.write_text(path.read_text().replace('"epsilon": "1"', '"epsilon": "9"'))
    with pytest.raises(RefusedError, match="was changed: agree again"):
        organisations.node()


def test_an_agreement_is_to_one_version_of_the_code(
    organisations: Organisations, monkeypatch: pytest.MonkeyPatch
) -> None:
    agree(organisations.home, organisations.study)
    monkeypatch.setattr("syndic.study.shelf.__version__", "0.1.1")
    with pytest.raises(RefusedError, match=r"agreed to Syndic 0\.1\.0, and here is 0\.1\.1"):
        organisations.node()


def unsigned(study: Study) -> Study:
    return replace(study, parties=tuple(replace(one, identity=None) for one in study.parties))


def printed(study: Study) -> Study:
    return replace(study, protocol=Homm(as_printed=True))


def exchanged(study: Study) -> Study:
    north, south = (one.identity for one in study.parties)
    return replace(
        study,
        parties=(replace(study.parties[0], identity=south), replace(study.parties[1], identity=north)),
    )


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (unsigned, "gives the identity of every party"),
        (exchanged, "does not carry the identity"),
        (printed, "can only be rehearsed"),
    ],
)
def test_what_an_owner_cannot_agree_to(
    organisations: Organisations, change: Callable[[Study], Study], text: str
) -> None:
    with pytest.raises(InputError, match=text):
        agree(organisations.home, change(organisations.study))
    assert not organisations.home.ledger.exists() or [entry.kind for entry in organisations.entries()] == ["declare"]


def test_the_owner_is_shown_what_the_cap_leaves(organisations: Organisations) -> None:
    offer = consider(organisations.home, organisations.study)
    assert (offer.charge, offer.spending.left) == (1.0, Fraction(50))
    shown = str(offer)
    for member in organisations.study.parties:
        identity = Identity.load(organisations.homes[member.name].keys)
        assert f"peer       {member.name}: {identity.public.fingerprint}" in shown
    assert "epsilon 50 is left of 50, and this study charges 1" in shown
    assert "REHEARSAL" not in shown
    assert "protects nobody" in str(consider(organisations.home, organisations.study, rehearsal=7))
    conduct(organisations.study, Local(organisations.nodes()))
    assert consider(organisations.home, organisations.study).spending.left == Fraction(49)


def test_where_studies_stand(organisations: Organisations) -> None:
    home, study = organisations.home, organisations.study
    others = {name: replace(study, name=name) for name in ("waiting", "left", "late")}
    keep_offer(home, others["waiting"])
    agree(home, others["left"])
    withdraw(home, others["left"].digest)
    agree(home, others["late"], lasts=timedelta(microseconds=1))
    rehearse(study, organisations.homes, seed=7)
    agree(home, study)
    found = {(one.study, one.rehearsal): (one.state, one.run) for one in studies(home)}
    assert found == {
        ("waiting", None): ("pending", others["waiting"].digest),
        ("left", None): ("withdrawn", others["left"].digest),
        ("late", None): ("expired", others["late"].digest),
        ("test", 7): ("finished", run_digest(study, 7)),
        ("test", None): ("agreed", study.digest),
    }
    conduct(study, Local(organisations.nodes()))
    assert {one.run: one.state for one in studies(home)}[study.digest] == "finished"


@pytest.mark.parametrize("file", ["study.json", "agreement.json"])
def test_a_damaged_study_does_not_keep_an_owner_from_withdrawing_from_others(
    organisations: Organisations, file: str
) -> None:
    home, second = organisations.home, replace(organisations.study, name="second")
    agree(home, organisations.study)
    agree(home, second)
    (Shelf.of(home.folder, organisations.run).folder / file).write_text("rubbish")
    assert withdraw(home, second.digest) == second.digest
    assert {one.run[:16]: one.state for one in studies(home)} == {
        organisations.run[:16]: "pending",
        second.digest[:16]: "withdrawn",
    }


@pytest.mark.parametrize("digest", ["", "zz", "0000"])
def test_withdrawing_from_nothing(organisations: Organisations, digest: str) -> None:
    agree(organisations.home, organisations.study)
    with pytest.raises(InputError, match=f"here are {organisations.run[:12]}"):
        withdraw(organisations.home, digest)


def test_what_a_cap_leaves_stays_at_home(organisations: Organisations) -> None:
    party = organisations.home.folder / "party.toml"
    party.write_text(party.read_text().replace("epsilon = 50", "epsilon = 0.5"))
    nodes = organisations.nodes()
    with organisations.home.logging("north"), pytest.raises(PartyError) as error:
        conduct(organisations.study, Local(nodes))
    assert "north: budget: over the cap of north's owner" in str(error.value)
    assert error.value.exit_code == 3
    for private in ("people of north", "0.5", "spent", "left"):
        assert private not in str(error.value)
    log = (organisations.home.folder / "party.log").read_text()
    assert "data set 'people of north': spent 0 of epsilon 0.5" in log
    assert organisations.entries()[-1].reply == "budget"


def test_an_answer_that_cannot_be_logged_is_not_sent(
    organisations: Organisations, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = organisations.nodes()

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on secret disk")

    monkeypatch.setattr(nodes["north"].desk.ledger, "log_call", full)
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


@pytest.mark.parametrize("asks", range(1, 6))
def test_a_stopped_run_goes_on_after_owners_agreed_anew(tmp_path: Path, asks: int) -> None:
    gaussian = study_text(budget="epsilon = 1.0\ndelta = 1e-5", protocol='method = "marginals"')
    study, homes = homes_for(Study.loads(gaussian), two_parties(), tmp_path)
    carrier = Local(agreed_nodes(study, homes))
    with pytest.raises(StoppedError):
        conduct(study, Stopping(carrier, asks), folder=tmp_path / "coordinator")
    agree(homes["south"], study, lasts=timedelta(days=1))
    conduct(study, carrier, folder=tmp_path / "coordinator")
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
        conduct(study, Local(nodes))
    with Ledger.open(organisations.home.ledger) as ledger:
        assert ledger.spent("people of north").epsilon == 2
    shelves = {path.name for path in (organisations.home.folder / "studies").iterdir()}
    assert shelves == {organisations.run[:16], second.digest[:16]}


def test_an_agreement_has_a_time_zone(organisations: Organisations) -> None:
    content = json.loads(organisations.signed())
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**content, "expires": "2090-01-01T00:00:00"}, Agreement)
