"""Attacks on averaged columns: how far people move what opens, against the noise that is left to each adversary."""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import msgspec
import numpy as np
import pytest

from syndic import Study, simulate
from syndic.errors import InputError
from syndic.methods.describe.describe import DescribePlan
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.methods.synthesis.measure import Question
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.table_noise import COORDINATOR, TableNoise
from syndic.noise import GaussianShare
from syndic.noise.gaussian import DiscreteGaussian
from syndic.study import plan
from unit.methods.averaging import CUTS, DESCRIBE, LEVELS, SYNTHESIS, Held, Names, Rows, Rule, sources, study

Person = Mapping[tuple[str, str], int]
"""What each party says in each of its columns."""
Vector = Callable[[str, Person], Any]
"""What a person of a group adds to all numbers that open, in people."""

MARGINALS = 'method = "marginals"'
REGRESSION = 'method = "describe"\nregressions = [{ kind = "linear", outcome = "a", on = ["b", "c"] }]'
SETS = tuple(names for size in (1, 2, 3, 4) for names in combinations("abcd", size))
SIGNS = {"a": (1, 1, -1), "b": (1, -1), "c": (1, -1), "d": (1, -1)}


def in_places(places: int) -> str:
    return f'neighbours = "replace"\nparties = {places}'


def groups_in(held: Held) -> list[str]:
    return list(dict.fromkeys(group for group, _ in held.values()))


def everybody(held: Held, group: str) -> list[dict[tuple[str, str], int]]:
    """Return all people that a group can have."""
    places = [(party, name) for party, (where, own) in held.items() if where == group for name in own]
    return [dict(zip(places, one, strict=True)) for one in product(*(range(LEVELS[name]) for _, name in places))]


def added(held: Held, rule: Rule, group: str, person: Person, names: Names) -> Any:
    """Return what a person adds to a table: the mean of whole people; nothing if one of them is at three parties."""
    has = {name: [party for party, (where, own) in held.items() if where == group and name in own] for name in "abcd"}
    read = {name: tuple(one for one in own if one in rule.get(name, "")) or tuple(own[:1]) for name, own in has.items()}
    table, sets = np.zeros([LEVELS[name] for name in names]), sorted({read[name] for name in names})
    for chosen in product(*sets):
        who = {name: chosen[sets.index(read[name])] for name in names}
        if len({*who.values()}) > 2:
            return np.zeros_like(table)
        table[tuple(person[who[name], name] for name in names)] += 1 / np.prod([len(one) for one in sets])
    return table


def variances(noise: Any, size: int) -> Any:
    """Return the parameter sigma^2 of what a role draws on every number, in units of the values."""
    if not isinstance(noise, TableNoise):
        return np.full(size, float(noise.sigma_squared))
    found = np.zeros(size)
    for marked, drawn in ((noise.shared, noise.share), (noise.own, noise.whole)):
        found[marked] += float(drawn.sigma_squared)  # type: ignore[attr-defined]
    return found


def moved(vectors: Any, known: list[Any], left: Any) -> float:
    """Return how far two people that an adversary knows alike are apart, in standard deviations that it leaves."""
    most = 0.0
    for mine in set(known):
        some = np.unique(vectors[[own == mine for own in known]], axis=0)
        for one in some:
            apart = (some - one) ** 2
            assert not apart[:, left == 0].any()  # nobody else moves a number of which an adversary knows all noise
            most = max(most, float((apart[:, left > 0] / left[left > 0]).sum(axis=1).max()))
    return float(most**0.5)


def mu_squared(
    held: Held, noises: Mapping[str, Any], vector: Vector, one: int, inside: Iterable[str], places: int
) -> float:
    """Return mu^2 of all that opens, for a person in `places` groups, against those `inside`, who know their values."""
    inside, reach = set(inside), []
    for group in groups_in(held):
        every = everybody(held, group)
        vectors = np.array([vector(group, person) for person in every])
        drawn = (variances(noise, vectors.shape[1]) for role, noise in noises.items() if role not in inside)
        known = [tuple(value for (party, _), value in person.items() if party in inside) for person in every]
        reach.append(moved(vectors, known, sum(drawn) / one**2))
    return sum(sorted(reach)[-places:]) ** 2


def of_tables(held: Held, rule: Rule, tables: Iterable[Names]) -> Vector:
    return lambda group, person: np.concatenate([added(held, rule, group, person, one).ravel() for one in tables])


def of_parities(held: Held, rule: Rule, sets: Iterable[Names]) -> Vector:
    def parity(group: str, person: Person, names: Names) -> float:
        table = added(held, rule, group, person, names)
        for name in names:
            table = np.tensordot(SIGNS[name], table, axes=(0, 0))
        return float(table)

    return lambda group, person: np.array([parity(group, person, names) for names in sets])


def of_sums(held: Held, rule: Rule, planned: DescribePlan) -> Vector:
    def sums(group: str, person: Person, readings: Any) -> Any:
        names = readings.block.clique
        own = added(held, rule, group, person, names).reshape(-1, LEVELS[names[-1]]) @ readings.matrix
        places = [place == group for place in groups_in(held)] if readings.block.within else [True]
        return np.concatenate([own.ravel() * here for here in places]) / (1 << planned.note.bits)

    return lambda group, person: np.concatenate([sums(group, person, one) for one in planned.readings])


def coalitions(held: Held, *, coordinator: bool, colluding: int) -> list[tuple[str, ...]]:
    roles = [*held, *([COORDINATOR] if coordinator else [])]
    return [(), *combinations(roles, colluding)]


@pytest.mark.parametrize(
    ("which", "protocol", "places", "colluding"),
    [
        ("three holders", MARGINALS, 1, 1),
        ("both orders", f"{MARGINALS}\ncoordinator_noise = true", 1, 1),
        ("both orders", f"{MARGINALS}\ncolluding = 2", 1, 2),
        ("nothing across", MARGINALS, 1, 1),
        ("two by two", MARGINALS, 2, 1),
        ("one of two groups", f"{MARGINALS}\ncolluding = 2", 1, 2),
        ("two by two", DESCRIBE, 2, 1),
        ("read together", REGRESSION, 1, 1),
    ],
)
def test_noise_that_an_adversary_leaves_covers_what_others_move(
    which: str, protocol: str, places: int, colluding: int
) -> None:
    """All pairs of people. An adversary is any `colluding` roles, which know their values and shares of the noise."""
    held, rule = CUTS[which]
    planned = study(held, rule, protocol, unit=in_places(places)).plan_as(MarginalsPlan)
    coordinator = planned.coordinator_noise
    noises = {role: planned.noise_at(role) for role in [*held, *([COORDINATOR] if coordinator else [])]}
    sums = isinstance(planned, DescribePlan)
    vector = of_sums(held, rule, planned) if sums else of_tables(held, rule, planned.cliques)  # type: ignore[arg-type]
    charged: Any = planned.events("p")[0]
    found = [
        mu_squared(held, noises, vector, planned.one, inside, places) / float(2 * places * charged.rho)
        for inside in coalitions(held, coordinator=coordinator, colluding=colluding)
    ]
    # far less would be noise for nothing: all parties add a share, so that a few are enough
    assert 0.4 < max(found) <= 1 + 1e-9


def test_one_owner_in_two_groups_leaves_enough_noise() -> None:
    held: Held = {"p": ("x", "abc"), "q": ("x", "abd"), "r": ("y", "abcd"), "s": ("y", "ab")}
    rule = {"a": "pqrs", "b": "qr"}
    agreed = study(held, rule, unit=in_places(2))
    owners = {"p": "one", "r": "one"}
    parties = tuple(msgspec.structs.replace(each, owner=owners.get(each.name, each.name)) for each in agreed.parties)
    planned = msgspec.structs.replace(agreed, parties=parties).plan_as(MarginalsPlan)
    noises = {role: planned.noise_at(role) for role in held}
    vector, charged = of_tables(held, rule, planned.cliques), planned.noise.event
    assert planned.noise.honest == 2
    for inside in [("p", "r"), ("q",), ("s",)]:
        assert mu_squared(held, noises, vector, planned.one, inside, 2) <= 4 * float(charged.rho) * (1 + 1e-9)  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "more", "places", "colluding"),
    [
        ("three holders", "", 1, 1),
        ("read together", "coordinator_noise = true", 1, 1),
        ("two sets", "colluding = 0", 1, 0),
        ("one of two groups", "", 2, 1),
        ("one of two groups", "colluding = 2", 2, 2),
    ],
)
def test_rounds_of_a_synthesis_leave_as_much(which: str, more: str, places: int, colluding: int) -> None:
    held, rule = CUTS[which]
    agreed = study(held, rule, f"{SYNTHESIS}\n{more}", unit=in_places(places))
    planned, domain = agreed.plan_as(SynthesisPlan), agreed.schema.domain
    assert planned.reach is not None
    for parity in (False, True):
        number = next(place for place, room in enumerate(planned.size.rooms, 1) if room.parity is parity and place > 1)
        some = [names for names in SETS if parity or len(names) < 3]
        asked = tuple(names for names in some if planned.reach.noisier(domain.project(names)) is not None)
        groups = tuple(tuple((1 - sign) // 2 for sign in SIGNS[name]) for name in "abcd") if parity else ()
        now = planned.reach.round_of(Question(number=number, tables=asked, groups=groups, parity=parity))
        coordinator = planned.coordinator_noise
        noises = {role: now.noise_at(role) for role in [*held, *([COORDINATOR] if coordinator else [])]}
        vector = of_parities(held, rule, asked) if parity else of_tables(held, rule, asked)
        allowed = float(places * planned.account.events[number - 1].mu_squared)
        # where nobody may collude, a party has one share less, and the statement a larger epsilon for it
        less = Fraction(len(held), len(held) - 1) if not colluding else 1
        assert bool(planned.disclosure.against) == (coordinator or not colluding)
        for inside in coalitions(held, coordinator=coordinator, colluding=max(1, colluding)):
            found = mu_squared(held, noises, vector, now.share.whole, inside, places)
            assert found <= allowed * (float(less) if inside else 1) * (1 + 1e-9), (parity, inside)


# What opens, of cuts that nobody chose.


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all noise away."""
    for noise in (GaussianShare, DiscreteGaussian):
        monkeypatch.setattr(noise, "draw", lambda _, shape, randomness: np.zeros(shape, np.int64))  # noqa: ARG005


def random_cut(rng: np.random.Generator) -> tuple[Held, Rule, Rows]:
    held: Held = {}
    for name in "pqrstu"[: rng.integers(3, 7)]:
        own = "".join(np.array(list("abcd"))[rng.random(4) < 0.7])
        held[name] = ("xy"[rng.integers(0, 2)], own or "a")
    rule = {}
    for column in {column for _, own in held.values() for column in own}:
        holders = [name for name, (_, own) in held.items() if column in own]
        rule[column] = "".join(rng.permutation(holders)[: rng.integers(1, len(holders) + 1)])
    people = {"x": 9, "y": 5}
    rows = {
        name: {column: rng.integers(0, LEVELS[column], people[group]) for column in own}
        for name, (group, own) in held.items()
    }
    return held, rule, rows


def agreed_of(held: Held, rule: Rule) -> Study | None:
    """Return the study of a cut, if it can run."""
    agreed = study(held, rule)
    sizes = {"x": 9, "y": 5}
    parties = tuple(msgspec.structs.replace(each, people=sizes[str(each.group)]) for each in agreed.parties)
    agreed = msgspec.structs.replace(agreed, parties=parties)
    try:
        agreed.check()
    except InputError:
        return None
    return agreed


@pytest.mark.slow
@pytest.mark.usefixtures("silent")
def test_random_cuts_open_the_means_of_whole_people() -> None:
    ran, parts = 0, set[int]()
    for seed in range(60):
        held, rule, found = random_cut(np.random.default_rng(seed))
        agreed = agreed_of(held, rule)
        if agreed is None or (one := agreed.plan_as(MarginalsPlan).one) in parts:
            continue
        result: Any = simulate(agreed, sources(found), seed=1).result
        for table in result.tables:
            expected = np.zeros(table.values.shape)
            for group in groups_in(held):
                own = {
                    (name, column): values
                    for name in found
                    if held[name][0] == group
                    for column, values in found[name].items()
                }
                if not set(table.domain.names) <= {column for _, column in own}:
                    continue
                for place in range({"x": 9, "y": 5}[group]):
                    person = {where: int(values[place]) for where, values in own.items()}
                    expected += added(held, rule, group, person, table.domain.names)
            assert table.values == pytest.approx(expected, abs=1e-9), (held, rule, table.domain.names)
        ran, parts = ran + 1, parts | {one}
    assert ran >= 4
    assert max(parts) > 4


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("adversary", ["active", "passive"])
def test_a_full_ring_does_not_wrap(adversary: str) -> None:
    """As many people as the smallest field has room for, or a ring of as many bits: all of them in one cell."""
    held, rule = CUTS["both orders"]

    def planned(people: int) -> tuple[Study, int]:
        found = study(
            held, rule, f'{MARGINALS}\nadversary = "{adversary}"', people=people, budget="epsilon = 9.0\ndelta = 1e-7"
        )
        return found, found.plan_as(MarginalsPlan).masked_sum.ring.bits

    low, high, bits = 1000, 20_000, planned(10_000)[1]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if planned(middle)[1] <= bits else (low, middle)
    agreed, _ = planned(low)
    assert 0.9 < low * 6 / (1 << (bits - 1)) <= 1
    given = {name: {column: np.full(low, LEVELS[column] - 1) for column in own} for name, (_, own) in held.items()}
    result: Any = simulate(agreed, sources(given), seed=1).result
    for table in result.tables:
        assert table.values.ravel()[-1] == low
        assert table.values.sum() == low


# What is refused, and what is said.


@pytest.mark.parametrize(
    ("protocol", "unit", "words"),
    [
        (MARGINALS, 'neighbours = "replace"\nrows = 3\nperson = "who"\nchoose = "weighted"', "set rows = 1"),
        (MARGINALS, 'neighbours = "add_remove"', 'set neighbours = "replace"'),
        (SYNTHESIS, 'neighbours = "replace"\nperson = "who"', "remove `person`"),
        ('method = "align"', 'neighbours = "replace"', "takes no groups of people"),
        (f"{MARGINALS}\nservers = ['p', 'q', 'r']\ncoordinator_noise = true", in_places(1), "there are no servers"),
    ],
)
def test_no_other_unit_or_method_averages(protocol: str, unit: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        study(*CUTS["both orders"], protocol, unit=unit).check()


def test_people_that_some_table_lacks_are_named_only_if_there_are_any() -> None:
    held: Held = dict.fromkeys("pqr", ("x", "abcd")) | {"s": ("y", "abcd")}
    some = "people that a table does not count"
    for rule, lacking in ((dict.fromkeys("abcd", "pqr"), False), ({"a": "pq", "b": "qr"}, True), ({"a": "pq"}, False)):
        told = plan(study(held, rule, SYNTHESIS)).statement.not_protected
        assert any(some in one for one in told) is lacking, rule
