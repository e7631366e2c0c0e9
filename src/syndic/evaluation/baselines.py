"""Make the baselines of an evaluation: real rows, independent columns, each party's rows, releases of the same method.

Each private baseline is a simulation of the study's own method on the same real rows. Its noise is seeded and protects
nobody: like every score computed from it, it is for the owner only.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import final

import msgspec
import pyarrow as pa

from syndic.data import Source, Table
from syndic.errors import InputError, PartyError
from syndic.evaluation.rows import Rows, independent, kept, released, resampled, thinned
from syndic.kernel import Member, budget_of, member
from syndic.methods import AnyMethod, Homm
from syndic.study import Study, simulate

TEST_SHARE = 0.3
REAL = "real rows"
INDEPENDENT = "independent columns"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Contender:
    """A table to compare with `truth`; `training` depends on no row of the real test fold, except through noise."""

    name: str
    what: str
    rows: Rows
    truth: Rows
    training: Rows


@final
@dataclass(frozen=True, eq=False)
class PooledSource:
    """Several sources as one, each limited to the rows that the unit allows for one person."""

    tables: tuple[Table, ...]

    def names(self) -> tuple[str, ...]:
        """Return the columns that the schema reads."""
        return self.tables[0].schema.inputs

    def batches(self, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one source after the other; people are identified within each source only."""
        columns = list(columns)
        for table in self.tables:
            weigh = table.weights()
            if weigh is None or table.person is None:
                yield from table.source.batches(columns)
                continue
            for batch in table.source.batches([*columns, table.person]):
                yield batch.filter(pa.array(weigh(batch.column(table.person)) > 0)).select(columns)

    def describe(self) -> str:
        """Return "all rows pooled"."""
        return "all rows pooled"


def held_out(real: Rows, *, seed: int) -> Rows:
    """Return the real rows that are kept for testing."""
    return thinned(real, seed=seed, label="fold", lower=0.0, upper=TEST_SHARE)


def halves_of(rows: Rows, *, seed: int) -> tuple[Rows, Rows]:
    """Return two random halves that share no row."""
    cut = {"seed": seed, "label": "halves"}
    return thinned(rows, **cut, lower=0.0, upper=0.5), thinned(rows, **cut, lower=0.5, upper=1.0)  # type: ignore[arg-type]  # mixed types


def without_noise(real: Rows, *, seed: int) -> list[Contender]:
    """Return the baselines without privacy: independent columns, a bootstrap, two halves."""
    fold = thinned(real, seed=seed, label="fold", lower=TEST_SHARE, upper=1.0)
    first, second = map(kept, halves_of(real, seed=seed))
    return [
        Contender(
            name=INDEPENDENT,
            what="every column drawn independently from its exact real frequencies, without noise",
            rows=kept(independent(real, seed=seed, label="columns")),
            truth=real,
            training=independent(fold, seed=seed, label="columns of the fold"),
        ),
        Contender(
            name=REAL,
            what="a bootstrap of the real rows given; for predictions, those outside the test fold",
            rows=kept(resampled(real, seed=seed, label="bootstrap")),
            truth=real,
            training=fold,
        ),
        Contender(
            name="two halves",
            what="one half of the real rows compared with the other; for predictions, half of the training rows",
            rows=first,
            truth=second,
            training=halves_of(fold, seed=seed)[0],
        ),
    ]


def own_rows(real: Rows, sizes: Mapping[str, int], *, seed: int) -> list[Contender]:
    """Return each party's own real rows, what it has without any release; nothing if there is one party only.

    `sizes` are the numbers of rows of the parties, in the order of `real`; with one party its rows are the real rows.
    """
    found: list[Contender] = []
    stop = 0
    for name, size in sizes.items() if len(sizes) > 1 else ():
        within, stop = range(stop, stop + size), stop + size
        found.append(
            Contender(
                name=f"{name}'s own rows",
                what=f"the real rows of {name} alone; for predictions, those outside the test fold",
                rows=kept(thinned(real, seed=seed, label="own", within=within)),
                truth=real,
                training=thinned(real, seed=seed, label="fold", lower=TEST_SHARE, within=within),
            )
        )
    return found


def with_noise(
    study: Study, tables: Mapping[str, Table], real: Rows, *, seed: int
) -> tuple[list[Contender], list[str]]:
    """Return each party's own release, the release of all rows pooled, and notes on those that cannot be made."""
    runs: dict[str, tuple[Study, Source, str]] = {}
    for name, table in tables.items():
        runs[f"{name} alone"] = (
            alone_study(study, name),
            table.source,
            f"the study's method on the rows of {name} alone, at its own budget",
        )
    everybody = PooledSource(tuple(tables.values()))
    what = "the same method and the study's budget, on all rows in one place"
    runs["pooled DP"] = (pooled_study(study, tuple(tables)), everybody, what)
    found, notes = [], []
    for title, (changed, source, what) in runs.items():
        try:
            table_of = simulate(changed, {changed.parties[0].name: source}, seed=seed).table
        except (InputError, PartyError) as error:
            notes.append(f"{title} is left out: {error}")
            continue
        rows = kept(released(table_of, study.schema))
        found.append(Contender(name=title, what=what, rows=rows, truth=real, training=rows))
    return found, notes


def alone_study(study: Study, name: str) -> Study:
    """Return the study of one party alone; its people are then at no other party."""
    budget = budget_of(study, name)
    return msgspec.structs.replace(
        study,
        name=f"{study.name}: {name} alone",
        unit=msgspec.structs.replace(study.unit, parties=1),
        budget=budget,
        protocol=_method_for(study, name),
        parties=(msgspec.structs.replace(member(study, name), budget=None),),
    )


def pooled_study(study: Study, names: tuple[str, ...]) -> Study:
    """Return the study with all rows at one party, where a person has the rows of all their parties."""
    members = [member(study, name) for name in names]
    bounds = [one.people for one in members if one.people is not None]
    people = sum(bounds) if len(bounds) == len(members) else None
    unit, places = study.unit.unweighted, min(study.unit.parties, len(names))
    return msgspec.structs.replace(
        study,
        name=f"{study.name}: pooled",
        unit=msgspec.structs.replace(unit, rows=unit.rows * places, parties=1, person=None, choose="first"),
        protocol=_method_for(study, "pooled"),
        parties=(Member(name="pooled", people=people),),
    )


def _method_for(study: Study, name: str) -> AnyMethod:
    """Return the study's method with the own bins of one party only."""
    method = study.protocol
    if not isinstance(method, Homm):
        return method
    return msgspec.structs.replace(method, bins=tuple(one for one in method.bins if one.party == name))
