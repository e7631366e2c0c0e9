"""Agreement: an owner's yes is to one run, by one key, for a time, and is taken back at once."""

import json
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction

import msgspec
import pytest
from msgspec.structs import replace

from organisations import COORDINATOR, Organisations, rehearse
from syndic import Study
from syndic.errors import InputError, PartyError, RefusedError
from syndic.kernel import Agreement, Nothing
from syndic.kernel.agreement import Agreements
from syndic.methods.histogram.homm import Homm
from syndic.runtime import Local
from syndic.study.agreement import agree, consider, receive, studies, withdraw
from syndic.study.identity import Identity
from syndic.study.party_folder import run_digest
from syndic.study.run import run_study
from syndic.study.study_folder import StudyFolder


def test_nobody_answers_a_study_without_its_owners_agreement(organisations: Organisations) -> None:
    with pytest.raises(RefusedError, match="has not agreed"):
        organisations.node()
    receive(organisations.home, organisations.study)
    with pytest.raises(RefusedError, match="has not agreed"):
        organisations.node()
    agree(organisations.home, organisations.study)
    assert organisations.node().name == "north"
    # another edition is another study
    second = replace(organisations.study, edition=2)
    with pytest.raises(RefusedError, match="has not agreed"):
        organisations.home.agreed_node(second.digest)
    with pytest.raises(RefusedError, match="has not agreed"):
        organisations.home.agreed_node(run_digest(organisations.study, 7))


def test_one_party_without_an_agreement_stops_the_run_before_anything_is_spent(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    withdraw(organisations.homes["south"], organisations.run)
    with pytest.raises(PartyError, match="south has withdrawn"):
        run_study(organisations.study, Local(nodes), identity=COORDINATOR)
    assert not [entry for entry in organisations.entries() if entry.kind == "reserve"]


def test_withdrawal_works_at_once_and_also_for_stored_answers(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    organisations.ask(nodes["north"], "meet", Agreements(agreements=organisations.agreements(nodes)))
    assert organisations.ask(nodes["north"], "sanitise", Nothing()).code == "ok"
    assert withdraw(organisations.home, organisations.run[:6], why="no longer") == organisations.run
    for step in ("ready", "sanitise"):
        reply = organisations.ask(nodes["north"], step, Nothing())
        assert (reply.code, "has withdrawn" in reply.text) == ("refused", True)
    with pytest.raises(RefusedError, match="has withdrawn"):
        organisations.node()
    standing = [entry for entry in organisations.entries() if entry.kind == "withdraw"]
    assert [(entry.why, entry.study) for entry in standing] == [("no longer", organisations.run)]
    agree(organisations.home, organisations.study)
    assert organisations.ask(nodes["north"], "sanitise", Nothing()).code == "ok"
    # what was charged before is not charged again
    assert sum(entry.kind == "reserve" for entry in organisations.entries()) == 1


def test_an_expired_agreement_stops_answers_in_the_middle_of_a_run(organisations: Organisations) -> None:
    nodes = organisations.nodes()
    organisations.ask(nodes["north"], "meet", Agreements(agreements=organisations.agreements(nodes)))
    agree(organisations.home, organisations.study, lasts=timedelta(microseconds=1))
    reply = organisations.ask(nodes["north"], "sanitise", Nothing())
    assert (reply.code, "expired" in reply.text) == ("refused", True)
    with pytest.raises(RefusedError, match="expired"):
        organisations.node()


def test_a_file_that_the_log_does_not_name_is_no_agreement(organisations: Organisations) -> None:
    agree(organisations.home, organisations.study, lasts=timedelta(microseconds=1))
    path = StudyFolder.of(organisations.home.folder, organisations.run).written
    # signed by the right key and not expired, but not by way of `agree`
    path.write_bytes(organisations.signed())
    with pytest.raises(RefusedError, match="not the one in its owner's ledger"):
        organisations.node()


def test_a_changed_copy_of_the_study_is_found(organisations: Organisations) -> None:
    agree(organisations.home, organisations.study)
    path = StudyFolder.of(organisations.home.folder, organisations.run).folder / "study.json"
    path.write_text(path.read_text().replace('"epsilon": "1"', '"epsilon": "9"'))
    with pytest.raises(RefusedError, match="was changed: agree again"):
        organisations.node()


def test_an_agreement_is_to_one_version_of_the_code(
    organisations: Organisations, monkeypatch: pytest.MonkeyPatch
) -> None:
    agree(organisations.home, organisations.study)
    monkeypatch.setattr("syndic.study.study_folder.__version__", "0.1.1")
    with pytest.raises(RefusedError, match=r"agreed to Syndic 0\.1\.0, but 0\.1\.1 is installed"):
        organisations.node()


def unsigned(study: Study) -> Study:
    return replace(study, parties=tuple(replace(one, identity=None) for one in study.parties))


def printed(study: Study) -> Study:
    return replace(study, protocol=Homm(as_published=True))


def exchanged(study: Study) -> Study:
    north, south = (one.identity for one in study.parties)
    return replace(
        study,
        parties=(replace(study.parties[0], identity=south), replace(study.parties[1], identity=north)),
    )


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (unsigned, "must have the identity of every party"),
        (exchanged, "does not contain the identity"),
        (printed, "can only be rehearsed"),
    ],
)
def test_what_an_owner_cannot_agree_to(
    organisations: Organisations, change: Callable[[Study], Study], text: str
) -> None:
    with pytest.raises(InputError, match=text):
        agree(organisations.home, change(organisations.study))
    assert not organisations.home.ledger.exists() or [entry.kind for entry in organisations.entries()] == ["declare"]


def test_the_owner_is_shown_what_the_cap_leaves(organisations: Organisations) -> None:
    offer = consider(organisations.home, organisations.study)
    assert (offer.price.epsilon, offer.spending.left, offer.after.left) == (Fraction(1), Fraction(50), Fraction(49))
    shown = str(offer)
    for member in organisations.study.parties:
        identity = Identity.load(organisations.homes[member.name].keys)
        assert f"peer         {member.name}: {identity.public.fingerprint}" in shown
    wanted = "this study costs epsilon 1 at its delta, 0; after it 1 of your cap 50 is spent at the cap's delta, 0.0001"
    assert f"data set 'people of north': {wanted}" in shown
    assert "REHEARSAL" not in shown
    assert "protects nobody" in str(consider(organisations.home, organisations.study, rehearsal=7))
    run_study(organisations.study, Local(organisations.nodes()), identity=COORDINATOR)
    assert consider(organisations.home, organisations.study).spending.left == Fraction(49)


def test_where_studies_stand(organisations: Organisations) -> None:
    home, study = organisations.home, organisations.study
    others = {name: replace(study, name=name) for name in ("waiting", "left", "late")}
    receive(home, others["waiting"])
    agree(home, others["left"])
    withdraw(home, others["left"].digest)
    agree(home, others["late"], lasts=timedelta(microseconds=1))
    rehearse(study, organisations.homes, seed=7)
    agree(home, study)
    found = {(one.study, one.rehearsal): (one.state, one.run) for one in studies(home)}
    assert found == {
        ("waiting", None): ("pending", others["waiting"].digest),
        ("left", None): ("withdrawn", others["left"].digest),
        ("late", None): ("expired", others["late"].digest),
        ("test", 7): ("finished", run_digest(study, 7)),
        ("test", None): ("agreed", study.digest),
    }
    run_study(study, Local(organisations.nodes()), identity=COORDINATOR)
    assert {one.run: one.state for one in studies(home)}[study.digest] == "finished"


@pytest.mark.parametrize("file", ["study.json", "agreement.json"])
def test_a_damaged_study_does_not_keep_an_owner_from_withdrawing_from_others(
    organisations: Organisations, file: str
) -> None:
    home, second = organisations.home, replace(organisations.study, name="second")
    agree(home, organisations.study)
    agree(home, second)
    (StudyFolder.of(home.folder, organisations.run).folder / file).write_text("rubbish")
    assert withdraw(home, second.digest) == second.digest
    assert {one.run[:16]: one.state for one in studies(home)} == {
        organisations.run[:16]: "damaged",
        second.digest[:16]: "withdrawn",
    }


@pytest.mark.parametrize("digest", ["", "zz", "0000"])
def test_withdrawing_from_nothing(organisations: Organisations, digest: str) -> None:
    agree(organisations.home, organisations.study)
    with pytest.raises(InputError, match=f"agreed runs: {organisations.run[:12]}"):
        withdraw(organisations.home, digest)


def test_an_agreement_has_a_time_zone(organisations: Organisations) -> None:
    content = json.loads(organisations.signed())
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**content, "expires": "2090-01-01T00:00:00"}, Agreement)
