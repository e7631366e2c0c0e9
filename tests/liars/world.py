"""Untouched nodes of one study, all they were asked, and what they hid.

What a party hides is noted where it is masked, so that an opening shows as equal numbers, whatever the noise. Coins
follow from a seed: a second world with other rows and the same seed differs by the rows alone.
"""

import dataclasses
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from liars.targets import Target
from syndic.kernel import Call, Node, Party, Reply, answer, decode, encode, in_memory_node
from syndic.methods.synthesis.cut import CutRound
from syndic.mpc import product, secret, servers, twoserver
from syndic.mpc.align import steps as align_steps
from syndic.mpc.length import LengthProof, four_squares
from syndic.mpc.masked_sum import MaskedSums, Masks, SumMasked, SumSurvivors, _Sent
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import KeptPair
from syndic.mpc.ring import Integers
from syndic.mpc.seal import Place, seal
from syndic.mpc.servers import ServedProduct
from syndic.mpc.triple import Stock
from syndic.mpc.twoserver import TwoServers
from syndic.random import SimulationRandomness

CODES: Final = {"ok", "input", "budget", "refused"}
Numbers = NDArray[Any]


@final
@dataclass(frozen=True, kw_only=True)
class Asked:
    """One call, the party that got it, and its answer."""

    call: Call
    to: str
    reply: Reply


@final
@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Values that left with noise: after how many calls, the noise in units of what left, its variance by entry."""

    party: str
    at: int
    noisy: Numbers
    noise: Numbers
    variance: Numbers

    def part(self, values: Numbers) -> "Drawn":
        """Return what belongs to some of the noisy values, which are a view of them."""
        start = (values.__array_interface__["data"][0] - self.noisy.__array_interface__["data"][0]) // 8
        chosen = slice(start, start + values.size)
        assert np.array_equal(self.noisy[chosen], values.ravel()), "what is opened is not part of what has noise"
        return dataclasses.replace(self, noisy=values.ravel(), noise=self.noise[chosen], variance=self.variance[chosen])


@final
@dataclass(frozen=True, kw_only=True)
class Hidden:
    """What one party sent for one sum: plain and masked values, and what it had been told."""

    plain: Numbers
    masked: Numbers
    sent: _Sent
    body: bytes
    drawn: Drawn | None


@final
@dataclass(frozen=True, kw_only=True)
class Answered:
    """A party's answer about its masks, the list that it was told, and its view then."""

    masked: Numbers
    arrived: bytes
    view: bytes


@final
@dataclass(frozen=True, kw_only=True)
class Shared:
    """What one party opened of a product with one partner."""

    plain: Numbers
    hidden: Numbers
    ring: Integers
    drawn: Drawn | None


@dataclass
class Inside:
    """What a lying party does inside its own steps; None where it follows them.

    `wraps`: it completes rows that are too long to the proven length in the field, where numbers wrap.
    """

    name: str
    rows: Callable[[Numbers, str], Numbers] | None = None
    wraps: bool = False
    text: Callable[[bytes, Place], bytes] | None = None
    values: Callable[[Numbers], Numbers] | None = None
    share: Callable[[Numbers], Numbers] | None = None
    silent_noise: bool = False
    masked: dict[str, Numbers] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)

    def note(self, made: SecureProduct, step: str, rows: Numbers, honest: Numbers) -> None:
        """Note products of other rows than were masked: D instead of 0 adds D times the partner's mask.

        The dealer knows that mask, the party does not. It sees uniform numbers, and else what the masked rows show.
        """
        if step == "mask":
            self.masked[made.label] = rows
        elif step == "multiply" and not np.array_equal(rows, self.masked.get(made.label, honest)):
            self.unread.add(made.label)


@final
class World:
    """The nodes of a target with the rows of one of its two tables; `inside` is a lying party."""

    def __init__(self, target: Target, *, other: bool, seed: int, inside: Inside | None = None) -> None:
        self.target, self.study, self.inside = target, target.study, inside
        self._seed, self._given = seed, Counter[tuple[str, str]]()
        self.plain: Numbers | None = None
        self.drawn: Drawn | None = None
        self.asked: list[Asked] = []
        self.answers: dict[tuple[str, str], set[bytes]] = defaultdict(set)
        self.hidden: dict[tuple[int, str], list[Hidden]] = defaultdict(list)
        self.answered: dict[tuple[int, str], list[Answered]] = defaultdict(list)
        self.shared: dict[tuple[str, str, str], list[Shared]] = defaultdict(list)
        self.released: list[Drawn] = []
        self.split: dict[str, Numbers] = {}
        self.opened_by: set[str] = set()
        self.failed: list[str] = []
        self.leave: Callable[[], None] = lambda: None
        rows = target.tables(other, "" if inside is None else inside.name)
        self.nodes = {name: self._node(name, held) for name, held in rows.items()}
        close_with(self, self.nodes.values())
        self._sums = sums_of(target)

    @property
    def honest(self) -> tuple[str, ...]:
        """The parties that follow the steps and show nobody what they know."""
        gone = self.target.colluding if self.inside is None else (self.inside.name,)
        return tuple(name for name in self.nodes if name not in gone)

    def coins(self, role: str, label: str) -> SimulationRandomness:
        """Return a stream for a label; one that is asked for again is another, as from a real generator."""
        self._given[role, label] += 1
        if "/entropy/" not in label:
            self._door = (role, label, self._given[role, label])
        return self._stream(role, label, self._given[role, label])

    def _stream(self, role: str, label: str, again: int) -> SimulationRandomness:
        return SimulationRandomness(self._seed, role, label, str(again))

    def _node(self, name: str, rows: Any) -> Node:
        study = self.study
        node = in_memory_node(
            study.protocol, study.plan, name, rows, lambda label: self.coins(name, label), study=study.digest
        )
        # as parties with identities have them: unknown to the coordinator
        bonds = {peer.name: "".join(sorted((name, peer.name))).encode().ljust(32, b"\x00") for peer in study.parties}
        return dataclasses.replace(node, state=dataclasses.replace(node.state, bond=bonds.__getitem__))

    def ask(self, call: Call, to: str = "") -> Reply:
        """Deliver a call, to the party that it names or to another, and note what came back."""
        to = to or call.party
        node = self.nodes[to]
        self.leave()
        self.plain = self.drawn = None
        self._covered = 0
        self.asking = to
        with _watched(self):
            reply = decode(answer(node, encode(call)), Reply)
        self.asked.append(Asked(call=call, to=to, reply=reply))
        if reply.code not in CODES and to in self.honest:
            self.failed.append(f"{call.step} fails with '{reply.code}'")
        if reply.code == "ok" and not node.steps[call.step][0].fresh:
            known = self.answers[call.party, call.call]
            if reply.body not in known:
                self._note(node, call, reply)
            known.add(reply.body)
        return reply

    def _note(self, node: Node, call: Call, reply: Reply) -> None:
        if call.step == "two_open":
            self.opened_by.add(call.party)
        if self.drawn is not None and self.plain is None and self.drawn.noisy.size > self._covered:
            self.released.append(self.drawn.part(self.drawn.noisy[self._covered :]))
        sent = None if self._sums is None else kept_of(node, self._sums, "sent", _Sent)
        if sent is None or not (self.plain is not None or call.step == "sum_open"):
            return
        masked = sent.ring.unpack(decode(reply.body, SumMasked).values, sent.count)
        if call.step == "sum_open":
            told = decode(call.body, SumSurvivors)
            entry = Answered(masked=masked, arrived=told.arrived, view=node.state.view.digest)
            self.answered[told.number, node.name].append(entry)
        elif self.plain is not None:
            drawn = self.drawn if self.drawn is not None and self.drawn.noisy.size == self.plain.size else None
            # two ways to write one message ask the same
            asked = encode(decode(call.body, node.steps[call.step][0].takes))
            self.hidden[sent.number, node.name].append(
                Hidden(plain=self.plain, masked=masked, sent=sent, body=asked, drawn=drawn)
            )

    def cover(self, count: int) -> None:
        """Note that some of the values with noise are not sent as they are."""
        self._covered += count

    def note_drawn(self, party: str, mechanism: Any, values: Any, noisy: Any) -> None:
        """Note the first noise of a call; what a party counts next may differ in another world."""
        if self.drawn is not None or not (
            isinstance(values, np.ndarray) and isinstance(noisy, np.ndarray) and values.shape == noisy.shape
        ):
            return
        # what left, less the values in its units: the same coins give the same noise on other values
        ours, none = (mechanism.apply(each, self._stream(*self._door)) for each in (values, np.zeros_like(values)))
        noise = np.asarray(noisy - ours + none)
        self.drawn = Drawn(
            party=party,
            at=len(self.asked),
            noisy=noisy if noisy.ndim == 1 else noisy.ravel(),
            noise=noise.ravel().astype(np.float64),
            variance=_variance(mechanism, values).copy(),
        )

    def note_coins(self, party: Party, now: CutRound) -> None:
        """Add noise from coins to what one of two parties drew: the first that is honest."""
        for pair in now.tossed:
            if (
                self.drawn is None
                or now.coins is None
                or party.name != next(each for each in pair if each in self.honest)
            ):
                continue
            coins, places, scale = now.coins, now._counts(pair), now.share.noise.scale
            one, other = (
                coins.coins(_Keeps(self.nodes[name]), 0, len(coins.weights))[:, columns]  # type: ignore[arg-type]
                for name, columns in zip(pair, np.divmod(coins.cells[pair], coins.columns(pair[1])), strict=True)
            )
            self.drawn.noise[places] += (np.array(coins.weights) @ (one ^ other) - coins.noise.mean) * scale
            self.drawn.variance[places] += coins.noise.variance * scale**2


@final
@dataclass(frozen=True)
class _Keeps:
    """What a party keeps, after a step."""

    node: Node

    @property
    def name(self) -> str:
        return self.node.name

    def recall(self, what: str, kind: type[Any]) -> Any:
        return decode(self.node.state.memory.kept(what) or b"", kind)


def close_with(owner: Any, files: Iterable[Any]) -> None:
    """Close files once their owner is gone: worlds and what was recorded of them are in caches."""
    weakref.finalize(owner, lambda left: [each.close() for each in left], tuple(files))


def sums_of(target: Target) -> MaskedSums | None:
    """Return the masked sums of a study, if its method has any."""
    return next((each for each in target.study.plan.sub_protocols if isinstance(each, MaskedSums)), None)


def kept_of(node: Node, sums: MaskedSums, what: str, kind: type[Any]) -> Any:
    """Return what a party keeps of its masked sums."""
    kept = node.state.memory.kept(f"sums {sums.label} {what}")
    return None if kept is None else decode(kept, kind)


_VARIANCES: dict[str, Numbers] = {}


def _variance(mechanism: Any, values: Numbers) -> Numbers:
    """Return the variance of each entry's noise, from draws: mechanisms state it in different units."""
    key = f"{mechanism!r} {values.shape}"
    if key not in _VARIANCES:
        nothing = np.zeros_like(values)
        draws = [mechanism.apply(nothing, SimulationRandomness(each, "variance")).ravel() for each in range(200)]
        _VARIANCES[key] = np.maximum(np.var(np.asarray(draws, dtype=np.float64), axis=0), 1e-300)
    return _VARIANCES[key]


# What is watched, and where a lying party deviates, inside the steps of the nodes; only while a world is asked.


@contextmanager
def _watched(world: World) -> Iterator[None]:
    changes = list(_changes(world))
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, new in changes:
        setattr(owner, name, new)
    try:
        yield
    finally:
        for owner, name, old in before:
            setattr(owner, name, old)


def _changes(world: World) -> Iterator[tuple[Any, str, Any]]:
    yield from _noted(world)
    yield SecureProduct, "hide", _opening(world)
    yield product, "_multiplied", _multiplying(world)
    if world.inside is not None and world.asking == world.inside.name:
        yield from _deviating(world.inside)


def _noted(world: World) -> Iterator[tuple[Any, str, Any]]:
    contribute, release, hide, split = Party.contribute, Party.release, Masks.hide, TwoServers.shares
    count = CutRound.count
    lies = world.inside if world.inside is not None and world.asking == world.inside.name else None

    def contributing(party: Any, share: Any, values: Any, *, why: str) -> Any:
        noisy = contribute(party, share, values, why=why)
        if lies is not None and lies.silent_noise:
            # in the units of what the others add: anything else opens to numbers that say nothing
            noisy = values * getattr(share, "scale", 1)
        world.note_drawn(party.name, share, values, noisy)
        return noisy

    def releasing(party: Any, mechanism: Any, values: Any, *, why: str) -> Any:
        noisy = release(party, mechanism, values, why=why)
        world.note_drawn(party.name, mechanism, values, noisy)
        return noisy

    def hiding(masks: Masks, values: Numbers) -> SumMasked:
        world.plain = lies.values(values) if lies is not None and lies.values is not None else values
        return hide(masks, world.plain)

    def splitting(two: TwoServers, party: Party, values: Numbers) -> Any:
        world.split[party.name] = lies.values(values) if lies is not None and lies.values is not None else values
        return split(two, party, world.split[party.name])

    def counting(now: CutRound, party: Party, *given: Any, **more: Any) -> SumMasked:
        masked = count(now, party, *given, **more)
        world.note_coins(party, now)
        return masked

    yield CutRound, "count", counting
    yield Party, "contribute", contributing
    yield Party, "release", releasing
    yield Masks, "hide", hiding
    yield TwoServers, "shares", splitting


def _opening(world: World) -> Any:
    hide = SecureProduct.hide

    def hiding(made: SecureProduct, party: Party, partner: str, values: Numbers, ring: Integers) -> Numbers:
        lies = world.inside if world.inside is not None and party.name == world.inside.name else None
        drawn = None if world.drawn is None else world.drawn.part(values)
        world.cover(values.size)
        values = lies.share(values) if lies is not None and lies.share is not None else values
        hidden = hide(made, party, partner, values, ring)
        entry = Shared(plain=ring.reduce(values).ravel(), hidden=hidden.ravel(), ring=ring, drawn=drawn)
        world.shared[made.label, party.name, partner].append(entry)
        return hidden

    return hiding


def _multiplying(world: World) -> Any:
    """Look, at every honest party, whether the rows that it multiplies with are what was proven of them."""
    multiplied = product._multiplied

    def multiplying(made: SecureProduct, party: Party, name: str, matrices: Any, message: Any) -> Any:
        kept = world.nodes[name].state.memory.kept(f"{made.label} own")
        if made.proven and party.name in world.honest and kept is not None:
            own = decode(kept, KeptPair)
            stock = Stock(seed=own.seed, study=party.study, party=name, sizes=made.sizes, label=made.label)
            opened = matrices[2]
            rows = made.sizes.ring.add(opened, stock.mask(message.chunk, opened.shape[1])).astype(np.int64)
            if not _as_proven(made, name, rows):
                what = made.proof(name, message.chunk).what
                world.failed.append(f"{party.name} accepted rows of {name} that are not {what}")
        return multiplied(made, party, name, matrices, message)

    return multiplying


def _as_proven(made: SecureProduct, name: str, rows: Numbers) -> bool:
    if made.lengths:
        # numbers of any size, as squares may wrap
        whole = made.sizes.ring.lift(rows[:, : sum(made.groups[name])]).astype(object)
        return bool(((whole**2).sum(axis=1) <= made.lengths[name]).all())
    parts = np.split(rows, np.cumsum(made.groups[name])[:-1], axis=1)
    return all((part <= 1).all() and (part.sum(axis=1) <= 1).all() for part in parts)


def _product_steps() -> Iterator[tuple[type[Any], str]]:
    """Yield the classes of products and the functions in each to which a method passes its rows."""
    for owner in (SecureProduct, ServedProduct):
        yield from ((owner, step) for step in ("mask", "test", "prove", "multiply") if step in vars(owner))


def _deviating(inside: Inside) -> Iterator[tuple[Any, str, Any]]:
    """Let the lying party enter other rows, which it does not compare with what it masked, and seal other texts."""
    if inside.rows is not None:
        change = inside.rows
        for owner, step in _product_steps():
            honest = getattr(owner, step)

            def deviating(
                made: Any, party: Any, message: Any, rows: Any, *, step: str = step, honest: Any = honest
            ) -> Any:
                def given(start: int, stop: int) -> Numbers:
                    found = change(rows(start, stop), step)
                    inside.note(made, step, found, rows(start, stop))
                    return found

                return honest(made, party, message, given)

            yield owner, step, deviating
        for module in (product, servers):
            yield module, "same_rows", lambda _label, _party, _chunk, matrix: matrix
        yield SecureProduct, "check_unchanged", lambda *_: None
        yield LengthProof, "completed", lambda proof, matrix: _completed(proof, matrix, wraps=inside.wraps)
    if inside.text is not None:
        other = inside.text
        for module in (product, secret, servers, twoserver, align_steps):
            yield module, "seal", lambda key, text, place, randomness: seal(key, other(text, place), place, randomness)


def _completed(proof: LengthProof, matrix: Numbers, *, wraps: bool) -> Numbers:
    """Return rows with what completes their squares to the proven length, if need be in the field only."""
    rest, prime = proof.square - (matrix.astype(np.int64) ** 2).sum(axis=1), proof.field.modulus
    found = four_squares(np.maximum(rest, 0), proof.square)
    for row in np.flatnonzero(rest < 0) if wraps else ():
        # one square and the root of the rest, if it has one: half of all numbers do
        roots = ((one, pow(int(rest[row]) - one**2, (prime + 1) // 4, prime)) for one in range(100))
        pair = next((one, root) for one, root in roots if (one**2 + root**2 - int(rest[row])) % prime == 0)
        found[row] = (*pair, 0, 0)
    return np.hstack([matrix, found])
