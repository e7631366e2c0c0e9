"""Strategies with a name: what a liar does, in one sentence, and what must refuse it. `python -m liars` lists them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from msgspec.structs import replace

from liars.coordinator import LyingCoordinator, new_id
from liars.party import Change, LyingParty
from liars.targets import targets
from syndic.kernel import Call, Reply, decode, encode

Lie = Callable[[Any], Any]
"""From a message, what is sent instead."""


@final
@dataclass(frozen=True)
class Strategy:
    """One lie: its target, what it does, the act, and a part of the text that refuses it.

    Without a text nobody has to notice; that nothing opens which was not charged is checked for all.
    """

    target: str
    what: str
    act: Any
    refused: str = ""
    party: str = ""

    @property
    def role(self) -> str:
        """Who lies."""
        return "party" if self.party else "coordinator"


# A coordinator's acts.


def tell(step: str, lie: Lie, to: str = "") -> Any:
    """Send another message in a step, to one party or to all."""

    def act(liar: LyingCoordinator, calls: dict[str, Call]) -> Mapping[str, Call]:
        return {
            party: _with(liar, call, lie) if call.step == step and to in {"", party} else call
            for party, call in calls.items()
        }

    return act


def _with(liar: LyingCoordinator, call: Call, lie: Lie) -> Call:
    message = decode(call.body, liar.nodes[call.party].steps[call.step][0].takes)
    found = lie(message)
    return replace(call, body=found if isinstance(found, bytes) else encode(found))


def envelope(step: str, to: str = "p0", **changes: Any) -> Any:
    """Change the call itself, not its message."""

    def act(_liar: LyingCoordinator, calls: dict[str, Call]) -> Mapping[str, Call]:
        return {
            party: replace(call, **changes) if call.step == step and party == to else call
            for party, call in calls.items()
        }

    return act


def before(step: str, ask: Callable[[LyingCoordinator, Call], Any], to: str = "p0") -> Any:
    """Ask something else first, before one party is asked a step."""

    def act(liar: LyingCoordinator, calls: dict[str, Call]) -> Mapping[str, Call]:
        if to in calls and calls[to].step == step:
            ask(liar, calls[to])
        return calls

    return act


def again(
    step: str, lie: Lie = lambda message: message, *, same_id: bool = False
) -> Callable[[LyingCoordinator, Call], Any]:
    """Return what asks a step of the past once more, with another message or under another id."""

    def ask(liar: LyingCoordinator, call: Call) -> Any:
        old = next(one for one in reversed(liar.past) if (one.party, one.step) == (call.party, step))
        name = old.call if same_id else new_id(liar)
        liar.ask(_with(liar, replace(old, call=name, number=0, missed=b""), lie))

    return ask


def early(step: str, message: Any) -> Callable[[LyingCoordinator, Call], Any]:
    """Return what asks a step before its time."""
    return lambda liar, call: liar.ask(
        replace(call, step=step, call=new_id(liar), number=0, missed=b"", body=encode(message))
    )


def both(*acts: Any) -> Any:
    """Do one after the other."""

    def act(liar: LyingCoordinator, calls: dict[str, Call]) -> Mapping[str, Call]:
        found = calls
        for one in acts:
            found = one(liar, found)
        return found

    return act


# A party's acts.


def answers(step: str, lie: Lie) -> Any:
    """Answer a step with another message."""

    def act(liar: LyingParty, call: Call) -> Change | None:
        if call.step != step:
            return None
        kind = liar.world.nodes[call.party].steps[step][0].returns

        def changed(reply: Reply) -> Reply | None:
            found = lie(decode(reply.body, kind))
            return (
                None if found is None else Reply(code="ok", body=found if isinstance(found, bytes) else encode(found))
            )

        return changed

    return act


def inside(step: str = "", **lies: Any) -> Any:
    """Deviate inside the party's own steps: by the fields of `Inside`."""

    def act(liar: LyingParty, call: Call) -> Change | None:
        if step in {"", call.step}:
            for name, lie in lies.items():
                setattr(liar.inside, name, lie)
        return None

    return act


def every() -> tuple[Strategy, ...]:
    """Return all strategies against studies that run here: VertiGAN needs torch."""
    from liars.strategies_coordinator import COORDINATOR  # noqa: PLC0415  # they use the acts above
    from liars.strategies_party import PARTY  # noqa: PLC0415
    from liars.strategies_product import PRODUCT  # noqa: PLC0415

    return tuple(one for one in (*COORDINATOR, *PRODUCT, *PARTY) if one.target in targets())


def table() -> str:
    """Return the strategies as lines: role, study, what the liar does, what refuses it."""
    lines = [f"{one.role:12} {one.target:24} {one.what}\n{'':38}-> {one.refused or 'opens nothing'}" for one in every()]
    return "\n".join([*lines, f"{len(lines)} strategies", ""])
