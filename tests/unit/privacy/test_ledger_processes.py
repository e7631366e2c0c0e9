"""Several processes write to one ledger at the same time. This file is also what those processes run."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

from syndic.errors import BudgetError
from syndic.privacy.event import PureEvent
from syndic.privacy.ledger import Ledger
from syndic.privacy.unit import Budget

EPSILON = Fraction(1, 50)
PROCESSES = 4
CALLS = 40


def hammer(path: Path, names: list[str]) -> None:
    """Charge one call after the other and print which were charged for the first time."""
    sys.stdin.readline()
    with Ledger.open(path) as ledger:
        ledger.declare("visits", Budget(epsilon=Fraction(1)))
        for call in names:
            try:
                charge = ledger.reserve(
                    dataset="visits",
                    study="digest",
                    call=call,
                    door="release",
                    events=[PureEvent(epsilon=EPSILON)],
                    why="counts",
                )
            except BudgetError:
                continue
            if charge.fresh:
                print(call)


def run(path: Path, prefixes: list[str]) -> list[str]:
    """Start all processes together, on a ledger that does not exist yet; return what they charged."""
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, str(path), *(f"{prefix}{call}" for call in range(CALLS))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for prefix in prefixes
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    charged = [line for worker in workers for line in worker.communicate(timeout=60)[0].split()]
    assert [worker.returncode for worker in workers] == [0] * PROCESSES
    return charged


def test_processes_together_spend_the_cap_and_no_more(tmp_path: Path) -> None:
    charged = run(tmp_path / "ledger.db", [f"{name}-" for name in range(PROCESSES)])
    assert len(charged) == len(set(charged)) == 50
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.spent("visits").epsilon == 1
        ledger.verify()
        kinds = [entry.kind for entry in ledger.entries()]
        assert (kinds.count("declare"), kinds.count("reserve")) == (1, 50)


def test_processes_with_the_same_calls_charge_each_once(tmp_path: Path) -> None:
    charged = run(tmp_path / "ledger.db", [""] * PROCESSES)
    assert sorted(charged, key=int) == [str(call) for call in range(CALLS)]
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.spent("visits").epsilon == CALLS * EPSILON
        ledger.verify()


if __name__ == "__main__":
    hammer(Path(sys.argv[1]), sys.argv[2:])
