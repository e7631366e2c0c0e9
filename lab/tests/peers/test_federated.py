"""Flower's noise: what it costs for a party and for a person."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from syndic.errors import InputError
from syndic.privacy import gaussian_epsilon
from syndic_lab.bench.erm.study import PARTIES
from syndic_lab.peers import federated as peers_federated
from syndic_lab.peers.ask import Answer
from syndic_lab.peers.federated import Ground, Learnt

RATE, STEPS, ROUNDS = peers_federated._RATE, peers_federated._STEPS, peers_federated._ROUNDS
EPSILON, DELTA = Fraction(1, 2), Fraction(1, 10**7)


def ground(people: int = 40) -> Ground:
    draws = np.random.default_rng(1)
    rows = draws.normal(size=(PARTIES * people, 3))
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    labels = np.where(draws.random(len(rows)) < 0.5, 1.0, -1.0)
    nothing: Any = None
    return Ground(nothing, rows, labels, rows, labels, EPSILON, DELTA, 0.001)


def test_the_noise_for_a_party_costs_what_it_may() -> None:
    multiplier = peers_federated.for_party(EPSILON, DELTA)
    assert float(gaussian_epsilon(ROUNDS / Fraction(multiplier) ** 2, DELTA)) == pytest.approx(0.5, abs=1e-6)


def test_the_noise_for_a_person_covers_what_one_row_can_move() -> None:
    here = ground()
    rows, labels = here.rows[: here.people], here.labels[: here.people]
    other = rows.copy()
    other[0], labels[0] = -rows[0], 1.0
    moved = np.linalg.norm(update(rows, labels) - update(other, labels))
    # both rows at the rim of the ball with slopes of one, step after step: the most that there is
    most = 2 * STEPS * RATE / here.people
    noise = peers_federated.for_person(here) * STEPS * RATE
    assert 0 < moved <= most
    assert float(gaussian_epsilon(ROUNDS * Fraction(most / noise) ** 2, DELTA)) <= 0.5
    assert float(gaussian_epsilon(ROUNDS * Fraction(1.02 * most / noise) ** 2, DELTA)) > 0.5


def update(rows: Any, labels: Any) -> Any:
    """Return what a client of Flower sends, less the weights that it got."""
    weights = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        slopes = -labels / (1 + np.exp(labels * (rows @ weights)))
        weights = weights - RATE * (slopes @ rows / len(labels) + 0.001 * weights)
    return weights


def test_more_people_at_a_party_need_less_noise() -> None:
    assert peers_federated.for_person(ground(400)) < peers_federated.for_person(ground(40)) / 9


def test_a_model_is_judged_on_the_rows_to_test_on(monkeypatch: pytest.MonkeyPatch) -> None:
    here = ground()
    here = replace(here, truth=np.where(here.tests[:, 0] > 0, 1.0, -1.0))
    found: dict[str, Any] = {"weights": [50.0, 0.0, 0.0], "rounds": ROUNDS, "seconds": 2.0, "bytes": 5_000_000}
    monkeypatch.setattr(peers_federated, "ask", lambda *_: Answer(found, None))
    learnt = peers_federated.flower(here, 1.0, clip=1.0)
    assert (learnt.accuracy, learnt.seconds, learnt.megabytes) == (1.0, 2.0, 5.0)
    assert learnt.loss < peers_federated.judged(here, np.zeros(3), 0, 0).loss == pytest.approx(np.log(2))
    found["rounds"] = 3
    with pytest.raises(InputError, match=f"ended after 3 of {ROUNDS} rounds"):
        peers_federated.flower(here, 1.0, clip=1.0)


def test_both_readings_of_the_noise_stand_beside_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_federated, "prepared", ground)
    monkeypatch.setattr(peers_federated, "ours", lambda *_: Learnt(0.8, 0.4, 7.0, 0.5))
    # stands for Flower: what is noisier is worse
    monkeypatch.setattr(peers_federated, "flower", lambda _, multiplier, clip: Learnt(0.5, multiplier * clip, 1.0, 1.0))
    found = list(peers_federated.rows(quick=False))
    losses = {row.row.split("beside ")[1]: row.baseline for row in found if row.metric == "log loss"}
    assert len(losses) == 4
    assert losses["Flower with epsilon 0.5 for a party"] == pytest.approx(peers_federated.for_party(EPSILON, DELTA))
    assert losses["Flower"] == pytest.approx(peers_federated.for_person(ground()) * STEPS * RATE)
    costs = {row.row.split("beside ")[1]: row.baseline for row in found if row.metric == "epsilon"}
    assert costs["Flower with epsilon 0.5 for a party"] == pytest.approx(0.5, abs=1e-6)
    assert costs["Flower with noise multiplier 1 for a party"] == pytest.approx(20.85, abs=0.01)
