"""What was spent on a data set, by all studies and by each, and the sentence in which an owner reads it."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import isinf
from typing import Final

from syndic.document import Document
from syndic.privacy.chain import Entry
from syndic.privacy.cost import Cost, Price, shown
from syndic.privacy.covered import run_of
from syndic.privacy.event import ConcentratedEvent, Event, GaussianEvent
from syndic.privacy.filter import Charged
from syndic.privacy.unit import Budget

STUDY_COLUMNS: Final = ("study", "data set", "cost", "charged", "spent after it", "cap")
"""What `StudySpending.row` has."""


class Spending(Document, frozen=True, kw_only=True):
    """What was spent on a data set: `epsilon` at the cap's `delta`, and what is `left` of the cap.

    `epsilon` is None where none at this delta covers what was spent.
    """

    dataset: str
    cost: Cost
    epsilon: Fraction | None
    delta: Fraction
    cap: Budget
    left: Fraction

    @classmethod
    def of(cls, dataset: str, charged: Charged, cap: Budget) -> "Spending":
        """Return what was charged, at the cap's delta."""
        found = charged.epsilon(cap)
        epsilon = None if isinf(found) else Fraction(found)
        left = Fraction(0) if epsilon is None else max(Fraction(0), cap.epsilon - epsilon)
        return cls(dataset=dataset, cost=charged.cost, epsilon=epsilon, delta=cap.delta, cap=cap, left=left)

    @property
    def fits(self) -> bool:
        """Whether the cap covers it."""
        return self.epsilon is not None and self.epsilon <= self.cap.epsilon

    def __str__(self) -> str:
        delta = f" (delta {float(self.delta):g})" if self.delta else ""
        return f"{shown(self.epsilon)} of cap {shown(self.cap.epsilon)}{delta}"


class StudySpending(Document, frozen=True, kw_only=True):
    """What one study cost a data set.

    `price` is the cost that the study stated before it ran, `charged` is what was charged so far, at the same delta,
    and `after` is all that was spent on the data set once the study's last charge was written. `study` is the digest.
    """

    dataset: str
    study: str
    price: Price
    charged: Fraction | None
    after: Spending

    @property
    def complete(self) -> bool:
        """Whether everything that the study may charge was charged."""
        return self.price.epsilon is None or self.charged is None or self.charged >= self.price.epsilon

    @property
    def row(self) -> tuple[str, ...]:
        """The texts of a table with `STUDY_COLUMNS`."""
        charged = "nothing" if self.charged == 0 else "in full" if self.complete else f"epsilon {shown(self.charged)}"
        name = f"{self.price.study} ({self.study[:12]})" if self.price.study else self.study[:24]
        after, cap = shown(self.after.epsilon), shown(self.after.cap.epsilon)
        return name, self.dataset, str(self.price), charged, after, cap


def cost_sentence(price: Price, after: Spending) -> str:
    """Return "this study costs X; after it Y of your cap Z is spent".

    X is at the study's delta; Y and Z are at the cap's, which is named where it is another one.
    """
    costs = f"this study costs epsilon {shown(price.epsilon)}"
    then = f"after it {shown(after.epsilon)} of your cap {shown(after.cap.epsilon)} is spent"
    if price.delta != after.delta:
        costs += f" at its delta, {float(price.delta):g}"
        then += f" at the cap's delta, {float(after.delta):g}"
    elif price.delta:
        then += f", at delta {float(price.delta):g}"
    if after.epsilon is None:
        return f"{costs}; it does not fit under your cap: {delta_needed((), after.cap)}"
    return f"{costs}; {then}" + ("" if after.fits else ": more than the cap, so the study will be refused")


def delta_needed(events: Sequence[Event], cap: Budget) -> str:
    """Return why a charge is unbounded under a cap, and what its owner can do."""
    gaussian = not events or any(isinstance(event, ConcentratedEvent | GaussianEvent) for event in events)
    what = "Gaussian noise" if gaussian else "this charge"
    if cap.delta == 0:
        return f"this party's cap has no delta, and {what} needs one: set `delta` in party.toml"
    return (
        f"the delta of this party's cap ({float(cap.delta):g}) is too small for {what}: set a larger `delta` in "
        "party.toml"
    )


def by_study(entries: Iterable[Entry], caps: dict[str, Budget]) -> tuple[StudySpending, ...]:
    """Return what each study cost each data set, in the order of their first entries.

    `caps` has the cap in force of every data set that counts.
    """
    prices: dict[tuple[str, str], Price | None] = {}
    charged: dict[tuple[str, str], list[Event]] = {}
    all_of: dict[str, list[Event]] = {}
    firsts: dict[str, Entry] = {}
    studies: dict[str, set[str]] = {}
    ends: dict[tuple[str, str], tuple[int, bool]] = {}
    for entry in entries:
        place = (entry.dataset, run_of(entry.study))
        if entry.kind not in {"agree", "plan", "reserve", "disclose"} or entry.dataset not in caps:
            continue
        prices[place] = entry.stated or prices.get(place)
        if entry.kind in {"plan", "reserve"}:
            firsts.setdefault(entry.dataset, entry)
        if entry.kind == "reserve":
            charged.setdefault(place, []).extend(entry.events)
            all_of.setdefault(entry.dataset, []).extend(entry.events)
            studies.setdefault(entry.dataset, set()).add(entry.study)
        if entry.kind == "reserve" or place not in ends:
            ends[place] = len(all_of.get(entry.dataset, ())), len(studies.get(entry.dataset, ())) < 2
    found = []
    for (dataset, study), stated in prices.items():
        events, cap = charged.get((dataset, study), []), caps[dataset]
        price = stated or Price.of("", events, cap.delta)
        cost = Cost.of(events).epsilon(price.delta)
        number, alone = ends[dataset, study]
        after = Cost.of(all_of.get(dataset, [])[:number])
        first = firsts[dataset].cost if dataset in firsts else after
        found.append(
            StudySpending(
                dataset=dataset,
                study=study,
                price=price,
                charged=None if isinf(cost) else Fraction(cost),
                after=Spending.of(dataset, Charged(cost=after, first=first, alone=alone), cap),
            )
        )
    return tuple(found)
