"""Attempts to get more out of a Gram matrix over groups of people than its plan says, or to make it say what is not so.

Noise is taken away where an attack would drown in it.
"""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import COLUMNS, GROUPS, gram_study, rows
from syndic import Study, simulate
from syndic.errors import InputError
from syndic.methods.regression.gram_plan import GramPlan
from syndic.methods.regression.gram_result import GramResult
from syndic.model.gram.scaling import Scale, is_number
from syndic.noise import FineGaussian, FineGaussianShare
from syndic.study import Release, plan

PEOPLE = {"first": rows(60, 3), "second": rows(40, 4)}
APART = "".join(f'[[parties]]\nname = "p{place}"\npeople = {12 + place}\n' for place in range(4))


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all noise away."""
    for kind in (FineGaussian, FineGaussianShare):
        monkeypatch.setattr(kind, "draw", lambda *given: np.zeros(given[1], np.int64))


def sources(study: Study) -> dict[str, pa.Table]:
    return {one.name: PEOPLE[one.group or ""].select(list(one.columns or ())) for one in study.parties}


def opened(study: Study, given: dict[str, Any]) -> GramResult:
    result = simulate(study, given, seed=3).result
    assert isinstance(result, GramResult)
    return result


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("options", ["", "scaling = 0.0", 'adversary = "passive"'])
def test_rows_beyond_the_public_number_of_a_smaller_group_count_nowhere(options: str) -> None:
    """The other group has more people, so its chunks have room for the rows that a party adds."""
    study = gram_study(options, parties=GROUPS)
    given, more = sources(study), rows(15, 9)
    whole = opened(study, given)
    for who in (("west",), ("east", "west")):
        longer = {name: pa.concat_tables([given[name], more.select(given[name].column_names)]) for name in who}
        found = opened(study, {**given, **longer})
        assert (found.note, found.sums.tolist()) == (whole.note, whole.sums.tolist())


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("options", ["", "scaling = 0.0"])
def test_fewer_rows_than_public_stop_nothing_and_are_rows_of_missing_values(options: str) -> None:
    study = gram_study(options, parties=GROUPS)
    given = sources(study)
    empty = pa.table({"age": pa.array([None] * 5, pa.int64()), "score": pa.array([None] * 5, pa.float64())})
    fewer = opened(study, {**given, "west": given["west"][:35]})
    padded = opened(study, {**given, "west": pa.concat_tables([given["west"][:35], empty])})
    assert (fewer.note, fewer.sums.tolist()) == (padded.note, padded.sums.tolist())
    assert fewer.note.rows == 100


LEVELS = COLUMNS.replace('missing = { value = "red" }', "").replace("missing = { value = 0 }", "")
THREE = "".join(
    f'[[parties]]\nname = "{name}"\npeople = {people}\ngroup = "{group}"\ncolumns = {columns}\n'
    for name, people, group, columns in (
        ("a", 5, "x", '["colour", "age", "score"]'),
        ("b", 7, "y", '["colour", "score"]'),
        ("c", 7, "y", '["age"]'),
        ("d", 9, "z", '["colour"]'),
        ("e", 9, "z", '["age"]'),
        ("f", 9, "z", '["score", "age"]'),
    )
)


@pytest.mark.parametrize("columns", [COLUMNS, LEVELS], ids=["values", "levels"])
@pytest.mark.parametrize(
    "options",
    [
        "",
        'target = "score"',
        "scaling = 0.0",
        'norm = 0.1\nexempt = ["score"]',
        'products = [["colour", "score"]]',
        "bits = 4",
    ],
)
def test_no_two_people_of_any_group_differ_by_more_than_the_noise_is_for(options: str, columns: str) -> None:
    """Every record at a bound, a middle or missing, in every group, by scales that a coordinator may choose."""
    cut = THREE
    if "products" in options:
        cut = THREE.replace('["colour"]', '["colour", "score"]')
    study = gram_study(options, parties=cut, columns=columns)
    made = study.plan_as(GramPlan)
    every = [sorted({0, one.levels // 2, one.levels - 1, one.size - 1}) for one in study.schema.columns]
    records = np.array(list(product(*every)))
    coded = {name: records[:, place] for place, name in enumerate(study.schema.names)}
    unit, largest = 1 << made.bits, 0.0
    numbers = [one.features[0].name for one in made.codings if is_number(one)]
    for centre, width in ((0, unit), (unit, 1), (-unit, 1), (0, 1)) if made.stages.scaling else ((0, 0),):
        scales = tuple(Scale(name=name, centre=centre, width=width) for name in numbers) if width else ()
        for group in made.groups:
            matrix = np.full((len(records), len(made.features)), unit, dtype=np.int64)
            for name in group.parties:
                if made.blocks[name]:
                    own = made.rows(name, coded, scales).astype(np.int64)
                    matrix[:, made.columns[name]] = own
                    # what a party proves is what it sends at most
                    if made.product and name in made.product.lengths:
                        assert (own**2).sum(axis=1).max() <= made.product.lengths[name]
            sums = np.array([_sums(made, row) for row in matrix]).astype(float)
            squares = (sums**2).sum(axis=1)
            largest = max(largest, float((squares[:, None] + squares[None, :] - 2 * sums @ sums.T).max()))
    ratio = largest / float(made.noise.sensitivity_squared)
    assert 0.4 < ratio <= 1 + 1e-9


APART_TARGET = "".join(
    f'[[parties]]\nname = "{name}"\npeople = {people}\ngroup = "{name[0]}"\ncolumns = {columns}\n'
    for name, people, columns in (
        ("a1", 4000, '["score"]'),
        ("a2", 4000, '["colour", "age"]'),
        ("b1", 900, '["score", "colour"]'),
        ("b2", 900, '["age"]'),
        ("c", 30, '["colour", "age", "score"]'),
    )
)


@pytest.mark.parametrize("bits", [4, 10, 16])
@pytest.mark.parametrize("columns", [COLUMNS, LEVELS], ids=["values", "levels"])
def test_a_target_is_paid_for_where_it_is_alone_and_by_scales_that_aim_at_it(columns: str, bits: int) -> None:
    """Widths that only the target could have, or only the others, and pairs of people that a search makes farther."""
    study = gram_study(f'target = "score"\nbits = {bits}', parties=APART_TARGET, columns=columns)
    made, generator = study.plan_as(GramPlan), np.random.default_rng(bits)
    scaling, unit, largest = made.stages.scaling, 1 << bits, 0.0
    assert scaling is not None
    widest, sizes = int(2 * unit / float(scaling.length) ** 0.5), [one.size for one in study.schema.columns]
    for age, score in ((1, widest), (widest, 1), (unit // 3, unit // 4), (1, 1)):
        scales = tuple(Scale(name=name, centre=unit, width=width) for name, width in (("age", age), ("score", score)))
        assert made.stages.allowed(made.codings, scales)
        for group in made.groups:
            pairs, far = generator.integers(0, sizes, (20, 2, len(sizes))), np.zeros(20)
            for _ in range(40):
                tried = np.where(generator.random(pairs.shape) < 0.3, generator.integers(0, sizes, pairs.shape), pairs)
                coded = {name: tried[..., place].ravel() for place, name in enumerate(study.schema.names)}
                matrix = np.full((40, len(made.features)), unit, dtype=np.int64)
                for name in group.parties:
                    matrix[:, made.columns[name]] = made.rows(name, coded, scales)
                sums = np.array([_sums(made, row) for row in matrix]).astype(float).reshape(20, 2, -1)
                found = ((sums[:, 0] - sums[:, 1]) ** 2).sum(axis=1)
                pairs[found > far] = tried[found > far]
                far = np.maximum(far, found)
            largest = max(largest, float(far.max()))
    assert 0.5 < largest / float(made.noise.sensitivity_squared) <= 1 + 1e-9


def test_the_statement_says_what_a_target_counts_as() -> None:
    study = gram_study('target = "score"', budget="epsilon = 0.1\ndelta = 1e-5")
    told, scaling = plan(study).statement.sensitivity, study.plan_as(GramPlan).stages.scaling
    assert scaling is not None
    assert scaling.weight > 1
    assert f"4 counts by 1 each (score's by {scaling.weight}), and" in told
    assert f"in which score counts as {float(scaling.finer**2):.3g}, and squares" in told
    plain = plan(gram_study()).statement.sensitivity
    assert "4 counts by 1 each, and" in plain
    assert "counts as" not in plain


def _sums(made: GramPlan, row: Any) -> Any:
    """Return what one person adds to the sums that open."""
    total = np.zeros(int(made.places.max()) + 1, dtype=np.int64)
    there = made.places >= 0
    total[made.places[there]] = np.outer(row, row)[there]
    return made.stages.split(total, made.features)


def test_the_coordinator_is_said_to_see_the_counts_and_others_what_follows_from_them() -> None:
    for cut in (GROUPS, APART, None):
        study = gram_study(parties=cut) if cut else gram_study()
        sees = plan(study).statement.sees
        assert "noisy counts of numbers in bins" in sees["coordinator"]
        assert not any("in bins" in told for role, told in sees.items() if role != "coordinator")
    assert not any("in bins" in told for told in plan(gram_study("scaling = 0.0")).statement.sees.values())


@pytest.mark.parametrize(
    "lie", [{"sigma": 0.0}, {"sigma": 1.0}, {"rows": 1}, {"rows": 10**6}, {"rows": 54 - 16}, {"rows": 53}]
)
def test_a_release_of_which_parties_may_be_missing_states_no_other_noise_or_people(
    lie: dict[str, float], tmp_path: Path
) -> None:
    study = gram_study("missing = 1", parties=APART)
    release = simulate(study, {f"p{place}": rows(12 + place, place) for place in range(4)}, seed=1)
    release.write(tmp_path)
    loaded = Release.load(tmp_path).result
    assert isinstance(loaded, GramResult)
    assert loaded.note.rows == 54
    told = tmp_path / "gram.json"
    for name, value in lie.items():
        text = told.read_text()
        found = getattr(loaded.note, name)
        assert f'"{name}": {found}' in text
        told.write_text(text.replace(f'"{name}": {found}', f'"{name}": {value}'))
    with pytest.raises(InputError, match="does not belong to this study"):
        Release.load(tmp_path)
