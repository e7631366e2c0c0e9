"""Selectors: answers alone decide, the account adds up, caps hold, small and large domains run."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, final

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.data import Domain
from syndic.model.markov import Impossible, Measurement
from syndic.model.markov.measurement import UNKNOWN
from syndic.model.selection import Adaptive, Grouping, GrowingModel, Synthesis, select, synthesise
from syndic.model.selection.score import outside_scores
from syndic.model.selection.structure import Structure
from unit.model.selection.curators import Codes, Recorder, Replay, chain, curator

DOMAIN = Domain(tuple("abcdef"), (4, 3, 5, 2, 6, 3))
BUDGET = Fraction(1, 20)
SELECTORS = [
    Adaptive(rounds=1, cells=2000, growth=3, parity_share=Fraction(1, 100)),
    Adaptive(rounds=3, cells=2000, growth=4),
]


def table(codes: Mapping[str, NDArray[Any]], names: tuple[str, ...], domain: Domain) -> NDArray[np.float64]:
    found = np.zeros(domain.project(names).sizes)
    np.add.at(found, tuple(codes[name] for name in names), 1)
    return np.asarray(found / found.sum())


def run(
    selector: Adaptive, codes: Codes, domain: Domain = DOMAIN, budget: Fraction = BUDGET, **kwargs: object
) -> Synthesis:
    return synthesise(selector, curator(codes, domain)[0], budget, **kwargs)  # type: ignore[arg-type]


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("budget", [Fraction(1, 20), Fraction(1, 7), Fraction(123456789, 10**10)])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_what_is_charged_is_the_budget_to_the_last_digit(selector: Adaptive, budget: Fraction, neighbours: str) -> None:
    counts, events = curator(chain(DOMAIN, 1500), DOMAIN, neighbours=neighbours)
    synthesise(selector, counts, budget)
    assert sum(event.mu_squared for event in events) == budget == sum(selector.budgets(budget))
    assert [event.mu_squared for event in events] == list(selector.budgets(budget))


@pytest.mark.parametrize("selector", SELECTORS)
def test_the_same_answers_lead_to_the_same_questions_and_model(selector: Adaptive) -> None:
    record = Recorder(curator(chain(DOMAIN, 3000), DOMAIN)[0])
    first = synthesise(selector, record, BUDGET)
    replay = Replay(record)
    second = synthesise(selector, replay, BUDGET)
    assert replay.asked == record.asked
    assert not replay.answers
    assert not replay.opened
    for one, other in zip(first.field.potentials, second.field.potentials, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("rows", [0, 3, 5000])
def test_rounds_stay_within_their_limits_and_models_within_their_cells(selector: Adaptive, rows: int) -> None:
    record = Recorder(curator(chain(DOMAIN, rows), DOMAIN)[0])
    found = synthesise(selector, record, BUDGET)
    limits = selector.limits(DOMAIN)
    assert len(limits) == len(record.asked) == len(selector.budgets(BUDGET))
    for (tables, _, grouping), limit in zip(record.asked, limits, strict=True):
        assert 1 <= len(tables) <= limit.tables
        sizes = [1 if limit.parity else grouping.domain_of_groups.project(names).size for names in tables]
        assert sum(sizes) <= limit.cells
        assert len(set(tables)) == len(tables)
    assert found.field.tree.cells <= 2000
    asked = [tuple(one[0]) for one, limit in zip(record.asked, limits, strict=True) if not limit.parity]
    assert [tuple(one.names for one in tables) for tables in found.rounds] == asked


def test_more_cells_hold_more_together() -> None:
    codes = chain(DOMAIN, 20000)
    small, large = (run(Adaptive(rounds=1, cells=cells), codes, budget=Fraction(1)) for cells in (80, 5000))
    assert small.field.tree.cells <= 80 < large.field.tree.cells <= 5000


@pytest.mark.parametrize(
    "sizes", [(1,), (7,), (1, 1), (2, 1, 3), (2, 2)], ids=["one level", "one column", "no levels", "mixed", "two"]
)
def test_tiny_domains(sizes: tuple[int, ...]) -> None:
    domain = Domain(tuple("abcdef"[: len(sizes)]), sizes)
    codes = chain(domain, 400)
    for selector in (Adaptive(rounds=1), Adaptive()):
        counts, events = curator(codes, domain)
        found = synthesise(selector, counts, Fraction(10))
        assert sum(event.mu_squared for event in events) == 10
        assert found.total == pytest.approx(400, rel=0.05)
        drawn = found.sample(300, np.random.default_rng(1))
        assert list(drawn) == list(domain.names)
        for name, size in zip(domain.names, sizes, strict=True):
            assert drawn[name].min() >= 0
            assert drawn[name].max() < size
            share = np.bincount(drawn[name], minlength=size) / 300
            np.testing.assert_allclose(share, table(codes, (name,), domain), atol=0.05)


@pytest.mark.slow
def test_a_hundred_columns() -> None:
    sizes = tuple(2 + place % 4 for place in range(100))
    domain = Domain(tuple(f"column {place}" for place in range(100)), sizes)
    codes = chain(domain, 3000)
    selector = Adaptive(rounds=1, cells=5000, growth=2, iterations=60)
    counts, events = curator(codes, domain)
    found = synthesise(selector, counts, Fraction(50))
    assert sum(event.mu_squared for event in events) == 50
    assert found.field.tree.cells <= 5000
    drawn = found.sample(3000, np.random.default_rng(1))
    # neighbours in the chain were found and kept together
    near = [(domain.names[place], domain.names[place + 1]) for place in range(0, 98, 7)]
    ratios = []
    for names in near:
        real, made = (table(one, names, domain) for one in (codes, drawn))
        alone = np.outer(real.sum(axis=1), real.sum(axis=0))
        ratios.append(np.abs(made - real).sum() / np.abs(alone - real).sum())
    assert np.mean(ratios) < 0.35


def test_a_thousand_levels_are_grouped_and_come_back_valid() -> None:
    domain = Domain(("wide", "narrow"), (1000, 3))
    draws = np.random.default_rng(5)
    wide = np.minimum(draws.geometric(0.05, 20000) - 1, 999)
    codes = {"wide": wide, "narrow": np.minimum(wide // 8, 2)}
    selector = Adaptive(most_levels=16)
    found = run(selector, codes, domain, Fraction(1, 4))
    assert found.field.domain.sizes[0] <= 16
    drawn = found.sample(20000, draws)
    assert drawn["wide"].max() < 1000
    # the ten commonest levels are near the truth, each with the narrow column's dependence
    real, made = (table(one, ("wide", "narrow"), domain)[:10] for one in (codes, drawn))
    assert np.abs(real - made).sum() < 0.08
    assert found.marginal(("wide",)).values.sum() == pytest.approx(found.total, rel=1e-6)
    np.testing.assert_allclose(
        found.marginal(("narrow", "wide")).values.sum(axis=0), found.marginal(("wide",)).values, atol=1e-6 * 20000
    )


def test_impossible_cells_stay_empty_and_their_columns_keep_all_levels() -> None:
    domain = Domain(("a", "b", "c"), (4, 4, 3))
    cells = np.triu(np.ones((4, 4), dtype=np.bool_), 1)
    codes = chain(domain, 2000)
    codes["b"] = np.minimum(codes["a"], codes["b"])
    found = run(Adaptive(), codes, domain, zeros=[Impossible(("a", "b"), cells)])
    assert found.field.domain.sizes[:2] == (4, 4)
    drawn = found.sample(5000, np.random.default_rng(1))
    assert (drawn["a"] >= drawn["b"]).all()
    assert found.marginal(("a", "b")).values[cells].sum() == 0


def test_the_public_number_of_rows_is_used_under_replace() -> None:
    codes = chain(DOMAIN, 1234)
    counts, _ = curator(codes, DOMAIN, neighbours="replace")
    assert synthesise(Adaptive(rounds=1, cells=2000), counts, BUDGET).total == 1234
    estimated = run(Adaptive(rounds=1, cells=2000), codes).total
    assert estimated != 1234
    assert estimated == pytest.approx(1234, rel=0.2)


def test_rows_can_be_drawn_with_some_columns_given() -> None:
    codes = chain(DOMAIN, 5000)
    found = run(Adaptive(rounds=1, cells=2000), codes, budget=Fraction(10))
    drawn = found.sample(1000, np.random.default_rng(1), given={"a": 2})
    assert set(drawn["a"]) == {2}
    shares = np.bincount(drawn["b"], minlength=3) / 1000
    np.testing.assert_allclose(
        shares, np.bincount(codes["b"][codes["a"] == 2], minlength=3) / (codes["a"] == 2).sum(), atol=0.06
    )


def test_a_given_rare_level_is_the_one_that_was_asked_for() -> None:
    domain = Domain(("wide", "narrow"), (50, 2))
    codes = {"wide": np.repeat([0, 1, 30], [1500, 1500, 10]), "narrow": np.tile([0, 1], 1505)}
    found = run(Adaptive(rounds=1), codes, domain, Fraction(1, 10))
    assert found.grouping.groups[0].count(found.grouping.groups[0][30]) > 1
    assert set(found.sample(50, np.random.default_rng(1), given={"wide": 30})["wide"]) == {30}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rounds": 0}, "rounds"),
        ({"cells": 0}, "cells"),
        ({"most_levels": 1}, "most_levels"),
        ({"one_way_share": Fraction(0)}, "one_way_share"),
        ({"pair_share": Fraction(96, 100)}, "leave something"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Adaptive(**settings)  # type: ignore[arg-type]


def test_nothing_is_grouped_without_reason() -> None:
    record = Recorder(curator(chain(DOMAIN, 20000), DOMAIN)[0])
    synthesise(Adaptive(rounds=1, cells=2000), record, Fraction(1))
    assert all(grouping == Grouping.none(DOMAIN) for _, _, grouping in record.asked)


def test_many_levels_in_order_are_merged_into_as_many_groups_of_neighbours_as_there_may_be() -> None:
    domain = Domain(("age", "few"), (41, 3))
    codes = {"age": np.arange(8000) % 41, "few": np.arange(8000) % 3}
    settings = Adaptive(rounds=1, cells=2000, growth=2, most_levels=16, adjacent=(("age", 40), ("few", 2)))
    found = synthesise(settings, curator(codes, domain)[0], Fraction(10)).grouping
    age = dict(zip(domain.names, found.groups, strict=True))["age"]
    assert max(age) + 1 == 16
    # the last level, of missing values, is not in order
    assert list(age[:40]) == sorted(age[:40])
    assert age.count(15) == 1
    assert {age[:40].count(group) for group in range(15)} <= {2, 3}


def related(columns: int, levels: int, people: int, seed: int) -> tuple[Codes, Domain]:
    """Return columns of which every two neighbours, the first with the second and so on, follow one hidden number."""
    draws = np.random.default_rng([seed, 9])
    names = tuple(f"c{place:02d}" for place in range(columns))
    hidden = np.repeat(draws.normal(size=(people, columns // 2)), 2, axis=1)
    values = hidden + draws.normal(size=hidden.shape)
    codes = {name: (values[:, place].argsort().argsort() * levels) // people for place, name in enumerate(names)}
    return codes, Domain(names, (levels,) * columns)


def found_pairs(settings: Adaptive, seed: int) -> float:
    """Return the share of related pairs that the first tree of the model has."""
    codes, domain = related(16, 16, 20_000, seed)
    counts, _ = curator(codes, domain, seed=seed)
    model = GrowingModel(settings, counts, Fraction(1, 50))
    for budget in model.budgets[:2]:
        model.fit(counts.measure(model.choose(), budget, model.asked))
    model.grow(1)
    names = domain.names
    return float(np.mean([pair in model.structure.edges for pair in zip(names[::2], names[1::2], strict=True)]))


def test_pairs_that_noise_hides_over_all_levels_are_found_over_few() -> None:
    ordered = tuple((f"c{place:02d}", 16) for place in range(16))
    merged, whole = (
        [found_pairs(Adaptive(rounds=1, adjacent=ordered, merge_pairs=merge), seed) for seed in range(3)]
        for merge in (True, False)
    )
    assert np.mean(merged) >= 0.75
    assert np.mean(whole) <= 0.3


def test_pairs_over_groups_are_within_the_plan_and_fitted() -> None:
    codes, domain = related(6, 16, 2_000, 0)
    record = Recorder(curator(codes, domain)[0])
    selector = Adaptive(rounds=1, cells=20_000, growth=2, adjacent=tuple((name, 16) for name in domain.names))
    found = synthesise(selector, record, Fraction(1, 100))
    groups = [grouping.domain_of_groups for _, _, grouping in record.asked]
    assert max(groups[1].sizes) <= 11
    assert groups[1].sizes != groups[2].sizes
    assert groups[2] == found.field.domain
    assert [one.values.shape for one in found.rounds[1]] == [
        groups[1].project(one.names).sizes for one in found.rounds[1]
    ]
    again = synthesise(selector, Replay(record), Fraction(1, 100))
    np.testing.assert_array_equal(found.marginal(("c00", "c01")).values, again.marginal(("c00", "c01")).values)


def test_a_lost_first_round_merges_nothing() -> None:
    model = GrowingModel(Adaptive(rounds=1), curator(chain(DOMAIN, 100), DOMAIN)[0], BUDGET)
    model.fit([Measurement(names, np.zeros(DOMAIN.project(names).sizes), UNKNOWN) for names in model.choose()])
    model.choose()
    assert model.asked == Grouping.none(DOMAIN)


@final
class Quieter(Recorder):
    """Counts every pair with less noise than the usual one, as two parties do that toss coins."""

    def noisier(self, table: Domain) -> float | None:
        """Return a quarter for all but one pair, which nobody can count."""
        return None if table.names == ("c00", "c05") else 0.25


def test_pairs_are_counted_over_as_many_groups_as_their_own_noise_allows() -> None:
    codes, domain = related(6, 60, 4_000, 0)
    selector = Adaptive(rounds=1, adjacent=tuple((name, 60) for name in domain.names))

    def groups(kind: type[Recorder]) -> int:
        model = GrowingModel(selector, kind(curator(codes, domain)[0]), Fraction(1, 5))
        model.fit(model.counts.measure(model.choose(), model.budgets[0], model.asked))
        model.choose()
        return max(model.asked.domain_of_groups.sizes)

    # half the noise: twice the cells of a table
    assert groups(Quieter) == pytest.approx(groups(Recorder) * 2**0.5, abs=1)
    assert groups(Recorder) > 8


def cramped(seed: int) -> tuple[GrowingModel, float]:
    """Return a grown model with little room, and its distance from the noisy pairs outside, in rows."""
    domain = Domain.of({f"c{place}": size for place, size in enumerate((12, 9, 3, 8, 4, 10, 6, 5))})
    counts, _ = curator(chain(domain, 20_000, seed, stay=0.8), domain, seed)
    model = GrowingModel(Adaptive(rounds=1, cells=2_000), counts, Fraction(1))
    for budget in model.budgets[:2]:
        model.fit(counts.measure(model.choose(), budget, model.asked))
    model.choose()
    return model, sum(max(0.0, score) for score in outside_scores(model.field, model.pairs).values())


def test_exchanges_bring_a_model_without_room_nearer(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanged = [cramped(seed) for seed in range(4)]
    monkeypatch.setattr(select, "exchange", lambda structure, *_, **__: structure)
    plain = [cramped(seed) for seed in range(4)]
    assert all(now <= before for (_, now), (_, before) in zip(exchanged, plain, strict=True))
    assert sum(now for _, now in exchanged) < 0.95 * sum(before for _, before in plain)


def loses(structure: Structure, *_: object, **__: object) -> Structure:
    pair, clique, _freed = next(structure.separable())
    return structure.without(pair, clique)


def test_an_exchange_that_does_not_bring_it_nearer_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before, _ = cramped(0)
    monkeypatch.setattr(select, "exchange", loses)
    after, _ = cramped(0)
    monkeypatch.setattr(select, "exchange", lambda structure, *_, **__: structure)
    plain, _ = cramped(0)
    assert after.structure == plain.structure
    assert after.field.tree == plain.field.tree
    assert before.structure.cells <= 2_000
