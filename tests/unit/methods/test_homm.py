"""HOMM against closed forms and against counting by hand."""

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from support import PARTIES, rows, study_text, two_parties
from syndic import Release, Study, simulate
from syndic.data import open_source
from syndic.data.table import Table
from syndic.errors import InputError
from syndic.methods.histogram.homm import Homm, HommPlan, MergedTable
from syndic.noise import DiscreteGaussian, DiscreteLaplace
from syndic.privacy import rho_for

GAUSSIAN = 'method = "homm"\nnoise = "gaussian"'


@pytest.mark.parametrize(
    ("unit", "sensitivity", "epsilon"),
    [
        ('neighbours = "add_remove"', 1, Fraction(1)),
        ('neighbours = "replace"', 2, Fraction(1)),  # Laplace noise of scale 1/epsilon would be 2 epsilon
        ('neighbours = "add_remove"\nrows = 3', 3, Fraction(1)),
        ('neighbours = "replace"\nrows = 3', 6, Fraction(1)),
        ('neighbours = "add_remove"\nparties = 2', 1, Fraction(1, 2)),
    ],
)
def test_laplace_noise_is_made_for_the_unit(unit: str, sensitivity: int, epsilon: Fraction) -> None:
    study = Study.loads(study_text(unit=unit))
    assert isinstance(study.protocol, Homm)
    assert study.plan_as(HommPlan).noise["north"] == DiscreteLaplace(sensitivity=sensitivity, epsilon=epsilon)
    assert study.joint.epsilon(Fraction(0)) == 1


@pytest.mark.parametrize(
    ("unit", "squared", "parts"),
    [('neighbours = "replace"', 2, 1), ('neighbours = "add_remove"\nparties = 2\nrows = 3', 9, 2)],
)
def test_gaussian_noise_is_made_for_the_unit(unit: str, squared: int, parts: int) -> None:
    study = Study.loads(study_text(unit=unit, budget="epsilon = 1.0\ndelta = 1e-5", protocol=GAUSSIAN))
    rho = rho_for(Fraction(1), Fraction(1, 10**5))
    assert isinstance(study.protocol, Homm)
    noise = study.plan_as(HommPlan).noise["north"]
    assert isinstance(noise, DiscreteGaussian)
    assert noise.sensitivity_squared == squared
    assert rho / parts - Fraction(1, 10**12) < noise.rho <= rho / parts
    assert 0.999 < study.joint.epsilon(Fraction(1, 10**5)) <= 1
    study.check()


def test_each_party_has_its_own_budget() -> None:
    parties = PARTIES.replace("people = 40", "people = 40\nbudget = { epsilon = 0.25 }")
    study = Study.loads(study_text(parties=parties))
    assert [float(cost.epsilon(Fraction(0))) for cost in study.costs.values()] == [1.0, 0.25]
    assert study.joint.epsilon(Fraction(0)) == 1  # the worst of them, since nobody is at both
    both = Study.loads(study_text(parties=parties, unit='neighbours = "add_remove"\nparties = 2'))
    assert both.joint.epsilon(Fraction(0)) == Fraction(1, 2) + Fraction(1, 8)


def counted(table: pa.Table, study: Study) -> Counter[tuple[int, ...]]:
    """Count rows by their codes, one row after the other."""
    columns = [column.encode(table[column.name]).tolist() for column in study.schema.columns]
    return Counter(zip(*columns, strict=True))


@pytest.mark.parametrize("protocol", ['method = "homm"', 'method = "homm"\nclamp = false'])
def test_without_noise_the_merged_table_has_the_same_counts(protocol: str) -> None:
    study = Study.loads(study_text(budget="epsilon = 60.0", protocol=protocol))
    sources = two_parties()
    release = simulate(study, sources)
    expected = counted(pa.concat_tables(sources.values()), study)
    assert counted(release.table.to_arrow(), study) == expected


@pytest.mark.slow
def test_unclamped_totals_are_unbiased_and_clamped_ones_are_too_large_by_the_closed_form() -> None:
    """E max(noise, 0) over an empty cell is a / (1 - a^2) with a = exp(-epsilon), for integer Laplace noise."""
    empty = {"north": rows(0), "south": rows(0)}
    clamped = Study.loads(study_text())
    signed = Study.loads(study_text(protocol='method = "homm"\nclamp = false'))
    runs, cells = 150, 2 * clamped.schema.domain.size
    sizes, sums = [], []
    for seed in range(runs):
        sizes.append(len(simulate(clamped, empty, seed=seed).table))
        table = simulate(signed, empty, seed=seed).table.to_arrow()
        sums.append(sum(table["weight"].to_pylist()))
        assert set(table["weight"].to_pylist()) <= {-1, 1}
    a = np.exp(-1.0)
    surplus = a / (1 - a**2)
    variance = 2 * a / (1 - a) ** 2
    assert abs(np.mean(sizes) - cells * surplus) < 5 * np.sqrt(cells * variance / 2 / runs)
    assert abs(np.mean(sums)) < 5 * np.sqrt(cells * variance / runs)


def test_a_persons_rows_are_bounded_by_the_study() -> None:
    table = pa.table({"colour": ["red"] * 5, "age": [5] * 5, "score": [0.5] * 5, "id": ["a", "a", "a", "b", None]})
    study = Study.loads(
        study_text(
            unit='neighbours = "add_remove"\nrows = 2\nperson = "id"',
            budget="epsilon = 80.0",
            parties='[[parties]]\nname = "north"\n',
        )
    )
    assert len(simulate(study, {"north": table}).table) == 3


def test_as_published_says_what_does_not_hold() -> None:
    protocol = 'method = "homm"\nas_published = true'
    replaced = Study.loads(study_text(unit='neighbours = "replace"', protocol=protocol))
    statement = simulate(replaced, two_parties(), seed=1).statement
    assert statement.epsilon == 2.0  # the printed noise at epsilon 1 is 2 under replace (E0.1)
    assert not statement.protects
    assert any("2 times" in departure for departure in statement.departures)
    assert any("floating point" in departure for departure in statement.departures)


@pytest.mark.parametrize(
    "protocol",
    ["at_least = 0", 'as_published = true\nnoise = "gaussian"', "clamp = false\nat_least = 2", 'noise = "uniform"'],
)
def test_parameters_that_contradict_each_other(protocol: str) -> None:
    with pytest.raises(InputError, match="protocol"):
        Study.loads(study_text(protocol=f'method = "homm"\n{protocol}'))


def test_sparse_release_keeps_what_is_there_on_a_domain_of_a_trillion_cells() -> None:
    column = '[[schema.columns]]\nname = "c{}"\nkind = "integer"\nlower = 0\nupper = 99\nmissing = {{ value = 0 }}\n'
    study = Study.loads(
        study_text(
            columns="".join(column.format(number) for number in range(6)),
            protocol='method = "homm"\nat_least = 26',
            parties='[[parties]]\nname = "north"\npeople = 300\n',
        )
    )
    table = pa.table({f"c{number}": [number] * 200 + [99 - number] * 100 for number in range(6)})
    result = simulate(study, {"north": table}).result
    assert isinstance(result, MergedTable)
    kept = result.histograms["north"]
    assert kept.domain.size == 10**12
    exact = Table(study.schema, open_source(table)).cells()
    assert set(exact.cells.tolist()) <= set(kept.cells.tolist())
    # q = a^26 / (1 + a): about 3.7 cells of noise expected; 40 is beyond 1e-20
    assert len(kept.cells) < 42
    assert int(kept.counts.min()) >= 26


def test_the_result_is_written_as_two_tables(tmp_path: Path) -> None:
    release = simulate(Study.loads(study_text()), two_parties(), seed=1)
    assert [path.name for path in release.write(tmp_path)] == [
        "synthetic.parquet",
        "cells.parquet",
        "study.json",
        "statement.json",
        "transcript.json",
        "reliability.json",
    ]
    again = Release.load(tmp_path)
    assert again.table.to_arrow().equals(release.table.to_arrow())
    assert (again.study, again.statement, again.transcript) == (release.study, release.statement, release.transcript)
    assert again.summary() == release.summary()
    cells = pa.parquet.read_table(tmp_path / "cells.parquet")
    assert pa.compute.sum(cells["count"]).as_py() == len(release.table)
    assert set(cells["party"].to_pylist()) == {"north", "south"}


def test_estimates_bound_what_is_sent() -> None:
    study = Study.loads(study_text())
    estimate = study.plan.resources
    largest = max(exchange.reply_bytes for exchange in simulate(study, two_parties(), seed=1).transcript)
    assert largest <= estimate.reply_bytes
