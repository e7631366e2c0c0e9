"""What a liar must not get, with all masks that a colluding party knows taken off.

- Two different answers to one call, or an answer from rows without its own charge; more charged than planned.
- A refusal, or a reply that is called public, that depends on the rows: it would differ between neighbouring tables.
- A sum of parties that were told different things, or of fewer than the study's noise is made for.
- An opening whose noise is too little for how far apart the neighbouring tables are.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any, final

import numpy as np

from liars.world import Drawn, Hidden, Numbers, World, kept_of, sums_of
from syndic.kernel import Call, Node, decode
from syndic.mpc.align.work import ORDER_NAME, StoredOrder
from syndic.mpc.graph import Seats, marked
from syndic.mpc.masked_sum import MaskedSums, _Met
from syndic.mpc.ring import Integers
from syndic.mpc.twoserver import TwoServers, _Noise
from syndic.privacy import Cost
from syndic.privacy.concentrated import PICO

Sum = tuple[int, tuple[str, ...]]
"""The number of a sum, and the honest parties for which it opens."""

ROUNDING = 1.25
"""Room for variances that are estimated from draws."""
_NOTHING = 1e-290
"""The variance of what a party adds no noise to is stated as less."""
_ALIKE = 4.0
"""Estimates of one variance differ by less."""


def violations(one: World, other: World, sums: Iterable[Sum], seen: Sequence["Opening"]) -> list[str]:
    """Return what the liar got in one world that it must not get; `other` has the neighbouring table.

    `sums` are those that opened, `seen` is all that opened with noise.
    """
    found = list(one.failed)
    for (party, call), bodies in one.answers.items():
        if party in one.honest and len(bodies) > 1:
            found.append(f"{party} gave two answers to one call {call[:6]}")
    for name in one.honest:
        found += _charges(one, name, one.nodes[name])
        one.nodes[name].state.ledger.verify()
    found += _same_orders(one)
    found += [text for number, chosen in sums for text in _forbidden(one, number, chosen)]
    if not _outside(one):
        found += _dependent(one, other)
    if ("coordinator" if one.inside is None else "party") in one.target.claimed:
        found += _too_little_noise(one, seen)
    return found


def _outside(world: World) -> bool:
    """Say whether what is disclosed exactly depends on rows: who is common; sketches, which have no claim."""
    return world.target.name in {"align", "align, two parties", "vertimrf"}


def _charges(world: World, name: str, node: Node) -> Iterator[str]:
    charged = Counter(node.state.ledger.charged(world.study.digest))
    if charged - Counter(world.study.plan.events(name)):
        yield f"{name} was charged more than planned"
    paid = {entry.call for entry in node.state.ledger.entries() if entry.kind == "reserve"}
    for call in (call for party, call in world.answers if party == name):
        stored = node.state.memory.answer(call)
        if stored is None or stored.reply not in world.answers[name, call]:
            yield f"{name} gave an answer that it does not remember"
        elif stored.charged and call not in paid:
            yield f"{name} answered from rows without a charge"
    sent = Counter(number for (number, party), values in world.hidden.items() if party == name for _ in values)
    if any(times > 1 for times in sent.values()):
        yield f"{name} sent values twice for one sum"
    if any(len(values) > 1 for (_, party, _), values in world.shared.items() if party == name):
        yield f"{name} opened one product twice"


def _same_orders(world: World) -> Iterator[str]:
    """Compare who is common, as honest parties keep it after an alignment."""
    orders = [world.nodes[name].state.memory.kept(ORDER_NAME) for name in world.honest]
    if len({decode(each, StoredOrder).alignment.people for each in orders if each is not None}) > 1:
        yield "honest parties keep different common people"


def _dependent(one: World, other: World) -> Iterator[str]:
    """Compare replies while the same was asked: afterwards questions follow from noisy answers."""
    for here, there in list(zip(one.asked, other.asked, strict=False))[: _alike(one, other)]:
        call, name = here.call, here.to
        if name not in one.honest:
            continue
        if here.reply.code != there.reply.code:
            yield f"{name} refuses {call.step} for one of two neighbouring tables only"
            return
        reveals = one.nodes[name].steps[call.step][0].reveals if call.step in one.nodes[name].steps else "public"
        if reveals == "public" and call.body == there.call.body and here.reply.body != there.reply.body:
            yield f"{name} answers {call.step}, which is public, from its rows"
        if reveals in {"masked", "sealed"} and len(here.reply.body) != len(there.reply.body):
            yield f"{name} answers {call.step} in a length that depends on its rows"


def _alike(one: World, other: World) -> int:
    """Return how many calls asked the same in both worlds: later questions may follow from noisy answers."""
    pairs = [(here, there) for here, there in zip(one.asked, other.asked, strict=False)]
    for place, (here, there) in enumerate(pairs):
        if (here.to, here.call.step) != (there.to, there.call.step):
            return place
        if _question(one, here.call) != _question(other, there.call):
            return place
    return len(pairs)


def _question(world: World, call: Call) -> bytes:
    """Return what a call asks, without what it passes on.

    Messages of sub-protocols have what other parties masked or sealed, or a challenge to it, and so differ with rows.
    """
    step = next(iter(world.nodes.values())).steps.get(call.step)
    takes = None if step is None else step[0].takes
    passed_on = takes is not None and takes.__module__.startswith("syndic.mpc.")
    return call.step.encode() if passed_on else call.body


# Sums: which sets of honest parties open.


def opened(world: World) -> Iterator[Sum]:
    """Yield the sums that open, and for which honest parties: all sets are tried."""
    sums = sums_of(world.target)
    if sums is None:
        return
    for number in sorted({number for number, _ in world.hidden}):
        have = [name for name in world.honest if (number, name) in world.hidden]
        if sums.graph.missing:
            have = [name for name in have if (number, name) in world.answered]
        for size in range(1, len(have) + 1):
            for chosen in combinations(have, size):
                if _opens(world, sums, number, chosen):
                    yield number, chosen


def _opens(world: World, sums: MaskedSums, number: int, chosen: tuple[str, ...]) -> bool:
    values = [world.hidden[number, name][0] for name in chosen]
    if len({(one.sent.count, one.sent.bits, one.sent.modulus) for one in values}) > 1:
        return False
    ring = values[0].sent.ring
    total = ring.reduce(np.zeros(values[0].sent.count, dtype=np.int64))
    for name in chosen:
        total = ring.add(total, _unmasked(world, sums, number, name, ring))
    plain = ring.reduce(np.sum([one.plain for one in values], axis=0))
    return bool(np.array_equal(total, plain))


def _unmasked(world: World, sums: MaskedSums, number: int, name: str, ring: Integers) -> Numbers:
    """Return a party's values less its answer, less the masks that the liar or the colluding party knows."""
    names = tuple(member.name for member in world.study.parties)
    seats = Seats(study=world.study.digest, label=sums.label, names=names, graph=sums.graph)
    own, place = world.hidden[number, name][0], names.index(name)
    known = {}
    for each in (places := [names.index(one) for one in names if one not in world.honest]):
        met = kept_of(world.nodes[names[each]], sums, "met", _Met)
        if met is not None and place in met.pairs:
            known[each] = met.pairs[place]
    nothing = ring.reduce(np.zeros(own.sent.count, dtype=np.int64))
    in_values = seats.add_pairs(nothing, place, known, seats.bound("values", number, own.sent.view), ring)
    if not sums.graph.missing:
        return ring.subtract(own.masked, in_values)
    answered = world.answered[number, name][0]
    in_answer = seats.add_pairs(nothing, place, known, seats.bound("answer", number, answered.view), ring)
    if not marked(len(names), answered.arrived)[list(places)].any():
        in_values = in_answer = nothing
    return ring.subtract(ring.subtract(own.masked, in_values), ring.subtract(answered.masked, in_answer))


def _forbidden(world: World, number: int, chosen: tuple[str, ...]) -> Iterator[str]:
    sums = sums_of(world.target)
    assert sums is not None
    # the values of those who are not honest are in the sum too
    if len(chosen) < len(world.honest) - sums.graph.missing:
        yield f"sum {number} opened for few honest parties: {len(chosen)}"
    values = [world.hidden[number, name][0] for name in chosen]
    if len({one.body for one in values}) > 1:
        yield f"sum {number} opened for parties that were asked different things"
    answers = [world.answered[number, name][0] for name in chosen] if sums.graph.missing else []
    if len({one.sent.view for one in values}) > 1 or len({one.view for one in answers}) > 1:
        yield f"sum {number} opened for parties with different views"


# What opened, beside the same of the neighbouring table.


@final
@dataclass(frozen=True)
class Opening:
    """How far apart two neighbouring tables are in what opened, the noise of honest parties in it, its variance."""

    apart: Numbers
    noise: Numbers
    variance: Numbers
    at: int
    """After how many calls the first of its noise was drawn."""

    @property
    def mu_squared(self) -> float:
        """The squared distance in units of the noise."""
        return float((self.apart**2 / self.variance).sum())

    @property
    def ratio(self) -> float:
        """The largest logarithm of the likelihood ratio if the noise is geometric on both sides of 0."""
        # what does not move may have no noise of honest parties: tables that a liar counts alone
        moved = self.apart != 0
        if not moved.any():
            return 0.0
        apart, variance = self.apart[moved], self.variance[moved]
        spread = variance.max() / variance.min()
        half = (np.full_like(variance, variance.mean()) if spread < _ALIKE else variance) / 2
        # of this law, half the variance is q / (1 - q)^2
        q = (2 * half + 1 - np.sqrt(4 * half + 1)) / (2 * half)
        return float(-(np.abs(apart) * np.log(q)).sum())


def openings(one: World, other: World, sums: Iterable[Sum]) -> Iterator[Opening]:
    """Yield all that opened with noise in one world; the other has the same coins and the neighbouring table."""
    for number, chosen in sums:
        if all(other.hidden.get((number, name)) for name in chosen):
            here, there = ([world.hidden[number, name][0] for name in chosen] for world in (one, other))
            if [_asked(each) for each in here] != [_asked(each) for each in there]:
                continue  # other noise let the coordinator ask something else
            drawn = [each.drawn for each in here if each.drawn is not None]
            known = _liars_shares(one, other, number)
            ring = here[0].sent.ring
            before, after = (
                [ring.reduce(each.plain) for each in (*values, *(world.hidden[number, name][0] for name in known))]
                for values, world in ((here, one), (there, other))
            )
            yield _of(ring.lift(ring.subtract(reduce(ring.add, after), reduce(ring.add, before))), drawn)
    yield from _products(one, other)
    yield from _released(one, other)
    yield from _averages(one, other)


def _asked(hidden: Hidden) -> tuple[Any, ...]:
    """Return what a party was asked: the question itself, or how many numbers where an earlier step had it."""
    return hidden.body, np.shape(hidden.plain)


def _liars_shares(one: World, other: World, number: int) -> list[str]:
    """Return the lying parties that have shares of products in a sum, which depend on their partners' rows.

    Not those that multiplied other rows than they masked: their share is uniform to them.
    """
    if one.inside is None or one.inside.unread or one.target.horizontal:
        return []
    name = one.inside.name
    return [name] if one.hidden.get((number, name)) and other.hidden.get((number, name)) else []


def _of(apart: Any, drawn: list[Drawn]) -> Opening:
    noise, variance = (np.sum([getattr(each, name) for each in drawn], axis=0) for name in ("noise", "variance"))
    at, moved = min((each.at for each in drawn), default=0), np.asarray(apart, dtype=np.float64).ravel()
    # a party adds nothing to tables that another one counts alone
    told = (variance > _NOTHING) | (moved != 0)
    return Opening(moved[told], noise[told], variance[told], at)


def _products(one: World, other: World) -> Iterator[Opening]:
    alike = _alike(one, other)
    for label, left, right in one.shared:
        keys = (label, left, right), (label, right, left)
        unread = label in one.inside.unread if one.inside else False
        if unread or left > right or not all(world.shared.get(key) for key in keys for world in (one, other)):
            continue
        (here, partner), (there, its) = ([world.shared[key][0] for key in keys] for world in (one, other))
        ring = here.ring
        if not np.array_equal(ring.add(here.hidden, partner.hidden), ring.add(here.plain, partner.plain)):
            continue
        apart = ring.lift(ring.subtract(ring.add(there.plain, its.plain), ring.add(here.plain, partner.plain)))
        drawn = [each.drawn for each in (here, partner) if each.drawn is not None and each.drawn.party in one.honest]
        if drawn and max(each.at for each in drawn) < alike:
            yield _of(apart, drawn)


def _released(one: World, other: World) -> Iterator[Opening]:
    alike, others = _alike(one, other), {each.at: each for each in other.released}
    for here in (each for each in one.released if each.at < alike and each.party in one.honest):
        there = others.get(here.at)
        if there is not None and here.noisy.size == there.noisy.size:
            yield _of(there.noisy - here.noisy, [here])


def _averages(one: World, other: World) -> Iterator[Opening]:
    """Yield the opened sums of two servers; what both keep of the noise is no part of what one of them knows."""
    two = next((each for each in one.study.plan.sub_protocols if isinstance(each, TwoServers)), None)
    if two is None or one.opened_by != set(two.servers):
        return
    shares = [decode(one.nodes[name].state.memory.kept("two noise") or b"", _Noise).share for name in two.servers]
    noise = two.field.reduce(np.sum(shares, axis=0) + two.noise.reach).astype(np.int64) - two.noise.reach
    apart = sum(other.split[name] - one.split[name] for name in one.honest if name in one.split and name in other.split)
    variance = np.full(noise.size, two.noise.variance)
    # both servers toss their coins after they have the keys
    at = next(place for place, each in enumerate(one.asked) if each.call.step != "ready")
    yield Opening(np.asarray(apart, dtype=np.float64), noise.astype(np.float64), variance, at)


def _too_little_noise(one: World, seen: Sequence[Opening]) -> Iterator[str]:
    """Hold the distance in units of the noise against the charge: squared for Gaussian noise, else by its scale."""
    gaussian, epsilon = charged(one.target.cost)
    mu_squared, ratio = sum(each.mu_squared for each in seen), sum(each.ratio for each in seen)
    if gaussian and mu_squared > gaussian * ROUNDING:
        yield f"what opened has mu^2 {mu_squared:.3g}, and {gaussian:.3g} was charged"
    if epsilon and ratio > epsilon * ROUNDING**0.5:
        yield f"what opened has epsilon {ratio:.3g}, and {epsilon:.3g} was charged"


def charged(cost: Cost) -> tuple[float, float]:
    """Return the mu^2 that a cost of Gaussian noise allows, or else the epsilon of other noise; the other is 0."""
    epsilon = (cost.pure + cost.epsilon_approximate) / PICO
    return (0.0, epsilon) if epsilon else (2 * (cost.gaussian + cost.rho) / PICO, 0.0)
