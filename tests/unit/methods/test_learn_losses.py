"""Learning in rounds from which parties are missing: what was lost is left out, and nothing else changes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from runtimes import run_lossy
from support import Case
from syndic import Study
from syndic.errors import PartyError
from syndic.methods.learning.result import LearnResult, weights_of
from syndic.model.erm.loss import Logistic, Objective
from unit.methods.learning import BINARY, NOISELESS, SIZES, cohort, learnt, sources, study

MISSING = f"{BINARY}iterations = 3\nmissing = 1\npath = true\nrate = 1.0"


def with_losses(of: Study, folder: Path, lost: Callable[[str, str, int], bool]) -> LearnResult:
    result = run_lossy(Case("lossy", of, sources()), folder, lost)
    assert isinstance(result, LearnResult)
    return result


def test_a_party_may_be_missing_in_a_round(tmp_path: Path) -> None:
    of = study(MISSING, budget=NOISELESS)
    found = with_losses(of, tmp_path, lambda step, party, before: (step, party, before) == ("contribute", "p2", 1))
    assert (found.model.lost, found.model.present) == (0, tuple(SIZES))
    gone = {name: data for name, data in sources().items() if name != "p2"}
    at = np.zeros((4, 1))
    for data in (sources(), gone, sources()):
        gradient = cohort(of, data, Objective(Logistic(), 0.01)).average_gradient(at) + 0.01 * at
        at = at - gradient
    assert weights_of(found.model, found.design)[0] == pytest.approx(at[:, 0], abs=1e-3)


def test_a_lost_round_leaves_the_weights_as_they_are(tmp_path: Path) -> None:
    of = study(MISSING, budget=NOISELESS)
    found = with_losses(of, tmp_path, lambda step, party, before: (step, party, before) == ("sum_open", "p1", 1))
    assert found.model.lost == 1
    assert found.path is not None
    assert np.array_equal(found.path[1], found.path[2])
    assert not np.array_equal(found.path[2], found.path[3])


def test_a_killed_party_is_left_out_and_two_end_the_run(tmp_path: Path) -> None:
    of = study(MISSING, budget=NOISELESS)
    killed = with_losses(of, tmp_path, lambda step, party, before: step != "ready" and party == "p3" and before > 0)
    assert killed.model.present == ("p0", "p1", "p2")
    with pytest.raises(PartyError, match="step 'contribute'"):
        with_losses(of, tmp_path / "two", lambda step, party, _: step == "contribute" and party in ("p0", "p3"))


def test_a_lost_round_of_the_few_keeps_the_curvature(tmp_path: Path) -> None:
    of = study(f'{BINARY}scheme = "newton"\niterations = 4\nmissing = 1\npath = true', budget=NOISELESS)
    found = with_losses(of, tmp_path, lambda step, party, before: (step, party, before) == ("sum_open", "p1", 1))
    assert found.model.lost == 1
    assert found.path is not None
    # the lost round changes nothing, and those after it still have the curvature of the first
    assert np.array_equal(found.path[1], found.path[2])
    whole = learnt(of)
    assert whole.path is not None
    assert np.linalg.norm(found.path[-1] - whole.path[-1]) < 0.1 * np.linalg.norm(whole.path[-1])
