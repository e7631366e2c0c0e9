"""Parities where parties hold different columns of the same people: exact but for noise, within traffic, checked."""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from aligning import Carrier, carried
from support import study_text
from syndic import Study, simulate
from syndic.errors import PartyError, RefusedError
from syndic.kernel import Party, decode, encode
from syndic.methods import Synthesis
from syndic.methods.synthesis.measure import Question
from syndic.methods.synthesis.plan import SynthesisPlan
from syndic.methods.synthesis.result import SyntheticTable
from syndic.methods.synthesis.rounds import Answer
from syndic.model.selection.parity import SIZES
from syndic.mpc.product_messages import UNPROVEN
from syndic.study import plan
from unit.methods import noiseless

NAMES = "abcde"
COLUMNS = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = 3\nmissing = {{ value = 0 }}\n'
    for name in NAMES
)
HALVES = ((0, 1, 1, 0), (1, 0, 0, 1), (0, 0, 1, 1), (0, 1, 0, 1), (1, 1, 1, 0))
SETS = tuple(names for size in SIZES for names in combinations(NAMES, size))
PEOPLE = {"north": 90, "south": 60}

Held = dict[str, tuple[str, str]]
TWO: Held = {"p": ("north", "abc"), "q": ("north", "de")}
GRID: Held = {"p": ("north", "abc"), "q": ("north", "de"), "r": ("south", "ad"), "s": ("south", "bce")}
BESIDE: Held = {"t": ("south", "abcde"), "p": ("north", "ab"), "q": ("north", "cde")}
THREE: Held = {"t": ("south", "abcde"), "p": ("north", "ab"), "q": ("north", "cd"), "r": ("north", "e")}
WHOLE: Held = {"p": ("north", "abcde"), "q": ("south", "abcde")}
FIVE: Held = {
    "p": ("north", "a"),
    "q": ("north", "bc"),
    "r": ("north", "de"),
    "s": ("south", "bce"),
    "t": ("south", "ad"),
}
LACKING: Held = {"p": ("north", "abcde"), "q": ("south", "abcd")}


def people(group: str) -> pa.Table:
    draws = np.random.default_rng(len(group) + PEOPLE[group])
    return pa.table({name: draws.integers(0, 4, PEOPLE[group]) for name in NAMES})


def study(held: Held, more: str = "", budget: str = "epsilon = 8.0\ndelta = 1e-6") -> Study:
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = {PEOPLE[group]}\ngroup = "{group}"\ncolumns = {list(own)}\n'
        for name, (group, own) in held.items()
    )
    protocol, unit = f'method = "synthesis"\nmodel_cells = 1024\n{more}', 'neighbours = "replace"'
    return Study.loads(study_text(protocol=protocol, unit=unit, budget=budget, parties=parties, columns=COLUMNS))


def sources(held: Held) -> dict[str, pa.Table]:
    return {name: people(group).select(list(own)) for name, (group, own) in held.items()}


def planned(agreed: Study) -> SynthesisPlan:
    return agreed.plan_as(SynthesisPlan)


def scan(sets: tuple[tuple[str, ...], ...] = SETS) -> Question:
    return Question(number=3, tables=tuple(map(tuple, sets)), groups=HALVES, parity=True)


def parity(names: tuple[str, ...], group: str) -> int:
    """Multiply the signs of every row, and add up."""
    table = people(group)
    signs = [1 - 2 * np.array(HALVES[NAMES.index(name)])[np.asarray(table[name])] for name in names]
    return int(np.prod(signs, axis=0).sum())


def counting(held: Held, names: tuple[str, ...], most: int = 2) -> list[str]:
    """Return the groups in which few enough parties have these columns."""
    found = []
    for group in dict.fromkeys(group for group, _ in held.values()):
        own = [set(names) & set(columns) for where, columns in held.values() if where == group]
        if set().union(*own) == set(names) and sum(map(bool, own)) <= most:
            found.append(group)
    return found


def exact(held: Held, names: tuple[str, ...], most: int = 2) -> float:
    """Return the parity over the groups that can count it, as if of all people."""
    groups = counting(held, names, most)
    whole = sum(PEOPLE[one] for one in {group for group, _ in held.values()})
    return whole / sum(PEOPLE[one] for one in groups) * sum(parity(names, group) for group in groups)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all noise away."""
    noiseless.silent(monkeypatch)


def third_round(agreed: Study, held: Held, folder: Path) -> tuple[Carrier, Callable[[Question], Answer]]:
    """Ask the two rounds before, and return what asks the third."""
    carrier, session = carried(agreed, sources(held), folder)
    sums = planned(agreed).masked_sums
    assert sums is not None
    assert isinstance(agreed.protocol, Synthesis)
    opened: Any = partial(agreed.protocol._open, session, sums.start(session))  # type: ignore[arg-type]
    for number in (1, 2):
        opened(Question(number=number, tables=(("a",),)))
    return carrier, opened


# Counting.


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(
    ("held", "more"),
    [
        (TWO, ""),
        (TWO, 'adversary = "passive"'),
        (GRID, ""),
        (BESIDE, ""),
        (THREE, ""),
        (GRID, 'servers = ["p", "q", "r"]'),
        (LACKING, ""),
    ],
)
def test_without_noise_every_parity_is_that_of_all_people(held: Held, more: str, tmp_path: Path) -> None:
    agreed = study(held, more)
    carrier, opened = third_round(agreed, held, tmp_path)
    sets = [names for names in (("a",), ("d", "c"), *SETS[2:]) if counting(held, names)]
    assert len(sets) == 16
    answered = opened(scan(tuple(sets)))
    assert answered.values == pytest.approx([exact(held, names) for names in sets])
    carrier.close()


@pytest.mark.usefixtures("silent")
def test_four_servers_count_parities_of_three_parties(tmp_path: Path) -> None:
    agreed = study(FIVE, 'servers = ["t", "q", "p", "r"]')
    carrier, opened = third_round(agreed, FIVE, tmp_path)
    assert all(counting(FIVE, names, 3) == ["north", "south"] for names in SETS)
    assert [counting(FIVE, names) for names in (("a", "b", "e"), ("a", "c", "d"))] == [["south"], ["south"]]
    assert opened(scan(SETS)).values == pytest.approx([exact(FIVE, names, 3) for names in SETS])
    carrier.close()


def test_noise_is_whole_within_a_party_and_from_coins_across(tmp_path: Path) -> None:
    agreed = study(TWO)
    carrier, opened = third_round(agreed, TWO, tmp_path)
    answered = opened(scan((("a", "b", "c"), ("a", "b", "d"))))
    event = planned(agreed).account.events[2]
    # a row that is replaced may change both by 2; noise of a few steps from coins is a little more than Gaussian
    least, (within, across) = 8 / float(event.mu_squared), answered.variances
    assert within == pytest.approx(least, rel=1e-3)
    assert least < across < 1.2 * least
    carrier.close()


def test_a_relation_across_parties_is_found_and_kept() -> None:
    draws = np.random.default_rng(5)
    values = draws.integers(0, 2, (4000, 6))
    values[:, -1] = (values[:, :2].sum(axis=1) + (draws.random(4000) < 0.05)) % 2
    table = pa.table({f"c{place}": values[:, place] for place in range(6)})
    columns = "".join(
        f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = 1\nmissing = {{ value = 0 }}\n'
        for name in table.column_names
    )
    held = {"p": table.column_names[:3], "q": table.column_names[3:]}
    parties = "".join(f'[[parties]]\nname = "{name}"\npeople = 4000\ncolumns = {own}\n' for name, own in held.items())
    agreed = Study.loads(
        study_text(
            protocol='method = "synthesis"',
            unit='neighbours = "replace"',
            budget="epsilon = 2\ndelta = 1e-6",
            parties=parties,
            columns=columns,
        )
    )
    made = simulate(agreed, {name: table.select(own) for name, own in held.items()}, seed=1).result
    assert isinstance(made, SyntheticTable)
    assert made.note.found == (("c0", "c1", "c5"),)
    rows = made.table.to_arrow()
    assert np.mean((np.asarray(rows["c0"]) + np.asarray(rows["c1"])) % 2 == np.asarray(rows["c5"])) > 0.9


# What is asked.


@pytest.mark.parametrize("traffic", [1, 30, 60, 100, 200, 2400])
def test_sets_are_asked_as_far_as_the_traffic_goes(traffic: int) -> None:
    made = planned(study(TWO, f"traffic = {traffic}"))
    assert made.reach is not None
    domain = scan().grouping(made.terms.schema.domain).domain_of_groups
    kept = made.reach.fitting_sets(3, SETS, domain)
    assert ("a", "b", "c") in kept, "it costs no traffic"
    assert (len(kept) == len(SETS)) is (traffic >= 200)
    assert len(kept) > 1 or traffic == 1
    # as many as every party accepts
    made.check_question(scan(kept))


def test_columns_that_are_sent_anyway_serve_more_sets() -> None:
    made = planned(study(TWO, "traffic = 60"))
    assert made.reach is not None
    domain = scan().grouping(made.terms.schema.domain).domain_of_groups
    kept = made.reach.fitting_sets(3, SETS, domain)
    across = [names for names in kept if set("abc") & set(names) and set("de") & set(names)]
    sent = {tuple(name for name in names if name in own) for names in across for own in ("abc", "de")}
    assert len(sent) < 10
    assert all(
        names in kept for names in SETS if {tuple(n for n in names if n in own) for own in ("abc", "de")} <= sent
    )


def test_sets_of_three_parties_or_with_a_side_of_one_value_are_not_asked() -> None:
    made = planned(study({"p": ("north", "ab"), "q": ("north", "cd"), "r": ("north", "e")}))
    assert made.reach is not None
    question = Question(number=3, tables=SETS, groups=((0, 0, 0, 0), *HALVES[1:]), parity=True)
    kept = made.reach.fitting_sets(3, SETS, question.grouping(made.terms.schema.domain).domain_of_groups)
    assert ["".join(names) for names in kept] == ["abc", "abd", "abe", "bcd", "cde", "abcd"]
    with pytest.raises(RefusedError, match="at one or two parties"):
        made.check_question(scan((("a", "c", "e"),)))


@pytest.mark.parametrize(("held", "few"), [(TWO, 1000), (WHOLE, 1100)])
def test_the_share_of_the_budget_is_what_it_takes_to_find_strong_parities(held: Held, few: int) -> None:
    def share(people: int) -> float:
        agreed = study(held, budget="epsilon = 1\ndelta = 1e-6")
        parties = tuple(msgspec.structs.replace(party, people=people // parts) for party in agreed.parties)
        events = planned(msgspec.structs.replace(agreed, parties=parties)).account.events
        return float(events[2].mu_squared / sum(event.mu_squared for event in events))

    parts = len({group for group, _ in held.values()})
    # what is strong is hard to find among few people; among very few most would be missed, whatever is spent
    assert share(90) == pytest.approx(0.01, rel=1e-3)
    assert share(few) == pytest.approx(0.05, rel=1e-3)
    assert 0.01 < share(2 * few) < 0.05
    assert share(100_000) == pytest.approx(0.01, rel=1e-3)
    assert len(planned(study(held, "interactions = false")).account.events) == 3


def test_where_no_three_columns_are_at_two_parties_there_is_no_round_of_parities() -> None:
    apart = {name: ("north", name) for name in NAMES}
    assert not any(room.parity for room in planned(study(apart)).size.rooms)
    assert "parities" not in plan(study(apart)).statement.sees["anyone with the release"]
    assert "parities of at most 16 set" in plan(study(TWO)).statement.sees["anyone with the release"]


def test_the_round_is_in_what_the_plan_says() -> None:
    with_them, without = (planned(study(TWO, more)) for more in ("", "interactions = false"))
    assert with_them.resources.rounds > without.resources.rounds
    traffic = [[room.traffic for room in one.size.rooms] for one in (with_them, without)]
    assert traffic[0].pop(2) == 2400 * 90 // 6
    assert traffic[0] == traffic[1]


# What a party, or a coordinator, cannot do.


@pytest.mark.parametrize("lie", [2, -1, 1000])
def test_a_party_that_enters_something_else_than_bits_is_caught(
    lie: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agreed = study(TWO)
    carrier, opened = third_round(agreed, TWO, tmp_path)
    honest = Synthesis.product_rows

    def lying(self: Synthesis, party: Party[SynthesisPlan], start: int, stop: int) -> Any:
        found = honest(self, party, start, stop)
        if party.name != "q":
            return found
        found = found.astype(np.int64)
        found[0, 0] = lie
        return found

    monkeypatch.setattr(Synthesis, "product_rows", lying)
    with pytest.raises(PartyError, match=UNPROVEN):
        opened(scan())
    spent = [sum(entry.kind == "reserve" for entry in node.state.ledger.entries()) for node in carrier.nodes.values()]
    assert spent == [2, 2], "nothing is charged for the round"
    carrier.close()


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(
    ("held", "other", "refused"),
    [
        (TWO, ("a", "b", "e"), "does not open"),
        (TWO, ("a", "b", "c"), "nothing is multiplied"),  # p would count it alone
        (BESIDE, ("a", "b", "e"), ""),  # t counts both alone
    ],
)
def test_a_coordinator_that_asks_for_different_sets_opens_nothing(
    held: Held, other: tuple[str, ...], refused: str, tmp_path: Path
) -> None:
    agreed, fair = study(held), scan((("a", "b", "d"),))
    carrier, opened = third_round(agreed, held, tmp_path)
    first = next(iter(held))

    def change(step: str, party: str, body: bytes) -> bytes:
        asked = step in {"ask_round", "count"} and party == first and decode(body, Question).number == 3
        return encode(scan((other,))) if asked else body

    carrier.change = change
    if refused:
        with pytest.raises(PartyError, match=refused):
            opened(fair)
    else:
        assert (opened(fair).values % 1 != 0).all(), "masks that do not cancel"
    carrier.close()


@pytest.mark.usefixtures("silent")
def test_a_coordinator_that_gives_a_party_other_halves_opens_nothing(tmp_path: Path) -> None:
    agreed, fair = study(TWO), scan()
    carrier, opened = third_round(agreed, TWO, tmp_path)
    other = Question(number=3, tables=SETS, groups=(HALVES[1], *HALVES[1:]), parity=True)

    def change(step: str, party: str, body: bytes) -> bytes:
        asked = step in {"ask_round", "count"} and party == "p" and decode(body, Question).number == 3
        return encode(other) if asked else body

    carrier.change = change
    with pytest.raises(PartyError, match="does not open"):
        opened(fair)
    carrier.close()
