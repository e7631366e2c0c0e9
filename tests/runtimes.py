"""A study's coordinator with nodes in this process, and a runtime that loses replies, for suites about one method."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import final

from support import Case, open_nodes
from syndic import Study
from syndic.kernel import Call, Delivery, Node, Result, Runtime, Session, answer, decode, run
from syndic.random import SimulationRandomness
from syndic.study.party_folder import run_digest


def session_over(runtime: Runtime, study: Study, *, seed: int | None = 7) -> Session:
    """Return the coordinator's side of a run whose nodes were opened with this seed."""
    return Session(
        runtime=runtime,
        study=run_digest(study, seed),
        method=study.protocol,
        plan=study.plan,
        randomness=SimulationRandomness(1),
    )


@final
class Lossy:
    """A local runtime that loses some questions: `lost(step, party, how often asked before)`."""

    def __init__(self, nodes: Mapping[str, Node], lost: Callable[[str, str, int], bool]) -> None:
        self.nodes = nodes
        self.lost = lost
        self.asked: Counter[tuple[str, str]] = Counter()

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        replies, silent = {}, {}
        for party, data in calls.items():
            step = decode(data, Call).step
            if self.lost(step, party, self.asked[step, party]):
                silent[party] = "lost"
            else:
                replies[party] = answer(self.nodes[party], data)
            self.asked[step, party] += 1
        return Delivery(replies=replies, silent=silent)

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()


def run_lossy(case: Case, folder: Path, lost: Callable[[str, str, int], bool]) -> Result:
    """Run the case over a carrier that loses what `lost` says."""
    runtime = Lossy(open_nodes(case, folder), lost)
    try:
        return run(case.study.protocol, session_over(runtime, case.study))
    finally:
        runtime.close()
