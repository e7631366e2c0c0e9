"""The benchmark runs over real sockets, and moves as little as it says."""

import pytest

from syndic.methods.histogram.average import AveragePlan
from syndic_lab.bench.secure import noise as secure_noise


@pytest.mark.bench
def test_noise_moves_a_thousandth_of_the_published_bytes() -> None:
    study = secure_noise._study()
    seconds, release = secure_noise._run(study)
    moved = secure_noise._bytes(release.transcript)
    assert moved < secure_noise.PUBLISHED_BYTES / 1000
    # bytes depend on public parameters alone: masked coins of both servers take two hops each
    agreed = study.plan_as(AveragePlan).two_servers
    assert moved > 4 * agreed.field.packed_bytes(104 * len(agreed.noise.coins))
    assert moved < 10**6
    assert 0 < seconds < secure_noise.PUBLISHED_DUAL_SECONDS
    averages = release.result.averages  # type: ignore[attr-defined]
    assert len(averages.averages) == 104
    # uniform numbers between -1 and 1: 20 standard deviations are never exceeded
    within = 20 * (averages.standard_deviation[0] ** 2 + 1 / 3 / 3000) ** 0.5
    assert all(abs(average) < within for average in averages.averages)
