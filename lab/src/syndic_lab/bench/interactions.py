"""Relations that no pair of columns shows: how often they are kept, and what looking for them costs other tables.

Made-up tables of 13 columns of two values, of which one is the exclusive or of some others, but for 5 % of the rows;
five parties share 20,000 people at delta 1e-7, epsilon 1 and 0.3. Two parties that have the first seven and the last
six columns of the same people, so that the relation is across them, and two groups of two such parties. Adult, where
nothing is planted, at epsilon 0.8. Each with and without `interactions`, mean and worst over seeds. Rows are simulated
from a seed, so nobody is protected here.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Final, Literal

import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from numpy.typing import NDArray

from syndic.data import Schema
from syndic.errors import InputError
from syndic.methods import Synthesis
from syndic_lab.bench.model.synthesis import MIDDLE, simulated
from syndic_lab.bench.model.synthesis_data import Coded, alike, codes_of, distances, load
from syndic_lab.bench.row import Row
from syndic_lab.bench.vertical.runs import Made, grid_of, made_by

COLUMNS: Final = 13
PEOPLE: Final = 20_000
PARTIES: Final = 5
FLIPPED: Final = 0.05
PLANTED: Final = (2, 3, 4)
SIDES: Final = 2
SMALL: Final = "0.3"

Groups = Literal[0, 1, 2]
"""Groups of two parties with different columns; 0 for parties with all columns."""


def rows(quick: bool) -> Iterator[Row]:
    """Yield the agreement of planted relations and the distances of Adult, with `interactions` beside without."""
    seeds = range(3 if quick else 10)
    for number in PLANTED:
        yield from of_planted(number, seeds)
    for number in PLANTED[1:]:
        yield from of_planted(number, seeds, epsilon=SMALL)
    for number in PLANTED:
        yield from of_planted(number, seeds, groups=1)
    yield from of_planted(3, seeds, groups=2)
    try:
        adult = load("adult", "adult_coded")
    except InputError as error:
        sys.stderr.write(f"skipped: {error}\n")
        return
    yield from of_other(adult, seeds)
    yield from of_other(adult, seeds, groups=1)


def of_planted(
    number: int, seeds: Sequence[int], people: int = PEOPLE, groups: Groups = 0, epsilon: str = "1"
) -> Iterator[Row]:
    """Yield how many rows have a last column that is the exclusive or of the first ones; 0.95 of the real rows."""
    row = f"exclusive or of {number} columns, epsilon {epsilon}{_who(groups)}"

    def run(seed: int, interactions: bool) -> tuple[float, float]:
        data = planted(number, seed, people)
        made = _made(data, epsilon, "1e-7", seed, groups, interactions)
        wanted = {data.domain.names[place] for place in (*range(number), COLUMNS - 1)}
        others = sum(set(names) != wanted for names in made.found)
        return agreement_of(list(made.codes.values()), number), others

    now, before = ([run(seed, looks) for seed in seeds] for looks in (True, False))
    yield from _both(row, "rows that agree", [one for one, _ in now], [one for one, _ in before], "of all rows", min)
    yield _row(row, "other sets found", float(sum(others for _, others in now)), f"sets in {len(seeds)} runs", 0.0)


def _who(groups: Groups) -> str:
    return ("", ", two parties with different columns", ", two groups of two such parties")[groups]


def _made(data: Coded, epsilon: str, delta: str | None, seed: int, groups: Groups, interactions: bool) -> Made:
    """Run the synthesis once, without groups of five parties, or of a curator where delta is that of a curator."""
    protocol = Synthesis(interactions=interactions)
    if groups:
        share = Fraction(1, data.table.num_rows) if delta is None else Fraction(delta)
        return made_by(data, replace(grid_of(data, epsilon, groups, SIDES, delta=share), protocol=protocol), seed)
    made = simulated(data, protocol, epsilon, seed, alike, 1 if delta is None else PARTIES, delta=delta)
    return Made(codes_of(made.table.to_arrow(), data.schema), 0.0, found=made.note.found)


def missed(number: int, seed: int, epsilon: float) -> float:
    """Return the share of rows that do not agree with a planted relation of five parties; 0.05 of the real rows."""
    made = _made(planted(number, seed, PEOPLE), str(epsilon), "1e-7", seed, 0, interactions=True)
    return 1 - agreement_of(list(made.codes.values()), number)


def of_other(data: Coded, seeds: Sequence[int], groups: Groups = 0) -> Iterator[Row]:
    """Yield the distances of random tables of a real table, and how many sets were found in it."""
    row, found = f"{data.name}, epsilon {MIDDLE}{_who(groups) or ', curator'}", 0
    apart: dict[bool, list[dict[int, float]]] = {True: [], False: []}
    for seed in seeds:
        for looks, one in apart.items():
            made = _made(data, MIDDLE, None, seed, groups, looks)
            one.append(distances(data.codes(), made.codes, data.domain))
            found += len(made.found)
    for ways in apart[True][0]:
        now, before = ([one[ways] for one in apart[looks]] for looks in (True, False))
        yield from _both(row, f"tvd{ways}", now, before, "distance", max)
        ratios = np.array(now) / np.array(before)
        deviation = float(ratios.std(ddof=1) / len(ratios) ** 0.5)
        yield _row(row, f"tvd{ways} ratio of the same seeds", float(ratios.mean()), f"+- {deviation:.3f}", 1.0)
    yield _row(row, "sets found", float(found), f"sets in {len(seeds)} runs", 0.0)


def planted(number: int, seed: int, people: int) -> Coded:
    """Return fair coins, the last column being the exclusive or of the first `number`, flipped in 5 % of the rows."""
    draws = np.random.default_rng([seed, number])
    values = draws.integers(0, 2, (people, COLUMNS))
    values[:, -1] = (values[:, :number].sum(axis=1) + (draws.random(people) < FLIPPED)) % 2
    schema = Schema.from_domain({f"c{place}": 2 for place in range(COLUMNS)})
    return Coded(f"planted {number}", schema, pa.table(dict(zip(schema.names, values.T, strict=True))))


def agreement(table: pa.Table, schema: Schema, number: int) -> float:
    """Return the share of rows whose last column is the exclusive or of the first `number`."""
    return agreement_of(list(codes_of(table, schema).values()), number)


def agreement_of(codes: Sequence[NDArray[np.int64]], number: int) -> float:
    """Return the same of a table of codes, column by column."""
    return float(np.mean(sum(codes[:number]) % 2 == codes[-1]))


def _both(
    row: str,
    metric: str,
    now: Sequence[float],
    before: Sequence[float],
    unit: str,
    worst: Callable[[Sequence[float]], float],
) -> Iterator[Row]:
    yield _row(row, f"{metric}, mean", float(np.mean(now)), unit, float(np.mean(before)))
    yield _row(row, f"{metric}, worst", worst(now), unit, worst(before))


def _row(row: str, metric: str, value: float, unit: str, baseline: float | None) -> Row:
    return Row(bench="interactions", row=row, metric=metric, value=value, unit=unit, baseline=baseline)
