"""Every protocol, its coordinator killed before and after every message: the same release, charged once."""

from pathlib import Path
from typing import Any

import pytest

from faults import Fault, Faulty
from faulty_runtime import DISTURBED, EVERY, LOSING, KilledError, Mortal, Watch, allowed, charged, published, run_over
from support import Case
from syndic.errors import PartyError
from syndic.kernel import Runtime
from syndic.study import Release

# where there is time, what is drawn without a seed is tried at every message as well

each_case = pytest.mark.parametrize("case", DISTURBED + LOSING, ids=lambda case: case.name)


def lives_of(case: Case, folder: Path, watch: Watch, *, seed: int | None, both: bool) -> tuple[Release, int]:
    """Kill the coordinator after every message was answered, or also before; return what is released, and the lives."""
    lives = 0
    while True:
        # before the first message, after it; with the first one heard: before the second, after it; and so on
        sends, late = (int(lives > 0 and lives % 2 == 0), lives % 2 == 1) if both else (int(lives > 0), True)

        def mortal(runtime: Runtime, sends: int = sends, late: bool = late) -> Runtime:
            return Mortal(runtime, watch, sends=sends, late=late)

        try:
            return run_over(case, folder, mortal, seed=seed), lives + 1
        except KilledError:
            lives += 1


@each_case
def test_killed_at_every_message_and_resumed(case: Case, tmp_path: Path) -> None:
    whole, watch = Watch(), Watch()
    release = run_over(case, tmp_path / "whole", lambda runtime: Mortal(runtime, whole, sends=None), seed=7)
    resumed, lives = lives_of(case, tmp_path / "killed", watch, seed=7, both=True)
    assert lives == 2 * whole.sends + 1
    assert published(resumed, tmp_path / "a") == published(release, tmp_path / "b")
    assert charged(case, tmp_path / "killed") == charged(case, tmp_path / "whole") == allowed(case)
    assert watch.answered == whole.answered
    watch.check(tmp_path / "killed")


# the journal asks again, whatever the method: where there is no time, the first case of each
FIRST = {type(case.study.protocol): case for case in reversed(DISTURBED)}
real_cases = [
    case for case in (DISTURBED if EVERY else tuple(FIRST.values())) + LOSING if not case.study.protocol.simulation_only
]


@pytest.mark.parametrize("case", real_cases, ids=lambda case: case.name)
def test_without_a_seed_the_same_is_asked_again(case: Case, tmp_path: Path) -> None:
    watch = Watch()
    release, _ = lives_of(case, tmp_path, watch, seed=None, both=EVERY)
    assert all(len(requests) == 1 for requests in watch.asked.values())
    watch.check(tmp_path)
    assert charged(case, tmp_path) == allowed(case)
    before = watch.sends
    again = run_over(case, tmp_path, lambda runtime: Mortal(runtime, watch, sends=0), seed=None)
    assert watch.sends == before
    assert published(again, tmp_path / "a") == published(release, tmp_path / "b")


def everybody(case: Case, folder: Path) -> dict[str, bytes]:
    """Return the release with all parties in it."""
    release = run_over(case, folder / "all", lambda one: Mortal(one, Watch(), sends=None))
    return published(release, folder / "all" / "release")


# of the five questions of a masked sum: keys, secrets, masked values
@pytest.mark.parametrize("send", [2, 3, 4])
def test_killed_after_going_on_without_somebody(send: int, tmp_path: Path) -> None:
    """The others were told that p1 is missing: it stays missing, though it could answer when the run goes on."""
    case, watch = LOSING[0], Watch()
    lost = (Fault(send=send, party="p1", kind="lose_request"),)

    def losing(runtime: Any) -> Runtime:
        return Faulty(runtime, lost, most=10**6)

    whole = run_over(case, tmp_path / "whole", losing)
    with pytest.raises(KilledError):
        run_over(case, tmp_path / "killed", lambda one: Mortal(losing(one), watch, sends=send - 1, late=True))
    resumed = run_over(case, tmp_path / "killed", lambda one: Mortal(one, watch, sends=None))
    assert published(resumed, tmp_path / "a") == published(whole, tmp_path / "b")
    # p1 took part up to there, and was then not asked again under another list
    assert published(resumed, tmp_path / "a") != everybody(case, tmp_path)
    assert charged(case, tmp_path / "killed") == charged(case, tmp_path / "whole")
    watch.check(tmp_path / "killed")


@pytest.mark.parametrize("kind", ["lose_request", "lose_reply", "kill_before", "kill_after"])
@pytest.mark.parametrize("seed", [7, None])
def test_a_masked_sum_that_a_survivor_left_closed_opens_when_it_is_back(
    seed: int | None, kind: Any, tmp_path: Path
) -> None:
    """p3 sends no values; p1 does and then does not answer about its masks, so the run ends; run again it opens."""
    case, watch = LOSING[0], Watch()
    silent = Fault(send=4, party="p3", kind="lose_request")

    def open_to_end(runtime: Any) -> Runtime:
        return Faulty(runtime, (silent,), most=10**6)

    def closed(runtime: Any) -> Runtime:
        return Mortal(Faulty(runtime, (silent, Fault(send=5, party="p1", kind=kind)), most=10**6), watch, sends=None)

    whole = run_over(case, tmp_path / "whole", open_to_end, seed=seed)

    with pytest.raises(PartyError, match=r"step 'sum_open'.*p1: .*its charge remains.*from the same folder"):
        run_over(case, tmp_path / "closed", closed, seed=seed)
    paid = charged(case, tmp_path / "closed")
    opened = run_over(case, tmp_path / "closed", lambda one: Mortal(one, watch, sends=None), seed=seed)
    # p3 was said to be silent: it stays out, and nobody is asked about another list or charged again
    assert opened.result.note.present == whole.result.note.present == ("p0", "p1", "p2", "p4")  # type: ignore[attr-defined]
    assert charged(case, tmp_path / "closed") == paid == charged(case, tmp_path / "whole")
    watch.check(tmp_path / "closed")
    if seed is not None:
        assert published(opened, tmp_path / "a") == published(whole, tmp_path / "b")
