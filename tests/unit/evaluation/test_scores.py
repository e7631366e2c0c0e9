"""Scores that are paid for: sensitivity by brute force, charges, retries, and what may be bundled."""

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import support
from syndic import Budget, Study, Unit
from syndic.data import ReleasedTable, Schema, Table, open_source
from syndic.document import to_json
from syndic.errors import BudgetError, InputError, RefusedError
from syndic.evaluation import PrivateScores, private_scores
from syndic.evaluation import scores as paid
from syndic.evaluation.distance import tvd
from syndic.evaluation.scores import integer_target
from syndic.kernel import PartyState, in_memory_node
from syndic.privacy import Cost, Ledger
from syndic.random import Randomness, SimulationRandomness, SystemRandomness
from syndic.study import PartyFolder, simulate

ADD_REMOVE = 'neighbours = "add_remove"'


class Room:
    """A party's state that can be left and come back to."""

    def __init__(self, folder: Path, *, unit: str = ADD_REMOVE, cap: float = 10.0, rows: int = 300) -> None:
        self.folder = folder
        self.study = Study.loads(support.study_text(unit=unit))
        self.cap = cap
        self.rows = support.rows(rows, 1)
        self.randomness: Callable[[str], Randomness] = lambda label: SimulationRandomness(1, label)
        self.opened: list[PartyState] = []

    def state(self) -> PartyState:
        ledger = Ledger.open(self.folder / "ledger.sqlite")
        ledger.declare("people", Budget.of(self.cap))
        state = in_memory_node(
            self.study.protocol,
            self.study.plan,
            "north",
            self.rows,
            self.stream,
            study=self.study.digest,
            dataset="people",
            ledger=ledger,
        ).state
        self.opened.append(state)
        return state

    def stream(self, label: str) -> Randomness:
        return self.randomness(label)

    def spent(self) -> Fraction | None:
        with Ledger.open(self.folder / "ledger.sqlite") as ledger:
            ledger.verify()
            return ledger.spent("people").epsilon


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    made = Room(tmp_path)
    yield made
    for state in made.opened:
        state.ledger.close()


def release() -> ReleasedTable:
    return ReleasedTable(support.rows(500, 9))


def asked(state: PartyState, **changes: Any) -> PrivateScores:
    return private_scores(
        state, release(), **{"epsilon": Fraction(1), "call": "c1", "pairs": [("colour", "age")], **changes}
    )


class Untouched:
    """Noise that adds nothing."""

    def apply(self, values: Any, randomness: Any) -> Any:
        return values


class Fixed:
    """A noisy size that came out as this number."""

    def __init__(self, size: int) -> None:
        self.size = size

    def apply(self, values: Any, randomness: Any) -> Any:
        return np.array([self.size])


CELLS = list(product(range(2), range(2)))
CLIQUES = [("a",), ("b",), ("a", "b")]
SMALL = Schema.from_domain({"a": 2, "b": 2})


def as_table(people: tuple[tuple[int, int], ...]) -> pa.Table:
    return pa.table({name: pa.array([row[axis] for row in people], pa.int64()) for axis, name in enumerate("ab")})


def exact_scores(people: tuple[tuple[int, int], ...], released: ReleasedTable, size: int | None) -> Any:
    """Return what noise is added to, with the size public or a fixed outcome of its noise."""
    noises: Any = {"scores": Untouched()} | ({} if size is None else {"size": Fixed(size)})
    table = Table(SMALL, open_source(as_table(people)))
    public = Table(SMALL, open_source(released.table)).marginals(CLIQUES)
    return paid._drawn(table, public, noises, SystemRandomness())[1]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2])
def test_sensitivity_by_brute_force(neighbours: Any, rows: int) -> None:
    unit = Unit(neighbours=neighbours, rows=rows)
    claimed = len(CLIQUES) * unit.l1_of_counts()
    assert paid._noises(unit, Fraction(1), len(CLIQUES))["scores"].sensitivity == claimed
    largest = 0
    others = [people for most in (1, 2) for people in combinations_with_replacement(CELLS, most)]
    mine = list(combinations_with_replacement(CELLS, rows))
    for published in ((CELLS[0],), (CELLS[3], CELLS[3], CELLS[1])):
        released = ReleasedTable(as_table(published))
        for rest in others[::3]:
            if neighbours == "add_remove":
                for size in (1, len(rest)):
                    without = exact_scores(rest, released, size)
                    changes = [np.abs(exact_scores(rest + own, released, size) - without).sum() for own in mine]
                    largest = max(largest, *changes)
            else:
                scores = [exact_scores(rest + own, released, None) for own in mine]
                largest = max(largest, *(np.abs(one - other).sum() for one in scores for other in scores))
    assert largest == claimed  # never more, and no less would do


def test_noise_is_added_to_the_exact_distance(room: Room) -> None:
    scores = asked(room.state(), epsilon=Fraction(10))
    schema = room.study.schema
    assert [one.columns for one in scores.scores] == [("colour",), ("age",), ("score",), ("colour", "age")]
    for one in scores.scores:
        counts = [Table(schema, open_source(rows)).count(one.columns).values for rows in (room.rows, release().table)]
        assert one.tvd == pytest.approx(tvd(*counts), abs=one.within)
        assert 0 < one.within < 0.1
    pairs = [one.tvd for one in scores.scores if len(one.columns) == 2]
    assert scores.k_marginal == pytest.approx(1000 * (1 - np.mean(pairs)))


def test_the_stated_error_holds_nineteen_times_in_twenty(room: Room) -> None:
    table = room.state().open_table()
    cliques = [("colour",), ("age",)]
    noises = paid._noises(room.study.unit, Fraction(1, 2), 2)
    public = Table(room.study.schema, open_source(release().table)).marginals(cliques)
    exact = [tvd(table.count(counts.domain.names).values, counts.values) for counts in public]
    misses = np.zeros(2)
    for seed in range(300):
        drawn = paid._drawn(table, public, noises, SimulationRandomness(seed))
        scores = paid._scores(cliques, *drawn, noises)
        misses += [abs(one.tvd - truth) > one.within for one, truth in zip(scores, exact, strict=True)]
    assert misses.max() <= 300 * 0.05
    assert misses.max() < 300  # and the noise is there: some draws differ
    assert len({paid._drawn(table, public, noises, SimulationRandomness(seed))[0] for seed in range(9)}) > 3


def test_the_ledger_is_charged_first(room: Room) -> None:
    seen: list[Any] = []

    def watched(label: str) -> Randomness:
        seen.append(room.spent())
        return SimulationRandomness(1, label)

    room.randomness = watched
    scores = asked(room.state())
    assert seen == [1]
    assert room.spent() == 1
    assert Cost.of(scores.events).epsilon(Fraction(0)) == 1
    assert [event.epsilon for event in scores.events] == [Fraction(1, 10), Fraction(9, 10)]  # type: ignore[union-attr]  # pure
    with Ledger.open(room.folder / "ledger.sqlite") as ledger:
        (entry,) = [entry for entry in ledger.entries() if entry.kind == "reserve"]
    assert (entry.study, entry.events) == (f"scores of {room.study.digest}", scores.events)


def test_replace_pays_nothing_for_the_size(tmp_path: Path) -> None:
    room = Room(tmp_path, unit='neighbours = "replace"')
    # another number of rows than the public one is never told
    assert len(room.rows) != 60
    scores = asked(room.state())
    assert scores.size == 60
    assert [event.epsilon for event in scores.events] == [1]  # type: ignore[union-attr]  # pure


def test_several_rows_a_person_make_the_size_private_also_under_replace(tmp_path: Path) -> None:
    scores = asked(Room(tmp_path, unit='neighbours = "replace"\nrows = 2').state())
    assert [event.epsilon for event in scores.events] == [Fraction(1, 10), Fraction(9, 10)]  # type: ignore[union-attr]


def test_a_retry_gets_the_stored_answer(room: Room) -> None:
    first = asked(room.state())
    room.randomness = lambda label: SimulationRandomness(2, label)  # other noise, if it were drawn
    assert asked(room.state()) == first
    assert room.spent() == 1
    other = asked(room.state(), call="c2")
    assert other.scores != first.scores
    assert room.spent() == 2


@pytest.mark.parametrize("change", [{"epsilon": Fraction(2)}, {"pairs": []}, {"pairs": [("age", "score")]}])
def test_a_call_stands_for_one_question(room: Room, change: dict[str, Any]) -> None:
    asked(room.state())
    with pytest.raises(RefusedError, match="different request"):
        asked(room.state(), **change)
    with pytest.raises(RefusedError, match="different request"):
        private_scores(
            room.state(), ReleasedTable(support.rows(500, 8)), epsilon=Fraction(1), call="c1", pairs=[("colour", "age")]
        )
    assert room.spent() == 1


def test_a_lost_answer_is_not_drawn_again(room: Room) -> None:
    asked(room.state())
    room.state().ledger.database.rows("DELETE FROM answers")
    with pytest.raises(RefusedError, match="stored answer"):
        asked(room.state())
    assert room.spent() == 1


def test_a_crash_after_the_charge_costs_once(room: Room) -> None:
    def broken(label: str) -> Randomness:
        raise OSError(label)

    room.randomness = broken
    with pytest.raises(OSError, match="c1/1"):
        asked(room.state())
    assert room.spent() == 1
    room.randomness = lambda label: SimulationRandomness(1, label)
    asked(room.state())
    assert room.spent() == 1


def test_a_crash_before_the_commit_gives_the_same_answer(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Ledger, study: str, call: str, reply_digest: str) -> None:
        raise OSError(call)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "commit", broken)
        with pytest.raises(OSError, match="c1"):
            asked(room.state())
    room.randomness = lambda label: SimulationRandomness(2, label)
    first = asked(room.state())
    assert asked(room.state()) == first
    assert room.spent() == 1


def test_a_cap_is_kept_and_nothing_is_drawn(tmp_path: Path) -> None:
    room = Room(tmp_path, cap=0.5)

    def forbidden(label: str) -> Randomness:
        raise AssertionError(label)

    room.randomness = forbidden
    with pytest.raises(BudgetError, match="asked 1"):
        asked(room.state())
    assert room.spent() == 0


def test_it_may_be_bundled(room: Room, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    simulate(room.study, support.two_parties(), seed=1).write(folder)
    room.randomness = lambda _label: SystemRandomness()
    scores = asked(room.state())
    written = json.loads(scores.write(folder / "scores.json").read_text())
    assert written["owner_only"] is False
    assert written["protects"] is True
    assert written["epsilon"] == "1"
    assert "at most 4" in written["sensitivity"]
    assert "SIMULATED" not in str(scores)
    with pytest.raises(InputError, match=r"\.json"):
        scores.write(folder / "scores.txt")


def test_simulated_noise_says_so(room: Room) -> None:
    scores = asked(room.state())
    assert scores.protects is False
    assert "SEEDED NOISE: these scores are not private" in str(scores)


def test_the_answer_depends_on_rows_through_noise_only(room: Room) -> None:
    scores = asked(room.state())
    values = [2 * scores.size * one.tvd for one in scores.scores]
    assert values == pytest.approx(np.round(values))  # whole numbers: nothing of finer grain leaves
    fields = set(json.loads(to_json(scores)))
    public = {"owner_only", "party", "study", "charged_to", "unit", "epsilon", "events", "sensitivity", "protects"}
    assert fields - public == {"size", "scores"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"pairs": [("age", "age")]}, "each of two different columns"),
        ({"pairs": [("age", "score"), ("score", "age")]}, "each of two different columns"),
        ({"pairs": [("age", "height")]}, "unknown columns"),
        ({"epsilon": Fraction(0)}, "must be positive"),
        ({"epsilon": 1.0}, "must be a Fraction"),
    ],
)
def test_wrong_questions_are_refused_before_the_charge(room: Room, change: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        asked(room.state(), **change)
    assert room.spent() == 0


def test_a_table_cut_otherwise_than_the_unit_says_is_refused(tmp_path: Path) -> None:
    room = Room(tmp_path)
    wrong = Table(room.study.schema, open_source(room.rows), rows_per_person=2)
    state = room.state()
    object.__setattr__(state, "open_table", lambda: wrong)
    with pytest.raises(InputError, match="open it as the unit says"):
        asked(state)
    assert room.spent() == 0


@pytest.mark.parametrize(
    ("counts", "size", "wanted"),
    [
        ([1, 1, 1], 10, [4, 3, 3]),
        ([5, 3, 2], 10, [5, 3, 2]),
        ([2, 1], 1, [1, 0]),
        ([0, 0], 3, [2, 1]),
        ([-4, 1], 3, [0, 3]),
        ([2**40, 2**40], 2**41, [2**40, 2**40]),
    ],
)
def test_integer_targets_by_hand(counts: list[int], size: int, wanted: list[int]) -> None:
    assert integer_target(np.array(counts), size).tolist() == wanted


def test_a_partys_own_folder_is_a_desk(tmp_path: Path) -> None:
    study = Study.loads(support.study_text())
    for name, arrow in support.two_parties().items():
        ReleasedTable(arrow).write(tmp_path / f"{name}.csv")
        (tmp_path / f"{name}-party.toml").write_text(
            f'name = "{name}"\ndataset = "{name}"\nsource = {{ path = "{name}.csv" }}\ncap = {{ epsilon = 1.5 }}\n'
        )
    sources = {name: tmp_path / f"{name}-party.toml" for name in ("north", "south")}
    made = simulate(study, sources, folder=tmp_path / "run")
    node = PartyFolder(folder=tmp_path / "run" / "parties" / "north").node(seed=None)
    try:
        scores = private_scores(node.state, made.table, epsilon=Fraction(1, 2), call="scores 1")
        assert scores.protects
        assert node.state.ledger.spent("north").left == 0
        with pytest.raises(BudgetError):
            private_scores(node.state, made.table, epsilon=Fraction(1, 2), call="scores 2")
    finally:
        node.close()
