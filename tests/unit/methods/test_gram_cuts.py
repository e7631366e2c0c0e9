"""The Gram matrix over any cut: groups of people, different columns of a group at different parties."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import GROUPS, VERTICAL, charges, gram_study, rows
from syndic import Study, simulate
from syndic.data import Table
from syndic.errors import InputError, PartyError
from syndic.methods.regression.gram_plan import GramPlan
from syndic.methods.regression.gram_result import GramResult
from syndic.model.gram.matrix import GramMatrix, squares_of
from syndic.model.gram.scaling import Scale, Scaling
from syndic.noise import FineGaussian, FineGaussianShare
from syndic.sklearn import GramRegression
from syndic.study import Release, plan
from unit.methods.exact_gram import exact_rows

PEOPLE = {"first": rows(60, 3), "second": rows(40, 4)}
BUDGET = "epsilon = 1.0\ndelta = 1e-6"
BOUNDS = "scaling = 0.0"


def parties(*held: tuple[str, str, str]) -> str:
    return "".join(
        f'[[parties]]\nname = "{name}"\npeople = {len(PEOPLE[group])}\ngroup = "{group}"\ncolumns = {columns}\n'
        for name, group, columns in held
    )


EVERY = '["colour", "age", "score"]'
ALONE = parties(("one", "second", EVERY), ("two", "first", '["age"]'), ("three", "first", '["score", "colour"]'))
TWICE = parties(
    ("one", "first", '["age"]'), ("two", "first", EVERY), ("three", "second", EVERY), ("four", "second", '["age"]')
)
CUTS = {"two groups of two": GROUPS, "one alone": ALONE, "columns twice": TWICE}


def sources(study: Study, people: dict[str, pa.Table] = PEOPLE) -> dict[str, pa.Table]:
    return {one.name: people[one.group or ""].select(list(one.columns or ())) for one in study.parties}


def opened(study: Study, given: dict[str, pa.Table], **options: Any) -> GramResult:
    result = simulate(study, given, seed=3, **options).result
    assert isinstance(result, GramResult)
    return result


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all noise away."""
    for kind in (FineGaussian, FineGaussianShare):
        monkeypatch.setattr(kind, "draw", lambda *given: np.zeros(given[1], np.int64))


OPTIONS = ["", "scaling = 0.0", 'adversary = "passive"', 'norm = 0.4\nexempt = ["age"]\nbits = 5', "colluding = 2"]


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_without_noise_it_is_the_matrix_of_all_people(cut: str, options: str) -> None:
    study = gram_study(options, parties=cut)
    found, given = opened(study, sources(study)), sources(study)
    matrix = exact_rows(study, given, found.note.scales)
    assert found.note.rows == len(matrix) == 100
    assert bool(found.note.scales) == (not any(word in options for word in ("scaling", "norm")))
    assert found.opened.matrix.tolist() == (matrix.T @ matrix).tolist()
    # the columns are those of the schema, whoever holds them
    assert found.opened.names == ("(intercept)", "colour=red", "colour=green", "colour=blue", *found.opened.names[4:])


@pytest.mark.usefixtures("silent")
def test_every_cut_of_the_same_rows_gives_the_same_sums() -> None:
    whole = pa.concat_tables(PEOPLE.values())
    by_rows = gram_study(BOUNDS, parties=parties(("one", "first", EVERY), ("two", "second", EVERY)))
    across = gram_study(BOUNDS, parties=VERTICAL.replace("60", "100"))
    held = {"north": whole.select(["colour", "age"]), "south": whole.select(["score"])}
    found = [
        opened(study, sources(study))
        for study in (by_rows, *(gram_study(BOUNDS, parties=cut) for cut in CUTS.values()))
    ]
    assert (by_rows.partition, across.partition) == ("horizontal", "vertical")
    assert [one.sums.tolist() for one in found] == [opened(across, held).sums.tolist()] * 4


@pytest.mark.parametrize("options", ["", "scaling = 0.0"])
def test_noise_has_the_stated_size_and_everybody_pays_for_all(options: str, tmp_path: Path) -> None:
    study = gram_study(options, parties=GROUPS, budget=BUDGET)
    found = opened(study, sources(study), folder=tmp_path)
    matrix = exact_rows(study, sources(study), found.note.scales)
    gram = found.opened
    noise = ((gram.matrix - matrix.T @ matrix) / gram.sigma)[gram.places >= 0]
    assert 0.4 < np.sqrt((noise**2).mean()) < 1.8
    events = [[entry.why for entry in charges(tmp_path, one.name)] for one in study.parties]
    assert {len(each) for each in events} == {2 if not options else 1}
    assert study.joint.epsilon(study.delta) <= 1


def test_shares_are_of_all_parties_and_the_worst_group_decides() -> None:
    study = gram_study("norm = 0.5", parties=ALONE, columns=NUMBERS)
    made = study.plan_as(GramPlan)
    # three numbers of one party count as one and a half; of two parties, two count as one and one is left as it is
    lengths = {name: (clip.blocks, float(clip.length)) for name, clip in made.stages.clips.items()}
    assert lengths == {"one": (3, 1.5), "three": (2, 1.0)}
    assert made.sensitivity == (1 + 1 + 1) ** 2 + 1 > (1 + 1.5) ** 2 + 1.5
    assert (made.noise.parties, made.noise.honest) == (3, 2)
    first = gram_study(parties=GROUPS).plan_as(GramPlan).stages.first
    assert isinstance(first, FineGaussianShare)
    assert first.parties == 4


NUMBERS = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "real"\nlower = -1.0\nupper = 1.0\nbins = 200\n'
    "missing = { value = 0.0 }\n"
    for name in ("colour", "age", "score")
)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("options", ["", 'target = "score"', "scaling = 0.0"])
def test_a_person_moves_the_sums_by_no_more_than_is_paid_for(options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator sends the narrowest widths that are accepted, far from a person."""
    study = gram_study(options, parties=GROUPS)
    made, both = study.plan_as(GramPlan), []
    lie = tuple(Scale(name=name, centre=1 << 10, width=1) for name in ("age", "score"))
    monkeypatch.setattr(Scaling, "scales", lambda *_: lie)
    for age, score in ((0, -1.0), (99, 1.0)):
        person = pa.table({"colour": ["red" if age else "green"], "age": [age], "score": [score]})
        changed = {**PEOPLE, "second": pa.concat_tables([person.cast(PEOPLE["second"].schema), PEOPLE["second"][1:]])}
        both.append(opened(study, sources(study, changed)))
    moved = (both[0].sums - both[1].sums).astype(float) / 4.0**made.bits
    if made.stages.scaling:
        moved[squares_of(made.features)] /= 2**0.5
    assert 1 < float(moved @ moved) <= made.sensitivity


def test_a_release_is_read_back_and_fits_models(tmp_path: Path) -> None:
    generator, people = np.random.default_rng(1), {}
    for name, count in (("first", 60), ("second", 40)):
        age = generator.integers(0, 100, count)
        score = np.clip(age / 100 - 0.5 + generator.normal(0, 0.1, count), -1, 1)
        people[name] = pa.table({"colour": ["red"] * count, "age": age, "score": score})
    study = gram_study(parties=GROUPS, budget="epsilon = 15.0\ndelta = 1e-6")
    release = simulate(study, sources(study, people), seed=2)
    release.write(tmp_path)
    loaded = Release.load(tmp_path)
    assert isinstance(loaded.result, GramResult)
    assert loaded.result.note == release.result.note  # type: ignore[attr-defined]
    model = GramRegression("score", features=["age"]).fit(loaded)
    assert model.coef_[0] == pytest.approx(0.0092, abs=6 * model.inference_.standard_errors()[1])
    assert model.predict(people["first"]).shape == (60,)
    plain = exact_rows(study, sources(study, people), loaded.result.note.scales)
    truth = GramMatrix.of(plain[:, [4, 5]], ["age", "score"])
    assert loaded.result.opened.matrix[4, 5] == pytest.approx(truth.matrix[1, 2], abs=6 * loaded.result.note.sigma)


def test_the_plan_says_who_multiplies_and_whom_to_trust() -> None:
    told = plan(gram_study(parties=ALONE))
    assert "colour  one          three" in str(told)
    assert "colludes with no party of a group that has several" in told.statement.trust
    assert any("which rows belong together" in one for one in told.statement.not_protected)
    by_rows = plan(gram_study(parties='[[parties]]\nname = "a"\npeople = 9\n[[parties]]\nname = "b"\npeople = 9\n'))
    assert "the coordinator may do anything" in by_rows.statement.trust
    assert not any("triples" in one for one in by_rows.statement.not_protected)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"options": "missing = 1"}, "set missing = 0"),
        ({"options": "overlap = true"}, "in one group"),
        ({"options": 'products = [["colour", "age"]]'}, "two columns of one party"),
        ({"parties": GROUPS.replace('["age", "score"]', '["age"]')}, "group 'second' has no column 'score'"),
        ({"parties": GROUPS.replace("60", "61", 1)}, "group 'first' hold the same people"),
        ({"unit": 'neighbours = "replace"\nparties = 2'}, "parties = 1"),
        ({"unit": 'neighbours = "add_remove"'}, "know who is in the data"),
    ],
)
def test_what_cannot_work_is_refused(parts: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        gram_study(**{"parties": GROUPS, **parts}).check()


def test_products_are_of_columns_at_one_party_in_every_group() -> None:
    study = gram_study('products = [["colour", "score"]]', parties=ALONE)
    found = opened(study, sources(study))
    assert "colour=red*score" in found.opened.names
    matrix = exact_rows(study, sources(study))
    noise = (found.opened.matrix - matrix.T @ matrix)[found.opened.places >= 0]
    assert np.sqrt((noise**2).mean()) < 2 * found.note.sigma


def test_rows_that_change_while_they_are_multiplied_open_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, reads = Table.batches, []

    def changing(self: Table, names: Any = None) -> Any:
        reads.append(names)
        for coded in honest(self, names):
            yield {name: codes if len(reads) < 12 else codes[::-1] * 0 for name, codes in coded.items()}

    monkeypatch.setattr(Table, "batches", changing)
    study = gram_study("scaling = 0.0", parties=GROUPS)
    with pytest.raises(PartyError, match="changed while they were multiplied"):
        simulate(study, sources(study), seed=3, folder=tmp_path)
    assert [charges(tmp_path, one.name) for one in study.parties] == [[], [], [], []]


COLUMN = "\nlower = 0.0\nupper = 1.0\nbins = 100\nmissing = { value = 0.5 }\n"
FIVE = "".join(f'[[schema.columns]]\nname = "{name}"\nkind = "real"{COLUMN}' for name in "abc") + (
    '[[schema.columns]]\nname = "d"\nkind = "boolean"\nmissing = { value = false }\n'
    '[[schema.columns]]\nname = "e"\nkind = "categorical"\nvalues = ["x", "y", "z"]\nmissing = { value = "x" }\n'
)
ACROSS = "".join(
    f'[[parties]]\nname = "{name}"\npeople = 2000\ncolumns = {held}\n'
    for name, held in (("p0", '["a", "b", "d"]'), ("p1", '["c", "e"]'))
)
APART = "".join(f'[[parties]]\nname = "p{place}"\npeople = 400\n' for place in range(5))


@pytest.mark.parametrize(
    ("cut", "options", "sigma"),
    [
        (ACROSS, "", 40.39193882460241),
        (ACROSS, BOUNDS, 35.84758909214718),
        (ACROSS, "norm = 0.5", 30.464592716019055),
        (ACROSS, 'products = [["a", "b"]]', 41.82218727417171),
        (APART, "", 31.932631448982008),
        (APART, BOUNDS, 28.340007539248177),
        (APART, "norm = 0.5", 22.028166057163546),
        (APART, "missing = 1", 36.87262672600574),
        (APART, 'products = [["a", "c"]]', 33.06334212912287),
        (APART, "colluding = 2\nbits = 6", 36.872626726118),
    ],
)
def test_noise_and_charge_are_those_of_one_method_for_each_cut(cut: str, options: str, sigma: float) -> None:
    """As measured when different people and different columns had a method each."""
    made = gram_study(options, parties=cut, columns=FIVE, budget=BUDGET).plan_as(GramPlan)
    assert made.sigma == pytest.approx(sigma, rel=1e-12)
    *first, last = (event.mu_squared for event in made.stages.events)
    whole = Fraction(3501810239, 62500000000)
    assert [*first, last] == ([whole / 5, 4 * whole / 5] if made.stages.scaling else [whole])
