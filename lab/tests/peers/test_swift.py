"""SWIFT over our inference: its tree of cliques, its choice of tables, what it spends and what it finds."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from syndic.data import Domain
from syndic.model.markov import plan_tree
from syndic_lab.peers import aim as peer_aim
from syndic_lab.peers import swift as peer_swift
from syndic_lab.peers.swift import Settings, best_tree, grown, swift, worth_measuring

DOMAIN = Domain(("a", "b", "c", "d", "e"), (2, 3, 4, 5, 6))


@pytest.mark.parametrize("cells", [30, 60, 120, 720])
def test_a_grown_tree_is_chordal_and_keeps_to_its_size(cells: int) -> None:
    pairs = [frozenset(pair) for pair in itertools.combinations(DOMAIN.names, 2)]
    for seed in range(20):
        order = [pairs[place] for place in np.random.default_rng(seed).permutation(len(pairs))]
        nodes = grown(DOMAIN, order, cells)
        assert max(DOMAIN.project(node).size for node in nodes) <= cells
        # nothing has to be filled in: the nodes are the cliques of a junction tree
        planned = {frozenset(clique) for clique in plan_tree(DOMAIN, [tuple(sorted(node)) for node in nodes]).cliques}
        assert planned == {node for node in nodes if not any(node < other for other in nodes)}
    assert len(grown(DOMAIN, pairs, 720)) == 1


def test_the_worst_pairs_are_in_the_tree() -> None:
    errors: dict[tuple[str, ...], float] = dict.fromkeys(itertools.combinations(DOMAIN.names, 2), 1.0)
    errors[("a", "c")] = errors[("c", "e")] = errors[("b", "d")] = 100.0
    nodes = best_tree(DOMAIN, errors, 30)
    for pair in (("a", "c"), ("c", "e"), ("b", "d")):
        assert any(set(pair) <= node for node in nodes)


def test_tables_are_measured_that_are_worth_their_noise() -> None:
    sets = [("a",), ("a", "b"), ("c", "d"), ("d", "e")]
    weights = {names: float(len(names)) for names in sets}
    errors = {("a",): 0.0, ("a", "b"): 900.0, ("c", "d"): 700.0, ("d", "e"): 3.0}

    def score(shares: dict[tuple[str, ...], float]) -> float:
        noise = math.sqrt(2 / math.pi)
        return sum(
            weights[names] * (errors[names] - noise * DOMAIN.project(names).size / math.sqrt(share * 0.5))
            for names, share in shares.items()
        )

    taken = worth_measuring(DOMAIN, weights, errors, sets, 0.5)
    assert set(taken) == {("a", "b"), ("c", "d")}
    assert sum(taken.values()) == pytest.approx(1)
    # no other division and no other set of tables is better
    for share in np.linspace(0.05, 0.95, 19):
        assert score(taken) >= score({("a", "b"): share, ("c", "d"): 1 - share}) - 1e-9
    assert score(taken) > score({("a", "b"): 1.0})
    assert score(taken) > score(dict.fromkeys(sets, 0.25))


def test_it_keeps_pairs_and_spends_rho(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = np.random.default_rng(1)
    a, d = draws.integers(0, 2, 5000), draws.integers(0, 5, 5000)
    codes = {"a": a, "b": 2 * a, "c": draws.integers(0, 4, 5000), "d": d, "e": d + a}
    spent: list[float] = []

    def measured(counts: Any, names: Any, rho: float, draws: Any) -> Any:
        spent.append(rho)
        return peer_aim.measure(counts, names, rho, draws)

    def scored(truth: Any, model: Any, sets: Any, rho: float, draws: Any) -> Any:
        spent.append(rho)
        return peer_aim.noisy_errors(truth, model, sets, rho, draws)

    monkeypatch.setattr(peer_swift, "measure", measured)
    monkeypatch.setattr(peer_swift, "noisy_errors", scored)
    model = swift(codes, DOMAIN, Settings(0.5), seed=2)
    assert sum(spent) == pytest.approx(0.5)
    pair, triple = (model.marginal(names).values / model.total for names in (("a", "b"), ("a", "d", "e")))
    assert pair[0, 0] + pair[1, 2] > 0.97
    assert sum(triple[i, j, i + j] for i, j in itertools.product(range(2), range(5))) > 0.9
