"""Columns of several parties open as counts with the noise that was charged; without a party's share enough is left.

Counts are draws: each test fails by chance with at most 1e-7 a comparison.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

from support import charges, synthesis_across
from syndic import Study
from syndic.data import Table, open_source
from syndic.methods.synthesis.result import SyntheticTable
from syndic.methods.table_noise import TableNoise
from syndic.noise import FineGaussianShare
from syndic.privacy import GaussianEvent
from syndic.study import simulate

pytestmark = pytest.mark.statistical

LEVEL = 1e-7
COUNT = 400
NAMES = [f"c{place}" for place in range(6)]
COLUMNS = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = 11\nmissing = {{ value = 0 }}\n'
    for name in NAMES
)
PARTY = {name: f"p{place // 2}" for place, name in enumerate(NAMES)}


def study(colluding: int, more: str = "") -> Study:
    parties = "".join(
        f'[[parties]]\nname = "p{place}"\npeople = {COUNT}\ncolumns = ["c{2 * place}", "c{2 * place + 1}"]\n'
        for place in range(3)
    )
    options = f"colluding = {colluding}\ninteractions = false\n{more}"
    return synthesis_across(options, parties=parties, columns=COLUMNS, budget="epsilon = 3\ndelta = 1e-6")


def table() -> pa.Table:
    draws = np.random.default_rng(4)
    return pa.table({name: draws.integers(0, 12, COUNT) for name in NAMES})


def in_groups(counts: NDArray[Any], names: tuple[str, ...], groups: tuple[tuple[int, ...], ...]) -> NDArray[np.float64]:
    """Return counts, the levels of each column summed into groups."""
    summed = counts.astype(np.float64)
    for axis, name in enumerate(names):
        if groups:
            of = np.array(groups[NAMES.index(name)])
            into = (of[:, None] == np.arange(of.max() + 1)).astype(np.float64)
            summed = np.moveaxis(np.moveaxis(summed, axis, -1) @ into, -1, axis)
    return summed


def off(made: SyntheticTable, pooled: Table) -> list[tuple[int, tuple[str, ...], float, NDArray[np.float64]]]:
    """Return for every opened table its round, its columns, the stated deviation, and how far it is from the truth."""
    found = []
    for number, (asked, tables) in enumerate(zip(made.note.rounds, made.model.fitted.rounds, strict=True)):
        for one, deviation in zip(tables, asked.deviation_of, strict=True):
            exact = in_groups(pooled.count(one.names).values, one.names, asked.groups)
            found.append((number, one.names, deviation, (one.values - exact).ravel()))
    return found


@pytest.mark.parametrize("colluding", [0, 1])
def test_opened_counts_have_the_noise_that_was_charged(colluding: int, tmp_path: Path) -> None:
    agreed, rows = study(colluding), table()
    sources = {party.name: rows.select(list(party.columns or ())) for party in agreed.parties}
    made = simulate(agreed, sources, folder=tmp_path).result
    assert isinstance(made, SyntheticTable)
    events = [event for entry in charges(tmp_path, "p1") for event in entry.events]
    scaled, tossed = [], 0
    for number, names, deviation, noise in off(made, Table(agreed.schema, open_source(rows))):
        event, tables = events[number], len(made.note.rounds[number].tables)
        assert isinstance(event, GaussianEvent)
        crossed = len({PARTY[name] for name in names}) == 2
        # a person moves each table by 2 in squared l2; three shares, of which two are enough if one party may collude
        wanted, found = 2 * tables / float(event.mu_squared), deviation**2
        if crossed and colluding and found < 1.1 * wanted:
            # one copy, from coins; their traffic does not have room for all tables
            assert found > wanted
            tossed += 1
        else:
            assert found == pytest.approx(wanted * (3 / 2 if crossed and colluding else 1), rel=1e-3)
        scaled.append(noise / deviation)
    assert bool(tossed) == bool(colluding)
    every = np.concatenate(scaled)
    assert min(stats.chi2.sf(every @ every, every.size), stats.chi2.cdf(every @ every, every.size)) > LEVEL
    assert stats.kstest(every, "norm").pvalue > LEVEL
    assert any(len({PARTY[name] for name in names}) == 2 for one in made.note.rounds for names in one.tables)


def test_what_is_left_when_a_party_takes_its_own_share_off_is_what_was_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no coins are proven, every table across parties less one party's noise has the noise of the charge."""
    shares: list[NDArray[np.float64]] = []
    original = TableNoise.apply

    def noted(self: TableNoise, values: NDArray[np.int64], randomness: Any) -> NDArray[np.int64]:
        noisy = original(self, values, randomness)
        assert isinstance(self.event, GaussianEvent)
        assert isinstance(self.share, FineGaussianShare)
        # two of three shares have the noise of the charge
        charged = float(self.share.sensitivity_squared / self.event.mu_squared / 2) ** 0.5
        shares.append((noisy - values * self.scale)[self.shared] / self.scale / charged)
        return noisy

    monkeypatch.setattr(TableNoise, "apply", noted)
    agreed, rows = study(1, 'adversary = "passive"'), table()
    simulate(agreed, {party.name: rows.select(list(party.columns or ())) for party in agreed.parties}, folder=tmp_path)
    every = np.concatenate(shares)
    assert every.size > 500
    # one share by itself: standard normal in units of half of the charge
    assert stats.kstest(every, "norm").pvalue > LEVEL
    assert min(stats.chi2.sf(every @ every, every.size), stats.chi2.cdf(every @ every, every.size)) > LEVEL
