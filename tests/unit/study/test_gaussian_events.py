"""A study of Gaussian noise on a fine grid: release functions, ledgers, plan and statement cope with its events."""

from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stubs import Stub
from support import rows, study_text
from syndic import Study, plan
from syndic.data import Table, open_source
from syndic.kernel import (
    Call,
    Message,
    Node,
    Nothing,
    Party,
    Reply,
    answer,
    decode,
    encode,
    in_memory_node,
    step,
)
from syndic.noise import FineGaussian, FineGaussianShare
from syndic.privacy import Budget, Event, Ledger, gaussian_epsilon, mu_squared_for
from syndic.random import SimulationRandomness
from syndic.study.statement import state

MU_SQUARED = mu_squared_for(Fraction(1), Fraction(1, 10**6), Fraction(1, 10**12))
PARTS: dict[str, Any] = {"sensitivity_squared": Fraction(1), "mu_squared": MU_SQUARED / 2, "changed": 1}
WHOLE = FineGaussian(**PARTS)
SHARE = FineGaussianShare(**PARTS, parties=2, dimension=4)


class Counts(Message):
    counts: NDArray[np.int64]


class Fine(Stub, tag="fine"):
    """Counts of colours, once with a party's own noise and once with a share that nobody masks here."""

    charges: ClassVar[tuple[Event, ...]] = (WHOLE.event, SHARE.event)

    @step(reveals="noisy")
    def own(self, party: Party, message: Nothing) -> Counts:
        """Count with noise."""
        return Counts(counts=party.release(WHOLE, party.table.count(["colour"]).values, why="own"))

    @step(reveals="masked")
    def shared(self, party: Party, message: Nothing) -> Counts:
        """Count with a share of noise."""
        return Counts(counts=party.contribute(SHARE, party.table.count(["colour"]).values, why="shared"))


def fine_study() -> Study:
    base = Study.loads(study_text(budget="epsilon = 1.0\ndelta = 1e-6"))
    fields = {name: getattr(base, name) for name in base.__struct_fields__}
    return Study(**{**fields, "protocol": Fine()})


def test_plan_and_statement_say_what_gaussian_noise_costs() -> None:
    study = fine_study()
    planned = str(plan(study))
    assert "Gaussian, mu 0.167; Gaussian, mu 0.167, noise by 2 parties together" in planned
    statement = state(study, simulated=False, version="0")
    assert 0.9999 < statement.epsilon <= 1
    assert statement.accountant.startswith("exact Gaussian profile")
    pairs = {delta: epsilon for epsilon, delta in statement.curve}
    assert pairs[1e-9] >= float(gaussian_epsilon(MU_SQUARED, Fraction(1, 10**9)))


def test_gaussian_noise_is_charged_up_to_the_cap(tmp_path: Path) -> None:
    study = fine_study()
    table = Table(study.schema, open_source(rows(60)))
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        ledger.declare("data", Budget(epsilon=Fraction(1), delta=Fraction(1, 10**6)))
        node = in_memory_node(
            study.protocol,
            study.plan,
            "north",
            table,
            lambda label: SimulationRandomness(1, label),
            study="s",
            dataset="data",
            ledger=ledger,
        )
        truth = table.count(["colour"]).values
        for name, call in (("own", "1"), ("shared", "2")):
            noisy = decode(ask(node, name, call).body, Counts).counts
            assert np.abs(noisy / WHOLE.scale - truth).max() < WHOLE.tail(1e-9) / WHOLE.scale
        again = ask(node, "own", "3")
        assert again.code == "budget"
        ledger.verify()
        charged = [event for entry in ledger.entries() for event in entry.events]
        assert charged == list(study.plan.events("north"))
        assert ledger.spent("data").left < Fraction(1, 10**5)


def ask(node: Node, name: str, call: str) -> Reply:
    return decode(
        answer(node, encode(Call(study="s", party="north", step=name, call=call, body=encode(Nothing())))), Reply
    )
