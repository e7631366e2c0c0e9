"""Audits of models learnt from different people."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from syndic.methods import Learn
from syndic.methods.learning.plan import LearnPlan
from syndic.study import Study
from syndic_lab.audit.horizontal import APPROXIMATE, REPLACE
from syndic_lab.audit.rehearsal import Run
from syndic_lab.audit.setting import COALITION, RELEASE, Setting, rows_of, study_of

FEATURES: Final = 3
COLUMNS: Final = (*((f"x{place}", 2) for place in range(FEATURES)), ("y", 2))


def learning() -> Iterator[Setting]:
    """Yield a setting for every sound scheme of learning."""
    yield from _under_masks()
    yield from _local()


def _table(*labels: int) -> pa.Table:
    """Return rows that all have every feature, so that a label moves all coefficients alike."""
    return rows_of(**{f"x{place}": [1] * len(labels) for place in range(FEATURES)}, y=labels)


# all others have as many labels of either kind: the two tables lie on either side of zero
ONE: Final = {"a": _table(1, 1, 0), "b": _table(1, 0), "c": _table(1, 0)}
OTHER: Final = {**ONE, "a": _table(0, 1, 0)}
PARTIES: Final = {"a": (3, None), "b": (2, None), "c": (2, None)}


def _risk(scheme: Any, **options: Any) -> Study:
    protocol = Learn(label="y", loss="huber", intercept=False, scheme=scheme, **options)
    return study_of(protocol, columns=COLUMNS, parties=PARTIES, unit=REPLACE, budget=APPROXIMATE)


def _under_masks() -> Iterator[Setting]:
    study = _risk("mpc_grad", iterations=2, path=True)
    yield Setting(
        name="learn mpc_grad",
        study=study,
        one=ONE,
        other=OTHER,
        views={
            RELEASE: _sums,
            COALITION: lambda run: _sums(run, "b"),
        },
        quick=100,
    )
    for scheme, options in (
        # so large that nobody is judged so well that their slope is less than the largest
        ("mpc_out", {"regularisation": 20.0}),
        ("newton", {"iterations": 3}),
        ("pathak", {"regularisation": 20.0}),
    ):
        study = _risk(scheme, **options)
        yield Setting(
            name=f"learn {scheme}",
            study=study,
            one=ONE,
            other=OTHER,
            views={RELEASE: lambda run: float(np.sum(run.result.model.coefficients))},
            quick=50 if scheme == "newton" else 100,
        )


def _sums(run: Run, *colluding: str) -> float:
    """Return what speaks for the label: the noisy sums of all rounds, less what colluding parties drew."""
    plan = run.study.plan_as(LearnPlan)
    scheme: Any = plan.scheme
    path = np.asarray(run.result.path)
    sums = (path[:-1] * (1 - scheme.rate * scheme.regularisation) - path[1:]) / scheme.rate
    sums = sums * scheme.people / scheme.queries[0].unit
    for party in colluding:
        for place in range(len(sums)):
            noise: Any = plan.noise_at(place + 1)
            sums[place] -= run.own_noise(party, noise.charged[party].noise, sums.shape[1], charge=place)
    return -float(sums.sum())


def _local() -> Iterator[Setting]:
    for scheme, options in (("local_grad", {"iterations": 2}), ("local_out", {"regularisation": 20.0})):
        study = _risk(scheme, **options)
        yield Setting(
            name=f"learn {scheme}",
            study=study,
            one=ONE,
            other=OTHER,
            views={RELEASE: _released},
            quick=100,
        )


def _released(run: Run) -> float:
    """Return the sum of all numbers that the person's party gave out in all rounds: a gradient points away."""
    said = [each.message().values.sum() for each in run.seen if (each.party, each.step) == ("a", "release")]
    return float(sum(said)) * (-1 if getattr(run.study.protocol, "scheme", "") == "local_grad" else 1)
