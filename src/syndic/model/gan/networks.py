"""A generator with a branch for each party and the parties' critics, differentiated by torch.

Loss of a critic D for one person (Gulrajani et al. 2017): -D(real) + D(made) + penalty (|dD/dx| - 1)^2 at a point
between the two rows. Each person has their own generated row and point, so a gradient depends on one person only. The
generator's loss is -mean D(made). Levels are drawn by the Gumbel trick; gradients go through its softmax (Jang et al.
2017). Only this file imports torch; inputs and outputs are numpy arrays, and nothing here is random.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import linear

from syndic.model.gan.shape import Chain, Flat, GanShape

Given = ParamSpec("Given")
Made = TypeVar("Made")

_TINY = 1e-12


def one_thread(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """Run torch with one thread: small matrices gain nothing from more, and sums are the same on any machine."""

    @wraps(function)
    def alone(*arguments: Given.args, **options: Given.kwargs) -> Made:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return function(*arguments, **options)
        finally:
            torch.set_num_threads(before)

    return alone


@one_thread
def critic_gradients(shape: GanShape, weights: Flat, real: Flat, made: Flat, between: Flat, penalty: float) -> Flat:
    """Return the gradient of each person's loss by the critic's weights, one row per person.

    `between` is the point between generated and real row at which the slope is evaluated. With D(x) = s(u r + c),
    r = max(0, W x + b) and m = [r > 0], the slope is s' v, v = W^T (u m). A term k D has the gradient k s' (u m) x^T
    by W; the slope's length l has (s' s'' |v|^2 (u m) x^T + s'^2 (u m) v^T) / l. So each gradient by W is a sum of
    four products.
    """
    width, hidden = shape.width, shape.critic_width
    flat = _tensor(weights)
    matrix, outer = flat[: width * hidden].view(hidden, width), flat[-hidden - 1 : -1]
    far, near = _tensor(real), _tensor(made)
    weight = _tensor(between)[:, None]
    rows = torch.stack([far, near, weight * far + (1 - weight) * near], dim=1)
    inside = torch.relu(linear(rows, matrix, flat[width * hidden : -hidden - 1]))
    opinion = torch.sigmoid(inside @ outer + flat[-1])
    first = opinion * (1 - opinion)
    through = outer * (inside > 0)
    slope = through[:, 2] @ matrix
    square = (slope * slope).sum(dim=1)
    length = torch.sqrt(first[:, 2] ** 2 * square + _TINY)
    pull = 2 * penalty * (length - 1) / length * first[:, 2]
    # the weight of each critic output in the loss, and of the slope
    shares = torch.stack([-first[:, 0], first[:, 1], pull * first[:, 2] * (1 - 2 * opinion[:, 2]) * square], dim=1)
    steep = (pull * first[:, 2])[:, None]
    left = torch.cat([shares[:, :, None] * through, (steep * through[:, 2])[:, None]], dim=1)
    by_matrix = left.transpose(1, 2) @ torch.cat([rows, slope[:, None]], dim=1)
    by_outer = (shares[:, :, None] * inside).sum(dim=1) + steep * (inside[:, 2] > 0) * (slope @ matrix.T)
    by_offset = (shares[:, :, None] * through).sum(dim=1)
    parts = [by_matrix.flatten(1), by_offset, by_outer, shares.sum(dim=1, keepdim=True)]
    return _array(torch.cat(parts, dim=1))


def judge(chain: Chain, weights: Tensor, rows: Tensor) -> Tensor:
    """Return the critic's output for rows, between 0 and 1."""
    return torch.sigmoid(_through(chain, weights, rows, last=False)).squeeze(-1)


@one_thread
def made_rows(shape: GanShape, trunk: Flat, branch: Flat, inputs: tuple[Flat, Flat], temperature: float) -> Flat:
    """Return rows of the generator's branch in one-hot form."""
    with torch.no_grad():
        rows = _generated(shape, _tensor(trunk), _tensor(branch), inputs, temperature)
    return _array(rows)


@one_thread
def made_codes(shape: GanShape, trunk: Flat, branch: Flat, inputs: tuple[Flat, Flat]) -> NDArray[np.int64]:
    """Return rows of the generator's branch as codes, one column per variable."""
    with torch.no_grad():
        scores = _scores(shape, _tensor(trunk), _tensor(branch), inputs[0]) + _tensor(inputs[1])
        codes = torch.stack([part.argmax(dim=1) for part in _split(shape, scores)], dim=1)
    return np.asarray(codes.numpy(), dtype=np.int64)


@one_thread
def generator_gradient(
    shape: GanShape, trunk: Flat, branch: Flat, critic: Flat, inputs: tuple[Flat, Flat], temperature: float
) -> tuple[Flat, Flat]:
    """Return the gradients of -mean D(made) by the trunk's and by the branch's weights."""
    roots = (_tensor(trunk).requires_grad_(), _tensor(branch).requires_grad_())
    rows = _generated(shape, *roots, inputs, temperature)
    loss = -judge(shape.critic, _tensor(critic), rows).mean()
    by_trunk, by_branch = torch.autograd.grad(loss, roots)
    # extremely large weights have no finite gradient
    return _array(torch.nan_to_num(by_trunk, 0.0, 0.0, 0.0)), _array(torch.nan_to_num(by_branch, 0.0, 0.0, 0.0))


def _generated(shape: GanShape, trunk: Tensor, branch: Tensor, inputs: tuple[Flat, Flat], temperature: float) -> Tensor:
    """Return one-hot rows through which gradients pass as through the softmax at this temperature."""
    scores = _scores(shape, trunk, branch, inputs[0])
    parts = []
    for score, noise in zip(_split(shape, scores), _split(shape, _tensor(inputs[1])), strict=True):
        soft = torch.softmax((torch.log_softmax(score, dim=1) + noise) / temperature, dim=1)
        hard = torch.zeros_like(soft).scatter_(1, soft.argmax(dim=1, keepdim=True), 1.0)
        parts.append(hard + soft - soft.detach())
    return torch.cat(parts, dim=1)


def _scores(shape: GanShape, trunk: Tensor, branch: Tensor, normal: Flat) -> Tensor:
    features = _through(shape.trunk, trunk, _tensor(normal), last=True)
    # no activation between the last two layers, as in the published implementation
    return _through(shape.branch, branch, features, last=False, plain=2)


def _split(shape: GanShape, rows: Tensor) -> tuple[Tensor, ...]:
    parts: tuple[Tensor, ...] = torch.split(rows, list(shape.sizes), dim=1)  # typed with and without torch installed
    return parts


def _through(chain: Chain, weights: Tensor, rows: Tensor, *, last: bool, plain: int = 1) -> Tensor:
    """Return the output of the layers, with ReLU after all but the last `plain` layers, or after all if `last`."""
    start, count = 0, len(chain.layers)
    for place, (inputs, outputs) in enumerate(chain.layers):
        matrix = weights[start : start + inputs * outputs].view(outputs, inputs)
        start += inputs * outputs
        rows = linear(rows, matrix, weights[start : start + outputs])
        start += outputs
        if last or place < count - plain:
            rows = torch.relu(rows)
    return rows


def _tensor(values: NDArray[Any]) -> Tensor:
    # a copy in torch's own memory: then sums do not depend on the memory layout of the input
    return torch.tensor(np.ascontiguousarray(values, dtype=np.float32))


def _array(values: Tensor) -> Flat:
    return np.asarray(values.detach().numpy(), dtype=np.float32)
