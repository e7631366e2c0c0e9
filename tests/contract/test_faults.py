"""Every protocol over a carrier that goes wrong: it ends with a release or says who failed, and nothing is lost.

`SYNDIC_FAULTS=many` tries many schedules for each protocol instead of a few.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from faults import Fault, Faulty, Kind
from faulty_runtime import DISTURBED, EVERY, LOSING, MOST_MB, Mortal, Watch, allowed, charged, published, run_over
from support import Case
from syndic.errors import PartyError
from syndic.kernel import Runtime
from syndic.study import Release

EXAMPLES = 50 if EVERY else 2
# a schedule of three faults is small enough to read, and shrinking it takes minutes
PHASES = (Phase.explicit, Phase.generate)
# what is over as soon as the party is asked again, or never reached it
HARMLESS = {"delay", "repeat", "old_request", "restart"}

each_case = pytest.mark.parametrize("case", DISTURBED, ids=lambda case: case.name)


@cache
def undisturbed(name: str) -> tuple[int, dict[str, bytes]]:
    """Return how many sends a case takes, and what it releases."""
    case, watch = next(case for case in DISTURBED + LOSING if case.name == name), Watch()
    with TemporaryDirectory() as folder:
        release = run_over(case, Path(folder) / "run", lambda runtime: Mortal(runtime, watch, sends=None))
        return 1 + watch.sends, published(release, Path(folder) / "release")


def schedules(case: Case) -> st.SearchStrategy[tuple[Fault, ...]]:
    """Up to three things that go wrong somewhere in a run of the case."""
    sends, _ = undisturbed(case.name)
    fault = st.builds(
        Fault,
        send=st.integers(1, sends),
        party=st.sampled_from(sorted(case.sources)),
        kind=st.sampled_from(get_args(Kind)),
        place=st.integers(0, 300),
        flip=st.integers(1, 255),
    )
    return st.lists(fault, min_size=1, max_size=3).map(tuple)


class Disturbance:
    """One run with faults and the run after it without, in one folder."""

    def __init__(self, case: Case, faults: tuple[Fault, ...], folder: Path) -> None:
        self.case = case
        self.folder = folder
        self.watch = Watch()
        self.carriers: list[Faulty] = []
        self.first: Release | PartyError
        try:
            self.first = self._run(faults)
        except PartyError as error:
            self.first = error
        self.charged_first = charged(case, folder)
        self.again = self._run(())

    def _run(self, faults: tuple[Fault, ...]) -> Release:
        def wrap(carrier: Runtime) -> Runtime:
            watched: Any = Mortal(carrier, self.watch, sends=None)
            self.carriers.append(Faulty(watched, faults, most=MOST_MB * 10**6))
            return self.carriers[-1]

        return run_over(self.case, self.folder, wrap)

    def check(self) -> None:
        """Nothing was charged twice, nothing was answered twice, and what is not stored was not said."""
        limits = allowed(self.case)
        for charges in (self.charged_first, charged(self.case, self.folder)):
            assert all(charges[party] <= limits[party] for party in self.case.sources)
        self.watch.check(self.folder)
        said: dict[tuple[str, str], set[str]] = {}
        for one in (one for carrier in self.carriers for one in carrier.delivered if one.answered):
            said.setdefault((one.party, one.request_sha256), set()).add(one.reply_sha256)
        assert all(len(replies) == 1 for replies in said.values())


@each_case
def test_a_bad_line_and_then_a_good_one(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
    @given(faults=schedules(case))
    def disturb(faults: tuple[Fault, ...]) -> None:
        folder = tmp_path_factory.mktemp("disturbed")
        run = Disturbance(case, faults, folder)
        run.check()
        # nobody may be missing in these, so a run either was not disturbed or has stopped
        _, release = undisturbed(case.name)
        assert published(run.again, folder / "again") == release
        assert charged(case, folder) == allowed(case)
        if isinstance(run.first, PartyError):
            assert {fault.kind for fault in faults} - HARMLESS
            assert any(f"{fault.party}: " in str(run.first) for fault in faults)
        else:
            assert published(run.first, folder / "first") == release

    disturb()


@pytest.mark.parametrize("case", LOSING, ids=lambda case: case.name)
def test_a_run_that_goes_on_without_somebody_repeats_itself(
    case: Case, tmp_path_factory: pytest.TempPathFactory
) -> None:
    @settings(max_examples=max(4, EXAMPLES), deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
    @given(faults=schedules(case))
    def disturb(faults: tuple[Fault, ...]) -> None:
        folder = tmp_path_factory.mktemp("disturbed")
        run = Disturbance(case, faults, folder)
        run.check()
        if isinstance(run.first, Release):
            # whoever was missing is missing again, though everybody could answer now
            assert published(run.again, folder / "again") == published(run.first, folder / "first")

    disturb()
