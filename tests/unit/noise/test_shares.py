import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

from syndic.document import from_json, to_json
from syndic.errors import InputError
from syndic.noise import DiscreteGaussian, DiscreteLaplace, GaussianShare, LaplaceShare, Mechanism, SkellamShare
from syndic.noise.interval import logarithm
from syndic.noise.inverse_cdf import LazyTable
from syndic.noise.poisson import _block_law, _jump_rate, _poisson_table, poisson
from syndic.noise.shares import sum_rho
from syndic.noise.skellam import skellam_rho
from syndic.privacy.event import ConcentratedEvent, PureEvent
from syndic.random import SimulationRandomness

Share = GaussianShare | SkellamShare | LaplaceShare
ORDERS = (1.0001, 1.01, 1.1, 1.5, 1.99, 2.0, 2.5, 3.0, 4.5, 8.0, 20.0, 64.5, 300.0, 5000.0)


def gaussian(parties: int = 5, *, colluding: int = 0, missing: int = 0, dimension: int = 6) -> GaussianShare:
    return GaussianShare(
        sensitivity_squared=Fraction(50),
        rho=Fraction(1, 10),
        parties=parties,
        colluding=colluding,
        missing=missing,
        dimension=dimension,
    )


def skellam(parties: int = 5, *, colluding: int = 0, missing: int = 0, dimension: int = 6) -> SkellamShare:
    return SkellamShare(
        sensitivity=10,
        sensitivity_squared=Fraction(50),
        rho=Fraction(1, 10),
        parties=parties,
        colluding=colluding,
        missing=missing,
        dimension=dimension,
    )


def laplace(parties: int = 5, *, colluding: int = 0, missing: int = 0, dimension: int = 6) -> LaplaceShare:
    return LaplaceShare(
        sensitivity=3,
        epsilon=Fraction(1, 2),
        parties=parties,
        colluding=colluding,
        missing=missing,
        dimension=dimension,
    )


SHARES: list[Share] = [
    gaussian(),
    skellam(),
    laplace(),
    gaussian(100, colluding=20, missing=10),
    laplace(40, missing=3),
]


@pytest.mark.parametrize("make", [gaussian, skellam, laplace])
def test_the_honest_shares_alone_have_the_variance_that_the_cost_needs(make: Callable[..., Share]) -> None:
    everybody, some = make(10), make(10, colluding=3, missing=2)
    assert some.honest == 5
    assert some.event.what.endswith("noise by 10 parties together, of which any 5 are enough")
    # five honest shares carry what ten carried: each is twice as wide
    assert some.variance == pytest.approx(2 * everybody.variance, rel=1e-9)
    assert some.total_variance(8) == pytest.approx(8 / 5 * everybody.total_variance(10), rel=1e-9)
    assert some.tail(1e-6, 10) > some.tail(1e-6, 5) > some.tail(1e-3, 5)


def test_the_sum_costs_about_what_one_central_noise_would() -> None:
    central = DiscreteGaussian(sensitivity_squared=Fraction(50), rho=Fraction(1, 10))
    assert gaussian(7).total_variance(7) == pytest.approx(central.variance, rel=1e-9)
    assert gaussian(7).event.rho == Fraction(1, 10)
    assert skellam(7).total_variance(7) == pytest.approx(central.variance, rel=0.03)
    assert skellam(7).event.rho == pytest.approx(0.1, rel=1e-6)
    assert skellam(7).event.rho <= Fraction(1, 10)
    whole = DiscreteLaplace(sensitivity=3, epsilon=Fraction(1, 2))
    assert laplace(7).total_variance(7) == pytest.approx(whole.variance, rel=1e-9)
    assert laplace(7).event.epsilon == Fraction(1, 2)


def test_colluders_cost_what_the_audit_says() -> None:
    """Variance sigma^2 / m in each share leaves (m - c) / m of it: the correction is m / (m - c)."""
    for parties, colluding in [(5, 1), (5, 2), (10, 5), (5, 4)]:
        wider = gaussian(parties, colluding=colluding).variance / gaussian(parties).variance
        assert wider == pytest.approx(parties / (parties - colluding), rel=1e-9)


@pytest.mark.parametrize("share", [gaussian(10), skellam(10), laplace(10)])
def test_more_colluders_than_planned_cost_more(share: Share) -> None:
    costs = [cost_of(share.event_if(honest)) for honest in (10, 9, 5, 2)]
    assert costs[0] >= cost_of(share.event)
    assert all(less < more for less, more in itertools.pairwise(costs))
    assert share.event_if(5).what.endswith("noise by 10 parties together, of which any 5 are enough")
    if not isinstance(share, LaplaceShare):
        assert costs[2] == pytest.approx(2 * costs[0], rel=0.05)


def cost_of(event: PureEvent | ConcentratedEvent) -> Fraction:
    return event.epsilon if isinstance(event, PureEvent) else event.rho


@pytest.mark.parametrize("honest", [1, 3, 6])
def test_too_few_laplace_shares_cost_their_steepest_step(honest: int) -> None:
    share = laplace(7)
    law = exact_sum(share, honest)
    logs = np.log(law[law.size // 2 - 60 : law.size // 2 + 61])
    steps = np.abs(np.diff(logs))
    assert float(share.event_if(honest).epsilon) == pytest.approx(3 * steps.max(), rel=1e-6)
    assert steps.max() == pytest.approx(logs[60] - logs[61], rel=1e-6)


def test_skellam_says_so_where_too_little_is_left_to_bound() -> None:
    share = SkellamShare(sensitivity=1, sensitivity_squared=Fraction(1), rho=Fraction(1, 10), parties=10, dimension=1)
    with pytest.raises(ValueError, match="too small for a bound"):
        share.event_if(1)


def test_gaussian_shares_are_never_smaller_than_four() -> None:
    many = gaussian(1000)
    assert many.sigma_squared == 4
    # more noise than asked for costs less, and the event says so
    assert many.event.rho == pytest.approx(50 / (2 * 4000), rel=1e-9)
    assert many.event.rho * 2 * 4000 >= 50


def convolved(share: float, times: int, reach: int) -> NDArray[np.float64]:
    places = np.arange(-reach, reach + 1)
    one = np.exp(-(places**2) / (2 * share))
    one = one / one.sum()
    law: NDArray[np.float64] = one
    for _ in range(times - 1):
        law = np.convolve(law, one)
        middle = law.size // 2
        law = law[middle - reach : middle + reach + 1]
    return law


@pytest.mark.parametrize("times", [2, 3, 10])
@pytest.mark.parametrize("share", ["0.8", "1", "2", "4"])
def test_gap_to_the_discrete_gaussian_is_bounded_at_every_point(share: str, times: int) -> None:
    with mpmath.workdps(60):
        square, reach = mpmath.mpf(share), int(15 * (times * float(share)) ** 0.5) + 6
        size = 2 * reach + 1
        one = [mpmath.exp(-mpmath.mpf(x * x) / (2 * square)) for x in range(-reach, reach + 1)]
        law = one = [value / mpmath.fsum(one) for value in one]
        for _ in range(times - 1):
            law = [
                mpmath.fsum(law[i] * one[x - i + reach] for i in range(max(0, x - reach), min(size, x + reach + 1)))
                for x in range(size)
            ]
        whole = mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * times * square)))
        # close to the middle, where cutting the sums does not show
        gaps = [
            abs(mpmath.log(law[x + reach] * whole) + mpmath.mpf(x * x) / (2 * times * square)) for x in range(-6, 7)
        ]
        bound = 5 * mpmath.fsum(mpmath.exp(-2 * mpmath.pi**2 * square * k / (k + 1)) for k in range(1, times))
        cut = mpmath.exp(-(mpmath.mpf(reach - 6) ** 2) / (2 * times * square)) * 1000
        assert max(gaps) <= bound + cut
        assert times > 2 or max(gaps) > bound / 10


@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("share", [0.8, 1.0, 4.0])
def test_sum_of_gaussian_shares_keeps_its_rho_at_every_order(share: float, times: int) -> None:
    reach = 60
    logs = np.log(np.maximum(convolved(share, times, reach), 1e-300))
    for shift in (1, 2, 3):
        rho = float(sum_rho(Fraction(shift**2), Fraction(share), times, 1))
        for order in (1.01, 1.5, 2.0, 4.0):
            moved = logs[: logs.size - shift]
            terms = order * logs[shift:] + (1 - order) * moved
            # orders below 4 keep the mass within the reach, where logs are exact to rounding
            inside = np.abs(np.arange(-reach + shift, reach + 1)) < 30
            divergence = logsumexp(terms[inside]) / (order - 1)
            assert divergence <= order * rho * (1 + 1e-9)


def skellam_logs(variance: float, reach: int) -> NDArray[np.float64]:
    """log P(x), |x| <= reach, from I_x / I_(x-1) = 1 / (2 x / m + I_(x+1) / I_x), started far out."""
    ratios = np.empty(reach)
    ratio = 0.0
    for x in range(2 * reach, 0, -1):
        ratio = 1 / (2 * x / variance + ratio)
        if x <= reach:
            ratios[x - 1] = ratio
    half = np.append(0.0, np.cumsum(np.log(ratios)))
    logs: NDArray[np.float64] = np.append(half[:0:-1], half)
    return logs - logsumexp(logs)


def skellam_divergences(variance: float, shift: int) -> Iterator[tuple[float, float]]:
    logs = skellam_logs(variance, int(40 * variance) + 20_000)
    for order in ORDERS:
        terms = order * logs[shift:] + (1 - order) * logs[:-shift]
        assert terms[0] < terms.max() - 60
        yield order, float(logsumexp(terms)) / (order - 1)


@pytest.mark.parametrize("variance", [4.0, 7.3, 30.0, 200.0, 1000.0])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_skellam_rho_holds_at_every_order_and_is_close(variance: float, shift: int) -> None:
    rho = skellam_rho(variance, shift, shift**2)
    found = [divergence / order for order, divergence in skellam_divergences(variance, shift)]
    assert max(found) <= rho
    # the published bound, from memory, at the whole orders it is for
    for order, divergence in skellam_divergences(variance, shift):
        if order == int(order):
            extra = ((2 * order - 1) * shift**2 + 6 * shift) / (4 * variance**2)
            assert divergence <= order * shift**2 / (2 * variance) + extra
    if shift**2 < variance / 10:
        assert rho < 1.06 * max(found)


@pytest.mark.parametrize("variance", [4.0, 5.0, 20.0, 333.0, 1e5])
def test_skellam_steps_are_largest_in_the_middle_and_bounded(variance: float) -> None:
    logs = skellam_logs(variance, 3000)
    steps = 2 * logs[1:-1] - logs[:-2] - logs[2:]
    middle = steps.size // 2
    assert np.argmax(steps) == middle or steps.max() - steps[middle] < 1e-9
    with mpmath.workdps(40):
        exact = 2 * mpmath.log(mpmath.besseli(0, variance) / mpmath.besseli(1, variance))
        assert exact <= 1 / mpmath.mpf(variance) + 1 / (2 * mpmath.mpf(variance) ** 2) + 1 / mpmath.mpf(variance) ** 3
        assert steps[middle] == pytest.approx(float(exact), abs=1e-9)


def test_many_small_changes_cost_less_than_one_large_one() -> None:
    # sixteen coordinates changed by one against one changed by four, at the same L2 sensitivity
    assert skellam_rho(50.0, 4, 16) < skellam_rho(50.0, 16, 16) < 1.1 * skellam_rho(50.0, 4, 16)


@pytest.mark.parametrize("share", SHARES)
def test_apply_adds_the_drawn_share(share: Share) -> None:
    mechanism: Mechanism[NDArray[np.int64], NDArray[np.int64]] = share
    values = np.arange(-3, 3, dtype=np.int64).reshape(2, 3)
    noisy = mechanism.apply(values, SimulationRandomness(3))
    assert np.array_equal(noisy - values, share.draw((2, 3), SimulationRandomness(3)))
    assert np.array_equal(noisy, share.apply(values, SimulationRandomness(3)))
    assert not np.array_equal(share.draw(500, SimulationRandomness(3)), share.draw(500, SimulationRandomness(4)))


@pytest.mark.parametrize("share", SHARES)
def test_apply_refuses_other_sizes_and_values_that_overflow(share: Share) -> None:
    with pytest.raises(InputError, match="for 6 values; found 7"):
        share.apply(np.zeros(7, dtype=np.int64), SimulationRandomness(1))
    with pytest.raises(InputError, match="clip them first"):
        share.apply(np.full(6, 2**63 - 2), SimulationRandomness(1))
    with pytest.raises(InputError, match="signed integers"):
        share.apply(np.zeros(6), SimulationRandomness(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("share", SHARES)
def test_survives_its_document(share: Share) -> None:
    assert from_json(to_json(share), type(share), where="test") == share


@pytest.mark.parametrize("make", [gaussian, skellam, laplace])
def test_refuses_when_nobody_honest_is_left(make: Callable[..., Share]) -> None:
    with pytest.raises(ValueError, match="none is left whose noise protects"):
        make(4, colluding=2, missing=2)
    with pytest.raises(ValueError, match="not negative"):
        make(4, colluding=-1)
    with pytest.raises(ValueError, match="between 1 and the number of parties"):
        make(4).total_variance(5)
    with pytest.raises(ValueError, match=r"must be in \(0, 1\]"):
        make(4).tail(0.0, 4)


def test_skellam_refuses_impossible_and_too_wide_parameters() -> None:
    for sensitivity, square in [(2, Fraction(5)), (5, Fraction(2))]:
        with pytest.raises(ValueError, match="cannot belong to one integer vector"):
            SkellamShare(sensitivity=sensitivity, sensitivity_squared=square, rho=Fraction(1), parties=2, dimension=1)
    with pytest.raises(ValueError, match="coarser scale"):
        SkellamShare(sensitivity=10**6, sensitivity_squared=Fraction(10**12), rho=Fraction(1), parties=2, dimension=1)


@pytest.mark.parametrize("share", [laplace(3, missing=1), skellam(3, missing=1), gaussian(3, missing=1)])
@pytest.mark.parametrize("probability", [0.1, 1e-6])
def test_tail_holds_for_the_exact_law_and_is_not_idle(share: Share, probability: float) -> None:
    for present in (2, 3):
        law = exact_sum(share, present)
        reach = law.size // 2
        beyond = [law[: reach - x].sum() + law[reach + x + 1 :].sum() for x in range(reach)]
        least = next(x for x, mass in enumerate(beyond) if mass <= probability)
        bound = share.tail(probability, present)
        assert least <= bound <= (1.6 if probability < 0.01 else 2.5) * least + 2


def exact_sum(share: Share, present: int) -> NDArray[np.float64]:
    """Law of the sum of `present` shares from the characteristic function, by Fourier transform."""
    size = 2**14
    angle = 2 * np.pi * np.fft.fftfreq(size)
    if isinstance(share, LaplaceShare):
        ratio = np.exp(-float(share.epsilon) / share.sensitivity)
        function = ((1 - ratio) ** 2 / np.abs(1 - ratio * np.exp(1j * angle)) ** 2) ** (present / share.honest)
    elif isinstance(share, SkellamShare):
        function = np.exp(present * share.variance * (np.cos(angle) - 1))
    else:
        places = np.arange(-size // 2, size // 2)
        one = np.exp(-(places**2) / (2 * float(share.sigma_squared)))
        function = np.fft.fft(np.fft.ifftshift(one / one.sum())).real ** present
    law: NDArray[np.float64] = np.fft.fftshift(np.fft.ifft(function).real)[1:]
    return np.maximum(law, 0)


@pytest.mark.parametrize("value", ["1", "0.999999999", "0.5", "0.3", "1e-9", "1e-40"])
@pytest.mark.parametrize("bits", [64, 256, 1000])
def test_logarithm_is_enclosed(value: str, bits: int) -> None:
    with mpmath.workdps(400):
        point = int(mpmath.floor(mpmath.mpf(value) * mpmath.mpf(2) ** bits))
        if point == 0:
            return
        low, high = logarithm((point, point), bits)
        exact = -mpmath.log(mpmath.mpf(point) / mpmath.mpf(2) ** bits) * mpmath.mpf(2) ** bits
        assert low <= exact <= high
        assert high - low <= 4


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 3), Fraction(7, 2), Fraction(100), Fraction(5000)])
def test_poisson_thresholds_are_the_floors(rate: Fraction) -> None:
    thresholds = _poisson_table(rate).thresholds
    with mpmath.workdps(3000 if rate > 1000 else 100):
        mean = mpmath.mpf(rate.numerator) / rate.denominator
        term = total = mpmath.exp(-mean)
        for place, threshold in enumerate(thresholds):
            assert int(threshold) == int(mpmath.floor(total * 2**63))
            term *= mean / (place + 1)
            total += term
    assert int(thresholds[-1]) == 2**63 - 1


def test_poisson_of_an_irrational_rate_and_blocks_of_jumps() -> None:
    scale, shares = Fraction(20, 3), 5
    numbers = LazyTable(poisson(lambda bits: _jump_rate(scale, shares, bits))).thresholds
    blocks = LazyTable(_block_law(scale)).thresholds
    with mpmath.workdps(100):
        ratio = mpmath.exp(-mpmath.mpf(3) / 20)
        mean = -2 * mpmath.log(1 - ratio) / shares
        for place, threshold in enumerate(numbers):
            total = mpmath.fsum(mpmath.exp(-mean) * mean**k / mpmath.factorial(k) for k in range(place + 1))
            assert int(threshold) == int(mpmath.floor(total * 2**63))
        whole = mpmath.fsum(ratio ** (2**i) for i in range(20))
        for place, threshold in enumerate(blocks):
            total = mpmath.fsum(ratio ** (2**i) for i in range(place + 1)) / whole
            assert int(threshold) == int(mpmath.floor(total * 2**63))


def test_gaussian_shares_are_widened_until_many_values_cost_what_was_agreed() -> None:
    """At a billion values the gap to the discrete Gaussian shows, and the first share tried is too narrow."""
    share = GaussianShare(
        sensitivity_squared=Fraction(16), rho=Fraction(1), parties=2, dimension=10**9, colluding=0, missing=0
    )
    exactly = Fraction(16) / (2 * 2)
    assert exactly < share.sigma_squared < exactly * (1 + Fraction(1, 10**9))
    assert sum_rho(Fraction(16), share.sigma_squared, 2, 10**9) <= 1
    assert sum_rho(Fraction(16), exactly * (1 + Fraction(1, 2**40)), 2, 10**9) > 1
    assert share.event.rho <= 1


def test_gaussian_shares_have_a_widest_size() -> None:
    fields = {"rho": Fraction(1, 2), "parties": 1, "dimension": 1}
    assert GaussianShare(sensitivity_squared=Fraction(2**104), **fields).sigma_squared == 2**104  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must be at most 2\^104"):
        GaussianShare(sensitivity_squared=Fraction(2**104 + 1), **fields)  # type: ignore[arg-type]
