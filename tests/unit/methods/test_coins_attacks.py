"""Noise that two parties toss with coins, attacked: what it costs, who could know it, and what nobody can change."""

import itertools
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy.special import ndtr

from aligning import Carrier, carried
from support import study_text
from syndic import Study
from syndic.errors import PartyError, RefusedError, SyndicError
from syndic.kernel import Call, Delivery, Party, Reply, answer, decode, encode
from syndic.methods import Synthesis
from syndic.methods.synthesis import synthesis as module
from syndic.methods.synthesis.cut import CutRound
from syndic.methods.synthesis.measure import Question
from syndic.methods.synthesis.plan import _COINS_SHOWN, SynthesisPlan
from syndic.methods.synthesis.rounds import Answer
from syndic.model.selection.parity import most_flipped
from syndic.mpc import product
from syndic.mpc.coins import CoinProduct, _Coins, _Tossed
from syndic.mpc.dealer import deal_products
from syndic.mpc.product_messages import UNPROVEN, ProductStart
from syndic.mpc.ring import Residues
from syndic.mpc.triple import Stock, left_share
from syndic.noise.binomial import SLACK, BinomialNoise
from syndic.privacy import Cost

NAMES = "abcde"
PEOPLE = {"north": 90, "south": 60}
Held = dict[str, tuple[str, str]]
FOUR: Held = {"p": ("north", "ab"), "q": ("north", "c"), "r": ("north", "d"), "s": ("north", "e")}
THREE: Held = {"p": ("north", "ab"), "q": ("north", "cd"), "r": ("north", "e")}
LACKING: Held = {"p": ("north", "abc"), "q": ("north", "de"), "t": ("south", "abcd")}
SERVED = 'servers = ["p", "q", "r"]'
SERVED_BY_FOUR = 'servers = ["s", "p", "r", "q"]'
TABLES = (("a", "c"), ("b", "d"), ("a", "e"), ("a", "b"), ("c",))
HALVES = ((0, 1, 1, 0),) * len(NAMES)


def columns(sizes: dict[str, int]) -> str:
    return "".join(
        f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = {size - 1}\n'
        f"missing = {{ value = 0 }}\n"
        for name, size in sizes.items()
    )


def study(
    held: Held,
    more: str = "",
    *,
    budget: str = "epsilon = 4\ndelta = 1e-6",
    unit: str = 'neighbours = "replace"',
    sizes: dict[str, int] | None = None,
    people: dict[str, int] | None = None,
    limits: str = "",
    top: str = "",
) -> Study:
    sizes, counted = sizes or dict.fromkeys(NAMES, 4), people or PEOPLE
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = {counted[group]}\ngroup = "{group}"\ncolumns = {list(own)}\n'
        for name, (group, own) in held.items()
    )
    protocol = f'method = "synthesis"\nmodel_cells = 1024\n{more}'
    text = study_text(protocol=protocol, unit=unit, budget=budget, parties=parties, columns=columns(sizes), top=top)
    return Study.loads(text + limits)


def people(group: str) -> pa.Table:
    draws = np.random.default_rng(PEOPLE[group])
    return pa.table({name: draws.integers(0, 4, PEOPLE[group]) for name in NAMES})


def planned(agreed: Study) -> SynthesisPlan:
    return agreed.plan_as(SynthesisPlan)


def round_of(agreed: Study, question: Question) -> CutRound:
    made = planned(agreed)
    made.check_question(question)
    assert made.reach is not None
    return made.reach.round_of(question)


def places_of(now: CutRound) -> set[int]:
    return {place for places in now.tossed.values() for place in places}


# What it costs: every study and question, as the parties would work it out.


def charged(now: CutRound, agreed: Study, question: Question) -> tuple[float, Fraction]:
    """Return the most that a replaced row moves the tables of a round, as mu^2, and the slack, of the noise it has."""
    account, tossed, found = planned(agreed).account, places_of(now), []
    steps = (2,) if question.parity else (1, 1)
    left = (account.parties - account.colluding - account.missing) / account.parties
    for place, who in enumerate(now.layout.counting):
        if place in tossed:
            assert now.coins is not None
            found.append(sum(now.coins.noise.mu(one) ** 2 for one in steps))
        else:
            shared = now.share.variance(now.share.shares) * left
            found.append(sum(one**2 for one in steps) / (shared if len(who) > 1 else now.whole.variance(1)))
    most = most_flipped(question.tables) if question.parity else len(found)
    grid = max(now.share.noise.event.slack, now.whole.noise.event.slack)
    return sum(sorted(found)[len(found) - most :]), grid + len(tossed) * len(steps) * SLACK


def asked_at_random(seed: int) -> Iterator[tuple[Study, Question]]:
    draws = random.Random(seed)
    options = ("", 'adversary = "passive"', 'selector = "adaptive"', "coordinator_noise = true", "traffic = 30")
    while True:
        names = "abcdefg"[: draws.randint(3, 7)]
        cut = sorted(draws.sample(range(1, len(names)), draws.randint(1, min(3, len(names) - 1))))
        parts = [names[one:two] for one, two in zip([0, *cut], [*cut, len(names)], strict=True)]
        held = {"pqrs"[place]: ("north", own) for place, own in enumerate(parts)}
        held |= draws.choice([{}, {}, {"t": ("south", names[: draws.randint(1, len(names))])}])
        agreed = study(
            held,
            draws.choice([*options, *[SERVED, SERVED_BY_FOUR][len(parts) - 3 :] * 5 * (len(parts) > 2)]),
            budget=f"epsilon = {draws.choice([0.05, 0.5, 2, 8, 12])}\ndelta = {draws.choice([1e-6, 1e-9])}",
            sizes={name: draws.randint(2, 9) for name in names},
            people=dict.fromkeys(PEOPLE, draws.choice([30, 900, 40_000])),
        )
        try:
            rooms = planned(agreed).size.rooms
        except SyndicError:  # a budget so small for so little delta
            continue
        for number, room in enumerate(rooms, 1):
            pool = [some for size in range(1, 5 if room.parity else 4) for some in itertools.combinations(names, size)]
            tables = tuple(draws.sample(pool, min(draws.choice([1, 3, 20]), len(pool))))
            halves = tuple(tuple(level % 2 for level in range(agreed.schema[name].size)) for name in names)
            question = Question(number=number, tables=tables, groups=halves if room.parity else (), parity=room.parity)
            try:
                planned(agreed).check_question(question)
            except RefusedError:
                continue
            yield agreed, question


def test_no_round_moves_more_than_is_charged() -> None:
    tossed = both = triples = 0
    for agreed, question in itertools.islice(asked_at_random(3), 200):
        now, made = round_of(agreed, question), planned(agreed)
        event, (moved, slack) = made.account.events[question.number - 1], charged(now, agreed, question)
        assert moved <= float(event.mu_squared) * (1 + 1e-12)
        assert slack <= event.slack
        assert len(places_of(now)) <= made.account.most_tossed(parity=question.parity)
        assert Cost.of(made.account.events).epsilon(agreed.budget.delta) <= agreed.budget.epsilon
        for place, variance in enumerate(now.variances):
            shared = now.share.variance(now.share.shares)
            assert variance <= shared * (1 + 1e-12)
            if place in places_of(now):
                assert now.coins is not None
                assert len(now.layout.counting[place]) in (2, 3)
                triples += len(now.layout.counting[place]) == 3
                assert variance == sum(one**2 for one in now.coins.noise.coins) / 4 < shared
                # half a count in every cell would be more than the noise of a sum over many
                mean = sum(now.coins.noise.coins) / 2
                assert abs(now.coins.noise.mean - mean) <= (0.5 if now.coins.noise.power else 0)
        tossed += bool(now.tossed)
        both += bool(now.tossed) and len(places_of(now)) < len(question.tables)
    assert tossed > 30
    assert both > 15
    assert triples > 15


@pytest.mark.parametrize(
    ("held", "more", "changes"),
    [
        (LACKING, "", {"unit": 'neighbours = "replace"\nparties = 2'}),
        ({**THREE, "r": ("north", "de")}, "", {"top": 'read_from = { d = ["q", "r"] }'}),
        (THREE, "colluding = 0", {}),
        (THREE, 'adversary = "passive"', {}),
    ],
)
def test_where_a_person_moves_more_or_nobody_is_trusted_to_deal_nobody_tosses(
    held: Held, more: str, changes: Any
) -> None:
    made = planned(study(held, more, **changes))
    assert not made.coins
    assert made.account.coins == 0
    assert _COINS_SHOWN not in made.disclosure.not_protected


@pytest.mark.parametrize("budget", ["epsilon = 16\ndelta = 1e-6", "epsilon = 12\ndelta = 1e-9"])
def test_where_delta_has_no_room_for_slack_nobody_tosses_and_nothing_says_so(budget: str) -> None:
    agreed = study(THREE, budget=budget)
    made = planned(agreed)
    assert made.account.most_tossed() == 0
    assert not round_of(agreed, Question(number=2, tables=TABLES)).tossed
    assert not made.coins
    assert not any("coins" in note for note in made.resources.notes)
    assert _COINS_SHOWN not in made.disclosure.not_protected
    assert _COINS_SHOWN in planned(study(THREE)).disclosure.not_protected


def test_tables_of_which_each_has_too_little_of_the_budget_for_any_coins_are_still_counted() -> None:
    """A value cannot move by less than a step of the coins' widest weight: the round would fail after others paid."""
    names = [f"c{place}" for place in range(20)]
    held: Any = {"p": ("north", names[:10]), "q": ("north", names[10:])}
    agreed = study(
        held,
        budget="epsilon = 0.05\ndelta = 1e-6",
        sizes=dict.fromkeys(names, 2),
        people={"north": 3000, "south": 1},
    )
    made = planned(agreed)
    assert made.reach is not None
    sets = tuple(itertools.islice(itertools.combinations(names, 3), made.size.rooms[2].tables))
    kept = made.reach.fitting_sets(3, sets, made.terms.schema.domain)
    now = round_of(agreed, Question(number=3, tables=kept, groups=((0, 1),) * 20, parity=True))
    assert now.product is not None
    assert not now.tossed


# The law of what opens.


def law_of(noise: BinomialNoise) -> NDArray[np.float64]:
    law = np.ones(1)
    for weight in noise.coins:
        pad = np.zeros(weight)
        law = np.concatenate([law, pad]) / 2 + np.concatenate([pad, law]) / 2
    return law


def losses(noise: BinomialNoise, shifts: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the chances of all results of values that move so, and the losses of each, infinite at the ends."""
    law, one, other = law_of(noise), np.ones(1), np.ones(1)
    for shift in shifts:
        pad = np.zeros(abs(shift))
        here, there = (np.concatenate(pair) for pair in ([law, pad], [pad, law])[:: 1 if shift > 0 else -1])
        one, other = np.outer(one, here).ravel(), np.outer(other, there).ravel()
    some = one > 0
    with np.errstate(divide="ignore"):
        return one[some], np.log(one[some] / other[some])


def gaussian_delta(mu_squared: float, epsilon: NDArray[np.float64] | float) -> Any:
    """Return the exact profile of Gaussian noise, at infinite losses as well."""
    mu, at = mu_squared**0.5, np.clip(epsilon, -300, 300)
    return ndtr(mu / 2 - at / mu) - np.exp(at) * ndtr(-mu / 2 - at / mu)


@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize("parity", [False, True])
def test_the_exact_law_of_a_mixed_round_is_within_what_is_charged(epsilon: float, parity: bool) -> None:
    """Tables of one party have Gaussian noise, those of two have coins; the loss of both together is exact here."""
    agreed = study(THREE, budget=f"epsilon = {epsilon}\ndelta = 1e-6")
    tables = (("a", "b", "c"), ("a", "b", "e"), ("a", "b")) if parity else (("a", "c"), ("a", "b"), ("e",))
    question = Question(number=3 if parity else 2, tables=tables, groups=HALVES if parity else (), parity=parity)
    now, event = round_of(agreed, question), planned(agreed).account.events[question.number - 1]
    assert now.coins is not None
    # of these sets a row may change all at once; more values of coins than two are too many results
    coined = [(place, (2,) if parity else (1, -1)) for place in places_of(now)]
    shifts = tuple(shift for _, some in coined for shift in some)
    assert len(shifts) == 2
    chances, loss = losses(now.coins.noise, shifts)
    rest = (len(tables) - len(coined)) * (4 if parity else 2) / now.whole.variance(1)
    for at in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        exact = float((chances * gaussian_delta(rest, at - loss)).sum())
        allowed = float(gaussian_delta(float(event.mu_squared), at)) + (1 + math.exp(at)) * float(event.slack)
        assert exact <= allowed
        assert exact > 0.9 * allowed or at > 0, "a test that can fail"


def test_a_second_question_may_depend_on_what_coins_opened() -> None:
    """The worst of two second rounds, chosen by the result of the first."""
    agreed = study(THREE, budget="epsilon = 1\ndelta = 1e-6")
    made = planned(agreed)
    first = round_of(agreed, Question(number=2, tables=(("a", "c"),)))
    assert first.coins is not None
    chances, loss = losses(first.coins.noise, (1, -1))
    second = [
        losses(one.coins.noise, shifts)
        for tables, shifts in (((("a", "c"),), (1, -1)), ((("a", "d"), ("b", "d")), (1, -1)))
        if (one := round_of(agreed, Question(number=4, tables=tables))).coins is not None
    ]
    # two tables of which a row moves only one cost no more than one table
    assert len(second) == 2
    mu_squared = float(made.account.events[1].mu_squared + made.account.events[3].mu_squared)
    slack = float(made.account.events[1].slack + made.account.events[3].slack)
    for at in (0.2, 1.0, 2.0):
        asked = np.linspace(at - 12, at + 12, 1201)
        worst = np.max([[np.maximum(c * -np.expm1(x - o), 0).sum() for x in asked] for c, o in second], axis=0)
        # delta falls as epsilon grows: rounded down, an upper bound
        floor = np.clip(np.floor((at - loss - asked[0]) / (asked[1] - asked[0])), 0, asked.size - 1).astype(int)
        exact = float((chances * np.where(at - loss < asked[0], 1.0, worst[floor])).sum())
        assert exact <= float(gaussian_delta(mu_squared, at)) * 1.02 + (1 + math.exp(at)) * slack


def test_counts_and_noise_have_room() -> None:
    for epsilon, sizes in itertools.product((0.05, 1, 8), (2, 9)):
        agreed = study(THREE, budget=f"epsilon = {epsilon}\ndelta = 1e-6", sizes=dict.fromkeys(NAMES, sizes))
        now = round_of(agreed, Question(number=2, tables=TABLES))
        if now.coins is None:
            continue
        ring = now.multiplied.sizes.ring
        assert isinstance(ring, Residues)
        half = ring.modulus // 2
        left = half - PEOPLE["north"] - 1
        # Hoeffding: coins of which each is 0 or its weight
        chance = math.log(2 * now.layout.dimension) - left**2 / (2 * now.coins.noise.variance)
        assert chance <= -63.9 * math.log(2)
        assert now.coins.sizes.ring == ring


# Who knows the noise.


def started(agreed: Study, held: Held, folder: Path) -> tuple[Carrier, Callable[[Question], Answer]]:
    """Ask the first round, and return what asks the next."""
    rows = {name: people(group).select(list(own)) for name, (group, own) in held.items()}
    carrier, session = carried(agreed, rows, folder)
    sums = planned(agreed).masked_sums
    assert sums is not None
    assert isinstance(agreed.protocol, Synthesis)
    opened: Any = partial(agreed.protocol._open, session, sums.start(session))  # type: ignore[arg-type]

    opened(Question(number=1, tables=(("a",),)))
    return carrier, opened


def exact(names: tuple[str, ...], group: str = "north") -> NDArray[np.int64]:
    found = np.zeros((4,) * len(names), dtype=np.int64)
    np.add.at(found, tuple(np.asarray(people(group)[name]) for name in names), 1)
    return found.ravel()


def seed_of(carrier: Carrier, now: CutRound, name: str) -> bytes:
    assert now.coins is not None
    return decode(carrier.nodes[name].state.memory.kept(f"{now.coins.label} coins") or b"", _Coins).seed


def coins_of(carrier: Carrier, now: CutRound, name: str) -> NDArray[np.int64]:
    """Return all coins of a party, from its memory."""
    seed, coins = seed_of(carrier, now, name), now.coins
    assert coins is not None

    class Memory:
        def recall(self, *_: Any) -> _Coins:
            return _Coins(seed=seed)

    memory: Any = Memory()
    memory.name = name
    return coins.coins(memory, 0, coins.sizes.rows).astype(np.int64)


def noise_of(answered: Answer, now: CutRound, place: int, factor: float = 1.0) -> NDArray[np.float64]:
    return answered.values[now.layout.spans[place]] / factor - exact(now.layout.tables[place])


def tossed_noise(carrier: Carrier, now: CutRound) -> dict[int, NDArray[np.int64]]:
    """Return the noise of every tossed table, from the coins of both parties."""
    coins, starts, found = now.coins, dict.fromkeys(now.layout.blocks, 0), {}
    assert coins is not None
    for pair, places in now.tossed.items():
        for place in places:
            size = now.layout.size(now.layout.tables[place])
            one, other = (coins_of(carrier, now, name)[:, starts[name] : starts[name] + size] for name in pair)
            found[place] = np.array(coins.noise.coins) @ (one ^ other) - coins.noise.mean
            starts |= {name: starts[name] + size for name in pair}
    return found


SECOND = Question(number=2, tables=TABLES)


@pytest.mark.parametrize("more", ["", SERVED])
def test_what_opens_is_the_exact_table_and_the_coins_of_its_two_parties(more: str, tmp_path: Path) -> None:
    agreed = study(THREE, more)
    carrier, opened = started(agreed, THREE, tmp_path)
    answered, now = opened(SECOND), round_of(agreed, SECOND)
    noise = tossed_noise(carrier, now)
    assert set(noise) == {0, 1, 2}
    for place, one in noise.items():
        assert noise_of(answered, now, place).tolist() == one.tolist()
        assert answered.variances[place] == now.coins.noise.variance  # type: ignore[union-attr]
    # Gaussian noise is on a finer grid
    assert (noise_of(answered, now, 3) % 1 != 0).all()
    carrier.close()


def test_two_of_three_parties_toss_the_noise_of_a_table(tmp_path: Path) -> None:
    agreed, question = study(FOUR, SERVED_BY_FOUR), Question(number=2, tables=(("a", "e", "c"), ("d", "b"), ("a", "b")))
    carrier, opened = started(agreed, FOUR, tmp_path)
    answered, now = opened(question), round_of(agreed, question)
    noise = tossed_noise(carrier, now)
    assert now.tossed == {("p", "r"): (1,), ("p", "q"): (0,)}
    table = exact(("a", "e", "c"))
    for place, one in noise.items():
        names, own = question.tables[place], answered.values[now.layout.spans[place]]
        assert (own - (table if place == 0 else exact(names))).tolist() == one.tolist()
    carrier.close()


def test_where_two_may_collude_no_table_of_three_parties_is_counted() -> None:
    """Two of the three have the shares, whose sum is the exact table, and know the noise that they toss."""
    question = Question(number=2, tables=(("a", "e", "c"), ("d", "b")))
    for number, places in ((1, {0, 1}), (2, {1})):
        agreed = study(FOUR, f"{SERVED_BY_FOUR}\ncolluding = {number}", budget="epsilon = 1\ndelta = 1e-6")
        planned = agreed.plan_as(SynthesisPlan)
        assert planned.account.tosses(3) == (number == 1)
        assert planned.account.tosses(2)
        if number == 1:
            assert places_of(round_of(agreed, question)) == places
            continue
        with pytest.raises(RefusedError, match="no group has at one or two parties"):
            planned.check_question(question)
        planned.check_question(Question(number=2, tables=(("d", "b"),)))


def test_people_that_a_table_lacks_scale_its_coins_and_their_variance(tmp_path: Path) -> None:
    agreed, question = study(LACKING), Question(number=2, tables=(("a", "e"), ("a", "d")))
    carrier, opened = started(agreed, LACKING, tmp_path)
    answered, now = opened(question), round_of(agreed, question)
    # t counts a and d of other people: its table has shares
    assert now.tossed == {("p", "q"): (0,)}
    factor = sum(PEOPLE.values()) / PEOPLE["north"]
    assert noise_of(answered, now, 0, factor) == pytest.approx(tossed_noise(carrier, now)[0])
    assert now.coins is not None
    assert answered.variances[0] == pytest.approx(now.coins.noise.variance * factor**2)
    carrier.close()


def test_the_coins_of_a_party_are_nowhere_else(tmp_path: Path) -> None:
    """Neither on the wire nor in the files of another party; replies that carry them are sealed."""
    agreed = study(THREE)
    carrier, opened = started(agreed, THREE, tmp_path)
    opened(SECOND)
    now = round_of(agreed, SECOND)
    assert now.coins is not None
    seeds = {name: seed_of(carrier, now, name) for name in THREE}
    assert len(set(seeds.values())) == 3
    for name, seed in seeds.items():
        assert not any(seed in data for data in carrier.seen)
        others = [node.state.memory.kept(f"{now.coins.label} coins") for other, node in carrier.nodes.items()]
        assert sum(seed in (one or b"") for one in others) == 1
        files = [path for path in tmp_path.rglob("*") if path.is_file() and seed in path.read_bytes()]
        assert all(name in str(path.relative_to(tmp_path)) for path in files)
    carrier.close()


# Lies of a party.


def charges(carrier: Carrier) -> list[int]:
    ledgers = [node.state.ledger for node in carrier.nodes.values()]
    return [sum(entry.kind == "reserve" for entry in ledger.entries()) for ledger in ledgers]


@pytest.mark.parametrize("more", ["", SERVED])
@pytest.mark.parametrize("liar", ["p", "r"])
def test_a_coin_that_is_no_bit_is_refused_before_anybody_is_charged(
    liar: str, more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = _Tossed.coins

    def coins(self: _Tossed, party: Party, start: int, stop: int) -> NDArray[Any]:
        found = honest(self, party, start, stop).astype(np.int64)
        if party.name == liar:
            found[0, 0] = 2
        return found

    carrier, opened = started(study(THREE, more), THREE, tmp_path)
    monkeypatch.setattr(_Tossed, "coins", coins)
    with pytest.raises(PartyError, match=UNPROVEN):
        opened(SECOND)
    assert charges(carrier) == [1, 1, 1]
    carrier.close()


def test_a_party_that_lies_shows_a_coordinator_that_looks_the_exact_tables_as_the_plan_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It proves coins of 0 and multiplies by 1/2: the noise is the weighted sum of what the dealer masks with."""
    agreed = study(THREE, budget="epsilon = 1\ndelta = 1e-6")
    question = Question(number=2, tables=(("a", "c"),))
    carrier, opened = started(agreed, THREE, tmp_path)
    now = round_of(agreed, question)
    assert now.coins is not None
    field, weights, honest = now.coins.sizes.ring, np.array(now.coins.noise.coins), CoinProduct.coins
    assert isinstance(field, Residues)
    half = (field.modulus + 1) // 2

    def coins(self: CoinProduct, party: Party, start: int, stop: int) -> NDArray[Any]:
        return honest(self, party, start, stop) * (party.name != "p")

    def lying(rows: NDArray[Any], *given: Any) -> NDArray[Any]:
        # the lie is in the coins only: they have a row a coin
        rows = field.reduce(weights[:, None] * np.full(rows.shape, half)) if len(rows) == len(weights) else rows
        return left_share(rows, *given)

    monkeypatch.setattr(CoinProduct, "coins", coins)
    monkeypatch.setattr(product, "left_share", lying)
    answered = opened(question)
    starts = [
        decode(call.body, ProductStart).seed
        for call in (decode(data, Call) for data in carrier.seen[::2])
        if (call.step, call.party) == ("product_keys", "q")
    ]
    digest = carrier.nodes["q"].state.study
    stock = Stock(seed=starts[-1], study=digest, party="q", sizes=now.coins.sizes, label=now.coins.label)
    known = weights @ stock.mask(0, now.coins.columns("q")).astype(np.int64) - now.coins.noise.mean
    shown = field.lift(field.reduce(np.round(answered.values).astype(np.int64) - known))
    assert shown.tolist() == exact(("a", "c")).tolist()
    assert _COINS_SHOWN in planned(agreed).disclosure.not_protected
    carrier.close()


# Lies of the coordinator.


def nothing_opens(
    deal: Callable[[Any, Any, Any], None],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    match: str | None = None,
    more: str = "",
) -> None:
    carrier, opened = started(study(THREE, more), THREE, folder)
    monkeypatch.setattr(module, "deal_products", deal)
    with pytest.raises(PartyError, match=match):
        opened(SECOND)
    assert charges(carrier) == [1, 1, 1]
    carrier.close()


@pytest.mark.parametrize("more", ["", SERVED])
def test_a_coordinator_that_skips_the_coins_opens_nothing(
    more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deal(session: Any, uses: Any, dealt: Any) -> None:
        if not isinstance(dealt, _Tossed):
            deal_products(session, uses, dealt)

    nothing_opens(deal, tmp_path, monkeypatch, "answered once, in order", more)


@pytest.mark.parametrize("more", ["", SERVED])
def test_a_coordinator_that_skips_the_rows_opens_nothing(
    more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deal(session: Any, uses: Any, dealt: Any) -> None:
        if isinstance(dealt, _Tossed):
            deal_products(session, uses, dealt)

    nothing_opens(deal, tmp_path, monkeypatch, more=more)


@pytest.mark.parametrize("more", ["", SERVED])
@pytest.mark.parametrize("twice", [False, True])
def test_a_coordinator_that_deals_a_product_twice_opens_nothing(
    twice: bool, more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coins again would be a second noise on the same tables; the party takes rows dealt again for coins."""

    def deal(session: Any, uses: Any, dealt: Any) -> None:
        deal_products(session, uses, dealt)
        if isinstance(dealt, _Tossed) is twice:
            deal_products(session, uses, dealt)

    nothing_opens(deal, tmp_path, monkeypatch, more=more)


@pytest.mark.parametrize(("gone", "step"), [("q", "product_multiplied"), ("r", "product_masked"), ("p", "count")])
def test_without_one_party_nothing_opens(gone: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carrier, opened = started(study(THREE), THREE, tmp_path)
    honest, product_steps = Carrier.send, []

    def send(self: Carrier, calls: Any, *, seconds: float, arrived: Callable[[int], None]) -> Delivery:
        asked = [decode(data, Call).step for data in calls.values()]
        product_steps.extend(asked[:1])
        # of two products the second
        lost = asked[0] == step and (step == "count" or product_steps.count(step) == 2)
        kept = {name: data for name, data in calls.items() if not (lost and name == gone)}
        made = honest(self, kept, seconds=seconds, arrived=arrived)
        return Delivery(replies=made.replies, silent=dict.fromkeys(calls.keys() - kept.keys(), "gone"))

    monkeypatch.setattr(Carrier, "send", send)
    with pytest.raises(PartyError, match="gone"):
        opened(SECOND)
    spent = dict(zip(carrier.nodes, charges(carrier), strict=True))
    assert spent == {name: 2 if step == "count" and name != gone else 1 for name in THREE}
    carrier.close()


def test_messages_of_one_product_are_refused_in_the_other(tmp_path: Path) -> None:
    """What partners sealed, and so its proof, belongs to its place."""
    carrier, opened = started(study(THREE), THREE, tmp_path)
    first: dict[str, bytes] = {}

    def change(step: str, party: str, body: bytes) -> bytes:
        return first.setdefault(party, body) if step == "product_multiplied" else body

    carrier.change = change
    with pytest.raises(PartyError, match="does not open"):
        opened(SECOND)
    assert set(first) == set(THREE)
    assert charges(carrier) == [1, 1, 1]
    carrier.close()


@pytest.mark.parametrize("other", [TABLES[::-1], (("a", "c"),)])
@pytest.mark.parametrize("fooled", ["p", "r"])
def test_a_coordinator_that_asks_a_party_for_other_tables_opens_nothing(
    fooled: str, other: tuple[tuple[str, ...], ...], tmp_path: Path
) -> None:
    """The order of tables is a part of the question: it says whose coins are for which count."""
    carrier, opened = started(study(THREE), THREE, tmp_path)

    def change(step: str, party: str, body: bytes) -> bytes:
        asked = step in {"ask_round", "count"} and party == fooled
        return encode(Question(number=2, tables=other)) if asked else body

    carrier.change = change
    with pytest.raises(PartyError):
        opened(SECOND)
    assert charges(carrier) == [1, 1, 1]
    carrier.close()


def test_a_coordinator_that_counts_before_it_deals_or_again_gets_nothing(tmp_path: Path) -> None:
    agreed = study(THREE)
    carrier, opened = started(agreed, THREE, tmp_path)
    early: dict[str, str] = {}

    def change(step: str, party: str, body: bytes) -> bytes:
        if step.startswith("product"):
            early[f"{party} {len(early)}"] = asked(carrier, "count", party, SECOND).text
        return body

    carrier.change = change
    answered = opened(SECOND)
    assert len(early) == 2 * 4 * 3
    assert all("in order" in text or "no stored" in text or text for text in early.values())
    assert charges(carrier) == [2, 2, 2]
    late = [asked(carrier, "count", name, SECOND) for name in THREE]
    assert {one.code for one in late} == {"refused"}
    assert charges(carrier) == [2, 2, 2]
    assert (
        noise_of(answered, round_of(agreed, SECOND), 0).tolist()
        == tossed_noise(carrier, round_of(agreed, SECOND))[0].tolist()
    )
    carrier.close()


def asked(carrier: Carrier, step: str, party: str, message: Question) -> Reply:
    """Ask a step under a new call id, out of turn."""
    call = next(one for data in carrier.seen[::2] if (one := decode(data, Call)).party == party)
    fresh = f"{len(carrier.seen):032x}"
    given = replace(call, step=step, call=fresh, body=encode(message), check=None)
    return decode(answer(carrier.nodes[party], encode(given)), Reply)


def test_a_call_that_comes_again_gets_the_stored_answer_and_tosses_nothing(tmp_path: Path) -> None:
    agreed = study(THREE)
    carrier, opened = started(agreed, THREE, tmp_path)
    opened(SECOND)
    now = round_of(agreed, SECOND)
    before = [coins_of(carrier, now, name) for name in THREE]
    for data, reply in zip(carrier.seen[::2], carrier.seen[1::2], strict=True):
        call = decode(data, Call)
        if call.step == "ready":
            continue
        again, first = (
            decode(one, Reply) for one in (answer(carrier.nodes[call.party], encode(replace(call, check=None))), reply)
        )
        assert (again.code, again.body) == (first.code, first.body)
    assert charges(carrier) == [2, 2, 2]
    assert all((coins_of(carrier, now, name) == one).all() for name, one in zip(THREE, before, strict=True))
    carrier.close()


# What it takes.


@pytest.mark.parametrize("limit", [1, 2, 8])
def test_coins_of_a_question_fit_the_messages_of_the_study(limit: int) -> None:
    names = [f"c{place}" for place in range(30)]
    held: Any = {"p": ("north", names[:15]), "q": ("north", names[15:])}
    agreed = study(
        held,
        budget="epsilon = 1\ndelta = 1e-7",
        sizes=dict.fromkeys(names, 4),
        people={"north": 40_000, "south": 1},
        limits=f"[limits]\nmessage_mb = {limit}\n",
    )
    made = planned(agreed)
    tables = tuple(itertools.product(names[:15], names[15:]))[: made.size.rooms[1].tables]
    now = round_of(agreed, Question(number=2, tables=tables))
    assert made.reach is not None
    assert now.coins is not None
    sizes = now.coins.sizes
    masked = sizes.ring.packed_bytes(sizes.chunk * now.coins.columns("p"))
    assert masked <= limit * 10**6 / 4
    assert masked <= made.resources.reply_bytes
    sent = 2 * sizes.rows * now.coins.columns("p") * sizes.ring.bits // 8
    assert sent <= made.reach.coin_traffic


def test_few_people_announce_the_coins_that_they_send() -> None:
    """Coins of a round may take more than all rows of the people."""
    held: Held = {"p": ("north", "abc"), "q": ("north", "def")}
    agreed = study(held, budget="epsilon = 1\ndelta = 1e-6", sizes=dict.fromkeys("abcdef", 10))
    now = round_of(agreed, Question(number=2, tables=tuple(itertools.product("abc", "def"))))
    assert now.coins is not None
    masked = now.coins.sizes.ring.packed_bytes(now.coins.sizes.chunk * now.coins.columns("p"))
    assert masked <= planned(agreed).resources.reply_bytes
