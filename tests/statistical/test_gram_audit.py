"""The opened Gram matrix: its noise has the stated law, and intervals cover the truth.

`syndic audit` tries to tell neighbours apart by the same sums.
"""

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from syndic.data import Domain, Schema
from syndic.document import from_builtins, to_builtins
from syndic.methods.regression.gram_plan import GramPlan
from syndic.model.gram.fit import infer
from syndic.model.gram.matrix import GramMatrix
from syndic.privacy import gaussian_epsilon
from syndic.random import SystemRandomness
from syndic.study import Study
from syndic_lab.bench.open_vertical import CodedTable, OpenCarrier, OpenVertical
from syndic_lab.bench.regression import accuracy

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

EPSILON, DELTA = 1.0, 0.01
TRIES = 120
Rows = tuple[tuple[int, ...], ...]  # for each party the values, 0 to 2, of three people
ONE: Rows = ((2, 0, 1), (2, 0, 1), (2, 0, 1))
OTHER: Rows = ((0, 0, 1), (2, 0, 1), (0, 0, 1))


def study_for(parties: int, **options: Any) -> Study:
    names = [f"c{place}" for place in range(parties)]
    content = {
        "name": "audit",
        "unit": {"neighbours": "replace"},
        "budget": {"epsilon": EPSILON, "delta": DELTA},
        "protocol": {"method": "gram", "bits": 6, "scaling": 0.0, **options},
        "parties": [{"name": f"p{place}", "people": 3, "columns": [names[place]]} for place in range(parties)],
        "schema": to_builtins(Schema.from_domain(dict.fromkeys(names, 3))),
    }
    return from_builtins(content, Study, where="audit")


def opened(
    study: Study, rows: Rows, *, noisy: bool = True, seen: list[tuple[str, str, Any, Any]] | None = None
) -> NDArray[np.int64]:
    """Return the opened sums."""
    members = {}
    for party, values in zip(study.parties, rows, strict=False):
        (column,) = party.columns or ()
        members[party.name] = OpenVertical(
            name=party.name,
            plan=study.plan,
            study=study.digest,
            table=CodedTable(Domain.of({column: 3}), {column: np.array(values)}),
            randomness=SystemRandomness(),
            noisy=noisy,
        )
    carrier: Any = OpenCarrier(
        plan=study.plan, study=study.digest, members=members, randomness=SystemRandomness(), seen=seen
    )
    result: Any = study.protocol.coordinate(carrier)
    sums: NDArray[np.int64] = result.sums
    return sums


def deviation(study: Study) -> float:
    return study.plan_as(GramPlan).sigma * 4**6


@pytest.mark.parametrize(("parties", "adversary"), [(2, "active"), (3, "passive")])
def test_the_noise_is_gaussian_of_the_stated_size_and_independent(parties: int, adversary: str) -> None:
    study = study_for(parties, adversary=adversary)
    exact = opened(study, ONE, noisy=False)
    noise = np.array([opened(study, ONE) - exact for _ in range(TRIES)]) / deviation(study)
    squares = float((noise**2).sum())
    assert stats.chi2.ppf(1e-7, noise.size) < squares < stats.chi2.ppf(1 - 1e-7, noise.size)
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-7
    together = noise.T @ noise / np.sqrt(TRIES)
    off = together[np.triu_indices(noise.shape[1], 1)]
    assert np.abs(off).max() < stats.norm.ppf(1 - 1e-7 / off.size) * 1.3


def test_a_single_share_looks_uniform_to_the_coordinator() -> None:
    study = study_for(3)
    plan = study.plan_as(GramPlan)
    ring, count = plan.masked_sum.ring, plan.masked_sum.count
    shares = []
    for _ in range(60):
        seen: list[tuple[str, str, Any, Any]] = []
        opened(study, ONE, seen=seen)
        answers = [ring.unpack(answer.values, count) for step, _, _, answer in seen if step == "add_up"]
        assert len(answers) == 3
        # one party's share, and two parties' together: without the last mask nothing opens
        shares.append(np.concatenate([answers[0], ring.add(answers[0], answers[1])]))
    bits = (np.array(shares).astype(np.uint64).ravel()[:, None] >> np.arange(ring.bits, dtype=np.uint64)) & np.uint64(1)
    for column in bits.T:
        ones = int(column.sum())
        assert stats.binomtest(ones, len(column)).pvalue > 1e-8


def test_the_sums_are_exact_before_noise() -> None:
    study = study_for(3)
    rows = np.array(ONE).T - 1.0
    full = np.column_stack([np.ones(3), rows])
    exact = opened(study, ONE, noisy=False)
    gram = full.T @ full
    assert (exact / 4**6).tolist() == gram[np.triu_indices(4)][1:].tolist()


def test_the_charge_is_that_of_the_noise() -> None:
    study = study_for(3)
    away = opened(study, ONE, noisy=False) - opened(study, OTHER, noisy=False)
    # the exact curve of Gaussian noise at this pair's own distance is below the budget
    mu = float(np.linalg.norm(away)) / deviation(study)
    mu_squared = study.plan_as(GramPlan).noise.mu_squared
    assert gaussian_epsilon(mu_squared, study.delta) <= EPSILON
    assert mu**2 <= float(mu_squared)


@pytest.mark.parametrize(
    ("cut", "parties", "options"), [("vertical", 2, {}), ("horizontal", 5, {}), ("vertical", 2, {"target": "y"})]
)
def test_intervals_of_rescaled_numbers_cover_the_truth(cut: str, parties: int, options: dict[str, Any]) -> None:
    generator = np.random.default_rng(3)
    names, tries, covered = [*(f"c{place}" for place in range(5)), "y"], 300, np.zeros(5)
    study = accuracy.study_of(20_000, names, cut, parties, 1.0, options)
    slopes = np.array([0.5, -0.4, 0.3, 0.0, 0.0])
    for _ in range(tries):
        x = generator.standard_normal((20_000, 5))
        y = x @ slopes + generator.standard_normal(20_000)
        found = infer(accuracy.opened(study, np.clip(np.column_stack([x, y]) / 20 + 0.5, 0, 1), generator), "y")
        assert found.reliable
        bounds = found.intervals(0.95)[1:]
        covered += (bounds[:, 0] <= slopes) & (slopes <= bounds[:, 1])
    assert 0.93 < covered.mean() / tries < 0.975


@pytest.mark.parametrize("options", [{}, {"target": "y"}])
def test_intervals_are_reliable_only_where_a_lone_label_is_hardly_clipped(options: dict[str, Any]) -> None:
    """The bounds are four standard deviations away, so that widths are not too large."""
    generator, names, slopes = np.random.default_rng(4), [*(f"c{place}" for place in range(7)), "y"], [0.5, -0.4, 0.3]
    covered, tries = {4800: 0, 15_000: 0}, 150
    for people in covered:
        study = accuracy.study_of(people, names, "vertical", 2, 2.0, options)
        held = (names[:-1], names[-1:])
        parties = [
            msgspec.structs.replace(one, columns=tuple(own)) for one, own in zip(study.parties, held, strict=True)
        ]
        study = msgspec.structs.replace(study, parties=tuple(parties))
        for _ in range(tries):
            x = generator.standard_normal((people, 7))
            y = x[:, :3] @ slopes + generator.standard_normal(people)
            found = infer(accuracy.opened(study, np.clip(np.column_stack([x, y]) / 8 + 0.5, 0, 1), generator), "y")
            assert found.reliable == (people == 15_000)
            low, high = found.intervals(0.95)[1]
            covered[people] += int(low <= slopes[0] <= high)
    assert covered[4800] < 0.65 * tries < 0.85 * tries < covered[15_000]


@pytest.mark.parametrize(("width", "count", "spread"), [(3, 3000, 0.3), (6, 8000, 0.1), (10, 20_000, 0.2)])
def test_intervals_cover_the_truth(width: int, count: int, spread: float) -> None:
    generator = np.random.default_rng(width)
    names = [*(f"x{place}" for place in range(width)), "y"]
    covered, tries = np.zeros(width + 1), 600
    for number in range(tries):
        slopes = generator.uniform(-0.5, 0.5, width) / np.sqrt(width)
        shape = (count, width)
        x = generator.uniform(-1, 1, shape) if number % 2 else np.clip(generator.normal(0.2, 0.4, shape), -1, 1)
        y = 0.1 + x @ slopes + spread * generator.uniform(-1, 1, count)
        gram = GramMatrix.of(np.column_stack([x, y]), names, sigma=3.73 * (width + 2), generator=generator)
        bounds = infer(gram, "y").intervals(0.95)
        truth = np.concatenate([[0.1], slopes])
        covered += (bounds[:, 0] <= truth) & (truth <= bounds[:, 1])
    # nominal 95 %, and each coefficient of 600 runs within what chance allows
    allowed = stats.binom.ppf(1e-6 / (3 * (width + 1)), tries, 0.945)
    assert covered.min() >= allowed
    assert 0.94 < covered.mean() / tries < 0.965
