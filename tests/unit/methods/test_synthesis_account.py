"""Synthesis: rounds that cost what the study says, and noise that is that of their part of the budget."""

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from support import ONE, charges, study_text
from syndic import Study
from syndic.methods.synthesis.measure import Question
from syndic.privacy import GaussianEvent, gaussian_epsilon, mu_squared_for
from syndic.study import simulate
from unit.methods.synthesising import planned, sources, study


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize(("parties", "overlap"), [(1, 1), (3, 1), (3, 2)])
def test_rounds_add_up_to_the_budget_and_no_more(parties: int, overlap: int, neighbours: str) -> None:
    agreed = study(parties=parties, unit=f'neighbours = "{neighbours}"\nrows = 2\nparties = {overlap}')
    agreed.check()
    whole = mu_squared_for(Fraction(1), Fraction("1e-5"))
    events = agreed.plan.events("north")
    assert all(isinstance(event, GaussianEvent) for event in events)
    spent = overlap * sum(event.mu_squared for event in events if isinstance(event, GaussianEvent))
    assert 0.9999 * whole < spent <= whole
    assert 0.9999 < agreed.joint.epsilon(agreed.delta) <= 1


@pytest.mark.parametrize("asked", [1, 3])
@pytest.mark.parametrize(("parties", "missing"), [(1, 0), (3, 0), (5, 1)])
def test_the_noise_of_a_round_is_that_of_its_part_of_the_budget(parties: int, missing: int, asked: int) -> None:
    """Two rows of a person at two parties: each table moves by 2 x 2 rows at each of them, by 4 in all."""
    unit = 'neighbours = "add_remove"\nrows = 2\nparties = 2' if parties > 1 else 'neighbours = "add_remove"\nrows = 4'
    agreed = study(f"missing = {missing}", parties=parties, unit=unit)
    tables = (("colour",), ("age",), ("score", "age"))[:asked]
    account = planned(agreed).account
    noise = account.noise(Question(number=1, tables=tables))
    part = float(planned(agreed).selector.budgets(account.whole)[0])
    assert account.variance(Fraction(1, 10)) == pytest.approx(160 * parties / max(1, parties - 1 - missing), rel=1e-4)
    curator = asked * 4**2 / part
    honest = parties - 1 - missing if parties > 1 else 1
    assert noise.variance(parties) == pytest.approx(curator * parties / honest, rel=1e-4)
    assert noise.event == account.events[0]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize(
    "unit", ["rows = 1", "rows = 2", 'rows = 2\nperson = "id"\nchoose = "weighted"', "rows = 2\nparties = 2"]
)
def test_the_noise_on_parities_covers_all_rows_of_a_person(unit: str, neighbours: str) -> None:
    """All pairs of rows are tried at every party of a person, against all others: the sums move by that much."""
    agreed = study(parties=3, unit=f'neighbours = "{neighbours}"\n{unit}')
    account, own = planned(agreed).account, agreed.unit
    place = next(place for place, room in enumerate(planned(agreed).size.rooms) if room.parity)
    sets = (("colour", "age"), ("age", "score"), ("colour", "score"))
    question = Question(
        number=place + 1, tables=sets, groups=((0, 1, 0, 1), (0, 0, 1, 1, 1), (1, 0, 0, 0, 0)), parity=True
    )
    signs = np.array(list(product((1, -1), repeat=3)))
    of_a_row = np.column_stack([signs[:, :2].prod(1), signs[:, 1:].prod(1), signs[:, ::2].prod(1)])
    # rows of a person weigh `most` together, shared in any way; the extremes are all on one kind of row, at all parties
    there = own.parties * own.most * of_a_row
    moved = there if neighbours == "add_remove" else (there[:, None] - there[None]).reshape(-1, 3)
    largest = int(np.square(moved).sum(axis=1).max())
    noise = account.noise(question)
    # three shares, of which two are enough
    enough = noise.variance(3) * own.scale**2 * 2 / 3
    mu_squared = account.events[place].mu_squared * own.parties
    assert largest / enough <= 1.0001 * mu_squared
    # no row changes all three at once
    flipped = 2 if neighbours == "replace" else 3
    assert own.parties**2 * flipped * own.l1_of_counts() ** 2 / enough == pytest.approx(float(mu_squared), rel=1e-3)
    assert noise.event == account.events[place]


def test_what_is_said_of_parities() -> None:
    said = planned(study()).disclosure
    assert "noisy parities of at most 1 set(s) of columns" in said.sees["anyone with the release"]
    assert "each parity by at most 1" in said.sensitivity
    silent = planned(study("interactions = false")).disclosure
    assert "parities" not in silent.sees["anyone with the release"] + silent.sensitivity
    assert len(planned(study("interactions = false")).account.events) == 3


def test_with_nobody_colluding_the_noise_is_a_curators_and_the_parties_are_told() -> None:
    made, alone = study("colluding = 0", parties=5), study(parties=1, people=300)
    question = Question(number=1, tables=(("age",),))
    together = planned(made).account.noise(question).variance(5)
    assert together == pytest.approx(planned(alone).account.noise(question).variance(1), rel=1e-3)
    outside, party = planned(made).disclosure.against.values()
    # without its own share a party has 5/4 of the budget's mu^2
    whole = mu_squared_for(made.budget.epsilon, made.budget.delta)
    less = gaussian_epsilon(Fraction(5, 4) * whole, made.budget.delta)
    assert (outside, party) == pytest.approx((float(made.budget.epsilon), float(less)), rel=1e-3)


def test_the_budget_of_the_strictest_party_holds() -> None:
    text = study_text(
        protocol='method = "synthesis"',
        budget=ONE,
        parties='[[parties]]\nname = "north"\npeople = 60\n[[parties]]\nname = "south"\npeople = 60\n'
        "budget = { epsilon = 0.5, delta = 1e-6 }\n",
    )
    agreed = Study.loads(text)
    spent = sum(event.mu_squared for event in planned(agreed).account.events)
    assert 0.9999 < spent / mu_squared_for(Fraction("0.5"), Fraction("1e-6")) <= 1


def test_many_parties_pay_for_their_rounds_and_for_no_masks() -> None:
    members = "".join(f'[[parties]]\nname = "p{place}"\npeople = 5\n' for place in range(100))
    agreed = Study.loads(study_text(protocol='method = "synthesis"\ncolluding = 20', budget=ONE, parties=members))
    agreed.check()
    rounds = agreed.plan.events("p0")
    assert {type(event) for event in rounds} == {GaussianEvent}
    assert len(rounds) == len(planned(agreed).size.rooms)
    assert 0.999 < agreed.joint.epsilon(agreed.delta) <= 1
    assert planned(agreed).account.variance(Fraction(1)) == pytest.approx(100 / 80, rel=1e-4)


def test_no_list_of_missing_parties_cuts_one_off() -> None:
    members = "".join(f'[[parties]]\nname = "p{place}"\npeople = 5\n' for place in range(1000))
    agreed = Study.loads(study_text(protocol='method = "synthesis"\nmissing = 100', budget=ONE, parties=members))
    graph = planned(agreed).graph
    assert graph is not None
    # all neighbours of a party would have to be said to be missing, or collude
    assert graph.neighbours > 101


def test_a_large_epsilon_is_possible() -> None:
    agreed = study(budget="epsilon = 12\ndelta = 1e-5")
    agreed.check()
    assert 11.99 < agreed.joint.epsilon(agreed.delta) <= 12


def test_charges_in_the_ledger_are_those_of_the_statement(tmp_path: Path) -> None:
    release = simulate(study(parties=3), sources(3), seed=1, folder=tmp_path)
    for party in release.statement.parties:
        charged = [event for entry in charges(tmp_path, party.party) for event in entry.events]
        assert tuple(charged) == party.events
