"""Tables beside MST and AIM: the same coding and budget go in, the same distances come out; and MST's own parts."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from syndic.data import Schema
from syndic.errors import InputError
from syndic.privacy import default_delta, zcdp_epsilon
from syndic_lab.bench.model.synthesis import Found
from syndic_lab.bench.model.synthesis_data import Coded
from syndic_lab.peers import script_mbi as peer_mbi
from syndic_lab.peers import synthesis as peers_synthesis
from syndic_lab.peers.ask import Answer
from syndic_lab.peers.synthesis import Plan


def coded(rows: int) -> Coded:
    draws = np.random.default_rng(3)
    sizes = {"a": 2, "b": 3, "c": 4, "d": 2}
    table = pa.table({name: draws.integers(0, size, rows) for name, size in sizes.items()})
    return Coded("small", Schema.from_domain(sizes), table)


def test_a_library_gets_codes_and_a_budget_and_is_judged_by_what_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    data = coded(500)
    given: dict[str, Any] = {}

    def ask(name: str, settings: dict[str, Any], arrays: dict[str, Any]) -> Answer:
        given.update(settings, name=name, **arrays)
        return Answer({"seconds": 2.5}, arrays["codes"][::-1])

    monkeypatch.setattr(peers_synthesis, "ask", ask)
    found = peers_synthesis.made_by("mbi", Plan("MST", {"steps": 7}), data, "0.8", seed=4)
    assert found.apart == {3: 0.0, 4: 0.0}
    assert (found.seconds, found.rows) == (2.5, 500)
    assert (given["method"], given["steps"], given["seed"], given["delta"]) == ("MST", 7, 4, 1 / 500)
    assert list(given["sizes"]) == [2, 3, 4, 2]
    # no more is given out than epsilon buys
    assert 0.79 < zcdp_epsilon(Fraction(given["rho"]), Fraction(1, 500)) <= 0.8 + 1e-9


def test_a_table_without_all_columns_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_synthesis, "ask", lambda *_: Answer({"seconds": 1.0}, np.zeros((5, 2), dtype=np.int64)))
    with pytest.raises(InputError, match="left no table with the columns of small"):
        peers_synthesis.made_by("dpmm", Plan("MST"), coded(5), "0.8", seed=0)


@pytest.mark.bench
def test_methods_written_here_stand_beside_ours_at_both_deltas(monkeypatch: pytest.MonkeyPatch) -> None:
    data, deltas = coded(400), []

    def ours(_: Coded, epsilon: str, delta: Fraction, seed: int) -> Found:
        deltas.append(delta)
        return Found({3: float(epsilon) * (1 + seed)}, 2.0 + seed, 400)

    monkeypatch.setattr(peers_synthesis, "_adult", lambda: data)
    monkeypatch.setattr(peers_synthesis, "run_ours", ours)
    monkeypatch.setattr(peers_synthesis, "SEEDS", 2)
    monkeypatch.setattr(peers_synthesis, "SLOW_SEEDS", 1)
    monkeypatch.setattr(peers_synthesis, "EPSILONS", ("1", "8"))
    found = list(peers_synthesis.over_our_inference(quick=False))
    assert set(deltas) == {Fraction(1, 400), default_delta(400)}
    assert {row.row.split("beside ")[1] for row in found} == {f"{name}, 1 seeds" for name in peers_synthesis.METHODS}
    assert {(row.metric, row.value) for row in found if "epsilon 1," in row.row and "1," in row.row} == {
        ("tvd3 mean", 1.5),
        ("tvd3 worst", 2.0),
        ("CPU seconds", 2.0),
    }
    # with an epsilon of 8 each of them is nearer to 400 even rows than with 1
    for name in peers_synthesis.METHODS:
        one, eight = (
            [row.baseline or 0 for row in found if f"epsilon {epsilon}," in row.row and f"beside {name}," in row.row]
            for epsilon in ("1", "8")
        )
        assert eight[0] < one[0]


def test_with_much_privacy_to_spend_the_tree_is_the_best_one() -> None:
    draws = np.random.default_rng(5)
    gains: dict[tuple[int, ...], float] = {}
    for pair in itertools.combinations(range(5), 2):
        gains[pair] = float(draws.integers(1, 1000))
    tree = peer_mbi._tree(gains, 5, 1e6, draws)

    def connected(edges: tuple[tuple[int, ...], ...]) -> bool:
        seen = {0}
        for _ in range(5):
            seen |= {name for edge in edges if seen & set(edge) for name in edge}
        return len(seen) == 5

    best = max(sum(gains[e] for e in edges) for edges in itertools.combinations(gains, 4) if connected(edges))
    assert connected(tuple(tree))
    assert sum(gains[edge] for edge in tree) == best


def test_rare_levels_become_one() -> None:
    assert peer_mbi._levels([50.0, 1.0, 40.0, -3.0], 10.0).tolist() == [0, 2, 1, 2]
    assert peer_mbi._levels([50.0, 40.0], 10.0).tolist() == [0, 1]


def test_products_of_tables_are_those_of_einsum() -> None:
    draws = np.random.default_rng(6)
    one, two = draws.random((3, 2)), draws.random((4, 3))
    scope, product = peer_mbi._product([((1, 0), one), ((2, 1), two)])
    assert scope == (0, 1, 2)
    assert np.allclose(product, np.einsum("ba,cb->abc", one, two))
