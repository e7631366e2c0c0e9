"""Latent tree: its tables are exact but for their noise, costs are as stated, what cannot work is refused."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from support import COLUMNS, THREE_VERTICAL, VERTICAL, across_study, rows
from syndic import Release, Study
from syndic.errors import InputError
from syndic.methods.comparison import dplt
from syndic.methods.comparison.dplt import LatentNote
from syndic.methods.comparison.dplt_plan import DpltPlan
from syndic.methods.synthesis.account import RoundNoise
from syndic.methods.synthesis.result import PublishedRows
from syndic.model.selection.curator import SCORE_STEP, independence_gap
from syndic.privacy import Cost, GaussianEvent
from syndic.random import Randomness
from syndic.study import simulate
from unit.methods.noiseless import silent

FOUR = COLUMNS + '[[schema.columns]]\nname = "flag"\nkind = "boolean"\nmissing = { value = false }\n'
TWO_AND_TWO = VERTICAL.replace('"score"', '"score", "flag"')


def held(agreed: Study, table: pa.Table) -> dict[str, pa.Table]:
    return {party.name: table.select(list(party.columns or ())) for party in agreed.parties}


def planned(agreed: Study) -> DpltPlan:
    return agreed.plan_as(DpltPlan)


def found(release: Release) -> tuple[PublishedRows, LatentNote]:
    assert isinstance(release.result, PublishedRows)
    assert isinstance(release.result.note, LatentNote)
    return release.result, release.result.note


def people(count: int, seed: int = 3) -> pa.Table:
    table = rows(count, seed)
    return table.append_column("flag", pa.array(np.asarray(table["age"]) > 60))


def tally(codes: list[NDArray[Any]], sizes: tuple[int, ...]) -> NDArray[np.float64]:
    counts = np.zeros(sizes)
    for cell in zip(*codes, strict=True):
        counts[cell] += 1
    return counts


@pytest.mark.parametrize(
    ("parties", "options"),
    [
        (TWO_AND_TWO, "levels = 3"),
        (THREE_VERTICAL.replace('"score"', '"score", "flag"'), "levels = 2\ngroup = 1\ncolluding = 0"),
    ],
)
def test_without_noise_every_table_is_exact(parties: str, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    silent(monkeypatch)
    agreed, table = across_study("dplt", options, parties=parties, columns=FOUR), people(60)
    result, note = found(simulate(agreed, held(agreed, table), seed=1))
    domain, levels = agreed.schema.domain, planned(agreed).levels
    codes = {name: agreed.schema[name].encode(table[name]) for name in domain.names}
    latents = {
        name: np.array(note.level_of[name])[domain.project(columns).index([codes[one] for one in columns])]
        for name, columns in note.groups.items()
    }
    assert sorted(column for columns in note.groups.values() for column in columns) == sorted(domain.names)
    known = {**codes, **latents}
    for one in result.tables:
        sizes = (levels, levels) if one.names[0] in latents else domain.project(one.names).sizes
        assert np.array_equal(one.values, tally([known[name] for name in one.names], sizes))
    assert len(result.tables) == len(latents) + len(latents) * (len(latents) - 1) // 2


@pytest.mark.parametrize("colluding", [0, 1])
def test_noise_covers_all_parties_tables_at_once(colluding: int) -> None:
    agreed = across_study(
        "dplt", f"colluding = {colluding}", parties=TWO_AND_TWO, columns=FOUR, budget="epsilon = 1\ndelta = 1e-5"
    )
    plan = planned(agreed)
    groups, tables = sum(len(one) for one in plan.packed.values()), len(plan.round.layout.tables)
    assert plan.scored is not None
    # two pairs of columns, each score moved by three rows, and by one step more for rounding
    steps = 3 * 1024 + 1
    shares = [float(part * plan.account.whole) for part in (Fraction(1, 10), Fraction(1, 2), Fraction(2, 5))]
    assert plan.scored.variance(1) == pytest.approx(2 * steps**2 / shares[0], rel=1e-6)
    assert plan.counted.variance(1) == pytest.approx(2 * groups / shares[1], rel=1e-6)
    assert plan.round.whole.variance(1) == pytest.approx(2 * tables / shares[2], rel=1e-6)
    assert plan.round.share.variance(2) == pytest.approx((1 + colluding) * 2 * tables / shares[2], rel=1e-6)
    assert 0.999 < float(Cost.of(plan.events("north")).epsilon(Fraction(1, 10**5))) <= 1


def test_epsilon_is_stated_against_a_party_too() -> None:
    """With `colluding = 0` a party of three that subtracts its own share leaves two thirds of the noise."""
    one, none = (planned(across_study("dplt", f"colluding = {count}", parties=THREE_VERTICAL)) for count in (1, 0))
    outside, party = none.disclosure.against.values()
    assert one.disclosure.against == {}  # the cost holds against a party too
    assert outside <= 10 < party
    left = none.learning.mu_squared + none.round.share.event.mu_squared * Fraction(3, 2)
    event = GaussianEvent(mu_squared=left, slack=Fraction(0))
    assert party == pytest.approx(float(Cost.of([event]).epsilon(Fraction(1, 10**5))), rel=1e-3)
    assert one.round.share.variance(3) == pytest.approx(1.5 * none.round.share.variance(3), rel=1e-3)


def test_scores_that_leave_a_party_are_the_gaps_with_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[NDArray[np.int64]] = []
    silent(monkeypatch)
    plain = RoundNoise.apply

    def watch(self: RoundNoise, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        seen.append(values)
        return plain(self, values, randomness)

    monkeypatch.setattr(RoundNoise, "apply", watch)
    agreed, table = across_study("dplt"), rows(60, 3)
    simulate(agreed, held(agreed, table), seed=1)
    codes = [agreed.schema[name].encode(table[name]) for name in ("colour", "age")]
    sizes = tuple(agreed.schema[name].size for name in ("colour", "age"))
    gap = independence_gap(tally(codes, sizes).astype(np.int64))
    assert seen[0].tolist() == [round(gap / float(SCORE_STEP))]


def test_columns_of_different_parties_hang_together() -> None:
    parties = VERTICAL.replace("people = 60", "people = 4000")
    agreed = across_study("dplt", parties=parties, budget="epsilon = 10\ndelta = 1e-6")
    kind = np.random.default_rng(5).integers(0, 2, 4000)
    table = pa.table(
        {
            "colour": np.where(kind == 1, "red", "blue"),
            "age": np.where(kind == 1, 10, 90),
            "score": np.where(kind == 1, -0.9, 0.9),
        }
    )
    made = simulate(agreed, held(agreed, table), seed=2).table.to_arrow()
    red, low = np.asarray(made["colour"]) == "red", np.asarray(made["score"]) < 0
    assert np.mean(red == low) > 0.95


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    agreed = across_study("dplt", "rows = 25")
    release = simulate(agreed, held(agreed, rows(60, 3)), seed=4)
    release.write(tmp_path)
    again = Release.load(tmp_path)
    assert found(again)[1] == found(release)[1]
    assert again.table.to_arrow().equals(release.table.to_arrow())
    assert len(again.table) == 25


def test_one_column_a_party_has_no_scores_to_pay_for() -> None:
    parties = THREE_VERTICAL
    plan = planned(across_study("dplt", parties=parties))
    assert plan.scored is None
    assert float(plan.learning.mu_squared) == pytest.approx(float(plan.account.whole) * 0.6, rel=1e-6)
    assert all(len(one) == 1 for one in plan.packed.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": FOUR}, "'flag' is held by no party"),
        ({"budget": "epsilon = 1"}, "delta above 0"),
        ({"parties": VERTICAL.replace('"score"', '"score", "age"')}, "'age' is held by several parties"),
    ],
)
def test_studies_that_cannot_run_are_refused(change: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        across_study("dplt", **change).check()


@pytest.mark.parametrize(
    "options",
    [
        "colluding = -1",
        "group = 0",
        "levels = 1",
        "levels = 65",
        "rows = -1",
        "pattern_share = 0",
        "pattern_share = 0.9",
    ],
)
def test_parameters_out_of_range_are_refused(options: str) -> None:
    with pytest.raises(InputError):
        across_study("dplt", options)


@pytest.mark.parametrize(
    "lie",
    [
        {},
        {"north 1": ("colour",)},
        {"south 1": ("colour", "age")},
        {"north 1": ("score", "flag")},
        {"north 1": ("colour", "colour")},
        {"north 1": ("colour", "age", "nothing")},
    ],
)
def test_groups_that_a_party_cannot_have_are_refused(lie: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    agreed = across_study("dplt", "group_cells = 100", parties=TWO_AND_TWO, columns=FOUR)
    plan = planned(agreed)
    assert {name: len(groups) for name, groups in plan.packed.items()} == {"north": 1, "south": 1}
    honest = dplt._tables_of_groups

    def lied(plan: Any, party: str, answer: Any) -> Any:
        return honest(plan, party, replace(answer, groups=lie) if party == "north" else answer)

    monkeypatch.setattr(dplt, "_tables_of_groups", lied)
    with pytest.raises(InputError, match="north answered with groups"):
        simulate(agreed, held(agreed, people(60)), seed=1)
