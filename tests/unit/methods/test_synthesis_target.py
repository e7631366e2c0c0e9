"""A target and sets of columns to keep: measured, held by the model, and refused where they cannot be."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from syndic import Study
from syndic.errors import InputError
from syndic.study import simulate
from unit.methods.synthesising import result

NAMES = ("a", "b", "c", "d", "e", "f")


def study(parameters: str, *, apart: bool = False, spread: str = "") -> Study:
    """Return a study of six columns with four values, money in open bins, and a label."""
    listed = "".join(
        f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = 3\nmissing = {{ value = 0 }}\n'
        for name in NAMES
    )
    parties = (
        '[[parties]]\nname = "x"\npeople = 4000\ncolumns = ["a", "b", "c", "money"]\n'
        '[[parties]]\nname = "z"\npeople = 4000\ncolumns = ["d", "e", "f", "y"]\n'
        if apart
        else '[[parties]]\nname = "x"\npeople = 4000\n[[parties]]\nname = "z"\npeople = 4000\n'
    )
    neighbours = "replace" if apart else "add_remove"
    return Study.loads(
        f'name = "target"\n[unit]\nneighbours = "{neighbours}"\n[budget]\nepsilon = 2\ndelta = 1e-7\n'
        f'[protocol]\nmethod = "synthesis"\n{parameters}\n{parties}{listed}'
        f'[[schema.columns]]\nname = "money"\nkind = "real"\nlower = 0\nupper = 1e6\nscale = "symlog"\n{spread}\n'
        '[[schema.columns]]\nname = "y"\nkind = "boolean"\nmissing = { value = false }\n'
    )


def rows(seed: int, count: int = 4000) -> dict[str, NDArray[Any]]:
    """Return rows whose label depends weakly on every column."""
    chance = np.random.default_rng(seed)
    columns: dict[str, NDArray[Any]] = {name: chance.integers(0, 4, count) for name in NAMES}
    columns["money"] = np.minimum(chance.lognormal(7, 1.5, count), 1e6)
    score = sum(columns[name] - 1.5 for name in NAMES) + np.log(columns["money"]) - 7
    columns["y"] = chance.random(count) < 1 / (1 + np.exp(-0.4 * score))
    return columns


def sources() -> dict[str, pa.Table]:
    return {"x": pa.table(rows(1)), "z": pa.table(rows(2))}


def test_the_model_holds_the_target_with_every_column() -> None:
    made = result(simulate(study('target = "y"'), sources(), seed=5))
    for name in (*NAMES, "money"):
        assert any({name, "y"} <= set(clique) for clique in made.note.cliques), name
    # the first round counts every column with the target
    assert {frozenset(names) for names in made.note.rounds[0].tables} == {
        frozenset((name, "y")) for name in (*NAMES, "money")
    }


def test_sets_to_keep_are_measured_and_held() -> None:
    made = result(simulate(study('keep = [["a", "f"], ["b", "c", "y"]]'), sources(), seed=5))
    last = {frozenset(names) for names in made.note.rounds[-1].tables}
    for names in ({"a", "f"}, {"b", "c", "y"}):
        assert frozenset(names) in last
        assert any(names <= set(clique) for clique in made.note.cliques)


def test_columns_of_two_parties_have_them_too() -> None:
    whole = rows(3)
    held = {
        "x": pa.table({name: whole[name] for name in ("a", "b", "c", "money")}),
        "z": pa.table({name: whole[name] for name in "defy"}),
    }
    made = result(simulate(study('target = "y"\nkeep = [["a", "d"]]', apart=True), held, seed=5))
    for name in (*NAMES, "money"):
        assert any({name, "y"} <= set(clique) for clique in made.note.cliques), name
    assert frozenset(("a", "d")) in {frozenset(names) for names in made.note.rounds[-1].tables}


def test_money_in_open_bins_keeps_its_mean() -> None:
    made = result(simulate(study('target = "y"'), sources(), seed=5))
    real = np.mean([rows(1)["money"].mean(), rows(2)["money"].mean()])
    drawn = np.nanmean(made.table.to_arrow()["money"].to_numpy(zero_copy_only=False).astype(float))
    assert abs(drawn / real - 1) < 0.25


def test_groups_of_open_bins_are_neighbours() -> None:
    made = result(simulate(study(""), sources(), seed=5))
    groups = made.note.groups[list(made.table.names).index("money")]
    ordered = groups[:-1]
    assert list(ordered) == sorted(ordered)
    assert len(set(ordered)) <= 16
    assert groups[-1] == max(groups), "the level of missing values stays by itself"


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ('target = "z"', "target: 'z' is not a column"),
        ('keep = [["a", "q"]]', "keep: 'q' is not a column"),
        ('keep = [["a"]]', "at least two columns"),
        ('keep = [["a", "a"]]', "each once"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_a_run(parameters: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        study(parameters).check()


def test_a_set_too_large_to_measure_is_refused() -> None:
    names = ", ".join(f'"{name}"' for name in (*NAMES, "money", "y"))
    with pytest.raises(InputError, match="cells, and at most"):
        study(f"keep = [[{names}]]").check()


def test_the_charge_does_not_depend_on_target_or_keep() -> None:
    costs = {str(study(parameters).costs) for parameters in ('target = "y"', 'target = "y"\nkeep = [["a", "b"]]')}
    assert len(costs) == 1
