"""Audits of parts: many canaries in one run, noise between two servers, sketches and responses, role by role."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.document import exact
from syndic.methods import Homm, Marginals
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.methods.vertimrf.sketch.cost import phantoms_needed, sketch_cost
from syndic.methods.vertimrf.sketch.encode import People, SketchPlan, encode, person_digests
from syndic.mpc.triple import ProductSizes, dealt_half, left_share, right_share
from syndic.mpc.twoserver import TwoServers
from syndic.noise.binomial import SLACK, binomial_for
from syndic.privacy import Budget, Cost, GaussianEvent
from syndic.random import Randomness
from syndic_lab.audit.horizontal import ADD, PURE, THREE
from syndic_lab.audit.mechanisms import DELTA, Draws
from syndic_lab.audit.observation import Neighbours, OneRun, Trial, numbers
from syndic_lab.audit.rehearsal import Stage
from syndic_lab.audit.setting import COALITION, RELEASE, rows_of, study_of
from syndic_lab.encodings import oracle, oracle_events


def parts() -> Iterator[tuple[str, Draws]]:
    """Yield every part's audit."""
    yield "one run of noisy counts", _one_run_counts
    yield "one run of a masked sum", _one_run_sum
    yield "noise between two servers", _two_servers
    yield "sketches", _sketches
    yield "frequency oracle", _oracle


def canaries(count: int, randomness: Randomness) -> NDArray[np.int64]:
    """Return a fair coin, 1 or -1, for every canary."""
    return 2 * (randomness.words(count) & np.uint64(1)).astype(np.int64) - 1


def _seed(randomness: Randomness) -> int:
    return int(randomness.words(1)[0] >> np.uint64(8))


def _one_run_counts(count: int, randomness: Randomness) -> list[Trial]:
    """Put canaries, each alone in a cell, into one party's table, and guess from the noisy counts who is there."""
    cells = count // 4
    coins = canaries(cells, randomness)
    people = {"a": (cells, None)}
    study = study_of(Homm(), columns=(("x", cells),), parties=people, unit=ADD, budget=Budget.of(1))
    run = Stage(study, {"a": rows_of(x=np.flatnonzero(coins == 1).tolist())}).run(_seed(randomness))
    counts = np.zeros(cells)
    counts[run.result.histograms["a"].cells] = run.result.histograms["a"].counts
    # a count of 1 or more speaks for the canary, and no more so if it is large
    scores = np.where(counts >= 1, 1.0, -1.0)
    return [OneRun(view=RELEASE, coins=coins, scores=scores, cost=study.joint, delta=0.0)]


def _one_run_sum(count: int, randomness: Randomness) -> list[Trial]:
    """The same under masks, with one noise in three shares of which a coalition knows one."""
    cells = count // 10
    coins = canaries(cells, randomness)
    people = dict.fromkeys(THREE, (cells, None))
    protocol = Marginals(noise="laplace", cliques=(("x",),), cell_cap=cells)
    study = study_of(protocol, columns=(("x", cells),), parties=people, unit=ADD, budget=PURE)
    sources = {"a": rows_of(x=np.flatnonzero(coins == 1).tolist()), "b": rows_of(x=[]), "c": rows_of(x=[])}
    run = Stage(study, sources).run(_seed(randomness))
    opened = run.result.tables[0].values.ravel()
    less = opened - run.own_noise("b", study.plan_as(MarginalsPlan).noise, cells)
    return [
        OneRun(view=view, coins=coins, scores=np.where(seen >= 1, 1.0, -1.0), cost=study.joint, delta=0.0)
        for view, seen in (
            (RELEASE, opened),
            (COALITION, less),
        )
    ]


# Noise between two servers.


def _tossed(
    agreed: TwoServers, coins: NDArray[np.int64], sizes: ProductSizes, randomness: Randomness
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return both servers' shares of one value's fresh noise, and what the first one's coins alone come to."""
    field, weights = agreed.field, coins[:, None]
    one, two = ((randomness.words(weights.size) & np.uint64(1)).astype(np.int64)[:, None] for _ in agreed.servers)
    masks = [field.reduce(randomness.words(weights.size))[:, None] for _ in agreed.servers]
    opened = [field.subtract(field.reduce(own), mask) for own, mask in zip((one, two), masks, strict=True)]
    half = field.reduce(randomness.words(1))[:, None]
    left, right = (field.reduce(weights * each.astype(np.int64)) for each in (masks[0], opened[0]))
    products = (
        left_share(weights * one, opened[1], half, sizes),
        right_share(right, masks[1], dealt_half(left, masks[1], half, field), sizes),
    )
    first, second = (
        (weights * own).sum(axis=0) - 2 * product[0].astype(np.int64)
        for own, product in zip((one, two), products, strict=True)
    )
    return first - agreed.noise.mean, second, (weights * one).sum(axis=0) - agreed.noise.mean


def _two_servers(count: int, randomness: Randomness) -> list[Trial]:
    """Look at sums 0 and `shift` as anyone and as either server sees them."""
    draws, shift, event = count // 12, 5, GaussianEvent(mu_squared=Fraction(1, 4), slack=SLACK)
    noise = binomial_for(((shift, 1),), event.mu_squared)
    agreed = TwoServers(servers=("a", "b"), dimension=1, largest=shift, noise=noise)
    coins, sizes = np.array(noise.coins), agreed.product.sizes
    views: dict[str, list[NDArray[np.int64]]] = {}
    for total in (shift, 0):
        drawn = [_tossed(agreed, coins, sizes, randomness) for _ in range(draws)]
        one, two, own = (np.concatenate(each) for each in zip(*drawn, strict=True))
        opened = total + one + two
        for name, seen in {
            RELEASE: opened,
            "first server, less its share of the noise": opened - one,
            "first server, less its coins": opened - own,
            "second server, less its share of the noise": opened - two,
        }.items():
            views.setdefault(name, []).append(agreed.field.lift(agreed.field.reduce(seen)))
    cost, delta = Cost.of([event]), DELTA
    return [
        Neighbours(view=name, one=numbers(one), other=numbers(other), cost=cost, delta=delta, cuts=(shift / 2,))
        for name, (one, other) in views.items()
    ]


# Sketches and responses.


def sketch_plan() -> SketchPlan:
    """Return sketches with enough phantoms for two columns under one key."""
    return phantoms_needed(
        SketchPlan(phantoms=1, floor=1, repetitions=20), columns=2, epsilon=0.9, delta=0.9 * DELTA, points=2**16
    )


def sketch_trials(plan: SketchPlan, columns: int, tries: int, randomness: Randomness, cost: Cost) -> list[Trial]:
    """Tell from the sketches of one person's values whether the person is there; nobody else has these values."""
    seen = [[_sketch_lean(plan, columns, there, randomness) for _ in range(tries)] for there in (True, False)]
    return [
        Neighbours(view="anyone without the key", one=numbers(seen[0]), other=numbers(seen[1]), cost=cost, delta=DELTA)
    ]


def _sketch_lean(plan: SketchPlan, columns: int, there: bool, randomness: Randomness) -> float:
    key, rows = randomness.bytes(16), int(there)
    person = People(person_digests(key, [b"ann"])[:rows], np.zeros((rows, columns), dtype=np.int64))
    ranks = encode(plan, key, [person], [1] * columns, randomness, threads=1).astype(np.int64)
    return float(log_ratios(plan, ranks).sum())


def log_ratios(plan: SketchPlan, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log P(ranks, person there) / P(ranks, not there), a sum over the person's rank, by repetition."""
    levels = np.arange(plan.floor - 1, plan.top + 1)
    upto = np.where(levels >= plan.top, 1.0, (1 - 2.0**-levels) ** plan.phantoms)
    upto[0] = 0.0  # raised to the floor
    shown = np.diff(upto)[ranks - plan.floor]
    # an own rank up to the floor changes nothing, and none is above the smallest that is shown
    ratio = np.full(len(ranks), 1 - 2.0**-plan.floor)
    smallest = ranks.min(axis=1)
    for own in range(plan.floor + 1, int(smallest.max()) + 1):
        rows = smallest >= own
        chance = 2.0 ** (1 - own) if own == plan.top else 2.0**-own
        factors = np.where(ranks[rows] == own, upto[own - plan.floor + 1] / shown[rows], 1.0)
        ratio[rows] += chance * np.prod(factors, axis=1)
    return np.asarray(np.log(ratio))


def _sketches(count: int, randomness: Randomness) -> list[Trial]:
    plan = sketch_plan()
    event = sketch_cost(plan, columns=2, epsilon=Fraction(1), delta=exact(DELTA), neighbours="add_remove")
    return sketch_trials(plan, 2, count // 200, randomness, Cost.of([event]))


def _oracle(count: int, randomness: Randomness) -> list[Trial]:
    """Tell two people's whole rows apart from every code by randomised response."""
    responses = oracle([2, 3, 4], PURE)
    seen = []
    for person in (0, 1):
        codes = [response.apply(np.full(count // 3, person), randomness) for response in responses]
        leans = [
            float(one.epsilon) * ((code == 0) * 1.0 - (code == 1)) for one, code in zip(responses, codes, strict=True)
        ]
        seen.append(np.sum(leans, axis=0))
    cost = Cost.of(oracle_events(responses))
    return [Neighbours(view="anyone with the answers", one=seen[0], other=seen[1], cost=cost, delta=0.0)]
