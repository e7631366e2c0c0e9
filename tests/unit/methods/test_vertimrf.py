"""VertiMRF: what it costs, what it refuses, and that every variant makes a table of odd columns too."""

from fractions import Fraction
from math import nextafter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from support import THREE_VERTICAL, VERTICAL, rows, vertimrf_study
from syndic import Study, simulate
from syndic.data import Domain
from syndic.errors import InputError, MethodError, RefusedError
from syndic.methods import Vertimrf
from syndic.methods.vertimrf.account import local_slack
from syndic.methods.vertimrf.messages import Model, Part, model_of, own_model, pair_key
from syndic.methods.vertimrf.plan import VertimrfPlan
from syndic.methods.vertimrf.sketch.cost import sketch_delta
from syndic.model.selection import Adaptive, Curator, PrivMRF, synthesise
from syndic.privacy import ApproximateEvent, ConcentratedEvent, Cost, GaussianEvent, PureEvent
from syndic.random import SimulationRandomness

ORACLE = 'way = "oracle"'


def method(study: Study) -> Vertimrf:
    assert isinstance(study.protocol, Vertimrf)
    return study.protocol


def made(study: Study, table: pa.Table, seed: int = 1) -> dict[str, Any]:
    sources = {party.name: table.select(list(party.columns or ())) for party in study.parties}
    columns: dict[str, Any] = simulate(study, sources, seed=seed).table.to_arrow().to_pydict()
    return columns


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ("", (GaussianEvent, ApproximateEvent)),
        ("local_models = false", (GaussianEvent, ApproximateEvent)),
        ('local_models = false\nrecovery = "uniform"', (ApproximateEvent,)),
        (ORACLE, (GaussianEvent, PureEvent)),
        (f'{ORACLE}\nvalues = "noisy"', (GaussianEvent, GaussianEvent, ConcentratedEvent)),
    ],
)
def test_the_whole_account_is_within_the_budget_and_uses_it(options: str, kinds: tuple[type, ...]) -> None:
    study = vertimrf_study(options if ORACLE in options else f"{options}\nphantoms = 120\ncap = 10")
    study.check()
    for party in study.parties:
        events = study.plan.events(party.name)
        assert tuple(map(type, events)) == kinds
        epsilon = float(Cost.of(events).epsilon(study.budget.delta))
        assert 0.97 * float(study.budget.epsilon) < epsilon <= float(study.budget.epsilon)


def test_the_strictest_budget_counts_for_everybody() -> None:
    loose = vertimrf_study(ORACLE)
    strict = msgspec.structs.replace(
        loose,
        parties=(
            loose.parties[0],
            msgspec.structs.replace(
                loose.parties[1], budget=msgspec.structs.replace(loose.budget, epsilon=Fraction(1, 2))
            ),
        ),
    )
    for party in strict.parties:
        assert Cost.of(strict.plan.events(party.name)).epsilon(strict.budget.delta) <= Fraction(1, 2)


def wide_study(columns: int, budget: str) -> Study:
    text = "".join(f'[[schema.columns]]\nname = "c{place}"\nkind = "boolean"\n' for place in range(columns))
    half = columns // 2
    names = [f'"c{place}"' for place in range(columns)]
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = 60\ncolumns = [{", ".join(part)}]\n'
        for name, part in (("north", names[:half]), ("south", names[half:]))
    )
    return vertimrf_study(ORACLE, parties=parties, columns=text, budget=budget)


def test_responses_take_the_better_of_two_compositions() -> None:
    few, many = wide_study(2, "epsilon = 1\ndelta = 1e-5"), wide_study(60, "epsilon = 1\ndelta = 1e-5")
    assert isinstance(few.plan.events("north")[-1], PureEvent)
    event = many.plan.events("north")[-1]
    assert isinstance(event, ConcentratedEvent)
    (each,) = {one.epsilon for one in many.plan_as(VertimrfPlan).account.responses.values()}
    assert event.rho == 60 * each**2 / 2
    assert 60 * each > Fraction(1, 4)  # more than its part of epsilon would buy by adding up


def test_sketches_keep_what_they_are_charged_for() -> None:
    study = vertimrf_study()
    account = study.plan_as(VertimrfPlan).account
    assert account.sketches is not None
    assert isinstance(account.encoded, ApproximateEvent)
    # charged on the same grid, a double below
    epsilon = nextafter(float(account.encoded.epsilon), 0)
    true = sketch_delta(account.sketches, columns=2, keys=2, epsilon=epsilon, neighbours="replace", points=2**17)
    assert true.upper <= account.encoded.delta
    too_few = vertimrf_study("phantoms = 2\ncap = 10")
    with pytest.raises(InputError, match="have delta"):
        too_few.check()


def test_a_plan_is_searched_where_none_is_given() -> None:
    study = vertimrf_study("phantoms = 40\ncap = 10")
    free = msgspec.structs.replace(
        study, protocol=msgspec.structs.replace(method(study), phantoms=None, cap=None, repetitions=20)
    )
    plan = free.plan_as(VertimrfPlan).account.sketches
    assert plan is not None
    assert plan.cap is not None
    assert plan.phantoms > 1
    free.check()


@pytest.mark.parametrize(
    ("options", "models", "counts"),
    [
        (ORACLE, True, False),
        (f'{ORACLE}\nvalues = "noisy"', True, True),
        (f"{ORACLE}\nlocal_models = false", False, True),
    ],
)
def test_the_disclosure_names_what_a_coordinator_gets_and_no_more(options: str, models: bool, counts: bool) -> None:
    study = vertimrf_study(options)
    told = study.plan.disclosure
    assert ("own noisy model" in told.sees["coordinator"]) == ("local model" in told.sensitivity) == models
    assert ("noisy counts" in told.sees["coordinator"]) == ("values are counted" in told.sensitivity) == counts


def test_printed_variants_say_what_holds() -> None:
    sketched = vertimrf_study("as_published = true", neighbours="add_remove")
    words = " ".join(sketched.plan.disclosure.departures)
    assert "the true delta there is 0.0" in words
    responded = vertimrf_study(f"{ORACLE}\nas_published = true")
    event = responded.plan.events("north")[-1]
    # three codes of twice their part of the three tenths of epsilon 10: 6, not 3
    assert isinstance(event, PureEvent)
    assert event.epsilon == 6
    assert "each cost 6" in " ".join(responded.plan.disclosure.departures)
    for study in (sketched, responded):
        assert study.protocol.simulation_only


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("bins = 1", "bins"),
        ("local_share = 1.5", "local_share"),
        ("phantoms = 3", "phantoms and cap together"),
        (f"{ORACLE}\nphantoms = 3\ncap = 4", "phantoms and cap together"),
        ('local_models = false\nvalues = "local"', "needs local_models"),
        ("refined = -1", "refined"),
    ],
)
def test_parameters_that_cannot_be(options: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        vertimrf_study(options)


@pytest.mark.parametrize(
    ("study", "words"),
    [
        (vertimrf_study(ORACLE, neighbours="add_remove"), 'neighbours = "replace"'),
        (vertimrf_study("as_published = true"), 'neighbours = "add_remove"'),
        (vertimrf_study(ORACLE, budget="epsilon = 1"), "delta above 0"),
        (vertimrf_study(ORACLE, parties=VERTICAL.replace("60", "50", 1)), "the same number"),
        (vertimrf_study(ORACLE, parties=VERTICAL.replace(', "age"', "")), "'age' is held by no party"),
        (vertimrf_study(ORACLE, parties=VERTICAL.replace('["score"]', '["age"]')), "exactly one"),
        (vertimrf_study(f"{ORACLE}\nlocal_cells = 6"), "set fewer bins"),
        (vertimrf_study(f"{ORACLE}\nmodel_cells = 9"), "model_cells"),
        (vertimrf_study(f'{ORACLE}\nvalues = "noisy"\nlocal_share = 0.8'), "leave something"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_studies_that_cannot_be(study: Study, words: str) -> None:
    with pytest.raises(InputError, match=words):
        study.check()


CONSTANT = """
[[schema.columns]]
name = "colour"
kind = "categorical"
values = ["red"]
outside = { value = "red" }
missing = { value = "red" }
"""


def test_nothing_across_is_said_before_anything_is_spent() -> None:
    columns = CONSTANT + '[[schema.columns]]\nname = "score"\nkind = "boolean"\n'
    parties = VERTICAL.replace('"colour", "age"', '"colour"')
    with pytest.raises(InputError, match="nothing to learn across"):
        vertimrf_study(ORACLE, parties=parties, columns=columns).check()


WIDE = """
[[schema.columns]]
name = "age"
kind = "integer"
lower = 0
upper = 999
missing = { value = 0 }

[[schema.columns]]
name = "score"
kind = "real"
lower = -1.0
upper = 1.0
bins = 4
"""


@pytest.mark.parametrize("options", [ORACLE, "", f'{ORACLE}\nvalues = "noisy"\nlocal_models = false'])
def test_odd_columns_make_a_table(options: str) -> None:
    """A column of one value, one of a thousand, a party for each column, and few people."""
    parties = THREE_VERTICAL.replace("people = 60", "people = 200")
    study = vertimrf_study(options, parties=parties, columns=CONSTANT + WIDE)
    found = made(study, rows(200, 4))
    assert set(found["colour"]) == {"red"}
    assert len(found["age"]) == 200
    assert min(found["age"]) >= 0
    assert max(found["age"]) <= 999


@pytest.mark.parametrize(
    "options",
    [
        'local_method = "privmrf"',
        'recovery = "uniform"\nvalues = "noisy"',
        "consistency = false",
        'local_models = false\nrecovery = "uniform"',
        "edges = 0\nrows = 7",
    ],
)
def test_every_ablation_makes_a_table(options: str) -> None:
    study = vertimrf_study(f"{ORACLE}\n{options}")
    found = made(study, rows(60, 3))
    assert len(found["age"]) == (7 if "rows" in options else 60)


def test_dependence_across_parties_is_found_by_either_way() -> None:
    count = 4000
    draws = np.random.default_rng(8)
    red = draws.random(count) < 0.5
    table = pa.table(
        {
            "colour": np.where(red, "red", "blue"),
            "age": draws.integers(0, 100, count),
            "score": np.where(red, 1, -1) * draws.uniform(0.1, 1, count),
        }
    )
    parties = VERTICAL.replace("people = 60", f"people = {count}")
    budget = "epsilon = 12\ndelta = 1e-6"
    sketched = "phantoms = 500\ncap = 14\nrepetitions = 400\n"
    # a coin is right half of the time; sketches of so few people are .51 to .77 over seeds, responses .77 to .87
    for options, least in ((ORACLE, 0.7), (sketched, 0.55)):
        study = vertimrf_study(options, parties=parties, budget=budget)
        right = []
        for seed in (1, 2, 3):
            found = made(study, table, seed)
            right += [
                (colour == "red") == (score > 0)
                for colour, score in zip(found["colour"], found["score"], strict=True)
                if score is not None and colour in ("red", "blue")
            ]
        assert np.mean(right) > least


def test_keys_of_pairs_differ() -> None:
    keys = {pair_key(b"s" * 32, names) for names in ((), ("a", "b"), ("b", "a"), ("ab",), ("a", "c"))}
    assert len(keys) == 5
    assert all(len(key) == 16 for key in keys)


DOMAIN = Domain(("a", "b"), (3, 4))


def local_model(learner: Any = None) -> Model:
    draws = np.random.default_rng(1)
    codes = {"a": draws.integers(0, 3, 400), "b": draws.integers(0, 4, 400)}
    study = vertimrf_study(ORACLE)
    layout = study.plan_as(VertimrfPlan).layout
    randomness = SimulationRandomness(1), SimulationRandomness(2)
    learner = learner or (lambda curator, mu, _: synthesise(Adaptive(cells=100), curator, mu))
    return own_model(layout, codes, DOMAIN, Fraction(1), learner, randomness)


def test_a_local_model_survives_its_message() -> None:
    for learner in (None, PrivMRF(largest_clique=100, cells=100).run):
        sent = local_model(learner)
        back = model_of(sent, DOMAIN, 400.0, 100)
        assert back.fitted.marginal(("a", "b")).values.sum() == pytest.approx(400)
        assert all(variance > 0 for variance in back.tables.values())


@pytest.mark.parametrize(
    "changes",
    [
        {"values": np.zeros(3)},
        {"one_way": np.full(7, np.nan)},
        {"cliques": (("a", "x"),)},
        {"cliques": (("a",),), "parents": (-1,)},
        {"tables": (), "variances": np.zeros(0)},
        {"variances": np.array([-1.0])},
        {"groups": ((0, 1, 2), (0, 7, 1, 2))},
    ],
)
def test_a_model_that_is_none_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match="own model"):
        model_of(msgspec.structs.replace(local_model(), **changes), DOMAIN, 400.0, 100)


def test_a_model_too_large_is_refused() -> None:
    with pytest.raises(RefusedError, match="larger than"):
        model_of(local_model(), DOMAIN, 400.0, 3)


def test_a_local_model_never_takes_more_than_was_charged() -> None:
    part = Part(Fraction(1, 2))
    part(GaussianEvent(mu_squared=Fraction(1, 2)))
    with pytest.raises(MethodError):
        part(GaussianEvent(mu_squared=Fraction(1, 10**9)))
    # what is charged for rounding covers what the two methods really use
    for mu_squared in (Fraction(1, 100), Fraction(1), Fraction(9)):
        for learner in (PrivMRF(largest_clique=50, cells=60), Adaptive(cells=60)):
            used: list[GaussianEvent] = []
            codes = {"a": np.arange(300) % 3, "b": np.arange(300) % 4}
            curator = Curator(codes, DOMAIN, SimulationRandomness(3), neighbours="replace", charge=used.append)
            if isinstance(learner, PrivMRF):
                learner.run(curator, mu_squared, np.random.default_rng(1))
            else:
                synthesise(learner, curator, mu_squared)
            assert sum(event.slack for event in used) <= local_slack(mu_squared)
            assert sum(event.mu_squared for event in used) <= mu_squared
