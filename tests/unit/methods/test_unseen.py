"""Levels that no value needs to have, "other" and missing: released where noisy counts show them, and only there."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import syndic as sy
from syndic.data import Domain
from syndic.document import from_builtins
from syndic.methods.synthesis.result import SyntheticTable
from syndic.methods.synthesis.unseen import without_levels
from syndic.model.markov import Measurement, fit
from syndic.model.selection import Grouping, Synthesis

COLOURS = ("red", "green", "blue")
COLUMNS: list[dict[str, Any]] = [
    {"name": "colour", "kind": "categorical", "values": list(COLOURS)},
    {"name": "size", "kind": "ordinal", "values": ["s", "m", "l", "xl"]},
    {"name": "age", "kind": "integer", "lower": 0, "upper": 99},
    {"name": "weight", "kind": "real", "lower": 0.0, "upper": 1.0},
    {"name": "ill", "kind": "boolean"},
]


def table(people: int, absent: float = 0.0, others: float = 0.0) -> pa.Table:
    """Return rows; of age a share is absent, of colour a share is not listed."""
    draws = np.random.default_rng(1)
    ill, ages = draws.random(people) < 0.3, draws.integers(20, 90, people)
    colours = np.where(draws.random(people) < others, "pink", draws.choice(COLOURS, people))
    return pa.table(
        {
            "colour": colours,
            "size": draws.choice(["s", "m", "l", "xl"], people),
            "age": pa.array(ages, mask=draws.random(people) < absent),
            "weight": np.clip(0.3 + 0.3 * ill + 0.1 * draws.normal(size=people), 0, 1),
            "ill": ill,
        }
    )


def released(rows: pa.Table, seed: int, *, target: str | None = None, parties: int = 1) -> sy.Release:
    names, people = [f"p{place}" for place in range(parties)], len(rows) // parties
    content = {
        "name": "unseen",
        "unit": {"neighbours": "add_remove", "rows": 1},
        "budget": {"epsilon": 1.0, "delta": 1e-7},
        "protocol": {"method": "synthesis", **({"target": target} if target else {})},
        "parties": [{"name": name, "people": people} for name in names],
        "schema": {"columns": COLUMNS},
    }
    study = from_builtins(content, sy.Study, where="test")
    return sy.simulate(study, {name: rows.slice(k * people, people) for k, name in enumerate(names)}, seed=seed)


def shares(release: sy.Release) -> dict[str, float]:
    """Return the share of missing values of each column, and of colours that are not listed."""
    made: Any = release.result
    arrow = made.table.to_arrow()
    found = {name: arrow[name].null_count / len(arrow) for name in arrow.column_names}
    return {**found, "other": float(np.mean([one == "other" for one in arrow["colour"].to_pylist()]))}


@pytest.mark.parametrize(("parties", "target"), [(1, None), (3, None), (1, "ill")])
def test_what_nobody_has_is_not_released(parties: int, target: str | None) -> None:
    found = [shares(released(table(3000), seed, target=target, parties=parties)) for seed in range(4)]
    shown = [share for one in found for share in one.values() if share]
    # noise shows one of 44 levels, and there are 28
    assert len(shown) <= 4
    assert np.mean([sum(one.values()) for one in found]) < 0.02


def test_what_people_have_is_released() -> None:
    for seed in range(3):
        found = shares(released(table(6000, absent=0.1, others=0.08), seed))
        assert 0.07 < found["age"] < 0.13
        assert 0.05 < found["other"] < 0.11
        assert sum(found[name] for name in ("colour", "size", "weight", "ill")) < 0.04


def test_the_model_says_the_same_as_the_rows_and_so_does_what_is_read_back(tmp_path: Path) -> None:
    release = released(table(3000), 2)
    release.write(tmp_path)
    made, back = release.result, sy.Release.load(tmp_path).result
    assert isinstance(made, SyntheticTable)
    assert isinstance(back, SyntheticTable)
    assert made.model.unseen
    assert back.model.unseen == made.model.unseen
    for name, codes in made.model.unseen.items():
        counts = made.model.marginal((name,)).values
        assert not counts[codes].any()
        assert counts.sum() == pytest.approx(made.model.total)
        assert np.allclose(back.model.marginal((name,)).values, counts)


def test_rows_without_a_value_can_still_be_asked_for() -> None:
    model = released(table(3000), 2).model
    assert "age" in model.unseen
    assert model.sample(20, given={"age": None}).to_arrow()["age"].null_count == 20
    assert model.sample(20, given={"colour": "red"}).to_arrow()["age"].null_count == 0


def test_a_group_shares_its_rows_without_what_is_unseen() -> None:
    domain = Domain(("a", "b"), (5, 2))
    grouping = Grouping(domain, ((0, 1, 2, 1, 3), (0, 1)))
    counts = np.outer([40.0, 30.0, 20.0, 10.0], [0.5, 0.5])
    field = fit(grouping.domain_of_groups, [Measurement(("a", "b"), counts, 1e-6)], total=100.0).field
    one_way = {"a": np.array([40.0, -3.0, 20.0, 9.0, 10.0]), "b": np.array([50.0, 50.0])}
    fitted = Synthesis(field, grouping, one_way, ())
    assert np.allclose(fitted.marginal(("a",)).values, [40, 0, 20, 30, 10], atol=0.1)
    # level 3 shares its group, so that level 1 has all of it; level 4 is a group, so that the others grow
    found = without_levels(fitted, {"a": [3, 4]})
    assert np.allclose(found.marginal(("a",)).values, np.array([40, 30, 20, 0, 0]) / 0.9, atol=0.1)
    assert set(found.sample(500, np.random.default_rng(1))["a"]) == {0, 1, 2}
    assert np.allclose(fitted.marginal(("a",)).values, [40, 0, 20, 30, 10], atol=0.1)


def test_what_a_long_list_hides_stays_hidden() -> None:
    # codes 0 to 2 are released as code 3, their branch, whose noisy count is next to nothing; code 4 is missing
    grouping = Grouping(Domain(("a",), (5,)), ((0, 0, 0, 0, 1),))
    field = fit(grouping.domain_of_groups, [Measurement(("a",), np.array([90.0, 10.0]), 1e-6)], total=100.0).field
    fitted = Synthesis(field, grouping, {"a": np.array([0.0, 0.0, 0.0, 1e-9, 10.0])}, ())
    assert np.allclose(without_levels(fitted, {"a": [4]}).marginal(("a",)).values, [0, 0, 0, 100, 0])
