"""How far a run is, as a party's own ledger tells it. Nothing here was read from a row."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from syndic.console.views import ProgressView, State, StepLine
from syndic.kernel.memory import Memory, look_up
from syndic.privacy import Entry, Ledger
from syndic.study import PartyFolder, Study

_LIVE = timedelta(minutes=15)
_DIGEST_LETTERS = 64


def is_running(home: PartyFolder, run: str) -> bool:
    """Return whether the run was asked about not long ago."""
    with Ledger.open(home.ledger) as ledger:
        calls = ledger.calls(run)
    return bool(calls) and datetime.now(UTC) - datetime.fromisoformat(calls[-1].time) < _LIVE


def party_progress(folder: Path, run: str, study: Study, state: State) -> ProgressView:
    """Return which steps the party answered. It is told nothing about the others."""
    home = PartyFolder(folder=folder)
    with Ledger.open(home.ledger) as ledger:
        calls = ledger.calls(run)
    steps = step_lines(study, calls)
    return ProgressView(
        run=run,
        study=study.name,
        state=state,
        words=_words(state, steps),
        steps=steps,
        waiting=("the coordinator's next question",) if state == "running" else (),
        said=f"answers of {look_up(home.ledger, run, Memory.stored_bytes) or 0:,} bytes",
        updated=shown_time(calls[-1].time) if calls else "",
    )


def step_lines(study: Study, calls: tuple[Entry, ...]) -> tuple[StepLine, ...]:
    """Return the steps that the study asks, with the calls of each; a reply that is no digest is a refusal's code."""
    known = study.steps
    answered = Counter(one.why for one in calls if len(one.reply) == _DIGEST_LETTERS)
    refused = Counter(one.why for one in calls if len(one.reply) != _DIGEST_LETTERS)
    last = {one.why: one.time for one in calls}
    names = [*known, *sorted(set(last) - set(known))]
    return tuple(
        StepLine(
            step=name or "(unreadable)",
            reveals=known[name].reveals if name in known else "",
            means=known[name].means if name in known else "",
            answered=answered[name],
            refused=refused[name],
            last=shown_time(last[name]) if name in last else "",
        )
        for name in names
    )


def shown_time(time: str) -> str:
    """Return a time of a log as people read it, in UTC."""
    return time[:19].replace("T", " ")


def _words(state: State, steps: tuple[StepLine, ...]) -> str:
    done, all_steps = sum(one.answered > 0 for one in steps), len(steps)
    refused = sum(one.refused for one in steps)
    told = f"{done} of {all_steps} steps were answered" + (f", {refused} calls were refused" if refused else "")
    ends = {
        "finished": "; all that the study may charge was charged",
        "agreed": "; the coordinator has not asked lately" if done else "; the coordinator has not begun",
        "withdrawn": "; nothing more is answered",
        "expired": "; the agreement has expired, and nothing more is answered",
    }
    return told + ends.get(state, "")
