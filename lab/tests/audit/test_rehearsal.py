"""The stage: runs are those of the protocol, coins are known afterwards, and nothing is answered anew."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from syndic.data import Table
from syndic.data.factor import SparseCounts
from syndic.errors import InputError
from syndic.methods import AnyMethod, Homm, Marginals
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.mpc.masked_sum import Masks, SumMasked
from syndic.noise import GaussianShare
from syndic.privacy import Budget, Cost
from syndic.study import Study, simulate
from syndic_lab.audit.encoded import OUTSIDE
from syndic_lab.audit.faults import PlantedCounts, PlantedPlan, PlantedSum
from syndic_lab.audit.horizontal import ADD, APPROXIMATE, BIT, REPLACE, THREE, horizontal
from syndic_lab.audit.registry import audits
from syndic_lab.audit.rehearsal import Stage
from syndic_lab.audit.setting import along, gaussian_lean, laplace_lean, rows_of, study_of
from syndic_lab.audit.vertical import vertical

SOURCES = {"a": rows_of(x=[1, 1]), "b": rows_of(x=[0, 1]), "c": rows_of(x=[0, 0])}


def masked() -> tuple[Study, Marginals]:
    protocol = Marginals(cliques=(("x",),))
    return study_of(protocol, columns=BIT, parties=THREE, unit=REPLACE, budget=APPROXIMATE), protocol


def test_a_release_less_the_noise_that_all_coins_give_is_exact() -> None:
    study, _protocol = masked()
    share = study.plan_as(MarginalsPlan).noise
    run = Stage(study, SOURCES).run(3)
    noise = sum(run.own_noise(name, share, 2) for name in THREE)
    assert (run.result.tables[0].values.ravel() - noise).tolist() == [3, 3]
    assert np.any(noise)


def test_a_seed_repeats_a_run_and_another_does_not() -> None:
    study, _ = masked()
    stage = Stage(study, SOURCES)
    one, again, other = stage.run(1), stage.run(1), stage.run(2)
    assert [each.body for each in one.seen] == [each.body for each in again.seen]
    assert [each.body for each in one.seen] != [each.body for each in other.seen]


def test_what_is_charged_is_noted_and_questions_are_answered_once() -> None:
    study, _ = masked()
    run = Stage(study, SOURCES).run(1, again=True)
    assert run.asked_again
    assert {name: Cost.of(events) for name, events in run.charged.items()} == study.costs
    assert {each.step for each in run.seen} >= {"ready", "sum_keys", "sum_meet", "count"}


def test_the_release_is_that_of_a_simulation_but_for_coins() -> None:
    """Huge budgets: the noise is nearly always zero, so both show the exact counts."""
    study = study_of(Homm(), columns=BIT, parties={"a": (2, None)}, unit=ADD, budget=Budget.of(60))
    here = Stage(study, {"a": SOURCES["b"]}).run(1).result
    there = simulate(study, {"a": SOURCES["b"]}, seed=1).result
    assert here.histograms["a"].counts.tolist() == there.histograms["a"].counts.tolist() == [1, 1]  # type: ignore[attr-defined]


def test_a_refusal_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_table: Table, _names: object = None) -> SparseCounts:
        raise InputError("the source is gone")

    study = study_of(Homm(), columns=BIT, parties={"a": (2, None)}, unit=REPLACE, budget=Budget.of(1))
    monkeypatch.setattr(Table, "cells", refused)
    run = Stage(study, {"a": rows_of(x=[1])}).run(1)
    assert run.result is None
    assert run.seen[-1].code == "input"


@pytest.mark.parametrize("protocol", [PlantedCounts(fault="half the noise"), PlantedSum(fault="no mask")])
def test_a_planted_fault_meets_no_real_party(protocol: PlantedCounts | PlantedSum) -> None:
    parties = {"a": (2, None), "b": (2, None)}
    columns = (("x", 8),)
    study = study_of(protocol, columns=columns, parties=parties, unit=ADD, budget=Budget.of(1))
    assert type(protocol) not in get_args(AnyMethod)
    with pytest.raises(InputError, match="simulation only"):
        simulate(study, {"a": SOURCES["a"], "b": SOURCES["b"]})
    with pytest.raises(InputError, match="writes nothing"):
        protocol.read(study.plan_as(PlantedPlan), Path())


def test_every_method_has_an_audit_or_a_reason() -> None:
    methods = {kind.__struct_config__.tag for kind in get_args(AnyMethod)}
    audited = {one.method for one in audits() if one.method}
    # without torch one method cannot run, and has no audit either
    assert methods - audited - {"vertigan"} == set(OUTSIDE)
    assert not audited & set(OUTSIDE)


def test_names_are_told_apart() -> None:
    names = [one.name for one in audits()]
    assert len(set(names)) == len(names)


def test_neighbours_differ_by_one_person() -> None:
    """Under replace tables have the same sizes and one row differs; under add_remove one person's rows are missing."""
    for setting in horizontal():
        one, other = (
            [row for name in setting.one for row in side[name].to_pylist()] for side in (setting.one, setting.other)
        )
        rows, unit = setting.study.unit.rows * setting.study.unit.parties, setting.study.unit
        if unit.neighbours == "replace":
            assert len(one) == len(other)
            assert sum(left != right for left, right in zip(one, other, strict=True)) == 1
        else:
            assert len(one) - len(other) == rows


def test_what_speaks_for_a_table() -> None:
    assert laplace_lean([3, 0], [1, 1], [0, 0]) == 0
    assert laplace_lean(5, 1, 0) == 1
    assert gaussian_lean(0.5, 1, 0) == 0
    assert gaussian_lean([2, 7], [1, 0], [0, 0]) == 1.5
    draws = np.random.default_rng(1)
    one, other = ([draws.normal([shift, 0, 0], 1) for _ in range(400)] for shift in (3, 0))
    left, right = along(one, [np.append(each, 1.0) for each in other])
    assert (left > right.mean()).mean() > 0.9


def test_a_dealer_sees_through_a_share_without_the_masks_of_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = next(each for each in vertical() if each.name == "marginals across, dealer")
    (sees,) = setting.views.values()
    stages = [Stage(setting.study, sources) for sources in (setting.one, setting.other)]
    hidden = {sees(stage.run(seed)) > 0 for stage in stages for seed in range(6)}
    monkeypatch.setattr(
        Masks, "hide", lambda masks, values: SumMasked(values=masks.ring.pack(masks.ring.reduce(values)))
    )
    monkeypatch.setattr(GaussianShare, "draw", lambda *given: np.zeros(given[1], dtype=np.int64))
    assert [sees(stage.run(1)) > 0 for stage in stages] == [True, False]
    assert hidden == {True, False}


def test_a_run_may_end_early_and_what_was_kept_is_known() -> None:
    study, _ = masked()
    run = Stage(study, SOURCES).run(1, again=True, until="count")
    assert run.result is None
    assert run.asked_again
    assert run.seen[-1].step == "count"
    whole = Stage(study, SOURCES).run(1)
    assert [each.body for each in run.seen] == [each.body for each in whole.seen][: len(run.seen)]
    assert {party for party, kept in whole.remembered.items() if kept} == set(THREE)
