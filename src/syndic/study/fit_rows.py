"""How the rows of an owner's people fit the unit of a study, and what each bound keeps. Private, like `fit`."""

from collections import Counter
from typing import Final

import numpy as np

from syndic.document import Document
from syndic.privacy import Unit
from syndic.privacy.unit import MOST_WEIGHTED

PRIVATE: Final = "(this line is private)"
CUT: Final = 0.1
"""The share of rows that the bound cuts, above which agreeing needs a second yes; and of values worth a line."""
_BOUNDS: Final = (1, 2, 3, 4, 5, 10, 20, 50, 100)
BOUND_HEAD: Final[tuple[str, ...]] = ("unit", "of the rows kept", "of the people keep all their rows")
_ORDER: Final = {"first": "first", "last": "last", "random": "randomly chosen", "weighted": "first"}


class BoundLine(Document):
    """What a bound on the rows of a person keeps: rows, and people with all their rows. Private.

    `weighted`: the rows of a person share the weight of one row (`choose = "weighted"`).
    """

    rows: int
    rows_kept: int
    people_kept: int
    weighted: bool = False

    @property
    def label(self) -> str:
        """The keys of `[unit]` as a study says them."""
        return f"rows = {self.rows}" + (', choose = "weighted"' if self.weighted else "")


def percent(part: int, whole: int) -> str:
    """Return a share in percent; a small one is never shown as none, nor nearly all as all."""
    if part == 0 or whole == 0:
        return "0 %"
    return f"{min(max(100 * part // whole, 1), 100)} %" if 100 * part >= whole else "below 1 %"


def bounds_of(people: Counter[object], rows: int) -> tuple[BoundLine, ...]:
    """Return what each bound on the rows of a person keeps, and what weights keep."""
    have = np.array(list(people.values()), dtype=np.int64)
    largest = int(have.max(initial=1))
    tried = sorted({rows, *(bound for bound in _BOUNDS if bound < largest), largest})
    lines = [(bound, False) for bound in tried]
    if largest > 1:
        # the noise of one row, whatever the bound
        lines.append((min(largest, MOST_WEIGHTED), True))
    return tuple(
        BoundLine(
            rows=bound,
            rows_kept=int(np.minimum(have, bound).sum()),
            people_kept=int((have <= bound).sum()),
            weighted=weighted,
        )
        for bound, weighted in lines
    )


def rows_cut(bounds: tuple[BoundLine, ...], unit: Unit | None, rows: int, nobody: int) -> list[str]:
    """Return what to say about rows that do not count."""
    texts = []
    if nobody > CUT * rows:
        texts.append(f"{percent(nobody, rows)} of the rows have no person and are left out {PRIVATE}")
    kept = {one.rows: one.rows_kept for one in bounds if not one.weighted}
    if unit is None or unit.rows not in kept or rows - nobody - kept[unit.rows] <= CUT * rows:
        return texts
    enough = [bound for bound, found in kept.items() if rows - nobody - found <= CUT * rows]
    noise = "no more noise" if unit.choose == "weighted" else "more noise"
    shared = [
        f"; {one.label} keeps {percent(one.rows_kept, rows)} with the noise of one row"
        for one in bounds
        if one.weighted and unit.choose != "weighted"
    ]
    texts.append(
        f"rows = {unit.rows} keeps {percent(kept[unit.rows], rows)} of the rows, the {_ORDER[unit.choose]} of each "
        f"person; rows = {min(enough)} keeps {percent(kept[min(enough)], rows)}, with {noise}{''.join(shared)} "
        + PRIVATE
    )
    return texts


def number_of_rows(unit: Unit | None, people: int | None, rows: int) -> list[str]:
    """Return what to say if the number of rows that count is not the declared one. A run says nothing about it."""
    if unit is None or people is None:
        return []
    has = f"your source has {rows:,} rows that count, and the study says people = {people}"
    if unit.sizes_are_public and rows != people:
        fate = "the last rows are left out" if rows > people else "rows of missing values are added"
        return [f"{has}: in a run {fate}. Ask for the right number {PRIVATE}"]
    if rows > people * unit.whole_rows:
        return [
            f"{has}, with at most {unit.whole_rows} rows each: larger counts are cut. Ask for a larger number {PRIVATE}"
        ]
    return []
