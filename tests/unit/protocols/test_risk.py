"""Learning as a protocol: against the simulation, round by round with silent parties, and what it refuses."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import final

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from support import COLUMNS, Case, charges, open_nodes, rows, study_text
from syndic import Study, plan
from syndic.data import Table, open_source
from syndic.errors import InputError, PartyError
from syndic.kernel import Call, Delivery, Node, Reply, Session, answer, decode, encode, run, steps_of
from syndic.model.cohort import Cohort
from syndic.model.loss import Logistic, Objective, Squared
from syndic.model.multiclass import JointObjective
from syndic.model.noise_law import gaussian_epsilon, gradient_sigma
from syndic.privacy import Budget, Cost, joint_cost
from syndic.protocols import Risk
from syndic.protocols.risk import Ask
from syndic.protocols.risk_result import RiskResult, weights_of
from syndic.random import SimulationRandomness
from syndic.report import report
from syndic.study import simulate
from syndic.study.home import run_digest

Numbers = NDArray[np.float64]
SIZES = {f"p{number}": 50 for number in range(4)}
NOISELESS = "epsilon = 1000000.0\ndelta = 1e-6"


def study(
    options: str,
    *,
    sizes: Mapping[str, int] | None = None,
    budget: str = "epsilon = 1.0\ndelta = 1e-5",
    unit: str = 'neighbours = "replace"',
    columns: str = COLUMNS,
) -> Study:
    given = SIZES if sizes is None else sizes
    parties = "".join(f'[[parties]]\nname = "{name}"\npeople = {people}\n' for name, people in given.items())
    protocol = f'method = "risk"\n{options}'
    return Study.loads(study_text(unit=unit, budget=budget, parties=parties, protocol=protocol, columns=columns))


def sources(sizes: Mapping[str, int] | None = None) -> dict[str, pa.Table]:
    return {name: rows(people, place) for place, (name, people) in enumerate((sizes or SIZES).items())}


def protocol_of(of: Study) -> Risk:
    assert isinstance(of.protocol, Risk)
    return of.protocol


def learnt(of: Study, data: Mapping[str, pa.Table] | None = None, seed: int = 1) -> RiskResult:
    result = simulate(of, data or sources(), seed=seed).result
    assert isinstance(result, RiskResult)
    return result


def weights(of: Study, data: Mapping[str, pa.Table] | None = None) -> Numbers:
    result = learnt(of, data)
    return weights_of(result.model, result.encoding)


def cohort(of: Study, data: Mapping[str, pa.Table], objective: Objective, *, pooled: bool = False) -> Cohort:
    """Return the simulation's view of the same rows, from the design itself."""
    encoding = protocol_of(of).encoding_of(of)
    parts = [encoding.design.matrix(Table(schema=encoding.schema, source=open_source(each))) for each in data.values()]
    party = np.repeat(np.arange(len(parts)), [len(labels) for _, labels in parts])
    return Cohort(
        csr_array(np.concatenate([part for part, _ in parts])),
        np.concatenate([labels for _, labels in parts]),
        0 * party if pooled else party,
        objective,
    )


def nothing(_iteration: int, at: Numbers) -> Numbers:
    return np.zeros_like(at)


BINARY = 'label = "colour"\npositive = "red"\nregularisation = 0.01\n'


@pytest.mark.parametrize("scheme", ["mpc_grad", "local_grad", "central"])
def test_descent_without_noise_is_the_simulations(scheme: str) -> None:
    of = study(f'{BINARY}scheme = "{scheme}"\niterations = 5\nrate = 1.0', budget=NOISELESS)
    expected = cohort(of, sources(), Objective(Logistic(), 0.01)).descend(1, [5], nothing)[0, :, 0]
    assert weights(of)[0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("scheme", ["mpc_out", "local_out", "distributed", "pathak"])
def test_averages_without_noise_are_the_simulations(scheme: str) -> None:
    of = study(f'{BINARY}scheme = "{scheme}"', budget=NOISELESS)
    expected, _ = cohort(of, sources(), Objective(Logistic(), 0.01)).average_minimiser(1e-9)
    # Pathak's noise is four times as large, and not nothing at this budget
    assert weights(of)[0] == pytest.approx(expected, abs=0.02 if scheme == "pathak" else 0.01)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_few_rounds_reach_the_minimiser(loss: str) -> None:
    label = BINARY if loss == "logistic" else 'label = "colour"\nregularisation = 0.01\nloss = "softmax"\nclip = 1.5\n'
    of = study(f'{label}scheme = "newton"\niterations = 12', budget=NOISELESS)
    protocol, data = protocol_of(of), sources()
    objective = JointObjective(protocol.objective.loss, 0.01, clip=protocol.clip)
    encoding = protocol.encoding_of(of)
    batches = [
        batch
        for each in data.values()
        for batch in encoding.batches(Table(schema=encoding.schema, source=open_source(each)))
    ]
    plain, labels = (np.concatenate([getattr(batch, name) for batch in batches]) for name in ("plain", "labels"))
    found = weights(of, data)
    # of norm far below that at zero: the method forgets where it began
    assert np.linalg.norm(objective.gradient(found, plain, labels)) < 0.02 * np.linalg.norm(
        objective.gradient(np.zeros(encoding.shape), plain, labels)
    )


def test_a_lost_round_of_the_few_keeps_the_curvature(tmp_path: Path) -> None:
    of = study(f'{BINARY}scheme = "newton"\niterations = 4\nmissing = 1\npath = true', budget=NOISELESS)
    found = with_losses(of, tmp_path, lambda step, party, before: (step, party, before) == ("round_open", "p1", 1))
    assert found.model.lost == 1
    assert found.path is not None
    assert np.isfinite(found.path).all()


def test_unequal_parties_learn_as_if_pooled() -> None:
    sizes = {"p0": 20, "p1": 90, "p2": 50, "p3": 5}
    options = 'label = "score"\nloss = "ridge"\nclip = 0.4\nregularisation = 0.05\niterations = 9\nrate = 0.7'
    of = study(options, sizes=sizes, budget=NOISELESS, unit='neighbours = "add_remove"')
    data = sources(sizes)
    whole = cohort(of, data, Objective(Squared(), 0.05, clip=0.4), pooled=True)
    expected = whole.descend(1, [9], nothing, rate=0.7)[0, :, 0]
    assert weights(of, data)[0] == pytest.approx(expected, abs=1e-3)


def test_each_class_has_the_model_it_has_alone() -> None:
    together = weights(study('label = "colour"\nclip = 2.0\niterations = 2', budget=NOISELESS))
    for place, colour in enumerate(("red", "green", "blue")):
        alone = weights(study(f'label = "colour"\npositive = "{colour}"\niterations = 2', budget=NOISELESS))
        assert together[place] == pytest.approx(alone[0], abs=1e-3)


@pytest.mark.parametrize(("unit", "records"), [("replace", 2), ("add_remove", 1)])
def test_noise_is_that_of_the_exact_gaussian_for_the_honest_parties(unit: str, records: int) -> None:
    of = study(f"{BINARY}iterations = 30\ncolluding = 1", unit=f'neighbours = "{unit}"')
    query = protocol_of(of).scheme_of(of).query(1)
    needed = gradient_sigma(records / 200, 30, Fraction(1), Fraction(1, 10**5))
    # four parties draw shares that three of them would have been enough for
    assert protocol_of(of).deviation_of(of, query) == pytest.approx(needed * sqrt(4 / 3), rel=1e-5)


def test_the_guarantee_is_for_people_at_parties_of_different_budgets() -> None:
    of = study(
        f"{BINARY}iterations = 3\nscheme = 'local_grad'",
        budget="epsilon = 17.0\ndelta = 1e-5",
        unit='neighbours = "replace"\nparties = 2',
    )
    strict = msgspec.structs.replace(of.parties[0], budget=Budget(epsilon=Fraction(15), delta=Fraction(1, 10**5)))
    mixed = msgspec.structs.replace(of, parties=(strict, *of.parties[1:]))
    costs = {party.name: Cost.of(protocol_of(mixed).spends(mixed, party.name)) for party in mixed.parties}
    last = protocol_of(mixed).guarantee_of(mixed)[-1]
    assert last == (3, float(joint_cost(costs, mixed.unit).epsilon(Fraction(1, 10**5))))


def test_a_tiny_delta_is_accounted_for_by_rho() -> None:
    for epsilon, kind in ((1, "gaussian"), (12, "concentrated")):
        of = study(f"{BINARY}iterations = 50", budget=f"epsilon = {epsilon}.0\ndelta = 1e-11")
        events = protocol_of(of).spends(of, "p0")
        assert {event.__struct_config__.tag for event in events} == {kind}
        assert 0.99 * epsilon <= plan(of).statement.epsilon <= epsilon


def test_early_iterates_cost_less() -> None:
    of = study(f"{BINARY}iterations = 10")
    guarantee = dict(learnt(of).model.guarantee)
    ratio = 1 / gradient_sigma(1.0, 1, Fraction(1), Fraction(1, 10**5))
    for number in (1, 5, 10):
        expected = gaussian_epsilon(ratio * sqrt(number / 10), 1e-5)
        assert guarantee[number] == pytest.approx(expected, rel=1e-4)
    assert guarantee[10] <= 1.0


def test_people_at_several_parties_pay_at_each() -> None:
    one, two = (study(f"{BINARY}iterations = 4", unit=f'neighbours = "replace"\nparties = {n}') for n in (1, 2))
    deviations = [protocol_of(of).deviation_of(of, protocol_of(of).scheme_of(of).query(1)) for of in (one, two)]
    assert deviations[1] == pytest.approx(2 * deviations[0], rel=1e-6)
    assert two.costs["p0"].gaussian == pytest.approx(one.costs["p0"].gaussian / 2, rel=1e-6)
    assert float(two.joint.epsilon(two.delta)) == pytest.approx(1.0, rel=1e-6)


@final
class Lossy:
    """A local runtime that loses some answers: `lost(step, party, how often asked before)`."""

    def __init__(self, nodes: Mapping[str, Node], lost: Callable[[str, str, int], bool]) -> None:
        self.nodes = nodes
        self.lost = lost
        self.asked: dict[tuple[str, str], int] = {}

    def send(self, calls: Mapping[str, bytes], *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        replies, silent = {}, {}
        for party, data in calls.items():
            step = decode(data, Call).step
            before = self.asked.get((step, party), 0)
            self.asked[(step, party)] = before + 1
            if self.lost(step, party, before):
                silent[party] = "lost"
            else:
                replies[party] = answer(self.nodes[party], data)
        return Delivery(replies=replies, silent=silent)

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()


def with_losses(of: Study, folder: Path, lost: Callable[[str, str, int], bool]) -> RiskResult:
    runtime = Lossy(open_nodes(Case("lossy", of, sources()), folder), lost)
    session = Session(
        runtime=runtime,
        study=run_digest(of, 7),
        terms=of,
        steps=steps_of(Risk),
        randomness=SimulationRandomness(1),
    )
    result = run(of.protocol, session)
    runtime.close()
    assert isinstance(result, RiskResult)
    return result


MISSING = f"{BINARY}iterations = 3\nmissing = 1\npath = true\nrate = 1.0"


def test_a_party_may_be_missing_in_a_round(tmp_path: Path) -> None:
    of = study(MISSING, budget=NOISELESS)
    found = with_losses(of, tmp_path, lambda step, party, before: (step, party, before) == ("contribute", "p2", 1))
    assert (found.model.lost, found.model.present) == (0, tuple(SIZES))
    gone = {name: data for name, data in sources().items() if name != "p2"}
    at = np.zeros((4, 1))
    for data in (sources(), gone, sources()):
        gradient = cohort(of, data, Objective(Logistic(), 0.01)).average_gradient(at) + 0.01 * at
        at = at - gradient
    assert weights_of(found.model, found.encoding)[0] == pytest.approx(at[:, 0], abs=1e-3)


def test_a_lost_round_leaves_the_weights_as_they_are(tmp_path: Path) -> None:
    of = study(MISSING, budget=NOISELESS)
    found = with_losses(of, tmp_path, lambda step, party, before: (step, party, before) == ("round_open", "p1", 1))
    assert found.model.lost == 1
    assert found.path is not None
    assert np.array_equal(found.path[1], found.path[2])
    assert not np.array_equal(found.path[2], found.path[3])


def test_a_killed_party_is_left_out_and_two_end_the_run(tmp_path: Path) -> None:
    of = study(MISSING, budget=NOISELESS)
    killed = with_losses(of, tmp_path, lambda step, party, before: step != "ready" and party == "p3" and before > 0)
    assert killed.model.present == ("p0", "p1", "p2")
    with pytest.raises(PartyError, match="step 'contribute'"):
        with_losses(of, tmp_path / "two", lambda step, party, _: step == "contribute" and party in ("p0", "p3"))


def test_small_parties_abstain_by_their_public_number(tmp_path: Path) -> None:
    sizes = {"p0": 50, "p1": 50, "p2": 50, "p3": 4}
    data = sources(sizes)
    of = study(f"{BINARY}iterations = 5\nminimum = 10\nrate = 1.0", sizes=sizes, budget=NOISELESS)
    result = simulate(of, data, seed=1, folder=tmp_path).result
    assert isinstance(result, RiskResult)
    assert protocol_of(of).spends(of, "p3") == ()
    assert charges(tmp_path, "p3") == []
    big = {name: each for name, each in data.items() if name != "p3"}
    expected = cohort(of, big, Objective(Logistic(), 0.01)).descend(1, [5], nothing)[0, :, 0]
    assert weights_of(result.model, result.encoding)[0] == pytest.approx(expected, abs=1e-3)
    assert result.model.people == 150


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('label = "nobody"', "no such column"),
        ('label = "colour"\nfeatures = ["age", "x"]', "no such column"),
        ('label = "colour"\nloss = "ridge"', "is no number"),
        ('label = "age"', "is a number"),
        ('label = "age"\nloss = "ridge"\npositive = "red"', "is a number"),
        ('label = "colour"\npositive = "pink"', "must be one of"),
        ('label = "colour"\nscheme = "mpc_out"\nclip = 0.5', "larger clip"),
        ('label = "colour"\nminimum = 51', "minimum of 51"),
        ('label = "colour"\nloss = "softmax"\npositive = "red"', "three classes or more"),
        ('label = "colour"\nloss = "softmax"\nscheme = "mpc_out"', "three classes or more"),
        ('label = "colour"\nscheme = "local_obj"', "one model"),
        ('label = "colour"\nscheme = "local_obj"\npositive = "red"\nloss = "hinge"', "smooth twice"),
        ('label = "colour"\nscheme = "local_out"\nregularisation = 1e-8', "at least 4e-08"),
        ('label = "colour"\ncolluding = 4', "one less than all"),
        ('label = "colour"\ncolluding = 2\nmissing = 1', "fewer than 1 missing"),
    ],
)
def test_what_cannot_work_is_refused(options: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        plan(study(options))


@pytest.mark.parametrize("scheme", ["mpc_grad", "local_grad"])
def test_sums_must_leave_room_for_noise(scheme: str) -> None:
    def planned(clip: float) -> None:
        plan(study(f"{BINARY}scheme = '{scheme}'\nclip = {clip}", sizes=large, budget="epsilon = 1.0\ndelta = 1e-10"))

    large = dict.fromkeys(SIZES, 10**6)
    planned(100.0)
    with pytest.raises(InputError, match="leave no room"):
        planned(1200.0 if scheme == "local_grad" else 300.0)


@pytest.mark.parametrize(
    "options",
    [
        "iterations = 0",
        "clip = 0.0",
        "rate = -1.0",
        "minimum = 0",
        "colluding = 0",
        "missing = -1",
        'as_printed = true\nnoise = "laplace"',
        'noise = "spherical"',
        'scheme = "central"\nas_printed = true',
        'scheme = "newton"\nas_printed = true',
    ],
)
def test_parameters_that_make_no_sense_are_refused(options: str) -> None:
    with pytest.raises(InputError):
        study(f'label = "colour"\n{options}')


def test_gaussian_noise_needs_delta_and_laplace_does_not() -> None:
    with pytest.raises(InputError, match="needs delta"):
        plan(study('label = "colour"', budget="epsilon = 1.0"))
    assert plan(study('label = "colour"\nnoise = "laplace"', budget="epsilon = 1.0")).statement.delta == 0


@pytest.mark.parametrize("options", ['scheme = "rajkumar_agarwal"', 'noise = "spherical"\nscheme = "mpc_out"'])
def test_simulated_variants_need_a_seed_and_say_so(options: str) -> None:
    of = study(f"{BINARY}{options}")
    with pytest.raises(InputError, match="simulation only"):
        simulate(of, sources())
    statement = plan(of).statement
    assert not statement.protects
    assert any("floating point" in text for text in statement.departures)


def test_a_party_answers_its_own_rounds_and_shapes_only(tmp_path: Path) -> None:
    of = study(f'{BINARY}iterations = 2\nscheme = "local_grad"')
    node = open_nodes(Case("ask", of, sources()), tmp_path)["p0"]

    def asked(number: int, at: Numbers, call: str) -> Reply:
        body = encode(Ask(round=number, weights=at))
        given = Call(study=node.desk.study, party="p0", step="release", call=call * 32, body=body)
        return decode(answer(node, encode(given)), Reply)

    fine = np.zeros((1, 4))
    for number, at in ((0, fine), (3, fine), (1, np.zeros((2, 4))), (1, np.full((1, 4), np.nan))):
        assert asked(number, at, "a").code == "refused"
    assert asked(2, fine, "b").code == "ok"
    # the first round was passed over, and is not answered later for other weights
    assert asked(1, fine, "c").code == "budget"
    assert asked(2, fine + 1, "d").code == "budget"
    masked = Call(
        study=node.desk.study, party="p0", step="contribute", call="e" * 32, body=encode(Ask(round=1, weights=fine))
    )
    assert "no such step" in decode(answer(node, encode(masked)), Reply).text


def test_a_wrong_public_size_is_said_aloud_and_a_private_one_is_not() -> None:
    data = {**sources(), "p1": rows(49, 1)}
    with pytest.raises(PartyError, match="does not hold the 50 people"):
        simulate(study(f"{BINARY}iterations = 1"), data, seed=1)
    learnt(study(f"{BINARY}iterations = 1", unit='neighbours = "add_remove"'), data)


def test_the_result_is_read_back_and_predicts(tmp_path: Path) -> None:
    of = study('label = "colour"\niterations = 4\npath = true', budget=NOISELESS)
    release = simulate(of, sources(), seed=1)
    paths = release.write(tmp_path)
    assert {path.name for path in paths} >= {"model.json", "coefficients.csv", "path.csv"}
    result, again = release.result, of.protocol.read_result(of, tmp_path)
    assert isinstance(result, RiskResult)
    assert isinstance(again, RiskResult)
    assert again.model == result.model
    assert np.array_equal(np.asarray(again.path), np.asarray(result.path))
    data = rows(30, 9)
    scores = result.scores(data)
    assert scores.shape == (30, 3)
    assert result.predict(data) == [("red", "green", "blue")[place] for place in scores.argmax(axis=1)]
    assert (tmp_path / "coefficients.csv").read_text().startswith("feature,red,green,blue\nage,")
    assert "largest coefficients" in result.summary()
    page = report(release, tmp_path / "page.html").read_text()
    assert "What was learnt" in page
    assert "Guarantee along the rounds" in page


def test_a_changed_model_file_is_refused(tmp_path: Path) -> None:
    of, other = study('label = "colour"\niterations = 1'), study(f"{BINARY}iterations = 1")
    simulate(of, sources(), seed=1).write(tmp_path)
    with pytest.raises(InputError, match="features and classes"):
        other.protocol.read_result(other, tmp_path)
    model = tmp_path / "model.json"
    for before, after in (('"age"', '"rage"'), ('"label": "colour"', '"label": "score"'), ('"red"', '"pink"')):
        text = model.read_text()
        assert before in text
        model.write_text(text.replace(before, after))
        with pytest.raises(InputError, match="features and classes"):
            of.protocol.read_result(of, tmp_path)
        model.write_text(text)
    of.protocol.read_result(of, tmp_path)
