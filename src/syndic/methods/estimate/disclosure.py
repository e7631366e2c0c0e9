"""What every role of an estimate sees, in words."""

import numpy as np
from numpy.typing import NDArray

from syndic.kernel import Disclosure
from syndic.methods.estimate.layout import FINE, Layout
from syndic.privacy import Unit


def words(scheme: str, layout: Layout, unit: Unit, *, departures: tuple[str, ...]) -> Disclosure:
    """Return the disclosure of a scheme."""
    sizes = (
        "the least size that the study says of each party" if unit.neighbours == "add_remove" else "each party's size"
    )
    masked, in_blocks = scheme == "masked", scheme in ("dsaa", "csaa")
    noisy = "the noisy sums of all parties together" if masked else "every party's noisy sums"
    sees = f"{noisy}, and the estimates and intervals made of them"
    masks = {
        "coordinator": f"every party's sums under masks, which look uniform, who fell silent, {sees}",
        "other parties": f"sealed shares of masks, and {sees}; each knows its own sums and share of noise",
    }
    plain = {"coordinator": sees, "other parties": sees}
    return Disclosure(
        sees={**(masks if masked else plain), "anyone with the release": sees},
        sensitivity=_sensitivity(layout, unit, masked=masked, in_blocks=in_blocks),
        not_protected=(
            "what is true of groups: a pattern that many people share shows, as it should",
            f"people with more than one row at a party, or at more than {unit.parties} of the parties",
            f"{sizes}, the column, its bounds and the set of parameters: they are public",
            "the estimate, if the family does not fit: intervals are for the named law, of clipped values",
            *(
                ("against more parties than stated that pool their shares of the noise or leave them out",)
                if masked
                else ()
            ),
        ),
        departures=departures,
    )


def _sensitivity(layout: Layout, unit: Unit, *, masked: bool, in_blocks: bool) -> str:
    if in_blocks:
        size = len(layout.model.least)
        change = (
            f"replacing one row changes the estimate of one block, by at most {FINE} steps in each of {size} "
            f"parameter(s): {size * FINE} in l1, {size * FINE**2} in squared l2. Rows are put into "
            "blocks without looking at them"
        )
    else:
        change = (
            f"replacing one row changes the sums by the difference of two lines of a public table: at most {layout.l1} "
            f"steps in l1 and {layout.l2_squared} in squared l2"
        )
    paid = "the noise of the one sum" if masked else "each party's noise"
    drawn = (
        ". A party draws as many rows as the study says, so that a person more or less replaces one of them at most"
        if unit.neighbours == "add_remove"
        else ""
    )
    return f"{change}{drawn}. A person is at no more than {unit.parties} of the parties, and {paid} is made for that"


def printed_words(in_blocks: bool, factor: float) -> tuple[str, ...]:
    """Return which claims the printed variant does not meet."""
    first = (
        "corrected block estimates leave the set whose diameter the noise is made for, and the Euclidean diameter is "
        "taken where independent Laplace noise needs the l1 diameter"
        if in_blocks
        else "noise for k block means is n / k times what the mean of all rows needs, and the Euclidean diameter is "
        "taken where independent Laplace noise needs the l1 diameter"
    )
    order = "blocks of neighbouring rows: where rows are sorted by value, one row can move all others to other blocks"
    return (
        first,
        f"in real arithmetic {factor:.3g} times the stated epsilon holds for this unit",
        *((order,) if in_blocks else ()),
        "the noise is drawn in floating point, for which no guarantee is proven",
    )


def listed(numbers: NDArray[np.float64]) -> str:
    """Return numbers to three digits."""
    return ", ".join(f"{number:.3g}" for number in numbers)
