"""Audits of models and synthetic tables learnt from different people."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from syndic.audit.horizontal import APPROXIMATE, COARSE, REPLACE, THREE
from syndic.audit.setting import COALITION, RELEASE, Setting, rows_of, study_of
from syndic.audit.stage import Run
from syndic.protocols import Risk, Synthesis
from syndic.study import Study

FEATURES: Final = 3
COLUMNS: Final = (*((f"x{place}", 2) for place in range(FEATURES)), ("y", 2))


def learning() -> Iterator[Setting]:
    """Yield a setting for every sound scheme of learning, and for the synthesis."""
    yield from _under_masks()
    yield from _local()
    yield from _synthesis()


def _table(*labels: int) -> pa.Table:
    """Return rows that all have every feature, so that a label moves all coefficients alike."""
    return rows_of(**{f"x{place}": [1] * len(labels) for place in range(FEATURES)}, y=labels)


ONE: Final = {"a": _table(1, 0), "b": _table(1, 0), "c": _table(1, 0)}
OTHER: Final = {**ONE, "a": _table(0, 0)}


def _risk(scheme: Any, **options: Any) -> Study:
    protocol = Risk(label="y", loss="huber", intercept=False, scheme=scheme, **options)
    return study_of(protocol, columns=COLUMNS, parties=THREE, unit=REPLACE, budget=COARSE)


def _under_masks() -> Iterator[Setting]:
    study = _risk("mpc_grad", iterations=2, path=True)
    yield Setting(
        name="risk mpc_grad",
        study=study,
        one=ONE,
        other=OTHER,
        views={
            RELEASE: _sums,
            COALITION: lambda run: _sums(run, "b"),
        },
        quick=60,
    )
    for scheme, options in (
        ("mpc_out", {"regularisation": 1.0}),
        ("newton", {"iterations": 3}),
        ("pathak", {"regularisation": 1.0}),
    ):
        study = _risk(scheme, **options)
        yield Setting(
            name=f"risk {scheme}",
            study=study,
            one=ONE,
            other=OTHER,
            views={RELEASE: lambda run: float(np.sum(run.result.model.coefficients))},
            quick=30 if scheme == "newton" else 70,
        )


def _sums(run: Run, *colluding: str) -> float:
    """Return what speaks for the label: the noisy sums of all rounds, less what colluding parties drew."""
    protocol: Any = run.study.protocol
    scheme = protocol.scheme_of(run.study)
    path = np.asarray(run.result.path)
    sums = (path[:-1] * (1 - scheme.rate * scheme.regularisation) - path[1:]) / scheme.rate
    sums = sums * scheme.people / scheme.query(1).unit
    for party in colluding:
        for place in range(len(sums)):
            share = protocol.share_of(run.study, scheme.query(place + 1))
            sums[place] -= run.own_noise(party, share, sums.shape[1], door=place)
    return -float(sums.sum())


def _local() -> Iterator[Setting]:
    for scheme, options in (("local_grad", {"iterations": 2}), ("local_out", {"regularisation": 1.0})):
        study = _risk(scheme, **options)
        yield Setting(
            name=f"risk {scheme}",
            study=study,
            one=ONE,
            other=OTHER,
            views={RELEASE: _released},
            quick=60,
        )


def _released(run: Run) -> float:
    """Return the sum of all numbers that the person's party gave out in all rounds: a gradient points away."""
    said = [each.message().values.sum() for each in run.seen if (each.party, each.step) == ("a", "release")]
    return float(sum(said)) * (-1 if getattr(run.study.protocol, "scheme", "") == "local_grad" else 1)


def _synthesis() -> Iterator[Setting]:
    one = {"a": rows_of(x=[1, 0], y=[1, 0]), "b": rows_of(x=[0, 1], y=[1, 0])}
    other = {"a": rows_of(x=[0, 0], y=[0, 0]), "b": rows_of(x=[0, 1], y=[1, 0])}
    for selector in ("one_shot", "adaptive"):
        protocol: Any = Synthesis(selector=selector, rows=2)
        study = study_of(
            protocol,
            columns=(("x", 2), ("y", 2)),
            parties={"a": (2, None), "b": (2, None)},
            unit=REPLACE,
            budget=APPROXIMATE,
        )
        yield Setting(
            name=f"synthesis {selector}",
            study=study,
            one=one,
            other=other,
            views={RELEASE: opened_tables},
            quick=8,
            full=400,
        )


def opened_tables(run: Run) -> float:
    """Return what speaks for the higher levels in all tables that were opened, beside the noise of each."""
    total = 0.0
    for asked, tables in zip(run.result.note.rounds, run.result.model.fitted.rounds, strict=True):
        for table, deviation in zip(tables, asked.deviation_of, strict=True):
            values = np.asarray(table.values, dtype=np.float64)
            total += float(values.ravel()[-1] - values.ravel()[0]) / deviation**2
    return total
