"""Mutants in a fresh import of the package: for what an import runs and, if asked for, for what survived a patch."""

import ast
import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from mutation.child import Gave, forked, limit
from mutation.choice import Runs
from mutation.mutants import Mutant, mutated
from mutation.warm import Tell, options, same_examples


def preload(modules: Iterable[str]) -> None:
    """Import everything but the package and its tests, also what tests import late, so that each fork has it."""
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if "syndic" in sys.modules:
        raise RuntimeError("the package was imported before any mutant: nothing would be tried")
    # what these leave to the collector would be found in the middle of a test, and fail it
    gc.collect()
    gc.freeze()


def try_cold(mutants: Iterable[tuple[Mutant, bool]], tree: Path, scratch: Path, runs: Runs, tell: Tell) -> None:
    """Write each mutant into the copy at `tree`, and run its tests in a fork that imports the copy.

    The flag says whether the change is in what an import runs. Processes that a test starts import the copy too: the
    environment names it.
    """
    root = tree / "src" / "syndic"
    # a stale compiled file would hide the mutant
    sys.dont_write_bytecode = True
    for mutant, whole in mutants:
        path = root / mutant.path
        source = path.read_text()
        tests = runs.tests_for(mutant.path, mutant.line, cold=whole)
        try:
            path.write_text(ast.unparse(mutated(source, mutant)))
            ending = forked(lambda tests=tests: _work(tests, tree, scratch, runs))  # type: ignore[misc]
        finally:
            path.write_text(source)
        tell(mutant, ending)


def _work(tests: list[str], tree: Path, scratch: Path, runs: Runs) -> None:
    if not tests:
        raise Gave("survived", "no test runs it")
    os.chdir(tree)
    limit(5 + sum(runs.seconds[test] for test in tests))
    code = pytest.main([*tests, "-x", *options(scratch)], plugins=[_Names()])
    if code != pytest.ExitCode.OK:
        raise Gave("killed", _Names.first or f"exit {int(code)}")


class _Names:
    first = ""

    def pytest_sessionstart(self) -> None:
        same_examples()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not _Names.first:
            _Names.first = report.nodeid
