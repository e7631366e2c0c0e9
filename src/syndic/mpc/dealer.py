"""The coordinator's side of a secure product: it deals triples and carries sealed openings."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from syndic.kernel import Session
from syndic.mpc.key import KEY_BYTES
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import (
    ProductClose,
    ProductInbox,
    ProductOpening,
    ProductStart,
    ProductTurn,
    partners_of,
)
from syndic.mpc.seal import Mail
from syndic.mpc.triple import Stock, both_wrapped, dealt_half, row_sums


class Multiplies(Protocol):
    """A method with the two steps of a secure product that read rows."""

    def product_masked(self, party: Any, message: ProductTurn) -> ProductOpening:
        """Mask the rows of one chunk and seal them for the partners."""
        ...

    def product_multiplied(self, party: Any, message: ProductInbox) -> Mail:
        """Multiply the chunk with every partner's masked rows; seal the masked wrap bits for the partner."""
        ...


def deal_products(session: Session, uses: Multiplies, product: SecureProduct) -> dict[str, ProductClose]:
    """Deal the triples and carry the sealed openings; return what each party needs to open its shares.

    Raises:
        PartyError: if a party refuses or does not answer. Nothing was charged for this product yet.
    """
    sizes, pairs = product.sizes, product.pairs
    names = tuple(dict.fromkeys(name for pair in pairs for name in pair))
    seeds = {name: session.randomness.bytes(KEY_BYTES) for name in names}
    stocks = {
        name: Stock(seed=seed, study=session.study, sizes=sizes, label=product.label) for name, seed in seeds.items()
    }
    keys = session.ask(product.product_keys, {name: ProductStart(seed=seed) for name, seed in seeds.items()})
    partners = {name: partners_of(pairs, name) for name in names}
    carried: dict[tuple[str, str], NDArray[np.uint64]] = {}
    boxes: dict[str, dict[str, list[bytes]]] = {name: {other: [] for other in partners[name]} for name in names}
    for chunk in range(sizes.chunks):
        met = {name: {other: keys[other].public for other in partners[name]} for name in names}
        turns = {name: ProductTurn(chunk=chunk, keys=met[name]) for name in names}
        openings = session.ask(uses.product_masked, turns)
        inboxes = dict(_inboxes(session, product, stocks, openings, chunk, carried))
        for sender, mail in session.ask(uses.product_multiplied, inboxes).items():
            for receiver, box in mail.boxes.items():
                boxes[receiver][sender].append(box)
    closing: dict[str, dict[str, bytes]] = {name: {} for name in names}
    for (left, right), both in carried.items():
        rest = sizes.carry.subtract(sizes.carry.reduce(both), stocks[left].carry(right, both.shape))
        closing[right][left] = sizes.carry.pack(rest)
    return {name: ProductClose(carries=closing[name], boxes=boxes[name]) for name in names}


def _inboxes(
    session: Session,
    product: SecureProduct,
    stocks: Mapping[str, Stock],
    openings: Mapping[str, ProductOpening],
    chunk: int,
    carried: dict[tuple[str, str], NDArray[np.uint64]],
) -> Iterator[tuple[str, ProductInbox]]:
    """Deal one chunk: the right parties' halves, and row sums for checking; add to `carried`."""
    sizes, pairs, groups = product.sizes, product.pairs, product.groups
    masks = {name: stock.mask(chunk, sum(groups[name])) for name, stock in stocks.items()}
    checked = stocks if product.checked else ()
    sums = {name: row_sums(masks[name], groups[name], sizes.small) for name in checked}
    halves: dict[str, dict[str, bytes]] = {name: {} for name in stocks}
    for done, (left, right) in enumerate(pairs):
        session.progress("deal", chunk * len(pairs) + done, sizes.chunks * len(pairs))
        shape, cells = product.shape((left, right)), product.cells.get((left, right))
        half = stocks[left].half(right, chunk, shape)
        halves[right][left] = sizes.small.pack(dealt_half(masks[left], masks[right], half, sizes, cells))
        if sizes.lifted:
            both = both_wrapped(stocks[left].wrap(right, chunk, shape), stocks[right].wrap(left, chunk, shape))
            carried[left, right] = carried.get((left, right), np.zeros(shape, dtype=np.uint64)) + both
    for name in stocks:
        others = partners_of(pairs, name)
        yield (
            name,
            ProductInbox(
                chunk=chunk,
                bodies={other: openings[other].body for other in others},
                keys={other: openings[other].keys[name] for other in others},
                halves=halves[name],
                sums={other: sums[other] for other in others if other in sums},
            ),
        )
