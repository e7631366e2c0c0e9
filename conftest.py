"""Options and fixtures of every suite, of the package and of the lab."""

import os
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import settings

# a submission is judged by the same examples every time; at home hypothesis goes on searching
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("home", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "home")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was not tested here, a sentence and a number for each thing that is not installed."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1
    if reasons:
        terminalreporter.section("skipped")
        for reason, count in sorted(reasons.items()):
            terminalreporter.write_line(f"{count:4d}  {reason}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the many short files of unit tests last: a long file at the end would leave a worker idle."""
    items.sort(key=lambda item: "unit" in item.path.parts[:-2])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh-golden", action="store_true", help="write the golden files anew; review the diff")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file of that name, in the folder `golden` of the suite."""
    suite = next(folder for folder in request.path.parents if folder.name == "tests")

    def compare(name: str, text: str) -> None:
        path = suite / "golden" / name
        if request.config.getoption("--refresh-golden"):
            path.write_text(text)
        assert text == path.read_text(), f"{name} changed: if that is meant, run pytest --refresh-golden"

    return compare
