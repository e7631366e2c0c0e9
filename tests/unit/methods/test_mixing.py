"""Noisy columns of a vertical study: what they cost jointly, what is published, what the printed noise would cost."""

import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import COLUMNS, MISSING_LEVELS, THREE_VERTICAL, VERTICAL, charges, mixing_study, rows
from syndic import Study, simulate
from syndic.data import Table, open_source
from syndic.errors import InputError
from syndic.methods import Mixing
from syndic.methods.regression.mixing import mixed_ones
from syndic.methods.regression.mixing_plan import MixingPlan
from syndic.methods.regression.mixing_result import MixedResult
from syndic.model.gram.fit import regress
from syndic.model.gram.mixing import classical_sigma
from syndic.privacy import Cost, GaussianEvent, gaussian_epsilon, mu_squared_for
from syndic.study import plan

MANY = "epsilon = 20\ndelta = 1e-7"


def named(count: int) -> str:
    """Return the schema of so many numbers."""
    return "".join(
        f'[[schema.columns]]\nname = "x{place}"\nkind = "real"\nlower = -1.0\nupper = 1.0\nbins = 2000\n'
        "missing = { value = 0.0 }\n"
        for place in range(count)
    )


def of_numbers(*widths: int, people: int = 100) -> str:
    """Return parties that hold so many of the columns of `named` each."""
    text, start = "", 0
    for place, width in enumerate(widths):
        names = ", ".join(f'"x{number}"' for number in range(start, start + width))
        text += f'[[parties]]\nname = "p{place}"\npeople = {people}\ncolumns = [{names}]\n'
        start += width
    return text


def numbers(people: int, columns: int) -> pa.Table:
    generator = np.random.default_rng(4)
    drawn = generator.uniform(-1, 1, (people, columns))
    drawn[:, -1] = drawn[:, :-1] @ np.linspace(-0.5, 0.5, columns - 1) / 2
    return pa.table({f"x{place}": drawn[:, place] for place in range(columns)})


def protocol_of(study: Study) -> Mixing:
    assert isinstance(study.protocol, Mixing)
    return study.protocol


def published(study: Study, table: pa.Table, folder: Path | None = None) -> MixedResult:
    sources = {party.name: table.select(list(party.columns or ())) for party in study.parties}
    result = simulate(study, sources, seed=3, folder=folder).result
    assert isinstance(result, MixedResult)
    return result


def exact_rows(study: Study, table: pa.Table) -> np.ndarray:
    planned = study.plan_as(MixingPlan)
    parts = []
    for party in study.parties:
        schema = study.schema.select(party.columns or ())
        coded = next(iter(Table(schema, open_source(table)).batches()))
        parts.append(planned.rows(party.name, coded))
    return np.hstack(parts).astype(np.int64)


@pytest.mark.parametrize("scheme", ["dgm", "bgm", "rmgm"])
@pytest.mark.parametrize(("parties", "columns"), [(VERTICAL, COLUMNS), (THREE_VERTICAL, MISSING_LEVELS)])
def test_a_release_is_the_exact_rows_plus_noise_of_the_stated_size(scheme: str, parties: str, columns: str) -> None:
    study = mixing_study(
        f'scheme = "{scheme}"',
        parties=parties.replace("60", "900"),
        columns=columns,
        budget="epsilon = 1\ndelta = 1e-6",
    )
    table = rows(900, 3)
    result = published(study, table)
    planned, mixed, exact = study.plan_as(MixingPlan), result.mixed, exact_rows(study, table) / 1024
    if scheme == "rmgm":
        assert planned.mixes == 2 * (len(planned.features) + 1)
        # the rows before noise are not known to this test, but the mixed intercept is: signs of sums of ones
        assert mixed.ones == pytest.approx(
            mixed_ones(bytes.fromhex(result.note.seed), people=900, mixes=planned.mixes, bits=10) / planned.mixes**0.5
        )
        exact = np.zeros_like(mixed.table)
    else:
        assert np.array_equal(mixed.ones, np.ones(900))
    noise = (mixed.table - exact) / planned.tau
    cells = noise.size
    assert 1 - 6 / cells**0.5 < (noise**2).mean() < 1.3 + 6 / cells**0.5
    assert np.abs(noise).max() < 7


def test_mixed_rows_without_noise_to_speak_of_are_signs_times_rows() -> None:
    study = mixing_study("mixes = 1600", parties=of_numbers(2, 2, people=20_000), columns=named(4), budget=MANY)
    table = numbers(20_000, 4)
    result = published(study, table)
    exact = exact_rows(study, table) / 1024
    assert study.plan_as(MixingPlan).tau < 2
    # columns of the same party and of different ones were mixed by the same signs: products survive
    assert result.mixed.gram().matrix[1:, 1:] / 20_000 == pytest.approx(exact.T @ exact / 20_000, abs=0.12)
    fit = regress(result.mixed.gram(), "x3", ("x0", "x1", "x2"))
    # over eight seeds the largest error was 0.05; the published fit also shrinks by a quarter
    assert fit.coefficients == pytest.approx(np.linspace(-0.25, 0.25, 3), abs=0.08)
    assert result.least_squares("x3").coefficients == pytest.approx(np.linspace(-0.19, 0.19, 3), abs=0.08)


@pytest.mark.parametrize("epsilon", ["0.01", "1", "20"])
@pytest.mark.parametrize("scheme", ["rmgm", "dgm"])
def test_the_parts_of_all_parties_cost_the_budget_together(epsilon: str, scheme: str) -> None:
    study = mixing_study(
        f'scheme = "{scheme}"',
        parties=of_numbers(2, 2, 2, 2, 2, 1),
        columns=named(11),
        budget=f"epsilon = {epsilon}\ndelta = 1e-5",
    )
    study.check()
    planned = study.plan_as(MixingPlan)
    events = [study.plan.events(party.name)[0] for party in study.parties]
    joint = float(Cost.of(events).epsilon(study.delta))
    assert float(epsilon) * (1 - 1e-4) - 1e-4 < joint <= float(epsilon)
    assert joint == pytest.approx(float(study.joint.epsilon(study.delta)), rel=1e-4)
    # tau = 2 sqrt(d + 1) / mu, for all entries alike
    mu = float(mu_squared_for(Fraction(epsilon), Fraction(1, 10**5))) ** 0.5
    assert planned.tau == pytest.approx(2 * 11**0.5 / mu, rel=1e-4)
    scale = 2.0**10 * (planned.mixes or 1) ** 0.5
    for noise in planned.noise.values():
        assert noise.variance**0.5 / scale == pytest.approx(planned.tau, rel=1e-6)


@pytest.mark.parametrize(
    ("widths", "joint"), [((2, 2, 2, 2, 2, 1), 1.92), ((2, 2, 2, 2, 2), 1.75 + 0.07), ((3, 3, 3, 2), None)]
)
def test_the_printed_noise_costs_a_person_more_than_it_says(widths: tuple[int, ...], joint: float | None) -> None:
    study = mixing_study("as_published = true", parties=of_numbers(*widths), columns=named(sum(widths)))
    study.check()
    planned = study.plan_as(MixingPlan)
    sigma = classical_sigma(1.0, 1e-5)
    assert planned.tau == pytest.approx(2 * max(widths) ** 0.5 * sigma)
    assert planned.mixes == int(10 * 100**0.5 / sigma)
    mu_squared = Fraction(sum(widths) / (max(widths) * sigma**2))
    epsilon = float(study.joint.epsilon(study.delta))
    assert epsilon == pytest.approx(float(gaussian_epsilon(mu_squared, Fraction(1, 10**5))), rel=1e-6)
    if joint is not None:
        assert epsilon == pytest.approx(joint, abs=0.005)
    assert epsilon > 1.5
    departures = " ".join(study.plan.disclosure.departures)
    assert f"epsilon {epsilon:.4g}" in departures
    assert protocol_of(study).simulation_only


def test_the_printed_noise_on_unit_values_is_twice_what_they_need() -> None:
    symmetric = mixing_study("as_published = true", parties=of_numbers(2, 2), columns=named(4))
    unit = mixing_study('as_published = true\nbounds = "unit"', parties=of_numbers(2, 2), columns=named(4))
    taus = [study.plan_as(MixingPlan).tau for study in (symmetric, unit)]
    assert taus[1] == pytest.approx(2 * taus[0])
    assert float(unit.joint.epsilon(unit.delta)) < float(symmetric.joint.epsilon(symmetric.delta))
    assert "twice" in " ".join(unit.plan.disclosure.departures)


def test_lists_of_values_move_less_than_numbers() -> None:
    study = mixing_study()
    # three colours are indicators, 1 + 1; age and score are numbers, from -1 to 1
    assert dict(study.plan_as(MixingPlan).squares) == {"north": 6, "south": 4}
    missing = mixing_study(columns=MISSING_LEVELS)
    assert dict(missing.plan_as(MixingPlan).squares) == {"north": 6, "south": 4}
    coded = missing.plan_as(MixingPlan)
    blocks = [block for each in coded.codings.values() for block in each]
    moved = 0
    for block in blocks:
        table = block.tables[0].astype(np.int64)
        moved += max(int(((one - other) ** 2).sum()) for one in table for other in table)
    assert moved <= 10 * 4**10


def test_each_ledger_is_charged_once_and_for_its_own_columns(tmp_path: Path) -> None:
    study = mixing_study()
    published(study, rows(60, 3), tmp_path)
    (north,), (south,) = (charges(tmp_path, party)[0].events for party in ("north", "south"))
    assert isinstance(north, GaussianEvent)
    assert isinstance(south, GaussianEvent)
    assert float(north.mu_squared / south.mu_squared) == pytest.approx(6 / 4, rel=1e-9)


def test_a_release_is_read_back(tmp_path: Path) -> None:
    study = mixing_study()
    result = published(study, rows(60, 3))
    result.write(tmp_path)
    again: Any = protocol_of(study).read(study.plan_as(MixingPlan), tmp_path)
    assert again.note == result.note
    assert np.array_equal(again.numbers, result.numbers)
    assert np.array_equal(again.ones, result.ones)
    other = mixing_study("bits = 8")
    with pytest.raises(InputError, match="does not belong to this study"):
        protocol_of(other).read(other.plan_as(MixingPlan), tmp_path)
    stored = pq.read_table(tmp_path / "mixed.parquet")
    halves = pa.array([None, *[0.5] * (len(stored) - 1)], pa.float64())
    pq.write_table(stored.set_column(1, stored.column_names[1], halves), tmp_path / "mixed.parquet")
    with pytest.raises(InputError, match="whole numbers"):
        protocol_of(study).read(study.plan_as(MixingPlan), tmp_path)
    (tmp_path / "mixed.parquet").write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read"):
        protocol_of(study).read(study.plan_as(MixingPlan), tmp_path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("parties = 2\n", "parties = 1\n"), "parties = 2"),
        (('"replace"', '"add_remove"'), "replace"),
        (('people = 60\ncolumns = ["score"]', 'people = 50\ncolumns = ["score"]'), "the same number"),
        (('"colour", "age"', '"colour", "score"'), "by exactly one"),
        (("delta = 1e-5", ""), "delta above 0"),
    ],
)
def test_studies_that_cannot_work_are_refused(change: tuple[str, str], why: str) -> None:
    from support import study_text  # noqa: PLC0415

    text = study_text(
        unit='neighbours = "replace"\nparties = 2\n',
        budget="epsilon = 1.0\ndelta = 1e-5",
        parties=VERTICAL,
        protocol='method = "mixing"',
    )
    assert change[0] in text
    with pytest.raises(InputError, match=why):
        Study.loads(text.replace(*change)).check()


@pytest.mark.parametrize("options", ['scheme = "dgm"\nmixes = 5', "mixes = 0", "bits = 3", "bits = 17"])
def test_options_out_of_range_are_refused(options: str) -> None:
    with pytest.raises(InputError):
        mixing_study(options)


@pytest.mark.parametrize(
    "columns",
    [
        {"a=b": 'kind = "categorical"\nvalues = ["c", "d"]', "a": 'kind = "categorical"\nvalues = ["b=c", "d"]'},
        {"a": 'kind = "boolean"', "(intercept)": 'kind = "boolean"'},
    ],
)
def test_features_that_would_have_one_name_are_refused_before_anything_is_spent(columns: dict[str, str]) -> None:
    schema = "".join(f'[[schema.columns]]\nname = "{name}"\n{kind}\n' for name, kind in columns.items())
    parties = "".join(
        f'[[parties]]\nname = "p{place}"\npeople = 60\ncolumns = ["{name}"]\n' for place, name in enumerate(columns)
    )
    with pytest.raises(InputError, match="two features would be called"):
        mixing_study(parties=parties, columns=schema).check()


def test_what_needs_too_much_memory_is_refused() -> None:
    study = mixing_study('scheme = "dgm"', parties=of_numbers(5, 6, people=2 * 10**7), columns=named(11))
    with pytest.raises(InputError, match="MB of memory"):
        study.plan.check()
    mixed = mixing_study("mixes = 3575", parties=of_numbers(5, 6, people=3 * 10**6), columns=named(11))
    mixed.plan.check()
    assert mixed.plan.resources.memory_bytes < 300 * 10**6  # of which 250 are Python and libraries


@pytest.mark.slow
def test_the_peak_is_below_what_was_announced() -> None:
    study = mixing_study(
        'scheme = "dgm"',
        parties=of_numbers(5, 6, people=200_000),
        columns=named(11),
        budget="epsilon = 1\ndelta = 1e-8",
    )
    table = numbers(200_000, 11)
    tracemalloc.start()
    try:
        published(study, table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 1.2 * 10**8 < peak < study.plan.resources.memory_bytes


def test_the_statement_says_that_aligning_shows_who_is_in() -> None:
    study = mixing_study()
    assert "aligned rows show it to every party" in " ".join(plan(study).statement.not_protected)
