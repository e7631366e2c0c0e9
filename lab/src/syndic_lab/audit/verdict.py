"""From trials to findings: exact bounds that all hold together but for one stated chance.

Bonferroni: the chance of a false alarm is split evenly over the audits of a run, then over an audit's trials, then over
the bounds of a trial. Which event is judged is chosen on one part of the runs and judged on the others.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from syndic.document import exact
from syndic.privacy import Cost, gaussian_epsilon
from syndic.privacy.concentrated import PICO
from syndic_lab.audit.bound import epsilon_shown, least_chance, most_chance, one_run_epsilon
from syndic_lab.audit.fraction import Box, claimed, part_epsilon, refuted_part
from syndic_lab.audit.observation import CHOOSING, Chance, Fact, Finding, KnownLaw, Neighbours, OneRun, Scores, Trial

DELTAS: Final = (0.0, 1e-9, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8)
"""Where claims are looked at, beside the delta they are stated at: small noise shows best at large deltas."""

_MOST_CUTS: Final = 200
_FEW_VALUES: Final = 64
_GUESSED: Final = (1.0, 0.5, 0.2, 0.05)
_LEAST_MU: Final = 1e-6
_MOST_MU: Final = Fraction(10**4)
Event = tuple[str, float]
Parts = tuple[tuple[Scores, float], ...]


def judge(audit: str, trials: Sequence[Trial], miss: float) -> list[Finding]:
    """Return what the trials show; all together are wrong with a chance of at most `miss`."""
    each = miss / max(1, len(trials))
    return [_finding(audit, trial, each) for trial in trials]


def _finding(audit: str, trial: Trial, miss: float) -> Finding:
    match trial:
        case Neighbours():
            return _of_neighbours(audit, trial, miss)
        case OneRun():
            return _of_one_run(audit, trial, miss)
        case KnownLaw():
            return _of_known_law(audit, trial, miss)
        case Chance():
            confidence, holds = 1 - miss, trial.chance > miss
        case Fact():
            confidence, holds = 1.0, trial.holds
    return Finding(
        audit=audit,
        view=trial.view,
        test=trial.kind,
        holds=holds,
        confidence=confidence,
        runs=trial.runs,
        text=trial.text,
    )


def _of_neighbours(audit: str, trial: Neighbours, miss: float) -> Finding:
    train = int(CHOOSING * min(len(trial.one), len(trial.other)))
    claims = _claims(trial.cost, trial.delta) if trial.curve is None else dict(trial.curve)
    # two events that are chosen and the thresholds that were fixed, two bounds on each of two chances
    each = miss / (4 * (2 + len(trial.cuts)))
    halves = [(side[:train], side[train:]) for side in (trial.one, trial.other)]
    chosen = _chosen(halves[0], halves[1], claims, trial.delta, each)
    judged = [(event, halves[0][1], halves[1][1]) for event in chosen]
    judged += [((">=", cut), trial.one, trial.other) for cut in trial.cuts]
    boxes = [box for event, one, other in judged for box in _boxes(event, one, other, each)]
    return _from_boxes(audit, trial, boxes, claims, miss)


def _boxes(event: Event, one: Scores, other: Scores, miss: float) -> list[Box]:
    """Return the least chance of an event under one table and the most under the other, for it and its complement."""
    sides = [(int(_met(event, side).sum()), len(side)) for side in (one, other)]
    sides += [(tries - hits, tries) for hits, tries in sides]
    return [
        (least_chance(*sides[here], miss), most_chance(*sides[there], miss))
        for here, there in ((0, 1), (1, 0), (2, 3), (3, 2))
    ]


def _claims(cost: Cost, delta: float) -> dict[float, float]:
    """Return every epsilon that is claimed, by delta."""
    claims = {each: claimed(cost, each) for each in {*DELTAS, delta}}
    return {each: epsilon for each, epsilon in claims.items() if epsilon < inf}


def _from_boxes(audit: str, trial: Neighbours, boxes: list[Box], claims: dict[float, float], miss: float) -> Finding:
    shown = {delta: max(epsilon_shown(*box, delta) for box in boxes) for delta in {*claims, trial.delta}}
    runs = len(trial.one) + len(trial.other)
    part = refuted_part(trial.cost, boxes, claims) if trial.curve is None else None
    return _compared(audit, trial, shown, claims, miss=miss, runs=runs, part=part)


def _compared(
    audit: str,
    trial: Neighbours | KnownLaw,
    shown: dict[float, float],
    claims: dict[float, float],
    *,
    miss: float,
    runs: int,
    part: float | None,
) -> Finding:
    """Hold what is shown at every delta, and of the whole charge, against what is claimed."""
    tight = max(claims, key=lambda delta: (_share(shown[delta], claims[delta]), -delta))
    # where nothing shows anywhere, or the claim breaks there, the stated delta is the one to speak of
    if shown[tight] == 0 or shown[trial.delta] > claims.get(trial.delta, inf):
        tight = trial.delta
    return Finding(
        audit=audit,
        view=trial.view,
        test="neighbours" if isinstance(trial, Neighbours) else "known law",
        holds=(part or 0.0) <= 1 and all(shown[delta] <= epsilon for delta, epsilon in claims.items()),
        confidence=1 - miss,
        runs=runs,
        epsilon=claims.get(trial.delta),
        delta=trial.delta,
        shown=shown[trial.delta],
        tight_delta=tight,
        tight_epsilon=claims.get(tight),
        tight_shown=shown[tight],
        part=part,
        part_shown=part_epsilon(trial.cost, part, trial.delta) if part else 0.0,
    )


def _of_known_law(audit: str, trial: KnownLaw, miss: float) -> Finding:
    """Bound the noise from above by its sum of squares, hence mu from below, hence epsilon at every delta.

    All kinds of noise together have one bound, if the two numbers of each are in units of its deviation; where one kind
    alone is too small, the sum of the bounds of each shows it.
    """
    claims = _claims(trial.cost, trial.delta)
    every, away = zip(*trial.parts, strict=True)
    together: Parts = ((np.concatenate(every), float(np.linalg.norm(away))),)
    ways = (together, trial.parts) if len(trial.parts) > 1 else (together,)
    mu_squared = min(float(_MOST_MU), max(_mu_squared(way, miss / len(ways)) for way in ways))
    shown = {delta: _of_mu(mu_squared, delta) for delta in {*claims, trial.delta}}
    charged = 2 * (trial.cost.gaussian + trial.cost.rho) / PICO
    part = mu_squared / charged if charged else 0.0
    return _compared(audit, trial, shown, claims, miss=miss, runs=trial.runs, part=part)


def _mu_squared(parts: Parts, miss: float) -> float:
    total = 0.0
    for noise, away in parts:
        most = float((noise**2).sum()) / float(stats.chi2.ppf(miss / len(parts), noise.size))
        total += away**2 / max(most, 1e-300)
    return total


def _of_mu(mu_squared: float, delta: float) -> float:
    """Return the epsilon at delta of two normal laws, rounded down; without delta nothing is shown."""
    if delta <= 0 or mu_squared < _LEAST_MU:
        return 0.0
    found = gaussian_epsilon(min(exact(mu_squared), _MOST_MU), exact(delta))
    return max(0.0, float(found) * (1 - 1e-9))


def _share(shown: float, claim: float) -> float:
    """Return how much of a claim is shown."""
    return shown / claim if claim > 0 else (inf if shown > 0 else 0.0)


def _chosen(
    one: tuple[Scores, Scores], other: tuple[Scores, Scores], claims: dict[float, float], delta: float, miss: float
) -> list[Event]:
    """Return the events whose bounds promise most: at the stated delta, and beside a claim at any delta.

    The rates of the first part of the runs stand in for those of the second, at its size and at the chance to miss.
    """
    events = _events(np.concatenate([one[0], other[0]]))
    if not events or not claims:
        return []
    least, most = [], []
    for first, rest in (one, other):
        hits = _counts(events, first)
        for met in (hits, len(first) - hits):
            # one more success and one more failure, so that a few runs do not promise the impossible
            expected = (met + 1) / (len(first) + 2) * len(rest)
            least.append(np.asarray(stats.beta.ppf(miss, expected, len(rest) - expected + 1)))
            most.append(np.asarray(stats.beta.isf(miss, expected + 1, len(rest) - expected)))
    pairs = [(least[here], most[there]) for here, there in ((0, 2), (2, 0), (1, 3), (3, 1))]
    at_delta = _best(pairs, delta)
    beside = np.max([_best(pairs, each) - claim for each, claim in claims.items()], axis=0)
    return list(dict.fromkeys([events[int(np.argmax(at_delta))], events[int(np.argmax(beside))]]))


def _best(pairs: Sequence[tuple[Scores, Scores]], delta: float) -> Scores:
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [np.where(low > delta, np.log((low - delta) / high), -inf) for low, high in pairs]
    return np.asarray(np.max(found, axis=0))


def _counts(events: Sequence[Event], scores: Scores) -> Scores:
    """Return how many scores meet each event."""
    ordered = np.sort(scores)
    cuts = np.array([cut for _, cut in events])
    above = len(ordered) - np.searchsorted(ordered, cuts, side="left")
    equal = np.searchsorted(ordered, cuts, side="right") - np.searchsorted(ordered, cuts, side="left")
    return np.where([kind == ">=" for kind, _ in events], above, equal).astype(np.float64)


def _events(scores: Scores) -> list[Event]:
    values = np.unique(scores)
    cuts = values if len(values) <= _MOST_CUTS else np.quantile(scores, np.linspace(0.005, 0.995, _MOST_CUTS))
    events: list[Event] = [(">=", float(cut)) for cut in cuts]
    if len(values) <= _FEW_VALUES:
        events += [("==", float(value)) for value in values]
    return events


def _met(event: Event, scores: Scores) -> NDArray[np.bool_]:
    return np.asarray(scores >= event[1] if event[0] == ">=" else scores == event[1])


def _of_one_run(audit: str, trial: OneRun, miss: float) -> Finding:
    order = np.argsort(-np.abs(trial.scores), kind="stable")
    right = np.sign(trial.scores[order]) == trial.coins[order]
    canaries, claim = len(order), claimed(trial.cost, trial.delta)
    shown = 0.0
    for share in _GUESSED:
        guesses = max(1, int(share * canaries))
        found = one_run_epsilon(
            canaries=canaries,
            guesses=guesses,
            right=int(right[:guesses].sum()),
            delta=trial.delta,
            miss=miss / len(_GUESSED),
        )
        shown = max(shown, found)
    return Finding(
        audit=audit,
        view=trial.view,
        test="one run",
        holds=shown <= claim,
        confidence=1 - miss,
        runs=1,
        text=f"{canaries} canaries",
        epsilon=claim,
        delta=trial.delta,
        shown=shown,
        tight_delta=trial.delta,
        tight_epsilon=claim,
        tight_shown=shown,
        part=shown / claim if 0 < claim < inf else 0.0,
        part_shown=shown,
    )


def broken(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings whose claim does not hold."""
    return [finding for finding in findings if not finding.holds]
