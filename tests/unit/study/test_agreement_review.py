"""Agreement, seen by somebody who wants to get round it: lost ledgers, damaged shelves, equal digests, old caps."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from organisations import Organisations, agreed_nodes, signed_call
from support import study_text
from syndic import Study
from syndic.errors import BudgetError, InputError, IntegrityError
from syndic.kernel import Call, Member, Message, Node, Nothing, Reply, answer, decode, encode
from syndic.kernel import party as kernel_party
from syndic.kernel.agreement import Agreements, Ready
from syndic.privacy import Ledger
from syndic.study import PartyFolder
from syndic.study.agreement import agree, receive, studies, withdraw
from syndic.study.identity import Identity
from syndic.study.study_folder import StudyFolder


class Run(Organisations):
    """Two organisations whose nodes are open."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.opened = self.nodes()

    def asked(self, name: str, step: str, body: Message) -> Reply:
        return self.ask(self.opened[name], step, body)


def test_the_coordinator_learns_no_file_name(tmp_path: Path) -> None:
    """What is wrong with a party's file is said by its own log; the name may say whose rows they are."""
    organisations = Organisations(tmp_path)
    home = organisations.home
    secret = home.folder / "hiv-clinic-of-dr-weber.parquet"
    (home.folder / "rows.parquet").rename(secret)
    file = home.folder / "party.toml"
    file.write_text(file.read_text().replace("rows.parquet", secret.name))
    nodes = organisations.nodes()
    whole, other = secret.read_bytes(), pq.read_table(secret).drop_columns(["age"])
    try:
        for spoil, told in (
            (lambda: secret.write_bytes(whole[:200]), "in its own log"),
            (secret.unlink, "in its own log"),
            (lambda: pq.write_table(other, secret), "['age'] are missing"),
        ):
            spoil()
            reply = organisations.ask(nodes["north"], "ready", Nothing())
            assert (reply.code, told in reply.text) == ("input", True)
            assert "weber" not in reply.text
            assert secret.name in home.audit.records()[-1].why
    finally:
        for node in organisations.open:
            node.close()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    made = Run(tmp_path)
    yield made
    for node in made.open:
        node.close()


@pytest.mark.parametrize("file", ["study.json", "agreement.json"])
def test_an_owner_can_withdraw_from_a_study_whose_files_are_damaged(run: Run, file: str) -> None:
    run.meet(run.opened)
    (StudyFolder.of(run.home.folder, run.study.digest).folder / file).write_text("rubbish")
    assert withdraw(run.home, run.study.digest[:8]) == run.study.digest
    reply = run.asked("north", "sanitise", Nothing())
    assert (reply.code, "has withdrawn" in reply.text) == ("refused", True)


@pytest.mark.parametrize("content", [None, b""])
def test_a_lost_ledger_is_not_begun_anew(run: Run, content: bytes | None) -> None:
    for node in run.opened.values():
        node.close()
    for name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"):
        (run.home.folder / name).unlink(missing_ok=True)
    if content is not None:
        run.home.ledger.write_bytes(content)
    for attempt in (
        lambda: run.home.agreed_node(run.study.digest),
        lambda: agree(run.home, run.study),
        lambda: studies(run.home),
        lambda: withdraw(run.home, run.study.digest),
    ):
        with pytest.raises(IntegrityError, match="the ledger file is missing"):
            attempt()


def test_a_lower_cap_holds_when_the_study_is_opened_next(run: Run) -> None:
    party = run.home.folder / "party.toml"
    party.write_text(party.read_text().replace("epsilon = 50", "epsilon = 0.5"))
    run.opened["north"].close()
    run.opened["north"] = run.node()
    assert run.asked("north", "ready", Nothing()).code == BudgetError.code


def test_a_study_whose_digest_begins_alike_does_not_take_the_shelf(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    # sixteen letters are 64 bits: whoever writes both studies can make them alike
    real = StudyFolder.of

    def alike(home: Path, digest: str) -> StudyFolder:
        return replace_folder(real(home, digest), home / "studies" / run.study.digest[:16])

    monkeypatch.setattr(StudyFolder, "of", alike)
    other = replace(run.study, name="other")
    for attempt in (lambda: receive(run.home, other), lambda: agree(run.home, other)):
        with pytest.raises(InputError, match="another study"):
            attempt()
    run.meet(run.opened)
    assert run.asked("north", "sanitise", Nothing()).code == "ok"


def replace_folder(stored: StudyFolder, folder: Path) -> StudyFolder:
    return StudyFolder(folder=folder, digest=stored.digest)


def test_parties_that_met_under_another_version_meet_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.meet(run.opened)
    monkeypatch.setattr(kernel_party, "__version__", "9.9.9")
    reply = run.asked("north", "sanitise", Nothing())
    assert (reply.code, "run the step 'meet' first" in reply.text) == ("refused", True)


def test_only_agreements_of_the_studys_parties_are_kept(run: Run) -> None:
    run.meet(run.opened, stranger=bytes(10**6))
    folder = StudyFolder.of(run.home.folder, run.study.digest).folder
    assert sum(path.stat().st_size for path in folder.iterdir()) < 10**6


@pytest.mark.parametrize("half", ["signing", "sealing"])
def test_no_two_parties_share_half_an_identity(half: str, tmp_path: Path) -> None:
    one, other = (Identity.make(tmp_path / name) for name in ("one.key", "other.key"))
    mixed = Identity(
        signing=one.signing if half == "signing" else other.signing,
        sealing=one.sealing if half == "sealing" else other.sealing,
    )
    plain = Study.loads(study_text())
    lines = (str(one.public), str(mixed.public))
    members = [Member(name=party.name, identity=line) for party, line in zip(plain.parties, lines, strict=True)]
    with pytest.raises(ValueError, match="give each party its own"):
        replace(plain, parties=tuple(members))


def test_a_call_id_of_one_study_does_not_stand_in_for_another(run: Run, tmp_path: Path) -> None:
    """Call ids can be computed: a coordinator of one study that uses those of another one does not block it."""
    run.meet(run.opened)
    second = replace(run.study, name="second")
    nodes: dict[str, Node] = agreed_nodes(second, run.homes)
    shown = {}
    for name, node in nodes.items():
        asked = Call(study=second.digest, party=name, step="ready", call="x", body=encode(Nothing()))
        shown[name] = decode(decode(answer(node, signed_call(asked)), Reply).body, Ready).agreement
    north = nodes["north"]
    meet = Call(study=second.digest, party="north", step="meet", call="y", body=encode(Agreements(agreements=shown)))
    assert decode(answer(north, signed_call(meet)), Reply).code == "ok"
    first = run.asked("north", "sanitise", Nothing())
    same = hashlib.sha256(b"sanitisenorth").hexdigest()[:32]
    taken = Call(study=second.digest, party="north", step="sanitise", call=same, body=encode(Nothing()))
    other = decode(answer(north, signed_call(taken)), Reply)
    assert (first.code, other.code) == ("ok", "ok")
    assert first.body != other.body
    for node in nodes.values():
        node.close()
    with Ledger.open(PartyFolder(folder=run.home.folder).ledger) as ledger:
        assert ledger.charged(second.digest) == ledger.charged(run.study.digest) != ()
