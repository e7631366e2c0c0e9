"""What fits into a cap."""

from fractions import Fraction

import pytest

from syndic.privacy.cost import Cost
from syndic.privacy.event import PureEvent
from syndic.privacy.filter import Charged
from syndic.privacy.room import fits, largest_fitting
from syndic.privacy.unit import Budget


def test_sums_that_the_file_cannot_hold_do_not_fit() -> None:
    """Many small pure events cost little by their rho, but the sum of their epsilons is kept in 64 bits."""
    cap = Budget(epsilon=Fraction(10**6), delta=Fraction(1, 10**6))
    assert fits(Charged.by_one(Cost(pure=2**62, rho_of_pure=10**12)), cap)
    assert not fits(Charged.by_one(Cost(pure=2**62 + 1, rho_of_pure=10**12)), cap)


@pytest.mark.parametrize("asked", ["0.500001", "0.6", "7", "3000"])
def test_the_largest_charge_that_fits_is_what_is_left(asked: str) -> None:
    spent = Charged.by_one(Cost.of([PureEvent(epsilon=Fraction(1, 2))]))
    found = largest_fitting(spent, [PureEvent(epsilon=Fraction(asked))], Budget(epsilon=Fraction(1)))
    assert Fraction(1, 2) - Fraction(asked) / 10**7 < found <= Fraction(1, 2)
