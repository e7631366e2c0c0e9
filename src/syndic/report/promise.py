"""The privacy statement for readers: in plain words, in numbers, as odds, as a curve."""

from math import exp, isfinite

from syndic.privacy import at_delta, shown
from syndic.report.figure import Bars, Curve, Figure, Line, Series
from syndic.report.page import Grid, Section
from syndic.report.svg import HARD, number
from syndic.study.statement import (
    OTHER_ADVERSARIES,
    WHOLE_RELEASE,
    Statement,
    best_guess,
    events_in_words,
)

_CAUTION = (
    "This run protects nobody: see the warning at the top. What follows is what the study would guarantee if its sound "
    "method ran with fresh noise."
)
_PRIORS = ((0.001, "1 in 1,000"), (0.01, "1 in 100"), (0.1, "1 in 10"), (0.5, "1 in 2"))


def posterior(prior: float, epsilon: float) -> float:
    """Return the largest posterior probability after the release for a prior probability, at delta 0."""
    return prior / (prior + (1 - prior) * exp(-min(epsilon, 700.0)))


def percent(share: float) -> str:
    """Return a share as "73.1 %"; less than 1 is never shown as 100 %."""
    return f"{100 * share:.1f}{HARD}%" if share < 0.9995 or share >= 1.0 else f"over 99.9{HARD}%"


def cost_section(statement: Statement) -> Section:
    """Return what the study cost at each party: the number that the party's plan, agreement and ledger show."""
    same = " It is also the cost over the whole release, all parties together." if statement.one_number else ""
    disclosed = tuple(f"Disclosed exactly, outside any epsilon: {text}." for text in statement.discloses)
    return Section(
        title="What the study cost",
        paragraphs=(
            *disclosed,
            "The cost for one person at each party, at the study's delta. Plan, agreement and ledger show the same "
            f"number.{same}",
        ),
        tables=(charges(statement, "The cost for one person at each party, and what its ledger was charged for"),),
    )


def promise_section(statement: Statement) -> Section:
    """Return the guarantee in plain words, with the odds and the curve."""
    figures: list[Figure] = []
    if _charged(statement):
        figures += [_even_odds(statement)] if statement.delta else [_even_odds(statement), _beliefs(statement)]
    figures += _curve(statement)
    rows = tuple((who, f"epsilon {shown(epsilon)}") for who, epsilon in statement.other_adversaries.items())
    others = Grid(OTHER_ADVERSARIES, ("against", "for one person"), rows)
    return Section(
        title=f"The privacy guarantee. {WHOLE_RELEASE}",
        paragraphs=(
            *(() if statement.protects else (_CAUTION,)),
            f"Who is protected: {statement.unit_in_words[:1].lower()}{statement.unit_in_words[1:]}",
            _in_words(statement),
            _delta_in_words(statement),
            "The guarantee holds whatever computers and other knowledge a reader of the release has, now and later. "
            'Against those who took part it holds under the trust assumptions of "Who saw what, and whom to trust".',
        ),
        figures=tuple(figures),
        tables=(_numbers(statement), *((others,) if others.rows else ())),
    )


def _charged(statement: Statement) -> bool:
    """Whether epsilon says anything: nothing is charged for what is disclosed exactly."""
    return bool(statement.epsilon) or not statement.discloses


def _in_words(statement: Statement) -> str:
    if not _charged(statement):
        return "Nothing was charged, and epsilon 0 does not mean that nothing is learnt: see what was disclosed, above."
    inside = statement.unit.neighbours == "add_remove"
    asked = "is this person in the data or not?" if inside else "which of two possible records is this person's?"
    chance = percent(best_guess(statement.epsilon, statement.delta))
    return (
        f"Suppose somebody knows everything about everybody else in the data and wants to know about one person: "
        f"{asked} Without the release a guess would be right half of the time. With it, the best "
        f"possible guess is right at most {chance} of the time. The nearer to 50{HARD}%, the stronger the protection."
    )


def _delta_in_words(statement: Statement) -> str:
    if statement.delta == 0:
        return "Delta is 0: the guarantee holds for every possible outcome, without exception."
    return (
        f"Delta is {statement.delta:g}: a slack of one in {1 / statement.delta:,.0f} remains for outcomes that may "
        "reveal more than epsilon allows. The percentages here include it."
    )


def _even_odds(statement: Statement) -> Bars:
    after = best_guess(statement.epsilon, statement.delta)
    return Bars(
        title="How sure can a guess about one person be?",
        description=f"A guess is right 50{HARD}% of the time without the release, at most {percent(after)} with it; "
        f"100{HARD}% would be no protection.",
        labels=("without the release", "with it, at most", "no protection"),
        series=(Series("right guesses", (0.5, after, 1.0)),),
        form="percent",
        lying=True,
        most=1.0,
        width=404,
        pitch=26,
    )


def _beliefs(statement: Statement) -> Bars:
    pairs = [(prior, posterior(prior, statement.epsilon)) for prior, _ in _PRIORS]
    return Bars(
        title="Belief about a person before the release, and the largest after it",
        description=f"Whatever the belief before, the release multiplies the odds by at most "
        f"{number(exp(min(statement.epsilon, 700.0)))} (e to the power epsilon).",
        labels=tuple(f"believed {text}" for _, text in _PRIORS),
        series=(
            Series("before", tuple(before for before, _ in pairs)),
            Series("after, at most", tuple(after for _, after in pairs)),
        ),
        form="percent",
        lying=True,
        most=1.0,
    )


def _curve(statement: Statement) -> tuple[Curve, ...]:
    points = tuple((delta, epsilon) for epsilon, delta in statement.curve if isfinite(epsilon) and delta > 0)
    if len(points) < 2:
        return ()
    flat = len({epsilon for _, epsilon in points}) == 1
    shape = (
        "Epsilon is the same at every delta: a larger delta gains nothing."
        if flat
        else "All points hold at once: at a smaller delta the same release has a larger epsilon."
    )
    marks = ((statement.delta, statement.epsilon, "as stated"),) if statement.delta > 0 else ()
    return (
        Curve(
            title="The accountant's curve: epsilon against delta",
            description=f"{shape} Accountant: {statement.accountant}.",
            lines=(Line("epsilon", points, dots=True),),
            x_axis="delta",
            y_axis="epsilon",
            x_log=True,
            y_least=0.0,
            marks=marks,
        ),
    )


def _numbers(statement: Statement) -> Grid:
    unit = statement.unit
    change = "adding or removing one person" if unit.neighbours == "add_remove" else "replacing one person's rows"
    guess = percent(best_guess(statement.epsilon, statement.delta))
    rows = (
        ("epsilon, for one person over the whole release", shown(statement.epsilon)),
        ("delta", f"{statement.delta:g}"),
        *((("a right guess at even odds, at most", guess),) if _charged(statement) else ()),
        ("neighbouring data sets differ by", change),
        ("rows of a person at a party, at most", str(unit.rows)),
        ("parties that a person may be at, at most", str(unit.parties)),
        (
            "rows of one person are linked by",
            f"column '{unit.person}'" if unit.person else "no column: the owners vouch for the bound",
        ),
        ("accountant", statement.accountant),
        ("why the noise is large enough", statement.sensitivity),
        ("where the noise comes from", statement.randomness),
    )
    return Grid(f"{WHOLE_RELEASE}, in numbers", ("what", "value"), rows)


def charges(statement: Statement, caption: str) -> Grid:
    """Return what every party's ledger is charged for one person."""
    rows = tuple(
        (one.party, at_delta(one.epsilon, one.delta), events_in_words(one.events) or "nothing")
        for one in statement.parties
    )
    return Grid(caption, ("party", "cost", "charged for"), rows)
