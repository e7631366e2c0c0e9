"""Estimates over any cut: in every group of people the first party that holds the column sums it up."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aligning import carried
from support import charges, rows, study_text
from syndic import Study, advise, simulate
from syndic.errors import InputError, PartyError
from syndic.kernel import Nothing
from syndic.methods.estimate.estimate import Estimate
from syndic.methods.estimate.plan import EstimatePlan
from syndic.methods.estimate.result import Estimates, EstimatesResult
from syndic.noise import DiscreteLaplace, LaplaceShare
from syndic.report import report
from syndic.study import plan
from syndic.study.statement import costs_of

PEOPLE = {"north": rows(60, 1), "south": rows(45, 2), "east": rows(30, 3)}
AGES = {name: np.asarray(table["age"], dtype=float) for name, table in PEOPLE.items()}
Held = dict[str, tuple[str, list[str]]]
VERTICAL: Held = {"a": ("north", ["colour"]), "b": ("north", ["age", "score"])}
TWO_BY_TWO: Held = {**VERTICAL, "c": ("south", ["age"]), "d": ("south", ["colour", "score"])}
BESIDE: Held = {**VERTICAL, "c": ("south", ["colour", "age", "score"])}
TWICE: Held = {**BESIDE, "a": ("north", ["colour", "age"])}
FIVE: Held = {**VERTICAL, **{name: ("north", ["colour", "score"]) for name in "cde"}}
LACKING: Held = {**VERTICAL, "c": ("south", ["colour", "score"])}


def study_toml(held: Held, more: str = "", *, unit: str = "", budget: str = "epsilon = 1.0") -> str:
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = {len(PEOPLE[group])}\ngroup = "{group}"\n'
        f"columns = [{', '.join(f'{one!r}' for one in columns)}]\n"
        for name, (group, columns) in held.items()
    )
    protocol = f'method = "estimate"\ncolumn = "age"\nfamily = {{ kind = "poisson" }}\n{more}'
    return study_text(protocol=protocol, unit=f'neighbours = "replace"\n{unit}', budget=budget, parties=parties)


def study(held: Held, more: str = "", *, unit: str = "") -> Study:
    return Study.loads(study_toml(held, more, unit=unit))


def sources(held: Held) -> dict[str, pa.Table]:
    return {name: PEOPLE[group].select(columns) for name, (group, columns) in held.items()}


def estimates(agreed: Study, given: dict[str, pa.Table], folder: Path | None = None) -> Estimates:
    result = simulate(agreed, given, seed=1, folder=folder).result
    assert isinstance(result, EstimatesResult)
    return result.estimates


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all noise away."""
    for noise in (DiscreteLaplace, LaplaceShare):
        monkeypatch.setattr(noise, "apply", lambda _, values, randomness: values)  # noqa: ARG005


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("scheme", ["dssa", "masked"])
@pytest.mark.parametrize(
    ("held", "counting", "groups"),
    [
        (VERTICAL, "b", ["north"]),
        (TWO_BY_TWO, "bc", ["north", "south"]),
        (BESIDE, "bc", ["north", "south"]),
        (TWICE, "ac", ["north", "south"]),
        (LACKING, "b", ["north"]),
    ],
    ids=["vertical", "two by two", "beside", "twice", "lacking"],
)
def test_without_noise_it_is_the_estimate_of_the_pooled_column(
    held: Held, counting: str, groups: list[str], scheme: str, tmp_path: Path
) -> None:
    agreed = study(held, f'scheme = "{scheme}"\ndiffer = true')
    assert agreed.plan_as(EstimatePlan).counting == tuple(counting)
    found = estimates(agreed, sources(held), tmp_path)
    ages = np.concatenate([AGES[group] for group in groups])
    assert found.together.people == len(ages)
    assert found.together.estimate[0] == pytest.approx(ages.mean())
    paid = {name: len(charges(tmp_path, name)) for name in held}
    assert paid == {name: int(scheme == "masked" or name in counting) for name in held}
    assert {name: bool(agreed.plan.events(name)) for name in held} == {name: bool(one) for name, one in paid.items()}


def test_noise_and_charges_are_those_of_the_holders_alone() -> None:
    """As in the study of different people that has the holders only."""
    alone = study_text(
        protocol='method = "estimate"\ncolumn = "age"\nfamily = { kind = "poisson" }',
        unit='neighbours = "replace"',
        parties="".join(f'[[parties]]\nname = "{name}"\npeople = {size}\n' for name, size in (("b", 60), ("c", 45))),
    )
    holders, cut = Study.loads(alone), study(TWO_BY_TWO)
    assert cut.plan_as(EstimatePlan).noise == holders.plan_as(EstimatePlan).noise
    assert cut.joint == holders.joint
    assert {name: cut.costs[name] for name in "bc"} == holders.costs
    assert not any(cut.plan.events(name) for name in "ad")


def test_people_in_two_groups_are_paid_for() -> None:
    one, two = (study(TWO_BY_TWO, unit=f"parties = {count}").plan_as(EstimatePlan) for count in (1, 2))
    assert two.noise["b"].variance == pytest.approx(4 * one.noise["b"].variance, rel=1e-3)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("scheme", ["dssa", "dsaa", "masked"])
def test_no_partner_releases_more_about_the_same_people_than_a_party_grants_them(scheme: str, noise: str) -> None:
    """The party does not hold the column, but the people are its own: their strictest budget is kept."""
    more = f'scheme = "{scheme}"\nnoise = "{noise}"\nleast = [1.0]\nmost = [90.0]'
    text = study_toml(TWO_BY_TWO, more, budget="epsilon = 1.0\ndelta = 1e-6")
    strict = text.replace('name = "a"\n', 'name = "a"\nbudget = { epsilon = 0.1, delta = 1e-6 }\n')
    costs = {name: cost.epsilon(Fraction(1, 10**6)) for name, cost in Study.loads(strict).costs.items()}
    assert 0.09 < costs["b"] <= 0.1
    assert (0.9 if scheme != "masked" else 0.09) < costs["c"] <= 1


def test_a_party_that_does_not_sum_up_the_column_refuses_and_is_charged_nothing(tmp_path: Path) -> None:
    agreed = study(VERTICAL)
    carrier, session = carried(agreed, sources(VERTICAL), tmp_path)
    protocol = agreed.protocol
    assert isinstance(protocol, Estimate)
    with pytest.raises(PartyError, match="a does not sum up 'age'"):
        session.ask(protocol.answer, {"a": Nothing()})
    session.ask(protocol.answer, {"b": Nothing()})
    carrier.close()
    assert [len(charges(tmp_path, name)) for name in "ab"] == [0, 1]


def test_the_plan_says_who_sums_up_and_for_how_many_people() -> None:
    told = str(plan(study(LACKING)))
    assert "age: counted for 57% of the people" in told
    assert "age  b           -" in told
    statement = plan(study(TWO_BY_TWO)).statement
    assert "the noisy sums of b and of c" in str(statement.sees)
    assert "people in more than 1 of the groups" in statement.not_protected
    assert "in no more than 1 of the groups" in statement.sensitivity


def test_no_owner_is_told_that_its_people_cost_nothing(tmp_path: Path) -> None:
    """Party a pays nothing, but the sums of b are of the same people, whom its own rows helped to choose."""
    told = plan(study(VERTICAL))
    assert "epsilon 0 for one person" not in str(told)
    assert "epsilon 0 for the values at a, which are not read; the same people's values at other parties" in str(told)
    assert costs_of(told.statement)[0] == "epsilon 1 for one person at b"
    assert "by the ledger of a: that a person is in the data there" in str(told.statement.not_protected)
    page = report(simulate(study(VERTICAL), sources(VERTICAL), seed=1), tmp_path / "report.html").read_text()
    assert "epsilon 0 for one person" not in page
    # where the group lacks the column, or every party pays, there is nothing to say
    for held, more in ((BESIDE | {"d": ("east", ["colour"])}, ""), (VERTICAL, 'scheme = "masked"')):
        found = plan(study(held, more)).statement.not_protected
        assert [one for one in found if "ledger" in one and ("of d" in one or more)] == []


@pytest.mark.parametrize(
    ("held", "more", "words"),
    [
        (TWO_BY_TWO, 'groups = [{ name = "x", parties = ["a"] }]', "must list parties"),
        ({"a": ("north", ["colour"]), "b": ("north", ["score"])}, "", "'age' is held by no party"),
        (TWO_BY_TWO, 'scheme = "cssa"', "is for one party"),
        # else everybody pays, and there is nothing to estimate if the one holder is missing
        (FIVE, 'scheme = "masked"\nmissing = 1', "only b can sum up 'age'.*set missing = 0"),
    ],
)
def test_what_makes_no_sense_is_refused(held: Held, more: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        study(held, more).check()


def test_advice_compares_the_parties_that_sum_up() -> None:
    told: Any = advise(study(TWO_BY_TWO))
    assert {one.party for one in told.tasks[0].parties} == {"b", "c"}


@pytest.mark.parametrize("group", ["", 'group = "x"\n'])
def test_learn_says_what_takes_columns_at_several_parties(group: str) -> None:
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = 60\n{group}columns = {columns}\n'
        for name, columns in (("a", '["colour", "age"]'), ("b", '["score"]'))
    )
    text = study_text(
        protocol='method = "learn"\nlabel = "colour"', budget="epsilon = 1.0\ndelta = 1e-5", parties=parties
    )
    with pytest.raises(InputError, match="`gram` fits regressions, `synthesis` with `target`"):
        Study.loads(text).check()
