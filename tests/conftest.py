"""Options and fixtures of every suite."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# a submission is judged by the same examples every time; at home hypothesis goes on searching
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("home", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "home")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh-golden", action="store_true", help="write the golden files anew; review the diff")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file of that name."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--refresh-golden"):
            path.write_text(text)
        assert text == path.read_text(), f"{name} changed: if that is meant, run pytest --refresh-golden"

    return compare
