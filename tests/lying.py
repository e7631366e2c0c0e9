"""A coordinator that lies at random to untouched nodes, and keeps what it hears.

`Liar` runs a study's own coordinator. On the way to the parties it drops, repeats, renames, swaps, alters and forks
calls, or tells all parties the same lie. It colludes with the last party. `lie_checks` says what must hold.

What a party hides is noted where it is masked, so that an opening shows as equal numbers, whatever the noise. Other
deviations are functions in `LIES`; other methods are studies; a lying party would be one more carrier between both.
"""

import dataclasses
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from syndic import Study
from syndic.kernel import Call, Delivery, Node, Reply, Session, answer, decode, encode, in_memory_node, run
from syndic.mpc.listing import bits, marked
from syndic.mpc.masked_sum import MaskedSums, Masks, SumDirectory, SumMasked, SumSurvivors, _Sent
from syndic.mpc.ring import Ring
from syndic.random import SystemRandomness

Body = Callable[[random.Random, bytes], bytes]
CODES: Final = {"ok", "input", "budget", "refused"}


@final
@dataclass(frozen=True, kw_only=True)
class Hidden:
    """What one party sent for one sum: plain and masked values, and what it had been told."""

    plain: NDArray[np.int64]
    masked: NDArray[Any]
    sent: _Sent
    body: bytes


@final
@dataclass(frozen=True, kw_only=True)
class Answered:
    """A party's answer about its masks, the list that it was told, and its view then."""

    masked: NDArray[Any]
    arrived: bytes
    view: bytes


@final
@dataclass
class Liar:
    """Carries the calls of an honest coordinator, and deviates in a share `lies` of the requests."""

    study: Study
    nodes: Mapping[str, Node]
    draws: random.Random
    lies: float
    deviations: Counter[str] = field(default_factory=Counter)
    answers: dict[tuple[str, str], set[bytes]] = field(default_factory=lambda: defaultdict(set))
    hidden: dict[tuple[int, str], list[Hidden]] = field(default_factory=lambda: defaultdict(list))
    answered: dict[tuple[int, str], list[Answered]] = field(default_factory=lambda: defaultdict(list))
    past: list[Call] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    requests: int = 0
    lied: set[str] = field(default_factory=set)
    plain: NDArray[np.int64] | None = None

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        # without the checksum, which only detects accidents
        known = {party: replace(decode(data, Call), check=None) for party, data in calls.items()}
        # whom it lied to may have answered more or fewer requests than an honest coordinator counts
        known = {
            party: replace(call, number=0, missed=b"") if party in self.lied else call for party, call in known.items()
        }
        replies, silent = {}, {}
        way, to = "", set[str]()
        if self.draws.random() < self.lies:
            way = self.draws.choice([*LIES, *FORKS])
            to = set(self.draws.sample(sorted(known), self.draws.choice([1, 1, len(known) // 2, len(known)])))
        if way in FORKS:
            known = self._forked(known, to, way)
        self.requests += 1
        for party, call in known.items():
            lies = way in LIES and party in to
            said = LIES[way](self, call, known) if lies else self.ask(call)
            if lies:
                self.deviations[way] += 1
                self.lied.add(party)
            self.past.append(call)
            if said is None:
                silent[party] = "dropped"
            else:
                replies[party] = encode(Reply(code=said.code, body=said.body, text=said.text))
        return Delivery(replies=replies, silent=silent)

    def close(self) -> None: ...

    def run(self) -> None:
        """Run the study; whatever the coordinator's own code makes of it does not matter."""
        plan = self.study.plan
        session: Session = Session(
            runtime=self,
            study=self.study.digest,
            method=self.study.protocol,
            plan=plan,
            randomness=SystemRandomness(),
        )
        try:
            run(self.study.protocol, session)
        except Exception as error:  # a coordinator that lies may also trip
            self.deviations[f"(ended: {type(error).__name__})"] += 1

    def ask(self, call: Call) -> Reply:
        """Deliver a call, and note what came back."""
        node = self.nodes[call.party]
        self.plain = None
        reply = decode(answer(node, encode(call)), Reply)
        if reply.code not in CODES:
            self.failed.append(f"{call.step} fails with '{reply.code}'")
        if reply.code == "ok" and not node.steps[call.step][0].fresh:
            self.answers[call.party, call.call].add(reply.body)
            self._note(node, call, reply)
        return reply

    def _note(self, node: Node, call: Call, reply: Reply) -> None:
        sums = sums_of(self.study)
        if sums is None:
            return
        sent = kept_of(node, sums, "sent", _Sent)
        if sent is None or not (self.plain is not None or call.step == "sum_open"):
            return
        masked = Ring(sent.bits).unpack(decode(reply.body, SumMasked).values, sent.count)
        if call.step == "sum_open":
            told = decode(call.body, SumSurvivors)
            entry = Answered(masked=masked, arrived=told.arrived, view=node.state.view.digest)
            self.answered[told.number, node.name].append(entry)
        else:
            assert self.plain is not None
            self.hidden[sent.number, node.name].append(
                Hidden(plain=self.plain, masked=masked, sent=sent, body=call.body)
            )

    def _forked(self, calls: dict[str, Call], to: set[str], way: str) -> dict[str, Call]:
        """Tell some parties, or all, the same lie; or each of them another one."""
        self.deviations[way] += len(to)
        seed = self.draws.getrandbits(32)
        seeds = {party: seed if way == "fork" else self.draws.getrandbits(32) for party in calls}
        return {
            party: replace(call, body=altered(random.Random(seeds[party]), call.body, call)) if party in to else call
            for party, call in calls.items()
        }


FORKS: Final = ("fork", "many forks")
Lie = Callable[[Liar, Call, Mapping[str, Call]], Reply | None]


def _drop(_liar: Liar, _call: Call, _others: Mapping[str, Call]) -> Reply | None:
    return None


def _mute(liar: Liar, call: Call, _others: Mapping[str, Call]) -> Reply | None:
    liar.ask(call)
    return None


def _repeat(liar: Liar, call: Call, _others: Mapping[str, Call]) -> Reply | None:
    liar.ask(call)
    return liar.ask(call)


def _rename(liar: Liar, call: Call, _others: Mapping[str, Call]) -> Reply | None:
    """Ask once more under another id, with the same or another number."""
    said = liar.ask(call)
    number = liar.draws.choice([0, call.number, call.number + 1])
    liar.ask(replace(call, call=f"{liar.draws.getrandbits(64):x}", number=number, missed=bytes(32)))
    return said


def _again(liar: Liar, call: Call, _others: Mapping[str, Call]) -> Reply | None:
    """Ask once more with another body, under the same id or another."""
    said = liar.ask(call)
    name = liar.draws.choice([call.call, f"{liar.draws.getrandbits(64):x}"])
    liar.ask(replace(call, call=name, number=0, body=altered(liar.draws, call.body, call)))
    return said


def _alter(liar: Liar, call: Call, _others: Mapping[str, Call]) -> Reply | None:
    return liar.ask(replace(call, body=altered(liar.draws, call.body, call)))


def _swap(liar: Liar, call: Call, others: Mapping[str, Call]) -> Reply | None:
    return liar.ask(replace(call, body=liar.draws.choice(list(others.values())).body))


def _stale(liar: Liar, call: Call, _others: Mapping[str, Call]) -> Reply | None:
    """Ask something of the past first: of this party or of another."""
    if liar.past:
        old = liar.draws.choice(liar.past)
        liar.ask(replace(old, party=call.party, number=liar.draws.choice([0, old.number, call.number])))
    return liar.ask(call)


def _early(liar: Liar, call: Call, _others: Mapping[str, Call]) -> Reply | None:
    """Ask another step first, with this step's body or an empty one."""
    name = liar.draws.choice(list(liar.nodes[call.party].steps))
    body = liar.draws.choice([call.body, b"\x80"])
    liar.ask(replace(call, step=name, call=f"{liar.draws.getrandbits(64):x}", number=0, body=body))
    return liar.ask(call)


def _history(liar: Liar, call: Call, _others: Mapping[str, Call]) -> Reply | None:
    """Say that the party missed requests, which it did not, with made-up digests."""
    count = liar.draws.randrange(1, 4)
    return liar.ask(
        replace(call, number=call.number + liar.draws.randrange(3), missed=liar.draws.randbytes(32 * count))
    )


LIES: Final[Mapping[str, Lie]] = {
    "drop": _drop,
    "mute": _mute,
    "repeat": _repeat,
    "rename": _rename,
    "again": _again,
    "alter": _alter,
    "swap": _swap,
    "stale": _stale,
    "early": _early,
    "history": _history,
}


def altered(draws: random.Random, body: bytes, call: Call) -> bytes:
    """Return a message that differs in one field; lists of parties are altered so that they still make sense."""
    if call.step == "sum_open":
        told = decode(body, SumSurvivors)
        return encode(replace(told, arrived=_other_list(draws, told.arrived, call.party)))
    if call.step == "sum_meet" and draws.random() < 0.7:
        met = decode(body, SumDirectory)
        places = marked(list(range(8 * len(met.present))), met.present)
        gone = draws.choice(places)
        keys = [met.keys[start : start + 32] for start in range(0, len(met.keys), 32)]
        # the party itself has no key in its directory
        place = places.index(gone) - (gone > int(call.party[1:]))
        keys = [key for each, key in enumerate(keys) if each != place]
        present = bits(each in places and each != gone for each in range(8 * len(met.present)))
        return encode(replace(met, present=present, keys=b"".join(keys)))
    tree = msgspec.msgpack.decode(body)
    leaves = list(_leaves(tree))
    if not leaves:
        return body + b"\x00"
    holder, key = draws.choice(leaves)
    holder[key] = _other(draws, holder[key])
    return bytes(msgspec.msgpack.encode(tree))


def _other_list(draws: random.Random, listed: bytes, name: str) -> bytes:
    """Leave some parties out, perhaps all but the party itself and the colluding one, which is the last."""
    places = marked(list(range(8 * len(listed))), listed)
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
            place = draws.randrange(len(value))
            return value[:place] + bytes([value[place] ^ 1 << draws.randrange(8)]) + value[place + 1 :]
        case list() if value:
            place = draws.randrange(len(value))
            return draws.choice([value[:place] + value[place + 1 :], [*value, value[place]], value[::-1]])
        case str():
            return value + draws.choice(["", "x"])
    return None


def sums_of(study: Study) -> MaskedSums | None:
    """Return the masked sums of a study, if its method has any."""
    return next((each for each in study.plan.sub_protocols if isinstance(each, MaskedSums)), None)


def kept_of(node: Node, sums: MaskedSums, what: str, kind: type[Any]) -> Any:
    kept = node.state.memory.kept(f"sums {sums.label} {what}")
    return None if kept is None else decode(kept, kind)


def nodes_of(study: Study, rows: Mapping[str, Any]) -> dict[str, Node]:
    """Return untouched nodes in memory; every two of them share a bond, as parties with identities do."""
    nodes = {}
    for name, held in rows.items():
        node = in_memory_node(
            study.protocol, study.plan, name, held, lambda _label: SystemRandomness(), study=study.digest
        )
        bonds = {peer: "".join(sorted((name, peer))).encode().ljust(32, b"\x00") for peer in rows}
        nodes[name] = dataclasses.replace(node, state=dataclasses.replace(node.state, bond=bonds.__getitem__))
    return nodes


def lied_to(study: Study, rows: Mapping[str, Any], seed: int, *, lies: float, patch: pytest.MonkeyPatch) -> Liar:
    """Run a study once under a liar, and return it with all that it heard."""
    liar = Liar(study, nodes_of(study, rows), random.Random(seed), lies)
    hide = Masks.hide

    def noted(masks: Masks, values: NDArray[np.int64]) -> Any:
        liar.plain = values
        return hide(masks, values)

    with patch.context() as inside:
        inside.setattr(Masks, "hide", noted)
        liar.run()
    return liar
