"""What a synthesis opens carries the noise that its ledgers were charged for, and its law is Gaussian.

Every cell of every opened table is a draw: two tests at 1e-7 each a case, so that none fails by chance in practice.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

from support import charges, study_text
from syndic import Study
from syndic.data import Table, open_source
from syndic.methods.synthesis.result import SyntheticTable
from syndic.privacy import GaussianEvent
from syndic.study import simulate

pytestmark = pytest.mark.statistical

LEVEL = 1e-7
COLUMNS = "".join(
    f'[[schema.columns]]\nname = "c{place}"\nkind = "integer"\nlower = 0\nupper = 19\nmissing = {{ value = 0 }}\n'
    for place in range(4)
)


def held(seed: int) -> pa.Table:
    draws = np.random.default_rng(seed)
    return pa.table({f"c{place}": draws.integers(0, 20, 200) for place in range(4)})


def in_groups(table: Table, names: tuple[str, ...], groups: tuple[tuple[int, ...], ...]) -> NDArray[np.float64]:
    """Return exact counts, the levels of each column summed into groups."""
    counts = table.count(names).values.astype(np.float64)
    for axis, name in enumerate(names):
        if groups:
            of = np.array(groups[table.schema.names.index(name)])
            into = (of[:, None] == np.arange(of.max() + 1)).astype(np.float64)
            counts = np.moveaxis(np.moveaxis(counts, axis, -1) @ into, -1, axis)
    return counts


@pytest.mark.parametrize(
    ("parties", "unit", "moved", "kept"),
    [
        (1, 'neighbours = "add_remove"', 1, 1.0),
        (2, 'neighbours = "replace"', 2, 2 / 1),
        (4, 'neighbours = "add_remove"\nrows = 3\nparties = 2', 36, 4 / 3),
    ],
)
def test_opened_counts_have_the_noise_that_was_charged(
    parties: int, unit: str, moved: int, kept: float, tmp_path: Path
) -> None:
    """`moved` is the squared change of one table by one person; `kept` is all noise over that of the honest parties."""
    names = [f"p{place}" for place in range(parties)]
    members = "".join(f'[[parties]]\nname = "{name}"\npeople = 200\n' for name in names)
    study = Study.loads(
        study_text(
            unit=unit,
            budget="epsilon = 1.0\ndelta = 1e-6",
            protocol='method = "synthesis"',
            parties=members,
            columns=COLUMNS,
        )
    )
    sources = {name: held(place) for place, name in enumerate(names)}
    made = simulate(study, sources, folder=tmp_path).result
    assert isinstance(made, SyntheticTable)
    pooled = Table(study.schema, open_source(pa.concat_tables(sources.values())))
    overlap = study.unit.parties
    entries = list(charges(tmp_path, names[0]))
    (event,) = entries.pop(2).events
    asked_parities = made.note.parities
    assert asked_parities is not None
    assert isinstance(event, GaussianEvent)
    # each parity moves by all rows of a person, at all its parties: from -1 to 1 if they are replaced
    whole = (2 if study.unit.neighbours == "replace" else 1) * study.unit.rows * overlap
    wanted = asked_parities.sets * whole**2 / float(overlap * event.mu_squared) * kept
    assert asked_parities.standard_deviation**2 == pytest.approx(wanted, rel=1e-3)
    for number, entry in enumerate(entries):
        (event,) = entry.events
        assert isinstance(event, GaussianEvent)
        asked = made.note.rounds[number]
        tables = made.model.fitted.rounds[number]
        # at each of `overlap` parties the same charge: mu^2 of the whole change is their sum
        wanted = len(asked.tables) * moved / float(overlap * event.mu_squared) * kept
        assert asked.standard_deviation**2 == pytest.approx(wanted, rel=1e-3)
        noise = np.concatenate([(one.values - in_groups(pooled, one.names, asked.groups)).ravel() for one in tables])
        scaled = noise / asked.standard_deviation
        mean_square = stats.chi2.sf(scaled @ scaled, len(scaled)), stats.chi2.cdf(scaled @ scaled, len(scaled))
        assert min(mean_square) > LEVEL
        assert stats.kstest(scaled, "norm").pvalue > LEVEL
