"""What the guard measures, once: errors of small whole runs, and CPU time beside a reference in the same run.

Lower is better in all of them. Noise comes from the run's seed, so it protects nobody.
"""

from collections.abc import Iterator

from syndic.bench.guard_errors import Found, errors
from syndic.bench.guard_speeds import speeds


def measure(seed: int) -> Iterator[Found]:
    """Yield row, metric and value of every mark, once."""
    yield from errors(seed)
    yield from speeds()


def measured_alone(seed: int) -> tuple[Found, ...]:
    """Return every mark, measured once; to be run in a process of its own."""
    return tuple(measure(seed))
