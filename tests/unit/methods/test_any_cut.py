"""Tables over any cut: groups of people, different columns of a group at different parties."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aligning import carried
from support import VERTICAL, across_study, charges, rows, study_text, vertical_study
from syndic import Study, simulate
from syndic.data import Table, open_source
from syndic.errors import InputError, PartyError
from syndic.kernel import Call, Reply, decode
from syndic.kernel.cut import partners_with
from syndic.methods import Marginals
from syndic.methods.histogram.marginals_plan import MarginalsPlan, whole_noise
from syndic.methods.layout import TableLayout
from syndic.mpc.masked_sum import SumMasked
from syndic.noise import GaussianShare
from syndic.noise.gaussian import DiscreteGaussian
from syndic.random import Randomness, SimulationRandomness
from syndic.study import plan

REPLACE = 'neighbours = "replace"'
BUDGET = "epsilon = 1.0\ndelta = 1e-6"
NORTH, SOUTH = rows(60, 1), rows(45, 2)
HELD = {"a": ("north", ["colour", "age"]), "b": ("north", ["score"]), "c": ("south", ["colour"])}
HELD |= {"d": ("south", ["age", "score"])}
PEOPLE = {"north": NORTH, "south": SOUTH}


def parties(held: dict[str, tuple[str, list[str]]]) -> str:
    return "".join(
        f'[[parties]]\nname = "{name}"\npeople = {len(PEOPLE[group])}\ngroup = "{group}"\n'
        f"columns = [{', '.join(f'{one!r}' for one in columns)}]\n"
        for name, (group, columns) in held.items()
    )


def study(more: str = "", held: dict[str, tuple[str, list[str]]] = HELD, unit: str = REPLACE) -> Study:
    protocol = f'method = "marginals"\n{more}'
    return Study.loads(study_text(protocol=protocol, unit=unit, budget=BUDGET, parties=parties(held)))


def sources(held: dict[str, tuple[str, list[str]]] = HELD) -> dict[str, pa.Table]:
    return {name: PEOPLE[group].select(columns) for name, (group, columns) in held.items()}


def exact(agreed: Study, names: tuple[str, ...], *groups: str) -> Any:
    pooled = pa.concat_tables([PEOPLE[group] for group in groups])
    return Table(agreed.schema, open_source(pooled)).count(names).values


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all noise away."""

    def nothing(self: Any, shape: Any, randomness: Randomness) -> Any:
        del self, randomness
        return np.zeros(shape, dtype=np.int64)

    monkeypatch.setattr(GaussianShare, "draw", nothing)
    monkeypatch.setattr(DiscreteGaussian, "draw", nothing)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("more", ["", 'adversary = "passive"', 'servers = ["a", "c", "d"]'])
def test_without_noise_every_table_is_the_count_of_all_people(more: str) -> None:
    agreed = study(more)
    result: Any = simulate(agreed, sources(), seed=1).result
    names = [table.domain.names for table in result.tables]
    assert len(names) == 6
    for table in result.tables:
        assert table.values.tolist() == exact(agreed, table.domain.names, "north", "south").tolist(), table.domain.names


@pytest.mark.usefixtures("silent")
def test_sides_of_several_columns_are_counted_in_the_order_of_the_table() -> None:
    agreed = study('cliques = [["score", "colour", "age"]]')
    (table,) = simulate(agreed, sources(), seed=1).result.tables  # type: ignore[attr-defined]
    assert table.values.tolist() == exact(agreed, ("score", "colour", "age"), "north", "south").tolist()


@pytest.mark.usefixtures("silent")
def test_one_group_is_a_vertical_study_and_a_group_each_a_horizontal_one() -> None:
    vertical = {name: ("north", columns) for name, columns in (("a", ["colour"]), ("b", ["age", "score"]))}
    every = ["colour", "age", "score"]
    horizontal = {"a": ("north", every), "b": ("south", every)}
    for held, groups, partition in ((vertical, ["north"], "vertical"), (horizontal, [*PEOPLE], "horizontal")):
        agreed = study(held=held)
        assert agreed.partition == partition
        for table in simulate(agreed, sources(held), seed=1).result.tables:  # type: ignore[attr-defined]
            assert table.values.tolist() == exact(agreed, table.domain.names, *groups).tolist()


@pytest.mark.usefixtures("silent")
def test_a_column_at_two_parties_of_a_group_is_read_from_the_first() -> None:
    held = {"a": ("north", ["colour"]), "b": ("north", ["colour", "age", "score"])}
    agreed = study(held=held)
    assert "colour  a (also b)\n" in str(plan(agreed))
    given = sources(held)
    given["b"] = given["b"].set_column(0, "colour", pa.array(["blue"] * 60))
    for table in simulate(agreed, given, seed=1).result.tables:  # type: ignore[attr-defined]
        assert table.values.tolist() == exact(agreed, table.domain.names, "north").tolist()


LACKING = {**HELD, "d": ("south", ["age"])}


@pytest.mark.usefixtures("silent")
def test_what_a_group_lacks_is_counted_for_the_others_and_said() -> None:
    agreed = study(held=LACKING)
    result: Any = simulate(agreed, sources(LACKING), seed=1).result
    covers = dict(zip(result.note.tables, result.note.covers, strict=True))
    assert covers[("score",)] == covers["age", "score"] == pytest.approx(60 / 105)
    assert covers["colour", "age"] == 1
    for table in result.tables:
        groups = ["north"] if "score" in table.domain.names else ["north", "south"]
        assert table.values.tolist() == exact(agreed, table.domain.names, *groups).tolist()
    told = str(plan(agreed))
    assert "score: counted for 57% of the people" in told
    assert "  holds                north (60)  south (45)\n" in told
    assert "score   b           -\n" in told


@pytest.mark.usefixtures("silent")
def test_four_servers_count_a_table_of_three_parties_of_a_group() -> None:
    held = {"a": ("north", ["score"]), "b": ("north", ["age"]), "c": ("north", ["colour"])}
    held |= {"d": ("south", ["age", "score"]), "e": ("south", ["colour"])}
    agreed = study('cliques = [["colour", "age", "score"], ["age"]]\nservers = ["a", "b", "c", "e"]', held)
    given = sources(held)
    result: Any = simulate(agreed, given, seed=1).result
    for table in result.tables:
        assert table.values.tolist() == exact(agreed, table.domain.names, "north", "south").tolist()


def test_four_servers_count_no_table_of_three_parties_of_which_two_may_collude() -> None:
    """The two that have the shares would have the exact table, and with it the third party's column."""
    held = {"a": ("north", ["score"]), "b": ("north", ["age"]), "c": ("north", ["colour"]), "d": ("north", ["score"])}
    served = 'cliques = [["colour", "age", "score"]]\nservers = ["a", "b", "c", "d"]'
    study(served, held).check()
    with pytest.raises(InputError, match="colour, age, score at one or two parties"):
        study(f"{served}\ncolluding = 2", held).check()
    assert [partners_with(("a", "b", "c", "d"), number) for number in (0, 1, 2)] == [2, 3, 2]
    assert partners_with(("a", "b", "c"), 1) == partners_with((), 1) == 2


def test_three_parties_of_one_group_cannot_count_one_table() -> None:
    held = {"a": ("north", ["colour"]), "b": ("north", ["age"]), "c": ("north", ["score"])}
    with pytest.raises(InputError, match="colour, age, score at one or two parties"):
        study('cliques = [["colour", "age", "score"]]', held).check()
    study(held=held).check()


def test_noise_is_one_copy_over_all_parties_and_whole_where_one_counts() -> None:
    planned = study(held=LACKING).plan_as(MarginalsPlan)
    noise = planned.noise
    assert isinstance(noise, GaussianShare)
    assert (noise.parties, noise.honest) == (4, 3)
    assert noise.sensitivity_squared == 2 * len(planned.cliques)
    alone = dict(zip(planned.cliques, planned.deviations(4), strict=True))
    assert alone[("score",)] == pytest.approx((noise.variance * 3) ** 0.5)  # only b has it
    assert alone[("colour",)] == pytest.approx((noise.variance * 4) ** 0.5)


def test_noise_has_the_stated_size(tmp_path: Path) -> None:
    agreed = study(held=LACKING)
    result: Any = simulate(agreed, sources(LACKING), seed=5, folder=tmp_path).result
    for table, deviation in zip(result.tables, result.note.deviations, strict=True):
        groups = ["north"] if "score" in table.domain.names else ["north", "south"]
        noise = table.values - exact(agreed, table.domain.names, *groups)
        assert 0 < np.abs(noise).max() < 6 * deviation
    assert [len(charges(tmp_path, name)) for name in HELD] == [1, 1, 1, 1]


def test_people_in_two_groups_are_paid_for() -> None:
    one, two = (study(unit=f"{REPLACE}\nparties = {count}") for count in (1, 2))
    noise = [each.plan_as(MarginalsPlan).noise for each in (one, two)]
    # the sum moves twice as far, and the budget of one person is the same: twice the deviation
    assert noise[1].variance == pytest.approx(4 * noise[0].variance, rel=1e-3)
    assert float(two.joint.epsilon(two.delta)) <= 1 < 1.001 * float(two.joint.epsilon(two.delta)) + 1e-3
    with pytest.raises(InputError, match="at most the 2 groups"):
        study(unit=f"{REPLACE}\nparties = 3")


@pytest.mark.usefixtures("silent")
def test_a_person_in_two_groups_moves_the_sum_by_no_more_than_is_paid_for() -> None:
    agreed = study(unit=f"{REPLACE}\nparties = 2")
    noise = agreed.plan_as(MarginalsPlan).noise
    assert isinstance(noise, GaussianShare)
    far: dict[str, list[Any]] = {"colour": ["red"], "age": [0], "score": [-1.0]}
    near: dict[str, list[Any]] = {"colour": ["blue"], "age": [99], "score": [1.0]}

    def opened(person: dict[str, list[Any]]) -> Any:
        given = {}
        for name, (group, columns) in HELD.items():
            first = pa.table(person).cast(PEOPLE[group].schema).select(columns)
            given[name] = pa.concat_tables([first, PEOPLE[group].select(columns).slice(1)])
        result: Any = simulate(agreed, given, seed=2).result
        return np.concatenate([table.values.ravel() for table in result.tables])

    moved = int(((opened(far) - opened(near)) ** 2).sum())
    # r^2 s^2 of the worst person; the share is for r s^2 at rho / r, which is the same noise
    assert moved == 2 * noise.sensitivity_squared == 2 * 2 * 2 * 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": 'neighbours = "add_remove"'}, "know who is in the data"),
        ({"more": "missing = 1"}, "set missing = 0"),
        ({"held": {**HELD, "b": ("north", ["colour"]), "d": ("south", ["age"])}}, "'score' is held by no party"),
    ],
)
def test_what_no_cut_allows_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        study(**change).check()


def test_parties_of_a_group_state_the_same_number_of_people() -> None:
    text = study_text(
        protocol='method = "marginals"', unit=REPLACE, budget=BUDGET, parties=parties(HELD).replace("60", "61", 1)
    )
    with pytest.raises(InputError, match="group 'north' hold the same people"):
        Study.loads(text).check()


def test_methods_that_take_no_groups_say_so() -> None:
    text = study_text(protocol='method = "homm"', parties='[[parties]]\nname = "a"\ngroup = "x"\n')
    with pytest.raises(InputError, match="takes no groups"):
        Study.loads(text).check()


@pytest.mark.usefixtures("silent")
def test_the_coordinator_opens_the_sum_of_all_parties_and_of_no_group(tmp_path: Path) -> None:
    agreed = study('cliques = [["colour", "age"]]')
    carrier, session = carried(agreed, sources(), tmp_path)
    result: Any = Marginals(cliques=(("colour", "age"),)).coordinate(session)  # type: ignore[arg-type]
    counts = {group: exact(agreed, ("colour", "age"), group).ravel() for group in PEOPLE}
    assert result.tables[0].values.ravel().tolist() == (counts["north"] + counts["south"]).tolist()
    ring, sent = agreed.plan_as(MarginalsPlan).masked_sum.ring, {}
    for asked, told in zip(carrier.seen[::2], carrier.seen[1::2], strict=True):
        call = decode(asked, Call)
        if call.step == "count":
            packed = decode(decode(told, Reply).body, SumMasked).values
            sent[call.party] = ring.unpack(packed, counts["north"].size)
    for group, pair in (("north", "ab"), ("south", "cd")):
        # the pair's shares of its product add up to the group's counts; under masks of all parties they do not
        opened = ring.lift(ring.add(*(sent[name] for name in pair)))
        assert (opened != counts[group]).sum() > len(opened) // 2
    carrier.close()


@pytest.mark.parametrize("adversary", ["active", "passive"])
def test_a_party_that_enters_large_numbers_in_a_row_opens_nothing(
    adversary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = TableLayout.rows

    def large(self: TableLayout, party: Any, span: tuple[int, int], recode: Any) -> Any:
        found = honest(self, party, span, recode)
        if party.name == "b":
            found[0] = 200
        return found

    monkeypatch.setattr(TableLayout, "rows", large)
    monkeypatch.setattr("syndic.mpc.product.SecureProduct.check_unchanged", lambda *_: None)
    agreed = study(f'adversary = "{adversary}"')
    if adversary == "passive":
        simulate(agreed, sources(), seed=1, folder=tmp_path)
        return
    with pytest.raises(PartyError, match="proof that a partner's rows are one-hot does not hold"):
        simulate(agreed, sources(), seed=1, folder=tmp_path)
    assert [charges(tmp_path, name) for name in HELD] == [[], [], [], []]


def test_rows_of_a_group_are_matched_by_places_that_no_value_can_move(tmp_path: Path) -> None:
    agreed = study()
    given: dict[str, Any] = dict(sources())
    (tmp_path / "a.csv").write_text("colour,age\nred,1\n")
    given["a"] = {"path": str(tmp_path / "a.csv"), "multiline": True}
    with pytest.raises(PartyError, match="multiline: a wrong quote moves all rows"):
        simulate(agreed, given, seed=1)


@pytest.mark.usefixtures("silent")
def test_every_group_has_an_alignment_of_its_own(tmp_path: Path) -> None:
    given, digests = {}, {}
    for place, (group, people) in enumerate(PEOPLE.items()):
        ids = [f"Id {number:03d}" for number in range(len(people))]
        order = np.random.default_rng(place).permutation(len(people))
        first, second = (name for name, (own, _) in HELD.items() if own == group)
        table = people.append_column("id", pa.array(ids))
        given[first] = table.select([*HELD[first][1], "id"])
        given[second] = table.take(order).select([*HELD[second][1], "id"])
        members = {name: HELD[name] for name in (first, second)}
        text = parties(members).replace(f'group = "{group}"\n', "")
        aligning = across_study("align", parties=text, budget=BUDGET)
        simulate(aligning, {name: given[name] for name in members}, seed=1, folder=tmp_path)
        digests[group] = aligning.digest
    text = parties(HELD)
    for group, digest in digests.items():
        text = text.replace(f'group = "{group}"', f'group = "{group}"\nalignment = "{digest}"')
    protocol = 'method = "marginals"\ncliques = [["colour", "score"], ["age", "score"]]'
    agreed = Study.loads(study_text(protocol=protocol, unit=REPLACE, budget=BUDGET, parties=text))
    assert len([one for one in plan(agreed).statement.discloses if "parties of its group" in one]) == 2
    for table in simulate(agreed, given, seed=1, folder=tmp_path).result.tables:  # type: ignore[attr-defined]
        assert table.values.tolist() == exact(agreed, table.domain.names, "north", "south").tolist()
    text = text.replace("alignment", "#", 1)
    half = Study.loads(study_text(protocol=protocol, unit=REPLACE, budget=BUDGET, parties=text))
    with pytest.raises(InputError, match="alignment of the parties of group 'north'"):
        half.check()


@pytest.mark.usefixtures("silent")
def test_survival_runs_where_time_and_treatment_are_at_different_parties() -> None:
    options = 'method = "survival"\ntime = "age"\nevent = "colour"\ncensored = "red"\nby = ["score"]'
    agreed = Study.loads(study_text(protocol=options, unit=REPLACE, budget=BUDGET, parties=parties(HELD)))
    result: Any = simulate(agreed, sources(), seed=1).result
    assert result.table.values.tolist() == exact(agreed, ("score", "age", "colour"), "north", "south").tolist()


# three parties of a group count every pair of columns but not all three together; the other group's party does
SPREAD = {"a": ("north", ["colour"]), "b": ("north", ["age"]), "c": ("north", ["score"])}
SPREAD |= {"d": ("south", ["colour", "age", "score"])}


def test_a_table_that_a_group_has_at_three_parties_is_said_to_lack_it() -> None:
    cliques = 'cliques = [["colour", "age"], ["colour", "age", "score"]]'
    assert plan(study(cliques, SPREAD)).uncovered == ("colour x age x score: counted for 43% of the people",)
    options = 'method = "survival"\ntime = "age"\nevent = "colour"\ncensored = "red"\nby = ["score"]'
    agreed = Study.loads(study_text(protocol=options, unit=REPLACE, budget=BUDGET, parties=parties(SPREAD)))
    assert plan(agreed).uncovered == ("score x age x colour: counted for 43% of the people",)
    result: Any = simulate(agreed, sources(SPREAD), seed=1).result
    assert result.note.covers == pytest.approx(45 / 105)
    assert result.summary()["share of the people"] == "43%"


@pytest.mark.parametrize("more", ["", 'cliques = [["colour"]]'])
def test_people_of_a_group_are_said_to_be_protected_at_all_its_parties(more: str) -> None:
    told = plan(study(more)).statement
    assert "people in more than 1 of the groups" in told.not_protected
    assert not any("of the parties" in one for one in told.not_protected)
    assert any("which rows belong together" in one for one in told.not_protected)
    assert "at one group" in told.sensitivity


def test_whether_people_are_the_same_is_never_guessed() -> None:
    # the same people, or others, of whom the first party knows less?
    text = '[[parties]]\nname = "a"\npeople = 60\ncolumns = ["colour"]\n[[parties]]\nname = "b"\npeople = 60\n'
    agreed = Study.loads(study_text(protocol='method = "marginals"', unit=REPLACE, budget=BUDGET, parties=text))
    with pytest.raises(InputError, match="party 'b' lists no `columns`, but others do"):
        agreed.check()


def test_people_that_one_study_aligned_are_the_same_in_every_group_that_names_it() -> None:
    def agreed(most: int, *digests: str) -> Study:
        text = parties(HELD).replace("60", "45")
        for group, digest in zip(PEOPLE, digests, strict=True):
            text = text.replace(f'group = "{group}"', f'group = "{group}"\nalignment = "{digest * 64}"')
        unit = f"{REPLACE}\nparties = {most}"
        return Study.loads(study_text(protocol='method = "marginals"', unit=unit, budget=BUDGET, parties=text))

    with pytest.raises(InputError, match="a person may be in 2 groups of the same alignment"):
        agreed(1, "a", "a").check()
    agreed(2, "a", "a").check()
    agreed(1, "a", "b").check()


# The same people, different columns: one group.


def test_noise_of_a_vertical_study_follows_from_the_number_of_tables() -> None:
    agreed = vertical_study('cliques = [["colour", "score"], ["age", "score"]]')
    noise = agreed.plan_as(MarginalsPlan).noise
    assert isinstance(noise, GaussianShare)
    assert noise.sensitivity_squared == 4  # two tables, each moves by two
    assert noise.sigma_squared == 4 / (2 * noise.rho)  # one of two shares is enough by itself
    assert agreed.costs["north"] == agreed.costs["south"] == agreed.joint
    assert agreed.joint.epsilon(agreed.delta) <= 1


@pytest.mark.parametrize("epsilon", [1, 8, 20])
def test_own_tables_cost_no_more_than_is_charged(epsilon: int) -> None:
    """Shares have a least size: then there is more noise across parties than the budget asks, and less is charged."""
    planned = vertical_study(budget=f"epsilon = {epsilon}\ndelta = 1e-5").plan_as(MarginalsPlan)
    share, (event,) = planned.noise, planned.events("north")
    assert isinstance(share, GaussianShare)
    sigma_squared, within = whole_noise(share).sigma_squared, sum(planned.alone)
    assert 0 < within < len(planned.cliques)
    # every table moves by two in squared l2, and rho is half of that over sigma squared
    rho = within / sigma_squared + Fraction(len(planned.cliques) - within) / (share.honest * share.sigma_squared)
    assert rho <= event.rho  # type: ignore[union-attr]
    added = {
        name: planned.noise_at(name).apply(np.zeros(planned.cut.dimension, dtype=np.int64), SimulationRandomness(1))
        for name in ("north", "south")
    }
    for name, other in (("north", "south"), ("south", "north")):
        own = planned.cut.marked(lambda parties, name=name: parties == {name})  # type: ignore[misc]
        assert added[name][own].any()
        assert not added[other][own].any()
    deviations = dict(zip(planned.cliques, planned.deviations(2), strict=True))
    assert deviations["colour", "age"] == pytest.approx(float(sigma_squared) ** 0.5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": 'neighbours = "add_remove"'}, "know who is in the data"),
        ({"parties": VERTICAL.replace("people = 60", "people = 61", 1)}, "same people"),
        ({"parties": VERTICAL.replace("people = 60\n", "")}, "public number of"),
        # a row without a person would be left out, and every later row paired with another person's
        ({"unit": f'{REPLACE}\nperson = "id"'}, "matched by their places"),
        ({"budget": "epsilon = 1.0"}, "delta above 0"),
        (
            {"parties": VERTICAL.replace("= 60", "= 300_000_000"), "budget": "epsilon = 1.0\ndelta = 1e-13"},
            'set adversary = "passive"',
        ),
    ],
)
def test_vertical_studies_that_cannot_work_are_refused(change: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        vertical_study(**change).check()


@pytest.mark.parametrize(("options", "proven"), [("", True), ('adversary = "passive"', False)])
def test_a_statement_says_which_adversary_it_holds_against(options: str, proven: bool) -> None:
    told = plan(vertical_study(options))
    unprotected = " ".join(told.statement.not_protected)
    assert ("either may deviate from the protocol" in told.statement.trust) == proven
    assert ("every role follows the protocol" in told.statement.trust) == (not proven)
    assert ("can show the coordinator a partner's record" in unprotected) == proven
    assert ("nothing checks the rows" in unprotected) == (not proven)
    assert [one.step for one in told.steps].count("product_proved") == proven


def test_the_plan_says_what_will_be_sent() -> None:
    agreed = vertical_study(parties=VERTICAL.replace("60", "100_000"), budget="epsilon = 1\ndelta = 1e-9")
    product = agreed.plan_as(MarginalsPlan).product
    assert product is not None
    assert plan(agreed).resources.reply_bytes >= product.sizes.ring.packed_bytes(product.sizes.chunk * 6)
