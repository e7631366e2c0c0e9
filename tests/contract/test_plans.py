"""A plan is worked out once in a process, and the same in every process."""

import hashlib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support import CASES, Case
from syndic.data import Boolean, Instead, Schema
from syndic.kernel import Member, Method, Plan, Terms
from syndic.kernel.method import _parts
from syndic.methods import AnyMethod, Learn, Marginals, Synthesis
from syndic.privacy import Budget, Unit
from syndic.study import Study, plan, simulate
from syndic.study.document import _plan_of

FIRST = {type(case.study.protocol): case for case in reversed(CASES)}


@pytest.mark.parametrize("case", FIRST.values(), ids=lambda case: case.name)
def test_a_run_makes_its_plan_once(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Counter[str] = Counter()
    kind: Any = type(case.study.protocol)
    plan = kind.plan

    def counted(method: Method, terms: Terms) -> Plan:
        made[case.name] += 1
        found: Plan = plan(method, terms)
        return found

    monkeypatch.setattr(kind, "plan", counted)
    _plan_of.cache_clear()
    release = simulate(case.study, case.sources, seed=7)
    release.statement  # noqa: B018  # the statement, too, reads the plan
    assert made == {case.name: 1}


def arrays(value: Any) -> Iterator[NDArray[Any]]:
    """Yield the arrays that a value is made of."""
    if isinstance(value, np.ndarray):
        yield value
    elif not isinstance(value, str):
        for part in _parts(value):
            yield from arrays(part)


def test_arrays_of_plans_cannot_be_changed() -> None:
    found = [one for case in CASES for one in arrays(case.study.plan)]
    assert len(found) > 10
    assert not any(one.flags.writeable for one in found)


def fingerprint(case: Case) -> str:
    """Return a digest of all that a plan says."""
    plan = case.study.plan
    parties = [party.name for party in case.study.parties]
    said = (plan, plan.rounds, [plan.events(name) for name in parties], plan.resources, plan.disclosure)
    return hashlib.sha256(repr(said).encode()).hexdigest()


def test_a_fresh_process_makes_the_same_plans() -> None:
    program = "from contract.test_plans import *\nfor case in CASES: print(fingerprint(case))"
    tests = Path(__file__).parents[1]
    path = [str(tests), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}\n{program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [fingerprint(case) for case in CASES]


def many(columns: int, parties: int, protocol: AnyMethod) -> float:
    """Return the CPU seconds of the plan of a study of so many columns and parties, and of its text."""
    study = Study(
        name="many",
        unit=Unit(neighbours="add_remove"),
        budget=Budget.of(1, "1e-9"),
        protocol=protocol,
        parties=tuple(Member(name=f"p{place}", people=100) for place in range(parties)),
        schema=Schema(
            columns=tuple(Boolean(name=f"c{place}", missing=Instead(value=False)) for place in range(columns))
        ),
    )
    _plan_of.cache_clear()
    began = time.process_time()
    str(plan(study))
    return time.process_time() - began


@pytest.mark.parametrize("protocol", [Synthesis(), Marginals(), Learn(label="c0")], ids=lambda one: type(one).__name__)
@pytest.mark.slow
def test_plans_grow_no_faster_than_parties_and_tables(protocol: AnyMethod) -> None:
    many(4, 4, protocol)  # imports
    # four times as many; what grows with the square takes sixteen times as long
    assert many(4, 4000, protocol) < 9 * many(4, 1000, protocol)
    # sixteen times as many pairs of columns
    assert many(200, 3, protocol) < 40 * max(many(50, 3, protocol), 0.01)
