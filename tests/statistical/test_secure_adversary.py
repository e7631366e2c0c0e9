"""Curious roles try to tell two neighbouring inputs apart from everything they saw, and planted faults are found.

Each pair of inputs is the worst one and the attacker knows everybody else. It bets on the most telling event; the
lower confidence bound (Clopper and Pearson, exact) on the epsilon that the event shows must not exceed the claim. Some
hundred runs of a whole protocol show an epsilon only if a fault is gross; too little noise is found by its variance.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from products import product_of
from syndic.data import Domain, Schema
from syndic.document import from_builtins, to_builtins
from syndic.mpc.masked_sum import Masks, SumMasked
from syndic.mpc.triple import Stock
from syndic.noise import GaussianShare
from syndic.random import SystemRandomness
from syndic.study import Study
from syndic_lab.bench.open_vertical import CodedTable, OpenCarrier, OpenVertical

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

TRIES = 200  # more than any planted fault below needs to be found
MISS = 1e-7  # chance that one confidence bound is wrong
EPSILON, DELTA = 1.0, 0.01

Rows = tuple[tuple[int, ...], ...]  # for each party, the value of every person
ONE: Rows = ((1, 0, 1), (1, 0, 1), (1, 0, 1))
OTHER: Rows = ((0, 0, 1), (0, 0, 1), (0, 0, 1))


@dataclass(frozen=True)
class Run:
    """One run: the published tables, and what the carrier and the parties have."""

    study: Study
    result: Any
    carrier: OpenCarrier


def study_for(parties: int, *, vertical: bool = True, **options: Any) -> Study:
    """Return a study of tables: of all pairs of columns at different parties, or of one column that all have."""
    names = [f"c{place}" for place in range(parties)]
    members = [
        {"name": f"p{place}", "people": 3, **({"columns": [names[place]]} if vertical else {})}
        for place in range(parties)
    ]
    content = {
        "name": "audit",
        "unit": {"neighbours": "replace"},
        "budget": {"epsilon": EPSILON, "delta": DELTA},
        "protocol": {
            "method": "marginals",
            **({"cliques": list(combinations(names, 2))} if vertical else {}),
            **options,
        },
        "parties": members,
        "schema": to_builtins(Schema.from_domain(dict.fromkeys(names if vertical else ["c"], 2))),
    }
    return from_builtins(content, Study, where="audit")


def run(study: Study, rows: Rows) -> Run:
    members = {}
    for party, values in zip(study.parties, rows, strict=False):
        column = (party.columns or ("c",))[0]
        members[party.name] = OpenVertical(
            name=party.name,
            plan=study.plan,
            study=study.digest,
            table=CodedTable(Domain.of({column: 2}), {column: np.array(values)}),
            randomness=SystemRandomness(),
        )
    carrier = OpenCarrier(plan=study.plan, study=study.digest, members=members, randomness=SystemRandomness(), seen=[])
    result = study.protocol.coordinate(carrier)  # type: ignore[arg-type]  # stands in for a session
    return Run(study, result, carrier)


Sees = Callable[[Run], float]


@cache
def runs(study: Study, rows: Rows, tries: int) -> tuple[Run, ...]:
    """Return many runs; the sound ones are looked at by several attackers."""
    return tuple(run(study, rows) for _ in range(tries))


def shown(study: Study, sees: Sees, *, pair: tuple[Rows, Rows] = (ONE, OTHER), tries: int = TRIES) -> float:
    """Return a lower bound, right but for 3e-7, on the epsilon at DELTA that the attack shows.

    The threshold is chosen on the first quarter of the runs, so that the bound of the others holds for it.
    """
    trial, rest = [], []
    for rows in pair:
        seen = np.array([sees(each) for each in runs(study, rows, tries)])
        trial.append(seen[: tries // 4])
        rest.append(seen[tries // 4 :])
    cuts = np.unique(np.concatenate(trial))
    best = max(cuts, key=lambda cut: reached(trial[0] >= cut, trial[1] >= cut, 0.1))
    return reached(rest[0] >= best, rest[1] >= best, MISS)


def reached(hits: NDArray[np.bool_], false_hits: NDArray[np.bool_], miss: float) -> float:
    true, false, tries = int(hits.sum()), int(false_hits.sum()), len(hits)
    low = stats.beta.ppf(miss, true, tries - true + 1) if true else 0.0
    high = stats.beta.ppf(1 - miss, false + 1, tries - false) if false < tries else 1.0
    return float(np.log(max(low - DELTA, 1e-9) / high))


def less_noise(monkeypatch: pytest.MonkeyPatch, factor: int) -> None:
    """Plant a fault: shares with a part of the variance that they should have."""
    whole: Any = GaussianShare.__dict__["sigma_squared"].fget
    monkeypatch.setattr(GaussianShare, "sigma_squared", property(lambda share: whole(share) / factor))


def telling(values: NDArray[np.int64]) -> float:
    """Return the count that the person adds to less the one that she leaves."""
    return float(values.ravel()[-1] - values.ravel()[0])


def coordinator(seen: Run) -> float:
    return float(sum(telling(table.values) for table in seen.result.tables))


def parties(*names: str) -> Sees:
    """Return what some parties make of the release after they took off the noise that they drew themselves."""

    def sees(seen: Run) -> float:
        noise = sum(seen.carrier.members[name].drawn[0].reshape(-1, 4) for name in names)
        total = 0.0
        for place, table in enumerate(seen.result.tables):
            if not {f"p{name[1:]}" for name in table.domain.names} <= set(names):
                total += telling(table.values.ravel() - np.asarray(noise)[place])
        return total

    return sees


# proofs change no noise, and cost most of the time; `syndic audit` attacks the study with proofs
SOUND = study_for(2, adversary="passive")


def planted(edition: int) -> Study:
    """Return a study like the sound one: plans and runs are kept, and faults are planted in those of this edition."""
    return msgspec.structs.replace(SOUND, edition=edition)


@pytest.mark.parametrize("sees", [coordinator, parties("p1")], ids=["coordinator", "partner"])
def test_curious_roles_stay_within_epsilon(sees: Sees) -> None:
    assert shown(SOUND, sees) <= EPSILON


def test_all_other_parties_together_stay_within_epsilon() -> None:
    study = study_for(3, colluding=2, adversary="passive")
    assert shown(study, parties("p1", "p2")) <= EPSILON


@pytest.mark.parametrize("sees", [coordinator, parties("p1")], ids=["coordinator", "partner"])
def test_nearly_no_noise_is_caught(sees: Sees, monkeypatch: pytest.MonkeyPatch) -> None:
    less_noise(monkeypatch, 200)
    assert shown(planted(3), sees) > EPSILON


def left_noise(study: Study, tries: int) -> float:
    """Return the variance of what is left of the noise for a partner, over what the claim needs, from below."""
    plan: Any = study.plan
    needed = float(plan.noise.sensitivity_squared / (2 * plan.noise.rho))
    noise = [
        each.result.tables[0].values.ravel() - each.carrier.members["p1"].drawn[0] - [1, 0, 0, 2]
        for each in runs(study, ((0, 1, 1), (0, 1, 1)), tries)
    ]
    squares = float((np.concatenate(noise) ** 2).sum())
    return squares / stats.chi2.ppf(1 - MISS, 4 * tries) / needed


def test_the_noise_left_for_a_partner_is_what_the_claim_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 200  # half the variance is ten standard deviations below the bound
    slack = stats.chi2.ppf(1 - MISS, 4 * tries) / stats.chi2.ppf(MISS, 4 * tries)
    assert left_noise(SOUND, tries) * slack >= 1
    # half the variance: what shares made for nobody colluding would leave
    less_noise(monkeypatch, 2)
    assert left_noise(planted(2), tries) * slack < 1


def from_shares(seen: Run) -> float:
    """Bet on the rows that explain p0's masked share, from the dealer's own seeds: what was dealt is known to it."""
    sizes = product_of(seen.study).sizes
    log = seen.carrier.seen or []
    seeds = {name: asked.seed for step, name, asked, _ in log if step == "product_keys"}
    stocks = {name: Stock(seed=seed, study=seen.study.digest, party=name, sizes=sizes) for name, seed in seeds.items()}
    reply = next(reply for step, name, _, reply in log if step == "count" and name == "p0")
    share = sizes.ring.unpack(reply.values, 4)
    misses = []
    for rows in (ONE, OTHER):
        left, right = (1 - np.array(rows[place])[:, None] for place in (0, 1))  # level 0 is sent
        product = left.T @ (right - stocks["p1"].mask(0, 1).astype(np.int64)) + stocks["p0"].half("p1", 0, (1, 1))
        expected = sizes.ring.reduce(product)[0, 0]
        misses.append(abs(int(sizes.ring.lift(sizes.ring.subtract(share[:1], np.array([expected])))[0])))
    return float(misses[1] - misses[0])


def test_a_dealer_learns_nothing_from_single_shares() -> None:
    assert shown(SOUND, from_shares) <= 0.1


def test_shares_without_the_masks_of_the_sum_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def bare(self: Masks, values: Any) -> SumMasked:
        return SumMasked(values=self.ring.pack(self.ring.reduce(values)))

    monkeypatch.setattr(Masks, "hide", bare)
    # a share tells most where its noise is small
    monkeypatch.setattr(GaussianShare, "draw", lambda *given: np.zeros(given[1], dtype=np.int64))
    assert shown(planted(4), from_shares) > EPSILON


def opening_of(seen: Run) -> NDArray[np.int64]:
    """Return p0's masked rows, which p1 can open."""
    sizes = product_of(seen.study).sizes
    mask = next(
        Stock(seed=asked.seed, study=seen.study.digest, party=name, sizes=sizes).mask(0, 1)
        for step, name, asked, _ in seen.carrier.seen or []
        if step == "product_keys" and name == "p0"
    )
    rows = 1 - np.array(seen.carrier.members["p0"].table.codes["c0"])[:, None]
    opened: NDArray[np.int64] = sizes.ring.lift(sizes.ring.subtract(sizes.ring.reduce(rows), mask))
    return opened


def remembering(before: NDArray[np.int64]) -> Sees:
    """Return a partner that kept the masked rows of an earlier run on rows it knows."""
    return lambda seen: float((opening_of(seen) != before).sum() == 0)


def test_masked_rows_tell_a_partner_nothing() -> None:
    one, other = ([float(opening_of(each)[0, 0]) for each in runs(SOUND, rows, TRIES)] for rows in (ONE, OTHER))
    assert stats.ks_2samp(one, other).pvalue > MISS


def test_a_reused_mask_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(SOUND, remembering(opening_of(run(SOUND, ONE)))) <= EPSILON
    fresh = Stock.mask
    monkeypatch.setattr(Stock, "mask", lambda self, chunk, columns: 0 * fresh(self, chunk, columns) + 3)
    study = planted(5)
    assert shown(study, remembering(opening_of(run(study, ONE))), tries=120) > EPSILON


# The masked sum: four parties hold different people, the coordinator pools what it knows with two of them.

PEOPLE: tuple[Rows, Rows] = (((1, 0, 1), (0, 1, 0), (0, 0, 1), (1, 1, 1)), ((0, 0, 1), (0, 1, 0), (0, 0, 1), (1, 1, 1)))


def pooled(*names: str) -> Sees:
    def sees(seen: Run) -> float:
        values: NDArray[np.int64] = seen.result.tables[0].values.copy()
        for name in names:
            values -= seen.carrier.members[name].drawn[0]
        return telling(values)

    return sees


def test_coordinator_and_as_many_parties_as_allowed_stay_within_epsilon() -> None:
    study = study_for(4, vertical=False, colluding=2)
    assert shown(study, pooled("p1", "p2"), pair=PEOPLE) <= EPSILON


def test_nearly_no_noise_in_a_masked_sum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    less_noise(monkeypatch, 200)
    study = study_for(4, vertical=False, colluding=2, cell_cap=99)
    assert shown(study, pooled("p1", "p2"), pair=PEOPLE, tries=160) > EPSILON
