"""The verb `audit`: what it prints, writes and ends with."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from syndic.cli.main import main
from syndic.privacy import Cost, PureEvent
from syndic.random import Randomness
from syndic_lab.audit import registry, run
from syndic_lab.audit.mechanisms import Draws
from syndic_lab.audit.observation import Fact, Neighbours, Trial

Verb = Callable[..., tuple[int, str, str]]


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Verb:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def called(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["syndic", "audit", *words])
        status = 0
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return called


def broken_law(count: int, randomness: Randomness) -> list[Trial]:
    """Return trials of a claim that everybody can break, and of a fact that does not hold."""
    del count, randomness
    one, other = np.ones(2000), np.zeros(2000)
    cost = Cost.of([PureEvent(epsilon=Fraction(1))])
    return [
        Neighbours(view="anyone", one=one, other=other, cost=cost, delta=0.0),
        Fact(view="owner", kind="charge", holds=False, runs=1, text="charged too much"),
    ]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs: list[tuple[str, Draws]] = [("broken law", broken_law)]
    monkeypatch.setattr(registry, "mechanisms", lambda: iter(pairs))


def test_names(verb: Verb) -> None:
    status, shown, _ = verb("--list")
    assert status == 0
    assert {"discrete laplace", "homm replace", "sketches"} <= {
        " ".join(line.split()[:-1]) for line in shown.splitlines()
    }
    faults = json.loads(verb("--planted", "--list", "--json")[1])
    assert {"name": "half the noise", "what": "noise for twice the epsilon that is charged"} in faults


def test_a_name_stands_for_all_that_begin_with_it(verb: Verb) -> None:
    _, shown, _ = verb("discrete laplace", "--seed", "1", "--json")
    found = json.loads(shown)
    names = {finding["audit"] for finding in found["findings"]}
    assert names == {"discrete laplace", "discrete laplace, large scale", "discrete laplace, vector"}
    assert (found["effort"], found["seed"], found["alarm"]) == ("quick", 1, 1e-6)


def test_an_unknown_name_is_bad_input(verb: Verb) -> None:
    status, _, told = verb("nothing")
    assert status == 2
    assert "no audit 'nothing'" in told


@pytest.mark.usefixtures("broken")
def test_a_broken_claim_ends_with_status_1_and_says_which(verb: Verb) -> None:
    status, shown, told = verb("broken law", "--seed", "1")
    assert status == 1
    assert "BROKEN" in shown
    assert "charged too much" in shown
    assert "broken law, anyone: epsilon is at least" in told
    assert "is claimed (wrong with a chance below" in told
    status, shown, _ = verb("broken law", "--seed", "1", "--json")
    assert status == 1
    assert not json.loads(shown)["findings"][0]["holds"]


@pytest.mark.parametrize("ending", ["json", "md", "html"])
@pytest.mark.usefixtures("broken")
def test_what_is_written(verb: Verb, ending: str) -> None:
    verb("broken law", "--out", f"page.{ending}")
    text = Path(f"page.{ending}").read_text()
    assert "broken law" in text
    assert "charged too much" in text
    if ending != "json":
        assert "claims are BROKEN" in text


def test_faults_are_written_too(verb: Verb) -> None:
    status, shown, _ = verb("--planted", "averaged answers", "--out", "faults.html", "--seed", "2")
    assert status == 0
    assert "1 planted faults, missed or wrongly accused: none; seed 2" in shown
    assert "four answers to one question" in Path("faults.html").read_text()


def test_a_file_of_another_kind_is_refused(verb: Verb) -> None:
    assert verb("randomised response", "--out", "page.pdf")[0] == 2


def test_a_missed_fault_ends_with_status_1(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "judge", lambda *_: [])
    status, shown, told = verb("--planted", "averaged answers")
    assert status == 1
    assert "audits are wrong about: averaged answers" in told
    assert "NO" in shown
