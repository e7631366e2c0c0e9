"""`python -m liars` lists the named strategies; `python -m liars run` counts random deviations, and resumes."""

import argparse
import json
import logging
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from liars.attack import Fresh, Tally
from liars.targets import targets

_ALARM = 1e-6
_PIECE_SECONDS = 3.0


def main() -> int:
    """Read the arguments and do it."""
    parser = argparse.ArgumentParser(prog="liars", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["list", "run"], default="list")
    parser.add_argument("--deviations", type=int, default=10_000, help="how many for each method")
    parser.add_argument("--state", type=Path, default=Path(".liars.json"), help="what was seen so far")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long, and go on the next time")
    parser.add_argument("--only", metavar="METHOD", action="append", help="only this method; may be repeated")
    given = parser.parse_args()
    # thousands of refusals are expected
    logging.getLogger("syndic").setLevel(logging.CRITICAL)
    if given.what == "list":
        from liars.strategies import table  # noqa: PLC0415  # not needed for a run

        sys.stdout.write(table())
        return 0
    return _run(given.deviations, given.state, given.seconds, given.only or [])


def _run(deviations: int, state: Path, seconds: float, only: list[str]) -> int:
    tallies, end = _read(state, only), time.monotonic() + seconds
    while time.monotonic() < end:
        seen = by_method(tallies)
        method = min(seen, key=seen.__getitem__)
        if seen[method] >= deviations:
            break
        # the study of the method that had the least time; a fifth by parties, whose deviations take longer
        studies = [name for name in targets() if method_of(name) == method]
        name = min(studies, key=lambda name: sum(tallies[name, role].seconds for role in targets()[name].roles))
        role = targets()[name].roles[-1]
        count = sum(tallies[name, role].count for role in targets()[name].roles)
        role = role if tallies[name, role].count < count / 5 else "coordinator"
        piece = time.process_time() + _PIECE_SECONDS
        while time.process_time() < piece:
            tallies[name, role].go_on()
        _write(state, tallies)
    return _report(tallies)


def method_of(name: str) -> str:
    """Return the method of a study."""
    return name.partition(",")[0]


def by_method(tallies: dict[tuple[str, str], Tally]) -> Counter[str]:
    """Return how many deviations there were for each method."""
    seen = Counter[str]({method_of(name): 0 for name, _ in tallies})
    for (name, _), tally in tallies.items():
        seen[method_of(name)] += tally.count
    return seen


def _report(tallies: dict[tuple[str, str], Tally]) -> int:
    wrong = 0
    for (name, role), tally in tallies.items():
        shown = tally.shown(_ALARM / len(tallies))
        text = (
            "" if shown is None else f"mu^2 {shown.mu_squared:.2f}, at least {shown.least:.2f} of {shown.charged:.2f}"
        )
        broken = bool(tally.violations) or (shown is not None and not shown.holds)
        wrong += broken
        verdict = "BROKEN" if broken else "holds" if role in tally.target.claimed else "not claimed"
        sys.stdout.write(
            f"{name:28} {role:12} {tally.count:6} deviations in {tally.seed:5} runs, {len(tally.seen):5} opened  "
            f"{verdict:12} {text or ''}\n"
        )
        for each in tally.violations[:5]:
            sys.stdout.write(f"    {each}\n")
    for method, count in by_method(tallies).items():
        sys.stdout.write(f"{method:28} {count:6} deviations\n")
    return 1 if wrong else 0


def _read(state: Path, only: list[str]) -> dict[tuple[str, str], Tally]:
    kept, tallies = _kept(state), {}
    for name, target in targets().items():
        if only and method_of(name) not in only:
            continue
        for role in target.roles:
            one = kept.get(f"{name}/{role}", {})
            tallies[name, role] = Tally(
                target=target,
                role=role,
                deviations=Counter(one.get("deviations", {})),
                violations=one.get("violations", []),
                seen=[Fresh(*each) for each in one.get("seen", [])],
                seed=one.get("seed", 0),
                seconds=one.get("seconds", 0.0),
            )
    return tallies


def _kept(state: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(state.read_text()) if state.exists() else {}
    return kept


def _write(state: Path, tallies: dict[tuple[str, str], Tally]) -> None:
    kept = _kept(state) | {
        f"{name}/{role}": {
            "deviations": dict(tally.deviations),
            "violations": tally.violations,
            "seen": tally.seen,
            "seed": tally.seed,
            "seconds": tally.seconds,
        }
        for (name, role), tally in tallies.items()
    }
    new = state.with_suffix(".new")
    new.write_text(json.dumps(kept))
    new.replace(state)


if __name__ == "__main__":
    sys.exit(main())
