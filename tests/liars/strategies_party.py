"""What a lying party does, while the coordinator and all others follow the steps."""

from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from liars.strategies import Strategy, answers, inside
from liars.world import Numbers

UNPROVEN: Final = "the proof that a partner's rows are one-hot does not hold"
TOO_LONG: Final = UNPROVEN.replace("one-hot", "no longer than allowed")


def _cells(*cells: tuple[int, int, int], when: str = "") -> Any:
    """Return what enters numbers into cells, the rest of their rows being zero; in one step or in all."""

    def rows(matrix: Numbers, step: str) -> Numbers:
        found = matrix.astype(np.int64)
        if when in {"", step}:
            found[[row for row, _, _ in cells]] = 0
            for row, column, number in cells:
                found[row, column] = number
        return found

    return rows


def _sealed(label: str, lie: Any) -> Any:
    """Return what seals another text for places of this label."""
    return lambda text, place: lie(text) if label in place.label else text


def _flip(text: bytes) -> bytes:
    return text[:-40] + bytes([text[-40] ^ 1]) + text[-39:]


def _rows(what: str, rows: Any, *, target: str = "marginals, across", party: str = "p0") -> Strategy:
    return Strategy(target, what, inside(rows=rows), UNPROVEN, party)


def _long(what: str, rows: Any, *, target: str = "gram", party: str = "p0", wraps: bool = False) -> Strategy:
    return Strategy(target, what, inside(rows=rows, wraps=wraps), TOO_LONG, party)


PARTY: Final = (
    _rows("enter 1000 in a cell of the person's row", _cells((0, 0, 1000))),
    _rows("enter 100 and -99 in a row", _cells((0, 0, 100), (0, 1, -99))),
    _rows("enter 100 and -100 in a column", _cells((0, 0, 100), (1, 0, -100))),
    _rows("enter two ones in a row", _cells((0, 0, 1), (0, 1, 1))),
    _rows("enter -1 in a cell", _cells((0, 0, -1))),
    _rows("enter 2 as the right partner", _cells((0, 0, 2)), party="p1"),
    _rows("prove other rows than it masked", _cells((0, 0, 1), (1, 1, 1), when="prove")),
    _rows("mask other rows than it proves", _cells((0, 0, 1000), when="mask")),
    _rows("enter 1000 in a cell, in a round", _cells((0, 0, 1000)), target="synthesis, across"),
    _rows("enter 1000 in a cell, to three servers", _cells((0, 0, 1000)), target="marginals, three servers"),
    _rows("toss a coin that is neither 0 nor 1", _cells((0, 0, 1000)), target="average"),
    _rows("toss halves, which would take all noise away", _cells((0, 0, 32_768)), target="average", party="p1"),
    Strategy(
        "marginals, across",
        "seal rows with one bit changed",
        inside(
            "product_masked",
            text=_sealed("rows", lambda text: text[:-1] + bytes([text[-1] ^ 1]) if len(text) != 32 else text),
        ),
        "a p",
        "p0",
    ),
    Strategy(
        "marginals, across",
        "seal a proof with one bit changed",
        inside("product_proved", text=_sealed("proof", lambda text: _flip(text) if len(text) != 32 else text)),
        UNPROVEN,
        "p0",
    ),
    Strategy(
        "marginals, across",
        "seal a proof for another challenge",
        inside(
            "product_proved",
            text=_sealed("proof", lambda text: text[:8] + bytes(32) + text[40:] if len(text) != 32 else text),
        ),
        UNPROVEN,
        "p0",
    ),
    Strategy(
        "marginals, across",
        "seal rows that are too long",
        inside("product_masked", text=_sealed("rows", lambda text: text + b"x" if len(text) != 32 else text)),
        "expected",
        "p0",
    ),
    Strategy(
        "marginals, across",
        "seal a key that opens nothing",
        inside("product_masked", text=_sealed("rows", lambda text: bytes(32) if len(text) == 32 else text)),
        "does not open",
        "p0",
    ),
    Strategy("marginals, across", "leave its own noise out", inside("count", silent_noise=True), "", "p0"),
    Strategy(
        "marginals, across",
        "add another share than it has",
        inside("count", values=lambda values: values + 1000),
        "",
        "p0",
    ),
    Strategy(
        "marginals, across",
        "answer with the partner's key as its own",
        answers("product_keys", lambda key: replace(key, public=bytes(31) + b"\x01")),
        "does not open",
        "p0",
    ),
    Strategy(
        "marginals, across",
        "answer with a key of small order",
        answers("product_keys", lambda key: replace(key, public=bytes(32))),
        "an invalid public key",
        "p0",
    ),
    Strategy(
        "marginals, across",
        "answer with tables of another size",
        answers("count", lambda told: replace(told, values=b"")),
        "expected",
        "p0",
    ),
    Strategy("marginals, one missing", "leave its own noise out", inside("count", silent_noise=True), "", "p3"),
    Strategy(
        "marginals, one missing",
        "enter counts of a million people",
        inside("count", values=lambda values: values + 10**6),
        "",
        "p3",
    ),
    Strategy(
        "marginals, one missing",
        "answer about other masks than it used",
        answers("sum_open", lambda told: replace(told, values=bytes(len(told.values)))),
        "",
        "p3",
    ),
    Strategy(
        "marginals",
        "answer with fewer numbers",
        answers("count", lambda told: replace(told, values=told.values[:-1])),
        "expected",
        "p3",
    ),
    Strategy(
        "marginals",
        "answer with a key of small order",
        answers("sum_keys", lambda key: replace(key, public=bytes(32))),
        "an invalid public key",
        "p3",
    ),
    Strategy(
        "gram, rows", "enter a row of any length", inside("add_up", values=lambda values: values * 1000), "", "p3"
    ),
    Strategy(
        "learn, mpc_grad, one missing", "fall silent in every round", answers("contribute", lambda _: None), "", "p3"
    ),
    Strategy(
        "average",
        "share a sum of a million people",
        inside("contribute", values=lambda values: values + 10**6),
        "",
        "p3",
    ),
    Strategy(
        "average",
        "seal another seed than it masked with",
        inside("contribute", text=_sealed("two servers", lambda _: bytes(32))),
        "",
        "p3",
    ),
    Strategy(
        "average", "as a server, open another share", inside("two_open", share=lambda values: values + 1), "", "p1"
    ),
    Strategy(
        "align",
        "send another piece than it committed to",
        inside("secret_send", text=_sealed("secret", lambda text: bytes(32) + text[32:])),
        "does not match its commitment",
        "p0",
    ),
    Strategy(
        "align",
        "claim other offers",
        inside("secret_send", text=_sealed("secret", lambda text: text[:32] + bytes(32))),
        "different offers",
        "p0",
    ),
    Strategy(
        "align",
        "send no piece",
        answers("secret_send", lambda told: replace(told, boxes={})),
        "did not send its piece",
        "p0",
    ),
    Strategy(
        "align",
        "pass on fewer points",
        inside("align_raise", text=_sealed("", lambda text: text[32:])),
        "a wrong number of points",
        "p0",
    ),
    Strategy(
        "align",
        "pass on points of small order",
        inside("align_raise", text=_sealed("", lambda text: bytes(len(text)))),
        "an invalid point",
        "p0",
    ),
    *(
        Strategy(
            target,
            "pass points on in another order",
            inside("align_raise", text=_sealed("", lambda text: text[32:] + text[:32])),
            "found different common people",
            "p0",
        )
        for target in ("align", "align, two parties")
    ),
    Strategy(
        "align",
        "pass points on to nobody",
        answers("align_blind", lambda told: replace(told, boxes={})),
        "did not send its points",
        "p0",
    ),
    Strategy(
        "align",
        "vouch for another order",
        inside("align_vouch", text=_sealed("", lambda text: b"\x09" + bytes(31) + text[32:])),
        "found different common people",
        "p0",
    ),
    Strategy(
        "align",
        "say less about its order",
        inside("align_confirm", text=_sealed("", lambda text: text[:-1])),
        "has the wrong length",
        "p0",
    ),
    Strategy(
        "align",
        "claim to know a secret that is another's",
        answers("secret_check", lambda done: replace(done, check=bytes(32))),
        "do not have the same secret",
        "p0",
    ),
    Strategy(
        "mixing",
        "reveal another piece than it committed to",
        answers("toss_reveal", lambda told: replace(told, piece=bytes(32))),
        "does not match its commitment",
        "p0",
    ),
    Strategy(
        "mixing",
        "send a table of another shape",
        answers("mix", lambda told: replace(told, values=told.values[:1])),
        "whose shape is not the one",
        "p0",
    ),
    Strategy(
        "vertimrf",
        "send two models of its columns",
        answers("learn", lambda told: replace(told, models=told.models * 2)),
        "models of its columns",
        "p0",
    ),
    Strategy(
        "vertimrf",
        "send sketches of another shape",
        answers("sketch", lambda told: replace(told, ranks=told.ranks[:1])),
        "sent sketches whose shape",
        "p0",
    ),
    Strategy(
        "vertimrf",
        "send ranks that no sketch has",
        answers("sketch", lambda told: replace(told, ranks=told.ranks + 60_000)),
        "ranks outside the range",
        "p0",
    ),
    _long("enter a million in a cell of the person's row", _cells((0, 0, 10**6))),
    _long("enter a million as the right partner", _cells((0, 0, 10**6)), party="p1"),
    _long("enter a million, with numbers in bounds", _cells((0, 0, 10**6)), target="gram, by bounds"),
    _long("enter a row that is a little too long", _cells((0, 0, 3000))),
    _long("complete a long row by numbers that wrap", _cells((0, 0, 10**6)), wraps=True),
    _long(
        "complete a long row by numbers that wrap, by bounds",
        _cells((0, 0, 10**6)),
        target="gram, by bounds",
        wraps=True,
    ),
    _long("mask a longer row than it proves", _cells((0, 0, 10**6), when="mask")),
    _long("test other rows than it masked", _cells((0, 0, 10**6), when="test")),
    _long("prove other rows than it masked", _cells((0, 0, 1), when="prove")),
    *(
        Strategy(
            target, "multiply other rows than it masked", inside(rows=_cells((0, 0, 10**6), when="multiply")), "", "p0"
        )
        for target in ("marginals, across", "gram")
    ),
    *(
        Strategy(
            "gram",
            f"seal a {what} with one bit changed",
            inside(f"product_{step}", text=_sealed(what, lambda text: _flip(text) if len(text) != 32 else text)),
            TOO_LONG,
            "p0",
        )
        for what, step in (("test", "tested"), ("proof", "proved"))
    ),
    *(
        Strategy(
            "gram",
            f"seal a {what} for another challenge",
            inside(
                f"product_{step}",
                text=_sealed(what, lambda text: text[:8] + bytes(32) + text[40:] if len(text) != 32 else text),
            ),
            TOO_LONG,
            "p0",
        )
        for what, step in (("test", "tested"), ("proof", "proved"))
    ),
    Strategy("gram", "leave its own noise out", inside("add_up", silent_noise=True), "", "p0"),
    Strategy("gram", "add another share than it has", inside("add_up", values=lambda values: values + 10**6), "", "p0"),
    Strategy(
        "gram, groups",
        "count a million people in every bin",
        inside("count_bins", values=lambda values: values + 10**6),
        "",
        "p0",
    ),
    Strategy(
        "gram",
        "seal a key that opens nothing",
        inside("product_masked", text=_sealed("rows", lambda text: bytes(32) if len(text) == 32 else text)),
        "does not open",
        "p0",
    ),
    Strategy(
        "glued",
        "answer with bytes that are no message",
        answers("synthesise", lambda _: b"\xc1"),
        "is not a valid",
        "p0",
    ),
    Strategy(
        "homm",
        "count so many rows that the coordinator has no memory for them",
        answers("sanitise", lambda told: replace(told, counts=told.counts + 200_000)),
        "MB of memory hold",
        "p3",
    ),
    Strategy(
        "homm",
        "answer with a message that is too large",
        answers("sanitise", lambda _: bytes(10**6 + 5000)),
        "the reply is larger",
        "p3",
    ),
    Strategy(
        "homm", "answer with bytes that are no message", answers("sanitise", lambda _: b"\xc1"), "is not a valid", "p3"
    ),
)
