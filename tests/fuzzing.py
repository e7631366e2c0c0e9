"""Helpers of the fuzz suites: the contract, the number of cases, and ways to corrupt bytes and documents.

The contract of everything that reads external input: every fuzzed input yields a value or a Syndic error. No other
exception, no hang, no memory above a bound, and never a row in an error's text.
"""

import math
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from syndic.errors import SyndicError

T = TypeVar("T")

CASES: Final = int(os.environ.get("SYNDIC_FUZZ", "40"))
"""The number of cases for a cheap target; `make test` uses few, `make fuzz` many."""

CANARY: Final = "zq7canary"
"""Planted in rows, and looked for in errors."""

CPU_SECONDS: Final = 20.0
MEMORY_BYTES: Final = 512 << 20
_STATUS: Final = Path("/proc/self/status")
_RESET: Final = Path("/proc/self/clear_refs")

NUMBERS: Final[tuple[Any, ...]] = (
    *(0, 1, -1, 2, 3, 7, 255, 256, 65536, 2**24, 2**31 - 1, 2**32, 2**53, 2**63 - 1, -(2**63), 2**64, 10**30, 10**400),
    *(0.0, -0.0, 0.5, 1e-9, 5e-324, 1e-300, 1e16, 1e308, math.inf, -math.inf, math.nan),
)
TEXTS: Final = (
    *("", " ", "nan", "inf", "1e999999999", "1e400", "1/0", "1/3", "-1/7", "0x10", "1_000", "true", "\x00"),
    *("\u202e", "e\u0301", "\U0001f600", "\u0663", "a" * 5000, "../../etc/passwd", "CON", "'; DROP TABLE", "%s", "{0}"),
)


def fuzz(share: float = 1.0) -> settings:
    """Return the settings of a target: all cases, or a share if one case is slow."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
    return settings(max_examples=max(2, round(CASES * share)), deadline=None, suppress_health_check=checks)


def outcome(act: Callable[[], T], *, kinds: tuple[type[SyndicError], ...] = (SyndicError,)) -> T | SyndicError:
    """Return what `act` returns, or the Syndic error that it raises; anything else fails the test."""
    with bounded():
        try:
            return act()
        except kinds as error:
            check_text(str(error))
            return error


def check_text(text: str) -> None:
    """Fail if a text that people may see contains a value of a row, or is empty."""
    assert text.strip(), "an error without a word"
    assert CANARY not in text.lower(), "an error quotes a row"
    assert "Traceback" not in text


@contextmanager
def bounded(seconds: float = CPU_SECONDS, memory: int = MEMORY_BYTES) -> Iterator[None]:
    """Fail if a case takes more CPU time or memory than allowed; other work on the machine does not count."""
    before = signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    start = _memory("VmRSS")
    if _RESET.exists():
        _RESET.write_text("5")
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    grown = _memory("VmHWM") - start
    assert grown <= memory, f"{grown >> 20} MiB were taken"


def _too_long(number: int, frame: FrameType | None) -> None:
    raise AssertionError(f"still working after {CPU_SECONDS:g} seconds of CPU time")


def _memory(name: str) -> int:
    if not _RESET.exists():
        return 0
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) << 10


@st.composite
def spoiled(draw: st.DrawFn, data: bytes, most: int = 4) -> bytes:
    """Return the bytes with a few faults: flipped, cut, repeated, put in, or a number made large."""
    found = bytearray(data)
    for _ in range(draw(st.integers(1, most))):
        start = draw(st.integers(0, max(0, len(found) - 1)))
        length = draw(st.sampled_from([1, 1, 2, 4, 8, 16, 100]))
        match draw(st.sampled_from(["flip", "set", "cut", "end", "repeat", "put", "number"])):
            case "flip":
                bit = 1 << draw(st.integers(0, 7))
                found[start : start + 1] = bytes(byte ^ bit for byte in found[start : start + 1])
            case "set":
                found[start : start + 1] = draw(st.binary(min_size=1, max_size=1))
            case "cut":
                del found[start : start + length]
            case "end":
                del found[start:]
            case "repeat":
                found[start:start] = found[start : start + length]
            case "put":
                found[start:start] = draw(st.binary(min_size=1, max_size=8))
            case "number":
                width = draw(st.sampled_from([2, 4, 8]))
                number = draw(st.sampled_from([0, 1, 2 ** (8 * width - 1), 2 ** (8 * width) - 1, 2 ** (4 * width)]))
                found[start : start + width] = number.to_bytes(width, draw(st.sampled_from(["little", "big"])))
    return bytes(found)


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every part of a document of dicts and lists."""
    yield path
    parts = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


def part_at(tree: Any, path: tuple[Any, ...]) -> Any:
    """Return the part of a document at a place."""
    for key in path:
        tree = tree[key]
    return tree


def copied(tree: Any) -> Any:
    """Return a document that can be changed without changing the first."""
    if isinstance(tree, dict):
        return {key: copied(part) for key, part in tree.items()}
    return [copied(part) for part in tree] if isinstance(tree, list | tuple) else tree


def strange() -> st.SearchStrategy[Any]:
    """Return values of a kind, size or spelling that nobody expects."""
    letters = st.characters(exclude_categories=["Cs"])
    return st.one_of(
        st.sampled_from(NUMBERS),
        st.integers() | st.floats(),
        st.sampled_from(TEXTS) | st.text(letters, max_size=12),
        st.booleans(),
        st.lists(st.sampled_from([*NUMBERS, *TEXTS]), max_size=3),
        st.dictionaries(st.sampled_from(["name", "value", "kind", ""]), st.sampled_from(NUMBERS)),
        st.sampled_from([2, 20, 200]).map(nested),
    )


def nested(depth: int) -> Any:
    """Return lists within lists."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


@st.composite
def spoiled_document(draw: st.DrawFn, tree: Any, words: dict[str, list[Any]]) -> Any:
    """Return a document with one to three of its keys gone, doubled, moved, retyped, or taken from another document."""
    found = copied(tree)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([place for place in places(found) if place]))
        parent, key = part_at(found, path[:-1]), path[-1]
        match draw(st.sampled_from(["gone", "again", "moved", "strange", "strange", "known", "known", "extra"])):
            case "gone":
                del parent[key]
            case "again" if isinstance(parent, list):
                parent.append(copied(parent[key]))
            case "again":
                parent[f"{key}2"] = parent[key]
            case "moved":
                parent[key] = copied(part_at(found, draw(st.sampled_from(list(places(found))))))
            case "strange":
                parent[key] = draw(strange())
            case "known":
                parent[key] = copied(draw(st.sampled_from(words.get(str(key)) or [None])))
            case "extra" if isinstance(parent, dict):
                parent[draw(st.sampled_from([*words, "unknown"]))] = draw(strange())
        if not found:
            break
    return found


def words_of(trees: list[Any]) -> dict[str, list[Any]]:
    """Return every value that documents have under each key."""
    found: dict[str, list[Any]] = {}
    for tree in trees:
        for path in places(tree):
            value = part_at(tree, path)
            if path and value not in found.setdefault(str(path[-1]), []):
                found[str(path[-1])].append(value)
    return found
