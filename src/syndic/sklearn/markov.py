"""Graphical models in the manner of scikit-learn: `fit` on frames, `sample` rows, also with some values given, `query`.

One frame is fitted as by a trusted curator; several parties' frames go through masked sums in this process. Every `fit`
draws new noise, so every `fit` is a new release with a new cost; sampling and asking what was fitted costs nothing.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, final

import pyarrow as pa

from syndic.data import ReleasedTable, Schema
from syndic.errors import InputError
from syndic.methods import AnyMethod, Synthesis
from syndic.methods.synthesis.result import ReleasedModel, SyntheticTable
from syndic.privacy import Budget, default_delta
from syndic.random import generator
from syndic.sklearn.parameters import Number
from syndic.sklearn.synthesizer import ONE, Synthesizer


@final
class MarkovSynthesizer(Synthesizer):
    """Fits a graphical model of all columns to noisy tables of counts, and samples synthetic rows from it.

    For many columns; `HommSynthesizer` suits up to four or five. Every `fit` costs `epsilon` (at `delta`) anew for the
    people in the rows. With `ledger`, a file that is created where it is missing, each fit is charged before its noise
    is drawn and refused above `cap`; without it nobody counts but you. With `seed` the noise repeats itself and
    protects nobody.

    Args:
        schema: the public columns with their bounds and bins; never made from the rows.
        epsilon: privacy cost of one fit, for one person.
        delta: the noise is Gaussian, so it must be above 0; by default what suits `people`.
        people: public bound on the number of people, for every party the same or by party. Needed.
        neighbours: `add_remove` hides whether a person is there at all, `replace` which values they have.
        rows_per_person: the most rows of one person in a table.
        parties_per_person: the most parties that have the same person.
        person: column that tells whose a row is; surplus rows are left out. Without it you vouch for the bound.
        selector: `one_shot` chooses tables once, `adaptive` in several rounds.
        model_cells: the most cells of the model, by default what memory allows.
        seed: for repeatable trials on data that need no protection.
        ledger: path of a ledger file that keeps account over all fits.
        dataset: what the rows are called in the ledger; several parties are `dataset.party`.
        cap: the most epsilon that all fits together may cost, a number or a `Budget`; needed for a new data set.

    Attributes:
        release_: the release of the last fit: table, model, statement, transcript, `write(folder)`.
        statement_: what that fit protects and what it cost.
    """

    selector: Literal["adaptive", "one_shot"]
    model_cells: int | None

    def __init__(  # noqa: PLR0913 - scikit-learn wants every parameter by name here
        self,
        schema: Schema | None = None,
        epsilon: Number = 1.0,
        *,
        delta: Number | None = None,
        people: int | Mapping[str, int] | None = None,
        neighbours: Literal["add_remove", "replace"] = "add_remove",
        rows_per_person: int = 1,
        parties_per_person: int = 1,
        person: str | None = None,
        selector: Literal["adaptive", "one_shot"] = "one_shot",
        model_cells: int | None = None,
        seed: int | None = None,
        ledger: str | Path | None = None,
        dataset: str = ONE,
        cap: Number | Budget | None = None,
    ) -> None:
        self._keep(locals())

    def _protocol(self) -> AnyMethod:
        return Synthesis(selector=self.selector, model_cells=self.model_cells)

    def _delta(self, parties: tuple[str, ...]) -> Number:
        if self.delta is not None:
            return self.delta
        bounds = [self._people(party) for party in parties]
        if None in bounds:
            raise InputError("people is missing: give a public bound on the number of people, the noise depends on it")
        return default_delta(sum(bound for bound in bounds if bound is not None))

    @property
    def model_(self) -> ReleasedModel:
        """The model of the last fit."""
        result = self._fitted().result
        assert isinstance(result, SyntheticTable)  # noqa: S101 - for the type checker: Synthesis returns nothing else
        return result.model

    def sample(self, n: int | None = None, *, given: Mapping[str, Any] | None = None) -> Any:
        """Return synthetic rows, as a frame of the library that was fitted or else an Arrow table. Costs nothing.

        Without `n` and `given` these are the rows of the release. Else `n` rows are drawn anew from the model, by
        default as many as the release has; with `given`, such as `{"smoker": True}`, all of them have these values.
        """
        if n is None and given is None:
            return self._as_fitted(self._fitted().table)
        count = len(self._fitted().table) if n is None else n
        if count < 0:
            raise InputError(f"n ({count}) must not be negative")
        draws = generator(self._randomness())
        return self._as_fitted(self.model_.sample(count, given=given, generator=draws))

    def query(self, columns: Sequence[str]) -> Any:
        """Return the expected number of rows for each combination of values, in a column `count`. Costs nothing."""
        table: pa.Table = self.model_.table(tuple(columns))
        return self._as_fitted(ReleasedTable(table))
