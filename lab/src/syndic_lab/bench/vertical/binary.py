"""Made-up tables of binary columns, on which noise counts for more than on columns of many values.

Every pair of columns is worth its noise there, so the variance of a count shows in every distance.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from syndic.data import Schema
from syndic_lab.bench.model.synthesis_data import Coded
from syndic_lab.bench.row import Row
from syndic_lab.bench.vertical.run import of_servers, of_table

PEOPLE: Final = 21_574
COLUMNS: Final = 16


def factors(number: int, people: int = PEOPLE) -> Coded:
    """Return a table of 16 binary columns that follow hidden normal numbers: each one so many columns in a row.

    A column is whether loading x hidden number + normal is above a threshold; loadings are from 0.5 to 1.5, thresholds
    from -1 to 1.
    """
    draws = np.random.default_rng(number)
    hidden = np.repeat(draws.normal(size=(people, number)), COLUMNS // number, axis=1)
    values = hidden * draws.uniform(0.5, 1.5, COLUMNS) + draws.normal(size=hidden.shape)
    codes = (values > draws.uniform(-1.0, 1.0, COLUMNS)).astype(np.int64)
    names = [f"b{place}" for place in range(COLUMNS)]
    name = f"binary, {number} factor{'s' if number > 1 else ''}"
    table = pa.table({name: codes[:, place] for place, name in enumerate(names)})
    return Coded(name, Schema.from_domain(dict.fromkeys(names, 2)), table)


def of_binary(seeds: Sequence[int], parties: Sequence[int]) -> Iterator[Row]:
    """Yield the figures of one factor behind all columns, and of one for each half."""
    for number in (1, 2):
        yield from of_table(factors(number), seeds, parties)
        if max(parties) > 3:
            yield from of_servers(factors(number), seeds, max(parties))
