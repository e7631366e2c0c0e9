"""HOMM in the manner of scikit-learn: parameters in the constructor, `fit` on frames, `sample` synthetic rows.

For one organisation, or for a notebook that may see the rows of all of them. Every `fit` draws new noise, so every
`fit` is a new release with a new cost; sampling again from what was fitted costs nothing.
"""

import inspect
from collections.abc import Mapping
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Self, final

import numpy as np
import pyarrow as pa

from syndic.data import ReleasedTable, Schema, Table, decode_rows, open_source
from syndic.errors import InputError
from syndic.kernel import Desk, Member, Memory, Node, Session, run, steps_of
from syndic.privacy import Budget, Ledger, Unit
from syndic.protocols import Homm
from syndic.protocols.homm import MergedTable
from syndic.random import Randomness, SimulationRandomness, SystemRandomness, generator
from syndic.runtime import Local
from syndic.study import Release, Statement, Study, simulate
from syndic.study.statement import state
from syndic.version import __version__

Number = float | str | Fraction
ONE = "data"
"""The party's name where a single table is fitted."""


@final
class HommSynthesizer:
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
        # stored as given and checked at fit: scikit-learn's clone compares them
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.rows_per_person = rows_per_person
        self.parties_per_person = parties_per_person
        self.person = person
        self.people = people
        self.noise = noise
        self.at_least = at_least
        self.seed = seed
        self.ledger = ledger
        self.dataset = dataset
        self.cap = cap

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` changes nothing, as no parameter is an estimator."""
        del deep
        return {name: getattr(self, name) for name in _defaults()}

    def set_params(self, **parameters: Any) -> Self:
        """Set some parameters; what was fitted stays until the next `fit`."""
        unknown = [name for name in parameters if name not in _defaults()]
        if unknown:
            raise InputError(f"unknown parameter '{unknown[0]}'; the parameters are {', '.join(_defaults())}")
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        shown = {name: value for name, value in self.get_params().items() if value != _defaults()[name]}
        if self.schema is not None:
            shown["schema"] = f"<{', '.join(self.schema.names)}>"
        words = (f"{name}={value if name == 'schema' else repr(value)}" for name, value in shown.items())
        return f"HommSynthesizer({', '.join(words)})"

    def study(self, parties: tuple[str, ...] = (ONE,)) -> Study:
        """Return the study that `fit` runs: `syndic.plan` of it says what a fit would cost, before any row is read."""
        if self.schema is None:
            raise InputError("schema is missing: HommSynthesizer(schema=syndic.Schema(columns=(...)))")
        try:
            return Study(
                name="synthesizer",
                unit=Unit(
                    neighbours=self.neighbours,
                    rows=self.rows_per_person,
                    parties=self.parties_per_person,
                    person=self.person,
                ),
                budget=Budget.of(self.epsilon, self.delta),
                protocol=Homm(noise=self.noise, at_least=self.at_least),
                parties=tuple(Member(name=name, people=self._people(name)) for name in parties),
                schema=self.schema,
                # noise is new at every fit, so each is an edition of its own; a seeded one repeats the first
                edition=1 if self.seed is not None else int(SystemRandomness().words(1)[0] >> np.uint64(11)) + 1,
            )
        except ValueError as error:
            raise InputError(f"HommSynthesizer: {error}") from None

    def fit(self, X: Any, y: None = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Release noisy histograms of the rows: a frame, an Arrow table or a path, or one for each party by name.

        Charges `epsilon` every time it is called. Columns that the schema lacks are not read.
        """
        if y is not None:
            raise InputError("y must be None: a label is a column like any other, in X and in the schema")
        sources = dict(X) if isinstance(X, Mapping) else {ONE: X}
        if not sources:
            raise InputError("X has no party: give a frame, or a mapping from party to frame")
        study = self.study(tuple(sources))
        if self.ledger is None:
            release = simulate(study, sources, seed=self.seed)
        elif self.seed is not None:
            raise InputError(
                "a seeded fit protects nobody, so there is nothing to account for: leave out seed or ledger"
            )
        else:
            release = self._charged(study, sources)
        self.release_: Release = release
        self.statement_: Statement = release.statement
        self._library = _library_of(next(iter(sources.values())))
        return self

    def sample(self, n: int | None = None) -> Any:
        """Return synthetic rows, as a frame of the library that was fitted or else an Arrow table. Costs nothing.

        Without `n` these are the rows of the release, as many as the noisy counts say, party by party. With `n`
        they are drawn anew from the noisy counts, in random order.
        """
        table = ReleasedTable(self._drawn(n)) if n is not None else self._fitted().table
        if self._library == "pandas":
            return table.to_pandas()
        return table.to_polars() if self._library == "polars" else table.to_arrow()

    def fit_sample(self, X: Any, y: None = None, n: int | None = None) -> Any:  # noqa: N803
        """Fit, then sample."""
        return self.fit(X, y).sample(n)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "release_")

    def _fitted(self) -> Release:
        if not self.__sklearn_is_fitted__():
            raise InputError("this synthesizer is not fitted yet: call fit(X) first")
        return self.release_

    def _people(self, party: str) -> int | None:
        return self.people.get(party) if isinstance(self.people, Mapping) else self.people

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

    def _randomness(self) -> Randomness:
        return SystemRandomness() if self.seed is None else SimulationRandomness(self.seed, "sample")

    def _charged(self, study: Study, sources: Mapping[str, Any]) -> Release:
        """Run the study with every party's charges in the one ledger."""
        study.check()
        with ExitStack() as stack:
            nodes = {}
            for name, source in sources.items():
                nodes[name] = self._node(study, name, source)
                stack.callback(nodes[name].close)
            session = Session(
                runtime=Local(nodes),
                study=study.digest,
                terms=study,
                steps=steps_of(type(study.protocol)),
                randomness=SystemRandomness(),
            )
            result = run(study.protocol, session)
        statement = state(study, simulated=False, version=__version__)
        return Release(study=study, result=result, statement=statement, transcript=tuple(session.transcript))

    def _node(self, study: Study, party: str, source: Any) -> Node:
        table = Table(
            schema=study.schema,
            source=open_source(source),
            person=study.unit.person,
            rows_per_person=study.unit.rows,
        )
        # people who may be at several parties are one set of people, and pay at each of them from one cap
        alone = party == ONE or self.parties_per_person > 1
        dataset = self.dataset if alone else f"{self.dataset}.{party}"
        desk = Desk(
            name=party,
            terms=study,
            study=study.digest,
            spends=tuple(
                event
                for other in study.parties
                if other.name == party or self.parties_per_person > 1
                for event in study.protocol.spends(study, other.name)
            ),
            dataset=dataset,
            ledger=self._open_ledger(dataset),
            memory=Memory(":memory:"),  # an answer is asked for once: another fit is another study
            open_table=lambda: table,
            randomness=lambda _label: SystemRandomness(),
        )
        return Node(protocol=study.protocol, desk=desk)

    def _open_ledger(self, dataset: str) -> Ledger:
        """Return the ledger with the data set declared; the cap that a ledger has is not changed from here."""
        cap = self.cap if isinstance(self.cap, Budget) or self.cap is None else Budget.of(self.cap, self.delta)
        ledger = Ledger.open(str(self.ledger))
        known = dataset in ledger.datasets()
        if known and cap in (None, ledger.spent(dataset).cap):
            return ledger
        if not known and cap is not None:
            ledger.declare(dataset, cap)
            return ledger
        ledger.close()
        if known:
            raise InputError(
                f"cap differs from the one that the ledger has for '{dataset}': leave cap out, or change the ledger's "
                "with syndic.Ledger.declare"
            )
        raise InputError(f"the ledger does not know '{dataset}' yet: give cap, the most that all fits may cost")


def _defaults() -> dict[str, Any]:
    """Return the constructor's parameters with their defaults."""
    parameters = inspect.signature(HommSynthesizer.__init__).parameters
    return {name: parameter.default for name, parameter in parameters.items() if name != "self"}


def _library_of(source: Any) -> str:
    """Return the name of the library that a frame comes from."""
    return type(source).__module__.partition(".")[0]
