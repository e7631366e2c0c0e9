"""Glued synthesis: each party's tables are its own, the parts of the account add up, nothing ties parties together."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from support import COLUMNS, THREE_VERTICAL, VERTICAL, across_study, rows
from syndic import Release, Study
from syndic.errors import InputError
from syndic.methods.comparison.glued import GluedPlan
from syndic.methods.synthesis.account import RoundNoise
from syndic.methods.synthesis.result import PublishedRows, read_rows
from syndic.privacy import Cost, GaussianEvent, gaussian_epsilon
from syndic.random import Randomness
from syndic.study import simulate


def held(agreed: Study, table: pa.Table) -> dict[str, pa.Table]:
    return {party.name: table.select(list(party.columns or ())) for party in agreed.parties}


def result(release: Release) -> PublishedRows:
    assert isinstance(release.result, PublishedRows)
    return release.result


def no_noise(self: RoundNoise, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
    del randomness
    return values * self.scale


def test_without_noise_tables_are_exact_and_of_one_party_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoundNoise, "apply", no_noise)
    agreed, table = across_study("glued"), rows(60, 3)
    found = result(simulate(agreed, held(agreed, table), seed=1))
    codes = {name: agreed.schema[name].encode(table[name]) for name in agreed.schema.names}
    columns = {one.names for one in found.tables}
    assert {("colour",), ("age",), ("score",), ("colour", "age")} <= columns
    assert all({"score"} == set(names) or "score" not in names for names in columns)
    for one in found.tables:
        counts = np.zeros([agreed.schema[name].size for name in one.names])
        for place in range(60):
            counts[tuple(codes[name][place] for name in one.names)] += 1
        if one.values.shape == counts.shape:
            assert np.array_equal(one.values, counts)
        else:  # groups of levels: the last group holds the rare ones
            assert one.values.sum() == 60


@pytest.mark.parametrize(("parties", "number"), [(VERTICAL, 2), (THREE_VERTICAL, 3)])
def test_the_parts_of_all_parties_add_up_to_the_budget(parties: str, number: int) -> None:
    agreed = across_study("glued", parties=parties, budget="epsilon = 1\ndelta = 1e-5")
    plan = agreed.plan_as(GluedPlan)
    account, spends = plan.account, plan.events("north")
    whole = sum((event.mu_squared for event in account.events), Fraction(0))
    assert sum(event.mu_squared for event in spends if isinstance(event, GaussianEvent)) == whole
    epsilon = float(Cost.of(spends).epsilon(Fraction(1, 10**5)))
    assert 0.999 < epsilon <= 1
    assert float(gaussian_epsilon(whole, Fraction(1, 10**5))) == pytest.approx(1, rel=1e-3)
    # a party's round of k tables: 2 k in squared l2, from its own part alone
    part = plan.charged[2].mu_squared / number
    assert plan.own["north"].account.noise_of(3, 4, 100).variance(1) == pytest.approx(float(2 * 4 / part), rel=1e-6)


def test_columns_of_one_party_hang_together_and_those_of_two_do_not() -> None:
    parties = VERTICAL.replace("people = 60", "people = 4000")
    agreed = across_study("glued", parties=parties, budget="epsilon = 10\ndelta = 1e-6")
    draws = np.random.default_rng(5)
    kind = draws.integers(0, 2, 4000)
    table = pa.table(
        {
            "colour": np.where(kind == 1, "red", "blue"),
            "age": np.where(kind == 1, 10, 90),
            "score": np.where(kind == 1, -0.9, 0.9),
        }
    )
    made = simulate(agreed, held(agreed, table), seed=2).table.to_arrow()
    red, young = np.asarray(made["colour"]) == "red", np.asarray(made["age"]) < 50
    low = np.asarray(made["score"]) < 0
    assert np.mean(red == young) > 0.95
    # 4000 pairs in random order agree in half of the rows, give or take 0.8 per cent: six times that
    assert abs(np.mean(red == low) - 0.5) < 0.05


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    agreed = across_study("glued", "rows = 25")
    release = simulate(agreed, held(agreed, rows(60, 3)), seed=4)
    release.write(tmp_path)
    again = result(Release.load(tmp_path))
    assert again.note == result(release).note
    assert again.table.to_arrow().equals(release.table.to_arrow())
    assert len(again.table) == 25
    for one, other in zip(again.tables, result(release).tables, strict=True):
        assert np.array_equal(one.values, other.values)
    (tmp_path / "tables.parquet").write_bytes(b"broken")
    with pytest.raises(InputError, match="cannot be read"):
        read_rows(tmp_path, type(result(release).note))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parties": VERTICAL.split('[[parties]]\nname = "south"')[0]}, "at least 2 parties"),
        ({"columns": COLUMNS + '[[schema.columns]]\nname = "flag"\nkind = "boolean"\n'}, "is held by no party"),
        ({"budget": "epsilon = 1"}, "delta above 0"),
        ({"options": "model_cells = 1"}, "cells"),
    ],
)
def test_studies_that_cannot_run_are_refused(change: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        across_study("glued", **change).check()


@pytest.mark.parametrize("options", ["rounds = 2", "rows = -1", 'selector = "adaptive"\nrounds = 0'])
def test_parameters_out_of_range_are_refused(options: str) -> None:
    with pytest.raises(InputError):
        across_study("glued", options)
