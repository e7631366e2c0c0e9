"""The coordinator's side over a runtime that somebody else opened and closes."""

from pathlib import Path

import pytest

from faulty_runtime import published
from support import CASES, Case, open_nodes
from syndic.errors import InputError
from syndic.runtime import Local
from syndic.study import Study, simulate
from syndic.study.party_folder import run_digest
from syndic.study.run import run_study

SEED = 7


def case_of(name: str) -> Case:
    found: Case = next(case for case in CASES if case.name == name)
    return found


def test_the_release_is_that_of_a_simulation_and_the_runtime_stays_open(tmp_path: Path) -> None:
    case = case_of("homm laplace")
    told: list[tuple[str, int, int]] = []
    runtime = Local(open_nodes(case, tmp_path))
    release = run_study(
        case.study, runtime, seed=SEED, folder=tmp_path / "own", progress=lambda *what: told.append(what)
    )
    expected = published(simulate(case.study, case.sources, seed=SEED), tmp_path / "a")
    assert published(release, tmp_path / "b") == expected
    assert ("sanitise", 2, 2) in told
    told.clear()
    again = run_study(case.study, runtime, seed=SEED, folder=tmp_path / "own", progress=lambda *what: told.append(what))
    assert published(again, tmp_path / "c") == expected
    assert {what for what, _, _ in told} == {"draw rows"}
    without = run_study(case.study, runtime, seed=SEED)
    assert published(without, tmp_path / "d") == expected
    runtime.close()
    assert [path.name for path in (tmp_path / "own").iterdir()] == [f"{run_digest(case.study, SEED)[:16]}.sqlite"]


def test_each_run_has_a_journal_of_its_own() -> None:
    study = case_of("homm laplace").study
    # the journal is named by the beginning of the run's digest, as seen above
    assert len({run_digest(study, seed)[:16] for seed in (None, 1, 2)}) == 3


def test_a_printed_variant_needs_a_seed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="in simulation only: give a seed"):
        run_study(case_of("homm as published").study, Local({}), folder=tmp_path / "own")
    assert not (tmp_path / "own").exists()


def test_a_simulation_checks_the_study_once_and_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, check, found = case_of("homm laplace"), Study.check, list[bool]()

    def counted(study: Study) -> None:
        found.append((tmp_path / "run").exists())
        check(study)

    monkeypatch.setattr(Study, "check", counted)
    simulate(case.study, case.sources, seed=SEED, folder=tmp_path / "run")
    assert found == [False]
