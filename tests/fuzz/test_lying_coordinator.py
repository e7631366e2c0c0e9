"""Random deviations of a coordinator, with one colluding party, for every horizontal method: see `lying`.

`SYNDIC_LIES` is the number of deviations for each method: few in `make test`, 10,000 in `make fuzz`.
"""

import os
from collections import Counter
from typing import Any, Final

import pyarrow as pa
import pytest

from lie_checks import opened, violations
from lying import FORKS, LIES, lied_to
from support import COLUMNS, rows, study_text
from syndic import Study
from syndic.data import open_source
from syndic.kernel import Memory
from syndic.kernel.memory import Stored
from syndic.mpc.graph import Seats, SumGraph

pytestmark = pytest.mark.fuzz

DEVIATIONS: Final = int(os.environ.get("SYNDIC_LIES", "25"))
# a test has a time limit
PARTS: Final = -(-DEVIATIONS // 250)
NAMES: Final = ("p0", "p1", "p2", "p3", "p4")
PEOPLE: Final = 12
PARTIES: Final = "".join(f'[[parties]]\nname = "{name}"\npeople = {PEOPLE}\n' for name in NAMES)
DELTA: Final = "epsilon = 1.0\ndelta = 1e-5"


def study_of(protocol: str, *, budget: str = DELTA, unit: str = 'neighbours = "replace"') -> Study:
    return Study.loads(study_text(protocol=protocol, budget=budget, unit=unit, parties=PARTIES, columns=COLUMNS))


LEARN: Final = 'method = "learn"\nlabel = "colour"\niterations = 3\n'
AGE: Final = 'method = "estimate"\ncolumn = "age"\nfamily = { kind = "normal" }\n'
ADAPTIVE: Final = 'method = "synthesis"\nselector = "adaptive"\nrounds = 2\nmodel_cells = 60\n'
STUDIES: Final = {
    "marginals": study_of('method = "marginals"\ncliques = [["colour"], ["age"]]'),
    "marginals, one missing": study_of('method = "marginals"\ncliques = [["colour"], ["age"]]\nmissing = 1'),
    "pooled-gram": study_of('method = "pooled-gram"'),
    "pooled-gram, one missing": study_of('method = "pooled-gram"\nmissing = 1'),
    "learn posterior": study_of(LEARN),
    "learn posterior, one missing": study_of(LEARN + "missing = 1"),
    "learn mpc_grad": study_of(LEARN + 'scheme = "mpc_grad"'),
    "learn newton": study_of(LEARN + 'scheme = "newton"'),
    "learn mpc_out": study_of(LEARN.replace("iterations = 3\n", "") + 'scheme = "mpc_out"'),
    "learn local_grad": study_of(LEARN + 'scheme = "local_grad"'),
    "estimate masked": study_of(AGE + 'scheme = "masked"\nmissing = 1'),
    "estimate dssa": study_of(AGE),
    "synthesis": study_of(ADAPTIVE),
    "synthesis, one missing": study_of(ADAPTIVE + "missing = 1"),
    "homm": study_of('method = "homm"'),
    "average": study_of('method = "average"\nservers = ["p0", "p1"]\ncolumns = ["age"]\nbits = 5'),
}


@pytest.fixture(scope="module")
def held() -> dict[str, Any]:
    tables: list[pa.Table] = [rows(PEOPLE, place) for place, _ in enumerate(NAMES)]
    return {name: open_source(table) for name, table in zip(NAMES, tables, strict=True)}


def share_of(name: str, held: dict[str, Any], patch: pytest.MonkeyPatch) -> float:
    """Return the share of requests in which to lie, so that a run has one or two: more would end it early."""
    return min(1.0, 1.5 / lied_to(STUDIES[name], held, 0, lies=0, patch=patch).requests)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", STUDIES)
def test_no_lie_opens_more_than_was_charged(
    name: str, part: int, held: dict[str, Any], monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    tried: Counter[str] = Counter()
    seed, lies = part * DEVIATIONS, share_of(name, held, monkeypatch)
    while sum(tried[way] for way in (*LIES, *FORKS)) < DEVIATIONS / PARTS:
        liar = lied_to(STUDIES[name], held, seed, lies=lies, patch=monkeypatch)
        assert violations(liar) == [], f"seed {seed}: {dict(liar.deviations)}"
        tried += liar.deviations
        seed += 1
    record_property("deviations", dict(tried))


@pytest.mark.parametrize("name", STUDIES)
def test_without_lies_every_sum_opens_for_all(name: str, held: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    liar = lied_to(STUDIES[name], held, 0, lies=0, patch=monkeypatch)
    assert not liar.deviations
    assert violations(liar) == []
    numbers = {number for number, _ in liar.hidden}
    assert {(number, NAMES[:-1]) for number in numbers} == set(opened(liar))


def _no_view(seats: Seats, what: str, number: int, _more: bytes = b"", bound: Any = Seats.bound) -> bytes:
    return bytes(bound(seats, what, number))


def _forgetful(memory: Memory, call: str, answer: Stored) -> None:
    del memory, call, answer


PLANTED: Final = {
    "masks are not bound to views": (Seats, "bound", _no_view, "learn mpc_grad", "asked different things"),
    "masks are not bound to lists": (Seats, "bound", _no_view, "marginals, one missing", "different views"),
    "any list is long enough": (SumGraph, "least", property(lambda _: 1), "marginals, one missing", "honest parties"),
    "answers are forgotten": (Memory, "store", _forgetful, "homm", "does not remember"),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str, held: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, weaker, study, expected = PLANTED[fault]
    lies = share_of(study, held, monkeypatch)
    monkeypatch.setattr(owner, name, weaker)
    runs = (violations(lied_to(STUDIES[study], held, seed, lies=lies, patch=monkeypatch)) for seed in range(200))
    assert any(expected in one for found in runs for one in found)
