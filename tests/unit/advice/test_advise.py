"""The advice against closed forms, and what it refuses."""

from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from support import study_text
from syndic import Study
from syndic.advice import Advice, Assumptions, NoiseAdvice, Task
from syndic.advice import advise as advise_any
from syndic.advice.assume import ColumnAssumption
from syndic.advice.forecast import Forecast, Sums
from syndic.advice.population import PEOPLE, Population, draw_population
from syndic.advice.predict import HIGHEST
from syndic.advice.predict import advise_tasks as advise
from syndic.advice.question import Question, ask
from syndic.advice.scale import Numbers
from syndic.data import Integer, Schema
from syndic.document import exact, from_json, to_json
from syndic.errors import InputError
from syndic.kernel import Member
from syndic.methods import Homm
from syndic.methods.histogram.homm import HommPlan
from syndic.privacy import Budget, Unit
from syndic.random import SimulationRandomness

ONE_COLUMN = """
[[schema.columns]]
name = "y"
kind = "real"
lower = -3.0
upper = 3.0
bins = 6
missing = { value = 0.0 }
"""
SIZES = (20, 50, 60, 90, 150)


def study(
    epsilon: float = 1.0, *, sizes: tuple[int, ...] = SIZES, columns: str = ONE_COLUMN, protocol: str = ""
) -> Study:
    parties = "".join(f'[[parties]]\nname = "p{place}"\npeople = {size}\n' for place, size in enumerate(sizes))
    return Study.loads(
        study_text(
            budget=f"epsilon = {epsilon}", parties=parties, columns=columns, protocol=f'method = "homm"\n{protocol}'
        )
    )


def large_grid(epsilon: float, protocol: Homm, columns: int = 7, people: int = 69) -> Study:
    return Study(
        name="large grid",
        unit=Unit(neighbours="add_remove"),
        budget=Budget(epsilon=exact(epsilon)),
        protocol=protocol,
        parties=tuple(Member(name=f"p{number}", people=people) for number in range(13)),
        schema=Schema.from_domain({f"c{number}": 4 for number in range(columns)}),
    )


NORMAL = Assumptions(columns={"y": ColumnAssumption(mean=0.3, sd=0.9)})


def test_alone_and_pooled_are_sigma_over_root_n() -> None:
    task = advise(study(), assumptions=NORMAL).tasks[0]
    for party, size in zip(task.parties, SIZES, strict=True):
        assert party.alone == pytest.approx(0.9 / sqrt(size), rel=0.02)
    assert task.pooled == pytest.approx(0.9 / sqrt(sum(SIZES)), rel=0.02)


def test_with_hardly_any_noise_only_bins_and_draws_within_them_are_left() -> None:
    """Values uniform within bins of width 1 add 1/12 to the variance of a mean of n rows."""
    task = advise(study(40.0), assumptions=NORMAL).tasks[0]
    # the middle of a bin is not the mean of the people in it: that bias is below 0.01 for a bell of this width
    assert task.joint == pytest.approx(sqrt((0.9**2 + 1 / 12 + 1 / 12) / 370), rel=0.12)
    assert all(party.pays for party in task.parties)


def test_unclamped_noise_by_the_closed_form() -> None:
    """Without clamping the noise adds (variance of a count) sum c^2 / n^2 over cells, c from the true mean."""
    epsilon = 0.4
    task = advise(study(epsilon, protocol="clamp = false"), assumptions=NORMAL).tasks[0]
    a = np.exp(-epsilon)
    variance = 2 * a / (1 - a) ** 2
    centres = np.arange(-2.5, 3) - 0.3
    noise = 5 * variance * float((centres**2).sum()) / 370**2
    rows_of_noise = 5 * 6 * sqrt(variance) / 12 / 370**2  # draws within bins of the rows that noise adds
    assert task.joint == pytest.approx(sqrt((0.9**2 + 2 / 12) / 370 + noise + rows_of_noise), rel=0.1)


def test_more_epsilon_is_never_worse_and_starts_are_ordered_by_size() -> None:
    errors = [advise(study(epsilon), assumptions=NORMAL).tasks[0].joint for epsilon in (0.1, 0.5, 2.0, 20.0)]
    assert errors == sorted(errors, reverse=True)
    starts = [party.epsilon for party in advise(study(), assumptions=NORMAL).tasks[0].parties]
    assert None not in starts
    assert starts == sorted(starts, key=lambda start: start or 0.0)


def test_the_start_is_where_the_verdict_turns() -> None:
    start = advise(study(), assumptions=NORMAL).tasks[0].parties[2].epsilon
    assert start is not None
    for factor, pays in ((1 / 1.2, False), (1.2, True)):
        assert advise(study(round(start * factor, 4)), assumptions=NORMAL).tasks[0].parties[2].pays is pays


def test_the_largest_party_never_gains_from_small_ones_by_coarse_bins() -> None:
    """Two bins cannot tell where in them people are, so 20 more people do not help 5000."""
    columns = ONE_COLUMN.replace("bins = 6", "bins = 2")
    task = advise(study(sizes=(5000, 20), columns=columns), assumptions=NORMAL).tasks[0]
    assert task.parties[0].epsilon is None
    assert not task.parties[0].pays


@pytest.mark.slow
def test_do_not_share_says_how_much_would_be_noise() -> None:
    """With integer noise: a / (1 - a^2) rows of nobody in each of 13 x 16,384 cells."""
    advice = advise(large_grid(1.0, Homm()), tasks=["mean:c0"])
    assert advice.verdict == "do not share"
    assert "DO NOT SHARE" in str(advice)
    a = np.exp(-1.0)
    assert advice.rows_of_nobody == pytest.approx((13 * 4**7 - 13 * 69) * a / (1 - a**2), rel=0.003)
    assert f"about {advice.rows_of_nobody:,.0f} of" in advice.words


@pytest.mark.statistical
@pytest.mark.parametrize("people", [69, 700])
@pytest.mark.parametrize(
    "protocol", [Homm(), Homm(clamp=False), Homm(at_least=3)], ids=["clamp", "signed", "at least 3"]
)
def test_sums_over_rows_are_those_of_the_mechanism(protocol: Homm, people: int) -> None:
    """Mean and covariance of sums over the whole grid, against releases by the mechanism's own noise."""
    study = large_grid(1.0, protocol, 5, people)
    population = draw_population(study.schema, Assumptions(), np.random.default_rng(1), outcome="c4")
    question = ask(Task.of("linear:c4"), population)
    forecast = Forecast(study, population)
    ours = Sums(forecast, question.summands, np.random.default_rng(2)).drawn(forecast.kept(1.0))
    theirs = released_sums(study, population, question)
    scale = theirs.std(axis=0)
    # six standard errors of a mean, and of a standard deviation, over 300 releases
    assert ours.mean(axis=0) == pytest.approx(theirs.mean(axis=0), abs=6 * scale.max() / sqrt(300))
    assert ours.std(axis=0) == pytest.approx(scale, rel=0.3)
    assert question.errors(ours).mean() == pytest.approx(question.errors(theirs).mean(), rel=0.3)


def released_sums(study: Study, population: Population, question: Question) -> Numbers:
    """Sums over the rows of 300 releases: the people of every party and the noise of every cell are drawn anew."""
    plan, draws, domain = study.plan_as(HommPlan), np.random.default_rng(3), study.schema.domain
    shares = np.bincount(domain.index(population.codes), minlength=domain.size) / PEOPLE
    codes = domain.unravel(np.arange(domain.size))
    first = np.ones((domain.size, len(question.summands)))
    for place, summand in enumerate(question.summands):
        for column, part in summand.items():
            first[:, place] *= part.first[codes[column]]
    sums = np.zeros((300, len(question.summands)))
    for party in study.parties:
        counts = draws.multinomial(party.people or 0, shares, 300)
        noisy = plan.noise[party.name].apply(counts.ravel(), SimulationRandomness(5, party.name)).reshape(counts.shape)
        sums += np.where((noisy >= plan.at_least) | (not plan.clamp), noisy, 0) @ first
    return sums


def test_few_survivors_of_a_huge_grid() -> None:
    """A trillion cells, at_least 26: nearly all 300 people are in cells of their own and are dropped."""
    schema = Schema(columns=tuple(Integer(name=f"c{number}", lower=0, upper=99) for number in range(6)))
    huge = Study(
        name="huge",
        unit=Unit(neighbours="add_remove"),
        budget=Budget(epsilon=exact(1)),
        protocol=Homm(at_least=26),
        parties=(Member(name="north", people=300),),
        schema=schema,
    )
    advice = advise(huge, tasks=["mean:c0"])
    assert advice.verdict == "do not share"
    # a handful of rows of nobody, 101^6 a^26 / (1 + a) cells with 26 + a / (1 - a) rows each
    a = np.exp(-1.0)
    assert advice.rows_of_nobody == pytest.approx(101**6 * a**26 / (1 + a) * (26 + a / (1 - a)), rel=0.01)


@pytest.mark.slow
def test_a_centred_population_would_make_noise_look_like_knowledge() -> None:
    """Why the default is off the centre: at the centre noise alone is right, and any epsilon seems to pay."""
    centred = Assumptions(columns={"c0": ColumnAssumption(mean=1.5, sd=0.5)})
    trap = advise(large_grid(0.1, Homm()), tasks=["mean:c0"], assumptions=centred)
    assert trap.verdict == "share"
    assert advise(large_grid(0.1, Homm()), tasks=["mean:c0"]).verdict == "do not share"


def test_the_default_tasks_are_every_column_and_one_prediction() -> None:
    names = [task.task for task in advise(Study.loads(study_text())).tasks]
    assert names == ["shares:colour", "mean:age", "mean:score", "linear:score"]


def test_the_advice_is_a_document_and_repeats_itself() -> None:
    advice = advise(study())
    assert from_json(to_json(advice), Advice, where="advice") == advice == advise(study())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"tasks": ["median:y"]}, "KIND:COLUMN"),
        ({"tasks": ["mean:z"]}, "unknown columns"),
        ({"tasks": ["shares:y"]}, "no listed values"),
        ({"tasks": ["linear:y"]}, "no other column"),
        ({"tasks": []}, "at least one task"),
        ({"assumptions": Assumptions(columns={"z": ColumnAssumption()})}, "unknown columns"),
        ({"assumptions": Assumptions(columns={"y": ColumnAssumption(mean=4.0)})}, "within the column's bounds"),
        ({"assumptions": Assumptions(columns={"y": ColumnAssumption(sd=3.0)})}, r"below 2\.939"),
        ({"assumptions": Assumptions(columns={"y": ColumnAssumption(shares=(1.0,))})}, "has 6 bins"),
    ],
)
def test_what_cannot_be_answered(change: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        advise(study(), **change)  # type: ignore[arg-type]


def test_the_method_decides_what_is_predicted() -> None:
    assert advise_any(study(), assumptions=NORMAL, tasks=["mean:y"]) == advise(
        study(), assumptions=NORMAL, tasks=["mean:y"]
    )
    parties = "".join(f'[[parties]]\nname = "p{place}"\npeople = 500\n' for place in range(3))
    synthesis = Study.loads(
        study_text(budget="epsilon = 1.0\ndelta = 1e-6", parties=parties, protocol='method = "synthesis"')
    )
    assert isinstance(advise_any(synthesis), Advice)
    other = Study.loads(
        study_text(budget="epsilon = 1.0\ndelta = 1e-6", parties=parties, protocol='method = "marginals"')
    )
    assert isinstance(advise_any(other), NoiseAdvice)
    with pytest.raises(InputError, match="tasks are for the method homm"):
        advise_any(synthesis, tasks=["mean:age"])


def test_every_party_must_say_its_size() -> None:
    parties = '[[parties]]\nname = "north"\npeople = 9\n[[parties]]\nname = "south"\n'
    with pytest.raises(InputError, match="set people for south"):
        advise(Study.loads(study_text(parties=parties)))


def test_assumptions_by_words_and_by_file(tmp_path: Path) -> None:
    file = tmp_path / "people.toml"
    file.write_text("r2 = 0.5\n[columns.age]\nmean = 30.0\n[columns.colour]\nshares = [5.0, 3.0, 2.0]\n")
    read = Assumptions.of((str(file), "age.sd=9", "r2=0.25"))
    assert read.r2 == 0.25
    assert read.columns["age"] == ColumnAssumption(mean=30.0, sd=9.0)
    advice = advise(Study.loads(study_text()), tasks=[Task(kind="shares", column="colour")], assumptions=read)
    assert "colour: red 50%, green 30%, blue 20% (declared)" in advice.assumptions
    # two parties, 60 and 40: the average over values of p (1 - p) / n; "other" is a fourth value that nobody has
    alone = sqrt((0.25 + 0.21 + 0.16) / 4 / 60)
    assert advice.tasks[0].parties[0].alone == pytest.approx(alone, rel=0.02)
    with pytest.raises(InputError, match="assumptions"):
        Assumptions.of(("r3=1",))


def test_starts_are_not_sought_above_the_highest() -> None:
    for task in advise(study(sizes=(20, 3000))).tasks:
        assert all(one.epsilon is None or one.epsilon <= HIGHEST for one in task.parties)
