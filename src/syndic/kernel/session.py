"""The coordinator's side of a run: it sends each step to the parties, collects the replies and keeps a transcript."""

import hashlib
import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar, final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from syndic.document import Document
from syndic.errors import BudgetError, InputError, PartyError, RefusedError, printable
from syndic.kernel.agreement import Agreements
from syndic.kernel.call import ENVELOPE_BYTES, Call, Delivery, Reply, Runtime, asked_of
from syndic.kernel.codec import Message, Nothing, decode, encode
from syndic.kernel.identity import PublicIdentity
from syndic.kernel.journal import Journal, Recalled
from syndic.kernel.plan import Planned, steps_of_run
from syndic.kernel.step import Reveals, Step
from syndic.kernel.terms import Terms
from syndic.kernel.view import told
from syndic.noise import Mechanism
from syndic.random import Randomness

Asked = TypeVar("Asked", bound=Message)
Answered = TypeVar("Answered", bound=Message)
Progress = Callable[[str, int, int], None]
Integers = NDArray[np.int64]

_LOG = logging.getLogger("syndic.coordinator")
_MOST_LETTERS = 1000
_PARTING_SECONDS = 20.0


class Exchange(Document):
    """One line of the transcript: party, step, sizes, and the digest of the reply, empty if it could be guessed by."""

    round: int
    step: str
    party: str
    reveals: Reveals
    request_bytes: int
    reply_bytes: int
    reply_sha256: str


def silent_progress(what: str, done: int, total: int) -> None:
    """Show nothing."""


@final
class Session(Generic[Planned]):
    """One run of one study.

    A call's id is computed from the study, the round, the step and the party. A coordinator that was killed and runs
    the study again therefore uses the same ids and gets the stored answers: nothing is charged twice. With a journal it
    does not repeat answered requests, and the same parties are missing as before.
    """

    def __init__(  # noqa: PLR0913  # all by name
        self,
        *,
        runtime: Runtime,
        study: str,
        method: object,
        plan: Planned,
        randomness: Randomness,
        progress: Progress = silent_progress,
        seconds: float = 600.0,
        journal: Journal | None = None,
        signatures: bool = False,
        sign: Callable[[bytes], bytes] | None = None,
        record: Callable[[Mapping[str, bytes], Delivery], None] | None = None,
    ) -> None:
        """Prepare a run of the study with digest `study` over `runtime`, with the parties of the plan.

        A party that has not answered a step after `seconds` counts as silent. With `signatures`, a reply without a
        valid signature of the party's identity is refused too. `sign` signs calls with the coordinator's identity.
        `record` gets every request and its replies, those from the journal too.
        """
        self.plan = plan
        self.terms: Terms = plan.terms
        self.randomness = randomness
        self.progress = progress
        self.transcript: list[Exchange] = []
        self._runtime = runtime
        self.study = study
        self._steps = steps_of_run(method, plan)
        self._seconds = seconds
        self._journal = journal
        self._signatures = signatures
        self._sign = sign
        self._record = record
        self._round = 0
        # what every request told all parties, as digests, and the last request that each party answered
        self._told: list[bytes] = []
        self._answered = dict.fromkeys(self.parties, 0)
        self._sent = False

    @property
    def parties(self) -> tuple[str, ...]:
        """The names of the parties, in the study's order."""
        return tuple(member.name for member in self.terms.parties)

    def ask(
        self, step: Callable[[Any, Asked], Answered], message: Asked | Mapping[str, Asked], *, missing: int = 0
    ) -> dict[str, Answered]:
        """Send one step to every party (or to those with an entry in `message`) and return their answers.

        Up to `missing` parties may refuse, fail or stay silent; they are left out of the answers.

        Raises:
            PartyError: if more parties than that do. Answers that were given stay stored at the
                parties, so running the study again loses nothing.
        """
        declared = self._steps[step.__name__][0]
        messages = message if isinstance(message, Mapping) else dict.fromkeys(self.parties, message)
        calls = {party: self._call(declared, party, body) for party, body in messages.items()}
        self._round += 1
        if not declared.fresh:
            self._told.append(told(declared.name, next(iter(messages.values()), Nothing())))
        asked = {party: asked_of(data) for party, data in calls.items()}
        known = self._journal and self._journal.recall(self._round, declared.name, fresh=declared.fresh, asked=asked)
        delivery = self._replay_or_send(declared, calls, known)
        if self._record is not None:
            self._record(calls, delivery)
        answers, failures = self._decode(declared, calls, asked, delivery)
        if not declared.fresh:
            self._answered |= dict.fromkeys(answers, len(self._told))
        if len(failures) > missing:
            raise _unanswered(declared, failures)
        if known is None or known[1]:
            for party, why in failures.items():
                _LOG.warning("step '%s' continues without %s: %s", declared.name, party, why)
            if self._journal is not None:
                self._journal.record(
                    self._round,
                    declared.name,
                    fresh=declared.fresh,
                    asked=asked,
                    delivery=delivery,
                    failed=failures.keys(),
                )
        return answers

    def contribute(self, share: Mechanism[Integers, Integers], total: Integers) -> Integers:
        """Return a sum that was opened by the last request with the coordinator's share of its noise.

        The sum itself is not to be used otherwise. A run that continues from its journal draws the same noise again.
        One without it must not open the sum again: see `once` of the masked sums.
        The transcript, which is published, loses the digests of the replies: a party that knows all masks of a reply
        could try values until a digest fits, and have the sum without this share.
        """
        last = self._round
        self.transcript[:] = [replace(one, reply_sha256="") if one.round == last else one for one in self.transcript]
        return total + share.apply(np.zeros_like(total), self.randomness)

    def end(self) -> None:
        """Record that the run has its result: a repetition does not ask silent parties again.

        Between organisations the parties meet once more, so that each knows how far the others came: a party that is
        put back to an older copy is refused when the study is asked again. A party that does not answer is left out.
        """
        if self._journal is not None:
            self._journal.settle(self._round)
        if self._signatures and self._sent:
            try:
                ready = self._ask_unrecorded("ready", Nothing())
                self._ask_unrecorded("meet", Agreements.of(ready))
            except PartyError as error:
                _LOG.warning("the run has ended, but not all parties noted it: %s", error)

    def _ask_unrecorded(self, step: str, message: Message) -> dict[str, Any]:
        declared = self._steps[step][0]
        calls = {party: self._call(declared, party, message) for party in self.parties}
        asked = {party: asked_of(data) for party, data in calls.items()}
        delivery = self._runtime.send(calls, seconds=min(self._seconds, _PARTING_SECONDS), arrived=lambda _: None)
        answers, failures = self._decode(declared, calls, asked, delivery, note=False)
        if failures:
            raise _unanswered(declared, failures)
        return answers

    def _replay_or_send(self, declared: Step, calls: Mapping[str, bytes], known: Recalled | None) -> Delivery:
        """Return the journal's answers, and send the step to the parties whose answers it does not have."""
        if known is None:
            if self._journal is not None:
                self._journal.settle(self._round - 1)
            return self._send(declared, calls)
        delivery, again = known
        if not again:
            return delivery
        later = self._send(declared, {party: calls[party] for party in calls if party in again})
        return Delivery(
            replies={**_without(delivery.replies, again), **later.replies},
            silent={**_without(delivery.silent, again), **later.silent},
        )

    def _decode(
        self,
        declared: Step,
        calls: Mapping[str, bytes],
        asked: Mapping[str, bytes],
        delivery: Delivery,
        *,
        note: bool = True,
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the answers, and the reason for every party without one; `note` them in the transcript."""
        answers: dict[str, Any] = {}
        failures = dict(delivery.silent)
        # in the study's order, not in order of arrival, so that transcripts can be compared between runtimes
        for party in [party for party in calls if party in delivery.replies]:
            try:
                body = self._body(party, delivery.replies[party], asked[party])
                answers[party] = decode(body, declared.returns)
            except PartyError as error:
                failures[party] = str(error)
            except RefusedError as error:
                failures[party] = f"{error.code}: {error}"
            else:
                if note:
                    self._note(declared, party, calls[party], body)
        return answers, failures

    def _send(self, declared: Step, calls: Mapping[str, bytes]) -> Delivery:
        self._sent = self._sent or not declared.fresh
        self.progress(declared.name, 0, len(calls))
        return self._runtime.send(
            calls,
            seconds=self._seconds,
            arrived=lambda done: self.progress(declared.name, done, len(calls)),
        )

    def _body(self, party: str, data: bytes, asked: bytes) -> bytes:
        """Return the body of a reply; refuse one that does not answer this call."""
        most = self.terms.limits.message_mb
        if len(data) > most * 10**6 + ENVELOPE_BYTES:
            raise RefusedError(f"the reply is larger than the study's limit of {most} MB")
        reply = decode(data, Reply)
        if reply.code != "ok":
            # control characters could change a terminal, and long texts fill a log
            raise PartyError(printable(f"{reply.code}: {reply.text}")[:_MOST_LETTERS])
        if reply.asked != asked and (reply.asked or self._signatures):
            raise RefusedError("the reply belongs to another call")
        if self._signatures and not self._identities[party].signed(reply.signed_text(), reply.signature):
            raise RefusedError(f"the reply does not carry the signature of {party}'s identity in the study")
        return reply.body

    @cached_property
    def _identities(self) -> Mapping[str, PublicIdentity]:
        return {one.name: PublicIdentity.read(one.identity or "") for one in self.terms.parties}

    def _call(self, declared: Step, party: str, body: Message) -> bytes:
        name = "\x00".join([self.study, str(self._round), declared.name, party])
        call = Call(
            study=self.study,
            party=party,
            step=declared.name,
            call=hashlib.sha256(name.encode()).hexdigest()[:32],
            body=encode(body),
            number=0 if declared.fresh else len(self._told) + 1,
            missed=b"" if declared.fresh else b"".join(self._told[self._answered[party] :]),
        )
        signature = self._sign(call.signed_text()) if self._sign else b""
        return encode(replace(call.checked(), signature=signature))

    def _note(self, declared: Step, party: str, request: bytes, body: bytes) -> None:
        self.transcript.append(
            Exchange(
                round=self._round,
                step=declared.name,
                party=party,
                reveals=declared.reveals,
                request_bytes=len(request),
                reply_bytes=len(body),
                reply_sha256=hashlib.sha256(body).hexdigest(),
            )
        )


Value = TypeVar("Value")


def _without(known: Mapping[str, Value], left_out: frozenset[str]) -> dict[str, Value]:
    return {party: value for party, value in known.items() if party not in left_out}


def _once(party: str, why: str) -> str:
    """Return why a party failed, without its name and without a code that the text explains."""
    for prefix in (f"{InputError.code}: ", f"{BudgetError.code}: ", f"party '{party}': "):
        why = why.removeprefix(prefix)
    return why


def _unanswered(declared: Step, failures: Mapping[str, str]) -> PartyError:
    reasons = "; ".join(f"{party}: {_once(party, why)}" for party, why in sorted(failures.items()))
    over_budget = all(why.startswith(f"{BudgetError.code}: ") for why in failures.values())
    return PartyError(
        f"step '{declared.name}' was not answered by every party. {reasons}",
        exit_code=BudgetError.exit_code if over_budget else PartyError.exit_code,
    )
