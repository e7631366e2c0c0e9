"""The suite's marker, beside the suite."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fuzz: spoiled input; SYNDIC_FUZZ says how many cases, `make fuzz` takes many")
