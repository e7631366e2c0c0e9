"""Recompute a release from what its coordinator received: all signed calls and replies, in one file.

The coordinator writes the file, and anyone with the study repeats the coordinator's own computation with it.
*What this shows*: the study's coordinator signed every call, its party signed every reply, the calls are those that the
method sends, and the result follows from the replies. Under masks, the total is the sum of the masked answers.
*What it does not show*: that rows are true, that a party reported as silent was silent, or how the coordinator drew
random numbers: of a synthesis the noisy tables can be compared, the rows cannot.
*Who learns what*: a reader of the file sees what the coordinator saw. It is written only for methods without sealed
messages; their claim is against the coordinator with `colluding` parties, and so against as many parties that read it.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, final

from msgspec.structs import replace

from syndic.errors import InputError, IntegrityError, RefusedError
from syndic.kernel import Call, Delivery, Message, PublicIdentity, Reply, Result, Session, decode, encode, run
from syndic.kernel.call import asked_of
from syndic.random import SystemRandomness
from syndic.study.document import Study, coordinator_of
from syndic.study.party_folder import run_digest
from syndic.study.release import Release

_LENGTH: Final = 8


class Carried(Message):
    """One request: the calls by party, the replies, and why a party gave none."""

    calls: dict[str, bytes]
    replies: dict[str, bytes]
    silent: dict[str, str]


def check_open(study: Study) -> None:
    """Raise `InputError` if what a coordinator of this study receives must not be shown to parties."""
    sealed = [step.name for step in study.steps.values() if step.reveals == "sealed"]
    if sealed:
        raise InputError(
            f"{study.protocol.title} sends sealed messages ({sealed[0]}): a party that had all replies could do "
            "what it and the coordinator can do together. They are not written"
        )


def recorder(file: BinaryIO) -> Callable[[Mapping[str, bytes], Delivery], None]:
    """Return a function that appends a request and its replies to the file."""

    def record(calls: Mapping[str, bytes], delivery: Delivery) -> None:
        one = encode(Carried(calls=dict(calls), replies=dict(delivery.replies), silent=dict(delivery.silent)))
        file.write(len(one).to_bytes(_LENGTH, "little") + one)

    return record


def recompute(study: Study, replies: Path, *, seed: int | None = None) -> Result:
    """Return the result that the method computes from the replies in the file; `seed` is that of a rehearsal.

    Raises:
        IntegrityError: if a call or reply is not signed, differs from what the method sends, or is missing.
    """
    with replies.open("rb") as file:
        session = Session(
            runtime=_Replies(study, _read(file, replies.name)),
            study=run_digest(study, seed),
            method=study.protocol,
            plan=study.plan,
            randomness=SystemRandomness(),
        )
        return run(study.protocol, session)


def differences(release: Release, replies: Path, *, seed: int | None = None) -> tuple[str, ...]:
    """Return the names of published files that do not follow from the replies: none, if the release is as it should be.

    Raises:
        IntegrityError: as `recompute` does.
    """
    released, found = _written(release.result), _written(recompute(release.study, replies, seed=seed))
    return tuple(name for name in sorted({*released, *found}) if released.get(name) != found.get(name))


def _written(result: Result) -> dict[str, bytes]:
    """Return the files of a result by name."""
    with tempfile.TemporaryDirectory() as folder:
        return {str(path.relative_to(folder)): path.read_bytes() for path in result.write(Path(folder))}


def _read(file: BinaryIO, name: str) -> Iterator[Carried]:
    while head := file.read(_LENGTH):
        try:
            yield decode(file.read(int.from_bytes(head, "little")), Carried)
        except RefusedError:
            raise IntegrityError(f"{name}: the file of replies is damaged or cut short") from None


@final
class _Replies:
    """Gives the replies of the file to the method's own coordinator, after checking who signed what."""

    def __init__(self, study: Study, carried: Iterator[Carried]) -> None:
        self._coordinator = coordinator_of(study)
        self._parties = {one.name: PublicIdentity.read(one.identity or "") for one in study.parties}
        self._carried = carried

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Return the replies to these calls."""
        del seconds, arrived
        one = next(self._carried, None)
        if one is None or one.calls.keys() != calls.keys() or not one.replies.keys() <= calls.keys():
            raise IntegrityError("the replies are not those of this study: requests are missing or to other parties")
        replies = {party: self._checked(party, calls[party], one) for party in calls if party in one.replies}
        return Delivery(replies=replies, silent={party: one.silent.get(party, "") for party in calls.keys() - replies})

    def close(self) -> None:
        """Nothing is open."""

    def _checked(self, party: str, expected: bytes, one: Carried) -> bytes:
        call, reply = decode(one.calls[party], Call), decode(one.replies[party], Reply)
        if encode(replace(call, signature=b"")) != expected:
            raise IntegrityError(f"{party} was asked something in step '{call.step}' that the method does not ask")
        if not self._coordinator.signed(call.signed_text(), call.signature):
            raise IntegrityError(f"a call to {party} does not carry the signature of the study's coordinator")
        if reply.code != "ok":
            return encode(Reply(code=reply.code, text=reply.text))
        signed = self._parties[party].signed(reply.signed_text(), reply.signature)
        if reply.asked != asked_of(one.calls[party]) or not signed:
            raise IntegrityError(f"a reply to step '{call.step}' does not carry the signature of {party}")
        return encode(Reply(code="ok", body=reply.body).to(expected))
