"""A party's side of every call: check it, return the stored answer or run the step, store the answer, reply."""

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

from msgspec.structs import replace

from syndic.errors import BudgetError, InputError, MethodError, PublicError, RefusedError
from syndic.kernel.call import INTERNAL_ERROR, Call, Reply
from syndic.kernel.codec import Message, decode, encode
from syndic.kernel.memory import Stored
from syndic.kernel.method import Method
from syndic.kernel.party import Party, PartyState
from syndic.kernel.plan import steps_of_run
from syndic.kernel.step import Step
from syndic.kernel.view import told
from syndic.privacy import Called
from syndic.privacy.audit import INTERNAL

_LOG = logging.getLogger("syndic.party")
_MOST_LETTERS = 64


@final
@dataclass(frozen=True, kw_only=True)
class Node:
    """One organisation's side of one study: the method and the party's state."""

    method: Method
    state: PartyState

    @property
    def name(self) -> str:
        """The party's name."""
        return self.state.name

    @cached_property
    def steps(self) -> Mapping[str, tuple[Step, object]]:
        """The steps that this party answers, each with the object that implements it: the method or a sub-protocol."""
        return steps_of_run(self.method, self.state.plan)

    def close(self) -> None:
        """Close the party's file (ledger and stored answers)."""
        self.state.ledger.close()


def answer(node: Node, data: bytes) -> bytes:
    """Answer one call. Never raises: an error that is not public becomes "internal error"; its text is only logged."""
    try:
        reply = Reply(code="ok", body=_answered(node, data))
    except PublicError as error:
        _LOG.getChild(node.name).warning("%s refused a call: %s", node.name, error)
        reply = _log_refusal(node, data, Reply(code=error.code, text=_public_text(node, error)), str(error))
    except Exception:
        # the only place that catches every exception: its text may contain a private value
        _LOG.getChild(node.name).exception("%s failed to answer a call", node.name)
        reply = _log_refusal(node, data, INTERNAL_ERROR, INTERNAL)
    reply = reply.to(data)
    if node.state.sign is not None:
        reply = replace(reply, signature=node.state.sign(reply.signed_text()))
    return encode(reply)


def _public_text(node: Node, error: PublicError) -> str:
    """Return the text for the coordinator; between organisations it names no file and nothing that was spent."""
    if node.state.agreement is not None:
        if isinstance(error, BudgetError):
            return f"the study exceeds the cap that {node.name}'s owner set; the numbers are in its own log"
        if isinstance(error, InputError):
            return error.elsewhere or f"{node.name} cannot use its rows or settings; the reason is in its own log"
    return str(error)


def _log_refusal(node: Node, data: bytes, reply: Reply, why: str) -> Reply:
    """Record a call that was not answered in the owner's ledger and audit log, and return the reply."""
    try:
        call = _readable(node, data)
        _log_call(node, data, reply=reply.code, call=call)
        if node.state.audit is not None:
            node.state.audit("" if call is None else call.step, why)
    except Exception:
        _LOG.getChild(node.name).exception("%s cannot write to its log", node.name)
        return INTERNAL_ERROR
    return reply


def _readable(node: Node, data: bytes) -> Call | None:
    """Return the call if it belongs to this study, else None: names invented by a sender must not enter the log."""
    try:
        call = decode(data, Call)
        _step_of(node, call)
    except PublicError:
        return None
    return call


def _log_call(node: Node, data: bytes, *, reply: str, call: Call | None = None, charged: bool = False) -> bool:
    """Record the call before its reply is sent: as charged, and between organisations also in the owner's log.

    Return whether the owner's log has a new entry. In a simulation the transcript records all calls.
    """
    state = node.state
    if state.agreement is not None:
        called = Called(
            dataset=state.dataset,
            study=state.booked,
            call=call.call if call else "",
            step=call.step if call else "",
            asked=hashlib.sha256(data).hexdigest(),
            reply=reply,
            fresh=call is not None and _step_of(node, call).fresh,
        )
        return state.ledger.log_call(called, charged=charged)
    if call is not None and charged:
        state.ledger.commit(state.booked, call.call, reply)
    return False


def _answered(node: Node, data: bytes) -> bytes:
    most = node.state.terms.limits.message_mb * 10**6
    if len(data) > most:
        raise RefusedError(f"the message is larger than the study's limit of {node.state.terms.limits.message_mb} MB")
    call = decode(data, Call)
    step = _step_of(node, call)
    node.state.check_agreed(step.name)
    asked = hashlib.sha256(data).hexdigest()

    new = []

    def record(stored: Stored) -> None:
        digest = hashlib.sha256(stored.reply).hexdigest()
        new.append(_log_call(node, data, reply=digest, call=call, charged=stored.charged))

    reply = node.state.memory.answer_once(
        call.call, asked, lambda: _run(node, call, step, asked), record, fresh=step.fresh
    )
    if node.state.note_answered is not None:
        node.state.note_answered()
    if any(new) and node.state.audit is not None:
        node.state.audit(step.name, "")
    return reply


def _step_of(node: Node, call: Call) -> Step:
    if call.study != node.state.study:
        raise RefusedError(
            f"the call is for study {call.study[:12]}, but {node.name} agreed to {node.state.study[:12]}: "
            "compare the two study files; they must be identical"
        )
    if call.party != node.name:
        raise RefusedError(f"the call is for another party, not for {node.name}")
    if len(call.call) > _MOST_LETTERS:
        raise RefusedError(f"a call id has at most {_MOST_LETTERS} letters")
    coordinator = node.state.coordinator
    if coordinator is not None and not coordinator.signed(call.signed_text(), call.signature):
        raise RefusedError("the call does not carry the signature of the coordinator that the study names")
    if call.step not in node.steps:
        raise RefusedError(f"{node.method.title} has no such step in this study; its steps are {', '.join(node.steps)}")
    return node.steps[call.step][0]


def _run(node: Node, call: Call, step: Step, asked: str) -> tuple[Stored, Mapping[str, bytes]]:
    message = decode(call.body, step.takes)
    view = node.state.view
    if not step.fresh:
        view = view.after(call.number, call.missed, told(step.name, message))
    party = Party(node.state, call=call.call, step=step, view=view)
    if node.method.simulation_only and not party.simulated:
        raise RefusedError(f"{node.method.title} as published does not keep its guarantee: it runs in simulations only")
    function: Callable[[Party, Message], Any] = getattr(node.steps[step.name][1], step.name)
    body = encode(function(party, message))
    _check_charged(party, step)
    return Stored(asked=asked, charged=party.charges > 0, reply=body), party.remembered


def _check_charged(party: Party, step: Step) -> None:
    """Stop a reply that was computed from rows without a charge. Masked and sealed replies hide their content."""
    uncharged = step.reveals in {"public", "noisy"} and party.charges == 0
    if party.rows_read and (uncharged or step.reveals == "public"):
        raise MethodError(f"step '{step.name}' read rows without charging the ledger; its reply was not sent")
    if step.fresh and (party.rows_read or party.charges):
        raise MethodError(f"step '{step.name}' is computed on every request: it may neither read rows nor charge")
