"""What can be looked at in every protocol without knowing it: masks that are flat, answers that do not hang on rows.

Masked and sealed answers must look uniform, alone and beside those of other rounds and runs, and have one law whatever
the table. An answer that is called public must be the same bytes under both tables if question and coins are the same;
no answer but a noisy one may differ in length; a question asked again must get the same bytes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from syndic.privacy import Cost
from syndic_lab.audit.observation import Chance, Fact, Trial
from syndic_lab.audit.rehearsal import Run, Seen

_PER_CELL = 20
Bytes = NDArray[np.uint8]


def look(one: Sequence[Run], other: Sequence[Run], pairs: Sequence[tuple[Run, Run]]) -> list[Trial]:
    """Return the trials of everything that was sent; `pairs` are runs on both tables with the same coins."""
    found: list[Trial] = [*_flat(one, other)]
    found += [_same_coins(pairs), _lengths(pairs), _again([*one, *other]), _charges([*one, *other])]
    return found


# Masks.


def _flat(one: Sequence[Run], other: Sequence[Run]) -> Iterator[Trial]:
    sides = [_hidden(runs) for runs in (one, other)]
    for step in sorted(set(sides[0]) & set(sides[1])):
        here, there = (np.concatenate(side[step]) for side in sides)
        runs = len(one) + len(other)
        yield Chance(
            view=f"coordinator: bytes of {step}",
            kind="uniform",
            chance=uniform_chance(np.concatenate([here, there])),
            runs=runs,
            text="masked or sealed answers look uniform",
        )
        yield Chance(
            view=f"coordinator: {step} under either table",
            kind="same law",
            chance=same_law_chance(here, there),
            runs=runs,
            text="masked or sealed answers have one law whatever the table",
        )
        steps = np.concatenate([*_differences(sides[0][step]), *_differences(sides[1][step])])
        yield Chance(
            view=f"coordinator: {step} less the one before",
            kind="uniform",
            chance=uniform_chance(steps),
            runs=runs,
            text="one mask does not serve twice, in a run or in the next",
        )
    yield from _between_rounds([*one, *other])


def _between_rounds(runs: Sequence[Run]) -> Iterator[Trial]:
    """Compare a party's masked answers to the same step of one run with each other."""
    moved: dict[str, list[Bytes]] = {}
    for each in runs:
        before: dict[tuple[str, str], Bytes] = {}
        for seen in _secret_answers(each):
            key, now = (seen.party, seen.step), _payload(seen)
            if key in before and len(before[key]) == len(now):
                moved.setdefault(seen.step, []).append(now - before[key])
            before[key] = now
    for step, parts in sorted(moved.items()):
        yield Chance(
            view=f"coordinator: {step} of one round less the round before",
            kind="uniform",
            chance=uniform_chance(np.concatenate(parts)),
            runs=len(runs),
            text="every round has masks of its own",
        )


def _hidden(runs: Iterable[Run]) -> dict[str, list[Bytes]]:
    """Return, by step, what masked and sealed answers hide their content in, run by run."""
    found: dict[str, list[Bytes]] = {}
    for each in runs:
        parts: dict[str, list[Bytes]] = {}
        for seen in _secret_answers(each):
            parts.setdefault(seen.step, []).append(_payload(seen))
        for step, payloads in parts.items():
            found.setdefault(step, []).append(np.concatenate(payloads))
    return {step: payloads for step, payloads in found.items() if sum(map(len, payloads)) >= 2 * _PER_CELL}


def _secret_answers(run: Run) -> Iterator[Seen]:
    for seen in run.seen:
        if seen.reveals in {"masked", "sealed"} and seen.code == "ok":
            yield seen


def _payload(seen: Seen) -> Bytes:
    # the last byte of a packed vector may be filled up with zeros
    pieces = [np.frombuffer(piece[:-1], dtype=np.uint8) for piece in _pieces(seen.message()) if len(piece) > 1]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint8)


def _pieces(value: Any) -> Iterator[bytes]:
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _pieces(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _pieces(each)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _pieces(getattr(value, name))


def _differences(payloads: Sequence[Bytes]) -> list[Bytes]:
    moved = [now - then for then, now in pairwise(payloads) if len(then) == len(now)]
    return moved or [np.empty(0, dtype=np.uint8)]


def uniform_chance(values: Bytes) -> float:
    """Return how likely bytes as uneven are if they are uniform; 1 where there are too few to tell."""
    bits = _bits_for(len(values))
    if bits == 0:
        return 1.0
    high, low = (np.bincount(part, minlength=2**bits) for part in (values >> (8 - bits), values & (2**bits - 1)))
    return min(1.0, 2 * min(float(stats.chisquare(part).pvalue) for part in (high, low)))


def same_law_chance(one: Bytes, other: Bytes) -> float:
    """Return how likely two samples as different are if they have one law."""
    bits = _bits_for(min(len(one), len(other)))
    if bits == 0:
        return 1.0
    counts = np.array([np.bincount(side >> (8 - bits), minlength=2**bits) for side in (one, other)])
    counts = counts[:, counts.sum(axis=0) > 0]
    return float(stats.chi2_contingency(counts).pvalue) if counts.shape[1] > 1 else 1.0


def _bits_for(count: int) -> int:
    return max(0, min(8, int(np.log2(max(1, count / _PER_CELL)))))


# Facts.


def _same_coins(pairs: Sequence[tuple[Run, Run]]) -> Trial:
    """Compare answers that are called public, and who refuses, for as long as the questions are the same."""
    odd: Counter[str] = Counter()
    for here, there in pairs:
        for one, other in _alike(here, there):
            if one.code != other.code:
                odd[f"{one.step} is refused under one table only"] += 1
            elif one.reveals == "public" and one.body != other.body:
                odd[f"{one.step} is public and differs"] += 1
    return _unless(odd, pairs, "coordinator: public answers", "public answers are the same bytes under both tables")


def _lengths(pairs: Sequence[tuple[Run, Run]]) -> Trial:
    odd: Counter[str] = Counter()
    for here, there in pairs:
        for one, other in _alike(here, there):
            if one.reveals != "noisy" and len(one.body) != len(other.body):
                odd[f"{one.step} differs in length"] += 1
    return _unless(odd, pairs, "anyone on the wire: lengths", "answers have the same lengths under both tables")


def _unless(odd: Counter[str], pairs: Sequence[tuple[Run, Run]], view: str, text: str) -> Fact:
    """Return that the text holds, unless pairs of runs differ in something odd."""
    return Fact(view=view, kind="same coins", holds=not odd, runs=2 * len(pairs), text="; ".join(odd) or text)


def _alike(here: Run, there: Run) -> Iterator[tuple[Seen, Seen]]:
    """Pair the answers of two runs while all questions agree: later ones follow from noisy answers."""
    for one, other in zip(here.seen, there.seen, strict=False):
        if (one.party, one.step, one.asked) != (other.party, other.step, other.asked):
            return
        yield one, other


def _again(runs: Sequence[Run]) -> Trial:
    return Fact(
        view="coordinator: the same question again",
        kind="asked again",
        holds=all(run.asked_again for run in runs),
        runs=len(runs),
        text="a question asked again gets the stored bytes: noise is drawn once",
    )


def _charges(runs: Sequence[Run]) -> Trial:
    """Compare what was charged with what the study says that it spends."""
    costs = runs[0].study.costs
    charged = {(party, events) for each in runs for party, events in each.charged.items()}
    over = {party for party, events in charged if not costs[party].covers(Cost.of(events))}
    return Fact(
        view="owner: the ledger",
        kind="charge",
        holds=not over,
        runs=len(runs),
        text=f"charged more than stated: {', '.join(sorted(over))}" if over else "what is charged is what is stated",
    )
