from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from support import study_text
from syndic import Release, Study, simulate
from syndic.errors import InputError
from syndic.kernel import make_plan
from syndic.methods.histogram.average import Average, AveragePlan
from syndic.noise.binomial import SLACK, BinomialNoise
from syndic.privacy import Budget, GaussianEvent, mu_squared_for

SCORE = """
[[schema.columns]]
name = "score"
kind = "real"
lower = -1.0
upper = 1.0
bins = 4
missing = { value = 0.0 }
"""
AGE = """
[[schema.columns]]
name = "age"
kind = "integer"
lower = 0
upper = 99
bins = 5
missing = { value = 0 }
"""
COLOUR = '[[schema.columns]]\nname = "colour"\nkind = "categorical"\nvalues = ["red", "green"]\n'


def study(
    protocol: str = "",
    *,
    people: tuple[int, int, int] = (3000, 2000, 1000),
    unit: str = 'neighbours = "replace"',
    budget: str = "epsilon = 1.0\ndelta = 1e-7",
    columns: str = SCORE + AGE + COLOUR,
) -> Study:
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = {count}\n'
        for name, count in zip(("north", "south", "east"), people, strict=True)
    )
    text = study_text(
        unit=unit,
        budget=budget,
        protocol=f'method = "average"\nservers = ["north", "east"]\n{protocol}',
        parties=parties,
        columns=columns,
    )
    return Study.loads(text)


def sources(people: tuple[int, int, int] = (3000, 2000, 1000)) -> dict[str, pa.Table]:
    found = {}
    for place, (name, count) in enumerate(zip(("north", "south", "east"), people, strict=True)):
        generator = np.random.default_rng(place)
        found[name] = pa.table(
            {
                "score": generator.normal(0.2, 2, count),
                "age": generator.integers(-20, 130, count),
                "colour": generator.choice(["red", "green"], count),
            }
        )
    return found


def law(agreed: Study) -> BinomialNoise:
    return agreed.plan_as(AveragePlan).noise


def test_averages_are_those_of_the_clipped_rows() -> None:
    rows = sources()
    release = simulate(study(), rows, seed=1)
    found = release.result.averages  # type: ignore[attr-defined]
    table = pa.concat_tables(rows.values())
    score = np.clip(np.asarray(table["score"]), -1, 1)
    age = np.clip(np.asarray(table["age"]), 0, 99)
    assert found.columns == ("score", "age")
    assert found.rows == 6000
    # 6 standard deviations of the noise, and half a step of 2^-10 of the range for rounding
    for average, spread, exact, step in zip(
        found.averages, found.standard_deviation, (score.mean(), age.mean()), (2 / 1024, 0), strict=True
    ):
        assert abs(average - exact) < 6 * spread + step / 2
        assert 0 < spread < 0.02 * (2 if step else 100)


def test_integers_are_exact_and_reals_within_half_a_step() -> None:
    agreed = study("bits = 7")
    plan = agreed.plan_as(AveragePlan)
    score, age = plan.fixed_point.columns
    table = pa.concat_tables(sources().values())
    sums = np.array([score.encode(table["score"]).sum(), age.encode(table["age"]).sum()], dtype=np.int64)
    found = plan.averages(sums).averages
    assert found[1] == pytest.approx(np.clip(np.asarray(table["age"]), 0, 99).mean(), abs=1e-9)
    clipped = np.clip(np.asarray(table["score"]), -1, 1)
    middle = np.minimum(np.floor((clipped + 1) * 64), 127)
    assert found[0] == pytest.approx(((middle + 0.5) / 64 - 1).mean(), abs=1e-9)
    assert abs(found[0] - clipped.mean()) < 2 / 128 / 2


def test_wide_integers_are_rounded_to_steps() -> None:
    wide = (
        '[[schema.columns]]\nname = "income"\nkind = "integer"\nlower = -50\nupper = 999_949\nmissing = { value = 0 }\n'
    )
    agreed = study("bits = 8", columns=wide)
    plan = agreed.plan_as(AveragePlan)
    (income,) = plan.fixed_point.columns
    values = np.arange(-50, 999_950)
    sums = np.array([income.encode(pa.array(values)).sum(dtype=np.int64)]) * 6000 // values.size
    # averaged over all its values, the middle of the steps is the middle of the range
    assert plan.averages(sums).averages[0] == pytest.approx(values.mean(), abs=1.0)


def test_noise_is_made_for_the_change_of_one_row() -> None:
    found, (event,) = law(study()), study().plan.events("south")
    assert isinstance(event, GaussianEvent)
    assert found.mu_squared(((99, 1), (1023, 1))) == pytest.approx(float(event.mu_squared), abs=4e-12)
    assert event.slack == 2 * SLACK
    gaussian = (1023**2 + 99**2) / float(mu_squared_for(Fraction(1), Fraction(1, 10**7)))
    assert 1 <= (found.variance / gaussian) ** 0.5 < 1.06


def test_people_at_two_parties_move_the_sums_twice_as_far() -> None:
    """Both charges together cover both rows, and each its own."""
    once, twice = study(), study(unit='neighbours = "replace"\nparties = 2')
    assert 0.99 < law(twice).variance / (4 * law(once).variance) < 1.02
    (event,) = twice.plan.events("south")
    assert isinstance(event, GaussianEvent)
    for copies in (1, 2):
        assert law(twice).mu_squared(((copies * 99, 1), (copies * 1023, 1))) <= copies * event.mu_squared
    for each in (once, twice):
        each.check()
        assert 0.998 < each.joint.epsilon(each.delta) <= 1


def test_a_smaller_budget_of_one_party_holds_for_all() -> None:
    agreed = study()
    own = msgspec.structs.replace(agreed.parties[1], budget=Budget.of(0.5, 1e-7))
    agreed = msgspec.structs.replace(agreed, parties=(agreed.parties[0], own, agreed.parties[2]))
    assert law(agreed) == law(study(budget="epsilon = 0.5\ndelta = 1e-7"))


def test_the_field_holds_the_sums_of_adult() -> None:
    """45,222 rows in steps of 10 bits."""
    agreed = study(people=(20_000, 20_000, 5_222))
    assert agreed.plan_as(AveragePlan).two_servers.field.bits == 26
    agreed.check()


def test_release_is_read_back(tmp_path: Path) -> None:
    release = simulate(study(), sources(), seed=1)
    release.write(tmp_path)
    assert Release.load(tmp_path).result == release.result
    assert "average of age" in str(release)


@pytest.mark.parametrize(
    ("agreed", "text"),
    [
        (study(unit='neighbours = "add_remove"'), "public number of rows"),
        (study(unit='neighbours = "replace"\nrows = 2'), "rows = 1"),
        (study(budget="epsilon = 1.0"), r"needs delta above 0: set delta in \[budget\] of the study file"),
        (study(budget="epsilon = 30.0\ndelta = 1e-7"), "leaves nothing of delta"),
        (study(people=(200_000, 200_000, 1000), budget="epsilon = 1.0\ndelta = 3e-9"), "use fewer bits"),
        (study("bits = 24", budget="epsilon = 1e-12\ndelta = 1e-7"), "2\\^52"),
        (study('columns = ["colour"]'), "'colour' is not a number"),
        (study(columns=COLOUR), "no integer or real column"),
        (study(columns=SCORE.replace("missing = { value = 0.0 }", "")), "needs a value in place of missing"),
    ],
)
def test_studies_that_cannot_run(agreed: Study, text: str) -> None:
    with pytest.raises(InputError, match=text):
        agreed.check()


def test_a_server_must_be_a_party() -> None:
    agreed = study()
    with pytest.raises(InputError, match="'west' is not a party"):
        make_plan(Average(servers=("north", "west")), agreed)
    for servers, bits, text in [(("a", "a"), 10, "two different"), (("a", "b"), 25, "bits")]:
        with pytest.raises(ValueError, match=text):
            Average(servers=servers, bits=bits)


def test_disclosure_names_the_coalitions_that_break_it() -> None:
    told = study().plan.disclosure
    assert "two servers collude" in told.not_protected[0]
    assert "coordinator and one server" in told.not_protected[0]
    assert "1023 for the widest, 1122 in all" in told.sensitivity
