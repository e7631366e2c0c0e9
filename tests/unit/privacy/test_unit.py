from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, Literal

import pytest

from syndic.errors import InputError
from syndic.privacy.unit import Budget, Unit, check_delta, default_delta

CELLS = range(3)


def histograms(rows: int, *, fewer: bool) -> list[list[int]]:
    """Every histogram of one person's rows over three cells."""
    sizes = range(rows + 1) if fewer else [rows]
    people = [person for size in sizes for person in combinations_with_replacement(CELLS, size)]
    return [[Counter(person)[cell] for cell in CELLS] for person in people]


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_sensitivities_of_counts_agree_with_trying_every_person(
    neighbours: Literal["add_remove", "replace"], rows: int
) -> None:
    unit = Unit(neighbours=neighbours, rows=rows)
    before = histograms(rows, fewer=neighbours == "add_remove")
    after = [[0, 0, 0]] if neighbours == "add_remove" else before
    changes = [[b - a for a, b in zip(x, y, strict=True)] for x in before for y in after]
    assert unit.l1_of_counts() == max(sum(abs(step) for step in change) for change in changes)
    assert unit.l2_squared_of_counts() == max(sum(step**2 for step in change) for change in changes)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"neighbours": "add_remove", "rows": 0}, r"rows \(0\) must be at least 1"),
        ({"neighbours": "replace", "parties": 0}, r"parties \(0\) must be at least 1"),
        ({"neighbours": "bounded"}, r"neighbours \(bounded\) must be"),
    ],
)
def test_impossible_units_are_refused(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Unit(**fields)


@pytest.mark.parametrize(
    ("epsilon", "delta", "text"),
    [
        (Fraction(0), Fraction(0), r"epsilon \(0\) must be positive and finite"),
        (Fraction(1), Fraction(-1), r"delta \(-1\) must be positive"),
        (Fraction(1), Fraction(1), r"delta \(1\) must be in \[0, 1\)"),
    ],
)
def test_impossible_budgets_are_refused(epsilon: Fraction, delta: Fraction, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Budget(epsilon=epsilon, delta=delta)


def test_delta_may_be_a_hundredth_of_one_person_and_no_more() -> None:
    check_delta(Fraction(1, 100_000), 1000)
    check_delta(Fraction(0), 1000)
    with pytest.raises(
        InputError, match=r"delta \(1\.1e-05\) must be at most .* 1e-05 for 1000 people: set it to 1e-05"
    ):
        check_delta(Fraction(11, 10**6), 1000)
    with pytest.raises(InputError, match=r"people \(0\)"):
        check_delta(Fraction(0), 0)


@pytest.mark.parametrize("people", [1, 2, 99, 9_999, 10_000, 10_001, 45_222, 21_574, 10**6, 7 * 10**9])
def test_the_default_delta_is_one_digit_below_both_bounds(people: int) -> None:
    delta = default_delta(people)
    bound = min(people**-1.5, 1e-2 / people)
    assert bound / 2 < float(delta) <= bound * (1 + 1e-12)
    assert f"{float(delta):e}".split("e")[0].rstrip("0") in {f"{digit}." for digit in range(1, 10)}
    check_delta(delta, people)


def test_a_person_has_one_row_at_one_party_unless_the_study_says_more() -> None:
    assert Unit(neighbours="add_remove") == Unit(neighbours="add_remove", rows=1, parties=1, person=None)


def test_budgets_reach_to_a_million_and_have_no_delta_unless_it_is_given() -> None:
    assert Budget.of(10**6) == Budget(epsilon=Fraction(10**6), delta=Fraction(0))
    with pytest.raises(InputError, match=r"budget: epsilon \(1e\+06\) must be at most 1e\+06: it protects nobody"):
        Budget.of(Fraction(10**6) + Fraction(1, 10**9))
    with pytest.raises(InputError, match=r"^budget: "):
        Budget.of("1/0")


@pytest.mark.parametrize(
    ("people", "delta"),
    # 1e-2 / people below ten thousand people, people^-1.5 above; one digit, rounded down
    [(1, "0.01"), (3, "0.003"), (30, "3e-4"), (9_999, "1e-6"), (10_001, "9e-7"), (45_222, "1e-7"), (10**6, "1e-9")],
)
def test_the_default_delta_of_some_sizes(people: int, delta: str) -> None:
    assert default_delta(people) == Fraction(delta)
