"""The messages of a secure product."""

from syndic.kernel import Message

Pair = tuple[str, str]


class ProductStart(Message):
    """The dealer's seed for one party, sent on the coordinator's own link to that party."""

    seed: bytes


class ProductKey(Message):
    """A party's public key."""

    public: bytes


class ProductTurn(Message):
    """Mask the rows of one chunk; `keys` are the public keys of this party's partners."""

    chunk: int
    keys: dict[str, bytes]


class ProductOpening(Message):
    """A party's masked rows, sealed once, and the key of that seal, sealed for each partner."""

    body: bytes
    keys: dict[str, bytes]


class ProductInbox(Message):
    """For one party and chunk, by partner: masked rows, the key to them, the dealer's halves, digests of row sums."""

    chunk: int
    bodies: dict[str, bytes]
    keys: dict[str, bytes]
    halves: dict[str, bytes]
    sums: dict[str, bytes]


class ProductClose(Message):
    """For one party, by partner: the dealer's carries, and the partner's sealed wrap bits of every chunk."""

    carries: dict[str, bytes]
    boxes: dict[str, list[bytes]]


def partners_of(pairs: tuple[Pair, ...], name: str) -> tuple[str, ...]:
    """Return the partners of a party."""
    return tuple(right if left == name else left for left, right in pairs if name in (left, right))
