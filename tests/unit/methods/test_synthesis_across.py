"""Synthesis of different columns of the same people: tables are exact but for noise, questions are checked."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from runtimes import session_over
from support import COLUMNS, THREE_VERTICAL, VERTICAL, Case, charges, open_nodes, rows, synthesis_across
from syndic import Release, Study, plan
from syndic.data import Table, open_source
from syndic.errors import InputError, PartyError
from syndic.kernel import Call, Reply, Session, answer, decode, encode
from syndic.methods import Synthesis
from syndic.methods.synthesis.measure import Question
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.synthesis.result import SyntheticTable
from syndic.methods.synthesis.rounds import Answer
from syndic.methods.table_noise import TableNoise
from syndic.privacy import GaussianEvent, gaussian_epsilon, mu_squared_for, shown
from syndic.runtime import Local
from syndic.study import simulate
from syndic.study.party_folder import run_digest

LOW_NOISE = "epsilon = 10\ndelta = 1e-5"
FOUR = COLUMNS + '[[schema.columns]]\nname = "flag"\nkind = "boolean"\nmissing = { value = false }\n'
TWO_AND_TWO = VERTICAL.replace('"score"', '"score", "flag"')
SPREAD = THREE_VERTICAL.replace('"score"', '"score", "flag"')


def asking(agreed: Study, session: Session[Any]) -> Callable[[Question], Answer]:
    """Agree on keys, and return what asks one round."""
    sums = agreed.plan_as(SynthesisPlan).masked_sums
    assert sums is not None
    assert isinstance(agreed.protocol, Synthesis)
    return partial(agreed.protocol._open, session, sums.start(session))


def people(count: int, seed: int = 3) -> pa.Table:
    table = rows(count, seed)
    old = np.asarray(table["age"]) > 60
    return table.append_column("flag", pa.array(old))


def held(agreed: Study, table: pa.Table) -> dict[str, pa.Table]:
    return {party.name: table.select(list(party.columns or ())) for party in agreed.parties}


def result(release: Release) -> SyntheticTable:
    assert isinstance(release.result, SyntheticTable)
    return release.result


def session_of(agreed: Study, table: pa.Table, folder: Path) -> tuple[Session[Any], dict[str, Any]]:
    nodes = open_nodes(Case("here", agreed, held(agreed, table)), folder)
    return session_over(Local(nodes), agreed), nodes


def charged(node: Any) -> list[Any]:
    return [event for entry in node.state.ledger.entries() if entry.kind == "reserve" for event in entry.events]


def grouped(agreed: Study, table: pa.Table, names: tuple[str, ...], groups: tuple[tuple[int, ...], ...]) -> Any:
    """Count rows one by one, each in its group."""
    schema = agreed.schema
    codes = {name: schema[name].encode(table[name]) for name in names}
    of = {name: groups[schema.names.index(name)] if groups else range(schema[name].size) for name in names}
    counts = np.zeros([max(of[name]) + 1 for name in names])
    for place in range(table.num_rows):
        counts[tuple(of[name][codes[name][place]] for name in names)] += 1
    return counts.ravel()


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all noise away."""
    monkeypatch.setattr(TableNoise, "apply", lambda self, values, _: values * self.scale)


# Counting.


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("parties", [TWO_AND_TWO, SPREAD])
def test_without_noise_every_table_is_exact(parties: str, tmp_path: Path) -> None:
    options = "traffic = 100000\ninteractions = false"
    agreed = synthesis_across(options, parties=parties, columns=FOUR, budget=LOW_NOISE)
    table = people(60)
    session, nodes = session_of(agreed, table, tmp_path)
    groups = ((0, 1, 2, 3), (0, 0, 1, 2, 2), (3, 2, 1, 0, 0), (0, 1))
    three = len(agreed.parties) == 3
    wide = ("flag", "colour") if three else ("flag", "age", "score", "colour")
    asked = [
        Question(number=1, tables=(("colour",), ("flag",), ("age",))),
        Question(number=2, tables=(("age", "flag"), ("score", "flag"), ("score", "colour")), groups=groups),
        Question(number=3, tables=(wide, ("score",), ("flag", "age")), groups=groups),
    ]
    opened = asking(agreed, session)
    for question in asked:
        answered = opened(question)
        wanted = [grouped(agreed, table, names, question.groups) for names in question.tables]
        assert np.array_equal(answered.values, np.concatenate(wanted))
    events = agreed.plan.events("north")
    assert all(charged(node) == list(events[:3]) for node in nodes.values())


@pytest.mark.parametrize(("parties", "times"), [(TWO_AND_TWO, 2), (SPREAD, 3 / 2)])
def test_noise_is_whole_within_a_party_and_all_parties_share_it_across(
    parties: str, times: float, tmp_path: Path
) -> None:
    agreed = synthesis_across(parties=parties, columns=FOUR, budget=LOW_NOISE)
    session, _ = session_of(agreed, people(60), tmp_path)
    opened = asking(agreed, session)
    opened(Question(number=1, tables=(("colour",),)))
    answered = opened(Question(number=2, tables=(("score", "flag"), ("age", "score"))))
    event = agreed.plan_as(SynthesisPlan).account.events[1]
    # two tables, each moved by 2 in squared l2
    assert answered.variances[0] == pytest.approx(4 / float(event.mu_squared), rel=1e-4)
    assert answered.variances[1] == pytest.approx(times * 4 / float(event.mu_squared), rel=1e-4)
    trusting = synthesis_across("colluding = 0", parties=parties, columns=FOUR, budget=LOW_NOISE)
    assert trusting.plan_as(SynthesisPlan).account.shares_to_whole == 1


# What it costs.


def test_rounds_add_up_to_the_strictest_budget_and_every_party_pays_it_whole() -> None:
    strict = VERTICAL + "budget = { epsilon = 0.5, delta = 1e-6 }\n"
    agreed = synthesis_across(parties=strict)
    agreed.check()
    north, south = (agreed.plan.events(name) for name in ("north", "south"))
    assert north == south
    spent = sum(event.mu_squared for event in north if isinstance(event, GaussianEvent))
    assert 0.9999 < spent / mu_squared_for(Fraction("0.5"), Fraction("1e-6")) <= 1


@pytest.mark.parametrize(("parties", "times"), [(VERTICAL, 2), (THREE_VERTICAL, Fraction(3, 2))])
def test_the_plan_says_what_a_party_learns(parties: str, times: Fraction) -> None:
    sound, trusting = (plan(synthesis_across(f"colluding = {number}", parties=parties)) for number in (1, 0))
    # the cost holds against the parties too
    assert sound.statement.against == {}
    # without its own share a party has as many times the mu^2 of the budget
    less = float(gaussian_epsilon(times * mu_squared_for(Fraction(1), Fraction("1e-5")), Fraction("1e-5")))
    assert "epsilon 1 against everyone but the parties, if all add their noise\n" in str(trusting)
    assert f"epsilon {shown(less)} against a party, which can subtract its own share" in str(trusting)


# What a party does not let happen.


def ask(node: Any, agreed: Study, step: str, message: Any, call: str) -> Reply:
    asked = Call(study=run_digest(agreed, 7), party=node.name, step=step, call=call * 32, body=encode(message))
    return decode(answer(node, encode(asked)), Reply)


def test_a_coordinator_that_asks_too_much_gets_nothing_and_nothing_is_spent(tmp_path: Path) -> None:
    agreed = synthesis_across(parties=THREE_VERTICAL, budget=LOW_NOISE)
    _, nodes = session_of(agreed, people(60), tmp_path)
    node = nodes["north"]
    one = ((0, 0, 0, 0), (0, 1, 2, 3, 4), (0, 1, 2, 3, 4))
    bad = {
        "three parties": Question(number=2, tables=(("colour", "age", "score"),)),
        "one value": Question(number=2, tables=(("colour", "age"),), groups=one),
        "across in the first round": Question(number=1, tables=(("colour", "age"),)),
        "unknown": Question(number=1, tables=(("secret",),)),
        "no round": Question(number=9, tables=(("age",),)),
        "later round": Question(number=2, tables=(("colour",),)),
        "groups": Question(number=1, tables=(("age",),), groups=((0,), (0,), (0,))),
    }
    for call, (name, question) in zip("abcdefg", bad.items(), strict=True):
        assert (name, ask(node, agreed, "ask_round", question, call).code) == (name, "refused")
    assert ask(node, agreed, "count", Question(number=1, tables=(("age",),)), "h").code == "refused"
    assert charged(node) == []


def test_tables_across_parties_stay_within_the_traffic(tmp_path: Path) -> None:
    little = synthesis_across("traffic = 4", parties=TWO_AND_TWO, columns=FOUR, budget=LOW_NOISE)
    session, nodes = session_of(little, people(60), tmp_path)
    asking(little, session)(Question(number=1, tables=(("age",),)))
    question = Question(number=2, tables=(("age", "score"),))
    assert ask(nodes["north"], little, "ask_round", question, "c").code == "refused"
    made = result(simulate(little, held(little, people(60)), seed=1))
    party = {"colour": 0, "age": 0, "score": 1, "flag": 1}
    assert all(len({party[name] for name in table.names}) == 1 for table in made.tables)
    assert len(made.table) == 60


def test_a_round_is_answered_once_and_in_order(tmp_path: Path) -> None:
    agreed = synthesis_across(budget=LOW_NOISE)
    session, nodes = session_of(agreed, people(60), tmp_path)
    node, first = nodes["north"], Question(number=1, tables=(("age",),))
    asking(agreed, session)(first)
    assert ask(node, agreed, "ask_round", first, "b").code == "refused"
    assert ask(node, agreed, "count", first, "c").code == "refused"
    assert ask(node, agreed, "count", Question(number=2, tables=(("age",),)), "d").code == "refused"
    assert charged(node) == list(agreed.plan.events("north")[:1])


def divide(session: Session, questions: dict[str, Question], *steps: str) -> None:
    """Let the coordinator ask each party something else."""
    original = session.ask

    def divided(step: Any, message: Any, **options: Any) -> Any:
        return original(step, questions if step.__name__ in steps else message, **options)

    session.ask = divided  # type: ignore[method-assign]


def test_partners_who_were_asked_different_things_open_nothing(tmp_path: Path) -> None:
    agreed = synthesis_across(budget=LOW_NOISE)
    session, nodes = session_of(agreed, people(60), tmp_path)
    opened = asking(agreed, session)
    opened(Question(number=1, tables=(("age",),)))
    fair, other = (Question(number=2, tables=((name, "score"),)) for name in ("age", "colour"))
    divide(session, {"north": fair, "south": other}, "ask_round")
    with pytest.raises(PartyError, match="refused"):
        opened(fair)
    assert all(len(charged(node)) == 1 for node in nodes.values())


def test_questions_whose_digests_begin_alike_are_different_products(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight bytes can be made to agree. A proof for other groups of columns would then be checked, and whether it holds
    depends on the rows: the coordinator could add to its answer what a guess of them lacks.
    """
    whole = Question.digest.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(Question, "digest", property(lambda self: bytes(8) + whole(self)[8:]))
    agreed = synthesis_across(budget=LOW_NOISE)
    session, _ = session_of(agreed, people(60), tmp_path)
    opened, tables = asking(agreed, session), (("colour", "score"), ("age", "score"))
    opened(Question(number=1, tables=(("age",),)))
    fair, other = (Question(number=2, tables=each) for each in (tables, tables[::-1]))
    divide(session, {"north": fair, "south": other}, "ask_round")
    with pytest.raises(PartyError, match="does not open"):
        opened(fair)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("forked", [True, False])
def test_parties_who_were_asked_for_different_tables_of_their_own_open_nothing(forked: bool, tmp_path: Path) -> None:
    # each with the noise of the round's only table: of one person the round would show as much as two rounds may
    agreed, table = synthesis_across(budget=LOW_NOISE), people(60)
    session, _ = session_of(agreed, table, tmp_path)
    opened = asking(agreed, session)
    age, score = (Question(number=1, tables=((name,),)) for name in ("age", "score"))
    if forked:
        divide(session, {"north": age, "south": score}, "ask_round", "count")
    found = opened(age).values
    counts = [grouped(agreed, table, (name,), ()) for name in ("age", "score")]
    assert (np.array_equal(found, counts[0]) or np.array_equal(found, counts[0] + counts[1])) is not forked
    if forked:
        assert (found % 1 != 0).mean() > 0.5, "masks that do not cancel"


# What comes out.


@pytest.mark.parametrize("parties", [VERTICAL, THREE_VERTICAL])
def test_the_table_and_the_model_come_back_from_disk(parties: str, tmp_path: Path) -> None:
    agreed = synthesis_across(parties=parties, budget=LOW_NOISE)
    release = simulate(agreed, held(agreed, rows(60, 3)), seed=3, folder=tmp_path / "run")
    for party in agreed.parties:
        found = [event for entry in charges(tmp_path / "run", party.name) for event in entry.events]
        assert found == list(agreed.plan.events(party.name))
    made = result(release)
    assert made.table.names == agreed.schema.names
    assert len(made.table) == 60
    release.write(tmp_path / "out")
    back = result(Release.load(tmp_path / "out"))
    assert back.note == made.note
    assert back.table.to_arrow().equals(made.table.to_arrow())
    for one, other in zip(back.tables, made.tables, strict=True):
        assert one.names == other.names
        assert one.variance == pytest.approx(other.variance)
        assert np.array_equal(one.values, other.values)


def test_a_dependence_across_parties_is_in_the_table() -> None:
    parties = TWO_AND_TWO.replace("60", "3000")
    agreed = synthesis_across(parties=parties, columns=FOUR, budget="epsilon = 2\ndelta = 1e-6")
    made = result(simulate(agreed, held(agreed, people(3000)), seed=1)).table.to_arrow()
    # the flag says whether the age is above 60, which is where bins end but for one year
    old, flag = np.asarray(made["age"]) > 60, np.asarray(made["flag"])
    assert np.mean(old == flag) > 0.95
    assert 0.3 < flag.mean() < 0.5


WIDE = (
    '[[schema.columns]]\nname = "code"\nkind = "integer"\nlower = 0\nupper = 999\nmissing = { value = 0 }\n'
    '[[schema.columns]]\nname = "same"\nkind = "integer"\nlower = 0\nupper = 4\nmissing = { value = 0 }\n'
    '[[schema.columns]]\nname = "single"\nkind = "integer"\nlower = 7\nupper = 7\nmissing = { value = 7 }\n'
)


@pytest.mark.parametrize("count", [3, 400])
def test_awkward_columns_and_few_people_give_a_valid_table(count: int) -> None:
    """A thousand values, a constant column, a column of one value, one column at each party, few people."""
    parties = "".join(
        f'[[parties]]\nname = "p{place}"\npeople = {count}\ncolumns = ["{name}"]\n'
        for place, name in enumerate(["code", "same", "single"])
    )
    agreed = synthesis_across(parties=parties, columns=WIDE)
    draws = np.random.default_rng(1)
    table = pa.table({"code": draws.integers(0, 1000, count), "same": np.full(count, 2), "single": np.full(count, 7)})
    made = result(simulate(agreed, held(agreed, table), seed=1)).table.to_arrow()
    assert made.num_rows == count
    assert set(np.asarray(made["single"])) == {7}
    exact = Table(agreed.schema, open_source(made)).count(("code",)).values
    assert exact.sum() == count


def test_where_no_pair_can_be_counted_the_second_round_has_room_for_the_columns() -> None:
    """A column of one value has no table across parties, and the pair has fewer cells than both columns."""
    columns = "".join(
        f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 7\nupper = {most}\nmissing = {{ value = 7 }}\n'
        for name, most in (("two", 8), ("single", 7))
    )
    parties = VERTICAL.replace('"colour", "age"', '"two"').replace('"score"', '"single"')
    agreed = synthesis_across(parties=parties, columns=columns, budget=LOW_NOISE)
    table = pa.table({"two": np.arange(60) % 2 + 7, "single": np.full(60, 7)})
    made = result(simulate(agreed, held(agreed, table), seed=1))
    assert made.note.rounds[1].tables == (("two",), ("single",))


# What is refused.


@pytest.mark.parametrize(
    ("parties", "columns", "match"),
    [
        (VERTICAL.replace("60", "50", 1), COLUMNS, "the same number `people`"),
        (VERTICAL, FOUR, "'flag' is held by no party"),
    ],
)
def test_a_study_that_cannot_work_is_refused(parties: str, columns: str, match: str) -> None:
    with pytest.raises(InputError, match=match):
        synthesis_across(parties=parties, columns=columns).check()


def test_a_person_is_in_one_group_however_many_parties_it_has() -> None:
    # four times the variance for nothing
    with pytest.raises(InputError, match="set parties = 1"):
        synthesis_across(unit='neighbours = "replace"\nparties = 2').check()


def test_a_round_of_own_tables_may_have_more_noise_than_a_field_has_room_for() -> None:
    agreed = synthesis_across(budget="epsilon = 1e-5\ndelta = 1e-5")
    made = agreed.plan_as(SynthesisPlan)
    question = Question(number=1, tables=(("colour",), ("age",), ("score",)))
    made.check_question(question)
    assert made.reach is not None
    assert made.reach.round_of(question).product is None


@pytest.mark.parametrize(
    ("options", "proven"), [("", True), ('adversary = "passive"', False), ("colluding = 0", False)]
)
def test_a_statement_says_which_adversary_it_holds_against(options: str, proven: bool) -> None:
    agreed = synthesis_across(options)
    assert ("either may deviate" if proven else "every role follows the protocol") in plan(agreed).statement.trust
    assert ("product_proved" in agreed.plan.rounds) == proven


@pytest.mark.parametrize(
    "options",
    [
        "colluding = 2",
        'colluding = 0\nadversary = "active"',
        "traffic = 0",
        "rows = -1",
        "rounds = 1",
        'selector = "adaptive"\nrounds = 0',
    ],
)
def test_parameters_out_of_range_are_refused(options: str) -> None:
    with pytest.raises(InputError):
        synthesis_across(options).check()
