"""One running federation for all tests of a worker: starting it is most of the cost."""

import importlib.util
import time
from collections.abc import Iterator

import pytest

from federation import PARTIES, Federation


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark each test here."""
    item.add_marker(pytest.mark.deploy)
    if importlib.util.find_spec("nvflare") is None:
        item.add_marker(pytest.mark.skip(reason="nvflare is not installed: pip install 'syndic[flare]'"))


@pytest.fixture(scope="session")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    made = Federation(tmp_path_factory.mktemp("federation"), PARTIES)
    try:
        began = time.monotonic()
        for name in ("server", *PARTIES):
            made.start(name)
        made.wait_for(*PARTIES)
        made.start_seconds = time.monotonic() - began
        made.start_processor = {name: made.processor(name) for name in made.processes}
        yield made
    finally:
        made.close()
