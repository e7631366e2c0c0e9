"""How an owner's people fit a study: their rows under its unit, their ids in an alignment. Private, like `fit`."""

from collections import Counter
from itertools import islice
from typing import Final, final

import numpy as np
from msgspec.structs import replace

from syndic.data import Source
from syndic.data.aligned import IdRule, Spelling, id_batches, id_text, written_ids
from syndic.data.source import check_columns
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


_SHOWN: Final = 3
_LONGEST: Final = 60
_WIDEST: Final[tuple[Spelling, ...]] = ("nfkc", "accents", "casefold", "words", "alphanumeric", "zeros")
FORM_HEAD: Final[tuple[str, ...]] = ("ids as written", "as compared", "what happens")


class IdForm(Document):
    """Some spellings of an id, the form in which it is compared, and what happens to it. Private."""

    written: tuple[str, ...]
    compared: str
    fate: str

    def row(self) -> tuple[str, ...]:
        """Return the cells of this form in a table with the head `FORM_HEAD`."""
        return ", ".join(repr(one) for one in self.written), repr(self.compared), self.fate


@final
class IdFit(Document):
    """What an alignment would do with the owner's rows. Private.

    Of all `rows`, `blank` have no id. `ids` take part, at most `bound` of them. `repeated` ids have several rows, and
    `respelled` ones of these are written in several ways. `near` ids would be equal to another one if marks, case,
    order of words and zeros did not count. `lost` rows do not take part. `forms` are examples.
    """

    columns: tuple[str, ...]
    rows: int
    blank: int
    ids: int
    bound: int
    repeated: int
    respelled: int
    near: int
    lost: int
    forms: tuple[IdForm, ...]

    @property
    def poor(self) -> bool:
        """Whether agreeing needs a second yes: a tenth of the rows is lost, or ids are beyond the bound."""
        return self.lost > CUT * self.rows or self.ids > self.bound

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do about it."""
        texts = []
        if self.blank > CUT * self.rows:
            texts.append(f"{percent(self.blank, self.rows)} of the rows have no id in {', '.join(self.columns)}")
        if self.respelled:
            texts.append(f"{self.respelled:,} ids are written in several ways: are these the same people?")
        if self.near:
            texts.append(
                f"{self.near:,} ids differ from another one only in marks, case, order of words or zeros: if these are "
                "the same people, ask for more rules in `spelling`"
            )
        if self.ids > self.bound:
            texts.append(
                f"your source has {self.ids:,} ids, and the study says people = {self.bound}: the last ones are left "
                "out. Ask for a larger number"
            )
        return tuple(f"{text} {PRIVATE}" for text in texts)

    def lines(self) -> dict[str, str]:
        """Return what happens to the rows, in words."""
        return {
            "rows": f"{self.rows:,}",
            "rows without an id": f"{self.blank:,}",
            "ids in several rows": f"{self.repeated:,}, of them written in several ways {self.respelled:,}",
            "ids that take part": f"{min(self.ids, self.bound):,} of at most {self.bound:,}",
            "rows left out": f"{self.lost:,} ({percent(self.lost, self.rows)})",
        }


def fit_ids(source: Source, columns: tuple[str, ...], rule: IdRule, bound: int) -> IdFit:
    """Return what an alignment by these columns and this rule would do with a source's rows. Private."""
    names = check_columns(source, columns)
    widest = replace(rule, spelling=(*_WIDEST, *(one for one in rule.spelling if one.endswith("_first"))))
    times: Counter[bytes] = Counter()
    first: dict[bytes, str] = {}
    other: dict[bytes, str] = {}
    wide: dict[bytes, bytes] = {}
    near: dict[bytes, bytes] = {}
    rows = 0
    for batch in source.batches(names):
        (ids,), (loose,) = (list(id_batches([batch], names, each)) for each in (rule, widest))
        rows += len(ids)
        for one, alike, text in zip(ids, loose, written_ids(batch, names), strict=True):
            if one is None:
                continue
            times[one] += 1
            if first.setdefault(one, text) != text:
                other.setdefault(one, text)
            if alike is not None and wide.setdefault(alike, one) != one:
                near[one] = wide[alike]
    repeated = sum(number > 1 for number in times.values())
    several = "one id in several rows: " + ("all left out" if rule.duplicates == "drop" else "the first counts")
    kept = len(times) - (repeated if rule.duplicates == "drop" else 0)
    # written in several ways, in several rows, nearly equal ones, and others that change
    kinds = (
        ((one, several) for one in first if one in other),
        ((one, several) for one in first if times[one] > 1 and one not in other),
        ((one, f"another id than {_short(like)!r}") for one, like in near.items()),
        ((one, "takes part") for one in first if times[one] == 1 and first[one] != id_text(one)),
    )
    return IdFit(
        columns=tuple(names),
        rows=rows,
        blank=rows - times.total(),
        ids=kept,
        bound=bound,
        repeated=repeated,
        respelled=len(other),
        near=len(near),
        lost=rows - min(kept, bound),
        forms=tuple(
            IdForm(
                written=tuple(texts[one][:_LONGEST] for texts in (first, other) if one in texts),
                compared=_short(one),
                fate=fate,
            )
            for kind in kinds
            for one, fate in islice(kind, _SHOWN)
        ),
    )


def _short(identity: bytes) -> str:
    return id_text(identity)[:_LONGEST]
