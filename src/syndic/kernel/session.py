"""The coordinator's view of the parties: it asks a step, everybody answers, and a transcript is kept."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, final

from syndic.document import Document
from syndic.errors import BudgetError, PartyError
from syndic.kernel.call import Call, Reply
from syndic.kernel.codec import Message, decode, encode
from syndic.kernel.step import Reveals, Step
from syndic.kernel.terms import Terms
from syndic.kernel.transport import Runtime
from syndic.random import Randomness

Asked = TypeVar("Asked", bound=Message)
Answered = TypeVar("Answered", bound=Message)
Progress = Callable[[str, int, int], None]


class Exchange(Document):
    """One line of the transcript: who answered which step, how large it was, and a digest of the reply."""

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
class Session:
    """Carries one run of one study.

    A call's id is made of the study, the round, the step and the party, so a coordinator that was killed and
    runs the study again asks under the same ids and gets the stored answers: nothing is charged twice.
    """

    def __init__(
        self,
        *,
        runtime: Runtime,
        study: str,
        terms: Terms,
        steps: Mapping[str, Step],
        randomness: Randomness,
        progress: Progress = silent_progress,
        seconds: float = 600.0,
    ) -> None:
        """Prepare to ask the parties of `terms`, over `runtime`, about the study with digest `study`."""
        self.terms = terms
        self.randomness = randomness
        self.progress = progress
        self.transcript: list[Exchange] = []
        self._runtime = runtime
        self.study = study
        self._steps = steps
        self._seconds = seconds
        self._round = 0

    @property
    def parties(self) -> tuple[str, ...]:
        """The names of the parties, in the study's order."""
        return tuple(member.name for member in self.terms.parties)

    def ask(
        self, step: Callable[[Any, Asked], Answered], message: Asked | Mapping[str, Asked], *, missing: int = 0
    ) -> dict[str, Answered]:
        """Ask every party (or those that `message` has an entry for) one step, and return their answers.

        Up to `missing` parties may refuse, fail or stay silent; they are not among the answers.

        Raises:
            PartyError: if more parties than that do. Answers that were given stay stored at the
                parties, so running the study again loses nothing.
        """
        declared = self._steps[step.__name__]
        messages = message if isinstance(message, Mapping) else dict.fromkeys(self.parties, message)
        calls = {party: self._call(declared, party, body) for party, body in messages.items()}
        self._round += 1
        self.progress(declared.name, 0, len(calls))
        delivery = self._runtime.send(
            calls,
            seconds=self._seconds,
            arrived=lambda done: self.progress(declared.name, done, len(calls)),
        )
        answers: dict[str, Answered] = {}
        failures = dict(delivery.silent)
        # in the study's order, not in that of arrival: transcripts compare between runtimes
        for party in [party for party in messages if party in delivery.replies]:
            reply = decode(delivery.replies[party], Reply)
            if reply.code == "ok":
                answers[party] = decode(reply.body, declared.returns)  # type: ignore[assignment]  # declared so
                self._note(declared, party, calls[party], reply.body)
            else:
                failures[party] = f"{reply.code}: {reply.text}"
        if len(failures) > missing:
            told = "; ".join(f"{party}: {why}" for party, why in sorted(failures.items()))
            over_budget = all(why.startswith(f"{BudgetError.code}: ") for why in failures.values())
            raise PartyError(
                f"step '{declared.name}' was not answered by every party. {told}",
                exit_code=BudgetError.exit_code if over_budget else PartyError.exit_code,
            )
        return answers

    def _call(self, declared: Step, party: str, body: Message) -> bytes:
        name = "\x00".join([self.study, str(self._round), declared.name, party])
        call = hashlib.sha256(name.encode()).hexdigest()[:32]
        return encode(Call(study=self.study, party=party, step=declared.name, call=call, body=encode(body)))

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
