"""Rules, claims, and what a catalogue's entry says about itself."""

import pytest
from msgspec.structs import replace

from syndic_lab.bench.row import Row
from syndic_lab.reproduce import Claim, Found, Item, Paper, Rule
from syndic_lab.reproduce.item import BOUND, SAID

PAPER = Paper("somebody-2000", "Somebody 2000")


def row(metric: str, value: float, published: float | None = None) -> Row:
    return Row(bench="made-up", row="a row", metric=metric, value=value, unit="", published=published)


@pytest.mark.parametrize(
    ("rule", "value", "published", "verdict"),
    [
        (Rule(within=0.1), 1.09, 1.0, "agrees"),
        (Rule(within=0.1), 0.91, 1.0, "agrees"),
        (Rule(within=0.1), 1.2, 1.0, "same order"),
        (Rule(within=0.1, factor=4), 4.1, 1.0, "differs"),
        (Rule(within=0.1, factor=4), 0.24, 1.0, "differs"),
        (Rule(within=0.1), -1.0, 1.0, "differs"),
        (Rule(within=0.1, absolute=0.05), 0.04, 0.0, "agrees"),
        (Rule(within=0.1), 0.04, 0.0, "differs"),
        (Rule(within=0.0), 1.0, 1.0, "agrees"),
        (Rule(cost=True), 1.0, 100.0, "cheaper"),
        (Rule(cost=True), 101.0, 100.0, "dearer"),
    ],
)
def test_verdicts(rule: Rule, value: float, published: float, verdict: str) -> None:
    assert rule.verdict(value, published) == verdict


@pytest.mark.parametrize(
    ("rule", "value", "error", "verdict"),
    [
        (Rule(within=0.1), 1.3, 0.16, "agrees"),
        (Rule(within=0.1), 1.3, 0.14, "same order"),
        (SAID, 1.0, None, "agrees"),
        (SAID, 0.0, None, "differs"),
        (SAID, 0.5, None, "undecided"),
        (BOUND, 0.2, None, "agrees"),
        (BOUND, 1.1, 0.06, "agrees"),
        (BOUND, 1.2, 0.06, "differs"),
    ],
)
def test_verdicts_use_the_spread_of_runs(rule: Rule, value: float, error: float | None, verdict: str) -> None:
    assert rule.verdict(value, 1.0, error) == verdict
    made = Item(name="a", paper=PAPER, where="", what="", rules=(("", rule),))
    assert made.verdicts([replace(row("loss", value, 1.0), error=error, runs=3)]) == [verdict]


def test_rules_say_what_they_ask() -> None:
    ending = "or two standard errors; same order: within a factor of 4"
    assert Rule(within=0.25).words() == f"agrees: within 25% {ending}"
    assert Rule(within=0.0, absolute=0.1).words() == f"agrees: equal or within 0.1 {ending}"
    assert "no more than published" in Rule(cost=True).words()
    assert "undecided" in SAID.words()
    assert "bound" in BOUND.words()


def test_the_first_rule_that_fits_counts_and_claims_are_judged_too() -> None:
    item = Item(
        name="a",
        paper=PAPER,
        where="Table 1",
        what="",
        measure=lambda _: iter(()),
        rules=(("loss", Rule(within=0.5)), ("", Rule(within=0.0))),
        claims=(
            Claim(text="small", holds=lambda found: (found.one("a row", "loss") < 2, "seen")),
            Claim(text="something else", holds=lambda found: (found.one("another", "loss") < 2, "seen")),
        ),
        seconds=(None, 1.0),
    )
    rows = [row("loss", 1.4, 1.0), row("gap", 1.4, 1.0), row("gap", 7.0)]
    assert item.verdicts(rows) == ["agrees", "same order", "agrees", "not measured"]
    assert item.expected(quick=True) is None
    assert item.expected(quick=False) == 1.0


def test_values_are_found_by_row_and_metric() -> None:
    found = Found.of([row("loss", 1.4), Row(bench="b", row="x, a row", metric="gap", value=2.0, unit="")])
    assert found.one("a row", "loss") == 1.4
    assert found.ending("a row", "gap") == 2.0
    with pytest.raises(KeyError, match="0 rows"):
        found.ending("no row", "gap")
