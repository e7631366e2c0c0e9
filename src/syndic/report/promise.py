"""The privacy statement for people: in plain words, in numbers, as odds, as a curve."""

from collections import Counter
from math import exp, isfinite

from syndic.privacy import Unit
from syndic.report.figure import Bars, Curve, Figure, Line, Series
from syndic.report.page import Grid, Section
from syndic.report.svg import HARD, number
from syndic.study.statement import PartyCost, Statement

_PRIORS = ((0.001, "1 in 1,000"), (0.01, "1 in 100"), (0.1, "1 in 10"), (0.5, "1 in 2"))


def guess(epsilon: float, delta: float) -> float:
    """Return the largest chance to guess one even yes-or-no question about a person right, from the release.

    For two neighbouring tables, each with chance 1/2, the best test is right with chance at most
    (e^epsilon + delta) / (1 + e^epsilon): Kairouz, Oh and Viswanath 2015, Theorem 2.1, at equal errors.
    """
    least = 1 / (1 + exp(min(epsilon, 700.0)))
    return min(1.0, 1 - least + delta * least)


def posterior(prior: float, epsilon: float) -> float:
    """Return the largest belief after the release of someone whose belief was `prior`, for delta 0."""
    return prior / (prior + (1 - prior) * exp(-min(epsilon, 700.0)))


def percent(share: float) -> str:
    """Return a share as "73.1 %", never rounded up to certainty."""
    return f"{100 * share:.1f}{HARD}%" if share < 0.9995 or share >= 1.0 else f"over 99.9{HARD}%"


def promise_section(statement: Statement) -> Section:
    """Return the promise in plain words, with the odds and the curve."""
    figures: list[Figure] = [_even_odds(statement)]
    if statement.delta == 0:
        figures.append(_beliefs(statement))
    figures += _curve(statement)
    return Section(
        title="The privacy promise",
        paragraphs=(
            *_caution(statement),
            f"Who is protected: {statement.unit_in_words[:1].lower()}{statement.unit_in_words[1:]}",
            _in_words(statement),
            _delta_in_words(statement),
            "Whoever sees the release may have any computer and any other knowledge, now and later: the promise "
            'holds. Against those who took part it holds under the trust that "Who saw what, and whom to trust" '
            "names. It is for the whole joint release, all parties together.",
        ),
        figures=tuple(figures),
        tables=(_numbers(statement), _charges(statement)),
    )


def _caution(statement: Statement) -> tuple[str, ...]:
    if statement.protects:
        return ()
    return (
        "This run protects nobody: see the warning at the top. What follows is what the study would promise, run "
        "by its sound method with fresh noise.",
    )


def _in_words(statement: Statement) -> str:
    chance = percent(guess(statement.epsilon, statement.delta))
    return (
        f"Suppose somebody knows everything about everybody else in the data and wonders about one person: "
        f"{_question(statement.unit)} Without the release a guess would be right half of the time. With it, the best "
        f"possible guess is right at most {chance} of the time. The nearer to 50{HARD}%, the stronger the protection."
    )


def _question(unit: Unit) -> str:
    if unit.neighbours == "add_remove":
        return "is this person in the data or not?"
    return "which of two possible records is this person's?"


def _delta_in_words(statement: Statement) -> str:
    if statement.delta == 0:
        return "Delta is 0: the promise holds for every possible outcome, without exception."
    one_in = 1 / statement.delta
    return (
        f"Delta is {statement.delta:g}: a slack of one in {one_in:,.0f} is left for outcomes that may tell more "
        "than epsilon says. It is counted in the percentage above."
    )


def _even_odds(statement: Statement) -> Bars:
    after = guess(statement.epsilon, statement.delta)
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
        title="What somebody believed, and can believe at most",
        description=f"Whatever was believed of a person before, the release multiplies the odds by at most "
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
        "Epsilon is the same at every delta: nothing is bought by accepting a larger one."
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
    rows = (
        ("epsilon, for one person over the whole release", f"{statement.epsilon:.6g}"),
        ("delta", f"{statement.delta:g}"),
        ("a right guess at even odds, at most", percent(guess(statement.epsilon, statement.delta))),
        ("what is hidden", change),
        ("rows of a person at a party, at most", str(unit.rows)),
        ("parties that a person may be at, at most", str(unit.parties)),
        (
            "rows of one person are told by",
            f"column '{unit.person}'" if unit.person else "no column: the owners vouch for it",
        ),
        ("accountant", statement.accountant),
        ("why the noise is large enough", statement.sensitivity),
        ("where the noise comes from", statement.randomness),
    )
    return Grid(caption="The promise in numbers", head=("what", "value"), rows=rows)


def _charges(statement: Statement) -> Grid:
    return Grid(
        caption="What each party's ledger was charged, for one of its people",
        head=("party", "epsilon", "delta", "right guesses, at most", "what was done"),
        rows=tuple(_charge(party) for party in statement.parties),
        numbers=(1, 2, 3),
    )


def _charge(party: PartyCost) -> tuple[str, ...]:
    counted = Counter(event.what for event in party.events if event.what)
    said = (what if times == 1 else f"{times} times {what}" for what, times in counted.items())
    what = "; ".join(said) or "nothing was released"
    return (
        party.party,
        f"{party.epsilon:.6g}",
        f"{party.delta:g}",
        percent(guess(party.epsilon, party.delta)),
        what,
    )
