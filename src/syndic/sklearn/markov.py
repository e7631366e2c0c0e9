"""Fit graphical models in the manner of scikit-learn: `fit` on frames, `sample` rows, `query` tables."""

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
    """A graphical model of all columns, fitted to noisy marginals, and synthetic rows from it.

    For many columns; `HommSynthesizer` suits up to four or five. One frame is fitted as by a trusted curator; the
    frames of several parties go through secure aggregation in this process. Each `fit` is a new release and costs
    `epsilon` at `delta`; sampling and queries cost nothing. With `ledger` each fit is charged before its noise is
    drawn, and refused above `cap`; without it nothing adds up the cost of several fits.

    Args:
        schema: the public columns with their bounds and bins; never made from the rows.
        epsilon: privacy cost of one fit, for one person.
        delta: above 0, because the noise is Gaussian; by default what suits `people`.
        people: public bound on the number of people, one for all parties or by party. Required.
        neighbours: `add_remove` hides whether a person is in the data, `replace` hides which values they have.
        rows_per_person: the most rows of one person in a table.
        parties_per_person: the most parties that hold the same person.
        person: the column that identifies people; surplus rows are left out. Without it the caller vouches for the
            bound.
        selector: `one_shot` chooses marginals once, `adaptive` in several rounds.
        model_cells: the most cells of the model; by default what memory allows.
        seed: seed for a reproducible fit. A seeded fit is not private, and its statement says so.
        ledger: path of a ledger file that adds up the cost of all fits; created if it does not exist.
        dataset: the name of the rows in the ledger; those of several parties are `dataset.party`.
        cap: the most epsilon that all fits together may cost, a number or a `Budget`; required for a new data set.

    Attributes:
        release_: the release of the last fit: table, model, statement, transcript, `write(folder)`.
        statement_: what that fit protects and what it cost.
    """

    selector: Literal["adaptive", "one_shot"]
    model_cells: int | None

    def __init__(  # noqa: PLR0913 - scikit-learn requires every parameter by name here
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
            raise InputError("people is missing: give a public bound on the number of people, from which delta follows")
        return default_delta(sum(bound for bound in bounds if bound is not None))

    @property
    def model_(self) -> ReleasedModel:
        """The model of the last fit."""
        result = self._fitted().result
        assert isinstance(result, SyntheticTable)  # noqa: S101 - for the type checker: Synthesis returns nothing else
        return result.model

    def sample(self, n_samples: int | None = None, *, given: Mapping[str, Any] | None = None) -> Any:
        """Return synthetic rows, as a frame of the library that was fitted or else an Arrow table. Costs nothing.

        Without arguments these are the rows of the release. Otherwise `n_samples` rows are drawn from the model, by
        default as many as the release has; with `given`, such as `{"smoker": True}`, all of them have these values.
        """
        if n_samples is None and given is None:
            return self._as_fitted(self._fitted().table)
        count = len(self._fitted().table) if n_samples is None else n_samples
        if count < 0:
            raise InputError(f"n_samples ({count}) must be at least 0")
        draws = generator(self._randomness())
        return self._as_fitted(self.model_.sample(count, given=given, generator=draws))

    def query(self, columns: Sequence[str]) -> Any:
        """Return the expected number of rows for each combination of values, in a column `count`. Costs nothing."""
        table: pa.Table = self.model_.table(tuple(columns))
        return self._as_fitted(ReleasedTable(table))
