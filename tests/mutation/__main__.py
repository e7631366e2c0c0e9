"""Change the package in thousands of small ways, one at a time, and see whether a test fails.

    PYTHONPATH=tests python -m mutation run            all mutants that have no result yet
    PYTHONPATH=tests python -m mutation run --again    and once more those that survived
    PYTHONPATH=tests python -m mutation report         the table, and functions with more survivors than are explained

Everything happens in a copy, in the folder `.mutation`, and nothing outside it is changed.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mutation.child import Ending
from mutation.choice import Runs
from mutation.cold import preload, try_cold
from mutation.mutants import Mutant, mutants_of
from mutation.report import latest, report
from mutation.warm import collected, look, try_mutants

PACKAGES = ("privacy", "noise", "mpc")
TESTS = (
    "tests/unit/privacy",
    "tests/unit/noise",
    "tests/unit/kernel",
    "tests/unit/mpc",
    "tests/unit/methods/test_align.py",
    "tests/unit/methods/test_align_adversary.py",
    "tests/unit/methods/test_align_sets.py",
    "tests/property/test_privacy.py",
    "tests/statistical/test_fine.py",
    "tests/statistical/test_masked_messages.py",
    "tests/statistical/test_mechanism_laws.py",
    "tests/statistical/test_rounds_adversary.py",
    "tests/statistical/test_shares.py",
)


def main() -> int:
    """Read the command line and do what it says."""
    options = _options()
    options.state = options.state.resolve()
    if options.command == "report":
        return report(options.state, Path(__file__).with_name("survivors"), Path("src/syndic"))
    if options.command == "worker":
        return _work(options)
    return _run(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("command", choices=("run", "report", "worker"))
    parser.add_argument("--state", type=Path, default=Path(".mutation"), help="where the copy and the results are")
    parser.add_argument("--only", nargs="*", default=[""], help="files, as they begin: privacy mpc/masked_sum")
    parser.add_argument("--tests", nargs="*", default=TESTS)
    parser.add_argument("--sample", type=int, default=0, help="that many mutants of each file, drawn with --seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="try again what survived")
    parser.add_argument("--recheck", action="store_true", help="try what survived once more in a fresh import")
    parser.add_argument("--keep", action="store_true", help="keep the copy and what is known of its tests")
    parser.add_argument("--phase", choices=("look", "warm", "cold"), default="look", help=argparse.SUPPRESS)
    parser.add_argument("--job", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def _run(options: argparse.Namespace) -> int:
    options.state.mkdir(parents=True, exist_ok=True)
    (options.state / ".gitignore").write_text("*\n")
    again = options.keep and (options.state / "runs.json").exists()
    if not again:
        _copy(Path(), options.state / "clean")
    for job in range(options.jobs):
        # from the clean copy: a worker that was killed has left its mutant
        _copy(options.state / "clean", _tree(options.state, job))
    if not again and _start(options, "look", 0).wait():
        return 1
    for phase in ("warm", "cold"):
        workers = [_start(options, phase, job) for job in range(options.jobs)]
        codes = [worker.wait() for worker in workers]
        if any(codes):
            return 1
    return report(options.state, Path(__file__).with_name("survivors"), Path("src/syndic"))


def _tree(state: Path, job: int) -> Path:
    return state / f"tree{job}"


def _copy(source: Path, tree: Path) -> None:
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("src", "tests"):
        shutil.copytree(source / name, tree / name)
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(source / name, tree)


def _start(options: argparse.Namespace, phase: str, job: int) -> subprocess.Popen[bytes]:
    tree = _tree(options.state, job)
    paths = os.pathsep.join([str(tree / "src"), str(tree / "tests"), os.environ.get("PYTHONPATH", "")])
    # one thread each: a fork of a process with threads may hang
    environment = os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "CI": "1"}
    command = [sys.executable, "-m", "mutation", "worker", *(sys.argv[2:]), "--state", str(options.state)]
    return subprocess.Popen([*command, "--phase", phase, "--job", str(job)], cwd=tree, env=environment)


def _work(options: argparse.Namespace) -> int:
    tree = _tree(options.state, options.job)
    root, scratch, known = tree / "src" / "syndic", options.state / f"scratch{options.job}", options.state / "runs.json"
    files = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    if options.phase == "look":
        known.unlink(missing_ok=True)
        collected(options.tests, root, scratch, lambda warm: print(look(warm, files, root, known)))
        return 0 if known.exists() else 1
    runs = Runs.load(known)
    preload(runs.modules)
    log = (options.state / "results.jsonl").open("a", buffering=1)

    def tell(mutant: Mutant, ending: Ending) -> None:
        line = mutant.record() | {"outcome": ending.outcome, "by": ending.by, "seconds": round(ending.seconds, 3)}
        log.write(json.dumps(line | {"phase": options.phase}) + "\n")

    before = latest(options.state)
    mutants = list(_chosen(options, files, root))[options.job :: options.jobs]
    if options.phase == "warm":
        new = [mutant for mutant in mutants if _is_due(before.get(mutant.name), again=options.again)]
        return collected(options.tests, root, scratch, lambda warm: try_mutants(warm, new, root, runs, tell))
    left = [(mutant, before[mutant.name]) for mutant in mutants if mutant.name in before]
    wanted = ("cold", "survived") if options.recheck else ("cold",)
    due = [
        (mutant, found["outcome"] == "cold")
        for mutant, found in left
        if found["phase"] == "warm" and found["outcome"] in wanted
    ]
    try_cold(due, tree, scratch, runs, tell)
    return 0


def _is_due(result: dict[str, object] | None, *, again: bool) -> bool:
    return result is None or (again and result["outcome"] == "survived")


def _chosen(options: argparse.Namespace, files: list[Path], root: Path) -> Iterator[Mutant]:
    for path in files:
        mutants = mutants_of(path, root)
        if options.sample:
            # a larger sample of the same seed holds the smaller one
            random.Random(f"{options.seed} {path.name}").shuffle(mutants)
            mutants = mutants[: options.sample]
        if any(str(path.relative_to(root)).startswith(prefix) for prefix in options.only):
            yield from mutants


if __name__ == "__main__":
    sys.exit(main())
