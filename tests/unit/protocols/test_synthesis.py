"""Synthesis: rounds that cost what the study says, questions that parties refuse, tables and models that are valid."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import Case, charges, open_nodes, rows, study_text, two_parties
from syndic import Release, Study, evaluate, plan
from syndic.data import Table, open_source
from syndic.errors import InputError, PartyError, RefusedError
from syndic.kernel import Call, Reply, Session, answer, decode, encode, run, steps_of
from syndic.model.markov import Measurement
from syndic.parts.rounds import RoundsDirectory, RoundsKey, RoundsStart
from syndic.privacy import ApproximateEvent, GaussianEvent, mu_squared_for
from syndic.protocols import Synthesis
from syndic.protocols.synthesis_ask import Question, Room, answer_of, check_question
from syndic.protocols.synthesis_result import SyntheticTable
from syndic.protocols.synthesis_run import fitting
from syndic.random import SimulationRandomness
from syndic.study import simulate
from syndic.study.home import run_digest

DELTA = "epsilon = 1.0\ndelta = 1e-5"
NAMES = ("north", "south", "east", "west", "centre")
FLAGS = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "categorical"\nvalues = ["no", "yes"]\n'
    'outside = { value = "no" }\nmissing = { value = "no" }\n'
    for name in ("flag", "mark")
)


def study(protocol: str = "", *, budget: str = DELTA, parties: int = 2, people: int = 60, **parts: str) -> Study:
    members = "".join(f'[[parties]]\nname = "{name}"\npeople = {people}\n' for name in NAMES[:parties])
    text = study_text(protocol=f'method = "synthesis"\n{protocol}', budget=budget, parties=members, **parts)
    return Study.loads(text)


def sources(parties: int = 2, count: int = 60) -> dict[str, pa.Table]:
    return {name: rows(count, seed) for seed, name in enumerate(NAMES[:parties])}


def protocol(agreed: Study) -> Synthesis:
    assert isinstance(agreed.protocol, Synthesis)
    return agreed.protocol


def result(release: Release) -> SyntheticTable:
    assert isinstance(release.result, SyntheticTable)
    return release.result


def exact(agreed: Study, tables: dict[str, pa.Table], names: tuple[str, ...]) -> np.ndarray[Any, Any]:
    return Table(agreed.schema, open_source(pa.concat_tables(tables.values()))).count(names).values


# What it costs.


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("overlap", [1, 2])
@pytest.mark.parametrize("parties", [1, 3])
def test_rounds_add_up_to_the_budget_and_no_more(parties: int, overlap: int, neighbours: str) -> None:
    if overlap > parties:
        return
    agreed = study(parties=parties, unit=f'neighbours = "{neighbours}"\nrows = 2\nparties = {overlap}')
    agreed.check()
    whole = mu_squared_for(Fraction(1), Fraction("1e-5"))
    events = agreed.protocol.spends(agreed, "north")
    assert all(isinstance(event, GaussianEvent) for event in events)
    spent = overlap * sum(event.mu_squared for event in events if isinstance(event, GaussianEvent))
    assert 0.9999 * whole < spent <= whole
    assert 0.9999 < agreed.joint.epsilon(agreed.delta) <= 1


@pytest.mark.parametrize("asked", [1, 3])
@pytest.mark.parametrize(("parties", "missing"), [(1, 0), (3, 0), (5, 1)])
def test_the_noise_of_a_round_is_that_of_its_part_of_the_budget(parties: int, missing: int, asked: int) -> None:
    """Two rows of a person at two parties: each table moves by 2 x 2 rows at each of them, by 4 in all."""
    unit = 'neighbours = "add_remove"\nrows = 2\nparties = 2' if parties > 1 else 'neighbours = "add_remove"\nrows = 4'
    agreed = study(f"missing = {missing}", parties=parties, unit=unit)
    made = protocol(agreed)
    tables = (("colour",), ("age",), ("score", "age"))[:asked]
    noise = made.account_of(agreed).noise(Question(number=1, tables=tables))
    account = made.account_of(agreed)
    part = float(made.selector_of(agreed).budgets(account.whole)[0])
    assert account.variance(Fraction(1, 10)) == pytest.approx(160 * parties / max(1, parties - 1 - missing), rel=1e-4)
    curator = asked * 4**2 / part
    honest = parties - 1 - missing if parties > 1 else 1
    assert noise.variance(parties) == pytest.approx(curator * parties / honest, rel=1e-4)
    assert noise.event == made.account_of(agreed).events[0]


def test_with_nobody_colluding_the_noise_is_a_curators_and_the_parties_are_told() -> None:
    made, alone = study("colluding = 0", parties=5), study(parties=1, people=300)
    question = Question(number=1, tables=(("age",),))
    together = protocol(made).account_of(made).noise(question).variance(5)
    assert together == pytest.approx(protocol(alone).account_of(alone).noise(question).variance(1), rel=1e-3)
    assert any("mu^2 is then 5/4" in line for line in protocol(made).disclosure(made).not_protected)


def test_the_budget_of_the_strictest_party_holds() -> None:
    text = study_text(
        protocol='method = "synthesis"',
        budget=DELTA,
        parties='[[parties]]\nname = "north"\npeople = 60\n[[parties]]\nname = "south"\npeople = 60\n'
        "budget = { epsilon = 0.5, delta = 1e-6 }\n",
    )
    agreed = Study.loads(text)
    spent = sum(event.mu_squared for event in protocol(agreed).account_of(agreed).events)
    assert 0.9999 < spent / mu_squared_for(Fraction("0.5"), Fraction("1e-6")) <= 1


def test_many_parties_pay_for_the_chance_that_their_sparse_graph_fails_once() -> None:
    members = "".join(f'[[parties]]\nname = "p{place}"\npeople = 5\n' for place in range(100))
    agreed = Study.loads(study_text(protocol='method = "synthesis"\ncolluding = 20', budget=DELTA, parties=members))
    agreed.check()
    *rounds, graph = agreed.protocol.spends(agreed, "p0")
    assert isinstance(graph, ApproximateEvent)
    assert len(rounds) == len(protocol(agreed).rooms_of(agreed))
    assert 0.999 < agreed.joint.epsilon(agreed.delta) <= 1
    assert protocol(agreed).account_of(agreed).variance(Fraction(1)) == pytest.approx(100 / 80, rel=1e-4)


def test_no_list_of_missing_parties_cuts_one_off() -> None:
    members = "".join(f'[[parties]]\nname = "p{place}"\npeople = 5\n' for place in range(1000))
    agreed = Study.loads(study_text(protocol='method = "synthesis"\nmissing = 100', budget=DELTA, parties=members))
    graph = protocol(agreed).rounds_plan(agreed)
    # all neighbours of a party would have to be said to be missing, or collude
    assert graph.neighbours > 101
    assert graph.events == ()


def test_a_large_epsilon_is_possible() -> None:
    agreed = study(budget="epsilon = 12\ndelta = 1e-5")
    agreed.check()
    assert 11.99 < agreed.joint.epsilon(agreed.delta) <= 12


# What a party accepts.

ROOM = Room(tables=2, cells=30)
PLAIN = tuple(tuple(range(size)) for size in (4, 5, 5))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (Question(number=1, tables=()), "room for 1 to 2"),
        (Question(number=1, tables=(("age",), ("score",), ("colour",))), "room for 1 to 2"),
        (Question(number=1, tables=((),)), "different columns"),
        (Question(number=1, tables=(("age", "age"),)), "different columns"),
        (Question(number=1, tables=(("secret",),)), "different columns"),
        (Question(number=1, tables=(("colour", "age"), ("colour", "score"))), "40 cells together"),
        (Question(number=1, tables=(("age",), ("age",))), "twice"),
        (Question(number=1, tables=(("age", "score"), ("score", "age"))), "twice"),
        (Question(number=1, tables=(("age",),), groups=PLAIN[:2]), "all 3 columns"),
        (Question(number=1, tables=(("age",),), groups=(PLAIN[0], PLAIN[0], PLAIN[2])), "its 5 levels"),
        (Question(number=1, tables=(("age",),), groups=(PLAIN[0], (0, 0, 2, 2, 2), PLAIN[2])), "without gaps"),
        (Question(number=1, tables=(("age",),), groups=(PLAIN[0], (-1, 0, 1, 2, 3), PLAIN[2])), "without gaps"),
        (Question(number=1, tables=(("age",),), groups=((), PLAIN[1], PLAIN[2])), "its 4 levels"),
        (Question(number=1, tables=(("age",),), groups=((0, 1, 2, 2**62), PLAIN[1], PLAIN[2])), "its 4 levels"),
    ],
)
def test_what_may_not_be_asked(question: Question, text: str) -> None:
    with pytest.raises(RefusedError, match=text):
        check_question(question, study().schema.domain, ROOM)


def test_what_may_be_asked() -> None:
    check_question(Question(number=1, tables=(("age", "colour"), ("score",))), study().schema.domain, ROOM)
    groups = ((0, 0, 1, 1), (0, 1, 0, 1, 0), PLAIN[2])
    check_question(Question(number=1, tables=(("age", "colour", "score"),), groups=groups), study().schema.domain, ROOM)


def test_a_round_leaves_out_what_it_has_no_room_for() -> None:
    domain = study().schema.domain
    wanted = [("age", "score"), ("colour", "age"), ("colour",), ("score",)]  # 25, 20, 4 and 5 cells
    assert fitting(wanted, domain, Room(tables=9, cells=99)) == tuple(wanted)
    assert fitting(wanted, domain, Room(tables=9, cells=30)) == (("age", "score"), ("colour",))
    assert fitting(wanted, domain, Room(tables=1, cells=99)) == (("age", "score"),)
    assert fitting(wanted[:1], domain, Room(tables=9, cells=14)) == (("colour",), ("age",), ("score",))


def test_answers_are_exact_counts_of_groups_cut_to_the_public_bound() -> None:
    agreed, held = study(), rows(60, 1)
    table = Table(agreed.schema, open_source(held))
    question = Question(number=1, tables=(("colour", "age"), ("score",)))
    counts = [table.count(names).values for names in question.tables]
    assert np.array_equal(answer_of(question, table, 60), np.concatenate([one.ravel() for one in counts]))
    assert answer_of(question, table, 3).max() == 3
    groups = ((0, 0, 1, 1), (0, 1, 0, 1, 0), PLAIN[2])
    grouped = answer_of(Question(number=1, tables=(("colour", "age"),), groups=groups), table, 60).reshape(2, 2)
    wanted = counts[0].reshape(2, 2, 5).sum(axis=1)
    assert np.array_equal(grouped, np.stack([wanted[:, ::2].sum(axis=1), wanted[:, 1::2].sum(axis=1)], axis=1))


def opened_nodes(agreed: Study, held: dict[str, pa.Table], folder: Path) -> dict[str, Any]:
    return open_nodes(Case("here", agreed, held), folder)


def ask(node: Any, agreed: Study, step: str, message: Any, call: str) -> Reply:
    asked = Call(study=run_digest(agreed, 7), party=node.name, step=step, call=call * 32, body=encode(message))
    return decode(answer(node, encode(asked)), Reply)


def meet(nodes: dict[str, Any], agreed: Study) -> None:
    """Let two parties agree on their keys."""
    keys = {
        name: decode(ask(node, agreed, "rounds_keys", RoundsStart(label="synthesis"), "1").body, RoundsKey).public
        for name, node in nodes.items()
    }
    for name, node in nodes.items():
        other = next(key for each, key in keys.items() if each != name)
        directory = RoundsDirectory(label="synthesis", present=b"\x80", keys=other)
        assert ask(node, agreed, "rounds_meet", directory, "2").code == "ok"


def test_a_coordinator_that_asks_too_much_gets_nothing_and_nothing_is_spent(tmp_path: Path) -> None:
    agreed = study()
    nodes = opened_nodes(agreed, sources(), tmp_path)
    meet(nodes, agreed)
    node = nodes["north"]
    last = len(protocol(agreed).rooms_of(agreed))
    bad = {
        "large": Question(number=1, tables=(("age", "score"),)),  # the first round is of single columns
        "unknown": Question(number=1, tables=(("secret",),)),
        "no round": Question(number=last + 1, tables=(("age",),)),
        "round 0": Question(number=0, tables=(("age",),)),
        "groups": Question(number=1, tables=(("age",),), groups=((0,), (0,), (0,))),
        "many": Question(number=1, tables=(("age",), ("colour",), ("score",), ("age", "colour"), ("age", "age"))),
    }
    for call, (name, question) in zip("abcdef", bad.items(), strict=True):
        assert (name, ask(node, agreed, "count", question, call).code) == (name, "refused")
    assert ask(node, agreed, "measure", Question(number=1, tables=(("age",),)), "g").code == "refused"
    assert [entry.kind for entry in node.desk.ledger.entries()] == ["declare"]


def test_every_round_is_answered_once_and_costs_its_part_whatever_is_asked(tmp_path: Path) -> None:
    agreed = study()
    nodes = opened_nodes(agreed, sources(), tmp_path)
    meet(nodes, agreed)
    node = nodes["north"]
    for number in range(1, len(protocol(agreed).rooms_of(agreed)) + 1):
        assert ask(node, agreed, "count", Question(number=number, tables=(("age",),)), chr(96 + number)).code == "ok"
        again = ask(node, agreed, "count", Question(number=number, tables=(("colour",),)), "z")
        assert again.code == "refused"
    charged = [e for entry in node.desk.ledger.entries() if entry.kind == "reserve" for e in entry.events]
    assert charged == list(protocol(agreed).spends(agreed, "north"))


def test_different_questions_in_one_round_open_nothing(tmp_path: Path) -> None:
    agreed = study(budget="epsilon = 12\ndelta = 1e-5")
    asked = {"north": ("age",), "south": ("score",)}  # of five values each
    for different in (False, True):
        nodes = opened_nodes(agreed, sources(), tmp_path / str(different))
        meet(nodes, agreed)
        total: Any = 0
        for name, node in nodes.items():
            question = Question(number=1, tables=(asked[name] if different else ("age",),))
            noise = protocol(agreed).account_of(agreed).noise(question)
            ring = noise.ring(120, 5)
            masked = decode(ask(node, agreed, "count", question, "c").body, steps_of(Synthesis)["count"].returns)
            values = ring.unpack(masked.values, 5)  # type: ignore[attr-defined]
            total = ring.add(total, values) if isinstance(total, np.ndarray) else values
        opened = ring.lift(total) / noise.scale
        near = np.abs(opened - 24) < 100
        assert near.all() == (not different)


# What comes out.


@pytest.mark.parametrize("parties", [1, 2, 5])
@pytest.mark.parametrize("selector", ["adaptive", "one_shot"])
def test_the_table_and_the_model_are_valid_and_come_back_from_disk(parties: int, selector: str, tmp_path: Path) -> None:
    agreed = study(f'selector = "{selector}"', parties=parties)
    release = simulate(agreed, sources(parties), seed=3)
    made, schema = result(release), agreed.schema
    assert made.table.names == schema.names
    for column in schema.columns:
        values = made.table.to_arrow()[column.name]
        assert (column.encode(values) < column.size).all()
    ages = made.table.to_arrow()["age"].to_pylist()
    assert all(isinstance(age, int) and 0 <= age <= 99 for age in ages)
    release.write(tmp_path)
    back = result(Release.load(tmp_path))
    assert back.table.to_arrow().equals(made.table.to_arrow())
    assert back.note == made.note
    assert back.model.total == made.model.total
    for one, other in zip(back.tables, made.tables, strict=True):
        assert isinstance(one, Measurement)
        assert one.names == other.names
        assert one.variance == pytest.approx(other.variance)
        assert np.array_equal(one.values, other.values)
    assert np.allclose(back.model.marginal(("age", "colour")).values, made.model.marginal(("age", "colour")).values)
    assert release.model is made.model


def test_with_little_noise_the_model_is_the_data() -> None:
    agreed, held = study(budget="epsilon = 12\ndelta = 1e-6", parties=3, people=500), sources(3, 500)
    made = result(simulate(agreed, held, seed=3))
    for table in made.tables:
        off = np.abs(table.values - exact(agreed, held, table.names)).max()
        assert off < 6 * table.variance**0.5
    for name in agreed.schema.names:
        off = np.abs(made.model.marginal((name,)).values - exact(agreed, held, (name,))).max()
        assert off < 0.03 * 1500
    assert abs(len(made.table) - 1500) < 50


def test_a_model_answers_and_draws_with_values_given() -> None:
    agreed = study(parties=1)
    model = simulate(agreed, sources(1), seed=3).model
    counts = model.table(("colour", "age"))
    assert counts.column_names == ["colour", "age", "count"]
    assert sum(counts["count"].to_pylist()) == pytest.approx(model.total)
    assert set(counts["colour"].to_pylist()) == {"red", "green", "blue", "other"}
    drawn = model.sample(200, given={"colour": "green", "age": 47}).to_arrow()
    assert set(drawn["colour"].to_pylist()) == {"green"}
    assert {age // 20 for age in drawn["age"].to_pylist()} == {2}
    nothing = model.sample(50, given={"score": None}).to_arrow()
    assert nothing["score"].null_count == 50
    one, other = (model.sample(50, generator=np.random.default_rng(1)).to_arrow() for _ in range(2))
    assert one.equals(other)
    assert not one.equals(model.sample(50).to_arrow())
    with pytest.raises(InputError, match="unknown columns"):
        model.marginal(("secret",))
    with pytest.raises(InputError, match=r"rows \(-1\)"):
        model.sample(-1)
    with pytest.raises(InputError, match="given"):
        model.sample(1, given={"age": object()})
    with pytest.raises(InputError, match="given"):
        model.sample(1, given={"colour": ["red"]})
    with pytest.raises(InputError, match="at least one column"):
        model.table(())


def test_a_column_that_is_called_count_is_not_lost() -> None:
    agreed = study(parties=1, columns=FLAGS.replace('"flag"', '"count"'))
    made = result(simulate(agreed, {"north": pa.table({"count": ["no"] * 60, "mark": ["yes"] * 60})}, seed=1))
    assert made.model.table(("count",)).column_names == ["count", "(count)"]
    assert made.model.table(("mark",)).column_names == ["mark", "count"]


def test_what_is_declared_impossible_does_not_occur() -> None:
    cells = '[["red", "0-19"], ["green", "0-19"]]'
    agreed = study(f'zeros = [{{ columns = ["colour", "age"], cells = {cells} }}]', parties=1)
    made = result(simulate(agreed, sources(1), seed=3))
    counts = made.model.marginal(("colour", "age")).values
    assert (counts[:2, 0] == 0).all()
    assert (counts[2:, 0] > 0).any()
    table = made.table.to_arrow()
    pairs = zip(table["colour"].to_pylist(), table["age"].to_pylist(), strict=True)
    assert not [1 for colour, age in pairs if colour in {"red", "green"} and age < 20]


def test_rows_are_as_many_as_asked_or_as_the_counts_say() -> None:
    assert len(simulate(study("rows = 7"), sources(), seed=1).table) == 7
    assert len(simulate(study("rows = 0"), sources(), seed=1).table) == 0
    agreed = study(unit='neighbours = "replace"')
    assert len(simulate(agreed, sources(), seed=1).table) == 120
    with pytest.raises(PartyError, match="60 people"):
        simulate(agreed, sources(count=59), seed=1)


class Faulty:
    """A local runtime in which one party does not answer some steps."""

    def __init__(self, nodes: dict[str, Any], silent: dict[str, tuple[int, ...]]) -> None:
        self.nodes, self.silent, self.asked = nodes, silent, 0

    def send(self, calls: Any, *, seconds: float, arrived: Any) -> Any:
        from syndic.kernel import Delivery  # noqa: PLC0415

        step = decode(next(iter(calls.values())), Call).step
        self.asked += step == "count"
        silent = ["south"] if self.asked in self.silent.get(step, ()) else []
        replies = {name: answer(self.nodes[name], data) for name, data in calls.items() if name not in silent}
        return Delivery(replies=replies, silent={name: "gone" for name in silent if name in calls})

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()


def run_with(silent: dict[str, tuple[int, ...]], folder: Path, missing: int = 1) -> SyntheticTable:
    agreed = study(f"missing = {missing}", parties=5)
    runtime = Faulty(opened_nodes(agreed, sources(5), folder), silent)
    session = Session(
        runtime=runtime,
        study=run_digest(agreed, 7),
        terms=agreed,
        steps=steps_of(Synthesis),
        randomness=SimulationRandomness(1),
    )
    try:
        made = run(agreed.protocol, session)
    finally:
        runtime.close()
    assert isinstance(made, SyntheticTable)
    return made


def test_a_party_may_be_silent_in_one_round_and_be_back_in_the_next(tmp_path: Path) -> None:
    rounds = run_with({"count": (2,)}, tmp_path).note.rounds
    assert [len(one.present) for one in rounds] == [5, 4, *[5] * (len(rounds) - 2)]
    with pytest.raises(PartyError, match="south: gone"):
        run_with({"count": (2,)}, tmp_path / "none", missing=0)


def test_a_round_that_was_lost_says_nothing(tmp_path: Path) -> None:
    made = run_with({"round_open": (2,)}, tmp_path)
    assert made.note.rounds[1].present == ()
    assert made.note.rounds[1].standard_deviation > 1e6
    assert abs(made.note.total - 300) < 100


def test_without_the_first_round_no_value_is_taken_to_be_rare(tmp_path: Path) -> None:
    made = run_with({"round_open": (1,)}, tmp_path)
    assert made.note.rounds[0].present == ()
    assert [len(set(groups)) for groups in made.note.groups] == [4, 5, 5]
    assert abs(made.note.total - 300) < 100


# What is refused before any row is read.

WIDE_NAMES = '["w0", "w1", "w2", "w3", "w4"]'
WIDE = "".join(
    f'[[schema.columns]]\nname = "w{place}"\nkind = "integer"\nlower = 0\nupper = 99\nmissing = {{ value = 0 }}\n'
    for place in range(5)
)


@pytest.mark.parametrize(
    ("options", "parts", "text"),
    [
        ("", {"budget": "epsilon = 1.0"}, "delta above 0"),
        ("model_cells = 5", {}, "the fewest being 14"),
        ("model_cells = 500000000", {}, r"48,\d\d\d MB of memory \(limit 2000\)"),
        ("missing = 1", {"parties": 3}, "missing"),
        ('zeros = [{ columns = ["age"], cells = [["17"]] }]', {}, "'age' has no value '17'; its labels are 0-19"),
        ('zeros = [{ columns = ["age"], cells = [["0-19", "red"]] }]', {}, "a value for each column"),
        ("colluding = -1", {}, "colluding"),
        ("rounds = 0", {}, "rounds"),
        ('selector = "adaptive"\nrounds = 1000000000000', {}, "rounds .* at most 100"),
        ('zeros = [{ columns = ["flag"], cells = [["no"], ["yes"]] }]', {"columns": FLAGS}, "no combination"),
        (
            'zeros = [{ columns = ["flag"], cells = [["no"]] }, '
            '{ columns = ["mark", "flag"], cells = [["no", "yes"], ["yes", "yes"]] }]',
            {"columns": FLAGS},
            "no combination",
        ),
        (
            f'zeros = [{{ columns = {WIDE_NAMES}, cells = [["0", "0", "0", "0", "0"]] }}]',
            {"columns": WIDE},
            "10,000,000,000 combinations",
        ),
        ('selector = "one_shot"\nrounds = 3', {}, "rounds is for"),
        ("rows = -1", {}, "rows"),
    ],
)
def test_what_cannot_work_is_refused_with_a_way_out(options: str, parts: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        study(options, **parts).check()


def test_a_column_that_does_not_fit_is_refused_with_the_number_it_would_need() -> None:
    wide = '[[schema.columns]]\nname = "wide"\nkind = "integer"\nlower = 1\nupper = 100000000\n'
    with pytest.raises(
        InputError, match=r"'wide' with 100,000,001\), needs about \d+,\d\d\d MB of memory \(limit 2000\)"
    ):
        plan(study(columns=wide))


def test_people_are_needed_and_columns_must_not_be_split() -> None:
    without = study_text(protocol='method = "synthesis"', budget=DELTA, parties='[[parties]]\nname = "a"\n')
    with pytest.raises(InputError, match="people"):
        Study.loads(without).check()
    split = study_text(
        protocol='method = "synthesis"',
        budget=DELTA,
        parties='[[parties]]\nname = "a"\npeople = 9\ncolumns = ["age"]\n[[parties]]\nname = "b"\npeople = 9\n',
    )
    with pytest.raises(InputError, match="leave columns out"):
        Study.loads(split).check()


def test_the_plan_says_what_is_asked_and_needed() -> None:
    shown = str(plan(study(parties=3)))
    assert "count: masked" in shown
    assert "measure" not in shown
    assert "round_open" not in shown
    assert "round_open" in str(plan(study("missing = 1", parties=5)))
    alone = str(plan(study(parties=1)))
    assert "measure: noisy" in alone
    assert "masks" not in alone.partition("trust")[0]
    small = plan(study("model_cells = 1000")).estimate.memory_bytes
    assert plan(study("model_cells = 1001000")).estimate.memory_bytes - small >= 96 * 1_000_000
    # by default no more than a model of all combinations, of which there are 100
    assert protocol(study()).size_of(study()).model_cells == 100


def test_charges_in_the_ledger_are_those_of_the_statement(tmp_path: Path) -> None:
    release = simulate(study(parties=3), sources(3), seed=1, folder=tmp_path)
    for party in release.statement.parties:
        charged = [event for entry in charges(tmp_path, party.party) for event in entry.events]
        assert tuple(charged) == party.events


def test_a_release_is_evaluated_beside_each_party_alone_and_a_curator() -> None:
    agreed, held = study(parties=3), sources(3)
    found = evaluate(simulate(agreed, held, seed=1), held, seed=1)
    names = [one.name for one in found.scores]
    assert {"release", "north alone", "south alone", "east alone", "pooled DP"} <= set(names)
    assert all(0 < one.tvd[0].mean < 1 for one in found.scores)


@pytest.mark.parametrize("parties", [1, 3])
def test_a_run_that_is_begun_again_gets_the_stored_answers_and_pays_nothing(parties: int, tmp_path: Path) -> None:
    """The coordinator chooses the same tables from the same answers, so every call has the id and body it had."""
    agreed = study(parties=parties)
    first, again = (result(simulate(agreed, sources(parties), folder=tmp_path)) for _ in range(2))
    assert again.note == first.note
    for one, other in zip(first.tables, again.tables, strict=True):
        assert np.array_equal(one.values, other.values)
    assert len(charges(tmp_path, "north")) == len(first.note.rounds)


def test_the_statement_of_a_large_epsilon_can_be_read_back(tmp_path: Path) -> None:
    """Slack takes more than a small delta at a large epsilon; there is no such point on the curve."""
    release = simulate(study(budget="epsilon = 12\ndelta = 1e-5"), sources(), seed=1)
    release.write(tmp_path)
    statement = Release.load(tmp_path).statement
    assert statement == release.statement
    assert all(np.isfinite(epsilon) for epsilon, _ in statement.curve)


def test_two_parties_of_support_fit_too() -> None:
    assert len(simulate(Study.loads(study_text(protocol='method = "synthesis"', budget=DELTA)), two_parties()).table)
