"""Gradients of the networks against plain differentiation of networks written in the library's own way."""

from typing import Any

import numpy as np
import pytest

from support import needs_torch
from syndic.model.gan.shape import Chain, Flat, GanShape, descend

pytestmark = needs_torch

SHAPE = GanShape(sizes=(3, 2, 4), noise=5, trunk_widths=(6, 7), branch_widths=(8, 6), critic_width=10)
TEMPERATURE = 0.5


def weights(seed: int = 0) -> tuple[Flat, Flat, Flat]:
    draws = np.random.default_rng(seed)
    return SHAPE.trunk.initial(draws), SHAPE.branch.initial(draws), 3 * SHAPE.critic.initial(draws)


def network(chain: Chain, flat: Flat, rectified: tuple[int, ...]) -> Any:
    """Return the layers as modules, with the weights of a flat vector."""
    import torch  # noqa: PLC0415

    parts: list[Any] = []
    start = 0
    for place, (inputs, outputs) in enumerate(chain.layers):
        layer = torch.nn.Linear(inputs, outputs)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(flat[start : start + inputs * outputs].reshape(outputs, inputs)))
            start += inputs * outputs
            layer.bias.copy_(torch.tensor(flat[start : start + outputs]))
            start += outputs
        parts.append(layer)
        if place in rectified:
            parts.append(torch.nn.ReLU())
    return torch.nn.Sequential(*parts)


def gathered(module: Any) -> Flat:
    """Return the gradients of a module's weights in the order of the flat vector."""
    return np.concatenate([one.grad.numpy().ravel() for one in module.parameters()])


def people(count: int, seed: int = 1) -> tuple[Flat, Flat, Flat]:
    draws = np.random.default_rng(seed)

    def rows() -> Flat:
        return SHAPE.one_hot(np.stack([draws.integers(0, size, count) for size in SHAPE.sizes], axis=1))

    return rows(), rows(), draws.random(count, dtype=np.float32)


@pytest.mark.parametrize("penalty", [0.0, 10.0])
def test_a_persons_gradient_is_that_of_their_own_loss(penalty: float) -> None:
    import torch  # noqa: PLC0415

    from syndic.model.gan.networks import critic_gradients  # noqa: PLC0415

    flat, (real, made, between) = weights()[2], people(20)
    found = critic_gradients(SHAPE, flat, real, made, between, penalty)
    for place in range(20):
        critic = torch.nn.Sequential(network(SHAPE.critic, flat, (0,)), torch.nn.Sigmoid())
        one, other = torch.tensor(real[place]), torch.tensor(made[place])
        middle = (between[place] * one + (1 - between[place]) * other).requires_grad_()
        (slope,) = torch.autograd.grad(critic(middle).sum(), middle, create_graph=True)
        loss = -critic(one) + critic(other) + penalty * (slope.norm() - 1) ** 2
        loss.sum().backward()
        assert found[place] == pytest.approx(gathered(critic), abs=2e-5)


def test_nobody_changes_another_persons_gradient() -> None:
    from syndic.model.gan.networks import critic_gradients  # noqa: PLC0415

    flat, (real, made, between) = weights()[2], people(6)
    whole = critic_gradients(SHAPE, flat, real, made, between, 10.0)
    real[3] = np.roll(real[3], 1)
    other = critic_gradients(SHAPE, flat, real, made, between, 10.0)
    assert (np.delete(whole, 3, axis=0) == np.delete(other, 3, axis=0)).all()
    assert not np.allclose(whole[3], other[3])
    assert critic_gradients(SHAPE, flat, real[:0], made[:0], between[:0], 10.0).shape == (0, len(flat))


def test_made_rows_have_one_level_a_column_and_are_the_codes() -> None:
    from syndic.model.gan.networks import made_codes, made_rows  # noqa: PLC0415

    trunk, branch, _ = weights()
    inputs = SHAPE.inputs(50, np.random.default_rng(2))
    rows = made_rows(SHAPE, trunk, branch, inputs, TEMPERATURE)
    assert rows == pytest.approx(SHAPE.one_hot(made_codes(SHAPE, trunk, branch, inputs)), abs=1e-6)


def test_levels_are_drawn_by_their_scores() -> None:
    import torch  # noqa: PLC0415

    from syndic.model.gan.networks import made_codes  # noqa: PLC0415

    trunk, branch, _ = weights()
    draws = np.random.default_rng(4)
    normal = np.repeat(draws.standard_normal((1, SHAPE.noise), dtype=np.float32), 40_000, axis=0)
    codes = made_codes(SHAPE, trunk, branch, (normal, SHAPE.gumbel(40_000, draws)))
    features = network(SHAPE.trunk, trunk, (0, 1))(torch.tensor(normal[:1]))
    scores = network(SHAPE.branch, branch, (0,))(features)
    chances = torch.softmax(scores[0, :3], dim=0).detach().numpy()
    # standard deviations are below 0.0025
    assert np.bincount(codes[:, 0], minlength=3) / 40_000 == pytest.approx(chances, abs=0.0125)


def test_the_generators_gradient_goes_through_the_softmax() -> None:
    import torch  # noqa: PLC0415

    from syndic.model.gan.networks import generator_gradient  # noqa: PLC0415

    flat_trunk, flat_branch, flat_critic = weights()
    normal, gumbel = SHAPE.inputs(12, np.random.default_rng(3))
    trunk, branch = network(SHAPE.trunk, flat_trunk, (0, 1)), network(SHAPE.branch, flat_branch, (0,))
    critic = torch.nn.Sequential(network(SHAPE.critic, flat_critic, (0,)), torch.nn.Sigmoid())
    scores = branch(trunk(torch.tensor(normal)))
    parts = []
    for score, noise in zip(scores.split(SHAPE.sizes, 1), torch.tensor(gumbel).split(SHAPE.sizes, 1), strict=True):
        soft = ((score.log_softmax(1) + noise) / TEMPERATURE).softmax(1)
        hard = torch.nn.functional.one_hot(soft.argmax(1), soft.shape[1])
        parts.append(hard - soft.detach() + soft)
    (-critic(torch.cat(parts, 1)).mean()).backward()
    by_trunk, by_branch = generator_gradient(SHAPE, flat_trunk, flat_branch, flat_critic, (normal, gumbel), TEMPERATURE)
    assert by_trunk == pytest.approx(gathered(trunk), abs=1e-6)
    assert by_branch == pytest.approx(gathered(branch), abs=1e-6)
    assert np.abs(by_trunk).max() > 1e-4


def test_descent_is_rmsprop() -> None:
    import torch  # noqa: PLC0415

    draws = np.random.default_rng(6)
    start = draws.standard_normal(30).astype(np.float32)
    mine, squares = start, np.zeros_like(start)
    theirs = torch.nn.Parameter(torch.tensor(start))
    descent = torch.optim.RMSprop([theirs], lr=0.01)
    for _ in range(5):
        gradient = draws.standard_normal(30).astype(np.float32)
        theirs.grad = torch.tensor(gradient)
        descent.step()
        mine, squares = descend(mine, squares, gradient, 0.01)
    assert mine == pytest.approx(theirs.detach().numpy(), abs=1e-6)


def test_threads_are_given_back() -> None:
    import torch  # noqa: PLC0415

    from syndic.model.gan.networks import one_thread  # noqa: PLC0415

    before = torch.get_num_threads()
    assert one_thread(torch.get_num_threads)() == 1
    assert torch.get_num_threads() == before
