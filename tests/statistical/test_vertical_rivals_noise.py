"""What rivals of the vertical synthesis publish has the noise that they state, no less and no more.

Each check squares what noise added to exact counts, which is chi-squared with as many degrees as there are counts; a
right implementation fails one of them with a chance of 1e-6 at most.
"""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from support import BOTH_LABELLED, VERTICAL, across_study
from syndic import Study
from syndic.data import Schema
from syndic.methods.comparison.distdiffgen import SplitNote
from syndic.methods.comparison.distdiffgen_plan import DistdiffgenPlan
from syndic.methods.comparison.dplt import LatentNote
from syndic.methods.comparison.glued import GluedPlan
from syndic.methods.synthesis.result import PublishedRows
from syndic.model.latent.diffgen import max_scores
from syndic.study import simulate

pytestmark = pytest.mark.statistical
ALLOWED = 1e-6
PEOPLE = 400
WIDE = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = {size - 1}\nbins = {size}\n'
    "missing = { value = 0 }\n"
    for name, size in {"colour": 8, "age": 30, "score": 40}.items()
)
BUDGET = "epsilon = 8\ndelta = 1e-5"


def study(method: str, options: str, parties: str) -> Study:
    return across_study(
        method, options, parties=parties.replace("people = 60", f"people = {PEOPLE}"), columns=WIDE, budget=BUDGET
    )


def run(agreed: Study) -> tuple[PublishedRows, dict[str, np.ndarray]]:
    """Run with fresh noise, on rows that do not matter."""
    draws = np.random.default_rng(1)
    table = pa.table({column.name: draws.integers(0, column.size, PEOPLE) for column in agreed.schema.columns})
    sources = {party.name: table.select(list(party.columns or ())) for party in agreed.parties}
    result = simulate(agreed, sources).result
    assert isinstance(result, PublishedRows)
    return result, _codes(agreed.schema, table)


def _codes(schema: Schema, table: pa.Table) -> dict[str, np.ndarray]:
    return {name: schema[name].encode(table[name]).astype(np.int64) for name in schema.names}


def tally(columns: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    return np.bincount(np.ravel_multi_index(columns, shape), minlength=int(np.prod(shape))).reshape(shape)


def likely(added: list[np.ndarray], variances: list[float]) -> bool:
    """Whether noise of these variances adds so much."""
    squares = sum(float((one**2).sum()) / variance for one, variance in zip(added, variances, strict=True))
    count = sum(one.size for one in added)
    chance = min(stats.chi2.cdf(squares, count), stats.chi2.sf(squares, count))
    return bool(2 * chance > ALLOWED)


def test_glued_tables_have_the_noise_of_a_party_s_part() -> None:
    agreed = study("glued", "", VERTICAL)
    result, codes = run(agreed)
    first = [
        one for one in result.tables if len(one.names) == 1 and one.values.shape == (agreed.schema[one.names[0]].size,)
    ]
    assert len(first) >= 3
    added = [one.values - tally([codes[one.names[0]]], one.values.shape) for one in first]
    assert likely(added, [one.variance for one in first])
    # a twentieth of half of the budget, for two columns at the first party: twice as much as that of one column
    whole = float(agreed.plan_as(GluedPlan).account.whole)
    assert first[0].variance == pytest.approx(2 * 2 / (whole / 2 / 20), rel=1e-3)


def test_tables_of_a_latent_tree_have_the_noise_that_is_stated() -> None:
    agreed = study("dplt", "levels = 8\ngroup_cells = 500", VERTICAL)
    result, codes = run(agreed)
    note = result.note
    assert isinstance(note, LatentNote)
    domain = agreed.schema.domain
    known = dict(codes)
    for name, columns in note.groups.items():
        cells = domain.project(columns).index([codes[one] for one in columns])
        known[name] = np.array(note.level_of[name])[cells]
    added = [one.values - tally([known[name] for name in one.names], one.values.shape) for one in result.tables]
    assert sum(one.size for one in added) > 300
    for one, table in zip(added, result.tables, strict=True):
        assert likely([one], [table.variance])


def test_leaves_and_scores_of_a_specialisation_have_the_noise_that_is_stated() -> None:
    agreed = study("distdiffgen", 'label = "colour"\nspecialisations = 6', BOTH_LABELLED)
    result, codes = run(agreed)
    note = result.note
    assert isinstance(note, SplitNote)
    (leaves,) = result.tables
    places = {}
    for name, groups in note.groups.items():
        labels = agreed.schema[name].labels()
        of = {label: place for place, group in enumerate(groups) for label in group}
        places[name] = np.array([of[label] for label in labels])[codes[name]]
    places["colour"] = codes["colour"]
    exact = tally([places[name] for name in leaves.names], leaves.values.shape)
    assert likely([leaves.values - exact], [leaves.variance])
    scores = []
    for name, tree in agreed.plan_as(DistdiffgenPlan).every.items():
        table = tally([codes[name], codes["colour"]], (agreed.schema[name].size, agreed.schema["colour"].size))
        scores.append(np.array(note.scores[name]) - max_scores(tree, table))
    assert likely(scores, [note.standard_deviation**2] * len(scores))
