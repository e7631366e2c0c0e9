"""A party that lies while the coordinator and the other parties follow the steps: at random, or by a named strategy.

It may answer anything in any reply. Inside its own steps it may enter any rows, leave its noise out, and mask, share
and seal anything else than it should.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, final

import numpy as np

from liars.coordinator import altered_message, flipped, run_study
from liars.prefix import Prefix, delivered
from liars.world import Inside, Numbers
from syndic.kernel import Call, Delivery, Reply, decode
from syndic.mpc.seal import Place


@final
class LyingParty:
    """Carries calls and replies; one party's replies, and what it does inside its steps, are lies.

    At random, in a share `lies` of the requests; or by `act`, which prepares what the party does inside its steps and
    may change its reply.
    """

    def __init__(
        self, prefix: Prefix, seed: int, *, coins: int = 0, lies: float = 0.0, start: int = 0, act: "Act | None" = None
    ) -> None:
        """Run a study whose coins follow from `coins` until the first lie, not before the request `start`."""
        assert prefix.world.inside is not None
        self.prefix, self.world, self.inside = prefix, prefix.world, prefix.world.inside
        self.lies, self.start, self.act = lies, start, act
        self.draws = random.Random(seed)
        self.deviations: Counter[str] = Counter()
        self.past: list[Reply] = []
        self.heard: dict[str, Reply] = {}
        self.requests = 0
        self.ended = run_study(self.world, self, coins)

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Let honest parties answer first, then the liar, who may have seen what they said."""
        del seconds, arrived
        self.requests += 1
        known = {party: decode(data, Call) for party, data in calls.items()}
        own = known.get(self.inside.name)
        self.prefix.reach(self.requests)
        act, late = self.act, self.requests - self.start
        if self.lies and late > 0 and (late == 1 or self.draws.random() < self.lies):
            act = _at_random
            self.prefix.leave()
        self.heard = self._others(known)
        change = act(self, own) if own is not None and act is not None else None
        if not self.prefix.live and (change is not None or self.inside != Inside(self.inside.name)):
            self.prefix.leave()
            # the same answers, now given
            self.heard = self._others(known)
        said = None if own is None else self._own(own, change)
        if said is not None:
            self.heard[self.inside.name] = said
        self.prefix.record(self.heard)
        return delivered(self.heard, known)

    def close(self) -> None:
        """Nothing to close."""

    def _others(self, known: Mapping[str, Call]) -> dict[str, Reply]:
        """Return what the other parties answer."""
        if not self.prefix.live:
            replies = self.prefix.replies[self.requests - 1]
            return {party: reply for party, reply in replies.items() if party != self.inside.name}
        return {party: self.world.ask(call) for party, call in known.items() if party != self.inside.name}

    def _own(self, call: Call, change: "Change | None") -> Reply | None:
        recorded = None if self.prefix.live else self.prefix.replies[self.requests - 1]
        reply = self.world.ask(call) if recorded is None else recorded[self.inside.name]
        self.inside.values = self.inside.text = self.inside.share = None
        self.inside.silent_noise = False
        said = reply if change is None else change(reply)
        self.past.append(reply)
        return said


Change = Callable[[Reply], Reply | None]
"""What the party answers instead of its reply; None if nothing."""
Act = Callable[[LyingParty, Call], Change | None]


def _silent(_liar: LyingParty, _call: Call) -> Change | None:
    return lambda _: None


def _alter(liar: LyingParty, _call: Call) -> Change | None:
    """Change one field of the reply."""
    return lambda reply: Reply(code="ok", body=altered_message(liar.draws, reply.body) if reply.body else b"\x80")


def _garbage(liar: LyingParty, _call: Call) -> Change | None:
    return lambda reply: Reply(code="ok", body=liar.draws.randbytes(max(1, len(reply.body))))


def _copy(liar: LyingParty, _call: Call) -> Change | None:
    """Answer what another party answered."""
    others = [reply for reply in liar.heard.values() if reply.code == "ok"]
    return lambda reply: liar.draws.choice(others) if others else reply


def _old(liar: LyingParty, _call: Call) -> Change | None:
    """Answer what it answered before."""
    return lambda reply: liar.draws.choice(liar.past) if liar.past else reply


def _refuse(_liar: LyingParty, _call: Call) -> Change | None:
    return lambda _: Reply(code="refused", text="no")


def _sealed(liar: LyingParty, _call: Call) -> Change | None:
    """Seal a text with one bit changed."""
    liar.inside.text = lambda text, _place: flipped(liar.draws, text)
    return None


def _longer(liar: LyingParty, _call: Call) -> Change | None:
    """Seal a longer or shorter text."""
    cut = liar.draws.choice([-1, 1, 32])
    liar.inside.text = lambda text, _place: text[:cut] if cut < 0 else text + bytes(cut)
    return None


def _rows(liar: LyingParty, _call: Call) -> Change | None:
    """Enter other rows, from now on: a large number, a negative one, two ones or none; perhaps in one step only."""
    when = liar.draws.choice(["", "mask", "test", "prove", "multiply"])
    row, column, number = (
        liar.draws.randrange(10**6),
        liar.draws.randrange(10**6),
        liar.draws.choice([0, 1, 2, 1000, 10**6, -1]),
    )
    liar.inside.wraps = liar.draws.random() < 0.5

    def changed(matrix: Numbers, step: str) -> Numbers:
        found = matrix.astype(np.int64)
        if when in {"", step}:
            found[row % len(found), column % found.shape[1]] = number
        return found

    liar.inside.rows = changed
    return None


def _large(liar: LyingParty, _call: Call) -> Change | None:
    """Mask or share other values than it has."""
    number = liar.draws.choice([1, -1, 10**6, 2**40])
    liar.inside.values = liar.inside.share = lambda values: values + number
    return None


def _without_noise(liar: LyingParty, _call: Call) -> Change | None:
    liar.inside.silent_noise = True
    return None


def _at_random(liar: LyingParty, call: Call) -> Change | None:
    """Lie in one to three ways at once."""
    ways = liar.draws.sample(list(LIES), liar.draws.choice([1, 2, 3]))
    liar.deviations.update(ways)
    changes = [change for way in ways if (change := LIES[way](liar, call)) is not None]

    def changed(reply: Reply) -> Reply | None:
        found: Reply | None = reply
        for change in changes:
            found = found and change(found)
        return found

    return changed


LIES: Final[Mapping[str, Act]] = {
    "silent": _silent,
    "altered reply": _alter,
    "garbage": _garbage,
    "another's reply": _copy,
    "old reply": _old,
    "refusal": _refuse,
    "altered box": _sealed,
    "longer box": _longer,
    "other rows": _rows,
    "other values": _large,
    "no noise": _without_noise,
}
__all__ = ["LIES", "Act", "Change", "Inside", "LyingParty", "Place"]
