"""The scikit-learn style wrapper: parameters, frames in and out, what a fit costs."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.base import clone

import syndic as sy
from syndic import Ledger, Schema
from syndic.data import Instead
from syndic.errors import InputError, SyndicError
from syndic.methods.histogram.homm import MergedTable
from syndic.sklearn import HommSynthesizer

SCHEMA = Schema(
    columns=(
        sy.Boolean(name="smoker", missing=Instead(value=False)),
        sy.Integer(name="age", lower=18, upper=95, bins=6, missing=Instead(value=50)),
    )
)


def frame(count: int = 300, seed: int = 1) -> pd.DataFrame:
    draws = np.random.default_rng(seed)
    return pd.DataFrame({"smoker": draws.random(count) < 0.3, "age": draws.integers(18, 96, count), "id": range(count)})


def charges(path: Path) -> int:
    with Ledger.open(path) as ledger:
        ledger.verify()
        return sum(entry.kind == "reserve" for entry in ledger.entries())


def counts_of(synthesizer: HommSynthesizer) -> np.ndarray[Any, np.dtype[np.int64]]:
    result = synthesizer.release_.result
    assert isinstance(result, MergedTable)
    return sum(counts.dense().values for counts in result.histograms.values())  # type: ignore[return-value]


def test_parameters_are_stored_as_given_and_cloned() -> None:
    people = {"a": 10}
    made = HommSynthesizer(SCHEMA, "1/3", people=people, at_least=2)
    assert made.get_params()["people"] is people
    assert made.get_params(deep=False)["epsilon"] == "1/3"
    copy = clone(made)
    assert copy is not made
    assert copy.get_params() == made.get_params()
    assert not hasattr(clone(made.set_params(people=None, seed=1).fit(frame())), "release_")


def test_set_params_and_repr_show_what_differs_from_the_defaults() -> None:
    made = HommSynthesizer(SCHEMA)
    assert repr(made) == "HommSynthesizer(schema=<smoker, age>)"
    assert repr(made.set_params(epsilon=0.5, noise="gaussian")) == (
        "HommSynthesizer(schema=<smoker, age>, epsilon=0.5, noise='gaussian')"
    )
    with pytest.raises(InputError, match="unknown parameter 'epsilom'"):
        made.set_params(epsilom=1)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (frame(), pd.DataFrame),
        (pl.DataFrame(frame()), pl.DataFrame),
        (pl.LazyFrame(frame()), pl.DataFrame),
        (pa.table(frame()), pa.Table),
        ({"north": frame(seed=1), "south": frame(seed=2)}, pd.DataFrame),
    ],
    ids=["pandas", "polars", "lazy", "arrow", "parties"],
)
def test_samples_are_of_the_kind_that_was_fitted(given: Any, kind: type) -> None:
    made = HommSynthesizer(SCHEMA, seed=1).fit(given)
    for sample in (made.sample(), made.sample(7)):
        assert isinstance(sample, kind)
    assert len(made.sample()) == counts_of(made).sum() == len(made.release_.table)
    assert len(made.sample(7)) == 7
    assert len(made.sample(0)) == 0
    assert pa.table(made.sample(7)).column_names == ["smoker", "age"]


def test_a_path_is_read_and_answered_with_arrow(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "rows.csv", index=False)
    assert isinstance(HommSynthesizer(SCHEMA, seed=1).fit(tmp_path / "rows.csv").sample(3), pa.Table)


def test_counts_are_those_of_the_rows_where_noise_is_nothing() -> None:
    rows = frame()
    made = HommSynthesizer(SCHEMA, epsilon=60).fit({"a": rows[:100], "b": rows[100:]})
    wanted = np.histogram2d(rows["smoker"], rows["age"], [[0, 0.5, 1], [18, 31, 44, 57, 70, 83, 96]])[0]
    assert (counts_of(made) == wanted).all()
    assert made.statement_.protects
    assert [party.party for party in made.statement_.parties] == ["a", "b"]


@pytest.mark.statistical
def test_rows_drawn_anew_follow_the_noisy_counts_in_random_order() -> None:
    made = HommSynthesizer(SCHEMA, epsilon=1).fit({"a": frame(seed=1), "b": frame(200, seed=2)})
    rows = made.sample(20_000)
    found = np.histogram2d(rows["smoker"], rows["age"], [[0, 0.5, 1], [18, 31, 44, 57, 70, 83, 96]])[0].ravel()
    chances = counts_of(made).ravel() / counts_of(made).sum()
    assert found[chances == 0].sum() == 0
    kept = chances > 0
    assert stats.chisquare(found[kept], 20_000 * chances[kept]).pvalue > 1e-7
    halves = [rows["smoker"][:10_000].mean(), rows["smoker"][10_000:].mean()]
    assert abs(halves[0] - halves[1]) < 0.05  # cell order would put all smokers last


def test_a_seed_repeats_and_says_that_nobody_is_protected() -> None:
    first, second = (HommSynthesizer(SCHEMA, epsilon=0.1, seed=3).fit(frame()) for _ in range(2))
    assert first.sample().equals(second.sample())
    assert first.sample(50).equals(second.sample(50))
    assert not first.statement_.protects
    other = HommSynthesizer(SCHEMA, epsilon=0.1, seed=4).fit(frame())
    assert (counts_of(first) != counts_of(other)).any()


def test_without_a_seed_every_fit_draws_new_noise() -> None:
    made = HommSynthesizer(SCHEMA, epsilon=0.01)
    # 12 cells of noise of scale 100: equal by chance less than once in 10^20
    first = counts_of(made.fit(frame()))
    assert (first != counts_of(made.fit(frame()))).any()


def test_every_fit_is_charged_and_sampling_is_not(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    made = HommSynthesizer(SCHEMA, epsilon=1, ledger=path, dataset="clinic", cap=2.5)
    made.fit(frame())
    assert charges(path) == 1
    made.sample()
    made.sample(1000)
    assert charges(path) == 1
    made.fit(frame())
    assert charges(path) == 2
    before = made.release_
    with pytest.raises(SyndicError, match=r"spent 2 of epsilon 2.5, .*left 0.5"):
        made.fit(frame())
    assert charges(path) == 2
    assert made.release_ is before
    made.set_params(epsilon=0.5, cap=None).fit(frame())
    with Ledger.open(path) as ledger:
        assert ledger.spent("clinic").left == 0


def test_each_party_has_its_own_account_and_nothing_is_spent_if_one_is_full(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    made = HommSynthesizer(SCHEMA, epsilon=1, ledger=path, cap=1)
    made.fit({"a": frame()})
    with pytest.raises(SyndicError, match=r"data\.a"):
        made.fit({"b": frame(), "a": frame()})
    with Ledger.open(path) as ledger:
        assert ledger.spent("data.b").epsilon == 0
        assert ledger.spent("data.a").epsilon == 1


def test_the_ledger_decides_about_the_cap(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with pytest.raises(InputError, match=r"'data' is not in the ledger yet: give cap"):
        HommSynthesizer(SCHEMA, ledger=path).fit(frame())
    HommSynthesizer(SCHEMA, ledger=path, cap=1).fit(frame())
    with pytest.raises(InputError, match="cap differs"):
        HommSynthesizer(SCHEMA, ledger=path, cap=5).fit(frame())
    assert charges(path) == 1


def test_gaussian_noise_and_replace_need_public_sizes() -> None:
    made = HommSynthesizer(SCHEMA, 1, delta=1e-6, noise="gaussian")
    with pytest.raises(InputError, match="people"):
        made.fit(frame())
    statement = made.set_params(people=300).fit(frame()).statement_
    assert statement.delta == 1e-6
    assert 0.9 < statement.epsilon <= 1
    replaced = HommSynthesizer(SCHEMA, 1, neighbours="replace", people={"a": 300, "b": 100})
    parties = replaced.fit({"a": frame(), "b": frame(100)}).statement_.parties
    assert all("scale 2" in party.events[0].what for party in parties)
    # a party with other rows than it declared is cut or padded: no number of rows stops a run
    assert len(replaced.fit({"a": frame(299), "b": frame(101)}).sample(40)) == 40


def test_rows_beyond_the_persons_bound_are_left_out() -> None:
    rows = frame(90)
    rows["id"] = rows["id"] % 30
    made = HommSynthesizer(SCHEMA, epsilon=60, person="id").fit(rows)
    assert counts_of(made).sum() == 30


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"schema": None}, "schema is missing"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": "much"}, "much"),
        ({"at_least": 0}, "at_least"),
        ({"neighbours": "none"}, "neighbours"),
        ({"parties_per_person": 2}, "parties"),
        ({"seed": 1, "ledger": "x.sqlite", "cap": 1}, "seeded fit is not private"),
    ],
)
def test_what_cannot_work_is_said_at_fit(
    parameters: dict[str, Any], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = HommSynthesizer(**{"schema": SCHEMA, **parameters})
    with pytest.raises(InputError, match=text):
        made.fit(frame())
    assert list(tmp_path.iterdir()) == []


def test_misuse_is_refused() -> None:
    made = HommSynthesizer(SCHEMA, seed=1)
    with pytest.raises(InputError, match="not fitted: call fit"):
        made.sample()
    with pytest.raises(InputError, match="not fitted: call fit"):
        made.sample(3)
    with pytest.raises(InputError, match="y must be None"):
        made.fit(frame(), y=frame()["smoker"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="X is empty"):
        made.fit({})
    with pytest.raises(InputError, match=r"n_samples \(-1\)"):
        made.fit(frame()).sample(-1)


def test_nothing_to_draw_from_is_said() -> None:
    made = HommSynthesizer(SCHEMA, epsilon=60, seed=1).fit(frame(0))
    assert len(made.sample()) == len(made.sample(0)) == 0
    with pytest.raises(InputError, match="all noisy counts are 0"):
        made.sample(1)
