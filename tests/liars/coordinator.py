"""A coordinator that lies: at random, or by a strategy with a name. It keeps all that it hears.

It runs the study's own coordinator. On the way to the parties it drops, repeats, renames, swaps, alters and forks
calls, or tells all parties the same lie. In a horizontal study it colludes with the last party.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, final

import msgspec
import numpy as np
from msgspec.structs import replace

from liars.prefix import Prefix, delivered
from liars.world import World
from syndic.kernel import Call, Delivery, Reply, Session, decode, encode, run
from syndic.mpc.graph import bits, marked
from syndic.mpc.masked_sum import SumDirectory, SumSurvivors
from syndic.random import SimulationRandomness

Calls = Mapping[str, Call]


def run_study(world: World, runtime: Any, seed: int) -> str:
    """Run the study's own coordinator over a carrier; return how it ended, empty if by its release."""
    study = world.study
    session: Session = Session(
        runtime=runtime,
        study=study.digest,
        method=study.protocol,
        plan=study.plan,
        randomness=SimulationRandomness(seed, "coordinator"),
    )
    try:
        run(study.protocol, session)
    except Exception as error:  # a coordinator that lies, or is lied to, may trip
        return f"{type(error).__name__}: {error}"
    return ""


@final
class LyingCoordinator:
    """Carries the calls of an honest coordinator, and deviates.

    At random, in a share `lies` of the requests; or by `act`, which changes the calls of one request or asks others
    first, with `liar.ask`.
    """

    def __init__(
        self, prefix: Prefix, seed: int, *, coins: int = 0, lies: float = 0.0, start: int = 0, act: "Act | None" = None
    ) -> None:
        """Run a study whose coins follow from `coins` until the first lie, not before the request `start`."""
        self.prefix, self.world, self.nodes = prefix, prefix.world, prefix.world.nodes
        self.lies, self.start, self.act = lies, start, act
        self.draws = random.Random(seed)
        # few between the lines, so that the run goes on, or many
        self.between = self.draws.choice(([0, 0, 1, 2], [0, 2, 4, 8]))
        self.deviations: Counter[str] = Counter()
        self.past: list[Call] = []
        self.lied: set[str] = set()
        self.requests = 0
        self.ended = run_study(self.world, self, coins)

    def ask(self, call: Call, to: str = "") -> Reply:
        """Deliver a call, to the party that it names or to another."""
        return self.world.ask(call, to)

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        """Deliver calls, or others."""
        del seconds, arrived
        # without the checksum, which only detects accidents
        known = {party: replace(decode(data, Call), check=None) for party, data in calls.items()}
        # whom it lied to may have answered more or fewer requests than an honest coordinator counts
        known = {
            party: replace(call, number=0, missed=b"") if party in self.lied else call for party, call in known.items()
        }
        self.requests += 1
        self.prefix.reach(self.requests)
        told: Mapping[str, Call | None] = known if self.act is None else self.act(self, known)
        said = self._deviate(known) if self.lies and self.requests > self.start else {}
        if not self.prefix.live and not said and told == known:
            self.past += known.values()
            return delivered(self.prefix.replies[self.requests - 1], known)
        self.prefix.leave()
        for party, call in told.items():
            if party not in said:
                said[party] = None if call is None else self.ask(call)
            self.past.append(known[party])
        found = {party: reply for party, reply in said.items() if reply is not None}
        self.prefix.record(found)
        return delivered(found, known)

    def close(self) -> None:
        """Nothing to close."""

    def _deviate(self, known: dict[str, Call]) -> dict[str, Reply | None]:
        """Return what some parties said to lies; the others are asked as it should be."""
        draws, said = self.draws, dict[str, Reply | None]()
        for party, call in known.items():
            # between the lines: mostly refused, so that the run goes on
            for _ in range(draws.choice(self.between)):
                way = draws.choice(list(EXTRA))
                self.deviations[way] += 1
                if EXTRA[way](self, call).code == "ok":
                    self.lied.add(party)
        if draws.random() >= self.lies:
            return said
        way = draws.choice([*LIES, *FORKS])
        to = draws.sample(sorted(known), draws.choice([1, 1, max(1, len(known) // 2), len(known)]))
        self.deviations[way] += len(to)
        self.lied |= set(to)
        seed = draws.getrandbits(32)
        for party, call in known.items():
            if party in to and way in LIES:
                said[party] = LIES[way](self, call, known)
            elif party in to:
                other = random.Random(seed if way == "fork" else draws.getrandbits(32))
                said[party] = self.ask(replace(call, body=altered(other, call.body, call)))
        return said


Act = Callable[[LyingCoordinator, dict[str, Call]], Mapping[str, Call | None]]
FORKS: Final = ("fork", "many forks")


def _drop(_liar: LyingCoordinator, _call: Call, _others: Calls) -> Reply | None:
    return None


def _mute(liar: LyingCoordinator, call: Call, _others: Calls) -> Reply | None:
    liar.ask(call)
    return None


def _alter(liar: LyingCoordinator, call: Call, _others: Calls) -> Reply | None:
    return liar.ask(replace(call, body=altered(liar.draws, call.body, call)))


def _swap(liar: LyingCoordinator, call: Call, others: Calls) -> Reply | None:
    return liar.ask(replace(call, body=liar.draws.choice(list(others.values())).body))


def _history(liar: LyingCoordinator, call: Call, _others: Calls) -> Reply | None:
    """Say that the party missed requests, which it did not, with made-up digests."""
    number, count = call.number + liar.draws.randrange(3), liar.draws.randrange(1, 4)
    return liar.ask(replace(call, number=number, missed=liar.draws.randbytes(32 * count)))


def _repeat(liar: LyingCoordinator, call: Call) -> Reply:
    """Ask what was asked before once more."""
    own = [old for old in liar.past if old.party == call.party]
    return liar.ask(liar.draws.choice(own) if own else call)


def _rename(liar: LyingCoordinator, call: Call) -> Reply:
    """Ask what was asked before under another id, with the same or another number."""
    old = liar.draws.choice([old for old in liar.past if old.party == call.party] or [call])
    number = liar.draws.choice([0, old.number, call.number])
    return liar.ask(replace(old, call=new_id(liar), number=number, missed=liar.draws.choice([b"", bytes(32)])))


def _again(liar: LyingCoordinator, call: Call) -> Reply:
    """Ask what was asked before with another body, under the same id or another."""
    old = liar.draws.choice([old for old in liar.past if old.party == call.party] or [call])
    name = liar.draws.choice([old.call, new_id(liar)])
    return liar.ask(replace(old, call=name, number=0, body=altered(liar.draws, old.body, old)))


def _stale(liar: LyingCoordinator, call: Call) -> Reply:
    """Ask something that another party was asked before."""
    old = liar.draws.choice(liar.past or [call])
    return liar.ask(replace(old, party=call.party, number=liar.draws.choice([0, old.number, call.number])))


def _early(liar: LyingCoordinator, call: Call) -> Reply:
    """Ask another step, with this step's body or an empty one."""
    name = liar.draws.choice(list(liar.nodes[call.party].steps))
    body = liar.draws.choice([call.body, b"\x80"])
    return liar.ask(replace(call, step=name, call=new_id(liar), number=0, body=body))


def new_id(liar: LyingCoordinator) -> str:
    """Return a call id that was not used."""
    return f"{liar.draws.getrandbits(64):x}"


LIES: Final[Mapping[str, Callable[[LyingCoordinator, Call, Calls], Reply | None]]] = {
    "drop": _drop,
    "mute": _mute,
    "alter": _alter,
    "swap": _swap,
    "history": _history,
}
EXTRA: Final[Mapping[str, Callable[[LyingCoordinator, Call], Reply]]] = {
    "repeat": _repeat,
    "rename": _rename,
    "again": _again,
    "stale": _stale,
    "early": _early,
}


def altered(draws: random.Random, body: bytes, call: Call) -> bytes:
    """Return a message that differs in one field; lists of parties are altered so that they still make sense."""
    if call.step == "sum_open":
        told = decode(body, SumSurvivors)
        return encode(replace(told, arrived=_other_list(draws, told.arrived, call.party)))
    if call.step == "sum_meet" and draws.random() < 0.7:
        met = decode(body, SumDirectory)
        return encode(without(met, draws.choice(_places(met.present)), call.party))
    return altered_message(draws, body)


def altered_message(draws: random.Random, body: bytes) -> bytes:
    """Return a message that differs in one field."""
    tree = msgspec.msgpack.decode(body)
    leaves = list(_leaves(tree))
    if not leaves:
        return body + b"\x00"
    holder, key = draws.choice(leaves)
    holder[key] = _other(draws, holder[key])
    return bytes(msgspec.msgpack.encode(tree))


def without(met: SumDirectory, gone: int, party: str) -> SumDirectory:
    """Return a directory without one party."""
    places = _places(met.present)
    keys = [met.keys[start : start + 32] for start in range(0, len(met.keys), 32)]
    # the party itself has no key in its directory
    place = places.index(gone) - (gone > int(party[1:]))
    left = [key for each, key in enumerate(keys) if each != place]
    present = bits(each in places and each != gone for each in range(8 * len(met.present)))
    return replace(met, present=present, keys=b"".join(left))


def _places(listed: bytes) -> list[int]:
    return np.flatnonzero(marked(8 * len(listed), listed)).tolist()


def _other_list(draws: random.Random, listed: bytes, name: str) -> bytes:
    """Leave some parties out, perhaps all but the party itself and the colluding one, which is the last."""
    places = _places(listed)
    gone = set(draws.sample(places, draws.choice([1, 1, 2, len(places)]))) - {int(name[1:])}
    if draws.random() < 0.5:
        gone -= {max(places)}
    return bits(each in places and each not in gone for each in range(8 * len(listed)))


def _leaves(tree: Any) -> Iterator[tuple[Any, Any]]:
    keys = tree.keys() if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        yield from _leaves(tree[key])


def _other(draws: random.Random, value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + draws.choice([-1, 1, 2])
        case bytes() if value:
            return flipped(draws, value)
        case list() if value:
            place = draws.randrange(len(value))
            return draws.choice([value[:place] + value[place + 1 :], [*value, value[place]], value[::-1]])
        case str():
            return value + draws.choice(["", "x"])
    return None


def flipped(draws: random.Random, value: bytes) -> bytes:
    """Return bytes with one bit changed."""
    place = draws.randrange(len(value))
    return value[:place] + bytes([value[place] ^ 1 << draws.randrange(8)]) + value[place + 1 :]
