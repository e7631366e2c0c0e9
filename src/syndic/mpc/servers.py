"""Secure products by three or four of the parties, the servers, without a dealer: only two together can read rows.

*Algebra.* A party draws a uniform X(1). Server i = 1, .., m gets X(i) = X + i (X(1) - X), in a prime field: each is
uniform by itself, two give X away. Server i multiplies what it has of two parties, P(i) = X(i)'Y(i), of degree 2 in i.
Its value at 0 is the sum of all servers' terms L(i) P(i), where L = 3, -3, 1 for three servers, and 4, -6, 4, -1 for
four. Four also give values of degree 3: sums over rows of x y z, one column of each of three parties. A server adds the
level of a column that is not sent, 1 less its shares of the others. It gives its term, less a pad, to the right party,
and the pad's seed to the left one. So both have shares of the product, as from a dealer (`syndic.mpc.product`), and
noise, masks and opening are as there; a third party has none. Two parties that add up their shares have the exact sums:
they know the rows of a table of theirs anyway, but must not collude where there is a third party. After Ben-Or,
Goldwasser and Wigderson 1988.

*Proof* that rows are one-hot (`syndic.mpc.proof`). Servers 1 and 2 are verifiers, so that one of them is honest. Each
draws a challenge; the party proves its rows to each, in shares like those of the rows. A verifier then draws a point,
and all servers send it their answers F, H and O for it. They are linear in the shares: it refuses unless all are on a
line whose value at 0 holds. A false row passes with a chance of 2^-60. *Order*: a verifier sees digests of all shares
before its challenge, and of all proofs before its point, which it tells servers in private together with these digests;
a server answers for these only. So whatever the coordinator delivers late or twice was fixed before. *One point*:
servers tell each other which point each verifier asked for before they answer. A verifier has a share itself, so one
answer gives it f at a point; f at two points would give a combination of rows that no mask hides. Digests cover the key
of the sender, since the cipher does not commit to it. The party seals the challenges with its proof: a verifier that
asks for others is refused.

*One line.* Two honest servers always have two points of a line; three may not. Then what opens would be off by a share
that neither party nor lying server knows, and the party could scale it so that a record shows through the noise. Let D
be what takes the third from the line of the others, of the rows, and d of the proof. They answer on a line only if in
every group and g the polynomial in t through d at 0 and v u sum_j r_j D_j at 1..points is 0 at the point, and likewise
h. D is fixed before r, u and v, and d before t. So a D that is not 0, in whatever entry, passes with a chance of at
most (3 + 2 points) / (|K| - p), and so does a d that is not 0: 2^-60, as for a false row.

*Who learns what.* One server, the coordinator and any parties that are no servers (of a product of three, one party),
together, may deviate: they learn the noisy products plus shifts that they know. Let server c lie, with party A. The
honest servers have points of one line, so a matrix X that was proven. What opens is the product less L(c) times that of
the line's values at c, plus what c sends: A knows X(c), c knows the others' Y(c) and Z(c), which are uniform. A
verifier that lies gets F, H and O at one point outside the field: F is uniform by the masks, the others follow. Whether
an honest verifier refuses does not depend on rows: honest answers are on a line or not by what A made, and any other
answer of c is off it.
*What breaks it.* Two servers, even if one only looks and the other lies: the second can publish its shares in a shift.
Without identities in the study a coordinator that forges keys can read all shares.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from math import comb, prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syndic.errors import RefusedError
from syndic.kernel import Nothing, Party, decode, encode, step
from syndic.mpc.extension import DEGREE
from syndic.mpc.key import KEY_BYTES, agree_with, context
from syndic.mpc.limb import joint_product
from syndic.mpc.mask import expand
from syndic.mpc.order import advance, finished
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import (
    UNPROVEN,
    KeptPair,
    KeptShare,
    Pair,
    ProductChallenge,
    ProductInbox,
    ProductOpening,
    ProductProof,
    ProductTurn,
    Rows,
    Served,
    ServerAnswers,
    ServerAsked,
    ServerEcho,
    ServerQueries,
    ServerQuery,
    ServerTurn,
    check_seed,
    entry_of,
    partners_of,
    same_rows,
)
from syndic.mpc.ring import Residues
from syndic.mpc.seal import PublicKeys, seal, unseal
from syndic.mpc.server_checks import digest_of, on_line, same, same_points, seeds_of
from syndic.mpc.triple import wanted

VERIFIERS: Final = 2
Columns = tuple[tuple[str, slice], ...]
"""For a table of more than two parties' columns: which columns of each party's matrix it needs, all but the last."""
_STAGES: Final = ("challenge", "query", "echo", "answer", "check")
STAGES: Final = len(_STAGES)


class ServedProduct(SecureProduct):
    """A proven product that servers compute; the method's steps are those of `SecureProduct`.

    A pair of parties also has shares of tables `beyond` it, of more parties' columns with all levels, after its cells.
    Of a party so many rows are `people`; with `signs` a column has two levels, + and -, and what counts is their
    product. Servers also answer `product_served`; a method that makes its product during the run passes that step on.
    """

    servers: tuple[str, ...] = ()
    beyond: Mapping[Pair, tuple[Columns, ...]] = {}
    people: Mapping[str, int] = {}
    signs: bool = False

    @property
    def rounds(self) -> tuple[str, ...]:
        """The names of the steps of one product, in order."""
        return ("product_keys", "product_masked", "product_served", "product_proved", "product_multiplied")

    @property
    def provers(self) -> tuple[str, ...]:
        """The parties whose rows are multiplied."""
        others = (name for tables in self.beyond.values() for sides in tables for name, _ in sides)
        return tuple(dict.fromkeys((*super().provers, *others)))

    @property
    def field(self) -> Residues:
        """The field of all shares."""
        assert isinstance(self.sizes.ring, Residues)  # noqa: S101 (rows that servers multiply are proven)
        return self.sizes.ring

    def peers(self, name: str) -> tuple[str, ...]:
        """Return whose keys a party needs."""
        return tuple(dict.fromkeys((*partners_of(self.pairs, name), *self.servers)))

    def shape(self, pair: Pair) -> tuple[int, int]:
        """Return the shape of a pair's share: cells of its product, then tables beyond it, in one column."""
        if not (tables := self.beyond.get(pair)):
            return super().shape(pair)
        levels = (prod(1 if self.signs else 1 + part.stop - part.start for _, part in sides) for sides in tables)
        return len(self.cells[pair]) + sum(levels), 1

    def _advance(self, party: Party, chunk: int, what: str) -> None:
        """Refuse a step that is not the next one: chunks are masked and proven in order, and multiplied at the end."""
        last, chunks = what == "product_multiplied", self.sizes.chunks
        to = 2 * chunks + (0 if last else 1) if last or chunk >= chunks else 2 * chunk + (what == "product_proved")
        advance(party, self.label, 2 + to)

    def finished(self, party: Party) -> bool:
        """Return whether a party has multiplied all chunks, and shared as a server."""
        chunks, stages = self.sizes.chunks, len(self._stages(party))
        multiplied = finished(party, self.label) == 2 + 2 * chunks
        shared = finished(party, f"{self.label} server") == 1 + stages * chunks
        return (multiplied or party.name not in self.provers) and (shared or party.name not in self.servers)

    def _stages(self, party: Party) -> tuple[str, ...]:
        return _STAGES if party.name in self.servers[:VERIFIERS] else _STAGES[2:4]

    # A party's side.

    def mask(self, party: Party, message: ProductTurn, rows: Rows) -> ProductOpening:
        """Split the rows of one chunk in shares and seal one for each server."""
        chunk, matrix = message.chunk, self._to_mask(party, message, rows)
        texts = self._split(party, chunk, "rows", self.field.reduce(matrix).ravel())
        return ProductOpening(body=b"", keys=self._sealed(party, chunk, "rows", texts))

    def prove(self, party: Party, message: ProductChallenge, rows: Rows) -> ProductProof:
        """Prove to each verifier that the rows of one chunk are one-hot; seal a share of the proofs for each server."""
        chunk = message.chunk
        self._take_turn(party, chunk, "product_proved")
        matrix = same_rows(self.label, party, chunk, rows(*self.sizes.span(chunk)))
        proof = self.proof(party.name, chunk)
        texts = [message.seed] * len(self.servers)
        for place, seed in enumerate(seeds_of(message.seed)):
            fresh = party.key_randomness(f"product proof {place}").bytes(KEY_BYTES)
            parts = self._split(party, chunk, f"proof {place}", proof.prove(matrix, seed, fresh))
            texts = [text + part for text, part in zip(texts, parts, strict=True)]
        return ProductProof(seed=b"", body=b"", keys=self._sealed(party, chunk, "proof", texts))

    def multiply(self, party: Party, message: ProductInbox, rows: Rows) -> Nothing:
        """Add up this party's shares of the products, as the servers sealed them."""
        del rows
        self._advance(party, message.chunk, "product_multiplied")
        totals: dict[str, NDArray[Any]] = {}
        keys = party.recall(f"{self.label} met", PublicKeys).keys
        for server, secret in _secrets(self, party, keys, self.servers).items():
            place = self.place(party, self.sizes.chunks, server, party.name, "share")
            text = unseal(secret, entry_of(message.halves, server), place)
            for partner in partners_of(self.pairs, party.name):
                part, text = self._part(party, server, partner, text)
                totals[partner] = self.field.add(totals[partner], part) if partner in totals else part
        for partner, total in totals.items():
            party.remember(f"{self.label} total {partner}", KeptShare(total=total.astype(np.uint64)))
        return Nothing()

    def _part(self, party: Party, server: str, partner: str, text: bytes) -> tuple[NDArray[Any], bytes]:
        """Return a server's share of one product for a party, and the rest of what it sealed."""
        pair = self.pair(party.name, partner)
        shape, left = self.shape(pair), pair[0] == party.name
        size = KEY_BYTES if left else self.field.packed_bytes(int(np.prod(shape)))
        if left:
            return self._pad(party, server, pair, text[:size]), text[size:]
        return self.field.unpack(text[:size], int(np.prod(shape))).reshape(shape), text[size:]

    def _pad(self, party: Party, server: str, pair: tuple[str, str], seed: bytes) -> NDArray[Any]:
        check_seed(seed)
        shape = self.shape(pair)
        place = context(self.label, party.study, "pad", server, *pair)
        return expand(seed, place, int(np.prod(shape)), self.field).reshape(shape)

    def _split(self, party: Party, chunk: int, what: str, values: NDArray[Any]) -> list[bytes]:
        """Return the share of each server: a seed for the first, packed numbers for the others."""
        field, seed = self.field, party.key_randomness(f"product share {what}").bytes(KEY_BYTES)
        first = self._drawn(party, party.name, chunk, what, seed, values.size)
        slope = field.subtract(first, values)
        texts, share = [seed], first
        for _ in self.servers[1:]:
            share = field.add(share, slope)
            texts.append(field.pack(share))
        return texts

    def _drawn(self, party: Party, prover: str, chunk: int, what: str, seed: bytes, count: int) -> NDArray[Any]:
        return expand(seed, context(self.label, party.study, prover, "share", what, chunk), count, self.field)

    def _sealed(self, party: Party, chunk: int, what: str, texts: Sequence[bytes]) -> dict[str, bytes]:
        """Return a party's text for each server, sealed."""
        secrets = _secrets(self, party, party.recall(f"{self.label} met", PublicKeys).keys, self.servers)
        return self._boxes(party, secrets, chunk, what, dict(zip(self.servers, texts, strict=True)))

    def _boxes(
        self, party: Party, secrets: Mapping[str, bytes], chunk: int, what: str, texts: Mapping[str, bytes]
    ) -> dict[str, bytes]:
        """Return texts sealed for their receivers."""
        randomness = party.key_randomness(f"product seal {what}")
        return {
            name: seal(secrets[name], text, self.place(party, chunk, party.name, name, what), randomness)
            for name, text in texts.items()
        }

    # A server's side.

    @step(reveals="sealed")
    def product_served(self, party: Party, message: ServerTurn) -> Served:
        """Answer one stage of a server's work: challenge, query, answer and check every chunk, then share."""
        if party.name not in self.servers:
            raise RefusedError(f"{party.name} is not one of the servers")
        chunks = self.sizes.chunks
        stages = self._stages(party)
        last = message.stage == "share"
        if message.stage not in (*stages, "share") or not (last or 0 <= message.chunk < chunks):
            raise RefusedError(f"{party.name} has no such stage of work in this study")
        to = len(stages) * (chunks if last else message.chunk) + (0 if last else stages.index(message.stage))
        advance(party, f"{self.label} server", 1 + to)
        works = (self._challenge, self._query, self._echo, self._answer, self._check, self._share)
        return dict(zip((*_STAGES, "share"), works, strict=True))[message.stage](party, message)

    def _challenge(self, party: Party, message: ServerTurn) -> Served:
        """Draw a challenge for every party, whose shares all have a digest by now."""
        randomness = party.key_randomness("product challenge")
        seeds = {name: randomness.bytes(KEY_BYTES) for name in self.provers}
        party.remember(f"{self.label} asked", ServerAsked(seeds=seeds, digests=message.digests))
        return Served(seeds=seeds, boxes={})

    def _query(self, party: Party, message: ServerTurn) -> Served:
        """Draw a point for every party, whose proofs all have a digest by now; tell it to servers in private."""
        asked, randomness = party.recall(f"{self.label} asked", ServerAsked), party.key_randomness("product query")
        points = {
            name: self.field.pack(self.proof(name, message.chunk).point(randomness.bytes(KEY_BYTES)))
            for name in self.provers
        }
        texts = {}
        for server in self.servers:
            rows, proofs = (
                {name: entry_of(entry_of(digests, name), server) for name in self.provers}
                for digests in (asked.digests, message.digests)
            )
            texts[server] = encode(ServerQuery(seeds=asked.seeds, points=points, rows=rows, proofs=proofs))
        secrets = _secrets(self, party, message.keys, self.servers)
        return Served(seeds={}, boxes=self._boxes(party, secrets, message.chunk, "query", texts))

    def _echo(self, party: Party, message: ServerTurn) -> Served:
        """Tell the other servers for which points each verifier asks: two points for one proof would show rows."""
        secrets = _secrets(self, party, message.keys, self.servers)
        queries = {
            name: decode(self._unsealed(party, secrets, message.chunk, name, message.boxes, "query"), ServerQuery)
            for name in self.servers[:VERIFIERS]
        }
        party.remember(f"{self.label} queries", ServerQueries(queries=queries))
        told = encode(ServerEcho(points={name: query.points for name, query in queries.items()}))
        texts = dict.fromkeys(self.servers, told)
        return Served(seeds={}, boxes=self._boxes(party, secrets, message.chunk, "echo", texts))

    def _answer(self, party: Party, message: ServerTurn) -> Served:
        """Open the shares of a chunk, multiply them, and answer both verifiers' queries about them."""
        chunk, number = message.chunk, self.servers.index(party.name)
        secrets = _secrets(self, party, message.keys, (*self.provers, *self.servers))
        queries = party.recall(f"{self.label} queries", ServerQueries).queries
        for name in self.servers:
            echo = decode(self._unsealed(party, secrets, chunk, name, message.boxes, "echo"), ServerEcho)
            if not same_points(echo.points, queries):
                raise RefusedError(UNPROVEN)
        answers: dict[str, dict[str, bytes]] = {name: {} for name in queries}
        shares = {}
        for name in self.provers:
            key, proof = entry_of(message.keys, name), self.proof(name, chunk)
            text = self._unsealed(party, secrets, chunk, name, message.proofs, "proof")
            rows = self._unsealed(party, secrets, chunk, name, message.rows, "rows")
            count, width = len(range(*self.sizes.span(chunk))), self.columns(name)
            shares[name] = self._opened(party, name, chunk, "rows", rows, count * width).reshape(count, -1)
            digests = digest_of(key, message.rows[name]), digest_of(key, message.proofs[name])
            seeds, rest = seeds_of(text[: VERIFIERS * KEY_BYTES]), text[VERIFIERS * KEY_BYTES :]
            size = KEY_BYTES if number == 0 else self.field.packed_bytes(proof.length)
            for place, (verifier, query) in enumerate(queries.items()):
                point = self.field.unpack(entry_of(query.points, name), DEGREE)
                fixed = [entry_of(each, name) for each in (query.seeds, query.rows, query.proofs)]
                if not same(fixed, [seeds[place], *digests]) or not proof.outside(point):
                    raise RefusedError(UNPROVEN)
                part = rest[place * size : (place + 1) * size]
                share = self._opened(party, name, chunk, f"proof {place}", part, proof.length)
                answers[verifier][name] = self.field.pack(proof.answer(shares[name], share, seeds[place], point))
        self._multiply(party, chunk, shares)
        texts = {verifier: encode(ServerAnswers(packed=packed)) for verifier, packed in answers.items()}
        return Served(seeds={}, boxes=self._boxes(party, secrets, chunk, "answer", texts))

    def _multiply(self, party: Party, chunk: int, shares: Mapping[str, NDArray[Any]]) -> None:
        """Add the products of a chunk's shares to those before it."""
        for pair in self.pairs:
            parts = [part.ravel() for part in self._multiplied(pair, chunk, shares)]
            product = np.concatenate(parts).reshape(self.shape(pair))
            kept = self._served(pair)
            if chunk:
                product = self.field.add(product, party.recall(kept, KeptShare).total.astype(self.field.dtype))
            party.remember(kept, KeptShare(total=product.astype(np.uint64)))

    def _multiplied(self, pair: Pair, chunk: int, shares: Mapping[str, NDArray[Any]]) -> Iterator[NDArray[Any]]:
        """Yield the product of a pair's shares, or the selected cells, and then the tables beyond."""
        cells, (left, right) = self.cells.get(pair), (shares[name] for name in pair)
        if cells is None or cells.size:
            yield wanted(self.weighted(left, chunk), right, self.field, cells)
        for first, tables in groupby(self.beyond.get(pair, ()), key=lambda sides: sides[:-1]):
            matrices = [self._completed(chunk, shares, side) for side in first]
            last = [self._completed(chunk, shares, sides[-1]) for sides in tables]
            ends = list(accumulate(one.shape[1] for one in last[:-1]))
            yield from np.split(joint_product(matrices, np.concatenate(last, axis=1), self.field), ends, axis=1)

    def _completed(self, chunk: int, shares: Mapping[str, NDArray[Any]], side: tuple[str, slice]) -> NDArray[Any]:
        """Return shares of some columns of a party with the level that was not sent, or of the sign of a column."""
        (name, columns), (start, stop) = side, self.sizes.span(chunk)
        share = shares[name][:, columns]
        # rows after a group's last person have no level; a share of what is public is that number itself
        there = (np.arange(start, stop) < self.people[name]).astype(np.int64)[:, None]
        if self.signs:
            return self.field.reduce(2 * share.astype(np.int64) - there)
        return np.hstack([share, self.field.reduce(there - share.sum(axis=1, keepdims=True, dtype=np.int64))])

    def _check(self, party: Party, message: ServerTurn) -> Served:
        """Refuse unless all servers' answers are on a line, and its value at 0 shows one-hot rows."""
        secrets = _secrets(self, party, message.keys, self.servers)
        heard = [
            decode(self._unsealed(party, secrets, message.chunk, name, message.boxes, "answer"), ServerAnswers)
            for name in self.servers
        ]
        for name in self.provers:
            proof = self.proof(name, message.chunk)
            answers = [self.field.unpack(entry_of(one.packed, name), proof.answer_length) for one in heard]
            first, second, *_ = answers
            start, nothing = self.field.subtract(self.field.add(first, first), second), np.zeros_like(first)
            if not on_line(self.field, answers) or not proof.holds(start, nothing):
                raise RefusedError(UNPROVEN)
        return Served(seeds={}, boxes={})

    def _share(self, party: Party, message: ServerTurn) -> Served:
        """Give each party its part of this server's term of every product."""
        field, number = self.field, self.servers.index(party.name)
        factor = (-1) ** number * comb(len(self.servers), number + 1)
        randomness = party.key_randomness("product pads")
        seeds = {pair: randomness.bytes(KEY_BYTES) for pair in self.pairs}

        def part(name: str, partner: str) -> bytes:
            pair = self.pair(name, partner)
            if pair[0] == name:
                return seeds[pair]
            total = party.recall(self._served(pair), KeptShare).total.astype(np.int64)
            return field.pack(
                field.subtract(field.reduce(factor * total), self._pad(party, party.name, pair, seeds[pair]))
            )

        texts = {name: b"".join(part(name, each) for each in partners_of(self.pairs, name)) for name in self.provers}
        secrets = _secrets(self, party, message.keys, self.provers)
        return Served(seeds={}, boxes=self._boxes(party, secrets, self.sizes.chunks, "share", texts))

    def _served(self, pair: tuple[str, str]) -> str:
        return f"{self.label} served {' and '.join(pair)}"

    def _unsealed(
        self, party: Party, secrets: Mapping[str, bytes], chunk: int, sender: str, boxes: Mapping[str, bytes], what: str
    ) -> bytes:
        """Return what a party or a server sealed for this one."""
        return unseal(secrets[sender], entry_of(boxes, sender), self.place(party, chunk, sender, party.name, what))

    def _opened(self, party: Party, prover: str, chunk: int, what: str, text: bytes, count: int) -> NDArray[Any]:
        """Return this server's share of a party's rows or proof."""
        if party.name != self.servers[0]:
            return self.field.unpack(text, count)
        check_seed(text)
        return self._drawn(party, prover, chunk, what, text, count)


def _secrets(product: ServedProduct, party: Party, keys: Mapping[str, bytes], names: Sequence[str]) -> dict[str, bytes]:
    """Return the secrets of a party with others."""
    private = party.recall(f"{product.label} own", KeptPair).pair.private
    return agree_with(party, private, {name: entry_of(keys, name) for name in names})
