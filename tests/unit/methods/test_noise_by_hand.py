"""Noise really drawn, against variances and charges that are worked out here from the study alone, over many cuts."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from math import exp, sqrt
from statistics import NormalDist
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import COLUMNS, rows, study_text
from syndic import Study, simulate
from syndic.kernel import Party, Session
from syndic.methods import Synthesis
from syndic.methods.histogram.tables import MarginalTables
from syndic.methods.regression.gram_plan import GramPlan
from syndic.methods.synthesis.cut import CutRound
from syndic.methods.synthesis.measure import Question
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.synthesis.result import SyntheticTable
from syndic.methods.table_noise import COORDINATOR
from syndic.privacy import ConcentratedEvent, GaussianEvent, PureEvent
from syndic.random import SimulationRandomness

FOUR = COLUMNS + '[[schema.columns]]\nname = "flag"\nkind = "boolean"\nmissing = { value = false }\n'
EVERY = ("colour", "age", "score", "flag")
ZEROS = '{ columns = ["colour", "flag"], cells = [["red", "true"]] }'
EPSILON, DELTA = 1.0, 1e-6
TOO = "coordinator_noise = true"
REPLACE, ADDED = 'neighbours = "replace"', 'neighbours = "add_remove"'

Held = dict[str, tuple[str, tuple[str, ...]]]
TWO: Held = {"a": ("x", ("colour", "age")), "b": ("x", ("score", "flag"))}
THREE: Held = {"a": ("x", ("colour",)), "b": ("x", ("age", "flag")), "c": ("x", ("score",))}
TWICE: Held = {**THREE, "c": ("x", ("score", "age"))}
BESIDE: Held = {"d": ("y", EVERY), **THREE}
LACKING: Held = {"a": ("x", ("colour", "age")), "b": ("y", ("age", "score")), "c": ("z", EVERY), "d": ("w", ("flag",))}
LACKING |= {"e": ("v", ("age", "flag"))}
ALONE: Held = {"a": ("x", ("colour",)), "b": ("y", ("age", "score")), "c": ("z", ("age", "flag"))}
SAME: Held = {name: (name, EVERY) for name in "abcd"}
OVER: Held = {**BESIDE, "b": ("x", ("age", "flag", "score")), "c": ("x", ("score", "age"))}
PEOPLE = {"x": 60, "y": 45, "z": 30, "w": 35, "v": 40}
RULE = {"age": "bc", "score": "bc"}
"""The parties over which columns of `OVER` are averaged."""


def agreed(held: Held, method: str, options: str, unit: str) -> Study:
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = {PEOPLE.get(group, 50)}\ngroup = "{group}"\n'
        f"columns = [{', '.join(f'{one!r}' for one in columns)}]\n"
        for name, (group, columns) in held.items()
    )
    budget, protocol = f"epsilon = {EPSILON}\ndelta = {DELTA}", f'method = "{method}"\n{options}'
    rule = ", ".join(f"{name} = {list(own)}" for name, own in RULE.items())
    top = f"read_from = {{ {rule} }}" if held is OVER else ""
    return Study.loads(study_text(unit=unit, budget=budget, parties=parties, columns=FOUR, protocol=protocol, top=top))


def sources(held: Held) -> dict[str, pa.Table]:
    found = {}
    for name, (group, columns) in held.items():
        table = rows(PEOPLE.get(group, 50), 1 + sum(map(ord, group)))
        table = table.append_column("flag", pa.array(np.asarray(table["age"]) > 50))
        table = table.append_column("who", pa.array([place // 2 for place in range(len(table))]))
        found[name] = table.select([*columns, "who"])
    return found


def counted_by(held: Held, names: tuple[str, ...]) -> frozenset[str]:
    """Return who counts a table: in each group the first party that has each column, if these are one or two.

    Of averaged columns those that are named, if each choice of them is one or two.
    """
    found: set[str] = set()
    for group in {group for group, _ in held.values()}:
        own = {name: columns for name, (where, columns) in held.items() if where == group}
        has = {one: [party for party, columns in own.items() if one in columns] for one in names}
        named = {one: [party for party in has[one] if held is OVER and party in RULE.get(one, "")] for one in names}
        read = {tuple(named[one] or has[one][:1]) for one in names}
        if () not in read and all(len(set(one)) <= 2 for one in product(*read)):
            found |= {one for parties in read for one in parties}
    return frozenset(found)


def delta_of(events: list[Any], times: int) -> float:
    """Return a delta at `EPSILON` of some events, all of them `times` over."""
    assert all(type(one) is type(events[0]) for one in events)
    if isinstance(events[0], GaussianEvent):
        mu = sqrt(times * sum(float(one.mu_squared) for one in events))
        slack = times * sum(float(one.slack) for one in events)
        below, above = (NormalDist().cdf(side * mu / 2 - EPSILON / mu) for side in (1, -1))
        return below - exp(EPSILON) * above + slack * (1 + exp(EPSILON))
    if isinstance(events[0], PureEvent):
        return 0.0 if times * sum(one.epsilon for one in events) <= EPSILON else 1.0
    rho = times * sum(float(one.rho) for one in events)
    orders = 1 + np.geomspace(1e-3, 1e6, 200_000)
    logs = (orders - 1) * (orders * rho - EPSILON + np.log1p(-1 / orders)) - np.log(orders)
    return exp(float(logs.min()))


def needed(event: Any, tables: int, moved: float, places: int) -> float:
    """Return the variance that a count needs, if one person at one place moves each table by `moved` in squared l2.

    A person at several places moves it by as many times in l2, and the whole release costs as many charges.
    """
    square = places**2 * tables * moved
    if isinstance(event, GaussianEvent):
        return square / float(places * event.mu_squared)
    assert isinstance(event, ConcentratedEvent)
    return square / float(2 * places * event.rho)


@pytest.fixture
def coins() -> list[dict[int, float]]:
    """Keep the variance of noise from coins by table, for every party and sum."""
    return []


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch, coins: list[dict[int, float]]) -> list[tuple[str, Any, int]]:
    """Keep what every role adds to every sum: its name, the noise and how many numbers."""
    found: list[tuple[str, Any, int]] = []
    contribute = Party.contribute

    def kept(self: Any, share: Any, values: Any, *, why: str) -> Any:
        found.append((self.name, share, values.size))
        return contribute(self, share, values, why=why)

    def shared(self: Any, share: Any, total: Any) -> Any:
        found.append((COORDINATOR, share, total.size))
        return by_coordinator(self, share, total)

    def tossed(self: CutRound, party: Party, *given: Any, **more: Any) -> Any:
        places = [place for some in self.tossed.values() for place in some]
        coins.append(dict.fromkeys(places, self.coins.noise.variance) if self.coins else {})
        return count(self, party, *given, **more)

    count, by_coordinator = CutRound.count, Session.contribute
    monkeypatch.setattr(CutRound, "count", tossed)
    monkeypatch.setattr(Party, "contribute", kept)
    monkeypatch.setattr(Session, "contribute", shared)
    return found


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[str, ...], ...]]:
    """Keep the sets of columns whose parities were asked."""
    found: list[tuple[tuple[str, ...], ...]] = []
    asking = Synthesis._open

    def kept(self: Any, session: Any, sums: Any, question: Question) -> Any:
        found.extend([question.tables] if question.parity else [])
        return asking(self, session, sums, question)

    monkeypatch.setattr(Synthesis, "_open", kept)
    return found


def variances(noise: Any, size: int, scale: int) -> Any:
    """Return what is drawn on each of `size` numbers, in squared rows."""
    randomness = SimulationRandomness(3, "by hand")
    values = np.zeros(size, dtype=np.int64)
    draws = np.stack([noise.apply(values, randomness) for _ in range(300)]) / scale
    return (draws**2).mean(axis=0)


STUDIES = {
    "two parties": (TWO, "marginals", "", REPLACE, 1, 0),
    "two of three, two collude": (THREE, "marginals", "colluding = 2", REPLACE, 2, 0),
    "a column twice": (TWICE, "marginals", "", REPLACE, 1, 0),
    "one beside three, in two groups": (BESIDE, "marginals", "", f"{REPLACE}\nparties = 2", 1, 0),
    "averaged, in two groups": (OVER, "marginals", "", f"{REPLACE}\nparties = 2", 1, 0),
    "servers": (BESIDE, "marginals", 'servers = ["a", "d", "c"]', REPLACE, 1, 0),
    "lacking, rows, missing": (LACKING, "marginals", "missing = 1", f"{ADDED}\nrows = 3\nparties = 2", 1, 1),
    "lacking, weighted": (
        LACKING,
        "marginals",
        "colluding = 2",
        f'{ADDED}\nrows = 3\nperson = "who"\nchoose = "weighted"',
        2,
        0,
    ),
    "the coordinator too": (TWO, "marginals", TOO, REPLACE, 1, 0),
    "the coordinator too, two collude": (THREE, "marginals", f"colluding = 2\n{TOO}", REPLACE, 2, 0),
    "the coordinator too, in two groups": (BESIDE, "marginals", TOO, f"{REPLACE}\nparties = 2", 1, 0),
    "synthesis, the coordinator too": (TWO, "synthesis", TOO, REPLACE, 1, 0),
    "synthesis, the coordinator too, in two groups": (BESIDE, "synthesis", TOO, f"{REPLACE}\nparties = 2", 1, 0),
    "nobody has a table with another": (ALONE, "marginals", "", f"{ADDED}\nparties = 3", 1, 0),
    "synthesis, nobody colludes": (TWO, "synthesis", "colluding = 0", REPLACE, 0, 0),
    "synthesis, two collude": (THREE, "synthesis", "colluding = 2", REPLACE, 2, 0),
    "synthesis, target and keep": (
        THREE,
        "synthesis",
        f'target = "flag"\nkeep = [["age", "score"]]\nzeros = [{ZEROS}]',
        REPLACE,
        1,
        0,
    ),
    "synthesis, one beside three, in two groups": (BESIDE, "synthesis", "", f"{REPLACE}\nparties = 2", 1, 0),
    "synthesis, averaged": (OVER, "synthesis", "", REPLACE, 1, 0),
    "synthesis, servers": (BESIDE, "synthesis", 'servers = ["a", "d", "c"]', REPLACE, 1, 0),
    "synthesis, lacking": (LACKING, "synthesis", "", f"{REPLACE}\nparties = 3", 1, 0),
    "synthesis, nobody with another": (ALONE, "synthesis", "", REPLACE, 1, 0),
    "synthesis, rows, missing": (SAME, "synthesis", "missing = 1", f"{ADDED}\nrows = 2\nparties = 2", 1, 1),
    "synthesis, weighted": (
        SAME,
        "synthesis",
        "interactions = false",
        f'{ADDED}\nrows = 3\nperson = "who"\nchoose = "weighted"',
        1,
        0,
    ),
}


# every second here, the others among the slow tests
@pytest.mark.parametrize(
    "which",
    [pytest.param(name, marks=[pytest.mark.slow] if place % 2 else []) for place, name in enumerate(STUDIES)],
)
def test_what_honest_parties_draw_is_enough_for_the_charge(
    which: str,
    drawn: list[tuple[str, Any, int]],
    scans: list[tuple[tuple[str, ...], ...]],
    coins: list[dict[int, float]],
) -> None:
    held, method, options, unit, colluding, missing = STUDIES[which]
    study = agreed(held, method, options, unit)
    study.check()
    result = simulate(study, sources(held), seed=2).result
    places = study.unit.parties
    events = [list(study.plan.events(name)) for name in held]
    assert all(one == events[0] for one in events)
    # orders on a grid: a little more than the least delta
    assert 0.5 * DELTA < delta_of(events[0], places) <= DELTA * (1 + 1e-6)
    most = {"rows = 3": 9, "rows = 2": 4}.get(next((line for line in unit.split("\n") if "rows" in line), ""), 1)
    moved = 2 if REPLACE in unit else 1 if "weighted" in unit else most
    for number, (tables, sizes, squared) in enumerate(asked(study, result, moved, scans)):
        roles = len(held) + (TOO in options)
        sums = drawn[number * roles : (number + 1) * roles]
        least = needed(events[0][number], len(tables), squared, places)
        asked_for = list(zip(tables, sizes, strict=True))
        tossed = coins[number * len(held)] if coins else {}
        check_drawn(held, sums, asked_for, opened_scale(study, sums[0][1]), least, colluding + missing, tossed)
    across = any(len({held[name][0] for name in counted_by(held, names)}) < 2 for names in combinations(EVERY, 2))
    tosses = method == "synthesis" and colluding and "parties" not in unit
    assert any(coins) == bool(tosses and across and held not in (OVER, SAME, ALONE))


def asked(
    study: Study, result: Any, moved: int, scans: list[tuple[tuple[str, ...], ...]]
) -> Iterator[tuple[tuple[tuple[str, ...], ...], list[int], float]]:
    """Return the tables of every sum, how many numbers each has, and how far one person moves each."""
    if isinstance(result, MarginalTables):
        yield result.note.tables, [table.values.size for table in result.tables], moved
        return
    assert isinstance(result, SyntheticTable)
    rounds = iter(result.note.rounds)
    for room in study.plan_as(SynthesisPlan).size.rooms:
        if room.parity:  # every row is +1 or -1 in each
            assert result.note.parities is not None
            (sets,) = scans
            assert result.note.parities.sets == len(sets)
            # one that is replaced moves those by two that have an odd number of the columns whose signs it changes
            changes = [set(one) for size in range(5) for one in combinations(EVERY, size)]
            most = max(sum(len(one.intersection(names)) % 2 for names in sets) for one in changes) / len(sets)
            yield sets, [1] * len(sets), moved * (2 * most if study.unit.neighbours == "replace" else 1)
            continue
        one = next(rounds)
        levels = dict(zip(study.schema.names, one.groups, strict=True)) if one.groups else {}
        size = {name: max(levels[name]) + 1 if levels else study.schema[name].size for name in study.schema.names}
        yield one.tables, [int(np.prod([size[name] for name in names])) for names in one.tables], moved


def opened_scale(study: Study, noise: Any) -> int:
    parts = 2 if study.read_from else 1
    return parts * int(getattr(noise, "scale", 1)) * (study.unit.scale if "Marginal" in study.protocol.title else 1)


GRAMS = {
    "two parties": (TWO, "", 1, 0),
    "a column twice, two collude": (TWICE, "colluding = 2", 2, 0),
    "one beside three": (BESIDE, "", 1, 0),
    "different people, one missing": (SAME, "missing = 1", 1, 1),
    "by bounds": (BESIDE, "scaling = 0.0", 1, 0),
    "a target": (TWO, 'target = "score"', 1, 0),
    "different people, a target": (SAME, 'target = "score"', 1, 0),
}


@pytest.mark.parametrize("which", GRAMS)
def test_what_honest_parties_draw_is_enough_for_sums_of_products(which: str, drawn: list[tuple[str, Any, int]]) -> None:
    held, options, colluding, missing = GRAMS[which]
    study = agreed(held, "gram", options, REPLACE)
    simulate(study, sources(held), seed=2)
    events: list[Any] = list(study.plan.events("a"))
    assert 0.5 * DELTA < delta_of(events, 1) <= DELTA * (1 + 1e-6)
    scaling, length = study.plan_as(GramPlan).stages.scaling, 0.0
    if scaling is not None:
        # a person moves two counts of each of two number columns, those of a target by more
        moved, length = 2 + 2 * scaling.weight**2, (1 + float(scaling.finer**2)) * float(scaling.length)
        columns = [(("age",), scaling.bins), (("score",), scaling.bins)]
        check_drawn(held, drawn[: len(held)], columns, 1 << 12, needed(events[0], 1, moved, 1), colluding + missing)
    # four columns and the intercept, or two, the intercept, a level for missing values and the length of two numbers
    square = (4 + length) ** 2 if scaling else 25
    least = square / float(events[-1].mu_squared)
    sums = drawn[-len(held) :]
    check_drawn(held, sums, [(EVERY[:1], sums[0][2])], 4**10, least, colluding + missing)


def check_drawn(
    held: Held,
    sums: list[tuple[str, Any, int]],
    tables: Sequence[tuple[tuple[str, ...], int]],
    scale: int,
    least: float,
    gone: int,
    coins: Mapping[int, float] = MappingProxyType({}),
) -> None:
    """Hold what is left of the noise on every table, without so many parties, against the least variance.

    Of noise from coins only the two parties of the table know anything, and only both together.

    A coordinator that shares it knows its own share, and colludes with no party.
    """
    coordinator = [(COORDINATOR,)] if len(sums) > len(held) else []
    assert sorted(name for name, _, _ in sums) == sorted([*held, *(one for (one,) in coordinator)])
    ends = np.cumsum([size for _, size in tables])[:-1]
    own = {name: np.split(variances(noise, size, scale), ends) for name, noise, size in sums}
    for place, (names, size) in enumerate(tables):
        who, per = counted_by(held, names), {name: float(own[name][place].mean()) for name in own}
        assert who
        for some in [*combinations(held, gone), *coordinator]:
            if who <= set(some):
                continue  # nobody else's rows are in it
            left = sum(value for name, value in per.items() if name not in some) + coins.get(place, 0.0)
            assert left >= (1 - 5 * sqrt(2 / (300 * size))) * least, (names, some, left / least)
