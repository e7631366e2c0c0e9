"""A party proves what its masked rows are, to a partner and the dealer who hold the two shares of them.

The partner has E = X - U, the dealer U: linear functions of X can be computed on both and added. *Statement*: a sum of
squares of linear functions of X, with random coefficients in a large field K (see `syndic.mpc.extension`), equals a
linear function of X plus a constant; rows that are not as stated fail it but for a small chance. *Proof*: rows are
numbered (tau, g), tau = 1..`points`. Each square is of a number z at every tau; f is the polynomial with f(tau) = z and
a random f(0); h is the sum of all f^2. The party shares all f(0) and h(0), .., h(2 points), half by half. *Check*,
linear but for the last line, at a point t of K outside F_p: F = f(t), H = h(t), O = sum of h(tau) - what the sum of
squares must be; then sum F^2 = H, O = 0. A false h passes with a chance of 2 points / (|K| - p).

*One-hot* rows have at most a single one in each group of columns and zeros elsewhere. With random r, v, u in K
z = v u sum_j r_j x_j squared is v^2 u^2 sum_j r_j^2 x_j, for every row and group, added up; a row and group that is
neither empty nor one-hot fails it but for a chance of 6 / |K|. In all 2^-60.9 for p of 17 bits, less for others. Rows
of a bounded *length* are in `syndic.mpc.length`.

*Who learns what.* F is uniform by f(0), H and O follow from what the partner has: it learns nothing. The dealer learns
whether the partner refused; shifts of its shares are refused but for 1 / |K| whatever the rows are, provided that
party and partner used one seed. *Why t is outside F_p*: at 1..points F would be a row. After Boneh et al. 2019 (fully
linear proofs) and Boneh et al. 2021 (sketches of one-hot vectors).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as attribute
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from syndic.mpc.extension import Elements, Extension
from syndic.mpc.key import context
from syndic.mpc.mask import expand
from syndic.mpc.ring import Residues

POINTS: Final = 64
# polynomials extended at once: few enough for the processor's cache
PIECE: Final = 256


@dataclass(frozen=True)
class Proof(ABC):
    """A proof that `terms` polynomials have squares that add up to what they must; over a prime `field`."""

    field: Residues
    points: int = attribute(default=POINTS, kw_only=True)

    name: ClassVar[str]
    what: ClassVar[str]
    """How the rows are called that are proven."""

    @cached_property
    def k(self) -> Extension:
        """The field of challenges."""
        return Extension(self.field.modulus)

    @property
    @abstractmethod
    def terms(self) -> int:
        """How many squares are added up at each tau."""

    @property
    def tests(self) -> int:
        """How many further numbers the party shares before the challenge."""
        return 0

    def completed(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return the rows with further columns that the proof needs. Private."""
        return matrix

    def tested(self, matrix: NDArray[Any], seed: bytes) -> NDArray[Any]:
        """Return the further numbers that a seed asks for; none where nothing is tested. Private."""
        del seed
        return matrix[:, :0]

    def joined(self, matrix: NDArray[Any], tested: NDArray[Any], seed: bytes = b"") -> NDArray[Any]:
        """Return what is proven, or a share of it: rows and further numbers, for checks with the seed of these."""
        del tested, seed
        return matrix

    @abstractmethod
    def prove(self, values: NDArray[Any], seed: bytes, fresh: bytes) -> NDArray[Any]:
        """Return the proof for a challenge; `fresh` is a key that is used for nothing else. Private."""

    @abstractmethod
    def answer(self, values: NDArray[Any], proof: NDArray[Any], seed: bytes, point: NDArray[Any]) -> NDArray[Any]:
        """Return F, H and O of one share of what is proven and one share of its proof. Linear in both."""

    @property
    def length(self) -> int:
        """How many elements of the field a proof has."""
        return self.k.degree * (self.terms + 2 * self.points + 1)

    @property
    def answer_length(self) -> int:
        """How many elements of the field an answer has."""
        return self.k.degree * (self.terms + 2)

    def drawn(self, key: bytes, what: str, count: int) -> NDArray[Any]:
        """Return uniform elements of the field."""
        return expand(key, context(self.name, what), count, self.field)

    def challenged(self, seed: bytes, what: str, *shape: int) -> Elements:
        """Return the elements of K that a seed expands to."""
        whole = (self.k.degree, *shape)
        return self.k.elements(self.drawn(seed, what, int(np.prod(whole)))).reshape(whole)

    def point(self, key: bytes) -> NDArray[Any]:
        """Return a uniform element of K outside the field."""
        attempt = 0
        while not self.outside(found := self.drawn(key, f"point {attempt}", self.k.degree)):
            attempt += 1
        return found

    def outside(self, point: NDArray[Any]) -> bool:
        """Return whether a point of K is outside the field: elsewhere the check would show a row."""
        return bool(point[1:].any())

    def constant(self, seed: bytes) -> NDArray[Any]:
        """Return what one of the two answers must add: the part of O that does not depend on shares."""
        del seed
        return np.zeros(self.answer_length, dtype=self.field.dtype)

    def holds(self, one: NDArray[Any], other: NDArray[Any]) -> bool:
        """Return whether the answers on both shares, with the constant, show rows as stated."""
        k, total = self.k, self.k.elements(self.field.add(one, other))
        f, h, o = np.split(total, [total.size - 2 * k.degree, total.size - k.degree])
        return not (k.reduce(k.squares(f.reshape(k.degree, -1)) - h).any() or o.any())

    def _made(self, values: Iterator[Elements], fresh: bytes) -> NDArray[Any]:
        """Return the proof for values z at 1..points, some terms at a time; `fresh` is used for nothing else."""
        k, masks = self.k, self.challenged(fresh, "masks", self.terms)
        beyond, h, start = k.extrapolation(self.points), k.elements(np.zeros((k.degree, 2 * self.points + 1))), 0
        for z in values:
            f = np.concatenate([masks[:, None, start : start + z.shape[2]], z], axis=1)
            h = k.reduce(h + np.concatenate([k.squares(f), k.squares(k.product(beyond, f))], axis=1))
            start += z.shape[2]
        return np.concatenate([masks.ravel(), h.ravel()]).astype(self.field.dtype)

    def _lagrange(self, point: NDArray[Any]) -> tuple[Elements, Elements]:
        """Return the coefficients at a point of values at 0..points, and of values at 0..2 points."""
        near, far = (self.k.coefficients(times * self.points, self.k.elements(point)) for times in (1, 2))
        return near, far

    def _answered(
        self, lines: Elements, due: Elements, proof: NDArray[Any], lagrange: tuple[Elements, Elements]
    ) -> NDArray[Any]:
        """Return F, H and O of a share of the proof and of the sums of z, and of what squares must add up to."""
        k, (near, far) = self.k, lagrange
        masks, h = np.split(k.elements(proof), [k.degree * self.terms])
        h = h.reshape(k.degree, -1)
        f = lines + k.times(near[:, :1], masks.reshape(k.degree, -1))
        o = h[:, 1 : self.points + 1].sum(axis=1) - due
        rest = np.stack([k.times(far, h).sum(axis=1), o])
        return k.reduce(np.concatenate([f.ravel(), rest.ravel()])).astype(self.field.dtype)

    def _numbered(self, matrix: NDArray[Any]) -> Elements:
        """Return rows numbered (tau, g); rows that are missing are zero."""
        count = -(-len(matrix) // self.points)
        rows = self.k.elements(np.zeros((self.points * count, *matrix.shape[1:])))
        rows[: len(matrix)] = matrix
        return rows.reshape(self.points, count, *matrix.shape[1:])


@final
@dataclass(frozen=True)
class OneHotProof(Proof):
    """The proof for a one-hot matrix of `rows` rows, with so many columns in each of the `groups`."""

    groups: tuple[int, ...]
    rows: int

    name: ClassVar[str] = "one-hot proof"
    what: ClassVar[str] = "one-hot"

    @cached_property
    def _spans(self) -> tuple[slice, ...]:
        ends = accumulate(self.groups, initial=0)
        return tuple(slice(start, stop) for start, stop in pairwise(ends) if start < stop)

    @property
    def _sums(self) -> tuple[int, int]:
        return len(self._spans), -(-self.rows // self.points)

    @property
    def terms(self) -> int:
        """A square for each group and g."""
        return int(np.prod(self._sums))

    def prove(self, values: NDArray[Any], seed: bytes, fresh: bytes) -> NDArray[Any]:
        """Return the proof for a challenge; `fresh` is a key that is used for nothing else. Private."""
        return self._made(self._values(values, seed), fresh)

    def _values(self, matrix: NDArray[Any], seed: bytes) -> Iterator[Elements]:
        k, (columns, points, sums) = self.k, self._challenge(seed)
        weights = np.moveaxis(k.times(points[:, :, None], columns[:, None, :]), 0, -1)
        # narrow groups are taken together
        batch = max(1, PIECE // max(1, self._sums[1]))
        for first in range(0, len(self._spans), batch):
            places = slice(first, first + batch)
            z = np.concatenate([self._combined(matrix, weights, span) for span in self._spans[places]], axis=2)
            held = sums[:, places].reshape(k.degree, 1, -1)
            for start in range(0, z.shape[2], PIECE):
                part = slice(start, start + PIECE)
                yield k.times(z[:, :, part], held[:, :, part])

    def _combined(self, matrix: NDArray[Any], weights: Elements, span: slice) -> Elements:
        """Return v sum_j r_j x_j of every row, for one group."""
        return self.k.reduce(np.moveaxis(self._numbered(matrix[:, span]) @ weights[:, span], -1, 0))

    def answer(self, values: NDArray[Any], proof: NDArray[Any], seed: bytes, point: NDArray[Any]) -> NDArray[Any]:
        """Return F, H and O of one share of the matrix and one share of its proof. Linear in both."""
        k, (columns, points, sums) = self.k, self._challenge(seed)
        lagrange = self._lagrange(point)
        weights = np.concatenate([k.times(lagrange[0][:, 1:], points), k.times(points, points)])
        inner = k.product(weights, self._numbered(values).reshape(self.points, -1))
        lines, squares = inner.reshape(2, k.degree, self._sums[1], -1)
        columns = columns[:, None]
        f = k.times(sums, self._by_group(k.times(lines, columns)))
        due = k.times(k.times(sums, sums), self._by_group(k.times(squares, k.times(columns, columns))))
        return self._answered(f.reshape(k.degree, -1), due.sum(axis=(1, 2)), proof, lagrange)

    def _by_group(self, columns: Elements) -> Elements:
        """Return the sums over the columns of each group."""
        found = np.zeros((self.k.degree, *self._sums), dtype=columns.dtype)
        for place, span in enumerate(self._spans):
            found[:, place] = columns[..., span].sum(axis=-1)
        return self.k.reduce(found)

    def _challenge(self, seed: bytes) -> tuple[Elements, Elements, Elements]:
        """Return an element of K for each column, each tau, and each group and g."""
        columns = self.challenged(seed, "columns", sum(self.groups))
        return columns, self.challenged(seed, "points", self.points), self.challenged(seed, "sums", *self._sums)
