"""Studies of a synthetic table with one party or more, for the suites about synthesis."""

from typing import Any

import numpy as np
import pyarrow as pa

from support import ONE, rows, study_text
from syndic import Release, Study
from syndic.data import Table, open_source
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.synthesis.result import SyntheticTable

NAMES = ("north", "south", "east", "west", "centre")
FLAGS = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "categorical"\nvalues = ["no", "yes"]\n'
    'outside = { value = "no" }\nmissing = { value = "no" }\n'
    for name in ("flag", "mark")
)


def study(protocol: str = "", *, budget: str = ONE, parties: int = 2, people: int = 60, **parts: str) -> Study:
    members = "".join(f'[[parties]]\nname = "{name}"\npeople = {people}\n' for name in NAMES[:parties])
    text = study_text(protocol=f'method = "synthesis"\n{protocol}', budget=budget, parties=members, **parts)
    return Study.loads(text)


def sources(parties: int = 2, count: int = 60) -> dict[str, pa.Table]:
    return {name: rows(count, seed) for seed, name in enumerate(NAMES[:parties])}


def planned(agreed: Study) -> SynthesisPlan:
    return agreed.plan_as(SynthesisPlan)


def result(release: Release) -> SyntheticTable:
    assert isinstance(release.result, SyntheticTable)
    return release.result


def exact(agreed: Study, tables: dict[str, pa.Table], names: tuple[str, ...]) -> np.ndarray[Any, Any]:
    return Table(agreed.schema, open_source(pa.concat_tables(tables.values()))).count(names).values
