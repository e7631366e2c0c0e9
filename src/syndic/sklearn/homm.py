"""Fit HOMM in the manner of scikit-learn: parameters in the constructor, `fit` on frames, `sample` synthetic rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import pyarrow as pa

from syndic.data import ReleasedTable, Schema, decode_rows
from syndic.errors import InputError
from syndic.methods import AnyMethod, Homm
from syndic.methods.histogram.homm import MergedTable
from syndic.privacy import Budget
from syndic.random import generator
from syndic.sklearn.parameters import Number
from syndic.sklearn.synthesizer import ONE, Synthesizer


@final
class HommSynthesizer(Synthesizer):
    """Noisy histograms of one table, or of one table for each party, and synthetic rows from them.

    For one organisation, or for a notebook that may see the rows of all. Each `fit` is a new release and costs
    `epsilon` at `delta`; sampling costs nothing. With `ledger` each fit is charged before its noise is drawn, and
    refused above `cap`; without it nothing adds up the cost of several fits.

    Args:
        schema: the public columns with their bounds and bins; never made from the rows.
        epsilon: privacy cost of one fit, for one person.
        delta: above 0 for Gaussian noise only; requires `people`.
        neighbours: `add_remove` hides whether a person is in the data, `replace` hides which values they have.
        rows_per_person: the most rows of one person in a table.
        parties_per_person: the most parties that hold the same person.
        person: the column that identifies people; surplus rows are left out. Without it the caller vouches for the
            bound.
        people: public number of people, one for all parties or by party. Required for delta and for `replace`.
        noise: `laplace` or `gaussian`.
        at_least: the smallest noisy count that is kept; larger values make large sparse grids possible.
        seed: seed for a reproducible fit. A seeded fit is not private, and its statement says so.
        ledger: path of a ledger file that adds up the cost of all fits; created if it does not exist.
        dataset: the name of the rows in the ledger; those of several parties are `dataset.party`.
        cap: the most epsilon that all fits together may cost, a number or a `Budget`; required for a new data set.

    Attributes:
        release_: the release of the last fit: table, statement, transcript, `write(folder)`.
        statement_: what that fit protects and what it cost.
    """

    noise: Literal["laplace", "gaussian"]
    at_least: int

    def __init__(  # noqa: PLR0913 - scikit-learn requires every parameter by name here
        self,
        schema: Schema | None = None,
        epsilon: Number = 1.0,
        *,
        delta: Number = 0,
        neighbours: Literal["add_remove", "replace"] = "add_remove",
        rows_per_person: int = 1,
        parties_per_person: int = 1,
        person: str | None = None,
        people: int | Mapping[str, int] | None = None,
        noise: Literal["laplace", "gaussian"] = "laplace",
        at_least: int = 1,
        seed: int | None = None,
        ledger: str | Path | None = None,
        dataset: str = ONE,
        cap: Number | Budget | None = None,
    ) -> None:
        self._keep(locals())

    def _protocol(self) -> AnyMethod:
        return Homm(noise=self.noise, at_least=self.at_least)

    def sample(self, n_samples: int | None = None) -> Any:
        """Return synthetic rows, as a frame of the library that was fitted or else an Arrow table. Costs nothing.

        Without `n_samples` these are the rows of the release, as many as the noisy counts say, party by party. With
        `n_samples` so many rows are drawn from the noisy counts, in random order.
        """
        if n_samples is None:
            return self._as_fitted(self._fitted().table)
        return self._as_fitted(ReleasedTable(self._drawn(n_samples)))

    def _drawn(self, count: int) -> pa.Table:
        release = self._fitted()
        if count < 0:
            raise InputError(f"n_samples ({count}) must be at least 0")
        result = release.result
        assert isinstance(result, MergedTable)  # noqa: S101 - for the type checker: Homm returns nothing else
        cells = np.concatenate([counts.cells for counts in result.histograms.values()])
        counts = np.concatenate([counts.counts for counts in result.histograms.values()])
        if count and not counts.sum():
            raise InputError("all noisy counts are 0, so there is nothing to draw from: raise epsilon")
        draws = generator(self._randomness())
        chances = counts / max(1, int(counts.sum()))
        chosen = draws.multinomial(count, chances) if len(counts) else counts
        table = decode_rows(release.study.schema, cells, chosen, draws).to_arrow()
        return table.take(draws.permutation(count))
