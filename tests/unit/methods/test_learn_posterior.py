"""The default scheme of learning as a protocol: what is summed, charged and published, and what the model predicts."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from support import charges, read_back, rows
from syndic.data import Table, open_source
from syndic.errors import InputError, PartyError, RefusedError
from syndic.methods.learning.learn import Ask, Learn, _noise
from syndic.methods.learning.query import batches
from syndic.methods.learning.result import LearnResult, LinearPredictor, sizes_of
from syndic.mpc.masked_sum import SumCoordinator
from syndic.privacy import Cost, GaussianEvent
from syndic.report import coefficient_tables
from syndic.study import simulate
from unit.methods.learning import NOISELESS, learnt, planned, sources, study

DEFAULT = 'scheme = "posterior"\n'
PEOPLE = {f"p{number}": 400 for number in range(4)}


def pooled(data: dict[str, pa.Table]) -> pa.Table:
    return pa.concat_tables(data.values())


def test_it_is_the_default_and_asks_for_nothing_else() -> None:
    assert Learn(label="colour").scheme == "posterior"
    for option in ("regularisation = 0.1", "clip = 2.0", "rate = 1.0", 'scale = "symmetric"', "intercept = false"):
        with pytest.raises(InputError, match="does not use"):
            study(f'{DEFAULT}label = "colour"\n{option}')
    with pytest.raises(InputError, match="mpc_grad"):
        planned(study(f'{DEFAULT}label = "colour"\nloss = "hinge"'))


@pytest.mark.parametrize("unit", ["add_remove", "replace"])
def test_the_rounds_are_charged_the_whole_budget_by_their_shares(unit: str) -> None:
    of = study(f'{DEFAULT}label = "colour"\nloss = "softmax"', unit=f'neighbours = "{unit}"')
    plan, events = planned(of), of.plan.events("p0")
    assert len(events) == plan.scheme.rounds == 11
    assert 0.999 < float(Cost.of(events).epsilon(of.budget.delta)) / float(of.budget.epsilon) <= 1
    costs = [float(event.mu_squared) for event in events if isinstance(event, GaussianEvent)]
    assert costs == pytest.approx([float(query.part) * sum(costs) for query in plan.scheme.queries], rel=1e-6)


def test_a_party_refuses_what_has_another_shape_or_is_not_finite() -> None:
    plan = planned(study(f'{DEFAULT}label = "colour"'))
    party: Any = SimpleNamespace(plan=plan)
    right = np.zeros(plan.scheme.asked)
    assert _noise(party, Ask(round=1, weights=right)) is plan.noise[0]
    for wrong in (right[:-1], np.full_like(right, np.nan), np.full_like(right, np.inf)):
        with pytest.raises(RefusedError, match="finite"):
            _noise(party, Ask(round=1, weights=wrong))


@pytest.mark.parametrize("options", ['label = "colour"\npositive = "red"', 'label = "colour"\nloss = "softmax"'])
def test_its_model_beats_the_constant_and_is_read_back(options: str, tmp_path: Path) -> None:
    of = study(f"{DEFAULT}{options}\npath = true", sizes=PEOPLE, budget=NOISELESS)
    data = sources(PEOPLE)
    release = simulate(of, data, seed=1)
    release.write(tmp_path)
    again = read_back(of, tmp_path)
    assert isinstance(release.result, LearnResult)
    assert isinstance(again, LearnResult)
    assert again.model == release.result.model
    assert len(np.asarray(again.path)) == planned(of).scheme.rounds + 1
    # chances from rows as they are
    model, table = release.model, pooled(data)
    assert isinstance(model, LinearPredictor)
    chance, truth = model.predict_proba(table), np.asarray(table["colour"])
    if len(model.classes) == 2:
        truth = np.where(truth == "red", "red", model.classes[0])
    right = np.array([[each == name for name in model.classes] for each in truth])
    share = right.mean(axis=0)
    assert -np.log(chance[right]).mean() <= -np.log(np.broadcast_to(share, right.shape)[right]).mean() + 1e-3


def test_coefficients_are_in_the_columns_units_within_the_limits() -> None:
    of = study(f'{DEFAULT}label = "score"\nloss = "ridge"', sizes=PEOPLE, budget=NOISELESS)
    result = learnt(of, sources(PEOPLE))
    model = LinearPredictor(result.model, result.design)
    (intercepts, slopes), (middle, half) = model.original(), model._label_unit
    units, shifts = np.array([model._unit(name) for name in model.feature_names]).T
    (batch,) = batches(result.design, Table(schema=result.design.schema, source=open_source(rows(400, 9))))
    least, most = np.array(result.model.limits).T
    inside = np.all((batch.plain >= least) & (batch.plain <= most), axis=1)
    assert inside.sum() > 0.9 * len(inside)
    own = (batch.plain - shifts) / units
    scores = model.decision_function(rows(400, 9))
    assert (own @ slopes.T + intercepts)[inside] == pytest.approx(middle + half * scores[inside], abs=1e-6)


def test_a_level_that_nobody_has_is_not_named_first() -> None:
    of, data = study(f'{DEFAULT}label = "colour"\npositive = "red"', sizes=PEOPLE, budget=NOISELESS), sources(PEOPLE)
    release = simulate(of, data, seed=1)
    result = release.result
    assert isinstance(result, LearnResult)
    names = result.model.features
    assert names == ("age", "score", "score=(missing)")
    # with the limits go spreads of what features are
    whole = open_source(pooled(data).combine_chunks())
    (batch,) = batches(result.design, Table(schema=result.design.schema, source=whole))
    spreads = sizes_of(result.model, result.design)[0] / np.abs(result.model.coefficients[0])
    assert spreads == pytest.approx(batch.plain.std(axis=0), abs=0.1)
    changed = replace(result, model=msgspec.structs.replace(result.model, coefficients=((0.1, 0.2, 5.0),)))
    assert changed.summary()["largest coefficients"] == "score 0.2, age 0.1, score=(missing) 5"
    (grid,) = coefficient_tables(replace(release, result=changed))
    assert [row[0] for row in grid.rows] == ["(intercept)", "score", "age", "score=(missing)"]
    assert "times spread" in grid.caption


def test_a_first_sum_that_does_not_open_ends_the_run_before_more_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = study(f'{DEFAULT}label = "colour"\npositive = "red"')
    monkeypatch.setattr(SumCoordinator, "total", lambda *_, **__: None)
    with pytest.raises(PartyError, match="first sum"):
        simulate(of, sources(), seed=1, folder=tmp_path)
    assert charges(tmp_path, "p0") == []
