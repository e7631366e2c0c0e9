"""VertiGAN: what a person may add, what is charged when, what is refused, and that the generator learns."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import COLUMNS, THREE_VERTICAL, across_study, charges, needs_torch, rows
from syndic import Study
from syndic.errors import InputError, MissingExtraError, RefusedError
from syndic.methods.comparison.vertigan import Vertigan
from syndic.methods.comparison.vertigan_plan import VertiganPlan
from syndic.model.gan.shape import BITS, GanShape, clipped_sum
from syndic.privacy import ApproximateEvent, Cost
from syndic.privacy.sampled import sampled_epsilon
from syndic.random import SimulationRandomness
from syndic.study import Release, simulate

SMALL = "rounds = 3\ncritic_steps = 2\nbatch = 8\ntrunk = [4, 5]\nbranch = [6, 3]\ncritic = 4\nnoise = 3\n"


def study(options: str = "", **parts: str) -> Study:
    return across_study("vertigan", SMALL + options, **parts)


def sources(one: Study, table: pa.Table | None = None) -> dict[str, pa.Table]:
    table = rows(60, 3) if table is None else table
    return {party.name: table.select(list(party.columns or ())) for party in one.parties}


def planned(one: Study, **options: Any) -> VertiganPlan:
    """Return the study's plan, or that of the same study with other options."""
    given = {name: getattr(one.protocol, name) for name in Vertigan.__struct_fields__}
    return Vertigan(**{**given, **options}).plan(one)


# what is charged


def test_the_parts_are_the_budget_and_the_first_covers_the_whole() -> None:
    one = study()
    events = one.plan.events("north")
    assert events == one.plan.events("south")
    assert len(events) == 3
    assert Cost.of(events).epsilon(one.budget.delta) == one.budget.epsilon
    first, account = events[0], planned(one)
    assert isinstance(first, ApproximateEvent)
    # three rounds of two steps at two parties, each person drawn by 8 in 60
    assert (account.steps, account.chance) == (12, Fraction(8, 60))
    assert first.epsilon >= one.budget.epsilon - Fraction(1, 10**9)
    assert sampled_epsilon(account.sigma, first.delta, account.chance, 12) <= first.epsilon * Fraction("1.0001")
    assert sampled_epsilon(account.sigma * Fraction("0.98"), first.delta, account.chance, 12) > first.epsilon


def test_the_strictest_budget_counts_for_all() -> None:
    strict = THREE_VERTICAL + "budget = { epsilon = 2.0, delta = 1e-6 }\n"
    one = study(parties=strict)
    for party in one.parties:
        assert Cost.of(one.plan.events(party.name)).epsilon(Fraction(1, 10**6)) == 2
    assert planned(one).steps == 18


def test_noise_is_for_vectors_of_length_one() -> None:
    account = planned(study())
    noise = account.noise(1000)
    assert float(noise.sigma_squared) ** 0.5 == pytest.approx(float(account.sigma) * 2**BITS)
    assert noise.scale == 1
    assert noise.event.slack < Fraction(1, 10**15)


def test_the_published_noise_for_an_epsilon_costs_more_on_a_small_table() -> None:
    # a public implementation uses sigma 1.2 for epsilon 0.8, which was made for one in two hundred
    needed = planned(study(budget="epsilon = 0.8\ndelta = 1e-5"))
    assert needed.sigma > Fraction("1.2")
    assert sampled_epsilon(Fraction("1.2"), Fraction(1, 10**5), needed.chance, needed.steps) > 2


# what a person may add


class Recorder:
    """Noise that is none, and remembers what it was added to."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def apply(self, values: Any, randomness: Any) -> Any:
        del randomness
        self.seen.append(values)
        return values


def summed(codes: Any, batch: int) -> Any:
    """Return the sum of one step over everybody, with all that is random held fast."""
    from syndic.methods.comparison.vertigan_work import CriticWork  # noqa: PLC0415

    one = study()
    shape = planned(one).shapes["north"]
    draws = np.random.default_rng(1)
    recorder: Any = Recorder()
    work = CriticWork(shape=shape, noise=recorder, steps=1, batch=batch, rate=0.1, penalty=10.0, temperature=0.5)
    critic = 2 * shape.critic.initial(draws)
    network = shape.trunk.initial(draws), shape.branch.initial(draws)
    work.trained((critic, 0 * critic), network, codes, noise=SimulationRandomness(3), draws=draws)
    return recorder.seen[0]


def codes_of(count: int) -> Any:
    one = study()
    draws = np.random.default_rng(2)
    return np.stack([draws.integers(0, size, count) for size in planned(one).shapes["north"].sizes], axis=1)


@needs_torch
def test_one_person_moves_a_sum_by_two_lengths_at_most() -> None:
    codes = codes_of(300)
    before = summed(codes, 300)
    for place in (0, 7, 299):
        other = codes.copy()
        other[place] = (other[place] + 1) % 3
        moved = summed(other, 300) - before
        assert 0 < sum(int(value) ** 2 for value in moved) <= 4 * 4**BITS


@needs_torch
def test_who_else_is_drawn_changes_nothing_for_a_person() -> None:
    # with everybody drawn the sum is that of each alone: made rows belong to places, not to the order of the draw
    from syndic.model.gan.networks import critic_gradients, made_rows  # noqa: PLC0415

    codes, one = codes_of(40), study()
    shape = planned(one).shapes["north"]
    draws = np.random.default_rng(1)
    critic = 2 * shape.critic.initial(draws)
    network = shape.trunk.initial(draws), shape.branch.initial(draws)
    made = made_rows(shape, *network, shape.inputs(40, draws), 0.5)
    between = draws.random(40, dtype=np.float32)
    alone = [
        clipped_sum(
            critic_gradients(shape, critic, shape.one_hot(codes[[place]]), made[[place]], between[[place]], 10.0)
        )
        for place in range(40)
    ]
    # sums of floats differ in the last bit between batches of one and of forty
    assert summed(codes, 40) == pytest.approx(np.sum(alone, axis=0), abs=2**BITS * 1e-4)


@needs_torch
def test_to_the_last_bit_a_person_adds_one_vector_of_their_own_whoever_else_is_drawn() -> None:
    from syndic.methods.comparison.vertigan_work import CriticWork  # noqa: PLC0415

    shape, batch = GanShape(sizes=(7, 2, 9, 5), noise=3, trunk_widths=(4,), branch_widths=(4,), critic_width=32), 64
    draws = np.random.default_rng(1)
    noise: Any = Recorder()
    work = CriticWork(shape=shape, noise=noise, steps=1, batch=batch, rate=0.1, penalty=10.0, temperature=0.5)
    critic = 3 * shape.critic.initial(draws)
    codes = np.stack([draws.integers(0, size, 200) for size in shape.sizes], axis=1)
    made = shape.one_hot(np.stack([draws.integers(0, size, batch) for size in shape.sizes], axis=1))
    compared = made, draws.random(batch, dtype=np.float32)
    own = work.summed(critic, codes, np.array([77]), compared)
    assert 0 < sum(int(value) ** 2 for value in own) <= 4**BITS
    for others in (1, 2, 3, 7, 10, 15, 16, 17, 63, 95, 170):
        drawn = np.sort(draws.choice(np.delete(np.arange(200), 77), others, replace=False))
        without = work.summed(critic, codes, drawn, compared)
        assert (work.summed(critic, codes, np.sort([*drawn, 77]), compared) - without == own).all()


@needs_torch
@pytest.mark.statistical
def test_everybody_is_drawn_by_the_stated_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    from syndic.methods.comparison import vertigan_work  # noqa: PLC0415

    drawn: list[int] = []

    def counted(work: Any, weights: Any, codes: Any, taken: Any, compared: Any) -> Any:
        del work, compared
        drawn.extend(codes[taken, 0].tolist())
        sizes.append(len(taken))
        return np.zeros(len(weights), dtype=np.int64)

    sizes: list[int] = []
    monkeypatch.setattr(vertigan_work.CriticWork, "summed", counted)
    one = study()
    shape = planned(one).shapes["north"]
    recorder: Any = Recorder()
    work = vertigan_work.CriticWork(
        shape=shape, noise=recorder, steps=3000, batch=8, rate=0.1, penalty=1.0, temperature=0.5
    )
    flat = np.zeros(shape.critic.length, dtype=np.float32)
    network = np.zeros(shape.trunk.length, dtype=np.float32), np.zeros(shape.branch.length, dtype=np.float32)
    # twenty people of each of three kinds
    codes = np.stack([np.arange(60) % 3, np.zeros(60, dtype=int)], axis=1)
    draws = np.random.default_rng(1)
    work.trained((flat, flat), network, codes, noise=SimulationRandomness(11), draws=draws)
    expected, spread = 3000 * 20 * 8 / 60, (3000 * 20 * (8 / 60) * (52 / 60)) ** 0.5
    assert np.bincount(drawn, minlength=3) == pytest.approx([expected] * 3, abs=5.2 * spread)
    # independent draws: as many at a time as a binomial law has it, not always eight
    assert np.var(sizes) == pytest.approx(8 * 52 / 60, rel=0.25)


# runs


@needs_torch
def test_rows_repeat_from_a_seed_and_are_read_back(tmp_path: Path) -> None:
    one = study("rows = 30", parties=THREE_VERTICAL)
    release = simulate(one, sources(one), seed=5, folder=tmp_path / "run")
    assert len(release.table) == 30
    assert release.table.names == ("colour", "age", "score")
    release.write(tmp_path / "release")
    again: Any = Release.load(tmp_path / "release").result
    assert again.table.to_arrow().equals(release.table.to_arrow())
    first, second = (again.model.sample(9, generator=np.random.default_rng(1)).to_arrow() for _ in range(2))
    assert first.equals(second)
    assert set(first["colour"].to_pylist()) <= {"red", "green", "blue"}
    assert again.summary()["noisy steps of all critics"] == 18
    assert len(charges(tmp_path / "run", "east")) == 3
    with pytest.raises(InputError, match="rows"):
        again.model.sample(-1)


@needs_torch
def test_a_generator_of_other_networks_is_not_read(tmp_path: Path) -> None:
    one = study()
    simulate(one, sources(one), seed=5).write(tmp_path)
    with pytest.raises(InputError, match=r"generator\.npz"):
        Vertigan().read(planned(one, trunk=(4, 6)), tmp_path)
    with pytest.raises(InputError, match=r"vertigan\.json"):
        Vertigan().read(planned(one, rounds=4), tmp_path)
    (tmp_path / "generator.npz").write_bytes(b"no weights")
    with pytest.raises(InputError, match="cannot be read"):
        Vertigan().read(planned(one), tmp_path)


@pytest.mark.slow
@needs_torch
def test_the_generator_learns_who_is_there() -> None:
    # a large epsilon, so that learning shows within seconds: nearly everybody is red
    table = rows(400, 1).set_column(0, "colour", pa.array(["red"] * 380 + ["blue"] * 20))
    options = "rate = 0.005\nrows = 2000\npenalty = 1.0\n"
    large = SMALL.replace("rounds = 3", "rounds = 150").replace("batch = 8", "batch = 64") + options
    large = large.replace("[4, 5]", "[16, 16]").replace("[6, 3]", "[16, 16]").replace("critic = 4", "critic = 16")
    parties = THREE_VERTICAL.replace("people = 60", "people = 400")
    one = across_study("vertigan", large, parties=parties, budget="epsilon = 20\ndelta = 1e-5")
    made = simulate(one, sources(one, table), seed=2).table.to_arrow()["colour"].to_pylist()
    assert made.count("red") > 1500


@needs_torch
def test_weights_beyond_all_measure_end_in_a_bad_table_not_in_an_error() -> None:
    one = study("rate = 1e5\npenalty = 1e5")
    assert len(simulate(one, sources(one), seed=1).table) == 60


# refusals


def test_a_party_refuses_what_is_no_network() -> None:
    from syndic.methods.comparison.vertigan import _received  # noqa: PLC0415

    good = np.arange(3, dtype="<f4")
    assert _received(good.tobytes(), 3).tolist() == [0, 1, 2]
    with pytest.raises(RefusedError, match="12 bytes"):
        _received(good.tobytes()[:-1], 3)
    with pytest.raises(RefusedError, match="finite"):
        _received(np.array([0, np.nan, 1], dtype="<f4").tobytes(), 3)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("batch = 61", "at most the number of people"),
        ("critic = 1000000", "smaller networks"),
    ],
)
def test_what_cannot_run_is_said_before(options: str, says: str) -> None:
    text = "\n".join(line for line in SMALL.splitlines() if line.partition(" ")[0] != options.partition(" ")[0])
    with pytest.raises(InputError, match=says):
        across_study("vertigan", f"{text}\n{options}").check()


def test_delta_must_leave_room_and_columns_a_holder() -> None:
    with pytest.raises(InputError, match="delta"):
        study(budget="epsilon = 1.0\ndelta = 1e-11").check()
    with pytest.raises(InputError, match="'extra' is held by no party"):
        study(columns=COLUMNS + '[[schema.columns]]\nname = "extra"\nkind = "boolean"\n').check()


@pytest.mark.parametrize(
    "options",
    [
        {"rounds": 0},
        {"batch": 0},
        {"trunk": ()},
        {"branch": (3, 0)},
        {"rate": 0.0},
        {"temperature": float("nan")},
        {"penalty": -1.0},
        {"rows": -1},
        {"noise": 0},
    ],
)
def test_parameters_that_mean_nothing(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Vertigan(**options)


def test_the_default_is_the_published_configuration() -> None:
    plain = Vertigan()
    assert (plain.rounds, plain.critic_steps, plain.batch, plain.rate) == (100, 10, 100, 1e-4)
    assert (plain.trunk, plain.branch, plain.critic) == ((128, 256), (256, 128), 128)
    assert planned(study(), noise=None).shapes["north"].noise == sum(study().schema.domain.sizes)


# without torch


def test_importing_syndic_does_not_import_torch() -> None:
    code = "import sys, syndic, syndic.methods; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_torch_one_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [
        name for name in sys.modules if name in {"syndic.model.gan.networks", "syndic.methods.comparison.vertigan_work"}
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("syndic.model.gan.networks", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    one = study()
    with pytest.raises(RefusedError, match=r"torch is not installed: pip install 'syndic\[gan\]'"):
        simulate(one, sources(one), seed=1, folder=tmp_path)
    assert charges(tmp_path, "north") == []
    model = _released(one)
    with pytest.raises(MissingExtraError, match=r"syndic\[gan\]"):
        model.sample(3)


def _released(one: Study) -> Any:
    from syndic.methods.comparison.vertigan_plan import ReleasedGenerator  # noqa: PLC0415

    shapes = planned(one).shapes
    return ReleasedGenerator(
        schema=one.schema,
        columns=planned(one).columns,
        shapes=shapes,
        trunk=np.zeros(shapes["north"].trunk.length, dtype=np.float32),
        branches={name: np.zeros(shape.branch.length, dtype=np.float32) for name, shape in shapes.items()},
    )
