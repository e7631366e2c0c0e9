"""Agreements between parties: everybody's, signed and unchanged, or nobody answers; answers carry signatures too."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from organisations import COORDINATOR, Organisations
from support import study_text
from syndic import Study
from syndic.document import to_json
from syndic.errors import InputError, PartyError, RefusedError
from syndic.kernel import Agreement, Call, Delivery, Member, Nothing, Reply, answer, decode, encode
from syndic.kernel.agreement import Agreements, check_all
from syndic.runtime import Local
from syndic.study.agreement import agree
from syndic.study.identity import Identity
from syndic.study.run import run_study

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
        run_study(organisations.study, Thief(Local(organisations.nodes()), change), identity=COORDINATOR)


def test_a_refusal_of_the_transport_needs_no_signature(organisations: Organisations) -> None:
    with pytest.raises(PartyError, match="north: refused: gone"):
        run_study(
            organisations.study,
            Thief(Local(organisations.nodes()), lambda _reply: Reply(code="refused", text="gone")),
            identity=COORDINATOR,
        )


def test_a_refusal_cannot_steer_the_coordinators_terminal(organisations: Organisations) -> None:
    rude = Reply(code="refused", text="\x1b[2J\ngone " + 10**6 * "x")
    with pytest.raises(PartyError, match=r"north: refused:  \[2J gone xxx") as error:
        run_study(organisations.study, Thief(Local(organisations.nodes()), lambda _reply: rude), identity=COORDINATOR)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 3000


def test_nothing_but_ready_and_meet_is_answered_before_all_have_met(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    north = nodes["north"]
    reply = organisations.ask(north, "sanitise", Nothing())
    assert (reply.code, "has not seen the agreements" in reply.text) == ("refused", True)
    agreements = organisations.agreements(nodes)
    for bad, why in (
        ({}, "has not agreed"),
        ({"north": agreements["north"]}, "south has not agreed"),
        ({**agreements, "south": b""}, "not a valid agreement"),
        ({**agreements, "south": agreements["north"]}, "does not carry the signature of south"),
        ({**agreements, "south": organisations.signed("south", expires=datetime(2020, 1, 1, tzinfo=UTC))}, "expired"),
        ({**agreements, "south": organisations.signed("south", run="e" * 64)}, "not run"),
        ({**agreements, "south": organisations.signed("south", party="west")}, "names party west"),
        ({**agreements, "south": organisations.signed("south", syndic="9.9.9")}, "the same version at every party"),
        ({**agreements, "south": organisations.signed("south")[:-2]}, "not a valid agreement"),
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


def _by_another(call: Call) -> Call:
    return replace(call, signature=KEYS.sign(call.signed_text()))


@pytest.mark.parametrize(
    "change",
    [
        lambda call: replace(call, signature=b""),
        _by_another,
        lambda call: replace(call, call="f" * 32, check=None),
        lambda call: replace(call, number=call.number + 1, check=None),
        lambda call: replace(call, missed=bytes(32), check=None),
        lambda call: replace(call, step=f"{call.step} ", check=None),
        lambda call: replace(call, body=call.body + b"\x80", check=None),
    ],
)
def test_a_call_that_the_studys_coordinator_did_not_sign_is_refused(
    organisations: Organisations, change: Callable[[Call], Call]
) -> None:
    """Also where everything else in it is as the coordinator sent it: whoever holds the network cannot ask."""
    nodes = organisations.nodes()
    local, asked = Local(nodes), []

    class Network:
        def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
            call = change(decode(calls["north"], Call))
            asked.append(decode(answer(nodes["north"], encode(call)), Reply))
            return local.send(calls, seconds=seconds, arrived=arrived)

        def close(self) -> None: ...

    run_study(organisations.study, Network(), identity=COORDINATOR)
    assert len(asked) >= 3
    assert {reply.text for reply in asked} == {
        "the call does not carry the signature of the coordinator that the study names"
    }


def test_a_study_between_organisations_names_its_coordinator(organisations: Organisations) -> None:
    study = organisations.study
    for wrong in (None, KEYS):
        with pytest.raises(InputError, match="only the coordinator that the study names"):
            run_study(study, Local({}), identity=wrong)
    unnamed = replace(study, coordinator=None)
    with pytest.raises(InputError, match="must name its coordinator"):
        agree(organisations.home, unnamed)
    assert unnamed.digest != study.digest
