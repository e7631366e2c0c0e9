"""Synthesis over any cut: groups of people, different columns of a group at different parties."""

from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from aligning import carried
from support import study_text
from syndic import Study, simulate
from syndic.advice import NoiseAdvice, advise
from syndic.data import Table, open_source
from syndic.errors import InputError, PartyError, RefusedError
from syndic.kernel import Call, Group, decode, encode
from syndic.kernel.view import told
from syndic.methods import Synthesis
from syndic.methods.synthesis.measure import Question
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.synthesis.rounds import Answer
from syndic.methods.synthesis.size import _counts_sets
from syndic.methods.table_noise import TableNoise
from syndic.model.selection import Grouping
from syndic.mpc.product_messages import ProductStart
from syndic.report import About, healthdcat
from syndic.report.catalogues import Curator
from syndic.study import plan
from syndic.study.release import Release

COLUMNS = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = 3\nmissing = {{ value = 0 }}\n'
    for name in "abcd"
)
HELD = {"p": ("north", "ab"), "q": ("north", "cd"), "r": ("south", "abc"), "s": ("south", "d")}


def people(count: int, seed: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    base, noise = generator.integers(0, 4, count), generator.integers(0, 4, (3, count))
    other = [np.where(generator.random(count) < 0.7, base, one) for one in noise]
    return pa.table(dict(zip("abcd", (base, *other), strict=True)))


PEOPLE = {"north": people(180, 1), "south": people(100, 2)}


def study(held: dict[str, tuple[str, str]] = HELD, more: str = "", unit: str = 'neighbours = "replace"') -> Study:
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = {len(PEOPLE[group])}\ngroup = "{group}"\ncolumns = {list(own)}\n'
        for name, (group, own) in held.items()
    )
    protocol, budget = f'method = "synthesis"\nmodel_cells = 256\n{more}', "epsilon = 8.0\ndelta = 1e-6"
    return Study.loads(study_text(protocol=protocol, unit=unit, budget=budget, parties=parties, columns=COLUMNS))


def sources(held: dict[str, tuple[str, str]] = HELD) -> dict[str, pa.Table]:
    return {name: PEOPLE[group].select(list(own)) for name, (group, own) in held.items()}


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all noise away."""
    monkeypatch.setattr(TableNoise, "apply", lambda self, values, _: values * self.scale)


def counted(agreed: Study, question: Any, names: tuple[str, ...], *groups: str) -> Any:
    table = Table(agreed.schema, open_source(pa.concat_tables([PEOPLE[group] for group in groups])))
    domain = agreed.schema.domain
    grouping = Grouping(domain, question.groups) if question.groups else Grouping.none(domain)
    return table.marginals([names], grouping)[0].values


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("more", ["", 'adversary = "passive"\nselector = "adaptive"\nrounds = 2'])
def test_without_noise_every_table_is_the_count_of_all_people(more: str) -> None:
    agreed = study(more=more)
    result: Any = simulate(agreed, sources(), seed=1).result
    asked = [(one, names) for one in result.note.rounds for names in one.tables]
    assert {len(names) for _, names in asked} >= {1, 2}
    for (question, names), opened in zip(asked, result.tables, strict=True):
        assert opened.values.tolist() == counted(agreed, question, names, "north", "south").tolist()
    assert len(result.table) == 280


FIVE = {"p": ("north", "a"), "q": ("north", "bc"), "r": ("north", "d"), "s": ("south", "abc"), "t": ("south", "d")}
TRIPLES = 'keep = [["d", "a", "b"], ["a", "c", "d"]]\nservers = ["t", "q", "p", "r"]'


@pytest.mark.usefixtures("silent")
def test_four_servers_count_tables_of_three_parties_of_which_questions_may_be_asked() -> None:
    agreed = study(FIVE, TRIPLES)
    release: Any = simulate(agreed, sources(FIVE), seed=1)
    asked = [(one, names) for one in release.result.note.rounds for names in one.tables]
    assert {frozenset("abd"), frozenset("acd")} <= {frozenset(names) for _, names in asked}
    for (question, names), opened in zip(asked, release.result.tables, strict=True):
        assert opened.values.tolist() == counted(agreed, question, names, "north", "south").tolist()
    assert {len(one.names) for one in release.measured.tables} >= {3}
    assert plan(agreed).uncovered == ()
    assert len(plan(study(FIVE, 'keep = [["d", "a", "b"]]')).uncovered) == 1


@pytest.mark.usefixtures("silent")
def test_people_whom_a_table_lacks_count_as_the_others_do() -> None:
    held = {**HELD, "r": ("south", "a")}
    agreed = study(held)
    told = plan(agreed)
    assert told.uncovered == ("b, c: counted for 64% of the people",)
    assert any("assumed to be like" in one for one in told.statement.not_protected)
    result: Any = simulate(agreed, sources(held), seed=1).result
    asked = [(one, names) for one in result.note.rounds for names in one.tables]
    for (question, names), opened in zip(asked, result.tables, strict=True):
        part = {"b", "c"} & set(names)
        exact = counted(agreed, question, names, *(["north"] if part else ["north", "south"]))
        assert opened.values == pytest.approx(exact * (280 / 180 if part else 1))


def test_noise_and_charges_are_those_of_all_parties_and_groups() -> None:
    one, two = (study(unit=f'neighbours = "replace"\nparties = {count}') for count in (1, 2))
    assert one.costs["p"] == one.costs["s"] == one.joint
    account, wider = (each.plan_as(SynthesisPlan).account for each in (one, two))
    assert (account.parties, account.colluding) == (4, 1)
    assert wider.variance(wider.whole) == pytest.approx(4 * account.variance(account.whole), rel=0.05)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("forked", [True, False])
def test_a_coordinator_that_asks_parties_different_things_opens_nothing(forked: bool, tmp_path: Path) -> None:
    agreed = study()
    carrier, session = carried(agreed, sources(), tmp_path)
    method, every = agreed.protocol, (("a",), ("b",), ("c",), ("d",))
    assert isinstance(method, Synthesis)
    sums = agreed.plan_as(SynthesisPlan).masked_sums
    assert sums is not None

    def change(step: str, party: str, body: bytes) -> bytes:
        if forked and step in {"ask_round", "count"} and party == "s":
            return encode(Question(number=decode(body, Question).number, tables=every[::-1]))
        return body

    carrier.change = change
    opened: Answer = method._open(session, sums.start(session), Question(number=1, tables=every))  # type: ignore[arg-type]
    exact = counted(agreed, Question(number=1, tables=every), ("a",), "north", "south")
    assert (opened.values[:4].tolist() == exact.tolist()) is not forked
    if forked:
        assert (opened.values % 1 != 0).mean() > 0.9, "masks that do not cancel"
    carrier.close()


def test_a_round_is_counted_as_it_was_asked(tmp_path: Path) -> None:
    agreed = study()
    carrier, session = carried(agreed, sources(), tmp_path)
    method = agreed.protocol
    assert isinstance(method, Synthesis)

    def change(step: str, party: str, body: bytes) -> bytes:
        return encode(Question(number=1, tables=(("a",),))) if step == "count" else body

    carrier.change = change
    with pytest.raises(PartyError, match="counted as it was asked first"):
        method.coordinate(session)  # type: ignore[arg-type]
    carrier.close()


BESIDE = {"t": ("south", "abcd"), "p": ("north", "a"), "q": ("north", "bc"), "r": ("north", "d")}


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("lie", ["none", "told of both questions", "asked one, counts another"])
def test_a_party_told_of_questions_that_it_missed_has_another_view_when_it_counts(lie: str, tmp_path: Path) -> None:
    """Views may agree after questions that differ, each party being told that it missed the other's; counts bind it."""
    agreed = study(BESIDE)
    carrier, session = carried(agreed, sources(BESIDE), tmp_path)
    method, sums = agreed.protocol, agreed.plan_as(SynthesisPlan).masked_sums
    assert isinstance(method, Synthesis)
    assert sums is not None
    one, other = (Question(number=1, tables=((name,),)) for name in "ad")
    send = carrier.send

    def forked(calls: Any, **more: Any) -> Any:
        changed = {}
        for name, data in calls.items():
            call = decode(data, Call)
            if lie != "none" and call.step in {"ask_round", "count"}:
                asking, alone = call.step == "ask_round", name == "t"
                known = told("ask_round", one if alone else other) if asking is alone else b""
                body = encode(other if alone and (asking or "both" in lie) else one)
                number = call.number + (1 if alone or not asking else 0)
                call = msgspec.structs.replace(call, body=body, missed=known, number=number, check=None)
            changed[name] = encode(call)
        return send(changed, **more)

    carrier.send = forked  # type: ignore[method-assign]
    if lie == "asked one, counts another":
        with pytest.raises(PartyError, match="t: refused: round 1 is counted as it was asked first"):
            method._open(session, sums.start(session), one)  # type: ignore[arg-type]
    else:
        opened = method._open(session, sums.start(session), one)  # type: ignore[arg-type]
        exact = counted(agreed, one, ("a",), "north", "south")
        assert (opened.values.tolist() == exact.tolist()) is (lie == "none")
        assert lie == "none" or (opened.values % 1 != 0).mean() > 0.9, "masks that do not cancel"
    views = {node.state.view.digest for name, node in carrier.nodes.items() if name != "t"}
    assert len(views) == 1
    assert (carrier.nodes["t"].state.view.digest in views) is (lie == "none")
    carrier.close()


def test_a_coordinator_that_counts_before_it_multiplies_opens_nothing(tmp_path: Path) -> None:
    agreed = study(BESIDE)
    carrier, session = carried(agreed, sources(BESIDE), tmp_path)
    method, sums = agreed.protocol, agreed.plan_as(SynthesisPlan).masked_sums
    assert isinstance(method, Synthesis)
    assert sums is not None
    sums.start(session)
    first, second = Question(number=1, tables=(("a",),)), Question(number=2, tables=(("a", "b"), ("c", "d")))
    for question in (first, second):
        with pytest.raises(PartyError, match=r"was requested before|is counted as it was asked"):
            session.ask(method.count, question)
        session.ask(method.ask_round, question)
    with pytest.raises(PartyError, match="each is answered once, in order"):
        session.ask(method.count, second)
    session.ask(method.product_keys, ProductStart(seed=bytes(32)))
    with pytest.raises(PartyError, match="each is answered once, in order"):
        session.ask(method.product_keys, ProductStart(seed=bytes(range(32))))
    with pytest.raises(PartyError, match="each is answered once, in order"):
        session.ask(method.count, second)
    spent = {
        name: sum(entry.kind == "reserve" for entry in node.state.ledger.entries())
        for name, node in carrier.nodes.items()
    }
    assert spent == {"t": 1, "p": 0, "q": 0, "r": 0}, "t multiplies with nobody; its sum stays masked"
    carrier.close()


@pytest.mark.parametrize(
    ("held", "more", "words"),
    [
        (HELD, "missing = 1", "missing = 0"),
        ({"p": ("north", "ab"), "q": ("north", "cd"), "r": ("south", "a")}, "colluding = 3", "collu"),
    ],
)
def test_what_no_cut_allows_is_refused(held: dict[str, tuple[str, str]], more: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        study(held, more).check()


def test_questions_that_no_group_can_count_and_idle_products_are_refused(tmp_path: Path) -> None:
    held = {"p": ("north", "a"), "q": ("north", "b"), "r": ("north", "cd")}
    agreed = study(held)
    with pytest.raises(RefusedError, match="no group has at one or two parties"):
        agreed.plan_as(SynthesisPlan).check_question(Question(number=4, tables=(("a", "b", "c"),)))
    carrier, session = carried(agreed, sources(held), tmp_path)
    method = agreed.protocol
    assert isinstance(method, Synthesis)
    session.ask(method.ask_round, Question(number=1, tables=(("a",),)))
    with pytest.raises(PartyError, match="no table across parties: nothing is multiplied"):
        session.ask(method.product_keys, ProductStart(seed=bytes(32)))
    carrier.close()


def test_tables_of_three_columns_are_said_to_lack_a_group_that_has_them_at_three_parties() -> None:
    held, keep = (
        {"p": ("north", "a"), "q": ("north", "b"), "r": ("north", "cd"), "s": ("south", "abcd")},
        '["a", "b", "c"]',
    )
    assert plan(study(held, f"keep = [{keep}]")).uncovered == ("a x b x c: counted for 36% of the people",)
    # the model may choose them too
    assert any("assumed to be like" in one for one in plan(study(held)).statement.not_protected)
    assert not any("assumed to be like" in one for one in plan(study()).statement.not_protected)


def test_the_plan_says_how_many_parties_a_table_is_of_where_there_are_more() -> None:
    words = "tables have columns of one or two parties: a relation that shows in no such table is lost"
    assert words not in plan(study()).resources.notes
    three = {"p": ("north", "ab"), "q": ("north", "c"), "r": ("north", "d")}
    assert words in plan(study(three)).resources.notes
    four = {"p": ("north", "a"), "q": ("north", "b"), "r": ("north", "c"), "s": ("north", "d")}
    assert words in plan(study(four)).resources.notes
    served = plan(study(four, 'servers = ["p", "q", "r", "s"]')).resources.notes
    assert words.replace("one or two", "one, two or three") in served


def test_people_of_a_group_are_said_to_be_protected_at_all_its_parties() -> None:
    told = plan(study()).statement
    assert "people in more than 1 of the groups" in told.not_protected
    assert not any("of the parties" in one for one in told.not_protected)


def test_where_groups_only_lack_columns_no_rows_are_said_to_be_multiplied() -> None:
    told = plan(study({"p": ("north", "ab"), "q": ("south", "abcd")})).statement
    assert "sealed" not in str(told.sees)
    assert "triples" not in told.trust + str(told.not_protected)
    assert any("assumed to be like" in one for one in told.not_protected)
    assert any("1 of the parties" in one for one in told.not_protected)


def test_people_of_a_group_are_one_each_in_a_catalogue() -> None:
    release = simulate(study(), sources(), seed=1)
    statement = msgspec.structs.replace(release.statement, protects=True)
    published = Release(study=release.study, result=release.result, statement=statement, transcript=release.transcript)
    curator = Curator(name="North", kind="Nonprofit")
    about = About(curators=(curator,), authors=("A",), description="d", region="r", published="2026-01-01")
    assert healthdcat(published, about)["healthdcatap:numberOfUniqueIndividuals"]["@value"] == "280"


@pytest.mark.parametrize("held", [HELD, {"p": ("north", "ab"), "q": ("south", "abcd")}])
def test_no_party_is_told_what_it_gains_over_columns_that_it_lacks(held: dict[str, tuple[str, str]]) -> None:
    assert isinstance(advise(study(held)), NoiseAdvice)


def test_intervals_follow_only_from_tables_of_all_people() -> None:
    held = {"p": ("north", "ab"), "q": ("south", "abc"), "r": ("south", "d")}
    release = simulate(study(held), sources(held), seed=1)
    assert {name for one in release.measured.tables for name in one.names} == {"a", "b"}
    assert release.interval("mean(a)").low is not None
    # c is known of 100 of 280 people: an interval as if of all would be too narrow
    assert release.interval("mean(c)").low is None
    assert release.interval("linear(c, a)").low is None
    with pytest.raises(InputError, match="no noisy table has both a and c"):
        release.chi_squared("a", "c")


@pytest.mark.parametrize("partners", [2, 3])
def test_a_group_can_count_three_columns_if_some_three_have_few_parties(partners: int) -> None:
    draws, countable = np.random.default_rng(1), 0
    for _ in range(500):
        parties = tuple("abcd"[: draws.integers(1, 5)])
        sizes = draws.integers(0, min(3, len(parties)) + 1, draws.integers(1, 6))
        read = {f"c{place}": tuple(sorted(draws.choice(parties, size, False))) for place, size in enumerate(sizes)}
        group = Group(name="g", parties=parties, people=9, read_from=read, partners=partners)
        expected = any(group.counted_by(names) for names in combinations(read, 3))
        assert _counts_sets(group) == expected, read
        countable += expected
    assert 50 < countable < 490
