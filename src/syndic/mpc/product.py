"""Secure product: the parties of a vertical study get shares of X_p'X_q for chosen pairs of parties.

*Unit*: a product hides matrices; noise protects people. Both parties of a pair add a share of the noise to their share
of the product, under one more mask, and only the noisy sum is ever opened.
*Rounds*: keys, then for every chunk of rows the masked matrices, their proofs and the products, then the opening.

*Who learns what.* The coordinator deals the triples (see `syndic.mpc.triple`) and carries the openings, which are
sealed: it learns the noisy products only. It must not see the parties' shares either, since it knows half of the
triples; therefore the partners mask them. One or several parties learn nothing about another party's matrix except the
noisy products. The coordinator and one party together could read the matrices of that party's partners.
*Proven* products are of one-hot rows, or of rows of a bounded length: every party proves it of its masked rows, and
its partners check that before anything opens (`syndic.mpc.proof`, `syndic.mpc.length`). Then parties without the
coordinator, or the coordinator alone, may deviate: they learn only the noisy products, plus shifts that they chose;
they can stop or falsify a run. A party that lies in its own product can still show the coordinator, who only looks, a
partner's records. Products that are not proven are *semi-honest*: a party that enters a large number in a row reads its
partner's. Without identities in the study, a coordinator that forges public keys can read the rows. Rows must be the
same every time they are read: a party compares them with those that it masked. *Not supported* by a dealer: products of
three matrices. They need a triple for every row and pair of columns, not one for a whole table: n times more traffic.
Four servers multiply them (`syndic.mpc.servers`).
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import InputError, RefusedError
from syndic.kernel import Nothing, Party, SubProtocol, step
from syndic.mpc.key import KEY_BYTES, PublicKey, agree_with, context, derive, key_pair
from syndic.mpc.length import WITNESSES, LengthProof
from syndic.mpc.mask import expand
from syndic.mpc.order import advance, finished
from syndic.mpc.product_messages import (
    UNPROVEN,
    KeptDigest,
    KeptPair,
    KeptShare,
    KeptSums,
    Pair,
    ProductChallenge,
    ProductCheck,
    ProductInbox,
    ProductOpening,
    ProductProof,
    ProductStart,
    ProductTest,
    ProductTurn,
    Rows,
    changed,
    check_seed,
    entry_of,
    note_masked,
    partners_of,
    same_rows,
)
from syndic.mpc.proof import OneHotProof, Proof
from syndic.mpc.ring import Integers, Residues
from syndic.mpc.seal import Place, PublicKeys, seal, unseal
from syndic.mpc.triple import ProductSizes, Stock, left_share, opening, right_share

_EVERYONE: Final = "every partner"


class SecureProduct(SubProtocol):
    """One secure product: which matrices are multiplied. Public; each party computes it from its own study.

    `pairs` are the pairs of parties (left, right) whose matrices are multiplied. `groups` is the number of columns in
    each group of a party's matrix. `cells` selects cells of a pair's product, if not all are needed. With `proven`,
    rows have at most a single one in each group, or squares that add up to at most the party's number in `lengths`, and
    partners check it. With `weights`, one for each row, it is the weighted sum over rows, weights being at most
    `sizes.entry`. `label` distinguishes the products of a study.

    A method defines the steps `product_masked`, `product_multiplied`, if proven `product_proved` and with `lengths`
    `product_tested`, all `reveals="sealed"`, which call `mask`, `multiply`, `prove` and `test` with a function that
    returns rows of the party's matrix. A last step, `reveals="masked"`, calls `shares`, adds noise through
    `party.contribute` and masks the result: in a masked sum of all parties, or between two by `hide`. `coordinate`
    calls `deal_products` (`syndic.mpc.dealer`), then this step. `syndic.methods.product_steps` has these steps. A
    method that learns only during the run which matrices to multiply creates the product from its plan and stored
    messages, and defines its own step `product_keys` that calls the one here.
    """

    label: str
    sizes: ProductSizes
    pairs: tuple[Pair, ...]
    groups: Mapping[str, tuple[int, ...]]
    proven: bool = False
    lengths: Mapping[str, int] = {}
    cells: Mapping[Pair, NDArray[np.int64]] = {}
    weights: tuple[int, ...] = ()

    def weighted(self, rows: NDArray[Any], chunk: int) -> NDArray[Any]:
        """Return the rows of a chunk of the left party, or a share of them, times their weights."""
        if not self.weights:
            return rows
        weights = np.array(self.weights[slice(*self.sizes.span(chunk))], dtype=np.int64)
        return self.sizes.ring.reduce(rows.astype(np.int64) * weights[:, None])

    @property
    def provers(self) -> tuple[str, ...]:
        """The parties whose rows are multiplied."""
        return tuple(dict.fromkeys(name for pair in self.pairs for name in pair))

    @property
    def rounds(self) -> tuple[str, ...]:
        """The names of the steps of one product, in order; the method defines all but the first."""
        tested, proved = ("product_tested",) if self.lengths else (), ("product_proved",) if self.proven else ()
        return ("product_keys", "product_masked", *tested, *proved, "product_multiplied")

    def proof(self, party: str, chunk: int) -> Proof:
        """Return the proof of one party's rows of a chunk."""
        (start, stop), field = self.sizes.span(chunk), self.sizes.ring
        if not isinstance(field, Residues):
            raise InputError("rows are proven in a prime field only")
        if self.lengths:
            return LengthProof(field, sum(self.groups[party]), self.lengths[party], stop - start)
        return OneHotProof(field, self.groups[party], stop - start)

    def columns(self, party: str) -> int:
        """Return how many columns of a party are masked; those that only complete a length come last."""
        return sum(self.groups[party]) + (WITNESSES if self.lengths else 0)

    def shape(self, pair: Pair) -> tuple[int, int]:
        """Return the shape of a pair's share of the product: the full product, or the selected cells in one column."""
        if pair in self.cells:
            return len(self.cells[pair]), 1
        left, right = pair
        return sum(self.groups[left]), sum(self.groups[right])

    def peers(self, name: str) -> tuple[str, ...]:
        """Return whose keys a party needs."""
        return partners_of(self.pairs, name)

    def place(self, party: Party, chunk: int, sender: str, receiver: str, what: str) -> Place:
        """Return where a box belongs in this product: it opens nowhere else."""
        return Place(study=party.study, label=f"{self.label} {what} {chunk}", sender=sender, receiver=receiver)

    def pair(self, one: str, other: str) -> Pair:
        """Return two partners, the left one first."""
        return (one, other) if (one, other) in self.pairs else (other, one)

    @step(reveals="public")
    def product_keys(self, party: Party, message: ProductStart) -> PublicKey:
        """Store the dealer's seed, create a key pair and publish the public key."""
        # a second seed would put two masks on the same product, and the dealer could separate them
        advance(party, self.label, 1)
        check_seed(message.seed)
        pair = key_pair(party.key_randomness("product keys"))
        party.remember(f"{self.label} own", KeptPair(seed=message.seed, pair=pair))
        return PublicKey(public=pair.public)

    def mask(self, party: Party, message: ProductTurn, rows: Rows) -> ProductOpening:
        """Mask the rows of one chunk and seal them for the partners."""
        sizes, matrix = self.sizes, self._to_mask(party, message, rows)
        sent = self.proof(party.name, message.chunk).completed(matrix) if self.proven else matrix
        opened = opening(sent, _stock(self, party).mask(message.chunk, self.columns(party.name)), sizes.ring)
        body, keys = _sealed(self, party, message.chunk, sizes.ring.pack(opened), "rows")
        return ProductOpening(body=body, keys=keys)

    def _to_mask(self, party: Party, message: ProductTurn, rows: Rows) -> NDArray[Any]:
        """Return the rows of a chunk that is next; store the keys that come with it, and digests of the rows."""
        chunk = message.chunk
        self._take_turn(party, chunk, "product_masked")
        if party.name not in self.provers:
            raise RefusedError(f"no rows of {party.name} are multiplied")
        if message.keys.keys() != set(self.peers(party.name)):
            raise RefusedError("the message does not have one public key for each of this party's partners and servers")
        if chunk == 0:
            party.remember(f"{self.label} met", PublicKeys(keys=message.keys))
        matrix = rows(*self.sizes.span(chunk))
        note_masked(self.label, party, chunk, matrix)
        return matrix

    def test(self, party: Party, message: ProductChallenge, rows: Rows) -> ProductProof:
        """Share what shows that no number in the masked rows of one chunk wraps; seal one share for the partners."""
        proof, matrix = self._challenged(party, message, rows, "product_tested")
        bits = proof.tested(matrix, message.seed)
        noted = KeptDigest(data=np.packbits(bits.astype(np.uint8)).tobytes())
        party.remember(f"{self.label} tested {message.chunk}", noted)
        return _in_shares(self, party, message, proof.field.reduce(bits), "test")

    def prove(self, party: Party, message: ProductChallenge, rows: Rows) -> ProductProof:
        """Prove what the masked rows of one chunk are; seal one share of the proof for the partners."""
        proof, matrix = self._challenged(party, message, rows, "product_proved")
        noted = party.recall(f"{self.label} tested {message.chunk}", KeptDigest).data if proof.tests else b""
        bits = np.unpackbits(np.frombuffer(noted, dtype=np.uint8), count=proof.tests)
        fresh = party.key_randomness("product proof masks").bytes(KEY_BYTES)
        made = proof.prove(proof.joined(matrix, bits), message.seed, fresh)
        return _in_shares(self, party, message, made, "proof")

    def _challenged(self, party: Party, asked: ProductChallenge, rows: Rows, what: str) -> tuple[Proof, NDArray[Any]]:
        """Return the proof of a chunk and its rows; refuse a second challenge: it would show what one hides."""
        self._take_turn(party, asked.chunk, what)
        check_seed(asked.seed)
        proof = self.proof(party.name, asked.chunk)
        return proof, proof.completed(same_rows(self.label, party, asked.chunk, rows(*self.sizes.span(asked.chunk))))

    def multiply(self, party: Party, message: ProductInbox, rows: Rows) -> Nothing:
        """Check the proofs of the chunk, and multiply it with every partner's masked rows."""
        chunk = message.chunk
        self._take_turn(party, chunk, "product_multiplied")
        matrix = same_rows(self.label, party, chunk, rows(*self.sizes.span(chunk)))
        # a party that is left of all its partners needs its mask no more
        needed = any(right == party.name for _, right in self.pairs)
        mask = _stock(self, party).mask(chunk, self.columns(party.name)) if needed else matrix
        for name, secret in _secrets(self, party).items():
            opened = _opened(self, party, message, name, secret)
            if self.proven:
                _check_proof(self, party, message, name, secret, opened)
            share = _multiplied(self, party, name, (matrix, mask, opened), message)
            total = self.sizes.ring.add(_total(self, party, name), share) if chunk else share
            party.remember(f"{self.label} total {name}", KeptShare(total=total.astype(np.uint64)))
        return Nothing()

    def shares(self, party: Party) -> dict[str, NDArray[Any]]:
        """Return, by partner, this party's share of the product: left columns by right columns, or the selected cells.

        A share is uniform to the partner but not to the dealer: it must be masked before it is sent.
        """
        self._advance(party, self.sizes.chunks, "product_masked")
        return {name: _total(self, party, name) for name in partners_of(self.pairs, party.name)}

    def _take_turn(self, party: Party, chunk: int, what: str) -> None:
        """Refuse a chunk of rows that the study does not have, and a step that is not the next one."""
        if not 0 <= chunk < self.sizes.chunks:
            raise RefusedError(f"this study has {self.sizes.chunks} chunks of rows; there is no chunk {chunk}")
        self._advance(party, chunk, what)

    def finished(self, party: Party) -> bool:
        """Return whether a party has multiplied all chunks."""
        return finished(party, self.label) == 1 + len(self.rounds[1:]) * self.sizes.chunks

    def _advance(self, party: Party, chunk: int, what: str) -> None:
        """Refuse a step that is not the next one: all chunks are masked, proven and multiplied in order, each once."""
        turns = self.rounds[1:]
        advance(party, self.label, 2 + len(turns) * chunk + turns.index(what))

    def check_unchanged(self, party: Party, sums: NDArray[np.int64]) -> None:
        """Refuse unless these column sums, from a later read of the rows, equal those of the masked matrix."""
        if not np.array_equal(party.recall(f"{self.label} sums", KeptSums).sums, sums):
            raise changed(party)

    def hide(self, party: Party, partner: str, values: NDArray[np.int64], ring: Integers) -> NDArray[Any]:
        """Return the values to be opened, masked by the secret that this party shares with its partner."""
        secret = derive(_secrets(self, party)[partner], f"{self.label} opening")
        left, right = self.pair(party.name, partner)
        mask = expand(secret, context(party.study, left, right), values.size, ring).reshape(values.shape)
        return (ring.add if party.name == left else ring.subtract)(ring.reduce(values), mask)


def _in_shares(
    product: SecureProduct, party: Party, asked: ProductChallenge, values: NDArray[Any], what: str
) -> ProductProof:
    """Return a proof or test in shares: a seed for the dealer, the rest sealed for the partners."""
    field, proof = product.sizes.ring, product.proof(party.name, asked.chunk)
    seed = party.key_randomness(f"product {what}").bytes(KEY_BYTES)
    rest = field.subtract(values, proof.drawn(seed, "share", values.size))
    # the dealer's seed goes with the proof: a partner that is told another one must notice
    body, keys = _sealed(product, party, asked.chunk, context(asked.seed) + field.pack(rest), what)
    return ProductProof(seed=seed, body=body, keys=keys)


def _sealed(product: SecureProduct, party: Party, chunk: int, text: bytes, what: str) -> tuple[bytes, dict[str, bytes]]:
    """Return a text sealed once, under a fresh key, and that key sealed for each partner."""
    randomness = party.key_randomness(f"product seal {what}")
    fresh = randomness.bytes(KEY_BYTES)
    body = seal(fresh, text, product.place(party, chunk, party.name, _EVERYONE, what), randomness)
    keys = {
        name: seal(secret, fresh, product.place(party, chunk, party.name, name, what), randomness)
        for name, secret in _secrets(product, party).items()
    }
    return body, keys


def _opened(product: SecureProduct, party: Party, message: ProductInbox, name: str, secret: bytes) -> NDArray[Any]:
    """Return a partner's masked rows."""
    (start, stop), columns = product.sizes.span(message.chunk), product.columns(name)
    sealed = entry_of(message.bodies, name), entry_of(message.keys, name)
    packed = _unsealed(product, party, message.chunk, (name, secret), sealed, "rows")
    return product.sizes.ring.unpack(packed, (stop - start) * columns).reshape(stop - start, columns)


def _unsealed(
    product: SecureProduct,
    party: Party,
    chunk: int,
    sender: tuple[str, bytes],
    sealed: tuple[bytes, bytes],
    what: str,
) -> bytes:
    """Return a text that a partner sealed once for all; `sender` is its name and the secret with it."""
    (name, secret), (body, key) = sender, sealed
    fresh = unseal(secret, key, product.place(party, chunk, name, party.name, what))
    return unseal(fresh, body, product.place(party, chunk, name, _EVERYONE, what))


def _check_proof(
    product: SecureProduct, party: Party, message: ProductInbox, name: str, secret: bytes, opened: NDArray[Any]
) -> None:
    """Refuse unless a partner's rows are proven, by the share here and the dealer's answer."""
    check, proof = entry_of(message.proofs, name), product.proof(name, message.chunk)
    test = entry_of(message.tests, name) if proof.tests else None

    field, unproven = proof.field, RefusedError(UNPROVEN.replace("one-hot", proof.what))

    def share(given: ProductCheck | ProductTest, count: int, what: str) -> NDArray[Any]:
        text = _unsealed(product, party, message.chunk, (name, secret), (given.body, given.key), what)
        if not _same_seed(text, context(given.seed)):
            raise unproven
        return field.unpack(text[len(context(given.seed)) :], count)

    made, point = share(check, proof.length, "proof"), field.unpack(check.point, proof.k.degree)
    bits = share(test, proof.tests, "test") if test else made[:0]
    if not proof.outside(point):
        raise unproven
    values = proof.joined(opened, bits, test.seed if test else b"")
    own = field.add(proof.answer(values, made, check.seed, point), proof.constant(check.seed))
    if not proof.holds(own, field.unpack(check.answer, proof.answer_length)):
        raise unproven


def _same_seed(text: bytes, seed: bytes) -> bool:
    """Return whether a proof is for this challenge; else what the dealer adds to the check could depend on the rows."""
    return text.startswith(seed)


def _multiplied(
    product: SecureProduct,
    party: Party,
    name: str,
    matrices: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    message: ProductInbox,
) -> NDArray[Any]:
    """Return this party's share of a chunk's product with one partner."""
    sizes, pair = product.sizes, product.pair(party.name, name)
    own, others = (sum(product.groups[who]) for who in (party.name, name))
    matrix, mask, opened = matrices[0], matrices[1][:, :own], matrices[2][:, :others]
    shape, cells = product.shape(pair), product.cells.get(pair)
    if pair[0] == party.name:
        half = _stock(product, party).half(name, message.chunk, shape)
        return left_share(product.weighted(matrix, message.chunk), opened, half, sizes, cells)
    half = sizes.ring.unpack(entry_of(message.halves, name), int(np.prod(shape))).reshape(shape)
    return right_share(product.weighted(opened, message.chunk), mask, half, sizes, cells)


def _total(product: SecureProduct, party: Party, name: str) -> NDArray[Any]:
    """Return this party's share of the product of all chunks so far with one partner."""
    return party.recall(f"{product.label} total {name}", KeptShare).total.astype(product.sizes.ring.dtype)


def _secrets(product: SecureProduct, party: Party) -> dict[str, bytes]:
    """Return the secret with every partner, from the keys that came with the first chunk."""
    own = party.recall(f"{product.label} own", KeptPair)
    keys = party.recall(f"{product.label} met", PublicKeys).keys
    return agree_with(party, own.pair.private, {name: keys[name] for name in partners_of(product.pairs, party.name)})


def _stock(product: SecureProduct, party: Party) -> Stock:
    seed = party.recall(f"{product.label} own", KeptPair).seed
    return Stock(seed=seed, study=party.study, party=party.name, sizes=product.sizes, label=product.label)
