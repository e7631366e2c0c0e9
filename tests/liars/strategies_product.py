"""What a lying coordinator does as the dealer of secure products, to pairs of parties and to two servers."""

from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from liars.coordinator import LyingCoordinator, new_id
from liars.strategies import Strategy, again, before, early, tell
from syndic.kernel import Call, Nothing, decode
from syndic.mpc.key import PublicKey
from syndic.mpc.product_messages import ProductChallenge, ProductStart, ProductTurn
from syndic.mpc.seal import PublicKeys

TABLES = "marginals, across"


def _check(lie: Any, part: str = "proofs") -> Any:
    """Return a lie to p1 about the proof, or the test, of p0."""
    return lambda told: replace(told, **{part: {**getattr(told, part), "p0": lie(getattr(told, part)["p0"])}})


def _proof_as_rows(told: Any) -> Any:
    return replace(told, bodies={"p0": told.proofs["p0"].body}, keys={"p0": told.proofs["p0"].key})


def _proof_as_test(told: Any) -> Any:
    proof = told.proofs["p0"]
    return _check(lambda test: replace(test, body=proof.body, key=proof.key), "tests")(told)


def _shifted(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def _values(liar: LyingCoordinator, call: Call) -> None:
    keys = {
        each.to: decode(each.reply.body, PublicKey).public for each in liar.world.asked if each.call.step == "two_keys"
    }
    early("contribute", PublicKeys(keys=keys))(liar, call)


def _with_tables(asked: Any, tables: Any) -> Any:
    return replace(asked, tables=tables)


def _own_tables(liar: LyingCoordinator, calls: dict[str, Call]) -> dict[str, Call]:
    for step in ("ask_round", "count"):
        for party, table in (("p0", ("age",)), ("p1", ("score",))):
            calls = tell(step, partial(_with_tables, tables=(table,)), party)(liar, calls)
    return calls


PRODUCT: Final = (
    Strategy(
        TABLES, "deal a short seed", tell("product_keys", lambda told: replace(told, seed=b"x")), "seed must have"
    ),
    Strategy(
        TABLES,
        "deal a second seed",
        before("product_masked", again("product_keys", lambda _: ProductStart(seed=bytes(32)))),
        "each is answered once",
    ),
    Strategy(
        TABLES, "deal both parties the same seed", tell("product_keys", lambda told: replace(told, seed=bytes(32)))
    ),
    *(
        Strategy(
            target,
            "have rows proven that are not there, after all were multiplied",
            before("count", early("product_proved", ProductChallenge(chunk=1, seed=bytes(64)))),
            "there is no chunk 1",
        )
        for target in (TABLES, "marginals, three servers")
    ),
    *(
        Strategy(
            target,
            "ask for a chunk of rows that does not exist",
            before("count", early("product_masked", ProductTurn(chunk=1, keys={}))),
            "there is no chunk 1",
        )
        for target in (TABLES, "marginals, three servers")
    ),
    Strategy(
        TABLES,
        "give a party no key of its partner",
        tell("product_masked", lambda told: replace(told, keys={}), "p0"),
        "does not have one public key for each",
    ),
    Strategy(
        "synthesis, four servers",
        "ask a server whose rows are not multiplied for rows",
        before("product_served", early("product_masked", ProductTurn(chunk=0, keys={})), "p3"),
        "no rows of p3 are multiplied",
    ),
    Strategy(
        TABLES,
        "pass on a key of its own as the partner's",
        tell("product_masked", lambda told: replace(told, keys=dict.fromkeys(told.keys, b"\x09" + bytes(31))), "p0"),
        "does not open",
    ),
    Strategy(
        TABLES,
        "challenge twice",
        before("product_multiplied", again("product_proved", lambda told: replace(told, seed=bytes(32)))),
        "each is answered once",
    ),
    Strategy(TABLES, "mask the rows twice", before("product_proved", again("product_masked")), "each is answered once"),
    Strategy(
        TABLES,
        "give a party no rows of its partner",
        tell("product_multiplied", lambda told: replace(told, bodies={})),
        "has no entry for",
    ),
    Strategy(
        TABLES,
        "give a party no proof of its partner",
        tell("product_multiplied", lambda told: replace(told, proofs={})),
        "has no entry for",
    ),
    Strategy(
        TABLES,
        "pass on the proof as if it were the rows",
        tell("product_multiplied", _proof_as_rows, "p1"),
        "does not open",
    ),
    Strategy(
        TABLES,
        "deal halves that are no numbers of the field",
        tell("product_multiplied", lambda told: replace(told, halves={"p0": b"\xff" * len(told.halves["p0"])}), "p1"),
        "a packed number is not below",
    ),
    Strategy(
        TABLES,
        "deal halves of another length",
        tell("product_multiplied", lambda told: replace(told, halves={"p0": b"\xff"}), "p1"),
        "expected",
    ),
    Strategy(
        TABLES,
        "deal halves that do not belong together",
        tell("product_multiplied", lambda told: replace(told, halves={"p0": bytes(len(told.halves["p0"]))}), "p1"),
    ),
    Strategy(
        TABLES,
        "challenge prover and checker differently",
        tell("product_multiplied", _check(lambda check: replace(check, seed=bytes(32))), "p1"),
        "does not hold",
    ),
    Strategy(
        TABLES,
        "check a proof inside the field, where it shows a row",
        tell(
            "product_multiplied",
            _check(lambda check: replace(check, point=b"\x01" + bytes(len(check.point) - 1))),
            "p1",
        ),
        "does not hold",
    ),
    Strategy(
        TABLES,
        "shift the check of a proof",
        tell("product_multiplied", _check(lambda check: replace(check, answer=_shifted(check.answer))), "p1"),
        "does not hold",
    ),
    Strategy(
        TABLES,
        "check a proof with another key",
        tell("product_multiplied", _check(lambda check: replace(check, key=_shifted(check.key))), "p1"),
        "does not open",
    ),
    Strategy(
        "gram, by bounds",
        "ask for counts of a study that rescales nothing",
        before("product_masked", early("count_bins", Nothing())),
        "has no such step",
    ),
    Strategy("gram", "ask for counts twice", before("product_keys", again("count_bins")), "each is answered once"),
    Strategy(
        "gram",
        "test twice",
        before("product_proved", again("product_tested", lambda told: replace(told, seed=bytes(32)))),
        "each is answered once",
    ),
    Strategy(
        "gram",
        "give a party no test of its partner",
        tell("product_multiplied", lambda told: replace(told, tests={})),
        "has no entry for",
    ),
    Strategy(
        "gram",
        "test prover and checker differently",
        tell("product_multiplied", _check(lambda test: replace(test, seed=bytes(32)), "tests"), "p1"),
        "does not hold",
    ),
    Strategy(
        "gram",
        "challenge prover and checker differently",
        tell("product_multiplied", _check(lambda check: replace(check, seed=bytes(32))), "p1"),
        "does not hold",
    ),
    Strategy(
        "gram",
        "check a proof inside the field, where it shows a row",
        tell(
            "product_multiplied",
            _check(lambda check: replace(check, point=b"\x01" + bytes(len(check.point) - 1))),
            "p1",
        ),
        "does not hold",
    ),
    Strategy(
        "gram",
        "pass on the proof as if it were the test",
        tell("product_multiplied", _proof_as_test, "p1"),
        "does not open",
    ),
    Strategy(
        TABLES,
        "open tables twice",
        lambda liar, calls: (
            [
                (liar.ask(call), liar.ask(replace(call, call=new_id(liar), number=0)))
                for call in calls.values()
                if call.step == "count"
            ],
            calls,
        )[1],
        "each is answered once",
    ),
    Strategy(
        "synthesis, across",
        "count other tables than were asked",
        tell("ask_round", lambda asked: replace(asked, tables=asked.tables[:1]), "p0"),
        "is counted as it was asked first",
    ),
    Strategy(
        "synthesis, across",
        "ask each party for a table of its own, with the noise of one",
        _own_tables,
        "",
    ),
    Strategy(
        "synthesis, across", "ask a ninth round", tell("ask_round", lambda asked: replace(asked, number=9)), "rounds"
    ),
    Strategy(
        "synthesis, across",
        "group a column to a single value",
        tell(
            "ask_round",
            lambda asked: replace(
                asked, tables=(("colour", "score"),), groups=((0, 0, 0, 0), (0, 1, 2, 3, 4), (0, 1, 2, 3, 4))
            ),
        ),
        "a side of one value",
    ),
    Strategy(
        "average",
        "give a party no key of another one",
        tell("contribute", lambda told: replace(told, keys={"p0": told.keys["p0"]}), "p2"),
        "for each party of the study",
    ),
    Strategy(
        "average",
        "add up fewer parties than there are",
        tell("two_open", lambda told: replace(told, boxes={"p0": told.boxes["p0"]}), "p0"),
        "one sealed seed for each party",
    ),
    Strategy(
        "average",
        "deal coins to a party that is no server",
        before("contribute", early("product_keys", ProductStart(seed=bytes(32))), "p2"),
        "is not one of the two servers",
    ),
    Strategy(
        "average",
        "open the sum of one party",
        tell("two_open", lambda told: replace(told, total=bytes(len(told.total))), "p1"),
    ),
    Strategy(
        "average",
        "open twice",
        lambda liar, calls: (
            [
                (liar.ask(call), liar.ask(replace(call, call=new_id(liar), number=0)))
                for call in calls.values()
                if call.step == "two_open"
            ],
            calls,
        )[1],
        "each is answered once",
    ),
    Strategy(
        "average",
        "ask a server for values before its coins are proven",
        before("product_proved", _values),
        "each is answered once",
    ),
)
