"""Forecasts of what noise does: within a factor of two of what simulations measure, graded by one rule, and quick."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

import syndic as sy
from support import CASES, COLUMNS, VERTICAL, across_study, mixing_study, study_text
from syndic import Study
from syndic.advice import Advice, Assumptions, NoiseAdvice, advise, published, warning
from syndic.advice.advice import RULE, PublishedError
from syndic.advice.artificial import CROWDS, made_up
from syndic.advice.learning import _people as with_label
from syndic.advice.published import advise_published
from syndic.cli.main import cli
from syndic.data import decode_codes
from syndic.data.coding import coding_of
from syndic.errors import InputError
from syndic.methods import Learn
from syndic.methods.learning.plan import LearnPlan
from syndic.methods.regression.gram_plan import GramPlan
from syndic.model.gram.fit import infer, regress
from syndic.report.write import coefficient_tables
from syndic.study import Release

PEOPLE = 2000
NUMBERS = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "real"\nlower = 0.0\nupper = 6.0\nbins = 60\n'
    "missing = { value = 0 }\n"
    for name in ("a", "b", "c", "y")
)


def apart(
    method: str, options: str = "", epsilon: float = 1.0, *, people: int = PEOPLE, columns: str = COLUMNS
) -> Study:
    """Return a study whose columns are at two parties."""
    parties = VERTICAL.replace("60", str(people))
    if columns is NUMBERS:
        parties = parties.replace('"colour", "age"', '"a", "b"').replace('"score"', '"c", "y"')
    make = mixing_study if method == "mixing" else lambda *given, **named: across_study(method, *given, **named)
    return make(options, parties=parties, columns=columns, budget=f"epsilon = {epsilon}\ndelta = 1e-7")


def together(
    method: str, options: str = "", epsilon: float = 1.0, *, columns: str = COLUMNS, pure: bool = False
) -> Study:
    """Return a study whose rows are at two parties."""
    parties = "".join(f'[[parties]]\nname = "{name}"\npeople = {PEOPLE // 2}\n' for name in ("north", "south"))
    return Study.loads(
        study_text(
            unit=f'neighbours = "{"add_remove" if pure else "replace"}"',
            budget=f"epsilon = {epsilon}" + ("" if pure else "\ndelta = 1e-7"),
            protocol=f'method = "{method}"\n{options}',
            parties=parties,
            columns=columns,
        )
    )


def run(study: Study, table: pa.Table, seed: int) -> Release:
    if study.partition == "vertical":
        return sy.simulate(study, {one.name: table.select(list(one.columns or ())) for one in study.parties}, seed=seed)
    half = PEOPLE // 2
    return sy.simulate(study, {"north": table.slice(0, half), "south": table.slice(half)}, seed=seed)


def drawn_rows(study: Study, seed: int) -> pa.Table:
    draws = np.random.default_rng(seed)
    codes = made_up(study.schema, CROWDS[seed % 3], PEOPLE, Assumptions(), draws)
    return decode_codes(study.schema, codes, draws).to_arrow()


def shares(study: Study, table: pa.Table, names: tuple[str, ...]) -> NDArray[np.float64]:
    domain = study.schema.domain.project(names)
    cells = domain.index([study.schema[name].encode(table[name]) for name in names])
    return np.bincount(cells, minlength=domain.size) / len(table)


def forecast(study: Study, start: str) -> float:
    return next(one.error for one in advise_published(study).errors if one.what.startswith(start))


def assert_close(expected: float, measured: list[float]) -> None:
    """Within a factor of two of the mean."""
    assert 0.5 < expected / float(np.mean(measured)) < 2, (expected, float(np.mean(measured)))


DRAWN = {
    "homm": lambda: together("homm", pure=True),
    "homm with little budget": lambda: together("homm", epsilon=0.2, pure=True),
    "homm gaussian": lambda: together("homm", 'noise = "gaussian"'),
    "synthesis": lambda: together("synthesis"),
    "synthesis with little budget": lambda: together("synthesis", epsilon=0.2),
    "synthesis across": lambda: apart("synthesis"),
    "glued": lambda: apart("glued"),
    "vertimrf": lambda: apart("vertimrf", 'way = "oracle"', 10),
}


@pytest.mark.parametrize("case", DRAWN)
def test_rows_that_are_drawn(case: str) -> None:
    study, measured = DRAWN[case](), []
    for seed in range(6):
        real = drawn_rows(study, seed)
        made = run(study, real, seed).table.to_arrow()
        measured += [
            float(np.abs(shares(study, real, pair) - shares(study, made, pair)).sum()) / 2
            for pair in combinations(study.schema.names, 2)
        ]
    assert_close(forecast(study, "tables of two columns"), measured)


@pytest.mark.parametrize(
    "study",
    [together("marginals"), together("marginals", 'noise = "laplace"'), apart("marginals")],
    ids=["marginals", "laplace", "across"],
)
def test_tables(study: Study) -> None:
    measured: dict[int, list[float]] = {}
    for seed in range(2):
        real = drawn_rows(study, seed)
        for one in run(study, real, seed).result.tables:  # type: ignore[attr-defined]
            true = PEOPLE * shares(study, real, one.domain.names)
            measured.setdefault(len(one.domain.names), []).append(
                float(np.abs(one.values.ravel() - true).sum()) / (2 * PEOPLE)
            )
    for ways, errors in measured.items():
        assert_close(forecast(study, "tables of one column" if ways == 1 else f"tables of {ways}"), errors)


def test_widths_of_tables_and_coefficients() -> None:
    """The forecast beside what intervals of a release say; and the epsilon at which they are narrow enough."""
    study = together("marginals", 'cliques = [["colour"]]', epsilon=0.3)
    release = run(study, drawn_rows(study, 0), 1)
    (told,) = advise_published(study).errors
    measured = [release.interval(f"mean(colour == '{level}')").wider or 1.0 for level in ("red", "blue")]
    assert told.wider == pytest.approx(float(np.sqrt(np.mean(np.square(measured)))), rel=0.3)
    wanted = 1 + (told.wider or 0.0) / 2
    least = advise(study, wider=wanted)
    assert isinstance(least, NoiseAdvice)
    assert least.epsilon is not None
    found = advise_published(together("marginals", 'cliques = [["colour"]]', epsilon=round(least.epsilon, 3))).errors
    assert found[0].wider == pytest.approx(wanted, rel=0.03)
    with pytest.raises(InputError, match="must be above 1"):
        advise(study, wider=1.0)
    gram = together("gram", "scaling = 0.0", columns=NUMBERS, epsilon=4)
    rng = np.random.default_rng(1)
    base = rng.normal(0, 1, (PEOPLE, 4)) @ np.linalg.cholesky(np.eye(4) * 0.8 + 0.2).T
    table = pa.table({name: np.clip(2.4 + base[:, place], 0, 6) for place, name in enumerate("abcy")})
    known = infer(run(gram, table, 1).result.gram, "y")  # type: ignore[attr-defined]
    wider = float(np.median((known.standard_errors() / known.standard_errors("sampling"))[1:]))
    told = next(one for one in advise_published(gram).errors if one.what.startswith("corr"))
    assert told.wider == pytest.approx(wider, rel=0.5)


def test_intervals_that_a_gram_matrix_will_not_have_are_not_forecast() -> None:
    """Plan and advice say it beforehand, and what gives some; the release then has none indeed."""
    few = apart("gram", columns=NUMBERS, people=1400)
    (told,) = (one for one in advise_published(few).errors if one.what.startswith("corr"))
    assert told.wider == np.inf
    for said in (str(told), *(note for note in few.plan.resources.notes if "intervals" in note)):
        assert "no intervals" in said
        assert "set `scaling = 0`" in said
    least = advise(few, wider=2.0)
    assert isinstance(least, NoiseAdvice)
    assert (least.epsilon or 0.0) > 1
    release = run(few, numbers(0, 1400), 1)
    assert not infer(release.result.gram, "y").reliable  # type: ignore[attr-defined]
    (grid,) = coefficient_tables(release)
    assert "without intervals" in grid.caption
    assert "No intervals: the people are so few" in grid.caption
    assert "[" not in str(grid.rows)
    for options, reason in (("norm = 0.5", "norm = 1"), ('target = "y"', "without `target`")):
        assert reason in apart("gram", options, columns=NUMBERS, people=1400).plan_as(GramPlan).no_intervals
    noisy = advise_published(apart("gram", "scaling = 0.0", 0.1, columns=NUMBERS, people=1400)).errors
    assert any("the noise is too large for intervals" in str(one) for one in noisy)
    many = advise_published(apart("gram", columns=NUMBERS, people=30_000)).errors
    assert all("no intervals" not in str(one) for one in many)


def test_a_declared_target_has_the_only_regression_in_the_table() -> None:
    study = apart("gram", 'target = "y"', columns=NUMBERS, epsilon=8)
    (grid,) = coefficient_tables(run(study, numbers(0), 1))
    assert grid.head == ("feature", "y")
    assert "[" in str(grid.rows)


def test_weighted_rows_are_forecast_in_people() -> None:
    def found(unit: str) -> tuple[PublishedError, ...]:
        parties = "".join(f'[[parties]]\nname = "{name}"\npeople = 5000\n' for name in "abc")
        budget = "epsilon = 1.0\ndelta = 1e-7"
        text = study_text(protocol='method = "marginals"', unit=unit, budget=budget, parties=parties)
        return advise_published(Study.loads(text)).errors

    linked = 'neighbours = "add_remove"\nperson = "id"\nrows = 3\nchoose = "weighted"'
    plain, weighted = found('neighbours = "add_remove"'), found(linked)
    assert [one.error for one in weighted] == pytest.approx([one.error for one in plain], rel=0.01)


def test_averages() -> None:
    study = together("average", 'servers = ["north", "south"]', columns=NUMBERS)
    measured = []
    for seed in range(3):
        real = numbers(seed)
        found = run(study, real, seed).result.averages  # type: ignore[attr-defined]
        measured += [
            abs(average - np.mean(real[name])) for name, average in zip(found.columns, found.averages, strict=True)
        ]
    # a standard deviation is a sixth of the range: 1
    assert_close(forecast(study, "average of a"), measured)


def numbers(seed: int, people: int = PEOPLE, r2: float = 0.3) -> pa.Table:
    """Return four columns with mean 2.4 and standard deviation 1; `y` follows the others."""
    draws = np.random.default_rng(seed)
    others = draws.normal(size=(people, 3))
    y = (r2 / 3) ** 0.5 * others.sum(axis=1) + (1 - r2) ** 0.5 * draws.normal(size=people)
    columns = np.clip(2.4 + np.column_stack([others, y]), 0, 6)
    return pa.table(dict(zip("abcy", columns.T, strict=True)))


def test_estimates() -> None:
    study = together("estimate", 'column = "a"\nfamily = { kind = "normal" }\nscheme = "masked"', 0.3, columns=NUMBERS)
    measured = []
    for seed in range(6):
        found = run(study, numbers(seed), seed).result
        measured.append(abs(float(found.estimates.together.estimate[0]) - 2.4))  # type: ignore[attr-defined]
    assert_close((2 / np.pi) ** 0.5 * forecast(study, "mean of a"), measured)


GRAMS = {
    "gram of rows": lambda: together("gram", columns=NUMBERS, epsilon=0.3),
    "gram": lambda: apart("gram", columns=NUMBERS, epsilon=0.3),
    "rmgm": lambda: apart("mixing", people=20_000, columns=NUMBERS, epsilon=8),
    "dgm": lambda: apart("mixing", 'scheme = "dgm"', people=20_000, columns=NUMBERS, epsilon=20),
    "bgm": lambda: apart("mixing", 'scheme = "bgm"', people=20_000, columns=NUMBERS, epsilon=20),
}


@pytest.mark.parametrize("case", GRAMS)
def test_correlations_and_predictions(case: str) -> None:
    study = GRAMS[case]()
    people = study.parties[0].people or 0 if study.partition == "vertical" else PEOPLE
    apart_by, lost = [], []
    for seed in range(4):
        table = numbers(seed, people)
        result = run(study, table, seed).result
        gram = result.gram if hasattr(result, "gram") else result.mixed.gram()  # type: ignore[attr-defined]
        codings = [coding_of(column, 10) for column in study.schema.columns]
        codes = {column.name: column.encode(table[column.name]) for column in study.schema.columns}
        values = np.hstack([one.rows(codes) for one in codings]) / 2**10
        true = np.cov(values.T, bias=True) * people
        places = [gram.index(name) for name in study.schema.names]
        # rescaled features are in units of their own
        moved = [(gram.features[place], coding.features[0]) for place, coding in zip(places, codings, strict=True)]
        halves = np.array([new.half / old.half for new, old in moved])
        middles = np.array([(new.middle - old.middle) / old.half for new, old in moved])
        means = gram.matrix[0, places] / people
        found = gram.matrix[np.ix_(places, places)] - people * np.outer(means, means)
        sizes, own = np.sqrt(np.diag(true)), np.sqrt(np.diag(found))
        # shortened rows have smaller sums, but the same correlations
        scale = own if gram.halved else sizes
        off = found / np.outer(scale, scale) - true / np.outer(sizes, sizes)
        apart_by += np.abs(off)[np.triu_indices(4, 1)].tolist()
        predicted = regress(gram, "y").predict((values[:, :3] - middles[:3]) / halves[:3])
        lost.append(_lost(values, middles[3] + halves[3] * predicted))
    assert_close(forecast(study, "correlation"), apart_by)
    # the loss has the square of the error, so twice its factor
    assert 0.25 < forecast(study, "prediction") / float(np.mean(lost)) < 4


def _lost(values: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    """Return how much less of the label's variance is explained than least squares explain."""
    rows, label = np.column_stack([np.ones(len(values)), values[:, :3]]), values[:, 3]
    best = rows @ np.linalg.lstsq(rows, label, rcond=None)[0]
    return float((np.square(label - predicted).mean() - np.square(label - best).mean()) / label.var())


@pytest.mark.parametrize(
    ("options", "epsilon"),
    [
        ('label = "colour"', 0.15),
        pytest.param(
            'label = "colour"\npositive = "green"\nscheme = "mpc_grad"\niterations = 20', 0.05, marks=pytest.mark.slow
        ),
        pytest.param('label = "colour"\nscheme = "newton"', 0.15, marks=pytest.mark.slow),
        ('label = "colour"\nscheme = "mpc_out"\nregularisation = 0.01', 0.1),
        pytest.param(
            'label = "score"\nloss = "ridge"\nscheme = "mpc_grad"\niterations = 20', 0.15, marks=pytest.mark.slow
        ),
    ],
)
def test_learnt_models(options: str, epsilon: float) -> None:
    study = together("learn", options, epsilon)
    plan, measured = study.plan_as(LearnPlan), []
    for seed in range(4):
        draws = np.random.default_rng(seed)
        codes = with_label(plan, Assumptions(), draws, PEOPLE)
        table = decode_codes(study.schema, codes, draws).to_arrow()
        exact = run(together("learn", options, 1e6), table, seed)
        # the loss varies much from one draw of the noise to another
        measured += [_right(exact, table) - _right(run(study, table, seed + 10 * more), table) for more in range(3)]
    assert_close(forecast(study, "prediction"), measured)


def _right(release: Release, table: pa.Table) -> float:
    """Return the share of right predictions, or R2."""
    protocol, predicted = release.study.protocol, np.asarray(release.model.predict(table))
    assert isinstance(protocol, Learn)
    if protocol.positive is not None:
        return float(np.mean((predicted == protocol.positive) == (np.asarray(table["colour"]) == protocol.positive)))
    if protocol.label == "score":
        true = np.asarray(table["score"])
        return 1 - float(np.square(true - predicted).mean() / true.var())
    return float(np.mean(predicted == np.asarray(table["colour"])))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_method_is_forecast_or_says_why_not(case: object) -> None:
    study = case.study  # type: ignore[attr-defined]
    study.check()
    told = warning(study)
    try:
        found = advise_published(study)
    except InputError as error:
        assert "publishes no number with noise that can be forecast" in str(error)  # noqa: PT017
        assert told == ""
        return
    assert all(one.error >= 0 for one in found.errors)
    assert [one.error for one in found.errors] == sorted((one.error for one in found.errors), reverse=True)
    # 100 people at epsilon 1 are few: nearly all are poor, and are told what to change
    assert bool(told) == (found.grade == "poor")
    if told:
        assert told.startswith("poor: ")
        assert ". Use a larger epsilon or more people, or " in told


def test_one_rule() -> None:
    grades = [PublishedError(what="", error=error, words="").grade for error in (0.0, 0.05, 0.051, 0.1, 0.101)]
    assert grades == ["good", "good", "fair", "fair", "poor"]
    assert RULE.startswith("good up to 0.05, fair up to 0.1, poor above")
    text = str(advise(together("marginals")))
    assert f"rule       {RULE}" in text
    assert "forecast   " in text
    assert "a count is off by about" in text


def test_less_budget_is_worse_and_declared_numbers_count() -> None:
    errors = [forecast(together("gram", columns=NUMBERS, epsilon=epsilon), "corr") for epsilon in (0.1, 1, 10)]
    assert errors[0] > errors[1] > errors[2]
    study = together("average", 'servers = ["north", "south"]', columns=NUMBERS)
    wide = advise_published(study, Assumptions.of(("a.sd=2",)))
    assert next(one.error for one in wide.errors if one.what == "average of a") == pytest.approx(
        forecast(study, "average of a") / 2
    )
    assert "declared: a" in wide.assumptions


def test_what_cannot_be_forecast_stops_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    parties = '[[parties]]\nname = "north"\n[[parties]]\nname = "south"\npeople = 9\n'
    study = Study.loads(study_text(parties=parties))
    assert warning(study) == ""
    with pytest.raises(InputError, match="set people for north in the study"):
        advise_published(study)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(published, "advise_published", broken)
    assert warning(Study.loads(study_text())) == ""


def test_a_plan_warns_only_of_a_poor_forecast(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(study_text())
    poor = CliRunner().invoke(cli, ["plan", str(path)])
    assert poor.exit_code == 0
    (line,) = [line for line in poor.output.splitlines() if "WARNING" in line]
    assert "the forecast is poor: tables of two columns, expected error" in line
    assert "or the method synthesis, which needs no grid" in line
    path.write_text(study_text(budget="epsilon = 30"))
    good = CliRunner().invoke(cli, ["plan", str(path)])
    assert "WARNING" not in good.output
    assert '"warning": ""' in CliRunner().invoke(cli, ["plan", str(path), "--json"]).output


def test_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(study_text(budget="epsilon = 1\ndelta = 1e-6", protocol='method = "marginals"'))
    result = CliRunner().invoke(cli, ["advise", str(path)])
    assert result.exit_code == 0, result.output
    assert "  forecast   poor: tables of 2 columns" in result.output
    assert not isinstance(advise(Study.load(path)), Advice)
    assert isinstance(advise(Study.load(path)), NoiseAdvice)
