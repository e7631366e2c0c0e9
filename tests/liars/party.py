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
from liars.world import Inside, Numbers, World
from syndic.kernel import Call, Delivery, Reply, decode, encode
from syndic.mpc.seal import Place


@final
class LyingParty:
    """Carries calls and replies; one party's replies, and what it does inside its steps, are lies.

    At random, in a share `lies` of the requests; or by `act`, which prepares what the party does inside its steps and
    may change its reply.
    """

    def __init__(self, world: World, seed: int, *, lies: float = 0.0, act: "Act | None" = None) -> None:
        assert world.inside is not None
        self.world, self.inside, self.lies, self.act = world, world.inside, lies, act
        self.draws = random.Random(seed)
        self.deviations: Counter[str] = Counter()
        self.past: list[Reply] = []
        self.heard: dict[str, Reply] = {}
        self.requests = 0
        self.ended = run_study(world, self, seed)

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Let honest parties answer first, then the liar, who may have seen what they said."""
        del seconds, arrived
        self.requests += 1
        known = {party: decode(data, Call) for party, data in calls.items()}
        self.heard = {party: self.world.ask(call) for party, call in known.items() if party != self.inside.name}
        if self.inside.name in known:
            said = self._lied(known[self.inside.name])
            if said is not None:
                self.heard[self.inside.name] = said
        replies = {
            party: encode(Reply(code=one.code, body=one.body, text=one.text)) for party, one in self.heard.items()
        }
        return Delivery(replies=replies, silent=dict.fromkeys(known.keys() - replies.keys(), "silent"))

    def close(self) -> None:
        """Nothing to close."""

    def _lied(self, call: Call) -> Reply | None:
        change: Change | None = None
        if self.act is not None:
            change = self.act(self, call)
        elif self.draws.random() < self.lies:
            way = self.draws.choice(list(LIES))
            self.deviations[way] += 1
            change = LIES[way](self, call)
        reply = self.world.ask(call)
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
