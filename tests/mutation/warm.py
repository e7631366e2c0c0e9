"""Mutants in a process that has imported and collected everything: a fork, a patch, a few tests."""

import functools
import gc
import inspect
import sys
import time
import unittest
from collections.abc import Callable, Iterable
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

from mutation.child import Ending, Gave, forked, limit
from mutation.choice import Runs
from mutation.mutants import Mutant, mutated
from mutation.patch import ColdError, Living, living_functions, put_in

Tell = Callable[[Mutant, Ending], None]


class Warm:
    """A plugin of pytest: collects as ever, then does `work` in place of the loop over the tests."""

    def __init__(self, root: Path, work: Callable[["Warm"], None]) -> None:
        self._root = root
        self._work = work
        self.items: dict[str, pytest.Item] = {}
        self.functions: dict[str, Living] = {}
        self.caches: list[Any] = []

    def pytest_sessionstart(self) -> None:
        """Choose how hypothesis searches, before tests are imported."""
        same_examples()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run no test here: what a test leaves behind would be in every fork."""
        if session.testsfailed:
            raise session.Interrupted("some tests cannot be collected")
        self.items = {item.nodeid: item for item in session.items}
        self.functions = living_functions(str(self._root))
        found = [each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper)]
        self.caches = [each for each in found if isinstance(inspect.unwrap(each), FunctionType)]
        gc.collect()
        gc.freeze()  # what is frozen is not copied by the collector of each fork, and not found by it
        self._work(self)
        return True

    def run(self, names: Iterable[str], seconds: dict[str, float]) -> None:
        """Run tests inside a child until one fails."""
        chosen = [self.items[name] for name in names]
        # none, if no test runs the line: then nothing notices the mutant
        for item, following in zip_longest(chosen, chosen[1:]):
            limit(seconds[item.nodeid])
            try:
                failed = any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))
            except BaseException:  # on its way through pytest's hooks `Gave` may become another exception
                failed = True
            if failed:
                raise Gave("killed", item.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """End the child at the first failure: to describe it would take longer than most tests."""
        expected = (pytest.skip.Exception, unittest.SkipTest)
        if call.excinfo and not call.excinfo.errisinstance(expected) and not item.get_closest_marker("xfail"):
            raise Gave("killed", item.nodeid)


def same_examples() -> None:
    """Let hypothesis find the same examples each time, and not shrink them: that a test fails is all that counts."""
    settings.register_profile("mutation", derandomize=True, deadline=None, phases=[Phase.explicit, Phase.generate])
    settings.load_profile("mutation")


def collected(tests: Iterable[str], root: Path, scratch: Path, work: Callable[[Warm], None]) -> int:
    """Collect the tests, then do the work."""
    arguments = [*tests, *options(scratch), "-m", "not slow and not deploy"]
    return int(pytest.main(arguments, plugins=[Warm(root, work)]))


def options(scratch: Path) -> list[str]:
    """Return the options of pytest here; nobody reads why a test failed."""
    return ["-p", "no:cacheprovider", f"--basetemp={scratch}", "--assert=plain"]


def try_mutants(warm: Warm, mutants: Iterable[Mutant], root: Path, runs: Runs, tell: Tell) -> None:
    """Try each mutant in a fork of this process."""
    for path, some in _by_file(mutants).items():
        source = (root / path).read_text()
        original = _compiled(source, root / path)
        living = warm.functions.get(str(root / path), {})
        for mutant in some:

            def work(mutant: Mutant = mutant) -> None:
                changed = compile(mutated(source, mutant), str(root / path), "exec")  # noqa: B023 (run at once)
                try:
                    put_in(original, changed, living)  # noqa: B023
                except ColdError:
                    raise Gave("cold") from None
                warm.run(runs.tests_for(mutant.path, mutant.line, cold=False), runs.seconds)

            tell(mutant, forked(work))


def look(warm: Warm, paths: Iterable[Path], root: Path, into: Path) -> Ending:
    """Run every test once in a fork and write down what it ran."""
    return forked(lambda: _look(warm, list(paths), root, into))


def _look(warm: Warm, paths: list[Path], root: Path, into: Path) -> None:
    import coverage  # noqa: PLC0415 (its tracer is wanted in this fork only)

    tracer = coverage.Coverage(data_file=None, include=[str(path) for path in paths], config_file=False)
    ours = str(root.parent.parent)
    caches = [each for each in warm.caches if inspect.unwrap(each).__code__.co_filename.startswith(ours)]
    seconds = {}
    tracer.start()
    for name, item in warm.items.items():
        # a test that finds another one's result in a cache would not run the lines that it depends on
        for cache in caches:
            cache.cache_clear()
        tracer.switch_context(name)
        before = time.process_time()
        runtestprotocol(item, log=False, nextitem=None)
        seconds[name] = round(time.process_time() - before, 4)
    tracer.stop()
    data = tracer.get_data()
    lines = {
        str(path.relative_to(root)): {
            line: [test for test in tests if test] for line, tests in data.contexts_by_lineno(str(path)).items()
        }
        for path in paths
    }
    # a helper of the tests would bring the package itself along, without the mutant
    others = {name: str(getattr(module, "__file__", None) or "") for name, module in sys.modules.items()}
    modules = [name for name, path in others.items() if path and not path.startswith(ours)]
    Runs(seconds=seconds, lines=lines, modules=modules).store(into)
    raise Gave("looked")


def _by_file(mutants: Iterable[Mutant]) -> dict[str, list[Mutant]]:
    found: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        found.setdefault(mutant.path, []).append(mutant)
    return found


def _compiled(source: str, path: Path) -> CodeType:
    return compile(source, str(path), "exec")
