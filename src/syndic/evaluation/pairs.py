"""The pairs of columns in which a release is furthest from the real rows, beside the error that the release expects."""

from collections.abc import Iterable
from typing import Final

from syndic.document import Document
from syndic.evaluation.distance import Distance
from syndic.methods.synthesis.trust import Reliability

SHOWN_PAIRS: Final = 10


class PairScore(Document):
    """Two columns: the distance from the real rows, and the one that the release expects. For the owner only.

    `expected` is computed from the release alone; None if the method does not publish what it takes.
    """

    columns: tuple[str, str]
    tvd: float
    expected: float | None


def worst_pairs(sets: Iterable[Distance], reliability: Reliability | None) -> tuple[PairScore, ...]:
    """Return the pairs with the largest distances, the worst first."""
    found: dict[tuple[str, str], float] = {}
    for one in sets:
        if len(one.columns) == 2:
            found[one.columns[0], one.columns[1]] = one.tvd
    worst = sorted(found, key=lambda pair: -found[pair])[:SHOWN_PAIRS]
    return tuple(
        PairScore(
            columns=pair,
            tvd=found[pair],
            expected=None if reliability is None else reliability.pair(*pair).error,
        )
        for pair in worst
    )
