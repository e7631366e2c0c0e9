"""Audits of synthetic tables from different columns by other ways: releases whose laws nobody knows in closed form.

What speaks for a table is learnt: the direction in which all noisy numbers of the first runs differ.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from syndic.audit.horizontal import APPROXIMATE, REPLACE
from syndic.audit.setting import Setting, rows_of, study_of
from syndic.audit.stage import Run
from syndic.audit.trial import Scores
from syndic.kernel import Protocol
from syndic.protocols import DistDiffGen, Glued, LatentTreeSynthesis, VertiGan, VertiMRF

PEOPLE: Final = 8
OUTSIDE: Final[Mapping[str, str]] = {
    "align": "it tells the parties whom they have in common, outside differential privacy: there is no epsilon to break"
}
"""Methods without an audit, and why."""


def others() -> Iterator[Setting]:
    """Yield a setting for every further method; the one that needs torch only where it is installed."""
    plain = (("a", ("x", "w")), ("b", ("y",)))
    yield _setting("glued", Glued(rows=4), plain)
    yield _setting("dplt", LatentTreeSynthesis(rows=4), plain)
    yield _setting("vertimrf sketch", VertiMRF(), plain)
    yield _setting("vertimrf oracle", VertiMRF(way="oracle"), plain)
    labelled = (("a", ("x", "y")), ("b", ("w", "y")))
    yield _setting("distdiffgen", DistDiffGen(label="y", specialisations=2), labelled)
    if find_spec("torch") is not None:
        tiny: dict[str, Any] = {"trunk": (4, 5), "branch": (6, 3), "critic": 4, "noise": 3}
        yield _setting("vertigan", VertiGan(rounds=2, critic_steps=2, batch=2, **tiny), plain)


def _setting(name: str, protocol: Protocol, parties: tuple[tuple[str, tuple[str, ...]], ...]) -> Setting:
    study = study_of(
        protocol,
        columns=(("x", 2), ("w", 2), ("y", 2)),
        parties={party: (PEOPLE, held) for party, held in parties},
        unit=REPLACE,
        budget=APPROXIMATE,
    )
    one, other = ({party: _table(held, value) for party, held in parties} for value in (1, 0))
    return Setting(name=name, study=study, one=one, other=other, views={}, learnt=noisy_numbers, quick=5, full=300)


def _table(columns: tuple[str, ...], value: int) -> pa.Table:
    """Return one person with the same value everywhere, and others, half of whom have each value."""
    return rows_of(**{name: [value, *(place % 2 for place in range(PEOPLE - 1))] for name in columns})


def noisy_numbers(run: Run) -> Scores:
    """Return all numbers in answers that are called noisy, in the order in which they came."""
    found = [numbers for each in run.seen if each.reveals == "noisy" for numbers in _numbers(each.message())]
    return np.concatenate([np.zeros(1), *found])


def _numbers(value: Any) -> Iterator[Scores]:
    if isinstance(value, np.ndarray):
        yield value.astype(np.float64).ravel()
    elif isinstance(value, bytes) and len(value) % 4 == 0:
        # what travels as bytes in a noisy answer are numbers of single precision
        yield np.frombuffer(value, dtype="<f4").astype(np.float64)
    elif isinstance(value, int | float):
        yield np.array([float(value)])
    elif isinstance(value, dict):
        for each in value.values():
            yield from _numbers(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _numbers(getattr(value, name))
