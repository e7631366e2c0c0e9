"""A plan is worked out once in a process, and the same in every process."""

import hashlib
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support import CASES, Case
from syndic.kernel import Method, Plan, Terms
from syndic.study import simulate
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
