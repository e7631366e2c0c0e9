"""`syndic recompute`: a release and the signed replies that it follows from."""

from pathlib import Path

from click.testing import CliRunner

from organisations import COORDINATOR, agreed_nodes, homes_for
from support import CASES
from syndic.cli.main import cli
from syndic.runtime import Local
from syndic.study.run import run_study


def test_a_release_is_recomputed_or_the_file_that_differs_is_named(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "marginals gaussian")
    study, homes = homes_for(case.study, case.sources, tmp_path)
    local = Local(agreed_nodes(study, homes))
    run_study(study, local, identity=COORDINATOR, replies=tmp_path / "replies").write(tmp_path / "run")
    local.close()
    words = ["recompute", str(tmp_path / "run"), "--replies", str(tmp_path / "replies")]
    said = CliRunner().invoke(cli, words)
    assert (said.exit_code, "every published file follows" in said.output) == (0, True)
    note = tmp_path / "run" / "marginals.json"
    note.write_text(note.read_text().replace('"standard_deviation": ', '"standard_deviation": 1'))
    said = CliRunner().invoke(cli, words)
    assert (said.exit_code, str(said.exception).partition(":")[0]) == (1, "marginals.json")
