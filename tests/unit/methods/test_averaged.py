"""Columns at several parties: read from a named one, or averaged."""

from itertools import product
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import charges, study_text
from syndic import Study, advise, simulate
from syndic.errors import InputError, PartyError
from syndic.kernel import groups_of, parts_of
from syndic.methods import Synthesis
from syndic.methods.describe.describe import DescribePlan
from syndic.methods.describe.result import DescribeResult
from syndic.methods.estimate.plan import EstimatePlan
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.methods.layout import TableLayout
from syndic.methods.regression.gram_plan import GramPlan
from syndic.methods.synthesis.measure import Question
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.table_noise import TableNoise
from syndic.noise import GaussianShare, LaplaceShare, SkellamShare
from syndic.noise.gaussian import DiscreteGaussian
from syndic.study import Release, plan
from unit.methods.averaging import (
    COLUMNS,
    CUTS,
    DESCRIBE,
    LEVELS,
    PARTS,
    PEOPLE,
    SYNTHESIS,
    Held,
    Rows,
    Rule,
    choices,
    counted,
    exact,
    rows,
    sources,
    study,
)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all noise away."""
    for noise in (GaussianShare, DiscreteGaussian, LaplaceShare, SkellamShare):
        monkeypatch.setattr(noise, "draw", lambda _, shape, randomness: np.zeros(shape, np.int64), raising=False)  # noqa: ARG005
    monkeypatch.setattr(TableNoise, "apply", lambda self, values, _: values * self.scale)


# What opens.


def check_tables(held: Held, rule: Rule, protocol: str) -> None:
    found = rows(held)
    result: Any = simulate(study(held, rule, protocol), sources(found), seed=1).result
    for table in result.tables:
        names = table.domain.names
        assert table.values == pytest.approx(exact(held, rule, found, names), abs=1e-9), names


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("which", CUTS)
def test_without_noise_tables_are_means_over_the_parties_that_are_read(which: str) -> None:
    held, rule = CUTS[which]
    assert parts_of(groups_of(study(held, rule))) == PARTS[which]
    assert lcm(*(len(choices(held, rule, group)) for group, _ in held.values())) % PARTS[which] == 0
    check_tables(held, rule, 'method = "marginals"')


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(
    ("which", "more"),
    [
        ("both orders", 'adversary = "passive"'),
        ("two by two", 'servers = ["p", "q", "r"]'),
        ("two by two", 'servers = ["p", "q", "r", "s"]'),
        ("one of two groups", 'cliques = [["b", "d", "a"], ["a"]]'),
        ("read together", 'cliques = [["b", "d", "a"], ["a", "b", "c", "d"]]'),
        ("two sets", "coordinator_noise = true"),
        ("two sets", 'noise = "laplace"'),
        ("two holders", 'noise = "skellam"'),
    ],
)
def test_other_products_tables_and_noises_give_the_same_means(which: str, more: str) -> None:
    check_tables(*CUTS[which], f'method = "marginals"\n{more}')


LISTED = '"b"\nkind = "categorical"\nvalues = ["0", "1"]\nmissing = { value = "0" }'


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("which", ["both orders", "two by two", "nothing across"])
def test_survival_counts_means(which: str) -> None:
    held, rule = CUTS[which]
    found, protocol = rows(held), 'method = "survival"\ntime = "a"\nevent = "b"\ncensored = "0"'
    columns = COLUMNS.replace('"b"\nkind = "integer"\nlower = 0\nupper = 1\nmissing = { value = 0 }', LISTED)
    given = {name: pa.table({**own, "b": own["b"].astype(str)} if "b" in own else own) for name, own in found.items()}
    result: Any = simulate(study(held, rule, protocol, columns), given, seed=1).result
    table = result.table.values[:, :2]
    assert table == pytest.approx(exact(held, rule, found, ("a", "b")), abs=1e-9)
    assert table.sum() == pytest.approx(sum(PEOPLE[group] for group in {group for group, _ in held.values()}))


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("which", ["both orders", "two by two", "nothing across", "one of two groups"])
def test_describe_sums_means(which: str, tmp_path: Path) -> None:
    held, rule = CUTS[which]
    agreed, found = study(held, rule, DESCRIBE), rows(held)
    planned, release = agreed.plan_as(DescribePlan), simulate(agreed, sources(found), seed=1)
    assert isinstance(release.result, DescribeResult)
    assert planned.one == PARTS[which] * 4096
    for block, readings in zip(planned.note.blocks, planned.readings, strict=True):
        expected = exact(held, rule, found, block.clique).reshape(-1, LEVELS[block.of]) @ readings.matrix / 4096
        cells = release.result.sums[release.result._starts[block]] / planned.one
        assert cells.reshape(-1, *expected.shape).sum(axis=0) == pytest.approx(expected, abs=1e-9), block
    assert release.result.people.sum() == pytest.approx(sum(PEOPLE[group] for group in {g for g, _ in held.values()}))
    release.write(tmp_path)
    assert Release.load(tmp_path).result.note == release.result.note  # type: ignore[attr-defined]


LOUD = "epsilon = 20.0\ndelta = 1e-6"


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(
    ("which", "more"),
    [
        ("two holders", ""),
        ("both orders", ""),
        ("two sets", 'adversary = "passive"\ncoordinator_noise = true'),
        ("nothing across", ""),
        ("two by two", 'servers = ["p", "q", "r"]'),
    ],
)
def test_every_round_of_a_synthesis_opens_means(which: str, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held, rule = CUTS[which]
    agreed, found, asking = study(held, rule, f"{SYNTHESIS}\n{more}", budget=LOUD), rows(held), Synthesis._open
    asked: list[tuple[Any, Any]] = []

    def kept(self: Any, session: Any, sums: Any, question: Any) -> Any:
        answer = asking(self, session, sums, question)
        asked.append((question, answer.values))
        return answer

    monkeypatch.setattr(Synthesis, "_open", kept)
    simulate(agreed, sources(found), seed=1)
    everybody = sum(PEOPLE[group] for group in {group for group, _ in held.values()})
    for question, values in asked:
        grouping = question.grouping(agreed.schema.domain)
        recoded = dict(zip("abcd", grouping.groups, strict=True))
        start = 0
        for names in question.tables:
            table = exact(held, rule, found, names, recoded)
            if question.parity:
                for size in table.shape:
                    table = np.tensordot(1 - 2 * np.arange(size), table, axes=(0, 0))
            part = sum(PEOPLE[group] for group, _ in counted(held, rule, names))
            opened = values[start : start + table.size]
            assert opened == pytest.approx(np.ravel(table) * everybody / part, abs=1e-6), names
            start += table.size
        assert start == values.size
    parities = [question for question, _ in asked if question.parity]
    assert len(parities) == 1
    assert {len(names) for question, _ in asked for names in question.tables} >= {1, 2}


# How far one person moves it.


SMALL = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = 1\nmissing = {{ value = 0 }}\n'
    for name in "ab"
)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("adversary", [pytest.param("active", marks=pytest.mark.slow), "passive"])
def test_no_person_moves_what_opens_further_than_is_charged(adversary: str) -> None:
    """All values of one person at all parties, by real runs; the worst reaches what the noise is for."""
    held: Held = {"p": ("x", "ab"), "q": ("x", "a"), "r": ("x", "b")}
    rule = {"a": "pq", "b": "pr"}
    agreed = study(held, rule, f'method = "marginals"\nadversary = "{adversary}"', SMALL, people=2)
    planned, opened = agreed.plan_as(MarginalsPlan), []
    for one in product((0, 1), repeat=4):
        given = {"p": {"a": [one[0], 0], "b": [one[1], 1]}, "q": {"a": [one[2], 1]}, "r": {"b": [one[3], 0]}}
        result: Any = simulate(agreed, {name: pa.table(own) for name, own in given.items()}, seed=1).result
        opened.append(np.concatenate([table.values.ravel() for table in result.tables]))
    apart = np.array([[one - other for one in opened] for other in opened])
    assert isinstance(planned.noise, GaussianShare)
    assert planned.one == 4
    most = (apart**2).sum(axis=2).max()
    assert most == pytest.approx(float(planned.noise.sensitivity_squared) / planned.one**2) == 2 * len(planned.cliques)
    assert np.abs(apart).sum(axis=2).max() == 2 * len(planned.cliques)
    # where a partner alone changes, it is a half or less
    assert np.abs(apart[0][2]).sum() <= len(planned.cliques)


@pytest.mark.parametrize("rule", [{"a": "pq", "b": "pq"}, {"a": "pq", "b": "pr"}, {"a": "pq"}])
def test_no_person_moves_sums_of_numbers_further_than_is_charged(rule: Rule) -> None:
    """All pairs of people, each with any values at every party; without a rule the bound is the same."""
    held: Held = {"p": ("x", "abcd"), "q": ("x", "ab"), "r": ("x", "b")}
    planned, plain = (study(held, one, DESCRIBE).plan_as(DescribePlan) for one in (rule, {}))
    places = [(party, name) for party, (_, own) in held.items() for name in own if name != "d"]
    added = []
    for values in product(*(range(LEVELS[name]) for _, name in places)):
        person: Rows = {party: {} for party in held}
        for (party, name), value in zip(places, values, strict=True):
            person[party][name] = np.array([value])
        tables = [exact(held, rule, person, one.block.clique) for one in planned.readings]
        sums = [
            table.reshape(-1, one.column.size) @ one.matrix for table, one in zip(tables, planned.readings, strict=True)
        ]
        added.append(np.concatenate([one.ravel() for one in sums]) / 4096)
    unique = np.unique(np.array(added), axis=0)
    most = max(float(((unique - one) ** 2).sum(axis=1).max()) for one in unique)
    charged = planned.sensitivity / planned.one**2
    assert charged == plain.sensitivity / plain.one**2
    assert 0.8 * charged < most <= charged


def test_noise_and_charge_are_those_of_a_column_at_one_party() -> None:
    held, rule = CUTS["two sets"]
    for protocol in ('method = "marginals"', DESCRIBE, 'method = "marginals"\nnoise = "laplace"'):
        averaged, plain = (study(held, one, protocol) for one in (rule, {}))
        plans = [each.plan_as(MarginalsPlan) for each in (averaged, plain)]
        assert [each.one for each in plans] == [4 * plans[1].one, plans[1].one]
        shares = [each.noise.variance / each.one**2 for each in plans]
        assert shares[0] == pytest.approx(shares[1], rel=1e-3)
        assert float(averaged.joint.epsilon(averaged.delta)) == pytest.approx(float(plain.joint.epsilon(plain.delta)))
    accounts = [study(held, one, SYNTHESIS).plan_as(SynthesisPlan).account for one in (rule, {})]
    assert [account.parts for account in accounts] == [4, 1]
    assert accounts[0].variance(accounts[0].whole) == pytest.approx(accounts[1].variance(accounts[1].whole), rel=1e-3)
    tables = 6, 40
    variances = [account.noise_of(2, *tables).variance(3) for account in accounts]
    assert variances[0] == pytest.approx(variances[1], rel=1e-3)


@pytest.mark.parametrize("which", ["two sets", "nothing across"])
def test_drawn_noise_has_the_stated_size(which: str, tmp_path: Path) -> None:
    held, rule = CUTS[which]
    found = rows(held)
    result: Any = simulate(study(held, rule), sources(found), seed=5, folder=tmp_path).result
    noise = np.concatenate([(one.values - exact(held, rule, found, one.domain.names)).ravel() for one in result.tables])
    assert 0.6 < noise.std() / result.note.standard_deviation < 1.5
    assert [len(charges(tmp_path, name)) for name in held] == [1] * len(held)


@pytest.mark.parametrize("adversary", ["active", "passive"])
def test_all_people_in_one_cell_have_room(adversary: str) -> None:
    held, rule = CUTS["both orders"]
    budget, more = "epsilon = 20.0\ndelta = 1e-7", f'adversary = "{adversary}"'
    for protocol in ('method = "marginals"', DESCRIBE):
        planned = study(held, rule, f"{protocol}\n{more}", people=20_000, budget=budget).plan_as(MarginalsPlan)
        ring, most = planned.masked_sum.ring, int(planned.one * (20_000 + 8 * planned.deviation(3)))
        assert ring.lift(ring.reduce(np.array([most, -most]))).tolist() == [most, -most]
    reach = study(held, rule, f"{SYNTHESIS}\n{more}", people=20_000, budget=budget).plan_as(SynthesisPlan).reach
    assert reach is not None
    now = reach.round_of(Question(number=2, tables=(("a", "b"), ("a", "d"))))
    assert now.product is not None
    most = 6 * 20_000 + 100
    for ring, scale in ((now.product.sizes.ring, 1), (now.ring, now.share.noise.scale)):
        assert ring.lift(ring.reduce(np.array([most * scale]))).tolist() == [most * scale]


def test_intervals_know_how_many_people_there_are() -> None:
    """A count in parts is divided by the parts: shares of 3,000 people, within a few standard errors."""
    held, rule = CUTS["two holders"]
    agreed, rng = study(held, rule, people=3000), np.random.default_rng(1)
    given = {name: {one: rng.integers(0, LEVELS[one], 3000) for one in own} for name, (_, own) in held.items()}
    found = simulate(agreed, sources(given), seed=1).interval("mean(b, given=a == 0)")
    assert found.low is not None
    assert found.high is not None
    assert 0.42 < found.low < found.high < 0.58
    # at least as wide as for a thousand people
    assert found.high - found.low > 0.95 * 2 * 1.96 * (0.25 / 1000) ** 0.5


# Who is told what, and what is refused.


def test_the_plan_shows_who_is_read() -> None:
    held, rule = CUTS["both orders"]
    told = str(plan(study(held, {**rule, "b": "qr"})))
    assert "a  p and q, averaged" in told
    assert "b  q and r, averaged (also p)" in told
    assert "a mean over 4 equal parts of the person" in plan(study(held, {**rule, "b": "qr"})).statement.sensitivity
    assert "a  p and q, averaged" in str(plan(study(*CUTS["nothing across"])))
    assert "a  q (also p)" in str(plan(study(*CUTS["agreed"])))
    assert advise(study(held, rule, DESCRIBE, people=3000)).errors  # type: ignore[union-attr]


def test_the_rule_is_part_of_the_digest_and_the_order_of_its_columns_is_not() -> None:
    held, _ = CUTS["two sets"]
    some = [study(held, rule) for rule in ({"a": "pq", "b": "pr"}, {"b": "pr", "a": "pq"}, {"a": "pq"}, {})]
    assert some[0].digest == some[1].digest
    assert len({one.digest for one in some}) == 3
    assert some[0] == some[1] != some[2]


HOLDERS = CUTS["two holders"][0]


@pytest.mark.parametrize(
    ("rule", "more", "words"),
    [
        ({"z": "p"}, {}, "'z' is not a column of the schema"),
        ({"a": "z"}, {}, "read_from of 'a': 'z' is not a party of this study"),
        ({"b": "q"}, {}, "read_from of 'b': party 'q' does not hold it"),
        ({"a": "pp"}, {}, "read_from of 'a' must name at least one party, each once"),
        ({"a": ""}, {}, "must name at least one party"),
        ({"c": "q"}, {}, "no two parties of a group of people hold 'c'"),
        ({"a": "pq"}, {"protocol": 'method = "gram"'}, "'a' is averaged over p and q, and this method reads"),
        (
            {"a": "pq"},
            {"protocol": 'method = "estimate"\ncolumn = "a"\nfamily = { kind = "normal" }'},
            "name one of them",
        ),
        ({"a": "pq"}, {"protocol": 'method = "describe"\nmissing = 1'}, "set missing = 0"),
        ({"a": "pq"}, {"protocol": 'method = "synthesis"\nmissing = 1'}, "missing = 0"),
    ],
)
def test_what_no_rule_can_say_is_refused(rule: Rule, more: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        study(HOLDERS, rule, **more).check()


def test_no_party_may_be_missing_from_a_mean() -> None:
    held: Held = {name: (group, "abcd") for name, group in zip("pqrst", "xxyyy", strict=True)}
    several = 'method = "marginals"\nmissing = 1'
    study(held, {"a": "p"}, several).check()
    with pytest.raises(InputError, match="averaged must all answer: set missing = 0"):
        study(held, dict.fromkeys("abcd", "pq"), several).check()


def test_methods_that_take_no_cut_take_no_rule() -> None:
    with pytest.raises(InputError, match="no column is at several parties of the same people"):
        Study.loads(study_text(top='read_from = { age = ["north"] }')).check()


def test_too_many_parts_are_refused() -> None:
    held: Held = dict.fromkeys("pqrst", ("x", "abcd"))
    with pytest.raises(InputError, match="cuts a person into 120 equal parts"):
        study(held, {"a": "pq", "b": "pqr", "c": "pqrs", "d": "pqrst"}).check()
    study(held, {"a": "pq", "b": "pqr", "c": "pqrs", "d": "t"}).check()


def test_a_table_needs_two_parties_for_every_choice() -> None:
    held: Held = {"p": ("x", "ab"), "q": ("x", "bc"), "r": ("x", "ad")}
    study(held, {}, 'method = "marginals"\ncliques = [["a", "b", "c"]]').check()
    with pytest.raises(InputError, match="no group has a, b, c at one or two parties"):
        study(held, {"a": "pr"}, 'method = "marginals"\ncliques = [["a", "b", "c"]]').check()


def test_methods_that_read_one_party_read_the_named_one() -> None:
    held, rule = CUTS["agreed"]
    estimate = study(held, rule, 'method = "estimate"\ncolumn = "a"\nfamily = { kind = "normal" }')
    assert estimate.plan_as(EstimatePlan).counting == ("q",)
    gram = study(held, rule, 'method = "gram"').plan_as(GramPlan)
    assert (gram.read_from("p"), gram.read_from("q")) == (("b", "c"), ("a", "d"))


def test_a_party_that_enters_large_numbers_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, rule = CUTS["both orders"]
    honest = TableLayout.rows

    def large(self: TableLayout, party: Any, span: tuple[int, int], recode: Any) -> Any:
        found = honest(self, party, span, recode)
        if party.name == "q":
            found[0] = 200
        return found

    monkeypatch.setattr(TableLayout, "rows", large)
    monkeypatch.setattr("syndic.mpc.product.SecureProduct.check_unchanged", lambda *_: None)
    with pytest.raises(PartyError, match="proof that a partner's rows are one-hot does not hold"):
        simulate(study(held, rule), sources(rows(held)), seed=1, folder=tmp_path)
    assert [charges(tmp_path, name) for name in held] == [[], [], []]
