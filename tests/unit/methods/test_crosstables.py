"""Two-way tables across parties: what a study may ask, what it costs, what it publishes."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import VERTICAL, charges, rows, study_text, vertical_study
from syndic import Study, simulate
from syndic.data import Factor, Table, open_source
from syndic.errors import InputError
from syndic.methods.histogram.crosstables_plan import CrosstablesPlan, TableNoise, whole_noise
from syndic.privacy import shown, zcdp_epsilon
from syndic.random import SimulationRandomness
from syndic.study import Release, plan

BUDGET = "epsilon = 1.0\ndelta = 1e-9"


def sized(count: int) -> str:
    return VERTICAL.replace("60", str(count))


def sources(count: int) -> dict[str, pa.Table]:
    table = rows(count, 3)
    return {"north": table.select(["colour", "age"]), "south": table.select(["score"])}


def plan_of(study: Study) -> CrosstablesPlan:
    return study.plan_as(CrosstablesPlan)


def test_a_release_is_the_exact_tables_plus_noise_of_the_stated_size(tmp_path: Path) -> None:
    study = vertical_study("local = true", parties=sized(3000), budget=BUDGET)
    release = simulate(study, sources(3000), seed=3, folder=tmp_path)
    result: Any = release.result
    table = Table(study.schema, open_source(rows(3000, 3)))
    assert [each.domain.names for each in result.tables] == [("colour", "score"), ("age", "score"), ("colour", "age")]
    for each, deviation in zip(
        result.tables, (result.note.across, result.note.across, result.note.within), strict=True
    ):
        noise = each.values - table.count(each.domain.names).values
        assert noise.any()
        assert np.abs(noise).max() < 6 * deviation
    assert result.note.across == pytest.approx(result.note.within * 2**0.5)
    assert [len(charges(tmp_path, name)) for name in ("north", "south")] == [1, 1]


def test_a_release_is_read_back(tmp_path: Path) -> None:
    study = vertical_study()
    release = simulate(study, sources(60), seed=1)
    release.write(tmp_path)
    again: Any = Release.load(tmp_path).result
    tables: tuple[Factor, ...] = release.result.tables  # type: ignore[attr-defined]
    assert [each.values.tolist() for each in again.tables] == [each.values.tolist() for each in tables]
    assert again.note == release.result.note  # type: ignore[attr-defined]
    written = pq.read_table(tmp_path / "crosstables.parquet").to_pylist()
    for row in written:
        table = again[row["first"], row["second"]].values
        assert table[row["first_level"], row["second_level"]] == row["count"]
    pq.write_table(pa.table({"count": [1]}), tmp_path / "crosstables.parquet")
    with pytest.raises(InputError, match="does not have the cells"):
        Release.load(tmp_path)
    (tmp_path / "crosstables.parquet").write_bytes(b"junk")
    with pytest.raises(InputError, match="cannot be read"):
        Release.load(tmp_path)


def test_noise_and_charges_follow_from_the_number_of_tables() -> None:
    study = vertical_study()
    noise = plan_of(study).noise
    assert noise.sensitivity_squared == 4  # two tables, each moves by two
    assert noise.sigma_squared == 4 / (2 * noise.rho)  # one share is enough by itself
    whole = study.costs["north"]
    assert whole == study.costs["south"] == study.joint
    assert study.joint.epsilon(study.delta) <= 1
    both = vertical_study("colluding = 0")
    assert plan_of(both).noise.variance == pytest.approx(noise.variance / 2, rel=1e-3)
    chosen = vertical_study('pairs = [["score", "age"]]')
    assert plan_of(chosen).noise.sensitivity_squared == 2


def test_epsilon_is_stated_both_ways() -> None:
    study = vertical_study()
    outside, partner = plan_of(study).epsilons
    rho = plan_of(study).noise.rho
    assert partner == pytest.approx(1, abs=1e-6)
    assert outside == pytest.approx(float(zcdp_epsilon(rho / 2, study.delta)), rel=1e-3)
    trusting = vertical_study("colluding = 0")
    outside, partner = plan_of(trusting).epsilons
    assert outside == pytest.approx(1, rel=1e-3)
    assert partner == pytest.approx(float(zcdp_epsilon(2 * rho, study.delta)), rel=1e-3)
    assert f"epsilon {shown(partner)} against a partner of a table" in str(plan(trusting))
    with_own = vertical_study("local = true")
    assert plan_of(with_own).epsilons[0] == pytest.approx(1, abs=1e-6)


def test_own_tables_get_the_whole_noise() -> None:
    study = vertical_study("local = true\ncolluding = 0")
    share = plan_of(study).noise

    class Counting:
        simulated = True
        asked: list[int] = []  # noqa: RUF012

        def words(self, count: int) -> Any:
            self.asked.append(count)
            return np.random.default_rng(len(self.asked)).integers(0, 2**64, count, dtype=np.uint64)

        def bytes(self, count: int) -> bytes:
            return b"\x00" * count

    noisy = TableNoise(share=share, alone=20_000).apply(np.zeros(40_000, dtype=np.int64), Counting())  # type: ignore[arg-type]
    shared, alone = noisy[:20_000].var(), noisy[20_000:].var()
    assert alone / shared == pytest.approx(2, rel=0.1)
    assert alone == pytest.approx(float(share.sensitivity_squared / (2 * share.rho)), rel=0.1)


@pytest.mark.parametrize("colluding", [0, 1])
@pytest.mark.parametrize("epsilon", [1, 8, 20])
def test_own_tables_cost_no_more_than_is_charged(epsilon: int, colluding: int) -> None:
    """Shares have a least size: then there is more noise across parties than the budget asks, and less is charged."""
    study = vertical_study(f"local = true\ncolluding = {colluding}", budget=f"epsilon = {epsilon}\ndelta = 1e-5")
    made = plan_of(study)
    share, within = made.noise, 1
    (event,) = made.events("north")
    sigma_squared = whole_noise(share).sigma_squared
    across = len(made.tables) - within
    # every table moves by two in squared l2, and rho is half of that over sigma squared
    rho = within / sigma_squared + Fraction(across) / (share.honest * share.sigma_squared)
    assert rho <= event.rho  # type: ignore[union-attr]
    assert made.note.within == pytest.approx(float(sigma_squared) ** 0.5)
    outside, _ = made.epsilons
    assert outside == pytest.approx(float(zcdp_epsilon(event.rho, study.delta)))  # type: ignore[union-attr]
    drawn = TableNoise(share=share, alone=20_000).apply(np.zeros(20_000, dtype=np.int64), SimulationRandomness(1))
    assert drawn.var() == pytest.approx(float(sigma_squared), rel=0.1)


THREE = """
[[parties]]
name = "north"
people = 60
columns = ["colour"]
[[parties]]
name = "south"
people = 60
columns = ["score"]
[[parties]]
name = "west"
people = 60
columns = ["age"]
"""


@pytest.mark.parametrize(
    ("study", "told"),
    [
        (
            lambda: Study.loads(study_text(parties=VERTICAL, protocol='method = "crosstables"', budget=BUDGET)),
            "replace",
        ),
        (lambda: vertical_study(parties=VERTICAL.replace("people = 60", "people = 61", 1)), "same people"),
        (lambda: vertical_study(parties=VERTICAL.replace("people = 60\n", "")), "public number of people"),
        # a row without a person would be left out, and every later row paired with another person's
        (lambda: vertical_study(unit='neighbours = "replace"\nperson = "id"'), "matched by their places"),
        (lambda: vertical_study(parties=VERTICAL.split('[[parties]]\nname = "south"')[0]), "at least 2 parties"),
        (lambda: vertical_study(parties=VERTICAL.replace('columns = ["score"]', "")), "set `columns`"),
        (lambda: vertical_study(parties=VERTICAL.replace('["score"]', '["score", "age"]')), "held by several parties"),
        (lambda: vertical_study(budget="epsilon = 1.0"), "delta above 0"),
        (lambda: vertical_study('pairs = [["colour", "age"]]'), "two different parties"),
        (lambda: vertical_study('pairs = [["colour", "weight"]]'), "two different parties"),
        (lambda: vertical_study("colluding = 2"), "must be 0 or 1"),
        (lambda: vertical_study('colluding = 0\nadversary = "active"'), "needs colluding = 1"),
        (
            lambda: vertical_study(
                parties=VERTICAL.replace("= 60", "= 300_000_000"), budget="epsilon = 1.0\ndelta = 1e-13"
            ),
            'set adversary = "passive"',
        ),
        (
            lambda: vertical_study('local = true\npairs = [["colour", "score"]]', parties=THREE),
            "none has a column of party 'west'",
        ),
        (lambda: vertical_study('pairs = [["score", "age"], ["age", "score"]]'), "twice"),
    ],
)
def test_studies_that_cannot_work_are_refused(study: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        study().check()


@pytest.mark.parametrize(
    ("options", "proven"),
    [
        ("", True),
        ('adversary = "active"', True),
        ('adversary = "passive"', False),
        ("colluding = 0", False),
        ('colluding = 0\nadversary = "passive"', False),
    ],
)
def test_a_statement_says_which_adversary_it_holds_against(options: str, proven: bool) -> None:
    statement = plan(vertical_study(options)).statement
    unprotected = " ".join(statement.not_protected)
    assert statement.trust.startswith('adversary "active"' if proven else "semi-honest")
    assert ("any set of parties without the coordinator" in statement.trust) == proven
    assert ("can show the coordinator a partner's record" in unprotected) == proven
    assert ("nothing checks the rows" in unprotected) == (not proven)
    assert [one.step for one in plan(vertical_study(options)).steps].count("product_proved") == proven


def test_the_plan_says_what_will_be_sent() -> None:
    study = vertical_study(parties=sized(100_000), budget=BUDGET)
    estimate = plan(study).resources
    sizes = plan_of(study).product.sizes
    assert estimate.reply_bytes >= sizes.ring.packed_bytes(sizes.chunk * 6)
    assert any(f"{sizes.ring.bits} bits per entry" in note for note in estimate.notes)
    assert study.budget.delta == Fraction(1, 10**9)
