"""A hostile coordinator of the default scheme of learning: whatever it sends, people stay within what noise covers.

From the cells of a source to the noise that is charged: tables, features, sums, sensitivities, shares, masks, ledger.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from runtimes import Lossy, session_over
from support import Case, charges, open_nodes
from syndic.data import Table, open_source
from syndic.errors import InputError
from syndic.kernel import Call, Delivery, Node, Reply, answer, decode, encode, run
from syndic.methods.learning.learn import Ask
from syndic.methods.learning.plan import LearnPlan, plan_of
from syndic.methods.learning.query import FewRoundQuery, Rows, batches
from syndic.methods.learning.scheme import FewSums
from syndic.model.erm import posterior
from syndic.model.erm.loss import Logistic
from syndic.model.erm.posterior import Layout, Posterior
from syndic.noise import FineGaussianShare
from unit.methods.learning import protocol_of, study

Numbers = NDArray[np.float64]
# every kind of column, with and without a level for missing values
COLUMNS = """
[[schema.columns]]
name = "colour"
kind = "categorical"
values = ["red", "green", "blue"]
[[schema.columns]]
name = "place"
kind = "categorical"
values = ["a", "b"]
missing = { value = "a" }
[[schema.columns]]
name = "smoker"
kind = "boolean"
[[schema.columns]]
name = "age"
kind = "integer"
lower = 0
upper = 99
[[schema.columns]]
name = "score"
kind = "real"
lower = -1.0
upper = 1.0
bins = 64
missing = { value = -1.0 }
"""
# cells inside, outside, missing and not a number
CELLS: dict[str, tuple[Any, ...]] = {
    "colour": ("red", "blue", "pink", None),
    "place": ("a", "b", None),
    "smoker": (True, False, None),
    "age": (0, 99, 50, None, 10**6),
    "score": (-1.0, 1.0, 0.01, None, float("nan"), float("inf")),
}
LABELS = {
    "one class": 'label = "colour"\npositive = "red"',
    "classes apart": 'label = "colour"',
    "softmax": 'label = "colour"\nloss = "softmax"',
    "ridge": 'label = "age"\nloss = "ridge"',
    "huber": 'label = "score"\nloss = "huber"',
}


def people(count: int) -> pa.Table:
    """Return rows of extreme cells: all first ones, all second ones, which are opposite, and drawn ones."""
    draws = np.random.default_rng(3)
    places = [draws.integers(60, size=5) for _ in range(count - 2)] + [np.zeros(5, int), np.ones(5, int)]
    return pa.table(
        {name: [cells[row[at] % len(cells)] for row in places] for at, (name, cells) in enumerate(CELLS.items())}
    )


def hostile(shape: tuple[int, int], draws: np.random.Generator) -> Numbers:
    """Return what a party accepts of a coordinator that sends anything: all finite numbers of the right shape."""
    sent = draws.normal(size=shape) * 10.0 ** draws.integers(-3, 7, size=(shape[0], 1))
    if draws.random() < 0.5:
        # nothing centred, one limit
        sent[:3] = np.array([[0.0], [draws.choice([1.0, -2.0, 1e6])], [10.0 ** draws.integers(-4, 2)]])
    if draws.random() < 0.3:
        odd = np.array([1.7e308, -1.7e308, 5e-324, -0.0, 2.0**20, -1e300])
        sent = np.where(draws.random(shape) < 0.4, draws.choice(odd, size=shape), sent)
    return np.asarray(sent)


def terms(plan: LearnPlan, query: FewRoundQuery, batch: Rows, sent: Numbers) -> list[list[int]]:
    """Return what each person adds to a party's sum, who has that row as often as a person may."""
    found = []
    for place in range(len(batch)):
        often = np.repeat([place], plan.terms.unit.rows)
        one = Rows(features=batch.features[often], labels=batch.labels[often])
        holding: Any = SimpleNamespace(batches=lambda one=one: [one], people=1, rows=plan.terms.unit.rows)
        found.append([int(each) for each in query.values(holding, sent)])
    return found


def worst(options: str, *, neighbours: str, rows: int = 1, parties: int = 1, messages: int = 20) -> dict[str, float]:
    """Return for each kind of sum the largest mu^2 that a person pays over what their parties are charged."""
    unit = f'neighbours = "{neighbours}"\nrows = {rows}\nparties = {parties}'
    of = study(f'scheme = "posterior"\niterations = 1\n{options}', unit=unit, columns=COLUMNS)
    # not the stored plan: faults are planted
    plan = plan_of(protocol_of(of), of.plan.terms)
    assert isinstance(plan.scheme, FewSums)
    (batch,) = batches(plan.design, Table(schema=plan.design.schema, source=open_source(people(12))))
    found, draws = defaultdict[str, float](float), np.random.default_rng(5)
    for noise, query in zip(plan.noise, plan.scheme.queries, strict=True):
        share, event = noise.charged["p0"].noise, noise.charged["p0"].event
        assert isinstance(share, FineGaussianShare)
        assert isinstance(query, FewRoundQuery)
        # of four parties one colludes: what hides a person is the noise of three
        hidden = 3 * share.sigma_squared - Fraction(1, 12)
        paid = parties * Fraction(event.mu_squared)  # type: ignore[union-attr]  # a Gaussian event
        for _ in range(messages):
            each = terms(plan, query, batch, hostile(plan.scheme.asked, draws))
            pairs = combinations(each, 2) if neighbours == "replace" else ((one, [0] * len(one)) for one in each)
            moved = max(sum((a - b) ** 2 for a, b in zip(*pair, strict=True)) for pair in pairs)
            stage = plan.scheme.method.stage(query.number)
            found[stage] = max(found[stage], float(parties**2 * moved / hidden / paid))
    return found


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("label", LABELS)
def test_no_message_makes_a_person_cost_more_than_is_charged(label: str, neighbours: str) -> None:
    found = worst(LABELS[label], neighbours=neighbours)
    assert set(found) == {"moments", "spreads", "products", "gradients"}
    assert max(found.values()) <= 1
    # what few messages reach already; squares
    assert min(found[each] for each in ("moments", "spreads")) > 0.7
    assert min(found.values()) > 0.3


@pytest.mark.parametrize(("rows", "parties"), [(3, 1), (1, 2)])
def test_nor_with_several_rows_or_at_several_parties(rows: int, parties: int) -> None:
    found = worst(LABELS["softmax"], neighbours="replace", rows=rows, parties=parties, messages=6)
    assert 0.7 < max(found.values()) <= 1


def test_faults_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(posterior, "shortening", lambda lengths, _: np.ones(len(lengths)))
        patch.setattr(Posterior, "largest", lambda *_: 2**50)
        found = worst(LABELS["ridge"], neighbours="add_remove")
        assert min(found[each] for each in ("spreads", "products", "gradients")) > 1
    with monkeypatch.context() as patch:
        # numbers counted as if two of them were 1 apart
        patch.setattr(Layout, "counts", property(lambda self: (0, len(set(self.columns.tolist())))))
        assert worst(LABELS["huber"], neighbours="replace", messages=1)["moments"] > 1
    with monkeypatch.context() as patch:
        reach = Posterior.reach
        patch.setattr(Posterior, "reach", lambda self, number: reach(self, number) / self.rows)
        assert worst(LABELS["softmax"], neighbours="replace", rows=3, messages=1)["moments"] > 1


def test_a_weight_of_intercepts_that_the_reach_would_round_is_refused() -> None:
    for weight in (Fraction(1, 3), Fraction(0), Fraction(-3, 8)):
        with pytest.raises(InputError, match="eighths"):
            Posterior(
                loss=Logistic(),
                layout=Layout(np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.bool_)),
                models=1,
                people=9,
                intercept=weight,
            )


# A whole run, with rounds that are lost, by a coordinator that ignores what opens.

SIZES = {f"p{place}": 12 for place in range(4)}
# three models, eight features and the intercept
ASKED = (6, 9)


GONE = {("sum_open", "p1", 1), ("contribute", "p2", 2)}


class Seen:
    """Loses the second round, and a party in the third; keeps what a coordinator sees of each reply but its masks."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        self.carrier = Lossy(nodes, lambda *asked: asked in GONE)
        self.shown: list[tuple[str, str, str, str, int]] = []

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        delivery = self.carrier.send(calls, seconds=seconds, arrived=arrived)
        for party, data in delivery.replies.items():
            reply, step = decode(data, Reply), decode(calls[party], Call).step
            self.shown.append((step, party, reply.code, reply.text, len(reply.body)))
        return delivery

    def close(self) -> None:
        self.carrier.close()


def attacked(
    folder: Path, sources: dict[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> tuple[Seen, dict[int, Numbers]]:
    """Run the study; return the nodes with what was seen, and the noise of each opened sum over what is stated."""
    options = 'scheme = "posterior"\niterations = 3\nlabel = "colour"\nloss = "softmax"\nmissing = 1'
    of = study(options, columns=COLUMNS, sizes=SIZES)
    exact, noise = defaultdict[int, Any](int), dict[int, Numbers]()
    values, original = FewRoundQuery.values, LearnPlan.opened

    def recorded(self: FewRoundQuery, *given: Any) -> Any:
        found = values(self, *given)
        exact[self.number] = exact[self.number] + found
        return found

    def opened(self: LearnPlan, of: Any, steps: Numbers, present: tuple[str, ...]) -> Any:
        number, there = of.query.number, {name: self.people[name] for name in present}
        noise[number] = (steps - exact[number]) * of.query.unit / of.deviation(there)
        return original(self, of, steps, present)

    with monkeypatch.context() as patch:
        patch.setattr(FewRoundQuery, "values", recorded)
        patch.setattr(LearnPlan, "opened", opened)
        patch.setattr(FewSums, "sent", lambda self, _, number: hostile(self.asked, np.random.default_rng(number)))
        runtime = Seen(open_nodes(Case("hostile", of, sources), folder))
        run(of.protocol, session_over(runtime, of))
    return runtime, noise


def root_mean_square(noise: dict[int, Numbers]) -> float:
    """Return that of all noise, over what is stated: 1, within 0.32 by five standard deviations."""
    whole = np.concatenate(list(noise.values()))
    assert len(whole) > 120
    return float(np.sqrt(np.mean(whole**2)))


def test_a_run_of_nonsense_shows_the_stated_noise_and_nothing_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = people(12)
    runtime, noise = attacked(tmp_path, dict.fromkeys(SIZES, declared), monkeypatch)
    # no rows, or far more than declared; without noise
    other = dict(zip(SIZES, (declared, declared.slice(0, 0), declared, people(500)), strict=True))
    monkeypatch.setattr(FineGaussianShare, "draw", lambda *given: np.zeros(given[1], np.int64))
    again, none = attacked(tmp_path / "other", other, monkeypatch)
    again.close()
    assert sorted(noise) == [1, *range(3, 8)]
    assert root_mean_square(noise) == pytest.approx(1, abs=0.32)
    assert root_mean_square(none) == 0
    assert runtime.shown == again.shown
    assert {code for _, _, code, _, _ in runtime.shown} == {"ok"}
    # a lost round is charged, and one that a party was not asked for is not
    assert {name: len(charges(tmp_path, name)) for name in SIZES} == {"p0": 7, "p1": 7, "p2": 6, "p3": 7}
    # rounds that were answered, or passed over, are not answered again
    node = runtime.nodes["p2"]
    for number in (1, 3, 7, 8):
        ask = Ask(round=number, weights=np.zeros(ASKED))
        given = Call(study=node.state.study, party="p2", step="contribute", call=f"{number:032d}", body=encode(ask))
        assert decode(answer(node, encode(given)), Reply).code == "refused"
    assert len(charges(tmp_path, "p2")) == 6
    runtime.close()
