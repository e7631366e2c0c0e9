"""VertiMRF on one small fixed table: sketches tell more than responses as published, and neither invents dependence."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from support import vertimrf_study
from syndic import Study, simulate

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

COUNT = 3000
NAMES = ("a", "b", "c", "d")
COLUMNS = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "boolean"\nmissing = {{ value = false }}\n' for name in NAMES
)
PARTIES = "".join(
    f'[[parties]]\nname = "{name}"\npeople = {COUNT}\ncolumns = {held}\n'
    for name, held in (("north", '["a", "b"]'), ("south", '["c", "d"]'))
)


def table() -> pa.Table:
    """Return columns that all follow one hidden one, each in nine rows of ten."""
    draws = np.random.default_rng(11)
    hidden = draws.random(COUNT) < 0.5
    return pa.table({name: hidden ^ (draws.random(COUNT) < 0.1) for name in NAMES})


def apart(study: Study, seed: int) -> float:
    """Return the mean distance of the tables of columns at different parties."""
    rows = table()
    sources = {party.name: rows.select(list(party.columns or ())) for party in study.parties}
    made = simulate(study, sources, seed=seed).table.to_arrow()
    found = []
    for one, other in combinations(NAMES, 2):
        if {one, other} not in ({"a", "b"}, {"c", "d"}):
            shares = [
                np.bincount(2 * np.array(part[one], dtype=int) + np.array(part[other], dtype=int), minlength=4)
                / len(part)
                for part in (rows, made)
            ]
            found.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(found))


def study(options: str, neighbours: str) -> Study:
    return vertimrf_study(
        options, parties=PARTIES, columns=COLUMNS, budget="epsilon = 1\ndelta = 1e-6", neighbours=neighbours
    )


def test_printed_sketches_tell_more_than_printed_responses_and_those_more_than_nothing() -> None:
    """The noise of a printed response is about four times that of a printed sketch; seeds are fixed."""
    sketched = study("as_published = true\nedges = 4\nrefined = 1\nrepetitions = 2000", "add_remove")
    responded = study('as_published = true\nway = "oracle"\nedges = 4\nrefined = 1', "replace")
    nothing = study('as_published = true\nway = "oracle"\nedges = 0', "replace")
    means = [float(np.mean([apart(one, seed) for seed in range(4)])) for one in (sketched, responded, nothing)]
    assert means[0] < means[1]
    assert means[0] < means[2] / 2
