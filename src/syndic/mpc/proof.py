"""A party proves that its masked rows are one-hot, to a partner and the dealer who hold the two shares of them.

Every row has at most a single one in each group of columns and zeros elsewhere. The partner has E = X - U, the dealer
U: linear functions of X can be computed on both and added. *Statement*: with random r, v, u in a large field K (see
`syndic.mpc.extension`) z = v u sum_j r_j x_j squared is v^2 u^2 sum_j r_j^2 x_j, for every row and group, added up; a
row and group that is neither empty nor one-hot fails it but for a chance of 6 / |K|. *Proof*: rows are numbered
(tau, g), tau = 1..`points`. For every g and group f is the polynomial with f(tau) = z and a random f(0); h is the sum
of all f^2. The party shares all f(0) and h(0), .., h(2 points), half by half. *Check*, linear but for the last line,
at a point t of K outside F_p: F = f(t), H = h(t), O = sum of h(tau) - sum of u^2 v^2 r^2 x; then sum F^2 = H, O = 0.
A false h passes with a chance of 2 points / (|K| - p). In all 2^-60.9 for p of 17 bits, less for others.

*Who learns what.* F is uniform by f(0), H and O follow from what the partner has: it learns nothing. The dealer learns
whether the partner refused; shifts of its shares are refused but for 1 / |K| whatever the rows are, provided that
party and partner used one seed. *Why t is outside F_p*: at 1..points F would be a row. After Boneh et al. 2019 (fully
linear proofs) and Boneh et al. 2021 (sketches of one-hot vectors).
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.mpc.extension import DEGREE, Elements, Extension
from syndic.mpc.key import context
from syndic.mpc.mask import expand
from syndic.mpc.ring import Residues

POINTS: Final = 64
# polynomials extended at once: few enough for the processor's cache
_PIECE: Final = 256


@final
@dataclass(frozen=True)
class Challenge:
    """What a seed expands to: an element of K for each column, each tau, and each group and g."""

    columns: Elements
    points: Elements
    sums: Elements


@final
@dataclass(frozen=True)
class OneHotProof:
    """The proof for a matrix of `rows` rows over a prime `field`, with so many columns in each of the `groups`."""

    field: Residues
    groups: tuple[int, ...]
    rows: int
    points: int = POINTS

    @cached_property
    def _k(self) -> Extension:
        return Extension(self.field.modulus)

    @cached_property
    def _spans(self) -> tuple[slice, ...]:
        ends = accumulate(self.groups, initial=0)
        return tuple(slice(start, stop) for start, stop in pairwise(ends) if start < stop)

    @property
    def _sums(self) -> tuple[int, int, int]:
        return DEGREE, len(self._spans), -(-self.rows // self.points)

    @property
    def length(self) -> int:
        """How many elements of the field a proof has."""
        return int(np.prod(self._sums)) + DEGREE * (2 * self.points + 1)

    @property
    def answer_length(self) -> int:
        """How many elements of the field an answer has."""
        return int(np.prod(self._sums)) + 2 * DEGREE

    def drawn(self, key: bytes, what: str, count: int) -> NDArray[Any]:
        """Return uniform elements of the field."""
        return expand(key, context("one-hot proof", what), count, self.field)

    def point(self, key: bytes) -> NDArray[Any]:
        """Return a uniform element of K outside the field."""
        attempt = 0
        while not self.outside(found := self.drawn(key, f"point {attempt}", DEGREE)):
            attempt += 1
        return found

    def outside(self, point: NDArray[Any]) -> bool:
        """Return whether a point of K is outside the field: elsewhere the check would show a row."""
        return bool(point[1:].any())

    def prove(self, matrix: NDArray[Any], seed: bytes, fresh: bytes) -> NDArray[Any]:
        """Return the proof for a challenge; `fresh` is a key that is used for nothing else. Private."""
        k, asked = self._k, self._challenge(seed)
        masks = k.elements(self.drawn(fresh, "masks", int(np.prod(self._sums)))).reshape(self._sums)
        weights = np.moveaxis(k.times(asked.points[:, :, None], asked.columns[:, None, :]), 0, -1)
        beyond, h = k.extrapolation(self.points), k.elements(np.zeros((DEGREE, 2 * self.points + 1)))
        # narrow groups are taken together
        batch = max(1, _PIECE // max(1, self._sums[2]))
        for first in range(0, len(self._spans), batch):
            places = slice(first, first + batch)
            z = np.concatenate([self._combined(matrix, weights, span) for span in self._spans[places]], axis=2)
            held, sums = (each[:, places].reshape(DEGREE, 1, -1) for each in (masks, asked.sums))
            for start in range(0, z.shape[2], _PIECE):
                part = slice(start, start + _PIECE)
                f = np.concatenate([held[:, :, part], k.times(z[:, :, part], sums[:, :, part])], axis=1)
                h += np.concatenate([k.squares(f), k.squares(k.reduce(beyond @ f))], axis=1)
        return np.concatenate([masks.ravel(), k.reduce(h).ravel()]).astype(self.field.dtype)

    def _combined(self, matrix: NDArray[Any], weights: Elements, span: slice) -> Elements:
        """Return v sum_j r_j x_j of every row, for one group."""
        return self._k.reduce(np.moveaxis(self._numbered(matrix[:, span]) @ weights[:, span], -1, 0))

    def answer(self, share: NDArray[Any], proof: NDArray[Any], seed: bytes, point: NDArray[Any]) -> NDArray[Any]:
        """Return F, H and O of one share of the matrix and one share of its proof. Linear in both."""
        k, asked = self._k, self._challenge(seed)
        masks, h = np.split(k.elements(proof), [int(np.prod(self._sums))])
        masks, h = masks.reshape(self._sums), h.reshape(DEGREE, -1)
        near, far = (k.coefficients(times * self.points, k.elements(point)) for times in (1, 2))
        weights = np.concatenate([k.times(near[:, 1:], asked.points), k.times(asked.points, asked.points)])
        inner = k.reduce(weights @ self._numbered(share).reshape(self.points, -1))
        lines, squares = inner.reshape(2, DEGREE, self._sums[2], -1)
        columns, twice = asked.columns[:, None], k.times(asked.sums, asked.sums)
        f = k.times(asked.sums, self._by_group(k.times(lines, columns))) + k.times(near[:, :1, None], masks)
        due = k.times(twice, self._by_group(k.times(squares, k.times(columns, columns))))
        o = h[:, 1 : self.points + 1].sum(axis=1) - due.sum(axis=(1, 2))
        rest = np.stack([k.times(far, h).sum(axis=1), o])
        return k.reduce(np.concatenate([f.ravel(), rest.ravel()])).astype(self.field.dtype)

    def holds(self, one: NDArray[Any], other: NDArray[Any]) -> bool:
        """Return whether the answers on both shares show one-hot rows."""
        k, total = self._k, self._k.elements(self.field.add(one, other))
        f, h, o = np.split(total, [total.size - 2 * DEGREE, total.size - DEGREE])
        return not (k.reduce(k.squares(f.reshape(DEGREE, -1)) - h).any() or o.any())

    def _numbered(self, matrix: NDArray[Any]) -> Elements:
        """Return rows numbered (tau, g); rows that are missing are zero."""
        rows = self._k.elements(np.zeros((self.points * self._sums[2], matrix.shape[1])))
        rows[: self.rows] = matrix
        return rows.reshape(self.points, self._sums[2], -1)

    def _by_group(self, columns: Elements) -> Elements:
        """Return the sums over the columns of each group."""
        found = np.zeros(self._sums, dtype=columns.dtype)
        for place, span in enumerate(self._spans):
            found[:, place] = columns[..., span].sum(axis=-1)
        return self._k.reduce(found)

    def _challenge(self, seed: bytes) -> Challenge:
        shapes = ((DEGREE, sum(self.groups)), (DEGREE, self.points), self._sums)
        columns, points, sums = (
            self._k.elements(self.drawn(seed, name, int(np.prod(shape)))).reshape(shape)
            for name, shape in zip(("columns", "points", "sums"), shapes, strict=True)
        )
        return Challenge(columns, points, sums)
