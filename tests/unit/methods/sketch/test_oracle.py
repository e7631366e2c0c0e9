"""The frequency oracle: decoding against a matrix inverse, composition against the binomial law."""

from fractions import Fraction
from functools import reduce
from math import exp

import numpy as np
import pytest
from scipy import stats

from syndic.errors import InputError
from syndic.methods.vertimrf.account import printed_oracle
from syndic.methods.vertimrf.model.tables import decode_counts, decoded_table
from syndic.noise import RandomisedResponse
from syndic.privacy import Budget, Cost
from syndic.random import SimulationRandomness
from syndic_lab.encodings import oracle, oracle_events


def matrix(response: RandomisedResponse) -> np.ndarray:
    other = 1 / (exp(response.epsilon) + response.size - 1)
    return np.full((response.size, response.size), other) + np.eye(response.size) * (exp(response.epsilon) - 1) * other


def test_decoding_is_the_inverse_of_the_kronecker_product() -> None:
    responses = [RandomisedResponse(size=size, epsilon=Fraction(1, size)) for size in (2, 5, 3)]
    counts = np.random.default_rng(1).random((2, 5, 3))
    whole = reduce(np.kron, [matrix(response) for response in responses])
    assert np.allclose(decode_counts(responses, counts).ravel(), np.linalg.solve(whole, counts.ravel()))
    # what is expected of true counts decodes to them
    assert np.allclose(decode_counts(responses, (whole @ counts.ravel()).reshape(counts.shape)), counts)


def test_a_table_decodes_from_the_answers() -> None:
    responses = oracle((2, 3), Budget.of(12))
    generator = np.random.default_rng(2)
    first = generator.integers(0, 2, 40_000)
    codes = [first, np.minimum(first + (generator.random(40_000) < 0.3), 2)]
    answers = [
        r.apply(column, SimulationRandomness(place))
        for place, (r, column) in enumerate(zip(responses, codes, strict=True))
    ]
    wanted = np.bincount(codes[0] * 3 + codes[1], minlength=6).reshape(2, 3)
    assert np.abs(decoded_table(responses, answers) - wanted).max() < 6 * (40_000 * 0.25) ** 0.5
    with pytest.raises(InputError, match="answers"):
        decoded_table(responses, answers[:1])


def test_the_sound_oracle_stays_within_the_budget() -> None:
    pure = oracle((4,) * 15, Budget.of("0.4"))
    assert sum(event.epsilon for event in oracle_events(pure)) <= Fraction(2, 5)
    assert pure[0].epsilon == pytest.approx(0.4 / 15, rel=1e-9)
    budget = Budget.of("0.4", "1e-5")
    approximate = oracle((4,) * 15, budget)
    # rho of 15 codes is 15 epsilon^2 / 2
    assert 15 * float(approximate[0].epsilon) ** 2 / 2 == pytest.approx((0.4**2) / (4 * 11.5), rel=0.7)
    assert Cost.of(oracle_events(approximate)).epsilon(budget.delta) <= Fraction(2, 5)
    with pytest.raises(InputError, match="column"):
        oracle((), budget)


def test_the_printed_factor_of_a_half_is_not_there() -> None:
    """15 binary codes of epsilon 1/2: claimed 3.75, true 7.5, and delta 0.0775 at what is claimed."""
    responses = printed_oracle((2,) * 15, Budget.of("3.75"))
    assert responses[0].epsilon == Fraction(1, 2)
    assert sum(event.epsilon for event in oracle_events(responses)) == Fraction(15, 2)
    kept = np.arange(16)
    chances = stats.binom.pmf(kept, 15, 1 / (1 + exp(-0.5)))
    delta = float(np.sum(chances * np.maximum(0, -np.expm1(3.75 - 0.5 * (2 * kept - 15)))))
    assert delta == pytest.approx(0.0775, abs=5e-5)
    # a ledger charges no less than the truth
    assert Cost.of(oracle_events(responses)).epsilon(Fraction(77, 1000)) > Fraction(15, 4)


def test_the_printed_oracle_takes_the_larger_of_its_two_formulas() -> None:
    budget = Budget.of("0.4", "1e-5")
    few, many = printed_oracle((2,) * 4, budget), printed_oracle((2,) * 2000, budget)
    assert float(few[0].epsilon) == pytest.approx(0.2)
    assert float(many[0].epsilon) == pytest.approx(0.4 / (2 * (2 * 2000 * 11.512925) ** 0.5), rel=1e-6)
