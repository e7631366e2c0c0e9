"""Error of one cell by each way of learning tables across parties, for the same budget.

45,222 people, 15 columns of four values, of which 7 x 8 pairs are across two parties: a cell has about 2,826 people.
The budget (0.4, 1e-5) is for one person over all of it. Sketches are drawn from their exact law, without hashing.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import msgspec
import numpy as np
from numpy.typing import NDArray

from syndic.methods.vertimrf.account import printed_oracle
from syndic.methods.vertimrf.model.tables import decoded_table
from syndic.methods.vertimrf.sketch.cost import phantoms_needed
from syndic.methods.vertimrf.sketch.encode import SketchPlan, largest_ranks, printed_plan
from syndic.noise import FineGaussian, RandomisedResponse
from syndic.privacy import Budget, mu_squared_for
from syndic.random import SystemRandomness
from syndic_lab.bench.row import Row
from syndic_lab.bench.sketch.choose import sound_plan
from syndic_lab.encodings import Decoder, decoded_cells, oracle

PEOPLE, SIZE, COLUMNS, PAIRS = 45_222, 4, 15, 56
_EPSILON, _DELTA = 0.4, 1e-5
_SKETCHES = 2 * (SIZE - 1)
_ROW = f"{PEOPLE} people, {PAIRS} pairs of {SIZE} values, (0.4, 1e-5)"


def errors(quick: bool) -> Iterator[Row]:
    """Yield the root mean square error of a cell, beside that of secure products for the same neighbours."""
    product = {name: secure_product_error(squared) for name, squared in (("add_remove", PAIRS), ("replace", 2 * PAIRS))}
    runs = 60 if quick else 200
    for neighbours, error in product.items():
        yield _row(f"secure products, {neighbours}", error, error)
    for name, plan, decoder in _sketches(quick):
        neighbours = "replace" if "replace" in name else "add_remove"
        yield _row(name, sketch_error(plan, runs, decoder), product[neighbours])
    budget = Budget.of("0.4", "1e-5")
    for name, make in (("oracle, replace", oracle), ("printed oracle (claim false)", printed_oracle)):
        responses = make((SIZE,) * COLUMNS, budget)[:2]
        yield _row(name, oracle_error(responses, runs // 10), product["replace"])


def _sketches(quick: bool) -> Iterator[tuple[str, SketchPlan, Decoder]]:
    printed = printed_plan(epsilon=_EPSILON, delta=_DELTA, columns=COLUMNS)
    yield "printed sketch (claim false)", printed, "likeliest"
    yield "printed sketch (claim false), printed decoder", printed, "printed"
    if not quick:
        many = printed_plan(epsilon=_EPSILON, delta=_DELTA, columns=COLUMNS, repetitions=20_000)
        yield "printed sketch (claim false), t 20000", many, "likeliest"
    start = msgspec.structs.replace(printed, phantoms=1, floor=0)
    honest = phantoms_needed(start, columns=COLUMNS, epsilon=_EPSILON, delta=_DELTA, points=2**18)
    yield "one key, phantoms needed", honest, "likeliest"
    pairs = phantoms_needed(start, columns=2, keys=PAIRS, epsilon=_EPSILON, delta=_DELTA, points=2**18)
    yield "key for each pair, phantoms needed", pairs, "likeliest"
    yield "one key, cap", _sound(columns=COLUMNS, keys=1), "likeliest"
    yield "key for each pair, cap", _sound(), "likeliest"
    yield "key for each pair, cap, replace", _sound(replace=True), "likeliest"
    if not quick:
        yield "key for each pair, cap, t 20000", _sound(repetitions=20_000), "likeliest"


def _sound(*, columns: int = 2, keys: int = PAIRS, repetitions: int = 2000, replace: bool = False) -> SketchPlan:
    return sound_plan(
        SketchPlan(phantoms=1, floor=0, repetitions=repetitions),
        columns=columns,
        keys=keys,
        epsilon=_EPSILON,
        delta=_DELTA,
        neighbours="replace" if replace else "add_remove",
        people=PEOPLE,
        sketches=_SKETCHES,
    )


def secure_product_error(sensitivity_squared: int) -> float:
    """Return the measured error of one copy of Gaussian noise on all tables, at the same budget."""
    budget = Budget.of("0.4", "1e-5")
    noise = FineGaussian(
        sensitivity_squared=Fraction(sensitivity_squared),
        mu_squared=mu_squared_for(budget.epsilon, budget.delta),
        changed=sensitivity_squared,
    )
    drawn = noise.apply(np.zeros(PAIRS * SIZE**2 * 20, dtype=np.int64), SystemRandomness())
    return float(np.sqrt(np.mean((np.asarray(drawn, dtype=np.float64) / noise.scale) ** 2)))


def oracle_error(responses: Sequence[RandomisedResponse], runs: int) -> float:
    """Return the measured error of a cell of one table from everybody's answers."""
    found = []
    for _ in range(runs):
        pairs = zip(responses, _CODES, strict=True)
        found.append(_squared(decoded_table(responses, [one.apply(codes, SystemRandomness()) for one, codes in pairs])))
    return float(np.mean(found) ** 0.5)


def sketch_error(plan: SketchPlan, runs: int, decoder: Decoder = "likeliest") -> float:
    """Return the measured error of a cell of one table; cells of a run err alike, so many runs are needed."""
    return float(np.mean([_squared(sketched_cells(plan, decoder)[0]) for _ in range(runs)]) ** 0.5)


def sketched_cells(plan: SketchPlan, decoder: Decoder) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the cells of one table from sketches that are drawn anew, and the true ones."""
    bare, randomness = msgspec.structs.replace(plan, phantoms=0), SystemRandomness()
    cells = [largest_ranks(bare, int(count), plan.repetitions, randomness) for count in _CELLS.ravel()]
    drawn = np.stack(cells, axis=1).reshape(plan.repetitions, SIZE, SIZE)
    phantoms = largest_ranks(plan, plan.phantoms, plan.repetitions * 2 * SIZE, randomness)
    sides = phantoms.reshape(plan.repetitions, 2, SIZE)
    columns = [np.maximum(drawn.max(axis=2 - place), sides[:, place]) for place in range(2)]
    return decoded_cells(columns, plan, PEOPLE, decoder), _CELLS


def _codes() -> list[NDArray[np.int64]]:
    generator = np.random.default_rng(8)
    return [generator.integers(0, SIZE, PEOPLE) for _ in range(2)]


_CODES = _codes()
_CELLS = np.bincount(_CODES[0] * SIZE + _CODES[1], minlength=SIZE**2).reshape(SIZE, SIZE)


def _squared(cells: NDArray[np.float64]) -> float:
    return float(np.mean((cells - _CELLS) ** 2))


def _row(name: str, value: float, baseline: float) -> Row:
    return Row(bench="sketch", row=f"{_ROW}, {name}", metric="cell error", value=value, unit="count", baseline=baseline)
