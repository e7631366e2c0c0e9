"""Marginals, conditions, likelihoods and storage, against brute force over the joint."""

import itertools
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from syndic.data import Domain, Factor
from syndic.errors import InputError
from syndic.model.markov import Impossible, MarkovField, plan_tree
from syndic.model.markov.pairs import _Sweep, pair_tables
from syndic.model.markov.query import Queries
from unit.model.markov.joint import fields, joint


@given(fields())
@settings(max_examples=60)
def test_every_marginal_is_the_sum_of_the_joint(field: MarkovField) -> None:
    table = joint(field)
    sets = [names for count in range(1, 5) for names in itertools.permutations(field.domain.names, count)]
    step = max(1, len(sets) // 25)
    for names, found in zip(sets[::step], field.marginals(sets[::step]), strict=True):
        assert found.domain.names == names
        np.testing.assert_allclose(found.values, table.project(names).values, rtol=1e-9, atol=1e-12)


@given(fields())
@settings(max_examples=30)
def test_what_is_impossible_has_no_probability_at_all(field: MarkovField) -> None:
    for zero in field.impossible:
        assert field.marginal(zero.names).values[zero.cells].sum() == 0
    assert field.marginal(()).values == pytest.approx(field.total)


@given(fields(), st.data())
@settings(max_examples=40)
def test_a_condition_is_a_slice_of_the_joint(field: MarkovField, data: st.DataObject) -> None:
    table = joint(field).values
    names = data.draw(st.lists(st.sampled_from(field.domain.names), min_size=1, max_size=2, unique=True))
    codes = {name: data.draw(st.integers(0, field.domain[name] - 1)) for name in names}
    place = tuple(codes.get(name, slice(None)) for name in field.domain.names)
    cut = np.zeros_like(table)
    cut[place] = table[place]
    assume(cut.sum() >= 1e-9)
    conditioned = field.condition(codes)
    assert conditioned.total == pytest.approx(cut.sum())
    for count in (1, 2):
        for wanted in itertools.combinations(field.domain.names, count):
            expected = Factor(field.domain, cut).project(wanted).values
            np.testing.assert_allclose(conditioned.marginal(wanted).values, expected, rtol=1e-8, atol=1e-10)


@given(fields())
@settings(max_examples=20)
def test_a_stored_model_is_the_same_model(tmp_path_factory: pytest.TempPathFactory, field: MarkovField) -> None:
    path = tmp_path_factory.mktemp("model") / "model.npz"
    field.save(path)
    again = MarkovField.load(path)
    assert (again.domain, again.tree, again.total) == (field.domain, field.tree, field.total)
    for mine, other in zip(field.beliefs, again.beliefs, strict=True):
        np.testing.assert_array_equal(mine, other)


def chain() -> MarkovField:
    domain = Domain(tuple("abc"), (2, 3, 4))
    generator = np.random.default_rng(1)
    potentials = tuple(
        Factor(domain.project(names), generator.normal(size=domain.project(names).sizes)) for names in ("ab", "bc")
    )
    return MarkovField(domain, plan_tree(domain, ["ab", "bc"]), potentials, 10.0)


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    chain().save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    for changed in (
        {**arrays, "potential_0": np.zeros((3, 3))},
        {name: array for name, array in arrays.items() if name != "potential_1"},
        {**arrays, "description": np.frombuffer(b"{}", dtype=np.uint8)},
        {**arrays, "potential_0": np.array([[object()]])},
    ):
        with path.open("wb") as file:
            np.savez(file, **changed)
        with pytest.raises(InputError, match=r"model\.npz"):
            MarkovField.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"model\.npz"):
        MarkovField.load(path)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"total": -5.0}, "total"),
        ({"total": 0.0}, "total"),
        ({"cliques": [["c", "b"], ["a", "b"]]}, "the domain's order"),
        ({"cliques": [["b", "b", "c"], ["a", "b"]]}, "must be distinct"),
        ({"sizes": [2, 3, 10**12]}, "3,000,000,000,006 cells"),
        ({"potentials": [["a", "c"]]}, "potential_0 has shape"),
        ({"names": ["a", "b", "c", "d"], "sizes": [2, 3, 4, 2], "cliques": [["b", "c"], ["a", "b"], ["d"]]}, "parent"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(tmp_path: Path, changed: dict[str, object], text: str) -> None:
    path = tmp_path / "model.npz"
    chain().save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    told = json.loads(arrays["description"].tobytes()) | changed
    told["parents"] = [-1, 0, -1][: len(told["cliques"])]
    arrays["description"] = np.frombuffer(json.dumps(told).encode(), dtype=np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=text):
        MarkovField.load(path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_potentials_that_are_no_numbers_are_refused(tmp_path: Path, value: float) -> None:
    path = tmp_path / "model.npz"
    chain().save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["potential_0"][0, 0] = value
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="potentials"):
        MarkovField.load(path)


def test_a_header_that_promises_more_than_it_says_allocates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    chain().save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["description.npy"] = parts["description.npy"].replace(b"'shape': (", b"'shape': (9999999", 1)
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    with pytest.raises(InputError, match="description has shape"):
        MarkovField.load(path)


def test_a_question_too_large_is_refused_with_its_number() -> None:
    field = chain()
    queries = Queries(field.tree, field.beliefs, most_cells=20)
    with pytest.raises(InputError, match="24 cells"):
        queries.table(("a", "b", "c"))
    assert queries.table(("a", "c")).shape == (2, 4)


@pytest.mark.parametrize("most_cells", [8**4, 8**3])
def test_a_large_question_is_answered_some_levels_at_a_time(monkeypatch: pytest.MonkeyPatch, most_cells: int) -> None:
    names = tuple(f"c{place}" for place in range(6))
    domain = Domain(names, (8,) * len(names))
    draws = np.random.default_rng(1)
    pairs = list(itertools.pairwise(names))
    tables = tuple(Factor(domain.project(one), draws.normal(size=(8, 8))) for one in pairs)
    field = MarkovField(domain, plan_tree(domain, pairs), tables, 100.0)
    whole = Queries(field.tree, field.beliefs, 1 << 20)
    wanted = {one: whole.table(one) for one in [("c0", "c3", "c5"), ("c5", "c0", "c2"), ("c1", "c5")]}
    monkeypatch.setattr("syndic.model.markov.query.USUAL_CELLS", 1)
    queries = Queries(field.tree, field.beliefs, most_cells)
    assert field.tree.cells < 8**3
    for one, expected in wanted.items():
        np.testing.assert_allclose(queries.table(one), expected, rtol=1e-12)


@pytest.mark.parametrize(("names", "word"), [(("a", "x"), "unknown"), (("a", "a"), "distinct")])
def test_a_question_about_what_is_not_there_is_refused(names: tuple[str, ...], word: str) -> None:
    with pytest.raises(InputError, match=word):
        chain().marginal(names)


def test_a_condition_that_cannot_be_met_is_refused() -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        chain().condition({"a": 2})
    field = chain()
    zero = Impossible(("a",), np.array([True, False]))
    with pytest.raises(InputError, match="no rows"):
        MarkovField(field.domain, field.tree, field.potentials, 10.0, (zero,)).condition({"a": 0})
    with pytest.raises(InputError, match="impossible"):
        MarkovField(field.domain, field.tree, (), 1.0, (Impossible(("a",), np.array([True, True])),)).marginal(("b",))


@given(fields(), st.sampled_from([0, 40, None]))
@settings(max_examples=60)
def test_pairs_in_one_sweep_are_those_of_the_joint(field: MarkovField, room: int | None) -> None:
    table = joint(field)
    queries = Queries(field.tree, field.beliefs, 1 << 20)
    pairs = [names for names in itertools.combinations(field.domain.names, 2) if field.tree.home(names) is None]
    found = pair_tables(queries, pairs, room)
    assert set(found) == set(pairs) if room is None else set(found) <= set(pairs)
    for names, values in found.items():
        np.testing.assert_allclose(field.total * values, table.project(names).values, rtol=1e-9, atol=1e-12)


def test_pairs_without_room_are_found_with_some_columns_at_a_time() -> None:
    names = tuple(f"c{place}" for place in range(24))
    domain = Domain(names, (6,) * len(names))
    draws = np.random.default_rng(1)
    cliques = [(names[place], names[place + 1], names[place + 2]) for place in range(len(names) - 2)]
    tables = tuple(Factor(domain.project(one), draws.normal(size=(6, 6, 6))) for one in cliques)
    field = MarkovField(domain, plan_tree(domain, cliques), tables, 100.0)
    queries = Queries(field.tree, field.beliefs, 1 << 20)
    pairs = [one for one in itertools.combinations(names, 2) if field.tree.home(one) is None]
    room = 36 * 6 * 12
    once, found = _Sweep(queries, frozenset(pairs), room).found, pair_tables(queries, pairs, room)
    assert len(once) < len(pairs) // 2 < len(found)
    for one in list(found)[::17]:
        np.testing.assert_allclose(found[one], queries.table(one), rtol=1e-9, atol=1e-12)
