"""The coordinator's side of a secure product: it deals triples and carries sealed openings."""

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from syndic.errors import PartyError
from syndic.kernel import Message, Nothing, Session, encode
from syndic.mpc.key import KEY_BYTES, context, derive
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import (
    ProductChallenge,
    ProductCheck,
    ProductInbox,
    ProductOpening,
    ProductProof,
    ProductStart,
    ProductTest,
    ProductTurn,
    Served,
    ServerTurn,
    partners_of,
)
from syndic.mpc.server_checks import digest_of
from syndic.mpc.servers import VERIFIERS, ServedProduct
from syndic.mpc.triple import Stock, dealt_half

Sealed = Mapping[str, Mapping[str, bytes]]
"""Boxes, by sender and receiver."""


class Multiplies(Protocol):
    """A method with the two steps of a secure product that read rows."""

    def product_masked(self, party: Any, message: ProductTurn) -> ProductOpening:
        """Mask the rows of one chunk and seal them for the partners."""
        ...

    def product_multiplied(self, party: Any, message: ProductInbox) -> Nothing:
        """Check the proofs of the chunk, if any, and multiply it with every partner's masked rows."""
        ...


@runtime_checkable
class Proves(Multiplies, Protocol):
    """A method whose parties also prove what their rows are."""

    def product_proved(self, party: Any, message: ProductChallenge) -> ProductProof:
        """Prove what the masked rows of one chunk are."""
        ...


@runtime_checkable
class Tests(Proves, Protocol):
    """A method whose parties prove lengths, and first that no number wraps."""

    def product_tested(self, party: Any, message: ProductChallenge) -> ProductProof:
        """Share what shows that no number in the masked rows of one chunk wraps."""
        ...


def deal_products(session: Session, uses: Multiplies, product: SecureProduct) -> None:
    """Deal the triples, carry the sealed openings and answer the proofs; parties then have shares of all products.

    Raises:
        PartyError: if a party refuses or does not answer. Nothing was charged for this product yet.
    """
    if isinstance(product, ServedProduct):
        _serve(session, uses, product)
        return
    sizes, pairs, randomness = product.sizes, product.pairs, session.randomness
    names = product.provers
    # by purpose: a coordinator that was put back and deals to others must not give a party the secret of its challenges
    root = randomness.bytes(KEY_BYTES)
    seeds = {name: derive(root, "dealer seed", product.label, name) for name in names}
    secret = derive(root, "proof secret", product.label)
    stocks = {
        name: Stock(seed=seed, study=session.study, party=name, sizes=sizes, label=product.label)
        for name, seed in seeds.items()
    }
    keys = session.ask(product.product_keys, {name: ProductStart(seed=seed) for name, seed in seeds.items()})
    met = {name: {other: keys[other].public for other in partners_of(pairs, name)} for name in names}
    for chunk in range(sizes.chunks):
        turns = {name: ProductTurn(chunk=chunk, keys=met[name]) for name in names}
        openings = session.ask(uses.product_masked, turns)
        masks = {name: stock.mask(chunk, product.columns(name)) for name, stock in stocks.items()}
        checks: dict[str, dict[str, ProductCheck]] = {name: {} for name in names}
        tests: dict[str, dict[str, ProductTest]] = {name: {} for name in names}
        if product.proven and isinstance(uses, Proves):
            checks, tests = _checks(session, uses, product, secret, chunk, openings, masks)
        halves = _halves(session, product, stocks, masks, chunk)
        inboxes = {
            name: ProductInbox(
                chunk=chunk,
                bodies={other: openings[other].body for other in met[name]},
                keys={other: _sealed_for(name, other, openings[other].keys) for other in met[name]},
                halves=halves[name],
                proofs=checks[name],
                tests=tests[name],
            )
            for name in names
        }
        session.ask(uses.product_multiplied, inboxes)


def _serve(session: Session, uses: Multiplies, product: ServedProduct) -> None:
    """Carry what parties and servers seal for each other."""
    assert isinstance(uses, Proves)  # noqa: S101 (rows that servers multiply are proven)
    provers, verifiers, chunks = product.provers, product.servers[:VERIFIERS], product.sizes.chunks
    start = ProductStart(seed=bytes(KEY_BYTES))  # there is no dealer
    known = session.ask(product.product_keys, dict.fromkeys((*provers, *product.servers), start))
    keys = {name: key.public for name, key in known.items()}
    met = {name: {other: keys[other] for other in product.peers(name)} for name in provers}
    served = partial(_served, session, product, keys)
    for chunk in range(chunks):
        session.progress("serve", chunk, chunks)
        turns = {name: ProductTurn(chunk=chunk, keys=met[name]) for name in provers}
        rows = {name: one.keys for name, one in session.ask(uses.product_masked, turns).items()}
        asked = served("challenge", verifiers, chunk, digests=_digests(keys, rows))
        seeds = {name: b"".join(_sealed_for(name, one, asked[one].seeds) for one in verifiers) for name in provers}
        challenges = {name: ProductChallenge(chunk=chunk, seed=seed) for name, seed in seeds.items()}
        proofs = {name: one.keys for name, one in session.ask(uses.product_proved, challenges).items()}
        queries = served("query", verifiers, chunk, digests=_digests(keys, proofs))
        echoes = served("echo", product.servers, chunk, boxes=_boxes(queries))
        answers = served("answer", product.servers, chunk, rows=rows, proofs=proofs, boxes=_boxes(echoes))
        served("check", verifiers, chunk, boxes=_boxes(answers))
    shares = _boxes(served("share", product.servers, chunks))
    inboxes = {}
    for name in provers:
        halves = {server: _sealed_for(name, server, boxes) for server, boxes in shares.items()}
        inboxes[name] = ProductInbox(chunk=chunks, bodies={}, keys={}, halves=halves, proofs={})
    session.ask(uses.product_multiplied, inboxes)


def _served(
    session: Session,
    product: ServedProduct,
    keys: dict[str, bytes],
    stage: str,
    names: tuple[str, ...],
    chunk: int,
    *,
    digests: Mapping[str, dict[str, bytes]] = {},
    **sealed: Sealed,
) -> dict[str, Served]:
    """Ask servers for one stage of their work; each gets what was sealed for it."""
    turns = {}
    for name in names:
        boxes = {
            what: {sender: _sealed_for(name, sender, one) for sender, one in sealed.get(what, {}).items()}
            for what in ("rows", "proofs", "boxes")
        }
        turns[name] = ServerTurn(chunk=chunk, stage=stage, keys=keys, digests=dict(digests), **boxes)
    return session.ask(product.product_served, turns)


def _digests(keys: Mapping[str, bytes], replies: Sealed) -> dict[str, dict[str, bytes]]:
    return {
        name: {server: digest_of(keys[name], box) for server, box in boxes.items()} for name, boxes in replies.items()
    }


def _boxes(replies: Mapping[str, Served]) -> Sealed:
    return {name: one.boxes for name, one in replies.items()}


def _halves(
    session: Session,
    product: SecureProduct,
    stocks: Mapping[str, Stock],
    masks: Mapping[str, NDArray[Any]],
    chunk: int,
) -> dict[str, dict[str, bytes]]:
    """Return the halves of a chunk's triples that the right parties get."""
    ring, pairs, chunks = product.sizes.ring, product.pairs, product.sizes.chunks
    halves: dict[str, dict[str, bytes]] = {name: {} for name in stocks}
    for done, (left, right) in enumerate(pairs):
        session.progress("deal", chunk * len(pairs) + done, chunks * len(pairs))
        half = stocks[left].half(right, chunk, product.shape((left, right)))
        one, other = (masks[name][:, : sum(product.groups[name])] for name in (left, right))
        dealt = dealt_half(product.weighted(one, chunk), other, half, ring, product.cells.get((left, right)))
        halves[right][left] = ring.pack(dealt)
    return halves


def _checks(
    session: Session,
    uses: Proves,
    product: SecureProduct,
    secret: bytes,
    chunk: int,
    openings: Mapping[str, ProductOpening],
    masks: Mapping[str, NDArray[Any]],
) -> tuple[dict[str, dict[str, ProductCheck]], dict[str, dict[str, ProductTest]]]:
    """Let every party prove its rows of a chunk; return what each partner needs to check that.

    Challenges follow from the replies they come after. A coordinator whose journal went back never gives the same one
    for another reply, and one that resumes gives the same one for the same reply: two would show more than one does.
    """
    places = {name: context(session.study, product.label, chunk, name) for name in masks}
    heard = {name: [_digest(openings[name])] for name in masks}

    def asked(step: Any, what: str) -> tuple[dict[str, bytes], dict[str, ProductProof]]:
        seeds = {name: derive(secret, f"{what} seed", place, *heard[name]) for name, place in places.items()}
        replies = session.ask(step, {name: ProductChallenge(chunk=chunk, seed=seed) for name, seed in seeds.items()})
        for name, reply in replies.items():
            if len(reply.seed) != KEY_BYTES:
                raise PartyError(f"the {what} of {name} has no seed of {KEY_BYTES} bytes: find out why")
            heard[name].append(_digest(reply))
        return seeds, replies

    asked_first, tested = (
        asked(uses.product_tested, "test") if isinstance(uses, Tests) and product.lengths else ({}, {})
    )
    seeds, proofs = asked(uses.product_proved, "proof")
    checks: dict[str, dict[str, ProductCheck]] = {name: {} for name in masks}
    tests: dict[str, dict[str, ProductTest]] = {name: {} for name in masks}
    for name, sent in proofs.items():
        proof = product.proof(name, chunk)
        point = proof.point(derive(secret, "proof point", places[name], *heard[name]))
        bits = proof.drawn(tested[name].seed, "share", proof.tests) if tested else masks[name][:0]
        values = proof.joined(masks[name], bits, asked_first.get(name, b""))
        answer = proof.answer(values, proof.drawn(sent.seed, "share", proof.length), seeds[name], point)
        for other in partners_of(product.pairs, name):
            if tested:
                key = _sealed_for(other, name, tested[name].keys)
                tests[other][name] = ProductTest(seed=asked_first[name], body=tested[name].body, key=key)
            checks[other][name] = ProductCheck(
                seed=seeds[name],
                point=proof.field.pack(point),
                body=sent.body,
                key=_sealed_for(other, name, sent.keys),
                answer=proof.field.pack(answer),
            )
    return checks, tests


def _sealed_for(receiver: str, sender: str, boxes: Mapping[str, bytes]) -> bytes:
    """Return what a party or server has for another in its reply."""
    if receiver not in boxes:
        raise PartyError(f"{sender} sealed nothing for {receiver}: find out why before you run the study again")
    return boxes[receiver]


def _digest(reply: Message) -> bytes:
    return hashlib.sha256(encode(reply)).digest()
