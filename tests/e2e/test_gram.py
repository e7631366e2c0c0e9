"""A regression across organisations, each in a process of its own: from files to intervals, with unseeded noise."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from support import charges
from syndic import Release, Study, simulate
from syndic.cli.main import main
from syndic.sklearn import GramRegression

COUNT = 4000
SLOPES = {"x0": 0.4, "x1": -0.3, "x2": 0.2}


def study_text(parties: int) -> str:
    """Return a study whose columns x0, x1, ... and y are spread over so many parties."""
    names = [*SLOPES, "y"]
    held = [names[place::parties] for place in range(parties)]
    members = "".join(
        f'[[parties]]\nname = "p{place}"\npeople = {COUNT}\ncolumns = {json.dumps(part)}\n'
        for place, part in enumerate(held)
    )
    columns = "".join(
        f'[[schema.columns]]\nname = "{name}"\nkind = "real"\nlower = -1.0\nupper = 1.0\nbins = 500\n'
        "missing = { value = 0.0 }\n"
        for name in names
    )
    return f"""
name = "regression"
[unit]
neighbours = "replace"
[budget]
epsilon = 2.0
delta = 1e-7
[protocol]
method = "gram"
{members}
{columns}
"""


def write_rows(folder: Path, study: Study) -> dict[str, str]:
    generator = np.random.default_rng(1)
    x = generator.uniform(-1, 1, (COUNT, 3))
    y = 0.1 + x @ list(SLOPES.values()) + generator.uniform(-0.1, 0.1, COUNT)
    table = pa.table({**dict(zip(SLOPES, x.T, strict=True)), "y": y})
    for party in study.parties:
        pa.csv.write_csv(table.select(list(party.columns or ())), folder / f"{party.name}.csv")
    return {party.name: str(folder / f"{party.name}.csv") for party in study.parties}


@pytest.mark.parametrize("parties", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_regression_in_processes(parties: int, tmp_path: Path) -> None:
    study = Study.loads(study_text(parties))
    release = simulate(study, write_rows(tmp_path, study), runtime="processes", folder=tmp_path)
    assert release.statement.protects
    for party in study.parties:
        # the counts, then the sums
        charged = [entry.events for entry in charges(tmp_path, party.name)]
        assert charged == [(event,) for event in study.plan.events(party.name)]
        assert len(charged) == 2
    model = GramRegression("y").fit(release)
    # by a chance of 1e-6 for each coefficient the noise of this run is beyond its own interval
    bounds = dict(zip(model.inference_.names, model.inference_.intervals(1 - 1e-6), strict=True))
    for name, slope in SLOPES.items():
        assert bounds[name][0] < slope < bounds[name][1]
        assert bounds[name][1] - bounds[name][0] < 1


def test_the_command_line_writes_what_a_model_can_be_fitted_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = study_text(3)
    (tmp_path / "study.toml").write_text(text)
    sources = write_rows(tmp_path, Study.loads(text))
    given = [word for name, path in sources.items() for word in ("-s", f"{name}={path}")]
    out = tmp_path / "run"
    monkeypatch.setattr("sys.argv", ["syndic", "simulate", str(tmp_path / "study.toml"), *given, "--out", str(out)])
    main()
    assert "Coefficients in the columns' own units, without intervals" in capsys.readouterr().out
    assert (out / "gram.parquet").exists()
    assert (out / "report.html").exists()
    model = GramRegression("x1", features=["y", "x0"]).fit(Release.load(out))
    assert model.statement_.epsilon == pytest.approx(2)
    assert model.predict(np.zeros((4, 2))).shape == (4,)
