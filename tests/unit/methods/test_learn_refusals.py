"""Learning: what cannot work is refused before any row is read, and a party answers its own rounds only."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from support import Case, open_nodes, read_back
from syndic import plan
from syndic.errors import InputError
from syndic.kernel import Call, Reply, answer, decode, encode
from syndic.methods.learning.learn import Ask
from syndic.methods.learning.noise import Whole
from syndic.privacy import ConcentratedEvent
from syndic.study import simulate
from unit.methods.learning import BINARY, SIZES, Numbers, planned, sources, study


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('label = "nobody"', "must be columns of the schema"),
        ('label = "colour"\nfeatures = ["age", "x"]', "must be columns of the schema"),
        ('label = "colour"\nloss = "ridge"', "has classes"),
        ('label = "age"', "is a number"),
        ('label = "age"\nloss = "ridge"\npositive = "red"', "is a number"),
        ('label = "colour"\npositive = "pink"', "must be one of"),
        ('label = "colour"\nscheme = "mpc_out"\nclip = 0.5', "larger clip"),
        ('label = "colour"\nminimum = 51', "minimum of 51"),
        ('label = "colour"\nloss = "softmax"\npositive = "red"', "three or more classes"),
        ('label = "colour"\nloss = "softmax"\nscheme = "mpc_out"', "three or more classes"),
        ('label = "colour"\nscheme = "local_out"\nregularisation = 1e-8', "at least 4e-08"),
        ('label = "colour"\ncolluding = 4', "one less than all"),
        ('label = "colour"\ncolluding = 2\nmissing = 1', "fewer than 1 may be missing"),
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


@pytest.mark.parametrize("scheme", ["posterior", "mpc_grad"])
def test_each_of_many_sums_gets_a_part_that_a_ledger_can_hold(scheme: str) -> None:
    of = study(f'label = "colour"\nscheme = "{scheme}"\niterations = 100', budget="epsilon = 100.0\ndelta = 1e-6")
    costs = [event.rho for event in of.plan.events("p0") if isinstance(event, ConcentratedEvent)]
    assert len(costs) >= 100
    assert min(costs) > 0
    query = next(iter(planned(of).scheme.queries))
    with pytest.raises(InputError, match="lower iterations, or raise epsilon"):
        Whole(kind="rho", amount=Fraction(1, 10**13), apart=1).part(query)


@pytest.mark.parametrize(
    "options",
    [
        "iterations = 0",
        "clip = 0.0",
        "rate = -1.0",
        "minimum = 0",
        "colluding = 0",
        "missing = -1",
        'noise = "spherical"',
        'scheme = "central"',
    ],
)
def test_parameters_that_make_no_sense_are_refused(options: str) -> None:
    with pytest.raises(InputError):
        study(f'label = "colour"\n{options}')


def test_gaussian_noise_needs_delta_and_laplace_does_not() -> None:
    with pytest.raises(InputError, match="needs delta"):
        plan(study('label = "colour"', budget="epsilon = 1.0"))
    assert plan(study('label = "colour"\nnoise = "laplace"', budget="epsilon = 1.0")).statement.delta == 0


def test_a_party_answers_its_own_rounds_and_shapes_only(tmp_path: Path) -> None:
    of = study(f'{BINARY}iterations = 2\nscheme = "local_grad"')
    node = open_nodes(Case("ask", of, sources()), tmp_path)["p0"]

    def asked(number: int, at: Numbers, call: str) -> Reply:
        body = encode(Ask(round=number, weights=at))
        given = Call(study=node.state.study, party="p0", step="release", call=call * 32, body=body)
        return decode(answer(node, encode(given)), Reply)

    fine = np.zeros((1, 4))
    for number, at in ((0, fine), (3, fine), (1, np.zeros((2, 4))), (1, np.full((1, 4), np.nan))):
        assert asked(number, at, "a").code == "refused"
    assert asked(2, fine, "b").code == "ok"
    # the first round was passed over, and is not answered later for other weights
    assert asked(1, fine, "c").code == "budget"
    assert asked(2, fine + 1, "d").code == "budget"
    masked = Call(
        study=node.state.study, party="p0", step="contribute", call="e" * 32, body=encode(Ask(round=1, weights=fine))
    )
    assert "no such step" in decode(answer(node, encode(masked)), Reply).text


def test_a_changed_model_file_is_refused(tmp_path: Path) -> None:
    of, other = study('label = "colour"\niterations = 1'), study(f"{BINARY}iterations = 1")
    simulate(of, sources(), seed=1).write(tmp_path)
    with pytest.raises(InputError, match="features and classes"):
        read_back(other, tmp_path)
    model = tmp_path / "model.json"
    for before, after in (('"age"', '"rage"'), ('"label": "colour"', '"label": "score"'), ('"red"', '"pink"')):
        text = model.read_text()
        assert before in text
        model.write_text(text.replace(before, after))
        with pytest.raises(InputError, match="features and classes"):
            read_back(of, tmp_path)
        model.write_text(text)
    read_back(of, tmp_path)
