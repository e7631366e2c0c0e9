"""What a lying coordinator does in masked sums, questions, tosses, secrets and alignments."""

from typing import Final

import numpy as np
from msgspec.structs import replace

from liars.coordinator import new_id, without
from liars.strategies import Strategy, again, before, both, early, envelope, tell
from syndic.kernel import Nothing
from syndic.mpc.masked_sum import SumStart
from syndic.mpc.secret import SecretOffer

SUMS = "marginals, one missing"
ROUNDS = "learn, mpc_grad, one missing"
ASKED = "synthesis"
ENVELOPE: Final = (
    Strategy("homm", "name another study", envelope("sanitise", study="0" * 64), "the call is for study"),
    Strategy(
        "homm",
        "give a party a call for another one",
        before("sanitise", lambda liar, call: liar.ask(replace(call, party="p1"), "p0")),
        "the call is for another party",
    ),
    Strategy("homm", "use an endless call id", envelope("sanitise", call="x" * 65), "a call id has at most"),
    Strategy("homm", "ask a step of another method", before("sanitise", early("count", Nothing())), "has no such step"),
    Strategy("homm", "send a message that is too large", tell("sanitise", lambda _: bytes(10**6)), "is larger than"),
    Strategy("homm", "send bytes that are no message", tell("sanitise", lambda _: b"\xc1"), "is not a valid"),
    Strategy(
        "homm",
        "ask the release again under another id",
        before("sanitise", lambda liar, call: (liar.ask(call), liar.ask(replace(call, call=new_id(liar), number=0)))),
        "would spend more than it declares",
    ),
    Strategy(
        ROUNDS,
        "ask another question under an id that was answered",
        before("sum_open", again("contribute", lambda asked: replace(asked, weights=asked.weights + 1), same_id=True)),
        "this call id was answered before",
    ),
    Strategy(
        ROUNDS,
        "ask a request of the past under another id",
        envelope("contribute", call="new", number=1, missed=b""),
        "request 1 came after request 2: each is answered once",
    ),
    Strategy(ROUNDS, "skip requests", envelope("contribute", number=9, missed=b""), "without those in between"),
    Strategy(
        ROUNDS,
        "make up a request that a party missed",
        envelope("contribute", number=9, missed=bytes(32 * 9)),
    ),
    Strategy(SUMS, "ask for values before keys", before("sum_keys", early("count", Nothing())), "was requested before"),
)
SUM: Final = (
    Strategy(SUMS, "begin sums of another name", tell("sum_keys", lambda _: SumStart(label="x")), "unknown sums"),
    Strategy(SUMS, "ask for keys a second time", before("sum_meet", again("sum_keys")), "each is answered once"),
    Strategy(
        SUMS,
        "list only a party and its colluding neighbour",
        tell("sum_meet", lambda met: replace(met, present=b"\x90", keys=met.keys[64:]), "p0"),
        "the list of participants",
    ),
    Strategy(
        SUMS,
        "list all but the party that is asked",
        tell("sum_meet", lambda met: replace(met, present=b"\x70"), "p0"),
        "the list of participants",
    ),
    Strategy(SUMS, "leave out a key", tell("sum_meet", lambda met: replace(met, keys=met.keys[32:])), "pieces of"),
    Strategy(
        SUMS,
        "pass on a point of small order as everybody's key",
        tell("sum_meet", lambda met: replace(met, keys=bytes(len(met.keys)))),
        "an invalid public key",
    ),
    Strategy(
        SUMS,
        "pass on another party's key as everybody's",
        tell("sum_meet", lambda met: replace(met, keys=met.keys[:32] * 3)),
    ),
    Strategy(
        SUMS,
        "send a list of parties that is too long",
        tell("sum_meet", lambda met: replace(met, present=met.present + b"\x00")),
        "a list of parties has the wrong length",
    ),
    Strategy(SUMS, "ask for values twice", before("sum_open", again("count")), "was requested after sum 1"),
    Strategy(
        SUMS,
        "ask for the masks of another sum",
        tell("sum_open", lambda told: replace(told, number=2), "p0"),
        "the masks of sum 2",
    ),
    Strategy(
        ROUNDS,
        "ask for masks twice",
        before(
            "contribute",
            _again_if_asked := lambda liar, call: (
                again("sum_open")(liar, call) if any(one.step == "sum_open" for one in liar.past) else None
            ),
        ),
        "a party answers once",
    ),
    Strategy(
        SUMS,
        "tell one party that only it and the colluding one survived",
        tell("sum_open", lambda told: replace(told, arrived=b"\x90"), "p0"),
        "the study's noise suffices only",
    ),
    Strategy(
        SUMS,
        "ask a party for a list without it",
        tell("sum_open", lambda told: replace(told, arrived=b"\x70"), "p0"),
        "the study's noise suffices only",
    ),
    Strategy(
        SUMS,
        "hide a party from another one, and let it survive",
        both(tell("sum_meet", lambda met: without(met, 1, "p0"), "p0"), tell("sum_open", lambda told: told)),
        "that were not listed",
    ),
    Strategy(
        SUMS,
        "tell half of the parties another list",
        both(
            tell("sum_open", lambda told: replace(told, arrived=b"\xe0"), "p0"),
            tell("sum_open", lambda told: replace(told, arrived=b"\xe0"), "p1"),
        ),
    ),
    Strategy(
        SUMS,
        "tell each party a list of its own",
        both(
            tell("sum_open", lambda told: replace(told, arrived=b"\xd0"), "p0"),
            tell("sum_open", lambda told: replace(told, arrived=b"\x70"), "p1"),
        ),
    ),
    Strategy(
        SUMS, "call a party that answered silent, to all", tell("sum_open", lambda told: replace(told, arrived=b"\x70"))
    ),
    Strategy(
        SUMS,
        "drop a party's values",
        lambda _, calls: {
            party: None if (party, call.step) == ("p1", "count") else call for party, call in calls.items()
        },
    ),
    Strategy(
        SUMS,
        "drop a party's answer about masks",
        lambda _, calls: {
            party: None if (party, call.step) == ("p1", "sum_open") else call for party, call in calls.items()
        },
    ),
)
QUESTION: Final = (
    Strategy(
        "learn, mpc_grad",
        "ask one party for the gradient at other weights",
        tell("contribute", lambda asked: replace(asked, weights=asked.weights + 1), "p0"),
    ),
    Strategy(
        "learn, mpc_grad",
        "ask for a round that the study does not have",
        tell("contribute", lambda asked: replace(asked, round=9), "p0"),
        "the study has rounds 1 to",
    ),
    Strategy(
        "learn, mpc_grad",
        "ask at weights that are no numbers",
        tell("contribute", lambda asked: replace(asked, weights=asked.weights * np.nan), "p0"),
        "must be finite numbers",
    ),
    Strategy(
        "learn, local_grad",
        "ask a round again, at other weights",
        before("release", lambda liar, call: (liar.ask(call), liar.ask(replace(call, call="x", number=0)))),
        "the budget covers one answer for each round",
    ),
    Strategy(
        ASKED, "ask one party for other tables", tell("count", lambda asked: replace(asked, tables=(("age",),)), "p0")
    ),
    Strategy(ASKED, "ask a ninth round", tell("count", lambda asked: replace(asked, number=9)), "and the study has"),
    Strategy(
        ASKED,
        "ask for parities in a round of tables",
        tell("count", lambda asked: replace(asked, parity=not asked.parity)),
        "in this round only",
    ),
    Strategy(
        ASKED,
        "ask for more tables than a round has room for",
        tell("count", lambda asked: replace(asked, tables=asked.tables * 9)),
        "and it has room for",
    ),
    Strategy(
        ASKED,
        "ask for a table of columns that do not exist",
        tell("count", lambda asked: replace(asked, tables=(("secret",),))),
        "a table must be of different columns",
    ),
    Strategy(
        ASKED,
        "ask for the same table twice",
        tell("count", lambda asked: replace(asked, tables=(("age",), ("age",)))),
        "the same table was asked twice",
    ),
    Strategy(
        ASKED,
        "ask for a table with too many cells",
        tell("count", lambda asked: replace(asked, tables=(("colour", "age", "score"),))),
        "and the study allows",
    ),
    Strategy(
        ASKED,
        "group the levels of one column only",
        tell("count", lambda asked: replace(asked, groups=((0, 1, 1),))),
        "groups must be given for all",
    ),
    Strategy(
        ASKED,
        "group levels with gaps",
        tell("count", lambda asked: replace(asked, groups=((0, 2, 2), (0,) * 5, (0,) * 5))),
        "without gaps",
    ),
    Strategy(
        "gram, rows by bounds",
        "ask for counts of a study that rescales nothing",
        before("add_up", early("count_bins", Nothing())),
        "has no such step",
    ),
    Strategy(
        "gram, rows",
        "rescale one column only",
        tell("add_up", lambda told: replace(told, scales=told.scales[:1])),
        "do not belong to this study",
    ),
    Strategy(
        "gram, rows",
        "rescale by no width at all",
        tell("add_up", lambda told: replace(told, scales=tuple(replace(each, width=0) for each in told.scales))),
        "do not belong to this study",
    ),
    Strategy(
        "gram, rows",
        "rescale to the narrowest width",
        tell("add_up", lambda told: replace(told, scales=tuple(replace(each, width=1) for each in told.scales))),
    ),
    Strategy(
        "gram, rows",
        "rescale one party's numbers otherwise",
        tell("add_up", lambda told: replace(told, scales=tuple(replace(each, width=1) for each in told.scales)), "p0"),
    ),
    Strategy(
        "gram",
        "multiply by no width at all",
        tell("rescale", lambda told: replace(told, scales=tuple(replace(each, width=0) for each in told.scales))),
        "do not belong to this study",
    ),
    Strategy(
        "gram",
        "sum by other scales than it multiplies by",
        tell("add_up", lambda told: replace(told, scales=tuple(replace(each, width=1) for each in told.scales))),
        "by other scales than the products",
    ),
    Strategy(
        "gram, groups",
        "rescale one group's numbers otherwise",
        both(
            *(
                tell(step, lambda told: replace(told, scales=tuple(replace(each, width=1) for each in told.scales)), to)
                for step in ("rescale", "add_up")
                for to in ("p0", "p1")
            )
        ),
    ),
    Strategy("gram", "rescale twice", before("product_keys", again("rescale")), "each is answered once"),
    Strategy(
        "distdiffgen",
        "cut by groups of one column only",
        tell("take_cut", lambda chosen: replace(chosen, cut={"age": chosen.cut["age"]})),
        "the groups must cover all columns",
    ),
    Strategy(
        "distdiffgen",
        "cut by groups that are in no tree",
        tell("take_cut", lambda chosen: replace(chosen, cut=dict.fromkeys(chosen.cut, (99,)))),
        "refused: a cut names a group",
    ),
)
AGREED: Final = (
    Strategy(
        "mixing", "toss under another name", tell("toss_commit", lambda told: replace(told, label="x")), "unknown toss"
    ),
    Strategy(
        "mixing",
        "change a commitment before the party opens it",
        tell("toss_reveal", lambda told: replace(told, commitments={**told.commitments, "p0": bytes(32)}), "p0"),
        "are incomplete or were changed",
    ),
    Strategy(
        "mixing",
        "choose the last piece of a toss",
        tell("mix", lambda toss: replace(toss, pieces={**toss.pieces, "p1": bytes(32)}), "p0"),
        "does not match its commitment",
    ),
    Strategy(
        "mixing",
        "leave a piece of a toss out",
        tell("mix", lambda toss: replace(toss, pieces={"p0": toss.pieces["p0"]}), "p0"),
        "does not have one piece from every party",
    ),
    Strategy(
        "align",
        "begin a secret of another name",
        tell("secret_offer", lambda told: replace(told, label="x")),
        "unknown secret",
    ),
    Strategy(
        "align",
        "offer a party in the name of another",
        tell("secret_send", lambda told: replace(told, offers={**told.offers, "p0": told.offers["p1"]}), "p0"),
        "are incomplete or were changed",
    ),
    Strategy(
        "align",
        "show two parties different offers",
        tell(
            "secret_send",
            lambda told: replace(
                told, offers={**told.offers, "p1": SecretOffer(public=told.offers["p1"].public, commitment=bytes(32))}
            ),
            "p0",
        ),
        "different offers",
    ),
    Strategy(
        "align",
        "keep a piece of the secret back",
        tell("secret_check", lambda told: replace(told, boxes={}), "p0"),
        "does not have one piece from every other party",
    ),
    Strategy(
        "align",
        "ask for points that nobody has",
        tell("align_blind", lambda turn: replace(turn, number=9)),
        "there is no chunk 9",
    ),
    Strategy(
        "align", "turn points round more often", tell("align_raise", lambda box: replace(box, hop=7)), "expected a hop"
    ),
    Strategy(
        "align",
        "bring points back too soon",
        tell("align_finish", lambda box: replace(box, hop=1)),
        "before every party",
    ),
    Strategy(
        "align",
        "ask for a part that no table has",
        tell("align_table", lambda turn: replace(turn, number=9)),
        "there is no part 9",
    ),
    Strategy(
        "align",
        "send a sum of tables of another shape",
        tell("align_match", lambda told: replace(told, words=told.words[:, :1])),
        "does not have the shape",
    ),
    Strategy(
        "align",
        "send one party a wrong sum of tables",
        tell("align_match", lambda told: replace(told, words=told.words * 0), "p0"),
        "do not add up",
    ),
    Strategy(
        "align",
        "keep back what parties say about their order",
        tell("align_confirm", lambda told: replace(told, boxes={}), "p0"),
        "not those of all other parties",
    ),
    Strategy(
        "vertigan",
        "train a ninth round",
        tell("train", lambda told: replace(told, number=9)),
        "the study has rounds 1 to",
    ),
    Strategy(
        "vertigan",
        "send a network of another size",
        tell("train", lambda told: replace(told, trunk=b"")),
        "weights must have",
    ),
    Strategy(
        "vertigan",
        "send weights that are no numbers",
        tell("train", lambda told: replace(told, trunk=b"\xff" * len(told.trunk))),
        "must be finite numbers",
    ),
)
COORDINATOR: Final = (*ENVELOPE, *SUM, *QUESTION, *AGREED)
