"""How an owner's ids would be compared in an alignment, and which rows would be left out. Private, like `fit`."""

from collections import Counter
from itertools import islice
from typing import Final, final

from msgspec.structs import replace

from syndic.data import Source
from syndic.data.aligned import IdRule, Spelling, id_batches, id_text, written_ids
from syndic.data.source import check_columns
from syndic.document import Document
from syndic.study.fit_rows import CUT, PRIVATE, percent

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
