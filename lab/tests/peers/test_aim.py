"""AIM and AIM-GDP over our inference: weights, what they spend, and a model that finds what pairs and triples show."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.data import Domain
from syndic_lab.peers import aim as peer_aim
from syndic_lab.peers.aim import Settings, aim, weights_of
from syndic_lab.peers.ask import script_of
from syndic_lab.peers.run import LIBRARIES


def test_a_candidate_weighs_the_columns_it_shares_with_the_workload() -> None:
    domain = Domain(("a", "b", "c", "d"), (2, 3, 2, 2))
    weights = weights_of(domain, 3)
    workload = [set(one) for size in (2, 3) for one in itertools.combinations(domain.names, size)]
    assert len(weights) == 4 + 6 + 4
    for names, weight in weights.items():
        assert weight == sum(len(set(names) & each) for each in workload)


def exclusive_or() -> tuple[dict[str, NDArray[np.int64]], Domain]:
    draws = np.random.default_rng(1)
    a, b, d = (draws.integers(0, 2, 5000) for _ in range(3))
    return {"a": a, "b": b, "c": a ^ b, "d": d}, Domain(("a", "b", "c", "d"), (2, 2, 2, 2))


@pytest.mark.parametrize("gaussian", [False, True])
def test_it_finds_a_relation_of_three_columns_and_keeps_to_its_size(gaussian: bool) -> None:
    codes, domain = exclusive_or()
    model = aim(codes, domain, Settings(0.5, gaussian), seed=2)
    table = model.marginal(("a", "b", "c")).values / model.total
    even = sum(table[i, j, i ^ j] for i, j in itertools.product(range(2), repeat=2))
    assert even > 0.95
    small = aim(codes, domain, Settings(0.5, gaussian, megabytes=5 * 8 / 2**20), seed=2)
    assert small.tree.cells <= 8


@pytest.mark.parametrize("gaussian", [False, True])
def test_all_noise_together_costs_rho(gaussian: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    spent: dict[str, float] = {"measure": 0.0, "noisy_errors": 0.0, "exponential": 0.0}
    measure, noisy, exponential = peer_aim.measure, peer_aim.noisy_errors, peer_aim._exponential

    def measured(counts: Any, names: Any, rho: float, draws: Any) -> Any:
        spent["measure"] += rho
        return measure(counts, names, rho, draws)

    def scored(truth: Any, model: Any, sets: Any, rho: float, draws: Any) -> Any:
        spent["noisy_errors"] += rho
        return noisy(truth, model, sets, rho, draws)

    def chosen(scores: Any, epsilon: float, sensitivity: float, draws: Any) -> Any:
        spent["exponential"] += epsilon**2 / 8
        return exponential(scores, epsilon, sensitivity, draws)

    monkeypatch.setattr(peer_aim, "measure", measured)
    monkeypatch.setattr(peer_aim, "noisy_errors", scored)
    monkeypatch.setattr(peer_aim, "_exponential", chosen)
    aim(*exclusive_or(), Settings(0.5, gaussian), seed=3)
    assert sum(spent.values()) == pytest.approx(0.5)
    assert (spent["noisy_errors"] > 0, spent["exponential"] > 0) == (gaussian, not gaussian)


def test_noise_of_scores_is_that_of_their_number() -> None:
    codes, domain = exclusive_or()
    truth = {names: peer_aim.count(codes, domain, names) for names in weights_of(domain, 3)}
    model = aim(codes, domain, Settings(0.5), seed=2)
    exact = peer_aim.errors_of(truth, model, list(truth))
    draws = np.random.default_rng(4)
    off = [
        noisy - exact[names]
        for _ in range(300)
        for names, noisy in peer_aim.noisy_errors(truth, model, list(truth), 0.5, draws).items()
    ]
    # rho 0.5 is mu 1, over 14 candidates
    assert np.std(off) == pytest.approx(14**0.5, rel=0.05)


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_library_has_its_script(name: str) -> None:
    assert script_of(name).is_file()
