"""What a lying coordinator must not get (`lying`), with all masks that the colluding party knows taken off.

- Two different answers to one call, or an answer from rows without its own charge.
- More charged than the study plans for a party.
- A sum of parties that were told different things, or of fewer than the study's noise is made for.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lying import Liar, kept_of, sums_of
from syndic.kernel import Node
from syndic.mpc.graph import Seats
from syndic.mpc.listing import marked
from syndic.mpc.masked_sum import MaskedSums, _Met
from syndic.mpc.ring import Ring


def violations(liar: Liar) -> list[str]:
    """Return what the liar got that it must not get."""
    found = list(liar.failed)
    for (party, call), bodies in liar.answers.items():
        if len(bodies) > 1:
            found.append(f"{party} gave two answers to one call {call[:6]}")
    for name, node in liar.nodes.items():
        found += _charges(liar, name, node)
        node.state.ledger.verify()
    return [*found, *(text for number, chosen in opened(liar) for text in _forbidden(liar, number, chosen))]


def _charges(liar: Liar, name: str, node: Node) -> Iterator[str]:
    charged = Counter(node.state.ledger.charged(liar.study.digest))
    if charged - Counter(liar.study.plan.events(name)):
        yield f"{name} was charged more than planned"
    paid = {entry.call for entry in node.state.ledger.entries() if entry.kind == "reserve"}
    for call in (call for party, call in liar.answers if party == name):
        stored = node.state.memory.answer(call)
        if stored is None or stored.reply not in liar.answers[name, call]:
            yield f"{name} gave an answer that it does not remember"
        elif stored.charged and call not in paid:
            yield f"{name} answered from rows without a charge"
    sent = Counter(number for (number, party), values in liar.hidden.items() if party == name for _ in values)
    if any(times > 1 for times in sent.values()):
        yield f"{name} sent values twice for one sum"


def opened(liar: Liar) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the sums that open, and for which honest parties: all sets are tried; the last party colludes."""
    sums = sums_of(liar.study)
    if sums is None:
        return
    names = [member.name for member in liar.study.parties]
    for number in sorted({number for number, _ in liar.hidden}):
        have = [name for name in names[:-1] if (number, name) in liar.hidden]
        if sums.graph.missing:
            have = [name for name in have if (number, name) in liar.answered]
        for size in range(1, len(have) + 1):
            for chosen in combinations(have, size):
                if _opens(liar, sums, number, chosen):
                    yield number, chosen


def _opens(liar: Liar, sums: MaskedSums, number: int, chosen: tuple[str, ...]) -> bool:
    values = [liar.hidden[number, name][0] for name in chosen]
    if len({(one.sent.count, one.sent.bits) for one in values}) > 1:
        return False
    ring = Ring(values[0].sent.bits)
    total = ring.reduce(np.zeros(values[0].sent.count, dtype=np.int64))
    for name in chosen:
        total = ring.add(total, _unmasked(liar, sums, number, name, ring))
    plain = ring.reduce(np.sum([one.plain for one in values], axis=0))
    return bool(np.array_equal(total, plain))


def _unmasked(liar: Liar, sums: MaskedSums, number: int, name: str, ring: Ring) -> NDArray[Any]:
    """Return a party's values less its answer, less the masks that the colluding party knows."""
    names = tuple(member.name for member in liar.study.parties)
    seats = Seats(study=liar.study.digest, label=sums.label, names=names, graph=sums.graph)
    place, last = names.index(name), len(names) - 1
    own = liar.hidden[number, name][0]
    met = kept_of(liar.nodes[names[last]], sums, "met", _Met)
    known = {last: met.pairs[place]} if met is not None and place in met.pairs else {}
    nothing = ring.reduce(np.zeros(own.sent.count, dtype=np.int64))
    in_values = seats.add_pairs(nothing, place, known, seats.bound("values", number, own.sent.view), ring)
    if not sums.graph.missing:
        return ring.subtract(own.masked, in_values)
    answered = liar.answered[number, name][0]
    in_answer = seats.add_pairs(nothing, place, known, seats.bound("answer", number, answered.view), ring)
    if last not in marked(list(range(len(names))), answered.arrived):
        in_values = in_answer = nothing
    return ring.subtract(ring.subtract(own.masked, in_values), ring.subtract(answered.masked, in_answer))


def _forbidden(liar: Liar, number: int, chosen: tuple[str, ...]) -> Iterator[str]:
    sums = sums_of(liar.study)
    assert sums is not None
    # the colluding party's own values are in the sum too
    if len(chosen) < len(liar.study.parties) - sums.graph.missing - 1:
        yield f"sum {number} opened for few honest parties: {len(chosen)}"
    values = [liar.hidden[number, name][0] for name in chosen]
    if len({one.body for one in values}) > 1:
        yield f"sum {number} opened for parties that were asked different things"
    answers = [liar.answered[number, name][0] for name in chosen] if sums.graph.missing else []
    if len({one.sent.view for one in values}) > 1 or len({one.view for one in answers}) > 1:
        yield f"sum {number} opened for parties with different views"
