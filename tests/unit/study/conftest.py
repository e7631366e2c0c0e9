"""Fixtures of the suites about studies between organisations."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from organisations import Organisations


@pytest.fixture
def organisations(tmp_path: Path) -> Iterator[Organisations]:
    """Yield two organisations, and close what a test opened of them."""
    made = Organisations(tmp_path)
    yield made
    for node in made.open:
        node.close()
