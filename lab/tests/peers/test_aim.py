"""AIM over our inference: weights of its workload, and a model that finds what pairs and triples show."""

import itertools

import numpy as np
import pytest

from syndic.data import Domain
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


def test_it_finds_a_relation_of_three_columns_and_keeps_to_its_size() -> None:
    draws = np.random.default_rng(1)
    a, b, d = (draws.integers(0, 2, 5000) for _ in range(3))
    codes = {"a": a, "b": b, "c": a ^ b, "d": d}
    domain = Domain(tuple(codes), (2, 2, 2, 2))
    model = aim(codes, domain, Settings(rho=0.5), seed=2)
    table = model.marginal(("a", "b", "c")).values / model.total
    even = sum(table[i, j, i ^ j] for i, j in itertools.product(range(2), repeat=2))
    assert even > 0.95
    small = aim(codes, domain, Settings(rho=0.5, megabytes=5 * 8 / 2**20), seed=2)
    assert small.tree.cells <= 8


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_library_has_its_script(name: str) -> None:
    assert script_of(name).is_file()
