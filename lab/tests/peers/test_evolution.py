"""Private evolution: votes of nearest rows, their noise, variations, and what it keeps of a relation."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from syndic.data import Domain
from syndic_lab.peers import evolution_rows
from syndic_lab.peers.evolution import Settings, Space, evolve
from syndic_lab.peers.evolution_rows import CIRCLE, Case, agreement_of_sum, mixed

DOMAIN = Domain(("a", "b", "c"), (4, 11, 3))
SETTINGS = Settings(1e9, ordered=frozenset({"b"}))


def test_every_row_votes_for_the_nearest() -> None:
    draws, space = np.random.default_rng(1), Space.of(DOMAIN, SETTINGS)
    people, candidates = space.random(50, draws), space.random(20, draws)
    weights = draws.integers(1, 4, 50)
    for person in people:
        # a category that differs is two coordinates of a third
        far = [2 / 9 * (person[[0, 2]] != one[[0, 2]]).sum() + ((person[1] - one[1]) / 10) ** 2 for one in candidates]
        voted = int(np.argmax(space.votes(person[None], np.array([1]), candidates)))
        assert far[voted] == pytest.approx(min(far), abs=1e-6)
    assert space.votes(people, weights, candidates).sum() == weights.sum()


def test_variations_stay_in_bounds_and_near() -> None:
    draws, space = np.random.default_rng(2), Space.of(DOMAIN, SETTINGS)
    rows = space.random(2000, draws)
    varied = space.varied(rows, 0.2, draws)
    assert (varied >= 0).all()
    assert (varied < space.sizes).all()
    assert np.abs(varied[:, 1] - rows[:, 1]).max() == 2
    # one of four levels is drawn again
    assert np.mean(varied[:, 0] != rows[:, 0]) == pytest.approx(0.2 * 3 / 4, abs=0.03)
    assert (space.varied(rows, 0.0, draws) == rows).all()


def test_the_noise_is_that_of_a_vote_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    normal = np.random.Generator.normal

    class Recorded(np.random.Generator):
        def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
            seen.append(float(scale))
            return normal(self, loc, scale, size)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Recorded(np.random.PCG64(seed)))
    codes = dict(zip(DOMAIN.names, Space.of(DOMAIN, SETTINGS).random(40, np.random.default_rng(3)).T, strict=True))
    evolve(codes, DOMAIN, replace(SETTINGS, mu_squared=0.25, rows=10), seed=4)
    assert len(seen) == SETTINGS.rounds
    assert sum(1 / sigma**2 for sigma in seen) == pytest.approx(0.25)


def test_it_keeps_a_relation_and_the_shares_of_classes() -> None:
    draws = np.random.default_rng(5)
    a, b = draws.integers(0, 2, 3000), draws.integers(0, 2, 3000)
    others = {f"o{place}": draws.integers(0, 2, 3000) for place in range(3)}
    codes = {"a": a, "b": b, **others, "y": (a ^ b) & (draws.random(3000) < 0.5)}
    domain = Domain(tuple(codes), (2,) * 6)
    made = evolve(codes, domain, Settings(100.0, label="y", rows=40), seed=6)
    assert list(made) == list(codes)
    assert np.mean(made["y"]) == pytest.approx(np.mean(codes["y"]), abs=0.03)
    assert np.mean((made["a"] ^ made["b"])[made["y"] == 1]) > 0.9
    # with noise only, it does not
    noisy = evolve(codes, domain, Settings(1e-9, label="y", rows=40), seed=6)
    assert np.mean((noisy["a"] ^ noisy["b"])[noisy["y"] == 1]) < 0.9


def test_a_mixed_table_hides_its_relation_from_pairs() -> None:
    codes = mixed(1, 20_000).codes()
    assert agreement_of_sum(codes) == pytest.approx(0.95 + 0.05 * 3 / CIRCLE, abs=0.005)
    table = np.bincount(codes["first"] * CIRCLE + codes["sum"], minlength=CIRCLE**2)
    # chi-squared of independence
    assert ((table - 20_000 / CIRCLE**2) ** 2 / (20_000 / CIRCLE**2)).sum() < 350
    assert np.corrcoef(codes["age"], codes["income"])[0, 1] > 0.5


@pytest.mark.bench
def test_both_stand_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    small = mixed(1, 400)
    case = Case("small", lambda _: small, evolution_rows.MIXED_NUMBERS, agreement_of_sum)

    def given(*_: Any, **__: Any) -> Any:
        return type("Made", (), {"table": type("Table", (), {"to_arrow": lambda _: small.table})()})()

    # stands for ours: the real rows
    monkeypatch.setattr(evolution_rows, "simulated", given)
    found = {row.metric: row for row in evolution_rows.of_case(case, "1", range(2))}
    assert found["tvd3 mean"].value == 0 < (found["tvd3 mean"].baseline or 0)
    assert (found["tvd3 worst"].baseline or 0) >= (found["tvd3 mean"].baseline or 0)
    assert found["rows that agree worst"].value == pytest.approx(agreement_of_sum(small.codes()))
    assert (found["rows that agree worst"].baseline or 0) <= (found["rows that agree mean"].baseline or 0)
