"""What can be told about one person from a learnt model: below the claim where it holds, above where it does not.

Two neighbouring data sets, the worst ones, and an attacker that knows everything but which of them it was. The bounds
are Clopper and Pearson's, at thresholds that were chosen on other runs; each is wrong with a chance of 1e-7.
"""

from fractions import Fraction
from math import inf, log
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from syndic.data import Boolean, Instead, Integer, Schema
from syndic.document import from_builtins, to_builtins
from syndic.methods.learning.noise import RoundNoise
from syndic.methods.learning.plan import LearnPlan
from syndic.methods.learning.query import PartyRows
from syndic.noise import FineGaussianShare
from syndic.random import SystemRandomness, generator
from syndic.study import Study
from syndic_lab.bench.erm.noise_law import CoordinateLaplace
from syndic_lab.bench.erm.private import Setting, model_noise
from syndic_lab.bench.open_vertical import CodedTable, OpenCarrier, OpenVertical

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

MISS = 1e-7
EPSILON, DELTA = 1.0, 1e-4
PEOPLE = 3


def study(features: int, parties: int, **options: Any) -> Study:
    columns = tuple(Boolean(name=f"x{place}", missing=Instead(value=False)) for place in range(features))
    # as a number it is -1 or 1, and the slope of a Huber loss at 0 is one of the two: the most that one record can do
    schema = Schema(columns=(*columns, Integer(name="y", lower=0, upper=1, missing=Instead(value=0))))
    content = {
        "name": "audit",
        "unit": {"neighbours": "replace"},
        "budget": {"epsilon": EPSILON, "delta": DELTA},
        "protocol": {
            "method": "learn",
            "label": "y",
            "loss": "huber",
            "intercept": False,
            "scheme": "mpc_grad",
            **options,
        },
        "parties": [{"name": f"p{place}", "people": PEOPLE} for place in range(parties)],
        "schema": to_builtins(schema),
    }
    made = from_builtins(content, Study, where="audit")
    made.check()
    return made


def codes(features: int, label: int, *, other: int) -> dict[str, NDArray[np.int64]]:
    """Return rows that all have every feature; the first one's label is in question."""
    labels = np.array([label] + [other] * (PEOPLE - 1))
    return {**{f"x{place}": np.ones(PEOPLE, dtype=np.int64) for place in range(features)}, "y": labels}


def open_run(of: Study, label: int) -> tuple[Any, OpenCarrier]:
    features = len(of.schema.columns) - 1
    members = {
        party.name: OpenVertical(
            name=party.name,
            plan=of.plan,
            study=of.digest,
            table=CodedTable(of.schema.domain, codes(features, label if party.name == "p0" else 1, other=place % 2)),
            randomness=SystemRandomness(),
        )
        for place, party in enumerate(of.parties)
    }
    carrier = OpenCarrier(plan=of.plan, study=of.digest, members=members, randomness=SystemRandomness())
    return of.protocol.coordinate(carrier), carrier  # type: ignore[arg-type]  # stands in for a session


def telling(of: Study, label: int, colluding: tuple[str, ...] = ()) -> float:
    """Return what speaks for the label: all noisy sums, along the features, less what colluding parties drew."""
    result, carrier = open_run(of, label)
    path, scheme = np.asarray(result.path), of.plan_as(LearnPlan).scheme
    rate, penalty = scheme.rate, scheme.regularisation  # type: ignore[attr-defined]  # a descent
    sums = (path[:-1] * (1 - rate * penalty) - path[1:]) / rate * scheme.people / scheme.queries[0].unit
    for name in colluding:
        sums = sums - np.stack(carrier.members[name].drawn)
    return -float(sums.sum())


def shared(of: Study) -> RoundNoise:
    return of.plan_as(LearnPlan).noise_at(1)


def reached(one: NDArray[np.float64], other: NDArray[np.float64], delta: float = DELTA) -> float:
    """Return an epsilon that is needed: the threshold is chosen on a quarter of the runs and judged on the others."""
    cut = len(one) // 4

    def bound(threshold: float, left: NDArray[np.float64], right: NDArray[np.float64], miss: float) -> float:
        hits, misses = int((left >= threshold).sum()), int((right >= threshold).sum())
        low = stats.beta.ppf(miss, hits, len(left) - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - miss, misses + 1, len(right) - misses) if misses < len(right) else 1.0
        return log((low - delta) / high) if low > delta else -inf

    thresholds = np.quantile(np.concatenate([one[:cut], other[:cut]]), np.linspace(0.05, 0.95, 40))
    best = max(thresholds, key=lambda each: bound(each, one[:cut], other[:cut], 0.05))
    return bound(best, one[cut:], other[cut:], MISS)


def views(of: Study, tries: int, colluding: tuple[str, ...] = ()) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    one, other = (np.array([telling(of, label, colluding) for _ in range(tries)]) for label in (1, 0))
    return one, other


def test_coordinator_and_a_colluding_party_stay_within_epsilon() -> None:
    of = study(3, 3, iterations=2, path=True, colluding=1)
    assert reached(*views(of, 120, ("p1",))) <= EPSILON


def test_much_too_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    of = study(3, 3, iterations=2, path=True, colluding=1, regularisation=0.002)
    drawn = FineGaussianShare.draw
    monkeypatch.setattr(FineGaussianShare, "draw", lambda *given: drawn(*given) // 400)
    assert reached(*views(of, 120, ("p1",))) > EPSILON


def test_the_noise_left_after_collusion_is_what_the_claim_needs() -> None:
    """The sums' noise, one party's share taken off, has at least the variance of the exact Gaussian."""
    of = study(3, 3, iterations=2, colluding=1, path=True)
    noise = []
    for _ in range(100):
        _, carrier = open_run(of, 1)
        noise += [carrier.members[name].drawn for name in ("p0", "p2")]
    left = np.array([np.array(a) + np.array(b) for a, b in zip(noise[::2], noise[1::2], strict=True)]).ravel()
    share = shared(of).charged["p0"].noise
    needed = float(share.sensitivity_squared / share.mu_squared)  # type: ignore[union-attr]  # exact at this budget
    ratio = float((left.astype(np.float64) ** 2).mean()) / needed
    least, most = (stats.chi2.ppf(chance, len(left)) / len(left) for chance in (MISS, 1 - MISS))
    assert least <= ratio <= most


# One release of a model: every feature is set, so that one label moves all coefficients alike.

FEATURES = 64


def model_steps(of: Study, label: int) -> NDArray[np.float64]:
    """Return the exact average of models for one of the two data sets."""
    plan = of.plan_as(LearnPlan)
    query = plan.scheme.queries[0]
    total = np.zeros(FEATURES)
    for place, party in enumerate(of.parties):
        data = codes(FEATURES, label if party.name == "p0" else 1, other=place % 2)
        table: Any = CodedTable(of.schema.domain, data)
        holding = PartyRows(
            table=table,
            design=plan.design,
            people=PEOPLE,
            rows=1,
            share=1 / len(of.parties),
        )
        total += query.values(holding, np.zeros(0)) * query.unit
    return total


def test_laplace_coordinates_as_published_are_caught() -> None:
    of, penalty = study(FEATURES, 2, scheme="mpc_out", regularisation=20.0), 20.0
    setting = Setting(2, PEOPLE, FEATURES, Fraction(EPSILON), Fraction(DELTA), penalty, iterations=1)
    law = model_noise("MPC Out P", setting, "as_published").law
    assert isinstance(law, CoordinateLaplace)
    exact, draws = (model_steps(of, 1), model_steps(of, 0)), generator(SystemRandomness())
    seen = [model + law.simulate((100_000, FEATURES), draws) for model in exact]
    # the most telling number there is: the ratio of the likelihoods
    one, other = (np.abs(each - exact[1]).sum(axis=1) - np.abs(each - exact[0]).sum(axis=1) for each in seen)
    found = reached(one, other, delta=0.0)
    assert found > 1.5 * EPSILON
    # what holds instead of epsilon: sqrt(64) times as much
    assert found <= law.epsilon(setting.model_sensitivity, FEATURES) == pytest.approx(8 * EPSILON)


def test_the_sound_release_of_a_model_stays_within_epsilon() -> None:
    of = study(FEATURES, 2, scheme="mpc_out", regularisation=20.0)
    query, share = shared(of).query, shared(of).charged["p0"].noise
    exact = model_steps(of, 1), model_steps(of, 0)
    # one of two parties colludes and knows its share: one share is left
    seen = [model + share.draw((4000, FEATURES), SystemRandomness()) * query.unit for model in exact]
    one, other = (each @ (exact[0] - exact[1]) for each in seen)
    assert reached(one, other) <= EPSILON
    # the models are as far apart as the noise is made for, but for a twentieth
    assert np.linalg.norm(exact[0] - exact[1]) >= 0.9 * float(query.reach) * query.unit
