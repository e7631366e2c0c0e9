"""A coordinator in the middle: it passes on keys of its own and tries to open what parties then seal for each other.

Without identities it succeeds, which shows that these attacks work. With identities it learns nothing: no box opens,
neither for it nor for the party it was meant for, and the run ends (or, under masks, opens to noise only).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np
import pytest

from many_parties import AddUp, Fleet
from organisations import COORDINATOR, agreed_nodes, homes_for
from support import CASES, THREE_VERTICAL, _across, vertical_study
from syndic.errors import PartyError, RefusedError
from syndic.kernel import Call, Delivery, Member, Node, Reply, decode, encode
from syndic.kernel.terms import named
from syndic.kernel.view import View, told
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.methods.learning.learn import Ask
from syndic.methods.learning.plan import LearnPlan
from syndic.methods.synthesis.measure import Question
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.mpc.key import PublicKey, agree, context, key_pair
from syndic.mpc.mask import expand
from syndic.mpc.masked_sum import SumMasked
from syndic.mpc.product_messages import ProductOpening
from syndic.mpc.ring import Integers
from syndic.mpc.seal import Mail, Place, unseal
from syndic.mpc.secret import SecretOffer, SharedSecret
from syndic.mpc.twoserver import TwoShares
from syndic.random import SystemRandomness
from syndic.runtime import Local
from syndic.study import PartyFolder, Study
from syndic.study.identity import Identity
from syndic.study.run import run_study

EVIL = key_pair(SystemRandomness())


class Carrier(Protocol):
    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery: ...

    def close(self) -> None: ...


@final
class Middle:
    """Replaces the public keys in one step's replies, and keeps everything that it carries."""

    def __init__(self, carrier: Carrier, step: str, kind: Any, forge: Callable[[Any], Any]) -> None:
        self.carrier, self.step, self.kind, self.forge = carrier, step, kind, forge
        self.asked: dict[tuple[str, str], bytes] = {}
        self.told: dict[tuple[str, str], bytes] = {}

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        delivery = self.carrier.send(calls, seconds=seconds, arrived=arrived)
        replies = dict(delivery.replies)
        for party, data in delivery.replies.items():
            call, reply = decode(calls[party], Call), decode(data, Reply)
            self.asked.setdefault((call.step, party), call.body)
            self.told.setdefault((call.step, party), reply.body)
            if call.step == self.step and reply.code == "ok":
                body = encode(self.forge(decode(reply.body, self.kind)))
                replies[party] = encode(Reply(code="ok", body=body))
        return Delivery(replies=replies, silent=delivery.silent)

    def close(self) -> None:
        self.carrier.close()

    def key(self, party: str) -> Any:
        """Return the party's true keys."""
        return decode(self.told[self.step, party], self.kind)


@dataclass(frozen=True)
class Attack:
    """Which keys are forged, how the middle then tries to learn something, and whether anything is charged by then."""

    case: str
    step: str
    kind: Any
    forge: Callable[[Any], Any]
    learns: Callable[[Middle, Study], bool]
    charged: bool = False


def opens(secret: bytes, box: bytes, study: Study, label: str, sender: str, receiver: str) -> bool:
    try:
        unseal(secret, box, Place(study=study.digest, label=label, sender=sender, receiver=receiver))
    except RefusedError:
        return False
    return True


def opens_rows(middle: Middle, study: Study) -> bool:
    secret = agree(EVIL.private, middle.key("north").public)
    box = decode(middle.told["product_masked", "north"], ProductOpening).keys["south"]
    return opens(secret, box, study, "product rows 0", "north", "south")


def opens_seed(middle: Middle, study: Study) -> bool:
    secret = agree(EVIL.private, middle.key("south").public)
    box = decode(middle.told["contribute", "south"], TwoShares).box
    return opens(secret, box, study, "two servers, seed", "south", "north")


def view_of(middle: Middle, study: Study, last: str) -> bytes:
    """Return the view of north after this step, as the middle can compute it."""
    view = View.of(study.digest)
    asked = [(study.steps[step], body) for (step, party), body in middle.asked.items() if party == "north"]
    names = [step.name for step, _ in asked]
    for step, body in asked[: names.index(last) + 1]:
        view = view if step.fresh else view.after(0, b"", told(step.name, decode(body, step.takes)))
    return view.digest


def takes_masks_off(middle: Middle, study: Study, step: str, sum_of: tuple[str, Integers, int, int]) -> bool:
    label, ring, count, spare = sum_of
    values = ring.unpack(decode(middle.told[step, "north"], SumMasked).values, count)
    bound = context("sums", study.digest, label, "values", 1, view_of(middle, study, step))
    secret = agree(EVIL.private, middle.key("north").public)
    mask = expand(secret, context("pair", bound, "north", "south"), count, ring)
    left = ring.lift(ring.subtract(values, mask))
    # values of 60 people and their noise are far from the ends of the ring, and uniform numbers seldom all are
    return bool(np.all(np.abs(left) < 2 ** (ring.bits - spare)))


def opens_one_sum(middle: Middle, study: Study) -> bool:
    masked_sum = study.plan_as(MarginalsPlan).masked_sum
    return takes_masks_off(middle, study, "count", ("marginals", masked_sum.ring, masked_sum.count, 2))


def opens_a_round(middle: Middle, study: Study) -> bool:
    noise = study.plan_as(LearnPlan).noise_at(decode(middle.asked["contribute", "north"], Ask).round)
    assert noise.ring is not None
    return takes_masks_off(middle, study, "contribute", ("learn", noise.ring, noise.query.dimension, 4))


def opens_own_tables(middle: Middle, study: Study) -> bool:
    reach = study.plan_as(SynthesisPlan).reach
    assert reach is not None
    now = reach.round_of(decode(middle.asked["count", "north"], Question))
    return takes_masks_off(middle, study, "count", ("synthesis", now.ring, now.layout.dimension, 2))


SERVED = 'servers = ["north", "south", "east"]'
STUDIES = (*CASES, _across("marginals by servers", vertical_study(SERVED, parties=THREE_VERTICAL)))
ATTACKS = {
    "sum": Attack(
        "marginals gaussian", "sum_keys", PublicKey, lambda _: PublicKey(public=EVIL.public), opens_one_sum, True
    ),
    "sums": Attack(
        "learn mpc_grad", "sum_keys", PublicKey, lambda _: PublicKey(public=EVIL.public), opens_a_round, True
    ),
    "product": Attack(
        "marginals across", "product_keys", PublicKey, lambda _: PublicKey(public=EVIL.public), opens_rows
    ),
    "three servers": Attack(
        "marginals by servers", "product_keys", PublicKey, lambda _: PublicKey(public=EVIL.public), opens_rows
    ),
    "two servers": Attack("average", "two_keys", PublicKey, lambda _: PublicKey(public=EVIL.public), opens_seed, True),
    "rounds": Attack(
        "synthesis across", "sum_keys", PublicKey, lambda _: PublicKey(public=EVIL.public), opens_own_tables, True
    ),
}


def plain_nodes(study: Study, homes: Mapping[str, PartyFolder], folder: Path) -> dict[str, Node]:
    """Open the same organisations' rows as parties of a study without identities."""
    nodes = {}
    for name, home in homes.items():
        plain = PartyFolder(folder=folder / "plain" / name)
        plain.keep(study, home.owner())
        nodes[name] = plain.node(seed=None)
    return nodes


def attacked(attack: Attack, folder: Path, *, identities: bool) -> tuple[Middle, Study, list[str], PartyError | None]:
    """Run a case with the middle in place; return what it saw, and what was charged."""
    case = next(each for each in STUDIES if each.name == attack.case)
    study, homes = homes_for(case.study, case.sources, folder)
    if identities:
        nodes = agreed_nodes(study, homes)
    else:
        study = case.study
        nodes = plain_nodes(study, homes, folder)
    middle = Middle(Local(nodes), attack.step, attack.kind, attack.forge)
    failure = None
    try:
        # the coordinator is the one that lies: it does not check what it changed itself
        run_study(study, middle, signatures=False, identity=COORDINATOR)
    except PartyError as error:
        failure = error
    charged = [name for name, node in nodes.items() if node.state.ledger.charged(study.digest)]
    middle.close()
    return middle, study, charged, failure


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_the_attack_works_where_nobody_has_an_identity(attack: Attack, tmp_path: Path) -> None:
    middle, study, _, _ = attacked(attack, tmp_path, identities=False)
    assert attack.learns(middle, study)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_with_identities_the_middle_learns_nothing(attack: Attack, tmp_path: Path) -> None:
    middle, study, charged, failure = attacked(attack, tmp_path, identities=True)
    assert not attack.learns(middle, study)
    assert bool(charged) == attack.charged
    if attack.step != "sum_keys":
        # masked sums have no box to open: their masks do not cancel
        assert failure is not None
        assert "does not open" in str(failure)


def bonded(fleet: Fleet) -> Fleet:
    """Give the parties of a fleet identities."""
    keys = {
        name: Identity(signing=bytes([place] * 32), sealing=bytes([place + 9] * 32))
        for place, name in enumerate(fleet.names)
    }
    members = tuple(Member(name=name, identity=str(one.public)) for name, one in keys.items())
    terms: Any = type("Known", (), {"parties": members, "by_name": named(members)})()
    fleet.nodes = {
        name: replace(node, state=replace(node.state, bond=keys[name].bonds(terms, fleet.study.digest, name)))
        for name, node in fleet.nodes.items()
    }
    return fleet


@pytest.mark.parametrize("identities", [False, True])
def test_pieces_of_a_shared_secret(identities: bool, tmp_path: Path) -> None:
    fleet = Fleet(AddUp(), 2, tmp_path)
    if identities:
        fleet = bonded(fleet)
    true: dict[str, SecretOffer] = {}

    def forge(step: str, party: str, body: bytes) -> bytes:
        if step != "secret_offer":
            return body
        true[party] = decode(body, SecretOffer)
        return encode(SecretOffer(public=EVIL.public, commitment=true[party].commitment))

    fleet.reply = forge
    with pytest.raises(PartyError, match="does not open"):
        SharedSecret(label="one").run(fleet.session())
    box = decode(fleet.seen["secret_send", "p0"], Mail).boxes["p1"]
    secret = agree(EVIL.private, true["p0"].public)
    assert opens(secret, box, fleet.study, "secret one", "p0", "p1") == (not identities)


def test_sums_and_secrets_still_work_with_bonds_also_when_parties_fall_silent(tmp_path: Path) -> None:
    fleet = bonded(Fleet(AddUp(colluding=1, missing=2), 8, tmp_path))
    session = fleet.session()
    SharedSecret(label="one").run(session)
    fleet.lost = {"add": {"p2"}, "sum_meet": {"p5"}}
    total = fleet.masked_sum.open(session, fleet.protocol.add)
    assert set(total.present) == set(fleet.names) - {"p2", "p5"}
    np.testing.assert_array_equal(total.values, fleet.expected(total.present))
