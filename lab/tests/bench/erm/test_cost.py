"""The cost of a round over sockets, small: bytes can be told beforehand, and the published figures stand beside 100."""

import pytest

from syndic.methods.learning.plan import LearnPlan
from syndic_lab.bench.erm import cost as erm_cost


@pytest.mark.bench
def test_a_round_of_few_parties_costs_its_packed_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erm_cost, "PARTIES", (4,))
    found = {row.metric: row for row in erm_cost.rows(quick=True)}
    study = erm_cost._study(4)
    noise = study.plan_as(LearnPlan).noise_at(1)
    assert noise.ring is not None
    # weights to each party and packed sums back, in envelopes of less than half a kilobyte
    least = 4 * (8 * 104 + noise.ring.packed_bytes(104)) / 1e6
    assert least <= found["megabytes a round"].value <= least + 4 * 512 / 1e6
    assert found["seconds a round"].value > 0
    assert found["megabytes a round"].published is None
    assert pytest.approx(812.1) == erm_cost.PUBLISHED_MEGABYTES
