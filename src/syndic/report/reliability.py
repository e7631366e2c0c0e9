"""The section on reliability: the expected error of every column and pair, as a map with numbers and in sentences."""

from syndic.methods.synthesis.trust import POOR, PairTrust, Reliability
from syndic.report.figure import Heat
from syndic.report.page import Grid, Section


def reliability_section(reliability: Reliability) -> Section:
    """Return the section: the sentence, the map, the worst pairs, and the relations to the target."""
    target = reliability.target
    marked = f" The target, {target}, is first and outlined." if target is not None else ""
    listed = reliability.worst() if target is None else reliability.with_target()
    caption = "Parts of the largest expected errors" if target is None else f"Relations to {target}, the worst first"
    head = ("columns", "expected error", "noise", "merged values", "model", "drawn rows", "association", "at most")
    return Section(
        title="Which relations can be relied on",
        paragraphs=(
            reliability.sentence,
            "An expected error is the total variation distance between this table and the rows behind it: 0 means the "
            "same shares, 1 nothing in common. It is computed from the release alone, from the noise on the counts, "
            "the values that were merged, and what the model does not hold. It is an expectation and not a bound: on "
            "made-up tables, most true errors are at most 1.5 times the expected one.",
        ),
        points=tuple(f"{pair}." for pair in reliability.worst()),
        figures=(_map(reliability, marked),),
        tables=(Grid(caption, head, tuple(map(_row, listed))),),
    )


def _map(reliability: Reliability, marked: str) -> Heat:
    target = reliability.target
    names = sorted((one.column for one in reliability.columns), key=lambda name: name != target)
    labels = tuple(f"▸ {name}" if name == target else name for name in names)
    errors = {frozenset(pair.columns): pair.expected.error for pair in reliability.pairs}
    errors |= {frozenset((one.column,)): one.expected.error for one in reliability.columns}
    return Heat(
        title="Expected error of every column and every pair",
        description=f"Numbers are hundredths of the largest possible error, 1. The diagonal has the single columns. "
        f"Above {POOR:g} (10), a relation is not held well.{marked}",
        rows=labels,
        columns=labels,
        values=tuple(tuple(errors[frozenset((one, other))] for other in names) for one in names),
        hundredths=True,
        marked=f"▸ {target}",
        width=680,
    )


def _row(pair: PairTrust) -> tuple[str, ...]:
    one = pair.expected
    values = (one.error, one.noise, one.merged, one.model, one.drawn, pair.strength, pair.limit)
    return " x ".join(pair.columns), *(f"{value:.3f}" for value in values)
