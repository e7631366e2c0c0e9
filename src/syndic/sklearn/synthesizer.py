"""Synthesizers in the manner of scikit-learn: a study for every fit, one ledger over all fits."""

import abc
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal, Self, final

import numpy as np
import pyarrow as pa

from syndic.data import ReleasedTable, Schema, decode_rows, open_source
from syndic.errors import InputError
from syndic.kernel import Member, Node, in_memory_node
from syndic.methods import AnyMethod, Homm, Synthesis
from syndic.methods.histogram.homm import MergedTable
from syndic.methods.synthesis.result import ReleasedModel, SyntheticTable
from syndic.privacy import Budget, Ledger, Unit, default_delta
from syndic.random import Randomness, SimulationRandomness, SystemRandomness, generator
from syndic.runtime import Local
from syndic.sklearn.parameters import Number, Parametrised, declare, refuse_seeded_charge
from syndic.study import Release, Statement, Study, simulate
from syndic.study.run import check_runnable, run_study

ONE = "data"
"""The party's name if a single table is fitted."""


@dataclass(eq=False, repr=False)
class Synthesizer(Parametrised, abc.ABC):
    """Fit one table, or one for each party, and sample synthetic rows. Every `fit` is a new release with a new cost."""

    schema: Schema | None = None
    epsilon: Number = 1.0
    _: KW_ONLY
    delta: Number | None = 0
    neighbours: Literal["add_remove", "replace"] = "add_remove"
    rows_per_person: int = 1
    parties_per_person: int = 1
    person: str | None = None
    people: int | Mapping[str, int] | None = None
    seed: int | None = None
    ledger: str | Path | None = None
    dataset: str = ONE
    cap: Number | Budget | None = None

    @abc.abstractmethod
    def _protocol(self) -> AnyMethod:
        """Return the method that a fit runs."""

    @abc.abstractmethod
    def sample(self, n_samples: int | None = None) -> Any:
        """Return synthetic rows of the last fit."""

    def _delta(self, parties: tuple[str, ...]) -> Number:
        """Return the delta of a fit."""
        del parties
        return self.delta or 0

    def study(self, parties: tuple[str, ...] = (ONE,)) -> Study:
        """Return the study that `fit` runs; `syndic.plan` of it says what a fit would cost. Reads no row."""
        name = type(self).__name__
        if self.schema is None:
            raise InputError(f"schema is missing: {name}(schema=syndic.Schema(columns=(...)))")
        try:
            return Study(
                name="synthesizer",
                unit=Unit(
                    neighbours=self.neighbours,
                    rows=self.rows_per_person,
                    parties=self.parties_per_person,
                    person=self.person,
                ),
                budget=Budget.of(self.epsilon, self._delta(parties)),
                protocol=self._protocol(),
                parties=tuple(Member(name=party, people=self._people(party)) for party in parties),
                schema=self.schema,
                # every fit draws new noise, so each is an edition of its own; a seeded one repeats the first
                edition=1 if self.seed is not None else int(SystemRandomness().words(1)[0] >> np.uint64(11)) + 1,
            )
        except ValueError as error:
            raise InputError(f"{name}: {error}") from None

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Make a release of the rows: a frame, an Arrow table or a path, or one for each party by name.

        Each call costs `epsilon`. Columns that are not in the schema are not read.
        """
        if y is not None:
            raise InputError("y must be None: a label is a column like any other, in X and in the schema")
        sources = dict(X) if isinstance(X, Mapping) else {ONE: X}
        if not sources:
            raise InputError("X is empty: give a frame, or a mapping from party to frame")
        study = self.study(tuple(sources))
        refuse_seeded_charge(self.seed, self.ledger)
        charged = self.ledger is not None
        release = self._charged(study, sources) if charged else simulate(study, sources, seed=self.seed)
        self.release_: Release = release
        self.statement_: Statement = release.statement
        # of the first frame: samples are frames of the same library
        self._library = type(next(iter(sources.values()))).__module__.partition(".")[0]
        return self

    def _fitted(self) -> Release:
        if not self.__sklearn_is_fitted__():
            raise InputError("this synthesizer is not fitted: call fit(X) first")
        return self.release_

    def _as_fitted(self, table: ReleasedTable) -> Any:
        """Return the table as a frame of the library that was fitted, or else as an Arrow table."""
        if self._library == "pandas":
            return table.to_pandas()
        return table.to_polars() if self._library == "polars" else table.to_arrow()

    def _people(self, party: str) -> int | None:
        return self.people.get(party) if isinstance(self.people, Mapping) else self.people

    def _randomness(self) -> Randomness:
        return SystemRandomness() if self.seed is None else SimulationRandomness(self.seed, "sample")

    def _charged(self, study: Study, sources: Mapping[str, Any]) -> Release:
        """Run the study with every party's charges in the one ledger."""
        check_runnable(study, None)
        with ExitStack() as stack:
            nodes = {}
            for name, source in sources.items():
                nodes[name] = self._node(study, name, source)
                stack.callback(nodes[name].close)
            return run_study(study, Local(nodes), signatures=False, checked=True)

    def _node(self, study: Study, party: str, source: Any) -> Node:
        # people who may be at several parties are one data set: each party's cost is charged to one cap
        alone = party == ONE or self.parties_per_person > 1
        dataset = self.dataset if alone else f"{self.dataset}.{party}"
        payers = [one.name for one in study.parties if one.name == party or self.parties_per_person > 1]
        return in_memory_node(
            study.protocol,
            study.plan,
            party,
            open_source(source),
            lambda _label: SystemRandomness(),
            study=study.digest,
            dataset=dataset,
            ledger=self._open_ledger(study, dataset),
            charges=tuple(event for payer in payers for event in study.plan.events(payer)),
        )

    def _open_ledger(self, study: Study, dataset: str) -> Ledger:
        """Return the ledger with the data set declared."""
        # no stored answer is ever asked for again: another fit is another study
        ledger = Ledger.open(str(self.ledger), keep_answers=False)
        try:
            declare(ledger, dataset, self.cap, study.delta)
        except InputError:
            ledger.close()
            raise
        return ledger


@final
@dataclass(eq=False, repr=False, kw_only=True)
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

    noise: Literal["laplace", "gaussian"] = "laplace"
    at_least: int = 1

    def _protocol(self) -> AnyMethod:
        return Homm(noise=self.noise, at_least=self.at_least)

    def sample(self, n_samples: int | None = None) -> Any:
        """Return synthetic rows, as a frame of the library that was fitted or else an Arrow table. Costs nothing.

        Without `n_samples` these are the rows of the release, as many as the noisy counts say, party by party. With
        `n_samples` so many rows are drawn from the noisy counts, in random order.
        """
        release = self._fitted()
        if n_samples is None:
            return self._as_fitted(release.table)
        if n_samples < 0:
            raise InputError(f"n_samples ({n_samples}) must be at least 0")
        result = release.result
        assert isinstance(result, MergedTable)  # noqa: S101 - for the type checker: Homm returns nothing else
        cells = np.concatenate([counts.cells for counts in result.histograms.values()])
        counts = np.concatenate([counts.counts for counts in result.histograms.values()])
        if n_samples and not counts.sum():
            raise InputError("all noisy counts are 0, so there is nothing to draw from: raise epsilon")
        draws = generator(self._randomness())
        chances = counts / max(1, int(counts.sum()))
        chosen = draws.multinomial(n_samples, chances) if len(counts) else counts
        table = decode_rows(release.study.schema, cells, chosen, draws).to_arrow()
        return self._as_fitted(ReleasedTable(table.take(draws.permutation(n_samples))))


@final
@dataclass(eq=False, repr=False, kw_only=True)
class MarkovSynthesizer(Synthesizer):
    """A graphical model of all columns, fitted to noisy marginals, and synthetic rows from it.

    For many columns; `HommSynthesizer` suits up to four or five. One frame is fitted as by a trusted curator; the
    frames of several parties go through secure aggregation in this process. Costs, and parameters that are not listed
    here, are as in `HommSynthesizer`; queries cost nothing either.

    Args:
        delta: above 0, because the noise is Gaussian; by default what suits `people`.
        people: public bound on the number of people, one for all parties or by party. Required.
        selector: `one_shot` chooses marginals once, `adaptive` in several rounds.
        model_cells: the most cells of the model; by default what memory allows.

    Attributes:
        release_: the release of the last fit: table, model, statement, transcript, `write(folder)`.
        statement_: what that fit protects and what it cost.
    """

    delta: Number | None = None
    selector: Literal["adaptive", "one_shot"] = "one_shot"
    model_cells: int | None = None

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
