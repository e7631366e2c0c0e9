"""How far one person moves the sums of `describe`, by trying all people, against the noise that nobody can subtract.

Sums are worked out here from the blocks in words, without the matrices and layouts of the method.
"""

from itertools import combinations, product
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import charges, study_text
from syndic import Study, simulate
from syndic.methods.describe.describe import DescribePlan
from syndic.methods.describe.opened import Block, Readings
from syndic.methods.describe.result import DescribeResult
from syndic.methods.table_noise import TableNoise
from syndic.mpc.ring import Residues
from syndic.noise import GaussianShare
from syndic.noise.gaussian import DiscreteGaussian
from syndic.privacy import ConcentratedEvent

COLUMNS = """
[[schema.columns]]
kind = "categorical"
name = "arm"
values = ["a", "b"]
missing = { value = "a" }
[[schema.columns]]
kind = "integer"
name = "age"
lower = 0
upper = 4
missing = "level"
[[schema.columns]]
kind = "boolean"
name = "ill"
missing = "level"
"""
ARMS, AGES, ILLS = ("a", "b", "unlisted"), (0, 1, 2, 3, 4, None), (False, True, None)
PEOPLE = [dict(zip(("arm", "age", "ill"), one, strict=True)) for one in product(ARMS, AGES, ILLS)]
EVERY = ("arm", "age", "ill")
OPTIONS = """
method = "describe"
group = "arm"
stratum = "party"
regressions = [{ kind = "linear", outcome = "age", on = ["arm", "ill"] }]
"""
REPLACE, ADDED = 'neighbours = "replace"', 'neighbours = "add_remove"'
Names = tuple[str, ...]
Held = dict[str, tuple[str, Names]]
Moves = dict[str, tuple[list[tuple[Any, Any]], Any]]
SAME: Held = {name: (name, EVERY) for name in "abcd"}
VERTICAL: Held = {"a": ("x", ("arm", "ill")), "b": ("x", ("age",))}
TWO_BY_TWO: Held = {**VERTICAL, "c": ("y", ("arm",)), "d": ("y", ("age", "ill"))}
LACKING: Held = {**VERTICAL, "c": ("y", ("arm", "ill"))}
TWICE: Held = {"a": ("x", ("arm", "ill")), "b": ("x", EVERY), "c": ("y", EVERY)}
APART: Held = {"a": ("x", EVERY), "b": ("y", ("arm", "ill")), "c": ("z", ("arm",)), "d": ("w", ("ill",))}
STUDIES: dict[str, tuple[Held, str, str, int]] = {
    "different people": (SAME, "", ADDED, 1),
    "different people, at two parties, two collude": (SAME, "colluding = 2", f"{REPLACE}\nparties = 2", 2),
    "one of different people may be missing": (SAME, "missing = 1", ADDED, 1),
    "two parties of the same people": (VERTICAL, "", REPLACE, 1),
    "two by two": (TWO_BY_TWO, "", REPLACE, 1),
    "two by two, in two groups, two collude": (TWO_BY_TWO, "colluding = 2", f"{REPLACE}\nparties = 2", 2),
    "a group lacks a column": (LACKING, "", f"{REPLACE}\nparties = 2", 1),
    "a column twice": (TWICE, "", REPLACE, 1),
    "servers": (TWO_BY_TWO, 'servers = ["a", "c", "d"]', REPLACE, 1),
    "nobody proves rows": (TWO_BY_TWO, 'adversary = "passive"', REPLACE, 1),
    "different people lack columns": (APART, "", f"{ADDED}\nparties = 3", 1),
    "different people lack columns, one may be missing": (APART, "missing = 1", ADDED, 1),
}


def agreed(held: Held, more: str, unit: str, people: int = 20) -> Study:
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = {people}\ngroup = "{group}"\n'
        f"columns = [{', '.join(f'{one!r}' for one in columns)}]\n"
        for name, (group, columns) in held.items()
    )
    budget = "epsilon = 1.0\ndelta = 1e-9"
    return Study.loads(study_text(protocol=OPTIONS + more, unit=unit, budget=budget, parties=parties, columns=COLUMNS))


def groups_in(held: Held) -> list[str]:
    return list(dict.fromkeys(group for group, _ in held.values()))


def read_from(held: Held, group: str) -> dict[str, str]:
    """Return the party that each column of a group is read from: the first that has it."""
    found: dict[str, str] = {}
    for name, (where, columns) in held.items():
        if where == group:
            found |= {column: name for column in columns if column not in found}
    return found


def sums_of(block: Any, person: dict[str, Any] | None, held: Held, group: str) -> dict[Any, float]:
    """Return what a person adds to a block, by cell and place in it; a person counts as 1."""
    holders = {read_from(held, group).get(name) for name in block.clique}
    if person is None or None in holders or len(holders) > 2:
        return {}
    cell = (group if block.within else "", *(person[name] for name in block.by))
    value = person[block.of]
    if block.read == "levels":
        return {(*cell, value): 1.0}
    if value is None:
        return {}
    assert (block.of, block.read) == ("age", "moments")
    scaled = (value - 2) / 2  # from 0 to 4
    return {(*cell, "people"): 1.0, (*cell, "sum"): scaled, (*cell, "squares"): 2 * scaled**2 - 1}


def moved(block: Any, one: Any, other: Any, held: Held, group: str) -> float:
    """Return how far the sums of a block are apart for two people, in squared length."""
    left, right = (sums_of(block, each, held, group) for each in (one, other))
    return sum((left.get(place, 0.0) - right.get(place, 0.0)) ** 2 for place in left | right)


def left_over(planned: DescribePlan, honest: tuple[str, ...]) -> Any:
    """Return the least variance on any sum of each block that these parties add, in people."""
    total = np.zeros(planned.masked_sum.count)
    for name in honest:
        noise = planned.noise_at(name)
        if isinstance(noise, TableNoise):
            assert isinstance(noise.share, GaussianShare)
            assert isinstance(noise.whole, DiscreteGaussian)
            total += noise.shared * float(noise.share.sigma_squared) + noise.own * float(noise.whole.sigma_squared)
        else:
            assert isinstance(noise, GaussianShare)
            total += float(noise.sigma_squared)
    found, start = [], 0
    for _, size in planned.parts:
        found.append(float(total[start : start + size].min()) / planned.one**2)
        start += size
    assert start == total.size
    return np.array(found)


def all_moves(planned: DescribePlan, held: Held, group: str) -> tuple[list[tuple[Any, Any]], Any]:
    """Return all neighbouring people of a group, and how far they are apart in each block (columns)."""
    others: list[Any] = [None] if planned.terms.unit.neighbours == "add_remove" else PEOPLE
    pairs = [(one, other) for one in PEOPLE for other in others]
    return pairs, np.array([[moved(block, *pair, held, group) for block in planned.note.blocks] for pair in pairs])


def worst_case(planned: DescribePlan, held: Held, every: Moves, colluding: Names, gone: Names) -> float:
    """Return the rho of the release to colluding parties: largest over people whose values they do not know.

    A person in several groups moves the sum by at most the lengths together.
    """
    honest = tuple(name for name in held if name not in colluding and name not in gone)
    variances, lengths = left_over(planned, honest), []
    for group, (pairs, squares) in every.items():
        members = {name for name, (where, _) in held.items() if where == group}
        if members <= {*colluding, *gone}:
            continue
        known = {column for name in members & {*colluding} for column in held[name][1]}
        tried = [not known or (other and all(one[each] == other[each] for each in known)) for one, other in pairs]
        found = squares[np.array(tried, dtype=bool)]
        rhos = np.divide(found, 2 * variances, out=np.where(found > 0, np.inf, 0.0), where=variances > 0).sum(axis=1)
        lengths.append(sqrt(rhos.max(initial=0.0)))
    return sum(sorted(lengths)[-planned.terms.unit.parties :]) ** 2


@pytest.mark.parametrize(("held", "more", "unit", "colluding"), STUDIES.values(), ids=STUDIES)
def test_no_person_moves_the_sums_further_than_the_charges_cover(
    held: Held, more: str, unit: str, colluding: int
) -> None:
    study = agreed(held, more, unit)
    planned = study.plan_as(DescribePlan)
    events = {name: study.plan.events(name) for name in held}
    assert len({*events.values()}) == 1, "every party is charged the same"
    (event,) = events["a"]
    assert isinstance(event, ConcentratedEvent)
    charged = float(event.rho) * planned.terms.unit.parties
    missing, every = planned.noise.missing, {group: all_moves(planned, held, group) for group in groups_in(held)}
    costs = [
        worst_case(planned, held, every, who, gone)
        for who in combinations(held, colluding)
        for gone in combinations([name for name in held if name not in who], missing)
    ]
    costs.append(worst_case(planned, held, every, (), ()))
    rounding = 1 + 1e-3  # scaled numbers are rounded to a 4096th
    assert max(costs) <= charged * rounding
    assert max(costs) > 0.2 * charged, "noise that is far too large would hide a mistake"


@pytest.mark.parametrize("people", [14_000, 30_000, 60_000, 110_000])
def test_of_many_people_sums_of_both_signs_and_their_noise_fit_into_the_field(people: int) -> None:
    """One counts 2^9 to 2^12: the charge still covers everybody, and 10 standard deviations have room."""
    study = agreed(TWO_BY_TWO, "", REPLACE, people)
    planned = study.plan_as(DescribePlan)
    every = {group: all_moves(planned, TWO_BY_TWO, group) for group in groups_in(TWO_BY_TWO)}
    (event,) = study.plan.events("a")
    assert isinstance(event, ConcentratedEvent)
    for who in ((), *((name,) for name in TWO_BY_TWO)):
        assert worst_case(planned, TWO_BY_TWO, every, who, ()) <= float(event.rho) * (1 + 1e-3)
    ring = planned.masked_sum.ring
    assert isinstance(ring, Residues)
    assert planned.product is not None
    assert planned.product.sizes.ring == ring
    furthest = int(planned.one * (2 * people + 10 * planned.deviation(4)))
    assert ring.lift(ring.reduce(np.array([furthest, -furthest]))).tolist() == [furthest, -furthest]


@pytest.mark.parametrize("held", [TWO_BY_TWO, LACKING, TWICE], ids=["two by two", "lacking", "twice"])
def test_what_opens_is_what_the_hand_adds_up(held: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise; so the people tried above move what really opens. Every ledger is charged once, for all of it."""
    for noise in (GaussianShare, DiscreteGaussian):
        monkeypatch.setattr(noise, "draw", lambda _, shape, randomness: np.zeros(shape, np.int64))  # noqa: ARG005
    study, rng = agreed(held, "", REPLACE), np.random.default_rng(4)
    people = {group: [PEOPLE[place] for place in rng.integers(0, len(PEOPLE), 20)] for group in groups_in(held)}
    tables = {
        group: pa.table({name: [one[name] for one in found] for name in EVERY}) for group, found in people.items()
    }
    given = {name: tables[group].select(columns) for name, (group, columns) in held.items()}
    opened = simulate(study, given, seed=1, folder=tmp_path).result
    assert isinstance(opened, DescribeResult)
    values, expected = {"arm": ARMS, "age": AGES, "ill": ILLS}, []
    for block in opened.note.blocks:
        total: dict[Any, float] = {}
        for group, one in ((group, one) for group, found in people.items() for one in found):
            for place, number in sums_of(block, one, held, group).items():
                total[place] = total.get(place, 0.0) + number
        cells = product(groups_in(held) if block.within else [""], *(values[name] for name in block.by))
        last = values[block.of] if block.read == "levels" else ("people", "sum", "squares")
        expected += [total.get((*cell, each), 0.0) for cell in cells for each in last]
    assert (opened.sums / 4096).tolist() == expected
    planned = study.plan_as(DescribePlan)
    assert [[one.events for one in charges(tmp_path, name)] for name in held] == [[(planned.noise.event,)]] * len(held)


@pytest.mark.parametrize("bits", [9, 10, 11, 12])
@pytest.mark.parametrize("ends", [(0, 0), (0, 1), (0, 2), (-3, 4), (0, 9), (1, 40), (-50, 50), (0, 366)])
@pytest.mark.parametrize("bins", [1, 2, 3, 5, 7])
def test_no_rounding_lets_a_replaced_person_count_more(bits: int, ends: tuple[int, int], bins: int) -> None:
    """All pairs of values of a number, in one cell and in two."""
    low, high = ends
    if bins > high - low + 1:
        return
    text = f'[[schema.columns]]\nkind = "integer"\nname = "x"\nlower = {low}\nupper = {high}\nmissing = "level"\n'
    text += f"bins = {bins}\n" if bins > 1 else ""
    schema = Study.loads(study_text(columns=text)).schema
    for read in ("moments", "levels"):
        readings = Readings(Block(by=(), of="x", read=read), schema, bits)
        rows = readings.matrix
        alone = (rows**2).sum(axis=1)
        one_cell = ((rows[:, None] - rows[None]) ** 2).sum(axis=2).max()
        assert alone.max() <= readings.sensitivity("add_remove") <= 3 * readings.one**2
        assert max(one_cell, 2 * alone.max()) <= readings.sensitivity("replace")
