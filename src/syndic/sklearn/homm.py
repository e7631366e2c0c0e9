"""HOMM in the manner of scikit-learn: parameters in the constructor, `fit` on frames, `sample` synthetic rows.

For one organisation, or for a notebook that may see the rows of all of them. Every `fit` draws new noise, so every
`fit` is a new release with a new cost; sampling again from what was fitted costs nothing.
"""

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
    """Fits noisy histograms of one table, or of one table a party, and samples synthetic rows from them.

    Every `fit` costs `epsilon` (at `delta`) anew for the people in the rows. With `ledger`, a file that is created
    where it is missing, each fit is charged before its noise is drawn and refused above `cap`; without it nobody
    counts but you. With `seed` the noise repeats itself and protects nobody.

    Args:
        schema: the public columns with their bounds and bins; never made from the rows.
        epsilon: privacy cost of one fit, for one person.
        delta: above 0 for Gaussian noise only; needs `people`.
        neighbours: `add_remove` hides whether a person is there at all, `replace` which values they have.
        rows_per_person: the most rows of one person in a table.
        parties_per_person: the most parties that have the same person.
        person: column that tells whose a row is; surplus rows are left out. Without it you vouch for the bound.
        people: public number of people, for every party the same or by party. Needed for delta and for `replace`.
        noise: `laplace` or `gaussian`.
        at_least: the smallest noisy count that is kept; larger values make large sparse grids possible.
        seed: for repeatable trials on data that need no protection.
        ledger: path of a ledger file that keeps account over all fits.
        dataset: what the rows are called in the ledger; several parties are `dataset.party`.
        cap: the most epsilon that all fits together may cost, a number or a `Budget`; needed for a new data set.

    Attributes:
        release_: the release of the last fit: table, statement, transcript, `write(folder)`.
        statement_: what that fit protects and what it cost.
    """

    noise: Literal["laplace", "gaussian"]
    at_least: int

    def __init__(  # noqa: PLR0913 - scikit-learn wants every parameter by name here
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

    def sample(self, n: int | None = None) -> Any:
        """Return synthetic rows, as a frame of the library that was fitted or else an Arrow table. Costs nothing.

        Without `n` these are the rows of the release, as many as the noisy counts say, party by party. With `n`
        they are drawn anew from the noisy counts, in random order.
        """
        return self._as_fitted(ReleasedTable(self._drawn(n)) if n is not None else self._fitted().table)

    def _drawn(self, count: int) -> pa.Table:
        release = self._fitted()
        if count < 0:
            raise InputError(f"n ({count}) must not be negative")
        result = release.result
        assert isinstance(result, MergedTable)  # noqa: S101 - for the type checker: Homm returns nothing else
        cells = np.concatenate([counts.cells for counts in result.histograms.values()])
        counts = np.concatenate([counts.counts for counts in result.histograms.values()])
        if count and not counts.sum():
            raise InputError("the noisy counts are all zero, so there is nothing to draw from: raise epsilon")
        draws = generator(self._randomness())
        chances = counts / max(1, int(counts.sum()))
        chosen = draws.multinomial(count, chances) if len(counts) else counts
        table = decode_rows(release.study.schema, cells, chosen, draws).to_arrow()
        return table.take(draws.permutation(count))
