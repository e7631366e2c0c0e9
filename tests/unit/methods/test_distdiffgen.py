"""Two-party specialisation: leaves are exact but for their noise, costs are as stated, lies and misuse are refused."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from runtimes import session_over
from support import BOTH_LABELLED, VERTICAL, Case, across_study, open_nodes, rows
from syndic import Release, Study
from syndic.errors import InputError, PartyError
from syndic.kernel import Nothing
from syndic.methods import Distdiffgen
from syndic.methods.comparison.distdiffgen import Chosen, SplitNote
from syndic.methods.comparison.distdiffgen_plan import DistdiffgenPlan
from syndic.methods.synthesis.result import PublishedRows
from syndic.mpc.dealer import deal_products
from syndic.noise import DiscreteLaplace
from syndic.privacy import Cost
from syndic.runtime import Local
from syndic.study import simulate
from unit.methods.noiseless import silent

LABEL = 'label = "colour"\nspecialisations = 4\n'
TREE = """
[[protocol.taxonomies]]
column = "age"
values = ["20-39", "40-59", "60-79"]
branches = [{ values = ["0-19", "80-99"] }]
"""


def agreed_study(options: str = LABEL, **parts: str) -> Study:
    return across_study("distdiffgen", options, **{"parties": BOTH_LABELLED, **parts})


def held(agreed: Study, table: pa.Table) -> dict[str, pa.Table]:
    return {party.name: table.select(list(party.columns or ())) for party in agreed.parties}


def protocol(agreed: Study) -> Distdiffgen:
    assert isinstance(agreed.protocol, Distdiffgen)
    return agreed.protocol


def found(release: Release) -> tuple[PublishedRows, SplitNote]:
    assert isinstance(release.result, PublishedRows)
    assert isinstance(release.result.note, SplitNote)
    return release.result, release.result.note


@pytest.mark.parametrize(
    "options", [LABEL, 'label = "colour"\nspecialisations = 1\n', LABEL + "colluding = 0", LABEL + TREE]
)
def test_without_noise_leaves_and_scores_are_exact(options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    silent(monkeypatch)
    agreed, table = agreed_study(options), rows(60, 3)
    result, note = found(simulate(agreed, held(agreed, table), seed=1))
    schema = agreed.schema
    texts = {name: [schema[name].labels()[code] for code in schema[name].encode(table[name])] for name in schema.names}
    (leaves,) = result.tables
    counts = np.zeros(leaves.values.shape)
    for place in range(60):
        cell = []
        for name in leaves.names:
            groups = [(text,) for text in schema[name].labels()] if name == "colour" else note.groups[name]
            cell.append(next(number for number, group in enumerate(groups) if texts[name][place] in group))
        counts[tuple(cell)] += 1
    assert np.array_equal(leaves.values, counts)
    assert "colour" in leaves.names
    splits = sum(len(groups) - 1 for groups in note.groups.values())
    assert splits >= protocol(agreed).specialisations
    for name, tree in agreed.plan_as(DistdiffgenPlan).every.items():
        root = 0
        for child in tree.children[0]:
            inside = [
                texts["colour"][place]
                for place in range(60)
                if schema[name].encode(table[name])[place] in tree.levels[child]
            ]
            root += max(inside.count(colour) for colour in set(inside)) if inside else 0
        assert note.scores[name][0] == root


def test_noise_covers_the_scores_of_both_parties_and_one_table() -> None:
    agreed = agreed_study(LABEL + "choice_share = 0.25", budget="epsilon = 1\ndelta = 1e-5")
    plan = agreed.plan_as(DistdiffgenPlan)
    whole = float(plan.account.whole)
    # age has 5 levels, 3 groups on a path; score has 4 bins and a level for missing values, so 3 as well
    moved = 2 * (2 * 3 - 1)
    assert plan.scored.variance(1) == pytest.approx(moved / (0.25 * whole), rel=1e-6)
    assert plan.account.noise_of(2, 1, 99).variance(2) == pytest.approx(2 * 2 / (0.75 * whole), rel=1e-6)
    assert 0.999 < float(Cost.of(agreed.plan.events("north")).epsilon(Fraction(1, 10**5))) <= 1


def test_rows_know_the_class_from_the_columns_of_both_parties() -> None:
    parties = BOTH_LABELLED.replace("people = 60", "people = 4000")
    agreed = agreed_study('label = "colour"\nspecialisations = 2', parties=parties, budget="epsilon = 10\ndelta = 1e-6")
    draws = np.random.default_rng(5)
    old, high = draws.integers(0, 2, 4000), draws.integers(0, 2, 4000)
    table = pa.table(
        {
            "colour": np.where(old & high, "red", "blue"),
            "age": np.where(old == 1, 90, 10),
            "score": np.where(high == 1, 0.9, -0.9),
        }
    )
    made = simulate(agreed, held(agreed, table), seed=2).table.to_arrow()
    both = (np.asarray(made["age"]) > 59) & (np.asarray(made["score"]) > 0.5)
    red = np.asarray(made["colour"]) == "red"
    assert np.mean(red[both]) > 0.9
    assert np.mean(red[np.asarray(made["age"]) < 40]) < 0.05


def test_parties_that_were_given_other_groups_open_nothing(tmp_path: Path) -> None:
    agreed = agreed_study()
    nodes = open_nodes(Case("here", agreed, held(agreed, rows(60, 3))), tmp_path)
    session = session_over(Local(nodes), agreed)
    made, plan = protocol(agreed), agreed.plan_as(DistdiffgenPlan)
    session.ask(made.score, Nothing())
    root, one = (0,), plan.every["age"].children[0]
    chosen = [Chosen(cut={"age": one, "score": root}), Chosen(cut={"age": root, "score": root})]
    session.ask(made.take_cut, dict(zip(session.parties, chosen, strict=True)))
    product = plan.round_of(chosen[0].cut, chosen[0].digest).product
    assert product is not None
    with pytest.raises(PartyError):
        deal_products(session, made, product)
    for node in nodes.values():
        assert sum(entry.kind == "reserve" for entry in node.state.ledger.entries()) == 1
        node.close()


@pytest.mark.parametrize(
    "cut", [{"age": (0,)}, {"age": (0,), "score": (1,)}, {"age": (0,), "score": (99,)}, {"age": (0, 0), "score": (0,)}]
)
def test_groups_that_are_no_cut_are_refused(cut: dict[str, tuple[int, ...]], tmp_path: Path) -> None:
    agreed = agreed_study()
    nodes = open_nodes(Case("here", agreed, held(agreed, rows(60, 3))), tmp_path)
    session = session_over(Local(nodes), agreed)
    session.ask(protocol(agreed).score, Nothing())
    with pytest.raises(PartyError, match="refused"):
        session.ask(protocol(agreed).take_cut, Chosen(cut=cut))
    for node in nodes.values():
        node.close()


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    agreed = agreed_study(LABEL + "rows = 25" + TREE)
    release = simulate(agreed, held(agreed, rows(60, 3)), seed=4)
    release.write(tmp_path)
    again = Release.load(tmp_path)
    assert again.study.digest == agreed.digest
    assert found(again)[1] == found(release)[1]
    assert again.table.to_arrow().equals(release.table.to_arrow())
    assert len(again.table) == 25


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        (LABEL, {"parties": VERTICAL}, "column of both parties"),
        (
            LABEL,
            {"parties": BOTH_LABELLED.replace('"score", "colour"', '"score", "colour", "age"')},
            "exactly one party",
        ),
        (LABEL, {"parties": BOTH_LABELLED + VERTICAL.split("\n\n")[1].replace("south", "east")}, "exactly two parties"),
        (LABEL, {"budget": "epsilon = 1"}, "delta above 0"),
        (LABEL + 'taxonomies = [{ column = "colour", values = ["red", "green", "blue"] }]', {}, "the label"),
        (LABEL + 'taxonomies = [{ column = "age", values = ["0-19", "other"] }]', {}, "no value 'other'"),
        (LABEL + 'taxonomies = [{ column = "age", values = ["0-19", "20-39"] }]', {}, "every value"),
    ],
)
def test_studies_that_cannot_run_are_refused(options: str, change: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        agreed_study(options, **change).check()


@pytest.mark.parametrize(
    "options", ["colluding = 2", "specialisations = 0", "choice_share = 1", "choice_share = 0", "rows = -1"]
)
def test_parameters_out_of_range_are_refused(options: str) -> None:
    with pytest.raises(InputError):
        agreed_study(f'label = "colour"\n{options}')


def test_sending_the_best_noisy_score_would_cost_more_than_naming_the_best() -> None:
    """The short cut that is not taken: noise of scale 2 / epsilon, enough to hide which of the candidates won."""
    epsilon, candidates = Fraction(1), 8
    noise = DiscreteLaplace(sensitivity=2, epsilon=epsilon)
    chances = {z: math.exp(-abs(z) / float(noise.scale)) for z in range(-200, 201)}
    whole = sum(chances.values())

    def best_below(score: int, limit: int) -> float:
        one = sum(chance for z, chance in chances.items() if score + z < limit) / whole
        return float(one**candidates)

    # one person moves the scores of all candidates by one, from 0 to 1; the largest factor between the two worlds
    factor = max(best_below(0, limit) / best_below(1, limit) for limit in range(-20, 20))
    assert factor > math.exp(float(epsilon)) ** 3
