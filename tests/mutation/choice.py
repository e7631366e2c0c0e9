"""Which tests may notice a mutant: those that run its line, and its file's own tests, the quick ones first."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

# the most CPU seconds of tests for one mutant
MOST_SECONDS = 4.0
_LEAST_SECONDS = 0.002


@dataclass(frozen=True)
class Runs:
    """What one run of all tests showed: seconds of each test, and which tests ran which lines of which file."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]
    modules: list[str]

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `store` wrote."""
        stored: dict[str, Any] = json.loads(path.read_text())
        lines = {
            name: {int(line): [stored["tests"][place] for place in places] for line, places in found.items()}
            for name, found in stored["lines"].items()
        }
        seconds = dict(zip(stored["tests"], stored["seconds"], strict=True))
        return cls(seconds=seconds, lines=lines, modules=stored["modules"])

    def store(self, path: Path) -> None:
        """Write it down."""
        tests = list(self.seconds)
        place = {name: number for number, name in enumerate(tests)}
        lines = {
            name: {line: [place[test] for test in found] for line, found in by_line.items()}
            for name, by_line in self.lines.items()
        }
        seconds = [self.seconds[test] for test in tests]
        path.write_text(json.dumps({"tests": tests, "seconds": seconds, "lines": lines, "modules": self.modules}))

    def tests_for(self, path: str, line: int, *, cold: bool) -> list[str]:
        """Return the tests to run for a mutant at this line, cut at `MOST_SECONDS`.

        A `cold` mutant is in what an import runs, which every test of the file depends on.
        """
        by_line = self.lines.get(path, {})
        anywhere = {test for found in by_line.values() for test in found}
        here = anywhere if cold else set(by_line.get(line, ()))
        own = {test for test in anywhere if _is_own(test, path)}
        order = sorted(here | own, key=lambda test: (test not in here, test not in own, self.seconds[test]))
        return list(self._affordable(order))

    def _affordable(self, order: list[str]) -> Iterator[str]:
        spent = 0.0
        for test in order:
            cost = max(_LEAST_SECONDS, self.seconds[test])
            if spent + cost <= MOST_SECONDS:
                spent += cost
                yield test


def _is_own(test: str, path: str) -> bool:
    """Whether a test is of the file itself: `mpc/sum.py`, like `mpc/sum/any.py`, has `tests/unit/mpc/test_sum*.py`."""
    package, name, *_ = Path(path).parts
    where = Path(test.partition("::")[0])
    return where.parent.name == package and where.stem.startswith(f"test_{Path(name).stem.split('_')[0]}")
