"""The people of the guard's small studies: made up from a fixed seed, cut by rows or by columns."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from syndic.data import Boolean, Instead, Integer, Schema
from syndic.kernel import Member
from syndic.methods import AnyMethod
from syndic.privacy import Budget, Unit
from syndic.study import Release, Study, simulate

PEOPLE: Final = 3_000
SIZES: Final = {"a": 6, "b": 4, "c": 3, "d": 2}
_DELTA: Final = 1e-6
_BY_COLUMNS: Final = (("a", "b"), ("c", "d"))
_BY_ROWS: Final = 3


def released(protocol: AnyMethod, unit: Unit, epsilon: float, seed: int, *, apart: bool = False) -> Release:
    """Run a study of the people with all parties here."""
    study, table = study_of(protocol, unit, epsilon, apart=apart), people()
    share = PEOPLE // len(study.parties)
    parts = {
        party.name: table.select(list(party.columns)) if party.columns else table.slice(place * share, share)
        for place, party in enumerate(study.parties)
    }
    return simulate(study, parts, seed=seed)


def study_of(protocol: AnyMethod, unit: Unit, epsilon: float, *, apart: bool = False) -> Study:
    """Return the study of a method: people are cut by columns if it needs that or `apart` says so, else by rows."""
    by_columns = tuple(
        Member(name=f"p{place}", people=PEOPLE, columns=names) for place, names in enumerate(_BY_COLUMNS)
    )
    by_rows = tuple(Member(name=f"p{place}", people=PEOPLE // _BY_ROWS) for place in range(_BY_ROWS))
    return Study(
        name="guard",
        unit=unit,
        budget=Budget.of(epsilon, _DELTA),
        protocol=protocol,
        parties=by_columns if apart or type(protocol).partition == "vertical" else by_rows,
        schema=schema_of(),
    )


def people() -> pa.Table:
    """Return everybody's rows; all columns depend on each other."""
    draws = np.random.default_rng(20261115)
    first = draws.binomial(5, 0.4, PEOPLE)
    second = np.clip(first // 2 + draws.integers(0, 2, PEOPLE), 0, 3)
    third = np.where(draws.random(PEOPLE) < 0.7, first % 3, draws.integers(0, 3, PEOPLE))
    fourth = draws.random(PEOPLE) < 0.15 + 0.2 * second
    return pa.table({"a": first, "b": second, "c": third, "d": fourth})


def schema_of() -> Schema:
    """Return the columns: three of small numbers, and one that is true or false."""
    numbers = [
        Integer(name=name, lower=0, upper=size - 1, missing=Instead(value=0))
        for name, size in SIZES.items()
        if name != "d"
    ]
    return Schema(columns=(*numbers, Boolean(name="d", missing=Instead(value=False))))


def codes(table: pa.Table, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return a column as numbers from 0."""
    return np.asarray(pc.cast(table[name].combine_chunks(), pa.int64()))
