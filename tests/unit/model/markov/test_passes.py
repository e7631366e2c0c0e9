"""One step of a model: both sets of loops, every choice of groups and blocks, against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndic.data import Domain, Factor
from syndic.model.markov import kernels as kernels_module
from syndic.model.markov import passes as passes_module
from syndic.model.markov import plan_tree
from syndic.model.markov.clique import cover
from syndic.model.markov.kernels import NUMPY_KERNELS, Kernels, kernels
from syndic.model.markov.measurement import in_order
from syndic.model.markov.passes import Passes
from unit.model.markov.joint import column_sets, domains, expanded

KERNELS = [kernels(), NUMPY_KERNELS]


def marginals(domain: Domain, sets: list[tuple[str, ...]], logs: list[np.ndarray]) -> np.ndarray:
    whole = np.zeros(domain.sizes)
    for names, one in zip(sets, logs, strict=True):
        whole = whole + expanded(Factor(domain.project(names), one), domain)
    weights = np.exp(whole - whole.max())
    shares = Factor(domain, weights / weights.sum())
    return np.concatenate([shares.project(names).values.reshape(-1) for names in sets])


@pytest.mark.parametrize("loops", KERNELS, ids=["compiled", "numpy"])
@given(domains(6), st.data())
@settings(max_examples=40)
def test_steps_add_up_to_the_model_of_the_summed_potentials(
    loops: Kernels, domain: Domain, data: st.DataObject
) -> None:
    drawn = data.draw(column_sets(domain, 6)) or [domain.names[:1]]
    sets = [in_order(domain, names, np.zeros(domain.project(names).sizes))[0] for names in drawn]
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    passes = Passes(plan_tree(domain, sets), sets, loops, 1)
    logs = [generator.normal(size=domain.project(names).sizes) for names in sets]
    found = passes.start(np.concatenate([one.reshape(-1) for one in logs]))
    np.testing.assert_allclose(found, marginals(domain, sets, logs), rtol=1e-9, atol=1e-12)
    begun = passes.log_total
    for _ in range(3):
        moves = [generator.normal(size=one.shape) for one in logs]
        logs = [one + move for one, move in zip(logs, moves, strict=True)]
        found = passes.advance(np.concatenate([one.reshape(-1) for one in moves]))
        np.testing.assert_allclose(found, marginals(domain, sets, logs), rtol=1e-8, atol=1e-12)
    # the mass is that of a fresh start, and what waits is written into the cells
    gained = passes.log_total - begun
    settled = [array.copy() for array in passes.settle()]
    passes.start(np.concatenate([one.reshape(-1) for one in logs]))
    assert passes.log_total - begun == pytest.approx(gained, abs=1e-8)
    for mine, fresh in zip(settled, passes.settle(), strict=True):
        np.testing.assert_allclose(mine, fresh, rtol=1e-8, atol=1e-12)


def test_without_a_compiler_numpy_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ImportError

    monkeypatch.setattr(kernels_module, "compile_loops", missing)
    kernels.cache_clear()
    try:
        assert not kernels().compiled
    finally:
        kernels.cache_clear()


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes_module, "THREADED_CELLS", 1)
    domain = Domain(tuple("abcdef"), (5,) * 6)
    sets = list(itertools.combinations(domain.names, 3))
    logs = np.random.default_rng(0).normal(size=sum(domain.project(names).size for names in sets))
    values = []
    for threads in (1, 3):
        passes = Passes(plan_tree(domain, [domain.names]), sets, kernels(), threads)
        passes.start(np.zeros_like(logs))
        values.append(passes.advance(logs).copy())
        passes.close()
    np.testing.assert_allclose(values[0], values[1], rtol=1e-12)


def test_a_cell_that_is_nearly_impossible_comes_back() -> None:
    domain = Domain(("a",), (2,))
    for loops in KERNELS:
        passes = Passes(plan_tree(domain, []), [("a",)], loops, 1)
        passes.start(np.zeros(2))
        for _ in range(200):
            passes.advance(np.array([-5.0, 0.0]))
        assert 0 < passes.values[0] < 1e-190
        for _ in range(200):
            passes.advance(np.array([5.0, 0.0]))
        assert passes.values[0] == pytest.approx(1)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.data())
def test_every_small_table_lies_in_its_group_and_blocks_are_whole(sizes: list[int], data: st.DataObject) -> None:
    everything = (1 << len(sizes)) - 1
    sets = tuple(data.draw(st.lists(st.integers(0, everything), min_size=1, max_size=8, unique=True)))
    separator = data.draw(st.sampled_from(sets))
    choice = cover(tuple(sizes), sets, separator)
    for one, group in zip(sets, choice.group_of, strict=True):
        assert one & ~choice.groups[group] == 0
    for members in choice.groups:
        assert members & choice.block in (0, choice.block)
        assert not choice.single or separator & ~members == 0
