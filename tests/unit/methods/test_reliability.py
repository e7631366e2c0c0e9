"""Expected errors of a synthetic table: close to the true ones on made-up rows, and each part answers to its cause."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

import syndic as sy
from support import CASES, VERTICAL, across_study, rows, study_text
from syndic.advice import Assumptions
from syndic.advice.artificial import CROWDS, made_up, made_up_counts
from syndic.data import Domain, Schema, decode_codes
from syndic.document import from_builtins, from_file
from syndic.errors import InputError
from syndic.evaluation.distance import Distance, relied_on, worst_pairs
from syndic.methods.synthesis.expected import reliability_of
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.synthesis.trust import POOR, ExpectedError, PairTrust, Reliability
from syndic.model.markov import Measurement
from syndic.model.markov.fit import fit
from syndic.model.selection import Grouping, Synthesis, synthesise
from syndic.study import Release, Study

Codes = dict[str, NDArray[np.int64]]
SIZES = {"a": 3, "b": 8, "c": 2, "d": 5, "e": 12, "f": 20}


def made_up_rows(people: int, seed: int) -> Codes:
    """Return columns that follow two hidden numbers, some closely and some not at all; `n` has 64 fine bins."""
    draws = np.random.default_rng(seed)
    hidden = draws.normal(size=(people, 2))
    found = {}
    for place, (name, size) in enumerate({**SIZES, "n": 64}.items()):
        values = hidden @ draws.normal(size=2) * (0.0, 0.5, 1.0, 2.0)[place % 4] + draws.normal(size=people)
        values = (values - values.mean()) / values.std()
        edges = np.linspace(-5, 5, size + 1)[1:-1] if name == "n" else np.sort(draws.normal(size=size - 1))
        found[name] = np.searchsorted(edges, values)
    return found


def study_of(people: int, target: str = "") -> Study:
    columns = [{"name": name, "kind": "integer", "lower": 1, "upper": size, "bins": size, "missing": {"value": 1}}
               for name, size in SIZES.items()]  # fmt: skip
    columns.append({"name": "n", "kind": "real", "lower": -5.0, "upper": 5.0, "missing": {"value": 0.0}})
    document = {
        "name": "made up",
        "purpose": "test",
        "unit": {"neighbours": "replace", "rows": 1, "parties": 1},
        "budget": {"epsilon": 1.0, "delta": 1e-6},
        "protocol": {"method": "synthesis", **({"target": target} if target else {})},
        "parties": [{"name": "one", "people": people}],
        "schema": {"columns": columns},
    }
    return from_builtins(document, Study, where="study")


def released(people: int, seed: int, target: str = "") -> tuple[Reliability, Domain, Codes, Codes]:
    """Return what the method expects, and the real and the drawn rows."""
    study, codes = study_of(people, target), made_up_rows(people, seed)
    plan, draws = study.plan_as(SynthesisPlan), np.random.default_rng([seed, 1])
    counts = made_up_counts(codes, plan.account, plan.size.rooms, draws)
    fitted = synthesise(plan.selector, counts, plan.account.whole)
    drawn = fitted.sample(people, draws)
    groups = [one.groups for one in counts.rounds]
    ordered = [name for name, _ in plan.selector.ordered]
    assert ordered == ["n"]
    reliability = reliability_of(study.schema, fitted, groups, drawn, ordered=ordered, target=target or None)
    return reliability, study.schema.domain, codes, {name: one.astype(np.int64) for name, one in drawn.items()}


def distance(domain: Domain, names: tuple[str, ...], one: Codes, other: Codes) -> float:
    part = domain.project(names)
    shares = [
        np.bincount(part.index([codes[name] for name in names]), minlength=part.size) / len(codes[names[0]])
        for codes in (one, other)
    ]
    return float(np.abs(shares[0] - shares[1]).sum()) / 2


@pytest.mark.parametrize(
    ("people", "target"),
    [(3000, ""), pytest.param(3000, "c", marks=pytest.mark.slow), pytest.param(30_000, "", marks=pytest.mark.slow)],
)
def test_expected_errors_are_close_to_the_true_ones(people: int, target: str) -> None:
    expected, true = [], []
    for seed in range(3):
        reliability, domain, codes, drawn = released(people, seed, target)
        expected += [pair.error for pair in reliability.pairs]
        true += [distance(domain, pair.columns, codes, drawn) for pair in reliability.pairs]
    ratio = np.array(expected) / np.array(true)
    assert spearmanr(expected, true).statistic > 0.8
    assert (ratio >= 1 / 1.5).mean() > 0.85
    assert 0.7 < np.median(ratio) < 1.6


def by_hand(values: NDArray[np.float64], deviation: float, *, link: bool) -> tuple[PairTrust, Reliability]:
    """Return the reliability of a model of two columns: fitted to their pair, or to the single columns only."""
    schema = Schema.from_domain({"a": values.shape[0], "b": values.shape[1]})
    domain, variance = schema.domain, deviation**2
    draws = np.random.default_rng(5)
    single = [Measurement(("a",), values.sum(axis=1), variance), Measurement(("b",), values.sum(axis=0), variance)]
    pair = Measurement(("a", "b"), values + draws.normal(0, deviation, values.shape), variance)
    field = fit(domain, [*single, pair] if link else single, total=float(values.sum())).field
    grouping = Grouping.none(domain)
    levels = {"a": values.sum(axis=1), "b": values.sum(axis=0)}
    fitted = Synthesis(field, grouping, levels, (tuple(single), (pair,)))
    drawn = fitted.sample(int(values.sum()), draws)
    reliability = reliability_of(schema, fitted, [(), grouping.groups], drawn)
    return reliability.pair("b", "a"), reliability


TIED = np.array([[800.0, 100.0, 100.0], [100.0, 800.0, 100.0], [100.0, 100.0, 800.0]])


def test_what_the_model_leaves_out_is_seen_in_the_noisy_table() -> None:
    left_out, _ = by_hand(TIED, 10.0, link=False)
    true = float(np.abs(TIED - 1000 / 3).sum()) / 2 / TIED.sum()
    assert left_out.expected.model == pytest.approx(true, rel=0.15)
    assert left_out.expected.cause == "what the model leaves out"
    assert not left_out.held
    assert left_out.measured
    linked, _ = by_hand(TIED, 10.0, link=True)
    assert linked.held
    assert linked.expected.model < 0.02
    assert linked.error < 0.1 * left_out.error
    assert linked.limit == pytest.approx(2 / 3, abs=0.01)
    assert linked.strength == pytest.approx(true, rel=0.1)


def test_more_noise_is_a_larger_error() -> None:
    errors = [by_hand(TIED, deviation, link=True)[0].expected.noise for deviation in (2.0, 10.0, 50.0)]
    assert errors[0] < errors[1] < errors[2]


def test_words() -> None:
    def pair(one: str, other: str, error: float, limit: float = 0.5) -> PairTrust:
        expected = ExpectedError.of(noise=error)
        return PairTrust(columns=(one, other), expected=expected, strength=0.1, limit=limit, measured=True, held=True)

    pairs = (pair("a", "b", 0.02), pair("a", "y", 0.05, 0.1), pair("b", "y", 0.3))
    plain = Reliability(columns=(), pairs=pairs)
    assert [one.columns for one in plain.worst(2)] == [("b", "y"), ("a", "y")]
    rule = "expected error above 0.1, 0 to 1, or 25% of the strongest possible relation"
    # a relation of a rare value is weak at most, so that noise hides it long before the error is large
    named = "b and y (0.30), a and y (0.05)"
    assert plain.sentence == f"Relations that this table does not hold well ({rule}): {named}."
    # one value only: no relation is possible
    assert not Reliability(columns=(), pairs=(pair("a", "b", 0.02, 0.001),)).poor
    aimed = Reliability(columns=(), pairs=pairs, target="a")
    assert [one.columns for one in aimed.poor] == [("a", "y"), ("b", "y")]
    assert "a and y: expected error 0.050, mostly noise; association in this table 0.100 of at most 0.100" in str(aimed)
    good = Reliability(columns=(), pairs=pairs[:1])
    assert good.sentence == (
        f"Every relation of two columns has an expected error of at most {POOR:g} (0 to 1) and 25% of the strongest "
        "possible relation."
    )
    with pytest.raises(InputError, match="no pair of the columns 'a' and 'z'"):
        good.pair("a", "z")
    with pytest.raises(InputError, match="no column 'a'"):
        good.column("a")


def test_a_release_says_it_and_keeps_it(tmp_path: Path) -> None:
    parties = '[[parties]]\nname = "north"\npeople = 400\n'
    text = study_text(
        budget="epsilon = 1.0\ndelta = 1e-5", parties=parties, protocol='method = "synthesis"\ntarget = "age"'
    )
    release = sy.simulate(Study.loads(text), {"north": rows(400)}, seed=3)
    found = release.reliability
    assert found.target == "age"
    assert release.summary()["reliability"] == found.sentence
    assert {one.column for one in found.columns} == set(release.study.schema.names)
    assert len(found.with_target()) == len(release.study.schema.names) - 1
    release.write(tmp_path)
    assert from_file(tmp_path / "reliability.json", Reliability) == found
    assert Release.load(tmp_path).reliability == found
    page = release.report(tmp_path / "report.html").read_text()
    assert "Which relations can be relied on" in page
    assert found.sentence in page
    assert "▸ age" in page


def merged(name: str, people: int = 3000) -> Study:
    options, parties = {
        "homm": ("", "1.0"),
        "homm with little budget": ("", "0.2"),
        "homm gaussian": ('noise = "gaussian"', "1.0"),
        "homm sparse": ("at_least = 4", "0.5"),
        "homm signed": ("clamp = false", "1.0"),
    }[name]
    return Study.loads(
        study_text(
            budget=f"epsilon = {parties}\ndelta = 1e-6",
            protocol=f'method = "homm"\n{options}',
            parties=f'[[parties]]\nname = "north"\npeople = {people}\n[[parties]]\nname = "south"\npeople = {people}\n',
        )
    )


@pytest.mark.parametrize(
    "name", ["homm", "homm with little budget", "homm gaussian", "homm sparse", "homm signed", "glued"]
)
def test_every_table_with_its_noisy_counts_says_it(name: str, tmp_path: Path) -> None:
    parties = VERTICAL.replace("60", "3000")
    glued = name == "glued"
    study = across_study("glued", parties=parties, budget="epsilon = 1.0\ndelta = 1e-6") if glued else merged(name)
    expected, true = [], []
    for seed in range(3):
        draws = np.random.default_rng(seed)
        codes = made_up(study.schema, CROWDS[seed], 3000 if glued else 6000, Assumptions(), draws)
        table = decode_codes(study.schema, codes, draws).to_arrow()
        sources = {"north": table.slice(0, 3000), "south": table.slice(3000)}
        if glued:
            sources = {one.name: table.select(list(one.columns or ())) for one in study.parties}
        release = sy.simulate(study, sources, seed=seed)
        found, made = release.reliability, release.table.to_arrow()
        weights = np.asarray(made["weight"]) if "weight" in made.column_names else np.ones(len(made))
        for names in (*((name,) for name in study.schema.names), *combinations(study.schema.names, 2)):
            part = study.schema.domain.project(names)
            cells = part.index([study.schema[name].encode(made[name]) for name in names])
            drawn = np.bincount(cells, weights=weights, minlength=part.size) / weights.sum()
            real = np.bincount(part.index([codes[name] for name in names]), minlength=part.size) / len(table)
            true.append(float(np.abs(drawn - real).sum()) / 2)
            expected.append(found.column(names[0]).error if len(names) == 1 else found.pair(*names).error)
    ratio = float(np.mean(expected) / np.mean(true))
    assert 0.8 < ratio < 1.6, ratio
    # nothing in the release says how columns of different parties are associated
    assert ("No table of 2 of 3 pairs was measured: their errors are guesses." in found.sentence) is glued
    release.write(tmp_path)
    assert from_file(tmp_path / "reliability.json", Reliability) == found
    assert Release.load(tmp_path).reliability == found
    assert release.summary()["reliability"] == found.sentence
    page = release.report(tmp_path / "report.html").read_text()
    assert "Which relations can be relied on" in page
    assert found.sentence in page


def test_columns_with_many_levels_are_taken_together() -> None:
    column = '[[schema.columns]]\nname = "{}"\nkind = "integer"\nlower = 0\nupper = 99999\nbins = 100000\n'
    text = study_text(
        parties='[[parties]]\nname = "north"\npeople = 300\n',
        columns=(column.format("a") + column.format("b")).replace("bins", "missing = { value = 0 }\nbins"),
        protocol='method = "homm"\nat_least = 20',
    )
    table = pa.table({name: np.repeat(np.arange(3), 100) for name in "ab"})
    found = sy.simulate(Study.loads(text), {"north": table}, seed=1).reliability
    assert found.pair("a", "b").strength <= found.pair("a", "b").limit
    assert found.column("a").width == pytest.approx(1 / 500, abs=1e-3)


def test_a_table_without_what_it_takes_says_so(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "dplt")
    release = sy.simulate(case.study, case.sources, seed=1)
    with pytest.raises(
        InputError, match=r"can be relied on is not known: Latent tree .* does not publish what it takes"
    ):
        _ = release.reliability
    page = release.report(tmp_path / "report.html").read_text()
    assert "is not known: this method does not publish what it takes." in page
    assert not (tmp_path / "reliability.json").exists()


def test_an_owner_sees_true_distances_beside_the_expected_ones() -> None:
    pair, reliability = by_hand(TIED, 10.0, link=True)
    sets = [Distance(columns=("a", "b"), tvd=0.3), Distance(columns=("a",), tvd=0.4)]
    (score,) = worst_pairs(sets, reliability)
    assert (score.columns, score.tvd, score.expected) == (("a", "b"), 0.3, pair.error)
    assert worst_pairs(sets, None)[0].expected is None
    told = "0 of 1 pairs of columns are at most 0.1 from the real rows"
    assert relied_on(sets, None) == told
    assert relied_on(sets, reliability) == f"{told}; the release calls 1 of them reliable, and 0 of these are"
    close = [Distance(columns=("a", "b"), tvd=0.02)]
    assert relied_on(close, reliability).endswith("calls 1 of them reliable, and 1 of these are")
