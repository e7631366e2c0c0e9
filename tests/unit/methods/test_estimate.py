"""The protocol: its table, its sensitivity by brute force, its result, its refusals."""

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import syndic as sy
from support import charges, study_text
from syndic import Study
from syndic.data import Instead, Integer, Real, Schema
from syndic.errors import InputError
from syndic.methods.estimate.estimate import Estimate
from syndic.methods.estimate.plan import FINE, EstimatePlan, Layout, layout_of
from syndic.methods.estimate.result import Estimates, EstimatesResult, Group, PublishedLaplace
from syndic.model import Bernoulli, Exponential, Gamma, Multinomial, Normal, NormalVariance, Poisson
from syndic.model.families.estimate import block_estimates, blocks_of
from syndic.mpc.masked_sum import Total
from syndic.noise import DiscreteGaussian, DiscreteLaplace, GaussianShare, LaplaceShare

AGE = Integer(name="age", lower=0, upper=99, missing=Instead(value=0))
HEIGHT = Real(name="height", lower=100.0, upper=200.0, bins=4, missing=Instead(value=150.0))
TRUTH = sy.Boolean(name="sick", missing=Instead(value=False))
COLOUR = sy.Categorical(name="colour", values=("red", "green"), outside="missing", missing=Instead(value="red"))
SCHEMA = Schema(columns=(AGE, HEIGHT, TRUTH, COLOUR, sy.Boolean(name="open")))


def study(
    protocol: Estimate, *, parties: int = 3, people: int = 400, epsilon: Any = 1, delta: Any = 0, **unit: Any
) -> Study:
    return Study(
        name="estimates",
        unit=sy.Unit(**{"neighbours": "replace", **unit}),
        budget=sy.Budget.of(epsilon, delta),
        protocol=protocol,
        parties=tuple(sy.Member(name=f"p{number}", people=people) for number in range(parties)),
        schema=SCHEMA,
    )


def noise_of(of: Study) -> Any:
    return of.plan_as(EstimatePlan).noise["p0"]


def estimates(asked: Study, rows: dict[str, pa.Table], seed: int, folder: Path | None = None) -> Estimates:
    result = sy.simulate(asked, rows, seed=seed, folder=folder).result
    assert isinstance(result, EstimatesResult)
    return result.estimates


def tables(of: Study, seed: int = 1) -> dict[str, pa.Table]:
    draws = np.random.default_rng(seed)
    found = {}
    for party in of.parties:
        size = party.people or 0
        found[party.name] = pa.table(
            {
                "age": draws.poisson(20, size),
                "height": draws.normal(160, 8, size),
                "sick": draws.random(size) < 0.3,
                "colour": draws.choice(["red", "green"], size),
                "open": draws.random(size) < 0.5,
            }
        )
    return found


LAYOUTS = {
    "poisson": layout_of(SCHEMA, "age", Poisson(), 12),
    "bernoulli": layout_of(SCHEMA, "sick", Bernoulli(), 12),
    "normal": layout_of(SCHEMA, "height", Normal(), 6),
    "variance": layout_of(SCHEMA, "height", NormalVariance(centre=160.0), 6),
    "gamma": layout_of(SCHEMA, "height", Gamma(), 6),
    "colours": layout_of(SCHEMA, "colour", Multinomial(), 6),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_replacing_one_row_moves_the_sums_no_farther_than_stated(layout: Layout) -> None:
    codes = np.random.default_rng(2).integers(0, len(layout.steps), 5)
    moved = [
        layout.sums(np.append(codes, one)) - layout.sums(np.append(codes, other))
        for one, other in itertools.product(range(len(layout.steps)), repeat=2)
    ]
    assert max(int(np.abs(one).sum()) for one in moved) == layout.l1
    assert max(int((one**2).sum()) for one in moved) == layout.l2_squared


@pytest.mark.parametrize("correction", ["analytic", pytest.param("jackknife", marks=pytest.mark.slow), "none"])
def test_replacing_one_row_moves_the_block_sum_by_one_block_at_most(correction: Any) -> None:
    layout = layout_of(SCHEMA, "age", Exponential(), 7, (0.02,), (0.1,))
    block = np.random.default_rng(3).permutation(blocks_of(9, 3))
    draws = np.random.default_rng(4)
    largest = 0
    for _ in range(100):
        codes = draws.integers(0, 100, 9) // draws.choice([1, 20])
        sums = set()
        for code in range(100):
            changed = np.append(codes[:-1], code)
            estimates = block_estimates(layout.model, layout.statistics(changed), block, 3, correction)
            steps = layout.block_steps(estimates)
            assert ((steps >= 0) & (steps <= FINE)).all()
            sums.add(int(steps.sum()))
        largest = max(largest, max(sums) - min(sums))
    assert FINE / 2 < largest <= FINE


def test_table_is_the_statistic_of_the_value() -> None:
    layout = LAYOUTS["normal"]
    values = pa.array([100.0, 131.7, 160.0, 200.0, 999.0, None])
    codes = layout.schema.columns[0].encode(values)
    clipped = np.array([100.0, 131.7, 160.0, 200.0, 200.0, 150.0]) - layout.model.family.centre  # type: ignore[attr-defined]
    wanted = np.stack([clipped, clipped**2], axis=-1)
    # half a step of the grid, through the slope of the square, and half a step of the statistic
    room = np.array([100 / 64 / 2, 100 * 100 / 64 / 2]) + layout.unit
    assert (np.abs(layout.statistics(codes) - wanted) <= room).all()


def test_small_whole_numbers_stay_exact() -> None:
    assert LAYOUTS["bernoulli"].l1 == 1
    assert LAYOUTS["colours"].l1 == 2
    assert LAYOUTS["colours"].l2_squared == 2
    assert LAYOUTS["poisson"].l1 == 99
    codes = np.array([0, 7, 99])
    np.testing.assert_array_equal(LAYOUTS["poisson"].statistics(codes)[:, 0], codes)


def test_noise_is_made_for_the_unit() -> None:
    poisson = Estimate(column="age", family=Poisson())
    assert noise_of(study(poisson)) == DiscreteLaplace(sensitivity=99, epsilon=Fraction(1))
    both = sy.Unit(neighbours="replace", parties=2)
    two = Study(
        name="two", unit=both, budget=sy.Budget.of(1), protocol=poisson, parties=study(poisson).parties, schema=SCHEMA
    )
    assert noise_of(two) == DiscreteLaplace(sensitivity=99, epsilon=Fraction(1, 2))
    gaussian = Estimate(column="height", family=Normal(), noise="gaussian", bits=6)
    found = noise_of(study(gaussian, delta="1/1000000"))
    assert isinstance(found, DiscreteGaussian)
    assert found.sensitivity_squared == LAYOUTS["normal"].l2_squared
    blocks = Estimate(column="height", family=Normal(), scheme="dsaa", bits=6)
    assert noise_of(study(blocks)) == DiscreteLaplace(sensitivity=2 * FINE, epsilon=Fraction(1))
    masked = Estimate(column="age", family=Poisson(), scheme="masked")
    share = msgspec.structs.replace(two, protocol=masked).plan_as(EstimatePlan).share
    assert isinstance(share, LaplaceShare)
    assert (share.sensitivity, share.epsilon, share.honest) == (99, Fraction(1, 2), 2)
    masked = Estimate(column="age", family=Poisson(), scheme="masked", noise="gaussian")
    square = msgspec.structs.replace(two, budget=sy.Budget.of(1, "1e-6"), protocol=masked).plan_as(EstimatePlan).share
    assert isinstance(square, GaussianShare)
    assert square.sensitivity_squared == 2 * 99**2


@pytest.mark.parametrize("scheme", ["dssa", "dsaa", "masked"])
def test_estimates_with_little_noise_are_those_of_all_rows(scheme: Any) -> None:
    protocol = Estimate(column="height", family=Normal(), scheme=scheme, blocks=20 if scheme == "dsaa" else None)
    asked = study(protocol, epsilon=1000)
    rows = tables(asked)
    found = estimates(asked, rows, 1)
    pooled = np.concatenate([table["height"] for table in rows.values()])
    # a block's variance is corrected to first order; 400 / 20 = 20 rows make the rest 1/400
    np.testing.assert_allclose(
        found.together.estimate, [pooled.mean(), pooled.var()], rtol=2e-3 if scheme != "dsaa" else 2e-2
    )
    assert found.parameters == ("mean", "variance")
    error = [(pooled.var() / 1200) ** 0.5, pooled.var() * (2 / 1200) ** 0.5]
    np.testing.assert_allclose(found.together.standard_error, error, rtol=0.05)
    assert all(low < value < high for low, value, high in zip(
        found.together.lower, found.together.estimate, found.together.upper, strict=True))  # fmt: skip
    assert [one.of for one in found.groups] == ([] if scheme == "masked" else ["p0", "p1", "p2"])


def test_one_party_schemes_and_reading_back(tmp_path: Path) -> None:
    for scheme, family in (("cssa", Bernoulli()), ("csaa", Bernoulli())):
        asked = study(Estimate(column="sick", family=family, scheme=scheme), parties=1, people=5000)  # type: ignore[arg-type]
        release = sy.simulate(asked, tables(asked), seed=2)
        assert isinstance(release.result, EstimatesResult)
        assert release.result.estimates.together.estimate[0] == pytest.approx(0.3, abs=0.06)
        release.write(tmp_path / scheme)
        assert sy.Release.load(tmp_path / scheme).result == release.result
        assert "probability (bernoulli, sick)" in release.summary()


def test_hierarchy_is_made_of_the_same_releases(tmp_path: Path) -> None:
    groups = (
        Group(name="west", parties=("p0", "p1")),
        Group(name="east", parties=("p2",)),
        Group(name="country", parties=("west", "east")),
    )
    asked = study(Estimate(column="age", family=Poisson(), groups=groups))
    found = estimates(asked, tables(asked), 3, tmp_path)
    assert found.group("country").estimate == found.together.estimate
    assert found.group("east").estimate == found.group("p2").estimate
    west = [found.group(name).estimate[0] for name in ("p0", "p1")]
    assert found.group("west").estimate[0] == pytest.approx(np.mean(west))
    assert found.group("west").people == 800
    assert len(charges(tmp_path, "p0")) == 1


HIERARCHY = (
    Group(name="coast", parties=("p0", "p1")),
    Group(name="hills", parties=("p2", "p3")),
    Group(name="south", parties=("coast", "hills")),
    Group(name="ports", parties=("p1", "p4")),
)


@pytest.mark.parametrize("missing", [0, 1])
def test_under_masks_a_group_opens_with_one_copy_of_noise(monkeypatch: pytest.MonkeyPatch, missing: int) -> None:
    """Every party adds its share of the noise to every part: one that left others out would leave too little there."""
    protocol = Estimate(column="age", family=Poisson(), scheme="masked", groups=HIERARCHY, missing=missing)
    asked = study(protocol, parties=5)
    plan = asked.plan_as(EstimatePlan)
    assert plan.parts == (("p0",), ("p1",), ("p2", "p3"), ("p4",))
    masked_sum, share = plan.masked
    alone = study(Estimate(column="age", family=Poisson(), scheme="masked", missing=missing), parties=5)
    assert share.variance == alone.plan_as(EstimatePlan).masked[1].variance, "a row is in one part: the same noise"
    assert masked_sum.count == 4 * plan.layout.dimension
    rows = tables(asked)
    ages = {name: np.asarray(table["age"]) for name, table in rows.items()}
    monkeypatch.setattr("syndic.noise.LaplaceShare.draw", lambda *given: np.full(given[1], 7, np.int64))
    found = estimates(asked, rows, 3)
    members = {"coast": ("p0", "p1"), "hills": ("p2", "p3"), "south": ("p0", "p1", "p2", "p3"), "ports": ("p1", "p4")}
    unit, noise = plan.layout.unit[0], 5 * 7
    for name, inside in members.items():
        parts = sum(set(part) <= set(inside) for part in plan.parts)
        pooled = np.concatenate([ages[one] for one in inside])
        exact = (pooled.sum() + parts * noise * unit) / len(pooled)
        assert found.group(name).estimate[0] == pytest.approx(exact, rel=1e-9)
    summary = sy.simulate(asked, rows, seed=3).summary()
    assert "mean (poisson, age of coast)" in summary
    told = asked.plan.disclosure
    assert "each set of parties with the same groups" in told.sees["coordinator"]


def test_groups_under_masks_are_estimated_without_a_party_that_left(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = study(Estimate(column="age", family=Poisson(), scheme="masked", groups=HIERARCHY, missing=1), parties=5)
    sums = 400 * np.array([30, 0, 50 + 10, 20], dtype=np.int64)  # of p0, p1, p2 with p3, p4
    opened = Total(values=sums, present=("p0", "p2", "p3", "p4"))
    monkeypatch.setattr("syndic.mpc.masked_sum.MaskedSum.open", lambda *_: opened)
    found = estimates(asked, tables(asked), 1)
    means = {"coast": 30, "hills": 30, "south": 30, "ports": 20, "p4": 20}
    assert {name: round(found.group(name).estimate[0], 6) for name in means} == means
    assert [found.group(name).people for name in ("coast", "hills", "south")] == [400, 800, 1200]
    assert "p1" not in {one.of for one in found.groups}


def test_unequal_parties_are_weighed_by_size_and_noise() -> None:
    protocol = Estimate(column="age", family=Poisson())
    whole = study(protocol)
    parties = (
        sy.Member(name="p0", people=4000),
        sy.Member(name="p1", people=40),
        sy.Member(name="p2", people=400, budget=sy.Budget.of("1/100")),
    )
    asked = Study(name="u", unit=whole.unit, budget=whole.budget, protocol=protocol, parties=parties, schema=SCHEMA)
    found = estimates(asked, tables(asked), 4)
    errors = {one.of: one.standard_error[0] for one in found.groups}
    assert errors["p0"] < errors["p1"] < errors["p2"]
    assert found.together.standard_error[0] <= errors["p0"] * 1.001


def test_printed_variants_say_what_they_cost() -> None:
    printed = Estimate(column="height", family=Normal(), as_published=True, blocks=20, bits=6)
    law = noise_of(study(printed))
    assert isinstance(law, PublishedLaplace)
    layout = LAYOUTS["normal"]
    # noise for 20 blocks where 400 rows are averaged, and the Euclidean for the l1 diameter
    assert float(law.event.epsilon) == pytest.approx(20 / 400 * layout.l1 / layout.l2_squared**0.5, rel=1e-6)
    # A variance in [0, 1], blocks of two: a corrected one is up to 1.5, and as far below 0
    blocks = Estimate(column="height", family=Normal(), scheme="dsaa", least=(100.0, 0.0), most=(200.0, 1.0),
                        as_published=True, blocks=200)  # fmt: skip
    law = noise_of(study(blocks))
    assert isinstance(law, PublishedLaplace)
    assert float(law.event.epsilon) == pytest.approx((1 + 1 + 2 * 1 / 2) / 2**0.5, rel=1e-6)
    with pytest.raises(InputError, match="seed"):
        sy.simulate(study(printed), tables(study(printed)))
    assert any("times the stated epsilon" in text for text in study(printed).plan.disclosure.departures)


def test_masked_study_never_releases_a_partys_own_sums() -> None:
    masked, plain = (Estimate(column="age", family=Poisson(), scheme=scheme) for scheme in ("masked", "dssa"))
    assert tuple(study(masked).steps) == ("ready", "sum_keys", "sum_meet", "add")
    assert tuple(study(plain).steps) == ("ready", "answer")


def test_nothing_is_charged_for_masks_whatever_the_number_of_parties() -> None:
    protocol = Estimate(column="age", family=Poisson(), scheme="masked", colluding=20, missing=10)
    asked = study(protocol, parties=600, people=40)
    asked.check()
    assert asked.plan_as(EstimatePlan).masked[0].graph.neighbours == 62
    assert len(asked.plan.events("p0")) == 1


@pytest.mark.parametrize("scheme", ["dssa", "masked"])
@pytest.mark.parametrize("there", [250, 400, 1000])
def test_under_add_remove_a_party_gives_exactly_as_many_rows_as_the_study_says(scheme: Any, there: int) -> None:
    protocol = Estimate(column="age", family=Poisson(), scheme=scheme)
    asked = study(protocol, people=400, epsilon=100_000, neighbours="add_remove")
    ages = np.random.default_rng(3).integers(0, 100, there)
    rows = {party.name: pa.table({**_constant(there), "age": ages}) for party in asked.parties}
    found = estimates(asked, rows, seed=1).together
    lacking = max(0, 400 - there)
    middle = 50.0  # of the codes 0 to 99, whose table has as many lines
    exact = (ages[: 400 - lacking].sum() + lacking * middle) / 400 if there <= 400 else ages.mean()
    # a draw of 400 of 1000 rows, three times, has this standard deviation
    spread = ages.std() / 1200**0.5 if there > 400 else 0.0
    assert found.people == 1200
    assert abs(found.estimate[0] - exact) <= 6 * spread + 0.02
    told = asked.plan.disclosure
    assert "replaces at most one of them" in told.sensitivity
    assert any("minimum size" in each for each in told.not_protected)


def _constant(count: int) -> dict[str, Any]:
    return {"height": np.full(count, 150.0), "sick": [False] * count, "colour": ["red"] * count, "open": [True] * count}


@pytest.mark.parametrize(
    ("protocol", "change", "said"),
    [
        (Estimate(column="age", family=Poisson(), as_published=True), {"neighbours": "add_remove"}, "replace"),
        (Estimate(column="age", family=Poisson()), {"rows": 2}, "rows = 1"),
        (Estimate(column="nobody", family=Poisson()), {}, "nobody"),
        (Estimate(column="open", family=Bernoulli()), {}, "missing"),
        (Estimate(column="age", family=Bernoulli()), {}, "two values"),
        (Estimate(column="age", family=Gamma()), {}, "above 0"),
        (Estimate(column="age", family=Poisson(), scheme="cssa"), {}, "dssa"),
        (Estimate(column="age", family=Poisson(), noise="gaussian"), {}, "delta"),
        (Estimate(column="height", family=Exponential(), scheme="dsaa"), {}, "least and most"),
        (Estimate(column="age", family=Poisson(), least=(1.0, 2.0), most=(3.0,)), {}, "one number for each"),
        (Estimate(column="age", family=Poisson(), least=(4.0,), most=(3.0,)), {}, "below most"),
        (Estimate(column="age", family=Poisson(), scheme="masked", colluding=3), {}, "collude"),
        (
            Estimate(column="age", family=Poisson(), groups=(Group(name="p0", parties=("p1",)),)),
            {},
            "already the name of a party or group",
        ),
        (Estimate(column="age", family=Poisson(), groups=(Group(name="g", parties=("no",)),)), {}, "no"),
        (Estimate(column="age", family=Poisson(), groups=(Group(name="g", parties=("p0", "p0")),)), {}, "twice"),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, str) else "",
)
def test_what_cannot_work_is_refused_before_any_row(protocol: Estimate, change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        study(protocol, **change).check()


@pytest.mark.parametrize(
    "options",
    [
        {"bits": 13},
        {"confidence": 1.0},
        {"blocks": 3},
        {"colluding": 0},
        {"as_published": True, "noise": "gaussian"},
    ],
    ids=str,
)
def test_bad_parameters_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|are for|is the paper|masked"):
        Estimate(column="age", family=Poisson(), **options)


def test_more_memory_than_the_limit_is_refused() -> None:
    whole = study(Estimate(column="age", family=Poisson()), people=10**8)
    with pytest.raises(InputError, match="memory_mb"):
        msgspec.structs.replace(whole, limits=sy.Limits(memory_mb=500)).check()


def test_study_file_names_families() -> None:
    text = 'method = "estimate"\ncolumn = "age"\nfamily = { kind = "binomial", trials = 99 }'
    read = Study.loads(study_text(unit='neighbours = "replace"', protocol=text))
    read.check()
    with pytest.raises(InputError, match="frobnicate"):
        Study.loads(study_text(protocol='method = "estimate"\ncolumn = "age"\nfamily = { kind = "frobnicate" }'))
