"""Secure product: the parties of a vertical study get shares of X_p'X_q for chosen pairs of parties.

*Unit*: a product hides matrices; noise protects people. Both parties of a pair add a share of the noise to their share
of the product, under one more mask that the two agree on, and only the noisy sum is ever opened.
*Rounds*: keys, then for every chunk of rows the masked matrices and the masked wrap bits, then the opening.

*Who learns what.* The coordinator deals the triples (see `syndic.mpc.triple`) and carries the openings, which are
sealed: it learns the noisy products only. It must not see the parties' shares either, since it knows half of the
triples; therefore the partners mask them. One or several parties learn nothing about another party's matrix except the
noisy products. The coordinator and one party together could read the matrices of that party's partners.
*Semi-honest*: partners can check that rows sum to one in every group (`checked`). This detects a party that puts a
large number into a row, but not one that compensates it by a negative number in the same group. Without identities in
the study, a coordinator that forges public keys can read the rows. Rows must be the same every time they are read: a
party compares them with those that it masked. *Not supported*: products of three matrices. They need a triple for
every row and pair of columns instead of one for a whole table: n times more traffic.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import Message, Party, SubProtocol, step
from syndic.mpc.key import KEY_BYTES, KeyPair, agree_with, context, derive, key_pair
from syndic.mpc.mask import expand
from syndic.mpc.order import advance
from syndic.mpc.product_messages import (
    Pair,
    ProductClose,
    ProductInbox,
    ProductKey,
    ProductOpening,
    ProductStart,
    ProductTurn,
    partners_of,
)
from syndic.mpc.ring import Ring
from syndic.mpc.seal import Mail, Place, seal, unseal
from syndic.mpc.triple import (
    ProductSizes,
    Stock,
    both_wrapped,
    folded,
    left_blocks,
    lifted_share,
    masked_wraps,
    opening,
    right_blocks,
    row_sums,
    unshifted,
)

Rows = Callable[[int, int], NDArray[Any]]
"""A function that returns the rows of a party's matrix from one index up to another. Private."""

_EVERYONE = "every partner"


class _Own(Message):
    seed: bytes
    pair: KeyPair


class _Met(Message):
    keys: dict[str, bytes]


class _Share(Message):
    total: NDArray[np.uint64]


class _Masked(Message):
    digest: bytes


class _Sums(Message):
    sums: NDArray[np.int64]


class _Wraps(Message):
    bits: bytes


class SecureProduct(SubProtocol):
    """One secure product: which matrices are multiplied. Public; each party computes it from its own study.

    `pairs` are the pairs of parties (left, right) whose matrices are multiplied. `groups` is the number of columns in
    each group of a party's matrix. `cells` selects cells of a pair's product, if not all are needed. With `checked`,
    rows sum to one in each group and partners check that. `label` distinguishes the products of a study.

    A method defines the steps `product_masked` and `product_multiplied`, both `reveals="sealed"`, which call `mask` and
    `multiply` with a function that returns rows of the party's matrix. A third step, `reveals="masked"`, takes a
    `ProductClose`, calls `shares`, adds noise through `party.contribute` and returns `hide`. The method's `coordinate`
    calls `deal_products` (in `syndic.mpc.dealer`) and then this third step. A method that learns only during the run
    which matrices to multiply creates the product from its plan and the party's stored messages, and defines its own
    step `product_keys` that calls the one here.
    """

    label: str
    sizes: ProductSizes
    pairs: tuple[Pair, ...]
    groups: Mapping[str, tuple[int, ...]]
    checked: bool = False
    cells: Mapping[Pair, NDArray[np.int64]] = {}

    @property
    def rounds(self) -> tuple[str, ...]:
        """The names of the steps of one product, in order; the method defines the last two."""
        return ("product_keys", "product_masked", "product_multiplied")

    def shape(self, pair: Pair) -> tuple[int, int]:
        """Return the shape of a pair's share of the product: the full product, or the selected cells in one column."""
        if pair in self.cells:
            return len(self.cells[pair]), 1
        left, right = pair
        return sum(self.groups[left]), sum(self.groups[right])

    def pair(self, one: str, other: str) -> Pair:
        """Return two partners, the left one first."""
        return (one, other) if (one, other) in self.pairs else (other, one)

    @step(reveals="public")
    def product_keys(self, party: Party, message: ProductStart) -> ProductKey:
        """Store the dealer's seed, create a key pair and publish the public key."""
        # a second seed would put two masks on the same product, and the dealer could separate them
        advance(party, self.label, 1)
        if len(message.seed) != KEY_BYTES:
            raise RefusedError(f"the dealer's seed must have {KEY_BYTES} bytes")
        pair = key_pair(party.key_randomness("product keys"))
        party.remember(f"{self.label} own", _Own(seed=message.seed, pair=pair))
        return ProductKey(public=pair.public)

    def mask(self, party: Party, message: ProductTurn, rows: Rows) -> ProductOpening:
        """Mask the rows of one chunk and seal them for the partners."""
        sizes = self.sizes
        advance(party, self.label, 2 + 2 * message.chunk)
        if not 0 <= message.chunk < sizes.chunks:
            raise RefusedError(f"this study has {sizes.chunks} chunks of rows; there is no chunk {message.chunk}")
        if message.keys.keys() != set(partners_of(self.pairs, party.name)):
            raise RefusedError("the message does not have one public key for each of this party's partners")
        if message.chunk == 0:
            party.remember(f"{self.label} met", _Met(keys=message.keys))
        secrets, stock = _secrets(self, party), _stock(self, party)
        matrix = rows(*sizes.span(message.chunk))
        _note_masked(self, party, message.chunk, matrix)
        opened = opening(matrix, stock.mask(message.chunk, matrix.shape[1]), sizes.small)
        randomness = party.key_randomness("product seal")
        fresh = randomness.bytes(KEY_BYTES)
        body = seal(
            fresh, sizes.small.pack(opened), _place(self, party, message.chunk, party.name, _EVERYONE), randomness
        )
        keys = {
            name: seal(secret, fresh, _place(self, party, message.chunk, party.name, name), randomness)
            for name, secret in secrets.items()
        }
        return ProductOpening(body=body, keys=keys)

    def multiply(self, party: Party, message: ProductInbox, rows: Rows) -> Mail:
        """Multiply the chunk with every partner's masked rows; seal the masked wrap bits for the partner."""
        chunk, sizes = message.chunk, self.sizes
        advance(party, self.label, 3 + 2 * chunk)
        secrets, stock = _secrets(self, party), _stock(self, party)
        matrix = rows(*sizes.span(chunk))
        if party.recall(f"{self.label} masked {chunk}", _Masked).digest != _digest(matrix):
            raise _changed(party)
        mask = stock.mask(chunk, matrix.shape[1])
        boxes = {}
        for name, secret in secrets.items():
            opened = _opened(self, party, message, name, secret)
            total, wraps, shape = _multiplied(self, party, name, (matrix, mask, opened), message)
            _add_up(self, party, name, chunk, total)
            if sizes.lifted:
                party.remember(f"{self.label} wraps {name} {chunk}", _Wraps(bits=np.packbits(wraps).tobytes()))
                text = sizes.carry.pack(masked_wraps(wraps, stock.wrap(name, chunk, shape), sizes))
                place = _place(self, party, chunk, party.name, name, "wraps")
                boxes[name] = seal(secret, text, place, party.key_randomness(f"product wraps {name}"))
        return Mail(boxes=boxes)

    def shares(self, party: Party, message: ProductClose) -> dict[str, NDArray[Any]]:
        """Return, by partner, this party's share of the product: left columns by right columns, or the selected cells.

        A share is uniform to the partner but not to the dealer: it must be masked by `hide` before it is sent.
        """
        sizes = self.sizes
        advance(party, self.label, 2 + 2 * sizes.chunks)
        shares = {}
        for name, secret in _secrets(self, party).items():
            total = party.recall(f"{self.label} total {name}", _Share).total
            both = _both(self, party, message, name, secret) if sizes.lifted else np.zeros_like(total)
            share = lifted_share(total, both, sizes)
            shares[name] = unshifted(share, sizes) if (party.name, name) in self.pairs else share
        return shares

    def check_unchanged(self, party: Party, sums: NDArray[np.int64]) -> None:
        """Refuse unless these column sums, from a later read of the rows, equal those of the masked matrix."""
        if not np.array_equal(party.recall(f"{self.label} sums", _Sums).sums, sums):
            raise _changed(party)

    def hide(self, party: Party, partner: str, values: NDArray[np.int64], ring: Ring) -> NDArray[Any]:
        """Return the values to be opened, masked by the secret that this party shares with its partner."""
        secret = derive(_secrets(self, party)[partner], f"{self.label} opening")
        left, right = self.pair(party.name, partner)
        mask = expand(secret, context(party.study, left, right), values.size, ring).reshape(values.shape)
        return (ring.add if party.name == left else ring.subtract)(ring.reduce(values), mask)


def _note_masked(product: SecureProduct, party: Party, chunk: int, matrix: NDArray[Any]) -> None:
    """Store digests that show later whether the rows are still those that were masked.

    If the rows changed, the product would contain the difference times the partner's mask, and the dealer knows that
    mask.
    """
    sums = matrix.sum(axis=0, dtype=np.int64)
    before = party.recall(f"{product.label} sums", _Sums).sums if chunk else np.zeros_like(sums)
    party.remember(f"{product.label} sums", _Sums(sums=before + sums))
    party.remember(f"{product.label} masked {chunk}", _Masked(digest=_digest(matrix)))


def _digest(matrix: NDArray[Any]) -> bytes:
    heading = context("product rows", str(matrix.dtype), *matrix.shape)
    return hashlib.sha256(heading + np.ascontiguousarray(matrix).tobytes()).digest()


def _changed(party: Party) -> RefusedError:
    return RefusedError(
        f"the rows of {party.name} changed while they were multiplied; nothing was opened. Keep the source unchanged "
        "during a run, and set a new edition"
    )


def _opened(product: SecureProduct, party: Party, message: ProductInbox, name: str, secret: bytes) -> NDArray[Any]:
    """Return a partner's masked rows; check the row sums if the study requires it."""
    sizes, groups = product.sizes, product.groups[name]
    start, stop = sizes.span(message.chunk)
    fresh = unseal(secret, _entry(message.keys, name), _place(product, party, message.chunk, name, party.name))
    packed = unseal(fresh, _entry(message.bodies, name), _place(product, party, message.chunk, name, _EVERYONE))
    opened = sizes.small.unpack(packed, (stop - start) * sum(groups)).reshape(stop - start, sum(groups))
    if product.checked and _entry(message.sums, name) != row_sums(opened, groups, sizes.small, complement=True):
        raise RefusedError(f"the rows that {name} sent do not sum to one in every group: nothing was opened")
    return opened


def _multiplied(
    product: SecureProduct,
    party: Party,
    name: str,
    matrices: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    message: ProductInbox,
) -> tuple[NDArray[np.uint64], NDArray[np.bool_], tuple[int, int]]:
    """Return this party's folded share of a chunk's product with one partner, its wrap bits, and the shape."""
    sizes, chunk, pair = product.sizes, message.chunk, product.pair(party.name, name)
    matrix, mask, opened = matrices
    shape, cells = product.shape(pair), product.cells.get(pair)
    if pair[0] == party.name:
        half = _stock(product, party).half(name, chunk, shape)
        return *folded(left_blocks(matrix, opened, half, sizes, cells), sizes), shape
    counted = (sizes.blocks(chunk), *shape)
    half = sizes.small.unpack(_entry(message.halves, name), int(np.prod(counted))).reshape(counted)
    return *folded(right_blocks(opened, mask, half, sizes, cells), sizes), shape


def _add_up(product: SecureProduct, party: Party, name: str, chunk: int, total: NDArray[np.uint64]) -> None:
    place = f"{product.label} total {name}"
    before = party.recall(place, _Share).total if chunk else np.zeros_like(total)
    party.remember(place, _Share(total=before + total))


def _both(product: SecureProduct, party: Party, message: ProductClose, name: str, secret: bytes) -> NDArray[np.uint64]:
    """Return this party's share of the number of blocks in which both wrap bits were set."""
    sizes, stock = product.sizes, _stock(product, party)
    pair = product.pair(party.name, name)
    left, shape = pair[0] == party.name, product.shape(pair)
    boxes = message.boxes.get(name, [])
    if len(boxes) != sizes.chunks:
        raise RefusedError(f"{name} sent {len(boxes)} boxes of wrap bits; expected {sizes.chunks}")
    if left:
        total = stock.carry(name, shape).astype(np.uint64)
    else:
        dealt = sizes.carry.unpack(_entry(message.carries, name), int(np.prod(shape)))
        total = dealt.reshape(shape).astype(np.uint64)
    for chunk, box in enumerate(boxes):
        counted = (sizes.blocks(chunk), *shape)
        count = int(np.prod(counted))
        text = unseal(secret, box, _place(product, party, chunk, name, party.name, "wraps"))
        theirs = sizes.carry.unpack(text, count).reshape(counted)
        if left:
            kept = np.frombuffer(party.recall(f"{product.label} wraps {name} {chunk}", _Wraps).bits, dtype=np.uint8)
            total = total + both_wrapped(np.unpackbits(kept, count=count).reshape(counted), theirs)
        else:
            total = total + both_wrapped(theirs, stock.wrap(name, chunk, shape))
    return total


def _secrets(product: SecureProduct, party: Party) -> dict[str, bytes]:
    """Return the secret with every partner, from the keys that came with the first chunk."""
    own = party.recall(f"{product.label} own", _Own)
    keys = party.recall(f"{product.label} met", _Met).keys
    return agree_with(party, own.pair.private, {name: keys[name] for name in partners_of(product.pairs, party.name)})


def _stock(product: SecureProduct, party: Party) -> Stock:
    seed = party.recall(f"{product.label} own", _Own).seed
    return Stock(seed=seed, study=party.study, sizes=product.sizes, label=product.label)


def _place(product: SecureProduct, party: Party, chunk: int, sender: str, receiver: str, what: str = "rows") -> Place:
    return Place(study=party.study, label=f"{product.label} {what} {chunk}", sender=sender, receiver=receiver)


def _entry(entries: Mapping[str, bytes], name: str) -> bytes:
    if name not in entries:
        raise RefusedError(f"the message has no entry for {name}")
    return entries[name]
