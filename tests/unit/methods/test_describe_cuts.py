"""Describe over any cut: sums of shares, noise by block, coverage, people whose columns are lacking, attacks."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from aligning import carried
from runtimes import session_over
from support import charges, study_text
from syndic import Study, advise, simulate
from syndic.advice import NoiseAdvice
from syndic.data import Table, open_source
from syndic.errors import InputError, PartyError
from syndic.kernel import Call, Reply, decode, groups_of
from syndic.methods.describe.describe import Describe, DescribePlan
from syndic.methods.describe.result import DescribeResult
from syndic.methods.layout import TableLayout
from syndic.mpc.masked_sum import SumMasked
from syndic.mpc.ring import Residues
from syndic.noise import GaussianShare
from syndic.noise.gaussian import DiscreteGaussian
from syndic.random import SimulationRandomness
from syndic.report import report
from syndic.study import Release, plan

COLUMNS = """
[[schema.columns]]
kind = "categorical"
name = "arm"
values = ["a", "b"]
[[schema.columns]]
kind = "integer"
name = "age"
lower = 20
upper = 59
[[schema.columns]]
kind = "boolean"
name = "ill"
[[schema.columns]]
kind = "categorical"
name = "sex"
values = ["f", "m"]
"""
OPTIONS = """
method = "describe"
group = "arm"
columns = ["age", "ill"]
stratum = "{stratum}"
regressions = [
  {{ kind = "linear", outcome = "age", on = ["arm"] }},
  {{ kind = "logistic", outcome = "ill", on = ["arm", "sex"] }},
]
{more}
"""
Held = dict[str, tuple[str, list[str]]]


def people(count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    arm, sex = rng.integers(0, 2, count), rng.integers(0, 2, count)
    return pa.table(
        {
            "arm": np.array(["a", "b"])[arm],
            "age": np.clip(rng.normal(38 + 2 * arm, 8).round().astype(int), 20, 59),
            "ill": rng.random(count) < 0.3 + 0.2 * arm + 0.1 * sex,
            "sex": np.array(["f", "m"])[sex],
        }
    )


PEOPLE = {"north": people(70, 1), "south": people(50, 2)}
EVERY = ["arm", "age", "ill", "sex"]
VERTICAL: Held = {"a": ("north", ["arm", "sex"]), "b": ("north", ["age", "ill"])}
TWO_BY_TWO: Held = {**VERTICAL, "c": ("south", ["arm", "age"]), "d": ("south", ["ill", "sex"])}
BESIDE: Held = {**VERTICAL, "c": ("south", EVERY)}
TWICE: Held = {"a": ("north", ["arm", "sex"]), "b": ("north", EVERY)}
OWN: Held = {"a": ("north", ["arm", "age"]), "b": ("north", ["ill", "sex"])}
LACKING: Held = {**VERTICAL, "c": ("south", ["arm", "sex"]), "d": ("south", ["ill"])}
CUTS = {"vertical": VERTICAL, "two by two": TWO_BY_TWO, "beside": BESIDE, "twice": TWICE, "lacking": LACKING}


def study_toml(
    held: Held = VERTICAL,
    more: str = "",
    *,
    stratum: str = "party",
    unit: str = "",
    epsilon: float = 1.0,
    sizes: dict[str, int] | None = None,
) -> str:
    sizes = sizes or {name: len(table) for name, table in PEOPLE.items()}
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = {sizes[group]}\ngroup = "{group}"\n'
        f"columns = [{', '.join(f'{one!r}' for one in columns)}]\n"
        for name, (group, columns) in held.items()
    )
    return study_text(
        protocol=OPTIONS.format(more=more, stratum=stratum),
        unit=f'neighbours = "replace"\n{unit}',
        budget=f"epsilon = {epsilon}\ndelta = 1e-9",
        parties=parties,
        columns=COLUMNS,
    )


def study(held: Held = VERTICAL, more: str = "", **parts: Any) -> Study:
    return Study.loads(study_toml(held, more, **parts))


def sources(held: Held = VERTICAL) -> dict[str, pa.Table]:
    return {name: PEOPLE[group].select(columns) for name, (group, columns) in held.items()}


def result(release: Release) -> DescribeResult:
    assert isinstance(release.result, DescribeResult)
    return release.result


def pooled(agreed: Study, rows: dict[str, pa.Table] = PEOPLE) -> Any:
    """Return the sums of the pooled rows of those groups that can count each block's columns."""
    planned, groups = agreed.plan_as(DescribePlan), groups_of(agreed)
    found = []
    for one in planned.readings:
        total = np.zeros(one.cells(len(groups)), dtype=np.int64)
        for place, group in enumerate(groups):
            holders = {group.read_from.get(name) for name in one.block.clique}
            if None not in holders and len(holders) <= 2:
                counted = Table(agreed.schema, open_source(rows[group.name])).count(one.block.clique)
                total += one.sums(counted.values, place, len(groups))
        found.append(total)
    return np.concatenate(found)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all noise away."""
    for noise in (GaussianShare, DiscreteGaussian):
        monkeypatch.setattr(noise, "draw", lambda _, shape, randomness: np.zeros(shape, np.int64))  # noqa: ARG005


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("held", CUTS.values(), ids=CUTS)
def test_without_noise_the_sums_are_those_of_the_pooled_rows(held: Held) -> None:
    agreed = study(held)
    found = result(simulate(agreed, sources(held), seed=1))
    assert found.sums.tolist() == pooled(agreed).tolist()


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("more", ['adversary = "passive"', 'servers = ["a", "c", "d"]'])
def test_other_products_give_the_same_sums(more: str) -> None:
    agreed = study(TWO_BY_TWO, more)
    assert result(simulate(agreed, sources(TWO_BY_TWO), seed=1)).sums.tolist() == pooled(agreed).tolist()


@pytest.mark.usefixtures("silent")
def test_without_noise_figures_are_those_of_all_people() -> None:
    opened = result(simulate(study(TWO_BY_TWO), sources(TWO_BY_TWO), seed=1))
    # the result does not know that noise was taken away, and would hide groups of 60 people
    found = DescribeResult(
        note=msgspec.structs.replace(opened.note, standard_deviation=1e-9), sums=opened.sums, schema=opened.schema
    )
    table = pa.concat_tables(PEOPLE.values()).to_pandas()
    for arm, own in table.groupby("arm"):
        assert found.mean("age", arm).value == pytest.approx(own["age"].mean(), abs=0.01)
        assert found.share("ill", "true", arm).value == pytest.approx(own["ill"].mean())
    strata = [group.to_pandas() for group in PEOPLE.values()]
    top = bottom = 0.0
    for one in strata:
        (a, b), (c, d) = ([((one["arm"] == arm) & (one["ill"] == ill)).sum() for ill in (1, 0)] for arm in "ba")
        top, bottom = top + a * d / len(one), bottom + b * c / len(one)
    assert found.compare("ill", "true", "odds ratio", "b", "a").value == pytest.approx(top / bottom)


# The noise.


def test_one_party_adds_the_whole_noise_of_what_it_counts_alone() -> None:
    """By block: drawn noise has the stated standard deviation, and nobody else adds any where one party does."""
    agreed = study(OWN)
    planned = agreed.plan_as(DescribePlan)
    names, randomness = [party.name for party in agreed.parties], SimulationRandomness(3)
    nothing = np.zeros(planned.masked_sum.count, dtype=np.int64)
    drawn = {name: [planned.noise_at(name).apply(nothing, randomness) for _ in range(60)] for name in names}
    total = np.sum([drawn[name] for name in names], axis=0) / planned.one
    start, stated = 0, planned.deviations(len(names))
    assert len(set(stated)) == 2
    for (place, size), deviation in zip(planned.parts, stated, strict=True):
        part = total[:, start : start + size]
        assert part.std() == pytest.approx(deviation, rel=6 / (2 * part.size) ** 0.5)
        counting = planned.cut.counting[place]
        for name in names:
            adds = any(one[start : start + size].any() for one in drawn[name])
            assert adds == (len(counting) > 1 or name in counting)
        start += size
    alone = {block.clique for block, one in zip(planned.note.blocks, stated, strict=True) if one == min(stated)}
    assert alone == {("arm",), ("arm", "age")}
    assert planned.noted(tuple(names)).deviations == stated


def test_noise_of_a_release_has_the_stated_size(tmp_path: Path) -> None:
    agreed = study(TWO_BY_TWO)
    found = result(simulate(agreed, sources(TWO_BY_TWO), seed=5, folder=tmp_path))
    noise = (found.sums - pooled(agreed)) / agreed.plan_as(DescribePlan).one
    assert 0.5 < noise.std() / found.note.standard_deviation < 1.5
    assert [len(charges(tmp_path, name)) for name in TWO_BY_TWO] == [1, 1, 1, 1]


REPETITIONS = 150


@pytest.mark.slow
def test_intervals_of_a_vertical_study_cover() -> None:
    """People drawn anew, with the noise that the parties add: misses of a 95 % interval are few.

    With a coverage of 95 %, more than 24 of 150 misses of one of three intervals have a chance of 4e-7. Without the
    noise in the variance about every second interval misses.
    """
    agreed = study(OWN, sizes={"north": 1500}, epsilon=0.6, stratum="sex")
    planned, rng, randomness = agreed.plan_as(DescribePlan), np.random.default_rng(7), SimulationRandomness(11)
    assert planned.product is not None
    large = people(400_000, 99).to_pandas()
    ages, ills = large.groupby("arm")["age"].mean(), large.groupby("arm")["ill"].mean()
    truth = {"mean": ages["b"], "share": ills["b"], "difference": ages["b"] - ages["a"]}
    misses, nothing = dict.fromkeys(truth, 0), np.zeros(planned.masked_sum.count, dtype=np.int64)
    for _ in range(REPETITIONS):
        sums = pooled(agreed, {"north": people(1500, int(rng.integers(1 << 40)))})
        sums = sums + sum(planned.noise_at(name).apply(nothing, randomness) for name in OWN)
        found = DescribeResult(note=planned.noted(("a", "b")), sums=sums, schema=agreed.schema)
        every = {
            "mean": found.mean("age", "b"),
            "share": found.share("ill", "true", "b"),
            "difference": found.mean_difference("age", "b", "a"),
        }
        for what, one in every.items():
            assert one.lower is not None
            assert one.upper is not None
            misses[what] += not one.lower <= truth[what] <= one.upper
    assert max(misses.values()) <= 24, misses


# Sensitivity.


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("groups", [1, 2])
def test_a_person_moves_the_sums_by_no_more_than_is_paid_for(groups: int) -> None:
    agreed = study(TWO_BY_TWO, unit=f"parties = {groups}")
    planned = agreed.plan_as(DescribePlan)
    far: dict[str, list[Any]] = {"arm": ["a"], "age": [20], "ill": [True], "sex": ["f"]}
    near: dict[str, list[Any]] = {"arm": ["b"], "age": [59], "ill": [False], "sex": ["m"]}

    def opened(person: dict[str, list[Any]]) -> Any:
        given = {}
        for name, (group, columns) in TWO_BY_TWO.items():
            whole = PEOPLE[group]
            if group == "north" or groups == 2:
                whole = pa.concat_tables([pa.table(person).cast(whole.schema), whole.slice(1)])
            given[name] = whole.select(columns)
        return result(simulate(agreed, given, seed=2)).sums

    moved = int(((opened(far) - opened(near)) ** 2).sum())
    assert isinstance(planned.noise, GaussianShare)
    # the share is for r s^2 at rho / r: r people's changes add up to at most r^2 s^2
    assert planned.noise.sensitivity_squared == groups * planned.sensitivity
    assert 0.8 * planned.sensitivity < moved <= groups**2 * planned.sensitivity


# What a group lacks.


def test_what_some_groups_lack_is_described_of_the_others_and_said(tmp_path: Path) -> None:
    agreed = study(LACKING)
    release = simulate(agreed, sources(LACKING), seed=1)
    found, share = result(release), 70 / 120
    covers = {block.clique: cover for block, cover in zip(found.note.blocks, found.note.covers, strict=True)}
    assert covers["arm", "age"] == pytest.approx(share)
    assert covers["arm", "ill"] == covers["arm", "sex", "ill"] == 1
    assert found.partly == {"arm x age": pytest.approx(share)}
    assert found.summary()["share of the people"] == "58%"
    assert "age: counted for 58% of the people" in str(plan(agreed))
    release.write(tmp_path / "out")
    assert result(Release.load(tmp_path / "out")).note == found.note
    page = report(release, tmp_path / "report.html").read_text()
    assert "The numbers of arm x age are of 58% of the people" in page


def test_advice_knows_the_cut() -> None:
    told = advise(study(LACKING, sizes={"north": 3000, "south": 3000}))
    assert isinstance(told, NoiseAdvice)
    assert told.errors


SPREAD: Held = {"a": ("north", ["arm"]), "b": ("north", ["age", "ill"]), "c": ("north", ["sex"])}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"held": SPREAD}, "no group has arm, sex, ill at one or two parties"),
        ({"held": SPREAD, "stratum": "sex"}, "no group has sex, arm, ill at one or two parties"),
        ({"held": TWO_BY_TWO, "more": "missing = 1"}, "set missing = 0"),
        ({"more": 'adversary = "passive"\nservers = ["a", "b", "c"]'}, "servers needs adversary"),
        ({"unit": "parties = 2"}, "set parties = 1|at most the 1"),
        ({"sizes": {"north": 400_000}}, 'set adversary = "passive"'),
    ],
)
def test_what_no_cut_allows_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        study(**change).check()


def test_of_many_people_one_counts_less_so_that_rows_can_be_proven() -> None:
    few, many = (study(sizes={"north": size}).plan_as(DescribePlan) for size in (1000, 200_000))
    assert (few.one, many.one) == (4096, 512)
    for planned, size in ((few, 1000), (many, 200_000)):
        ring = planned.masked_sum.ring
        assert isinstance(ring, Residues)
        assert ring.modulus > 2 * size * planned.one
    # in people the noise is the same but for the rounding of readings
    assert many.deviation(2) == pytest.approx(few.deviation(2), rel=0.01)
    passive = study(more='adversary = "passive"', sizes={"north": 3_000_000}).plan_as(DescribePlan)
    assert passive.one == 4096


@pytest.mark.usefixtures("silent")
def test_coarser_sums_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syndic.methods.describe.describe.LARGEST_FIELD", 300_000)
    agreed = study(epsilon=50.0)
    assert agreed.plan_as(DescribePlan).one < 4096
    found = result(simulate(agreed, sources(), seed=1))
    assert found.sums.tolist() == pooled(agreed).tolist()
    assert found.cells(found.note.blocks[0]).sum() == pytest.approx(70)


# Attacks.


@pytest.mark.parametrize("held", [VERTICAL, TWO_BY_TWO], ids=["vertical", "two by two"])
def test_a_party_that_enters_large_numbers_in_a_row_opens_nothing(
    held: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = TableLayout.rows

    def large(self: TableLayout, party: Any, span: tuple[int, int], recode: Any) -> Any:
        found = honest(self, party, span, recode)
        if party.name == "b":
            found[0] = 200
        return found

    monkeypatch.setattr(TableLayout, "rows", large)
    monkeypatch.setattr("syndic.mpc.product.SecureProduct.check_unchanged", lambda *_: None)
    with pytest.raises(PartyError, match="proof that a partner's rows are one-hot does not hold"):
        simulate(study(held), sources(held), seed=1, folder=tmp_path)
    assert [charges(tmp_path, name) for name in held] == [[] for _ in held]


@pytest.mark.usefixtures("silent")
def test_masked_sums_of_a_pair_are_not_those_of_its_group(tmp_path: Path) -> None:
    agreed = study(TWO_BY_TWO)
    carrier, session = carried(agreed, sources(TWO_BY_TWO), tmp_path)
    protocol = agreed.protocol
    assert isinstance(protocol, Describe)
    found = protocol.coordinate(session)  # type: ignore[arg-type]
    assert found.sums.tolist() == pooled(agreed).tolist()
    ring, sent = agreed.plan_as(DescribePlan).masked_sum.ring, {}
    for asked, told in zip(carrier.seen[::2], carrier.seen[1::2], strict=True):
        call = decode(asked, Call)
        if call.step == "count":
            sent[call.party] = ring.unpack(decode(decode(told, Reply).body, SumMasked).values, found.sums.size)
    carrier.close()
    empty = {"north": PEOPLE["north"].slice(0, 0), "south": PEOPLE["south"].slice(0, 0)}
    for group, pair in (("north", "ab"), ("south", "cd")):
        own = pooled(agreed, {**empty, group: PEOPLE[group]})
        opened = ring.lift(ring.add(*(sent[name] for name in pair)))
        assert (opened != own).sum() > len(own) // 2


def test_parties_that_are_asked_for_other_sums_refuse_before_anything_is_charged(tmp_path: Path) -> None:
    """The coordinator's study has another column of groups: sums that differ by it would show a few people."""
    agreed, other = study(), Study.loads(study_toml().replace('group = "arm"', 'group = "sex"'))
    carrier, _ = carried(agreed, sources(), tmp_path)
    protocol = other.protocol
    assert isinstance(protocol, Describe)
    with pytest.raises(PartyError, match="the call is for study"):
        protocol.coordinate(session_over(carrier, other, seed=None))  # type: ignore[arg-type]
    carrier.close()
    assert [charges(tmp_path, name) for name in VERTICAL] == [[], []]
