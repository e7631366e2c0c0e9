"""The owner's verbs: nothing is signed without a yes, and what is shown is what is signed."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from organisations import COORDINATOR, homes_for
from support import study_text, two_parties
from syndic import Study
from syndic.cli.main import cli, main
from syndic.document import to_readable_json
from syndic.errors import BudgetError, InputError, RefusedError
from syndic.privacy import Called, Ledger, PureEvent
from syndic.runtime import Local
from syndic.study import PartyFolder
from syndic.study.agreement import agree, studies
from syndic.study.identity import Identity
from syndic.study.party_folder import run_digest
from syndic.study.run import run_study

Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two homes and the study file `joint.json`."""
    study, _ = homes_for(Study.loads(study_text()), two_parties(), tmp_path)
    (tmp_path / "joint.json").write_bytes(to_readable_json(study))
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "160")
    return lambda *words, **more: CliRunner().invoke(cli, words, prog_name="syndic", **more)


def north() -> PartyFolder:
    return PartyFolder(folder=Path("north"))


def joint() -> Study:
    return Study.load("joint.json")


def test_no_means_that_nothing_is_signed(run: Run) -> None:
    # the last one is the end of input
    for answer in ("n\n", "\n", ""):
        result = run("agree", "joint.json", "--home", "north", input=answer)
        assert isinstance(result.exception, RefusedError)
        assert "this study costs epsilon 1 " in result.output
    assert studies(north()) == ()
    with Ledger.open(north().ledger) as ledger:
        assert [entry.kind for entry in ledger.entries()] == ["declare"]


def interrupted(*_: object, **__: object) -> str:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("run")
def test_ctrl_c_at_a_question_is_a_no_and_elsewhere_an_interruption(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def status(*words: str) -> int:
        monkeypatch.setattr("sys.argv", ["syndic", *words])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0)

    monkeypatch.setattr("click.termui.visible_prompt_func", interrupted)
    assert status("agree", "joint.json", "--home", "north") == 4
    assert "error: north did not agree; nothing was signed\n" in capsys.readouterr().err
    assert status("agree", "joint.json", "--home", "north", "--json") == 4
    error = json.loads(capsys.readouterr().out)["error"]
    assert error == {"code": "refused", "text": "north did not agree; nothing was signed"}
    assert studies(north()) == ()
    monkeypatch.setattr("syndic.study.agreement.consider", interrupted)
    assert status("agree", "joint.json", "--home", "north") == 130
    assert "interrupted" in capsys.readouterr().err


def test_a_party_that_is_not_confirmed_is_not_admitted(run: Run) -> None:
    assert run("coordinator", "init", "federation", "--name", "health", "--host", "127.0.0.1").exit_code == 0
    assert run("party", "init", "site", "--name", "west").exit_code == 0
    for answer in ("n\n", ""):
        result = run("coordinator", "approve", "site/request.json", "--home", "federation", input=answer)
        assert isinstance(result.exception, RefusedError)
        assert str(result.exception) == "west was not admitted; nothing was signed"
    assert json.loads(run("coordinator", "parties", "--home", "federation", "--json").output) == []
    assert run("coordinator", "approve", "site/request.json", "--home", "federation", input="y\n").exit_code == 0
    assert len(json.loads(run("coordinator", "parties", "--home", "federation", "--json").output)) == 1


def test_yes_signs_what_was_shown(run: Run) -> None:
    result = run("agree", "joint.json", "--home", "north", "--expires", "12h", input="y\n")
    assert result.exit_code == 0
    assert f"north agrees to {joint().digest} until" in result.output
    (standing,) = studies(north())
    assert (standing.run, standing.state) == (joint().digest, "agreed")
    assert standing.expires is not None
    assert abs(standing.expires - datetime.now(UTC) - timedelta(hours=12)) < timedelta(minutes=5)


def test_programs_get_json(run: Run) -> None:
    told = json.loads(run("agree", "joint.json", "--home", "north", "--yes", "--rehearsal", "7", "--json").output)
    assert told["agreement"]["run"] == told["offer"]["run"] == run_digest(joint(), 7)
    assert told["agreement"]["rehearsal"] == 7
    (listed,) = json.loads(run("studies", "--home", "north", "--json").output)
    assert (listed["state"], listed["rehearsal"]) == ("agreed", 7)
    assert listed["since"][:10] == told["agreement"]["signed_at"][:10]
    assert f" {listed['since'][:10]} " in run("studies", "--home", "north").output
    told = json.loads(run("withdraw", run_digest(joint(), 7)[:10], "--home", "north", "--restored", "--json").output)
    assert told == {"withdrawn": run_digest(joint(), 7)}
    with Ledger.open(north().ledger) as ledger:
        assert ledger.charged(run_digest(joint(), 7)) == joint().plan.events("north")
    assert json.loads(run("studies", "--home", "north", "--json").output)[0]["state"] == "withdrawn"


@pytest.mark.parametrize("expires", ["90", "d", "0d", "-1d", "1.5d", "90y", "123456d", ""])
def test_how_long_an_agreement_cannot_last(run: Run, expires: str) -> None:
    result = run("agree", "joint.json", "--home", "north", "--yes", "--expires", expires)
    assert isinstance(result.exception, InputError)
    assert "--expires" in str(result.exception)


def test_an_identity_is_made_once(run: Run) -> None:
    shown = json.loads(run("identity", "--home", "west", "--json").output)
    keys = Identity.load(Path("west") / "identity.key")
    assert shown == {"identity": str(keys.public), "fingerprint": keys.public.fingerprint}
    assert json.loads(run("identity", "--home", "west", "--json").output) == shown
    assert f"fingerprint  {keys.public.fingerprint}" in run("identity", "--home", "west").output


def test_calls_are_shown_when_asked_for(run: Run) -> None:
    homes = {name: PartyFolder(folder=Path(name)) for name in ("north", "south")}
    for home in homes.values():
        agree(home, joint())
    carrier = Local({name: home.agreed_node(joint().digest) for name, home in homes.items()})
    run_study(joint(), carrier, identity=COORDINATOR)
    carrier.close()
    file = str(north().ledger)
    assert "│ epsilon 1 │ in full │ 1 " in re.sub(" +", " ", run("ledger", "show", file).output)
    kinds = [
        re.findall(r"^ +[0-9]+  [0-9-]{10} [0-9:]{8}  (\w+)", shown, re.MULTILINE)
        for shown in (run("ledger", "show", file).output, run("ledger", "show", file, "--calls").output)
    ]
    assert kinds[0] == ["declare", "agree", "reserve", "commit"]
    assert kinds[1] == ["declare", "agree", "call", "call", "reserve", "commit", "call"]
    assert "verified: 7 entries" in run("ledger", "verify", file).output
    assert "sanitise: " in run("ledger", "show", file, "--calls").output


def test_a_ledger_fits_80_columns_and_nothing_is_cut_off(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    agree(north(), joint())
    what = "discrete Laplace noise " + "of a table with a long name " * 5
    charge = PureEvent(epsilon=Fraction(1, 7), what=what.strip())
    why = "a reason of the owner that does not fit one line, with " + "averyveryverylongword" * 9
    with Ledger.open(north().ledger) as ledger:
        (dataset,) = ledger.datasets()
        ledger.reserve(dataset=dataset, study=joint().digest, call="a" * 32, door="1", events=(charge,), why=why)
        ledger.log_call(
            Called(
                dataset=dataset, study=joint().digest, call="b" * 32, step="sanitise", asked="c" * 64, reply="d" * 64
            )
        )
        times = [entry.time for entry in ledger.entries()]
    output = run("ledger", "show", str(north().ledger.absolute()), "--calls").output
    assert [line for line in output.splitlines() if len(line) > 80] == []
    assert not {"…", "..."} & set(output.split())
    without_breaks = "".join(output.split())
    for text in (str(north().ledger.absolute()), *(time[:19].replace("T", " ") for time in times), charge.what, why):
        assert "".join(text.split()) in without_breaks
    for text in (joint().digest[:12], "declare", "agree", "reserve", "call", "sanitise: dddddddddddd", dataset):
        assert text in output


def test_a_study_that_does_not_fit_under_the_cap_is_not_signed(run: Run) -> None:
    party = Path("north/party.toml")
    party.write_text(party.read_text().replace("epsilon = 50", "epsilon = 0.5"))
    result = run("agree", "joint.json", "--home", "north", "--yes")
    assert isinstance(result.exception, BudgetError)
    assert "cap" in str(result.exception)
    assert studies(north()) == ()
    party.write_text(party.read_text().replace("epsilon = 0.5", "epsilon = 1"))
    assert run("agree", "joint.json", "--home", "north", "--yes").exit_code == 0
