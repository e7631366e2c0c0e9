"""Marginal tables: the right counts, noise of the stated size, budgets that add up, and refusals with a way out."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import Case, charges, open_nodes, rows, study_text, two_parties
from syndic import Study
from syndic.data import Table, open_source
from syndic.errors import InputError, PartyError
from syndic.kernel import Call, Reply, answer, decode, encode
from syndic.methods import Marginals
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.methods.histogram.tables import MarginalTables
from syndic.mpc.masked_sum import SumStart
from syndic.privacy import PureEvent, rho_for
from syndic.study import Release, simulate

DELTA = "epsilon = 1.0\ndelta = 1e-5"


def study(protocol: str = "", *, budget: str = DELTA, **parts: str) -> Study:
    return Study.loads(study_text(protocol=f'method = "marginals"\n{protocol}', budget=budget, **parts))


def result(release: Release) -> MarginalTables:
    assert isinstance(release.result, MarginalTables)
    return release.result


def exact_tables(study: Study, tables: list[pa.Table]) -> list[np.ndarray[Any, Any]]:
    pooled = Table(study.schema, open_source(pa.concat_tables(tables)))
    assert isinstance(study.protocol, Marginals)
    return [pooled.count(names).values for names in study.plan_as(MarginalsPlan).cliques]


@pytest.mark.parametrize(
    ("noise", "budget"), [("gaussian", DELTA), ("skellam", DELTA), ("laplace", "epsilon = 1.0"), ("laplace", DELTA)]
)
def test_counts_of_all_rows_with_noise_of_the_stated_size(noise: str, budget: str) -> None:
    agreed = study(f'noise = "{noise}"', budget=budget)
    opened = result(simulate(agreed, two_parties(), seed=1))
    truth = exact_tables(agreed, list(two_parties().values()))
    errors = np.concatenate([(t.values - e).ravel() for t, e in zip(opened.tables, truth, strict=True)])
    spread = opened.note.standard_deviation
    assert len(errors) == 79
    # 79 draws: the mean square is within a factor 3 of the variance, and no error is 12 deviations large
    assert spread**2 / 3 < float((errors**2).mean()) < 3 * spread**2
    assert np.abs(errors).max() < 12 * spread
    assert opened.note.present == ("north", "south")


def test_a_generous_budget_gives_the_exact_counts() -> None:
    """At epsilon 5,000 Laplace noise is zero: what is left is arithmetic of masks, rings and tables."""
    agreed = study('noise = "laplace"\ncliques = [["age", "colour"], ["score"]]', budget="epsilon = 5000")
    opened = result(simulate(agreed, two_parties(), seed=1))
    for table, truth in zip(opened.tables, exact_tables(agreed, list(two_parties().values())), strict=True):
        assert np.array_equal(table.values, truth)
    assert opened.tables[0].domain.names == ("age", "colour")


def test_one_copy_of_noise_for_all_parties() -> None:
    """With 20 parties and one that colludes, the variance is 20/19 of a trusted curator's, not 20 times."""
    names = [f"p{number}" for number in range(20)]
    parties = "".join(f'[[parties]]\nname = "{name}"\npeople = 10\n' for name in names)
    agreed = study(parties=parties)
    assert isinstance(agreed.protocol, Marginals)
    curator = Fraction(6) / (2 * rho_for(Fraction(1), Fraction("1e-5")))  # six tables, one row
    variance = agreed.plan_as(MarginalsPlan).noise.total_variance(20)
    assert variance == pytest.approx(float(curator) * 20 / 19, rel=1e-6)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("parties", [1, 2])
def test_the_joint_cost_is_the_budget_and_the_noise_is_that_of_the_whole_change(
    parties: int, neighbours: str, noise: str
) -> None:
    agreed = study(f'noise = "{noise}"', unit=f'neighbours = "{neighbours}"\nparties = {parties}\nrows = 2')
    agreed.check()
    assert isinstance(agreed.protocol, Marginals)
    assert Fraction(999, 1000) < agreed.joint.epsilon(agreed.delta) <= 1
    share = agreed.plan_as(MarginalsPlan).noise
    one_honest = share.total_variance(1)
    change = 2 if neighbours == "add_remove" else 4  # two rows leave; or two leave and two come
    squared = 4 if neighbours == "add_remove" else 8
    if noise == "laplace":
        scale = parties * 6 * change / 1.0
        assert one_honest == pytest.approx(2 * scale**2, rel=0.01)
    else:
        rho = float(rho_for(Fraction(1), Fraction("1e-5")))
        assert one_honest == pytest.approx(parties**2 * 6 * squared / (2 * rho), rel=1e-6)


def test_the_strictest_budget_holds_for_everybody(tmp_path: Path) -> None:
    parties = """
[[parties]]
name = "north"
people = 60
budget = { epsilon = 0.25, delta = 1e-5 }
[[parties]]
name = "south"
people = 40
"""
    agreed = study(parties=parties)
    simulate(agreed, two_parties(), seed=1, folder=tmp_path)
    for party in ("north", "south"):
        (charge,) = charges(tmp_path, party)
        assert charge.cost.epsilon(Fraction("1e-5")) <= Fraction(1, 4)


def test_counts_above_the_public_bound_are_lowered_to_it() -> None:
    parties = '[[parties]]\nname = "north"\npeople = 5\n[[parties]]\nname = "south"\npeople = 3\n'
    agreed = study('noise = "laplace"\ncliques = [["colour"]]', budget="epsilon = 5000", parties=parties)
    red = pa.table({"colour": ["red"] * 50, "age": [1] * 50, "score": [0.0] * 50})
    opened = result(simulate(agreed, {"north": red, "south": red}, seed=1))
    assert opened.tables[0].values.tolist() == [8, 0, 0, 0]


def test_default_cliques_stay_under_the_cap() -> None:
    agreed = study("cell_cap = 20")
    assert isinstance(agreed.protocol, Marginals)
    sizes = dict(zip(agreed.schema.names, agreed.schema.domain.sizes, strict=True))
    chosen = agreed.plan_as(MarginalsPlan).cliques
    assert set(chosen) == {
        *((name,) for name in sizes),
        *((one, two) for one, two in (("colour", "age"), ("colour", "score")) if sizes[one] * sizes[two] <= 20),
    }
    assert all(agreed.schema.domain.project(names).size <= 20 for names in chosen)


def test_a_release_is_read_back(tmp_path: Path) -> None:
    release = simulate(study(), two_parties(), seed=1)
    release.write(tmp_path)
    again = result(Release.load(tmp_path))
    assert again.note == result(release).note
    for one, other in zip(again.tables, result(release).tables, strict=True):
        assert one.domain == other.domain
        assert np.array_equal(one.values, other.values)
    assert np.array_equal(again["age", "colour"].values, again["colour", "age"].values.T)
    with pytest.raises(InputError, match="no table of age and nothing"):
        again["age", "nothing"]
    (tmp_path / "marginals.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="cannot be read"):
        Release.load(tmp_path)


def test_a_party_that_fails_may_be_missing(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(5)]
    parties = "".join(f'[[parties]]\nname = "{name}"\npeople = 30\n' for name in names)
    sources: dict[str, Any] = {name: rows(30, place) for place, name in enumerate(names)}
    agreed = study(
        'noise = "laplace"\nmissing = 1\ncliques = [["colour"]]',
        budget="epsilon = 5000",
        parties=parties,
    )
    sources["p3"] = _Failing()
    opened = result(simulate(agreed, sources, seed=1, folder=tmp_path))
    assert opened.note.present == ("p0", "p1", "p2", "p4")
    truth = exact_tables(agreed, [rows(30, place) for place in (0, 1, 2, 4)])
    assert np.array_equal(opened.tables[0].values, truth[0])
    assert charges(tmp_path, "p3") == []
    sources["p1"] = _Failing()
    with pytest.raises(PartyError, match="step 'count'"):
        simulate(agreed, sources, seed=2, folder=tmp_path / "again")
    # the others were charged before the run ended: spent is spent
    assert len(charges(tmp_path / "again", "p0")) == 1


def crowd(count: int) -> str:
    return "".join(f'[[parties]]\nname = "p{number}"\npeople = 5\n' for number in range(count))


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_nothing_is_charged_for_the_masks_of_many_parties(noise: str, tmp_path: Path) -> None:
    options = f'noise = "{noise}"\ncolluding = 10\nmissing = 10'
    agreed = study(options, parties=crowd(60), unit='neighbours = "add_remove"\nparties = 2')
    assert agreed.plan_as(MarginalsPlan).masked_sum.graph.neighbours == 42
    agreed.check()
    (event,) = agreed.plan.events("p0")
    assert Fraction(999, 1000) < agreed.joint.epsilon(agreed.delta) <= 1
    if noise == "laplace":
        assert isinstance(event, PureEvent)
        assert agreed.joint.epsilon(Fraction(0)) == 1
        return  # one run of sixty parties is enough
    simulate(agreed, {f"p{number}": rows(5, number) for number in range(60)}, seed=1, folder=tmp_path)
    assert [each for entry in charges(tmp_path, "p7") for each in entry.events] == [event]


def test_tables_are_summed_under_one_label(tmp_path: Path) -> None:
    agreed = Case("marginals", study(), two_parties())
    node = open_nodes(agreed, tmp_path)["north"]
    start = encode(SumStart(label="other"))
    call = Call(study=node.state.study, party="north", step="sum_keys", call="a" * 32, body=start)
    reply = decode(answer(node, encode(call)), Reply)
    assert (reply.code, "unknown sums; the label" in reply.text) == ("refused", True)


class _Failing:
    def names(self) -> tuple[str, ...]:
        return ("colour", "age", "score")

    def batches(self, columns: Any) -> Any:
        raise OSError("the disk is gone")

    def describe(self) -> str:
        return "failing"


@pytest.mark.parametrize(
    ("protocol", "parts", "told"),
    [
        ("", {"budget": "epsilon = 1.0"}, "needs delta above 0"),
        ("missing = 1", {}, "may be missing"),
        ("cell_cap = 1", {}, "raise it or name cliques"),
        ('cliques = [["nothing"]]', {}, "unknown columns"),
        ('noise = "skellam"', {"unit": 'neighbours = "add_remove"\nparties = 2'}, "several parties"),
        ("", {"parties": '[[parties]]\nname = "north"\npeople = 60\n'}, "2 to 50,000"),
        (
            'noise = "laplace"',
            {"budget": "epsilon = 1.0", "parties": '[[parties]]\nname = "north"\n[[parties]]\nname = "south"\n'},
            "set `people`",
        ),
        ("", {"top": "limits = { memory_mb = 100 }"}, "name fewer cliques"),
    ],
)
def test_studies_that_cannot_run(protocol: str, parts: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        study(protocol, **parts).check()


@pytest.mark.parametrize(
    ("protocol", "told"),
    [
        ("colluding = 0", "at least 1"),
        ("missing = -1", "not be negative"),
        ("cell_cap = 0", "at least 1"),
        ("cliques = [[]]", "none of them empty"),
        ('cliques = [["age", "colour"], ["colour", "age"]]', "twice"),
    ],
)
def test_parameters_that_make_no_sense(protocol: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        study(protocol)
