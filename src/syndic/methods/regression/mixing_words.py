"""What every role of a release of noisy columns sees, in words."""

from syndic.kernel import Disclosure, Terms
from syndic.methods.regression.mixing_layout import Bounds, Layout, Scheme, budgets_of
from syndic.privacy import Cost


def words(terms: Terms, layout: Layout, *, scheme: Scheme, bounds: Bounds, as_printed: bool) -> Disclosure:
    """Return the disclosure of a scheme."""
    mixed = scheme == "rmgm"
    rows = (
        f"{layout.mixes} noisy rows, each a sum over all people with signs, and the signs"
        if mixed
        else "every person's noisy row"
    )
    signs = "; mixed, by that times the root of the number of mixes, whatever the signs are" if mixed else ""
    return Disclosure(
        sees={"coordinator": rows, "other parties": rows, "anyone with the release": rows},
        sensitivity=(
            "replacing one person's values at all parties at once moves the person's row by at most "
            f"{sum(layout.squares.values())} in squared l2, for values in [-1, 1]{signs}. "
            + _charged(layout, as_printed=as_printed)
        ),
        not_protected=(
            "who the people are: aligning the rows shows every party who is in; and how many, which the release shows",
            "what is true of groups: a relation that holds for many people shows, as it should",
            "the columns, their bounds and lists of values: they are public",
        ),
        departures=_departures(terms, layout, bounds) if as_printed else (),
    )


def _charged(layout: Layout, *, as_printed: bool) -> str:
    parts = ", ".join(f"{name} {square}" for name, square in layout.squares.items())
    made = "each party's noise is made as if no other had the person" if as_printed else "the noise is made for the sum"
    return f"By party: {parts}; {made}, and each ledger is charged its own part"


def _departures(terms: Terms, layout: Layout, bounds: Bounds) -> tuple[str, ...]:
    strictest = min(budgets_of(terms), key=lambda budget: (budget.epsilon, budget.delta))
    joint = Cost.of([noise.event for noise in layout.noises.values()]).epsilon(strictest.delta)
    double = (
        " The noise is for values in [-1, 1] and twice what those in [0, 1] need, which hides part of it."
        if bounds == "unit"
        else ""
    )
    return (
        f"the paper promises epsilon {float(strictest.epsilon):g} for each party's release by itself; a person is a "
        f"row at all {len(layout.noises)} parties, whose releases together cost epsilon {float(joint):.4g}.{double}",
        "the classical formula for the noise holds for epsilon up to 1 only, and is loose there",
    )
