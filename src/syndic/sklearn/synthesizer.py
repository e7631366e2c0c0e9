"""Share what synthesizers have in common: a study for every fit, one ledger over all fits."""

import abc
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from syndic.data import ReleasedTable, Schema, open_source
from syndic.errors import InputError
from syndic.kernel import Member, Node, in_memory_node
from syndic.methods import AnyMethod
from syndic.privacy import Budget, Ledger, Unit
from syndic.random import Randomness, SimulationRandomness, SystemRandomness
from syndic.runtime import Local
from syndic.sklearn.parameters import Number, Parametrised, declare, refuse_seeded_charge
from syndic.study import Release, Statement, Study, simulate
from syndic.study.run import check_runnable, run_study

ONE = "data"
"""The party's name if a single table is fitted."""


class Synthesizer(Parametrised, abc.ABC):
    """Fit one table, or one for each party, and sample synthetic rows. Every `fit` is a new release with a new cost."""

    schema: Schema | None
    epsilon: Number
    delta: Number | None
    neighbours: Literal["add_remove", "replace"]
    rows_per_person: int
    parties_per_person: int
    person: str | None
    people: int | Mapping[str, int] | None
    seed: int | None
    ledger: str | Path | None
    dataset: str
    cap: Number | Budget | None

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
        self._library = _library_of(next(iter(sources.values())))
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


def _library_of(source: Any) -> str:
    """Return the name of the library that a frame comes from."""
    return type(source).__module__.partition(".")[0]
