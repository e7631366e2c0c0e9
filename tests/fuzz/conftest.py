"""The suite's marker and its quiet log, beside the suite."""

import logging
from collections.abc import Iterator

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fuzz: spoiled input; SYNDIC_FUZZ says how many cases, `make fuzz` takes many")


@pytest.fixture(scope="module", autouse=True)
def _quiet_log() -> Iterator[None]:
    """Thousands of refusals are expected here: log none of them, and log again for the tests that follow."""
    log = logging.getLogger("syndic")
    before = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(before)
