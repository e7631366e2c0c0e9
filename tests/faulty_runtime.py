"""Run cases over a runtime with injected faults and inspect the state afterwards, for suites about failures."""

import importlib
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import final

import msgspec
import pytest

from support import CASES, Case, charges, rows, study_text
from syndic import Study
from syndic.errors import RefusedError
from syndic.kernel import Call, Delivery, Limits, Reply, Runtime, decode
from syndic.study import Release, simulate

SEED = 7
MOST_MB = 50
MANY = "".join(f'[[parties]]\nname = "p{number}"\npeople = 30\n' for number in range(5))


def _small(case: Case) -> Case:
    """Return the case with a small limit on messages, so that one above it is quickly made."""
    return replace(case, study=msgspec.structs.replace(case.study, limits=Limits(message_mb=MOST_MB)))


def _many(name: str, protocol: str) -> Case:
    text = study_text(budget="epsilon = 1.0\ndelta = 1e-5", parties=MANY, protocol=protocol)
    return _small(Case(name, Study.loads(text), {f"p{number}": rows(30, number) for number in range(5)}))


# runs that go on without some of the parties
LOSING = (
    _many("marginals without one", 'method = "marginals"\nmissing = 1\ncolluding = 1'),
    _many("learn without one", 'method = "learn"\nlabel = "colour"\niterations = 3\nmissing = 1\ncolluding = 1'),
)
# where there is time, every case; else one of each method with the most kinds of messages: faults happen to messages
EVERY = os.environ.get("SYNDIC_FAULTS") == "many"


def _disturbed() -> tuple[Case, ...]:
    most: dict[type, Case] = {}
    for case in CASES:
        kind = type(case.study.protocol)
        if kind not in most or len(set(case.study.plan.rounds)) > len(set(most[kind].study.plan.rounds)):
            most[kind] = case
    return tuple(_small(case) for case in (CASES if EVERY else most.values()))


DISTURBED = _disturbed()


def run_over(
    case: Case, folder: Path, wrap: Callable[[Runtime], Runtime], *, seed: int | None = SEED, runtime: str = "local"
) -> Release:
    """Simulate the case over what `wrap` makes of its carrier."""
    module = importlib.import_module("syndic.study.simulate")
    original = module._open
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_open", lambda *given, **named: wrap(original(*given, **named)))
        return simulate(case.study, case.sources, seed=seed, folder=folder, runtime=runtime)  # type: ignore[arg-type]


def published(release: Release, folder: Path) -> dict[str, bytes]:
    """Return all that a release says, by file."""
    return {path.name: path.read_bytes() for path in release.write(folder)}


def charged(case: Case, folder: Path) -> dict[str, Counter[str]]:
    """Return how often each event was charged, by party; every ledger is whole."""
    return {
        party: Counter(repr(event) for entry in charges(folder, party) for event in entry.events)
        for party in case.sources
    }


def allowed(case: Case) -> dict[str, Counter[str]]:
    """Return what the study says it will charge."""
    return {party: Counter(repr(event) for event in case.study.plan.events(party)) for party in case.sources}


def stored(folder: Path, party: str) -> dict[str, bytes]:
    """Return the answers that a party has stored, by call id."""
    connection = sqlite3.connect(folder / "parties" / party / "ledger.sqlite")
    try:
        return dict(connection.execute("SELECT call, reply FROM answers"))
    finally:
        connection.close()


def read(request: bytes) -> Call | None:
    """Return the call, or None if it was damaged."""
    try:
        return decode(request, Call)
    except RefusedError:
        return None


class KilledError(BaseException):
    """The coordinator is gone."""


@final
class Watch:
    """Everything that parties were asked and everything that they answered, over all lives of a coordinator."""

    def __init__(self) -> None:
        self.asked: dict[tuple[str, str], set[bytes]] = {}
        self.answered: dict[tuple[str, str], set[bytes]] = {}
        self.sends = 0

    def note(self, party: str, request: bytes, reply: bytes | None) -> None:
        call = read(request)
        if call is None:
            return
        self.asked.setdefault((party, call.call), set()).add(request)
        if reply is not None and decode(reply, Reply).code == "ok":
            self.answered.setdefault((party, call.call), set()).add(decode(reply, Reply).body)

    def check(self, folder: Path) -> None:
        """Every call asks one thing and has one answer, and that is the one that the party has stored."""
        kept = {party: stored(folder, party) for party in {party for party, _ in self.answered}}
        for (party, call), bodies in self.answered.items():
            assert len(bodies) == 1
            assert call not in kept[party] or kept[party][call] in bodies


@final
class Mortal:
    """Carries calls until the coordinator is killed: after `sends` sends other than `ready`, before or after the next.

    With `late` that next one is delivered and answered, and nobody hears of it.
    """

    def __init__(self, runtime: Runtime, watch: Watch, *, sends: int | None, late: bool = False) -> None:
        self._runtime = runtime
        self._watch = watch
        self._left = sends
        self._late = late

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        ready = all((call := read(data)) is not None and call.step == "ready" for data in calls.values())
        dying = self._left == 0 and not ready
        if dying and not self._late:
            raise KilledError
        delivery = self._runtime.send(calls, seconds=seconds, arrived=arrived)
        self._watch.sends += not ready
        for party, data in calls.items():
            self._watch.note(party, data, delivery.replies.get(party))
        if dying:
            raise KilledError
        if self._left is not None:
            self._left -= not ready
        return delivery

    def restart(self, party: str) -> None:
        self._runtime.restart(party)  # type: ignore[attr-defined]  # the carriers of simulations have it

    def close(self) -> None:
        self._runtime.close()
