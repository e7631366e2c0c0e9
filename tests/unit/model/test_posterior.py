"""The few-sum method: no person moves a sum further than its reach, whatever is sent; its models are the minimisers."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from syndic.errors import InputError
from syndic.model.erm import posterior, posterior_fit
from syndic.model.erm.loss import SQUARED, Huber, Logistic, Loss, SmoothedHinge, Softmax
from syndic.model.erm.posterior import Layout, Posterior, intercept_weight
from syndic.model.erm.second_order import UNIT
from syndic.model.erm.shrink import likely_share

Numbers = NDArray[np.float64]
# two numbers, the second with an indicator for missing values, and a list of three levels
LAYOUT = Layout(np.array([0, 1, 1, 2, 2, 2]), np.array([True, True, False, False, False, False]))
LOSSES = [(Logistic(), 1), (Softmax(), 3), (Logistic(), 3), (SQUARED, 1), (Huber(0.5), 1)]


def method(loss: Loss, models: int, neighbours: str = "replace", **options: Any) -> Posterior:
    given: dict[str, Any] = {"layout": LAYOUT, "people": 100, "gradients": 3, **options}
    return Posterior(
        loss=loss, models=models, neighbours="replace" if neighbours == "replace" else "add_remove", **given
    )


def records() -> Numbers:
    """Return every corner: numbers at their bounds, in the middle or missing, and each level."""
    second = [(-1.0, 0.0), (1.0, 0.0), (0.3, 0.0), (0.0, 1.0)]
    found = [(first, *each, *level) for first, each, level in product((-1.0, 1.0, 0.1), second, np.eye(3))]
    return np.array(found)


def all_labels(loss: Loss, models: int) -> Numbers:
    if isinstance(loss, Huber):
        return np.array([[-1.0], [1.0], [0.2]])
    return np.array([[-1.0], [1.0]]) if models == 1 else np.concatenate([2 * np.eye(models) - 1, -np.ones((1, models))])


def sent(of: Posterior, draws: np.random.Generator) -> Numbers:
    """Return what a coordinator may send: as the method does, or so large that only cuts keep the bound."""
    factor = 10.0 ** draws.integers(-1, 8, size=(of.asked[0], 1))
    return np.asarray(draws.normal(size=of.asked) * factor)


def plain(of: Posterior) -> Numbers:
    """Return a message at which two numbers make rows opposite, and nothing else counts."""
    message = np.zeros(of.asked)
    message[1:3, [0, 1, -1]] = 1.0
    return message


def farthest(of: Posterior, number: int, messages: list[Numbers]) -> float:
    """Return how far two records, or one, move a sum at most, over the reach: one by one, so nothing is averaged."""
    found = 0.0
    for message in messages:
        terms = [
            of.sums(number, message, row[None], label[None])
            for row, label in product(records(), all_labels(of.loss, of.models))
        ]
        each = np.array(terms, dtype=np.float64)
        assert np.abs(each).max() <= of.largest(number, 1)
        if of.neighbours == "add_remove":
            found = max(found, float(np.linalg.norm(each, axis=1).max()))
        else:
            squares = np.square(each).sum(axis=1)
            apart = squares[:, None] + squares - 2 * each @ each.T
            found = max(found, float(np.sqrt(apart.max())))
    return found / float(of.reach(number))


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize(("loss", "models"), LOSSES, ids=repr)
def test_no_record_moves_a_sum_further_than_its_reach(loss: Loss, models: int, neighbours: str) -> None:
    of, draws = method(loss, models, neighbours), np.random.default_rng(1)
    messages = [plain(of), *(sent(of, draws) for _ in range(8))]
    far = {of.stage(number): farthest(of, number, messages) for number in (1, 2, 4, 5)}
    assert all(each <= 1 + 1e-9 for each in far.values())
    # and no bound is idle
    assert far["moments"] > 0.95
    assert far["spreads"] > 0.95
    # products of few columns stay below theirs
    assert far["products"] > (0.95 if neighbours == "replace" else 0.75)
    assert far["gradients"] > 0.8


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("weight", [Fraction(1, 8), Fraction(3, 2), Fraction(4)])
def test_the_reach_of_gradients_follows_the_weight_of_intercepts(weight: Fraction, neighbours: str) -> None:
    of, draws = method(Logistic(), 1, neighbours, intercept=weight), np.random.default_rng(1)
    far = farthest(of, 5, [plain(of), *(sent(of, draws) for _ in range(8))])
    assert 0.8 < far <= 1 + 1e-9


def test_intercepts_weigh_more_where_noise_hides_the_features() -> None:
    weights = [intercept_weight(people, 20) for people in (1e6, 300.0, 30.0, 10.0, 1.0, 0.0)]
    assert weights == sorted(weights)
    assert (weights[0], weights[-1]) == (Fraction(3, 8), Fraction(2))
    # where people are many, features keep what they had
    assert intercept_weight(800.0, 100) == Fraction(4, 8)


def test_without_the_cuts_a_record_moves_a_sum_further(monkeypatch: pytest.MonkeyPatch) -> None:
    of, draws = method(Logistic(), 1), np.random.default_rng(1)
    messages = [sent(of, draws) for _ in range(6)]
    monkeypatch.setattr(posterior, "shortening", lambda lengths, _: np.ones(len(lengths)))
    monkeypatch.setattr(Posterior, "largest", lambda *_: 2**62)
    assert farthest(of, 2, [plain(of), *messages]) > 1
    assert farthest(of, 4, messages) > 1
    assert farthest(of, 5, messages) > 1


@pytest.mark.parametrize(("neighbours", "times"), [("replace", 3), ("add_remove", 3)])
def test_a_person_with_several_records_moves_it_as_many_times_as_far(neighbours: str, times: int) -> None:
    one, many = (method(Logistic(), 1, neighbours, rows=rows) for rows in (1, times))
    for number in range(1, one.rounds + 1):
        assert float(many.reach(number)) == pytest.approx(times * float(one.reach(number)), rel=1e-9)


@pytest.mark.parametrize(("loss", "models"), LOSSES[:2] + LOSSES[3:4], ids=repr)
def test_sums_are_those_of_single_records_in_any_order(loss: Loss, models: int) -> None:
    of, draws = method(loss, models), np.random.default_rng(2)
    rows = records()[draws.integers(len(records()), size=300)] * draws.uniform(0.2, 1, (300, 6))
    labels = all_labels(loss, models)[draws.integers(2, size=300)]
    for number in (1, 2, 4, 5):
        message = sent(of, draws)
        alone = [of.sums(number, message, rows[[place]], labels[[place]]) for place in range(300)]
        assert np.array_equal(of.sums(number, message, rows, labels), np.sum(alone, axis=0))


@pytest.mark.parametrize("gradients", [1, 3, 7, 100])
def test_shares_are_the_whole_budget(gradients: int) -> None:
    for layout in (LAYOUT, Layout(np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.bool_))):
        of = method(Logistic(), 1, layout=layout, gradients=gradients)
        shares = [of.share(number) for number in range(1, of.rounds + 1)]
        assert sum(shares) == Fraction(1)
        # a ledger has room for each
        assert min(shares) > Fraction(1, 1000)
        assert shares == sorted(shares[: len(shares) - gradients], reverse=True) + sorted(shares[-gradients:])
        # without two columns there are no products, without numbers no spreads
        assert of.rounds == gradients + (4 if layout is LAYOUT else 1)


def learnt(of: Posterior, rows: Numbers, labels: Numbers, mu: float, seed: int, lost: tuple[int, ...] = ()) -> Any:
    """Return coefficients, intercepts and limits from sums with normal noise: it protects nobody."""
    belief, draws = of.start(), np.random.default_rng(seed)
    for number in range(1, of.rounds + 1):
        deviation = float(of.reach(number)) * UNIT / (mu * float(of.share(number)) ** 0.5)
        total = of.sums(number, of.sent(belief, number), rows, labels) * UNIT
        noisy = total + draws.normal(0, deviation, len(total))
        if number not in lost:
            belief = of.update(belief, number, noisy, len(rows), deviation)
    return belief.linear()


def value(loss: Loss, found: Any, rows: Numbers, labels: Numbers) -> float:
    coefficients, intercepts, limits = found
    scores = np.clip(rows, *limits.T) @ coefficients.T + intercepts
    return float(loss.value(scores, labels).sum() / len(rows))


def best(loss: Loss, rows: Numbers, labels: Numbers) -> float:
    """Return the least mean loss of any linear model."""
    whole, shape = np.column_stack([rows, np.ones(len(rows))]), (labels.shape[1], rows.shape[1] + 1)

    def both(flat: Numbers) -> tuple[float, Numbers]:
        scores = whole @ flat.reshape(shape).T
        slopes = loss.slope(scores, labels)
        return float(loss.value(scores, labels).sum() / len(rows)), (slopes.T @ whole / len(rows)).ravel()

    return float(minimize(both, np.zeros(shape[0] * shape[1]), jac=True, method="BFGS").fun)


def people(count: int, models: int, seed: int = 0) -> tuple[Numbers, Numbers, Numbers]:
    """Return features of `LAYOUT`, scores (row, model) and labels of as many classes."""
    draws = np.random.default_rng(seed)
    first = np.clip(draws.normal(0.3, 0.2, count), -1, 1)
    second, missing = np.clip(0.5 * first + draws.normal(-0.4, 0.1, count), -1, 1), draws.random(count) < 0.1
    levels = np.eye(3)[draws.choice(3, count, p=[0.6, 0.3, 0.1])]
    rows = np.column_stack([first, np.where(missing, 0.0, second), missing, levels])
    slopes = draws.normal(0, 1, (models, 6)) * np.array([4, 6, 1, 1, 1, 1])
    scores = (rows - rows.mean(axis=0)) @ slopes.T
    chosen = np.argmax(scores + draws.gumbel(size=scores.shape), axis=1)
    one = draws.random(count) < 1 / (1 + np.exp(1 - scores[:, 0]))
    return rows, scores, np.where(one, 1.0, -1.0)[:, None] if models == 1 else 2 * np.eye(models)[chosen] - 1


@pytest.mark.parametrize(("loss", "models"), LOSSES[:4], ids=repr)
def test_with_hardly_any_noise_it_is_the_minimiser(loss: Loss, models: int) -> None:
    rows, scores, labels = people(4000, models)
    if loss is SQUARED:
        labels = np.clip(scores / 12 + np.random.default_rng(1).normal(0.1, 0.05, scores.shape), -1, 1)
    of = method(loss, models, people=len(rows), gradients=12)
    found = learnt(of, rows, labels, 1e4, 0)
    least, nothing = best(loss, rows, labels), best(loss, np.zeros((len(rows), 1)), labels)
    # some numbers are cut, and features are not normal
    assert value(loss, found, rows, labels) - least < 0.03 * (nothing - least)


def rare(share: float, strength: float = 12.0) -> tuple[Posterior, Numbers, Numbers]:
    """Return four numbers, of which two tell nearly all of few labels that are 1, and their method."""
    draws = np.random.default_rng(4)
    rows = np.clip(draws.normal(0, 0.25, (8000, 4)), -1, 1)
    scores = strength * (rows[:, 0] + rows[:, 1] / 2)
    offset = np.quantile(scores + draws.logistic(size=8000), 1 - share)
    labels = np.where(draws.random(8000) < 1 / (1 + np.exp(offset - scores)), 1.0, -1.0)[:, None]
    layout = Layout(np.arange(4), np.ones(4, dtype=np.bool_))
    return method(Logistic(), 1, layout=layout, people=len(rows), gradients=7), rows, labels


def missed(of: Posterior, rows: Numbers, labels: Numbers, mu: float) -> float:
    """Return which part is lost of what features can tell: the mean of three models."""
    least, nothing = best(of.loss, rows, labels), best(of.loss, np.zeros((len(rows), 1)), labels)
    found = [value(of.loss, learnt(of, rows, labels, mu, seed), rows, labels) for seed in range(3)]
    return float((np.mean(found) - least) / (nothing - least))


@pytest.mark.parametrize("share", [0.01, 0.03])
def test_a_rare_class_is_learnt_without_bias(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    of, rows, labels = rare(share)
    assert missed(of, rows, labels, 50.0) < 0.02
    assert missed(of, rows, labels, 1.0) < 0.05
    # if gradients are cut to what is usual, the few say little, however small the noise is
    monkeypatch.setattr(posterior_fit, "_LONG", 0.0)
    assert missed(of, rows, labels, 50.0) > 0.2


def test_weights_and_intercepts_of_a_rare_class_do_not_chase_each_other() -> None:
    of, rows, labels = rare(0.01, 20.0)
    assert missed(of, rows, labels, 3.0) < 0.06


def test_a_rare_one_of_three_classes_is_learnt_without_bias() -> None:
    draws = np.random.default_rng(6)
    rows = np.clip(draws.normal(0, 0.25, (8000, 4)), -1, 1)
    chosen = np.argmax(rows[:, :3] * 8 + [4.0, 0.0, -1.0] + draws.gumbel(size=(8000, 3)), axis=1)
    labels = 2 * np.eye(3)[chosen] - 1
    assert (chosen == 2).mean() < 0.06
    layout = Layout(np.arange(4), np.ones(4, dtype=np.bool_))
    for loss in (Softmax(), Logistic()):
        of = method(loss, 3, layout=layout, people=len(rows), gradients=7)
        assert missed(of, rows, labels, 50.0) < 0.03


def test_the_cut_grows_as_noise_falls_and_never_changes_the_reach() -> None:
    of, rows, labels = rare(0.03)
    total = np.asarray(of.sums(1, np.zeros(of.asked), rows, labels) * UNIT, dtype=np.float64)
    beliefs = [of.update(of.start(), 1, total, len(rows), len(rows) * each) for each in (1.0, 1e-2, 1e-3, 1e-6)]
    # in much noise what is usual, in little what hardly any row exceeds
    widths = [float(np.sqrt(1 + (belief.scales**2 * (belief.variances + belief.offsets)).sum())) for belief in beliefs]
    cuts = [belief.cut / width for belief, width in zip(beliefs, widths, strict=True)]
    assert cuts[0] == pytest.approx(beliefs[0].usual)
    assert beliefs[1].usual < cuts[2] < cuts[3] == pytest.approx(1.1, rel=1e-3)
    # whatever it is, what is sent scales rows by it, and records are cut to 1
    for belief in beliefs:
        message = belief.sent("gradients")
        each = [of.sums(5, message, rows[[place]], labels[[place]]) for place in range(50)]
        assert np.linalg.norm(np.array(each, dtype=np.float64), axis=1).max() <= float(of.reach(5))


@pytest.mark.parametrize("share", [0.001, 0.03, 0.5])
@pytest.mark.parametrize("size", [0.0, 1.0, 3.0])
def test_intercepts_give_the_wanted_shares_at_any_weights(share: float, size: float) -> None:
    for loss, models in LOSSES[:3]:
        fit = method(loss, models)._fit
        weights = size * np.random.default_rng(3).normal(size=(models, 6))
        wanted = np.full(1, share) if models == 1 else np.array([share, (1 - share) / 3, 2 * (1 - share) / 3])
        found = fit._matched(np.eye(6), weights, np.zeros(models), wanted)
        shares = fit._normal(np.eye(6), weights, found)[0]
        assert shares == pytest.approx(wanted, rel=0.05)


def test_a_lost_round_leaves_the_others() -> None:
    rows, _, labels = people(4000, 1)
    of = method(Logistic(), 1, people=len(rows), gradients=9)
    least, nothing = (best(Logistic(), each, labels) for each in (rows, np.zeros((len(rows), 1))))
    for lost in (2, 3, 4, 7):
        found = learnt(of, rows, labels, 50.0, 0, lost=(lost,))
        assert value(Logistic(), found, rows, labels) - least < 0.2 * (nothing - least)


def test_where_noise_hides_everything_the_model_is_the_constant() -> None:
    rows, _, labels = people(2000, 1)
    of = method(Logistic(), 1, people=len(rows))
    nothing = best(Logistic(), np.zeros((len(rows), 1)), labels)
    losses = [value(Logistic(), learnt(of, rows, labels, 0.02, seed), rows, labels) for seed in range(5)]
    assert np.mean(losses) < nothing + 0.05


def made(columns: int, people: int, share: float) -> tuple[Posterior, Numbers, Numbers]:
    """Return unrelated numbers, all of which matter a little, with a share of labels that are 1, and their method."""
    draws = np.random.default_rng(5)
    rows = np.clip(draws.normal(0, 0.25, (people, columns)), -1, 1)
    labels = np.where(rows.sum(axis=1, keepdims=True) + draws.normal(0, 2, (people, 1)) > 0, 1.0, -1.0)
    labels[draws.random(people) < 1 - 2 * share] = -1.0
    layout = Layout(np.arange(columns), np.ones(columns, dtype=np.bool_))
    return method(Logistic(), 1, layout=layout, people=people, gradients=7), rows, labels


def losses_of(columns: int, people: int, share: float, *, shuffled: bool = False) -> tuple[Numbers, float]:
    """Return the losses of models learnt in much noise, and that of the constant."""
    of, rows, labels = made(columns, people, share)
    labels = np.random.default_rng(6).permutation(labels) if shuffled else labels
    found = [value(Logistic(), learnt(of, rows, labels, 0.06, seed), rows, labels) for seed in range(8)]
    return np.array(found), best(Logistic(), np.zeros((people, 1)), labels)


def test_gradients_that_noise_explains_leave_the_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    found, nothing = losses_of(60, 6000, 0.5)
    assert found.max() < nothing
    found, nothing = losses_of(60, 6000, 0.5, shuffled=True)
    assert found.mean() < nothing + 0.005
    # if features are taken to say much, whatever is seen, noise is learnt
    monkeypatch.setattr(posterior_fit, "_NOTHING", 1e-9)
    monkeypatch.setattr(posterior_fit, "_SCORES", np.full(20, 3.0))
    assert losses_of(60, 6000, 0.5, shuffled=True)[0].mean() > nothing + 0.01


def test_where_features_are_hidden_a_model_costs_hardly_more_than_the_share_alone() -> None:
    of, rows, labels = made(40, 2000, 0.15)
    mu, share = 0.05, float((labels > 0).mean())
    nothing = best(Logistic(), np.zeros((2000, 1)), labels)

    def cost(weight: Fraction) -> float:
        one = method(Logistic(), 1, "add_remove", layout=of.layout, people=2000, gradients=7, intercept=weight)
        found = [value(Logistic(), learnt(one, rows, labels, mu, seed), rows, labels) for seed in range(15)]
        return float(np.mean(found)) - nothing

    # what the noise costs if the whole budget is for the share
    alone = 1 / (2 * (2000 * mu) ** 2 * share * (1 - share))
    weight = intercept_weight(2000 * mu, 40)
    assert cost(weight) < 4 * alone < cost(Fraction(3, 8))


def test_a_rare_class_that_noise_hides_costs_little() -> None:
    found, nothing = losses_of(10, 15_000, 0.001)
    assert found.max() < nothing + 0.01


def correlated() -> tuple[Posterior, Numbers, Numbers]:
    """Return eighty numbers that nearly say the same, and labels that follow what they share."""
    draws = np.random.default_rng(3)
    shared = draws.normal(size=(2000, 1))
    rows = np.clip(shared * 0.2 + draws.normal(0, 0.06, (2000, 80)), -1, 1)
    labels = np.where(2 * shared + draws.logistic(size=(2000, 1)) > 0, 1.0, -1.0)
    layout = Layout(np.arange(80), np.ones(80, dtype=np.bool_))
    return method(Logistic(), 1, layout=layout, people=2000, gradients=7), rows, labels


def test_strongly_correlated_columns_do_not_make_steps_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    of, rows, labels = correlated()
    nothing = best(Logistic(), np.zeros((len(rows), 1)), labels)

    def worst(mu: float, lost: tuple[int, ...] = ()) -> float:
        return max(value(Logistic(), learnt(of, rows, labels, mu, seed, lost), rows, labels) for seed in range(4))

    assert worst(0.2) < nothing - 0.1
    # without products only the guard knows about correlations
    assert worst(1.0, lost=(4,)) < nothing - 0.1
    monkeypatch.setattr(posterior_fit, "_SIGNIFICANT", 1e9)
    assert worst(1.0, lost=(4,)) > nothing + 0.5


def test_a_share_that_noise_hides_costs_no_more_than_equal_chances() -> None:
    draws = np.random.default_rng(1).normal(size=2000)
    for share in (0.02, 0.3, 0.5):
        for deviation, most in ((0.001, 0.002), (0.05, 0.06), (0.3, 0.6), (3.0, 0.7)):
            chance = np.array([likely_share(np.array([share + deviation * one]), deviation)[0] for one in draws])
            loss = -share * np.log(chance) - (1 - share) * np.log(1 - chance)
            least = -share * np.log(share) - (1 - share) * np.log(1 - share)
            assert loss.mean() - least < most
            # worse than equal chances by little, and seldom
            assert np.quantile(loss, 0.99) < max(np.log(2) + 0.15, least + 0.15)
    # of many classes, equal chances are less than a half
    assert likely_share(np.full(5, 0.2), 9.0) == pytest.approx(np.full(5, 0.2), abs=0.02)
    assert likely_share(np.array([0.1, 0.9]), 1e-4) == pytest.approx([0.1, 0.9], abs=6e-4)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        method(Logistic(), 1, people=0)
    with pytest.raises(InputError, match="does not support"):
        method(SmoothedHinge(), 1)
    with pytest.raises(InputError, match="more than the 2048"):
        method(Logistic(), 1, layout=Layout(np.arange(3000), np.ones(3000, dtype=np.bool_)))
