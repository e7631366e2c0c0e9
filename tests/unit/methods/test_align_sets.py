"""Alignments of several sets of parties: a person is in the first set that finds it, and no set tells of another."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from aligning import Carrier, carried, table
from support import across_study, align_study
from syndic import Study, plan, simulate
from syndic.data.aligned import id_batches, name_of
from syndic.errors import InputError, PartyError
from syndic.kernel import Call, Nothing, Reply, answer, decode, encode, run
from syndic.methods.align import LEARNT_IN_SETS, Align, CommonPeople, PartySet
from syndic.mpc.align.steps import PrivateIntersection
from syndic.mpc.align.work import AlignBox, AlignTurn
from syndic.privacy import Ledger
from syndic.study import Release
from syndic.study.party_rows import open_table, stored_alignment

HOSPITALS = ("north", "south", "east")
PEOPLE = {
    "north": range(20),
    "south": range(15, 35),
    "east": range(30, 50),
    "registry": [*range(10, 40), *range(70, 75)],
}
STAR = {name: (name, "registry") for name in HOSPITALS}


def members(*names: str, people: int = 40) -> str:
    columns = ("colour", "age", "score", "weight")
    return "".join(
        f'[[parties]]\nname = "{name}"\npeople = {people}\ncolumns = ["{column}"]\n'
        for name, column in zip(names, columns, strict=False)
    )


COLUMNS = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "real"\nlower = 0.0\nupper = 1.0\nbins = 2\n'
    for name in ("colour", "age", "score", "weight")
)


TWO = "".join(
    f'[[schema.columns]]\nname = "{name}"\nkind = "integer"\nlower = 0\nupper = 1\n' for name in ("colour", "age")
)


def star(sets: Mapping[str, tuple[str, ...]] = STAR, names: tuple[str, ...] = (*HOSPITALS, "registry")) -> Study:
    given = ", ".join(f'{{ name = "{name}", parties = {list(parties)} }}' for name, parties in sets.items())
    columns = "".join("[[" + part for part in COLUMNS.split("[[")[1:][: len(names)])
    return align_study(f"sets = [{given}]", parties=members(*names), columns=columns)


def held(ids: Any) -> pa.Table:
    count = len(ids)
    return pa.table({**{name: [0.5] * count for name in ("colour", "age", "score", "weight")}, "id": pa.array(ids)})


def sources(people: dict[str, Any] = PEOPLE) -> dict[str, pa.Table]:
    return {name: held([f"Id {each:03d}" for each in ids]) for name, ids in people.items()}


def order(folder: Path, study: Study, party: str, group: str, people: Any, seed: int | None = None) -> list[int]:
    """Return the people of a party's stored order, by trying all that it has."""
    stored = stored_alignment(folder / "parties" / party / "ledger.sqlite", study.digest, seed, group)
    texts = pa.array([f"Id {each:03d}" for each in people])
    (read,) = id_batches([pa.record_batch({"id": texts})], ["id"], stored.rule)
    known = {name_of(each, stored.key): one for each, one in zip(read, people, strict=True) if each is not None}
    return [known[stored.names[start : start + 16]] for start in range(0, len(stored.names), 16)]


def notes(release: Release) -> dict[str, int | None]:
    assert isinstance(release.result, CommonPeople)
    return {name: note.people for name, note in release.result.sets.items()}


def test_a_person_of_two_hospitals_is_in_the_first_ones_group(tmp_path: Path) -> None:
    """15 to 19 are at north and south, 30 to 34 at south and east, all in the registry."""
    study = star()
    release = simulate(study, sources(), folder=tmp_path)
    assert notes(release) == {"north": 10, "south": 15, "east": 5}
    groups = {name: order(tmp_path, study, name, name, PEOPLE[name]) for name in HOSPITALS}
    assert {name: set(own) for name, own in groups.items()} == {
        "north": set(range(10, 20)),
        "south": set(range(20, 35)),
        "east": set(range(35, 40)),
    }
    for name in HOSPITALS:
        assert order(tmp_path, study, "registry", name, PEOPLE["registry"]) == groups[name]
    release.write(tmp_path / "release")
    assert Release.load(tmp_path / "release").result == release.result
    assert release.summary()["common people of south"] == 15
    assert len({note.order for note in release.result.sets.values()}) == 3  # type: ignore[attr-defined]


shapes = st.lists(st.sets(st.sampled_from(["a", "b", "c", "d"]), min_size=2, max_size=3), min_size=1, max_size=3)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(shapes, st.lists(st.sets(st.integers(0, 12)), min_size=4, max_size=4))
def test_sets_are_found_as_plain_sets_would_be(
    tmp_path_factory: pytest.TempPathFactory, shape: list[set[str]], people: list[set[int]]
) -> None:
    """The reference leaves out, at every party, what an earlier set of this party found."""
    shape = [one for place, one in enumerate(shape) if not any(each <= one for each in shape[:place])]
    names = tuple(name for name in "abcd" if any(name in each for each in shape))
    study = star({f"s{place}": tuple(sorted(each)) for place, each in enumerate(shape)}, names)
    left = {name: set(own) for name, own in zip("abcd", people, strict=True) if name in names}
    folder = tmp_path_factory.mktemp("run")
    release = simulate(study, sources({name: sorted(own) for name, own in left.items()}), folder=folder)
    for place, parties in enumerate(shape):
        common = set.intersection(*(left[name] for name in parties))
        assert notes(release)[f"s{place}"] == len(common)
        orders = [order(folder, study, name, f"s{place}", range(13)) for name in sorted(parties)]
        assert all(each == orders[0] for each in orders)
        assert set(orders[0]) == common
        for name in parties:
            left[name] -= common


def test_empty_sets_dirty_ids_and_warnings(tmp_path: Path) -> None:
    """Spellings differ, ids are missing or double, and nobody is at the last two."""
    given = {
        "north": held(["id 001", "ID 002", None, "Id 003", "id 003", ""]),
        "south": held(["Id 002", "id 004", "x"]),
        "east": held([]),
        "registry": held(["ID 001", "id 002", "ID 003", None, "ID 004", "y", "Y"]),
    }
    release = simulate(star(), given, folder=tmp_path)
    assert notes(release) == {"north": 2, "south": 1, "east": 0}
    warning = release.summary()["WARNING"]
    assert warning.startswith("north: 2 of at most 40 people match")
    assert "east: 0 of at most 40" in warning


def test_sets_without_a_common_party_may_share_people_and_the_plan_says_so(tmp_path: Path) -> None:
    pairs = {"one": ("north", "south"), "two": ("east", "registry")}
    study = star(pairs)
    everybody = dict.fromkeys(PEOPLE, range(7))
    assert notes(simulate(study, sources(everybody), folder=tmp_path)) == {"one": 7, "two": 7}
    said = plan(study).statement.not_protected
    assert any("share no party, such as one and two" in line for line in said)
    assert not any("share no party" in line for line in plan(star()).statement.not_protected)


def test_the_plan_says_who_learns_what_of_sets() -> None:
    planned = plan(star())
    assert LEARNT_IN_SETS in planned.statement.discloses
    assert any("absent from a later set" in line for line in planned.statement.not_protected)
    one = plan(align_study())
    assert not any("set" in line.split() for line in one.statement.not_protected)


def test_every_party_records_the_disclosure_of_every_set_before_it_reads_ids(tmp_path: Path) -> None:
    simulate(star(), sources(), folder=tmp_path)
    for name, times in (("north", 1), ("registry", 3)):
        with Ledger.open(tmp_path / "parties" / name / "ledger.sqlite") as ledger:
            told = [entry.why for entry in ledger.entries() if entry.kind == "disclose"]
        assert told == [LEARNT_IN_SETS] * times


def test_the_rounds_are_those_of_the_plan() -> None:
    release = simulate(star(), sources())
    assert max(exchange.round for exchange in release.transcript) == plan(star()).resources.rounds


def test_sizes_of_messages_do_not_depend_on_who_was_found_before(tmp_path: Path) -> None:
    """South's partner leaves out 30 people or nobody: all that is carried has the same size."""
    views = []
    for number, north in enumerate((range(10, 40), range(80, 90))):
        carrier, session = carried(star(), sources({**PEOPLE, "north": north}), tmp_path / str(number))
        run(star().protocol, session)
        carrier.close()
        views.append([size for size in carrier.sizes if size[0] != "align_done"])
    assert views[0] == views[1]


def test_nothing_is_stored_or_sealed_under_one_name_for_two_sets(tmp_path: Path) -> None:
    carrier, session = carried(star(), sources(), tmp_path)
    seen: dict[tuple[str, str], list[bytes]] = {}

    def look(step: str, party: str, body: bytes) -> bytes:
        if party == "registry" and step == "align_vouch":
            memory: Any = carrier.nodes["registry"].state.memory
            for place in HOSPITALS:
                own = memory.kept(f"align {place} own")
                seen.setdefault(("own", place), []).extend([own] if own else [])
        return body

    carrier.change = look
    run(star().protocol, session)
    rows = carrier.nodes["registry"].state.ledger.database.rows("SELECT name FROM kept")
    names = [name for (name,) in rows if name.startswith("align") and name != "align sets"]
    carrier.close()
    parts = {tuple(name.split())[1] for name in names}
    assert parts == set(HOSPITALS), "every name has its set in it"
    current = {place: own[0] for (_, place), own in seen.items()}
    assert len(set(current.values())) == 3, "powers and keys differ"


def _attacked(tmp_path: Path, change: Callable[[Carrier, str, str, bytes], bytes]) -> str:
    carrier, session = carried(star(), sources(), tmp_path)
    carrier.change = lambda step, party, body: change(carrier, step, party, body)
    try:
        with pytest.raises(PartyError) as error:
            run(star().protocol, session)
    finally:
        carrier.close()
    return str(error.value)


def test_a_box_of_an_earlier_set_does_not_open_in_a_later_one(tmp_path: Path) -> None:
    """North's points for the registry are given again as south's: the seal has the set and the sender in it."""
    kept: list[bytes] = []

    def replay(carrier: Carrier, step: str, party: str, body: bytes) -> bytes:
        if step == "align_raise" and party == "registry":
            kept.append(body)
            return encode(AlignBox(number=0, hop=1, box=decode(kept[0], AlignBox).box))
        return body

    assert "does not open" in _attacked(tmp_path, replay)


def test_a_party_does_not_change_its_id_columns_between_sets(tmp_path: Path) -> None:
    """It would not know the people of its earlier sets again, and its groups are charged as different people."""

    def change(carrier: Carrier, step: str, party: str, body: bytes) -> bytes:
        if step == "align_vouch" and party == "registry":
            node: Any = carrier.nodes[party]
            other = dataclasses.replace(node.state.open_table(), id_columns=("age",))
            state = dataclasses.replace(node.state, open_table=lambda: other)
            carrier.nodes = {**carrier.nodes, party: dataclasses.replace(node, state=state)}
        return body

    assert "not those of its earlier sets" in _attacked(tmp_path, change)


def test_the_same_two_parties_in_two_sets_cannot_be_given_each_others_boxes(tmp_path: Path) -> None:
    """North and the registry are in both sets: sender, receiver and pair secret are the same, only the set differs."""
    sets = {"all": ("north", "south", "registry"), "two": ("north", "registry")}
    study, names = star(sets, ("north", "south", "registry")), ("north", "south", "registry")
    given = {name: sources()[name] for name in names}
    assert notes(simulate(study, given)) == {"all": 5, "two": 5}
    carrier, session = carried(study, given, tmp_path)
    kept: list[AlignBox] = []

    def replay(step: str, party: str, body: bytes) -> bytes:
        if step == "align_finish" and party == "north":
            kept.append(decode(body, AlignBox))
            box = kept[-1]
            return encode(AlignBox(number=box.number, hop=box.hop, box=kept[0].box))
        return body

    carrier.change = replay
    with pytest.raises(PartyError, match="does not open"):
        run(study.protocol, session)
    carrier.close()


def test_sets_asked_in_another_order_are_refused(tmp_path: Path) -> None:
    """A coordinator that asks for south's set first would get people of both hospitals into both groups."""
    study = star()
    carrier, session = carried(study, sources(), tmp_path)
    sets = session.plan.intersection  # type: ignore[attr-defined]
    assert isinstance(study.protocol, Align)
    session.ask(study.protocol.ready, Nothing())
    sets.secret.run(session)
    session.ask(study.protocol.align_collect, dict.fromkeys(("south", "registry"), Nothing()))
    turn = AlignTurn(number=0)
    mail = session.ask(sets.align_blind, dict.fromkeys(("south", "registry"), turn))
    assert mail["registry"].boxes.keys() == {"north"}, "the registry works on its first set, whatever is asked"
    boxes = {"south": mail["registry"].boxes["north"], "registry": mail["south"].boxes["registry"]}
    with pytest.raises(PartyError, match=r"registry: refused: .*does not open.* south: refused: .*does not open"):
        session.ask(sets.align_raise, {name: AlignBox(number=0, hop=1, box=box) for name, box in boxes.items()})
    for name in HOSPITALS:
        with pytest.raises(InputError, match="uses the alignment of study"):
            stored_alignment(tmp_path / "second" / "parties" / name / "ledger.sqlite", study.digest, None, name)
    carrier.close()


def test_no_set_is_answered_twice(tmp_path: Path) -> None:
    carrier, session = carried(star(), sources(), tmp_path)
    kept: list[Call] = []

    def note(step: str, party: str, body: bytes) -> bytes:
        if party == "registry" and step.startswith("align"):
            kept.append(Call(study=session.study, party=party, step=step, call=f"{len(kept):032d}", body=body))
        return body

    carrier.change = note
    run(star().protocol, session)
    # sets of two parties have no tables
    assert len(kept) == 3 * 7
    for call in kept:
        assert decode(answer(carrier.nodes["registry"], encode(call)), Reply).code == "refused", call.step
    carrier.close()


def test_an_interrupted_run_goes_on_in_the_set_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, stops = PrivateIntersection.align_finish, iter([False, True])

    def failing(self: PrivateIntersection, party: Any, message: Any) -> Any:
        if party.name == "registry" and next(stops, False):
            raise RuntimeError("killed")
        return whole(self, party, message)

    failing.__name__ = "align_finish"
    monkeypatch.setattr(PrivateIntersection, "align_finish", failing)
    study = star()
    with pytest.raises(PartyError, match="internal error"):
        simulate(study, sources(), seed=3, folder=tmp_path)
    first = order(tmp_path, study, "registry", "north", PEOPLE["registry"], 3)
    release = simulate(study, sources(), seed=3, folder=tmp_path)
    monkeypatch.undo()
    assert notes(release) == {"north": 10, "south": 15, "east": 5}
    assert order(tmp_path, study, "registry", "north", PEOPLE["registry"], 3) == first
    assert release.result == simulate(study, sources(), seed=3).result


@pytest.mark.parametrize(
    ("sets", "told"),
    [
        ((("a", ("x",)),), "two or more"),
        ((("a", ("x", "x")),), "two or more"),
        ((("a b", ("x", "y")),), "ASCII letters"),
        ((("a", ("x", "y")), ("A", ("y", "z"))), "same name"),
        ((("a", ("x", "y")), ("b", ("z", "y", "x"))), "put the set with more parties first"),
        ((("a", ("x", "y")), ("b", ("y", "x"))), "no set twice"),
    ],
)
def test_sets_that_make_no_sense_are_refused(sets: tuple[tuple[str, tuple[str, ...]], ...], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Align(sets=tuple(PartySet(name=name, parties=parties) for name, parties in sets))


def test_parties_of_sets_are_those_of_the_study() -> None:
    with pytest.raises(InputError, match="'west' is not a party"):
        star({"north": ("north", "west")}).check()
    with pytest.raises(InputError, match="party 'east' is in no set"):
        star({"north": ("north", "registry"), "south": ("south", "registry")}).check()


def test_a_study_with_one_set_is_as_before() -> None:
    assert isinstance(simulate(align_study(), {"north": table([1, 2]), "south": table([2])}).result, CommonPeople)
    assert len(plan(align_study()).statement.discloses) == 1


@pytest.mark.parametrize("common", [0, 15])
def test_private_sizes_are_known_to_the_parties_of_the_set_only(tmp_path: Path, common: int) -> None:
    """The coordinator gets the same for any number of common people, also for none, whose digest anybody could try."""
    study = star({"north": ("north", "registry"), "south": ("south", "registry")}, ("north", "south", "registry"))
    protocol = study.protocol
    assert isinstance(protocol, Align)
    study = replace(study, protocol=replace(protocol, sizes="private"))
    people = {"north": range(common), "south": range(50, 60), "registry": range(60)}
    release = simulate(study, sources(people), folder=tmp_path)
    assert isinstance(release.result, CommonPeople)
    assert [(note.people, note.order, note.warning) for note in release.result.sets.values()] == 2 * [(None, "", "")]
    assert release.summary()["common people of north"] == "known to their parties only"
    assert set(order(tmp_path, study, "registry", "north", people["registry"])) == set(range(common))
    release.write(tmp_path / "release")
    assert Release.load(tmp_path / "release").result == release.result


@pytest.mark.parametrize("declared", [12, 15, 20])
def test_a_later_study_declares_the_number_and_all_parties_cut_or_pad_the_same_people(
    tmp_path: Path, declared: int
) -> None:
    align = align_study('sizes = "private"', parties=members("north", "registry"), columns=TWO)
    numbers = {"north": range(15), "registry": range(30)}
    given = {
        name: pa.table({column: [each % 2 for each in own], "id": pa.array(own)})
        for (name, own), column in zip(numbers.items(), ("colour", "age"), strict=True)
    }
    simulate(align, given, folder=tmp_path)
    study = across_study("marginals", parties=members("north", "registry", people=declared), columns=TWO)
    study = replace(study, alignment=align.digest)
    read = []
    for name, rows in given.items():
        ledger = tmp_path / "parties" / name / "ledger.sqlite"
        opened = open_table(study, name, rows, ledger=ledger, id_columns=(), seed=None)
        assert opened.rows() == declared
        read.append([code for batch in opened.batches() for codes in batch.values() for code in codes.tolist()])
    assert read[0] == read[1]
    assert len(read[0]) == declared
    assert len([code for code in read[0][:15] if code in {0, 1}]) == min(declared, 15)


def test_the_coordinator_sees_the_same_bytes_of_private_sizes(tmp_path: Path) -> None:
    """Everything that is not sealed, masked or a commitment is the same for no common people and for many."""
    seen = []
    for number, common in enumerate((0, 40)):
        study = align_study('sizes = "private"')
        given = {"north": table(list(range(40))), "south": table(list(range(40 - common, 80 - common)))}
        carrier, session = carried(study, given, tmp_path / str(number))
        run(study.protocol, session)
        carrier.close()
        seen.append(([carrier.reply("align_done", name) for name in given], carrier.sizes))
    assert seen[0] == seen[1]
