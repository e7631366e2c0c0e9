"""Alignment: the intersection of plain sets, in one order at every party, and a coordinator that gets nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aligning import carried, table
from support import THREE_VERTICAL, VERTICAL, across_study, align_study, charges, rows, vertical_study, with_ids
from syndic import Study, plan, simulate
from syndic.data import open_source
from syndic.data.aligned import Alignment, IdRule, id_batches, name_of
from syndic.document import from_json, to_json
from syndic.errors import InputError, PartyError, RefusedError
from syndic.kernel import Call, Reply, answer, decode, encode, run
from syndic.methods.align import Align, CommonPeople
from syndic.mpc.align.steps import PrivateIntersection
from syndic.mpc.align.table import FIELD
from syndic.mpc.align.work import AlignBox, AlignTable, AlignTurn
from syndic.mpc.seal import Mail
from syndic.study import PartyFolder, Release
from syndic.study.party_rows import check_ids, stored_alignment


def found(release: Release) -> int:
    assert isinstance(release.result, CommonPeople)
    people = release.result.note.people
    assert people is not None
    return people


def order_of(folder: Path, study: Study, party: str, ids: Any, seed: int | None = None) -> list[Any]:
    """Return the ids of a party's stored order, by trying all of them."""
    stored: Alignment = stored_alignment(folder / "parties" / party / "ledger.sqlite", study.digest, seed)
    (read,) = id_batches([pa.record_batch({"id": pa.array(ids)})], ["id"], stored.rule)
    known = {name_of(each, stored.key): one for each, one in zip(read, ids, strict=True) if each is not None}
    return [known[stored.names[start : start + 16]] for start in range(0, len(stored.names), 16)]


sets = st.sets(st.integers(0, 30), max_size=20)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(sets, min_size=2, max_size=4))
def test_parties_find_the_intersection_of_their_sets(
    tmp_path_factory: pytest.TempPathFactory, held: list[set[int]]
) -> None:
    names = [f"p{number}" for number in range(len(held))]
    columns = ["colour", "age", "score", "weight"]
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = {20 + place}\ncolumns = ["{columns[place]}"]\n'
        for place, name in enumerate(names)
    )
    study, folder = align_study(parties=parties, columns=MORE_COLUMNS), tmp_path_factory.mktemp("run")
    sources = {name: table(sorted(own)).append_column("weight", pa.array([1.0] * len(own)))
               for name, own in zip(names, held, strict=True)}  # fmt: skip
    common = set.intersection(*held)
    assert found(simulate(study, sources, folder=folder)) == len(common)
    orders = [order_of(folder, study, name, sorted(own)) for name, own in zip(names, held, strict=True)]
    assert all(order == orders[0] for order in orders)
    assert set(orders[0]) == common
    assert all(charges(folder, name) == [] for name in names)


MORE_COLUMNS = (
    "".join(
        f'[[schema.columns]]\nname = "{name}"\nkind = "real"\nlower = 0.0\nupper = 1.0\nbins = 2\n'
        for name in ("age", "score", "weight")
    )
    + '[[schema.columns]]\nname = "colour"\nkind = "categorical"\nvalues = ["red", "green", "blue"]\n'
)


def test_spellings_duplicates_and_missing_ids(tmp_path: Path) -> None:
    north = table(["A-1", "B-2", "B-2", None, "", "C-3", "Ä-4", "X-9"])
    south = table(["a 1", "b 2", "c 3", "c3", "a\u03084", None, "y 9"])
    for duplicates, expected in (("drop", 2), ("first", 4)):
        study = align_study(f'spelling = ["nfkc", "casefold", "alphanumeric"]\nduplicates = "{duplicates}"')
        assert found(simulate(study, {"north": north, "south": south})) == expected
    assert found(simulate(align_study("spelling = []"), {"north": north, "south": south})) == 0


@pytest.mark.parametrize(("common", "told"), [(0, True), (5, True), (6, False)])
def test_a_release_warns_if_few_people_match_by_public_numbers(common: int, told: bool) -> None:
    """The smallest bound is 60: how many ids a party really has makes no difference."""
    for others in (10, 40):
        north, south = (list(range(common)) + [f"{name}{one}" for one in range(others)] for name in "ns")
        summary = simulate(
            align_study(), {"north": table(list(map(str, north))), "south": table(list(map(str, south)))}
        )
        assert ("WARNING" in summary.summary()) is told
        if told:
            assert summary.summary()["WARNING"].startswith(f"{common} of at most 60 people match")


def test_an_order_belongs_to_its_run_and_says_nothing_of_the_ids(tmp_path: Path) -> None:
    study, sources = align_study(), {"north": with_ids(50, 1), "south": with_ids(50, 2)}
    orders = []
    for number in range(2):
        release = simulate(study, sources, folder=tmp_path / str(number))
        orders.append(order_of(tmp_path / str(number), study, "north", sources["north"]["id"].to_pylist()))
    assert set(orders[0]) == set(orders[1])
    assert orders[0] != orders[1]
    assert orders[0] != sorted(orders[0])
    release.write(tmp_path / "release")
    assert Release.load(tmp_path / "release").result == release.result
    assert release.summary()["common people"] == len(orders[0])
    assert (release.statement.epsilon, release.statement.protects) == (0.0, True)
    assert release.statement.randomness == "none: the method adds no noise"
    assert any("every party learns it" in line for line in release.statement.not_protected)


def test_the_coordinators_view_has_the_same_sizes_whatever_the_ids(tmp_path: Path) -> None:
    """Sizes hide behind the bounds too: 50 people and 3 look alike, common or not."""
    views = []
    for number, ids in enumerate((range(50), range(100, 103), [])):
        folder = tmp_path / str(number)
        sources = {"north": table(list(range(40)), 1), "south": table(list(ids), 2)}
        carrier, session = carried(align_study(), sources, folder)
        run(align_study().protocol, session)
        carrier.close()
        # the one difference: the number of common people, which is published
        views.append([size for size in carrier.sizes if size[0] != "align_done"])
    assert views[0] == views[1] == views[2]


def test_a_lying_sum_is_found_before_anything_is_said(tmp_path: Path) -> None:
    """A coordinator that sends zeros does not know the cover, and would leave everybody out."""
    sources = {"north": with_ids(50, 1), "south": with_ids(40, 2), "east": with_ids(40, 3)}
    study = align_study(parties=THREE_VERTICAL)
    carrier, session = carried(study, sources, tmp_path)

    def zeros(step: str, party: str, body: bytes) -> bytes:
        if step != "align_match":
            return body
        words = decode(body, AlignTable)
        return encode(AlignTable(number=words.number, words=np.zeros_like(words.words)))

    carrier.change = zeros
    with pytest.raises(PartyError, match="do not add up to the sum"):
        run(study.protocol, session)
    with pytest.raises(InputError, match="uses the alignment of study"):
        stored_alignment(tmp_path / "second" / "parties" / "north" / "ledger.sqlite", study.digest, None)
    carrier.close()


def test_boxes_and_sums_that_are_not_the_studys_are_refused(tmp_path: Path) -> None:
    sources = {"north": with_ids(50, 1), "south": with_ids(40, 2), "east": with_ids(40, 3)}
    study = align_study(parties=THREE_VERTICAL)
    attacks: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "does not open": ("align_raise", lambda m: AlignBox(number=0, hop=1, box=m.box[:-1] + b"x")),
        "expected a hop from 1 to": ("align_raise", lambda m: AlignBox(number=0, hop=3, box=m.box)),
        "there is no chunk": ("align_blind", lambda _: AlignTurn(number=1)),
        "before every party had processed": ("align_finish", lambda m: AlignBox(number=0, hop=1, box=m.box)),
        "there is no part": ("align_table", lambda _: AlignTurn(number=1)),
        "the shape or the range": ("align_match", lambda m: AlignTable(number=0, words=m.words[:, :-1])),
        "range of numbers": ("align_match", lambda m: AlignTable(number=0, words=m.words + np.uint64(FIELD))),
    }
    kinds: dict[str, Any] = {"align_raise": AlignBox, "align_finish": AlignBox, "align_match": AlignTable}
    for number, (told, (attacked, change)) in enumerate(attacks.items()):
        carrier, session = carried(study, sources, tmp_path / str(number))

        def attack(step: str, party: str, body: bytes, attacked: str = attacked, change: Any = change) -> bytes:
            return encode(change(decode(body, kinds.get(step, AlignTurn)))) if step == attacked else body

        carrier.change = attack
        with pytest.raises(PartyError, match=told):
            run(study.protocol, session)
        carrier.close()


def test_a_step_is_answered_once_so_a_party_gets_no_more_powers_than_its_bound(tmp_path: Path) -> None:
    study = align_study(parties=THREE_VERTICAL)
    carrier, session = carried(study, {name: with_ids(9, 1) for name in ("north", "east", "south")}, tmp_path)
    kept: dict[str, Call] = {}

    def note(step: str, party: str, body: bytes) -> bytes:
        if party == "south":
            kept[step] = Call(study=session.study, party=party, step=step, call="0" * 32, body=body)
        return body

    carrier.change = note
    run(study.protocol, session)
    for step in ("align_collect", "align_blind", "align_raise", "align_finish", "align_table", "align_match"):
        reply = decode(answer(carrier.nodes["south"], encode(kept[step])), Reply)
        assert (step, reply.code) == (step, "refused")
    assert decode(answer(carrier.nodes["south"], encode(kept["align_done"])), Reply).code == "refused"
    carrier.close()


def test_what_only_the_run_needed_is_written_over(tmp_path: Path) -> None:
    study = align_study()
    simulate(study, {"north": with_ids(50, 1), "south": with_ids(40, 2)}, folder=tmp_path)
    node = PartyFolder(folder=tmp_path / "parties" / "north").node(seed=None, source=with_ids(50, 1))
    kept = {name: node.state.memory.kept(name) for name in ("align own", "align ids 0", "align tags 0")}
    node.close()
    assert all(value is not None and len(value) < 50 for value in kept.values())


def test_more_people_than_the_bound_are_left_out_and_a_missing_column_stops_it() -> None:
    south = with_ids(40, 2)
    everybody = table(list(range(65)))
    found = [simulate(align_study(), {"north": some, "south": south}, seed=1) for some in (everybody, everybody[:60])]
    assert found[0].result == found[1].result
    with pytest.raises(PartyError, match=r"north: .*\['id'\] are missing: .*`id` in its party.toml"):
        simulate(align_study(), {"north": rows(10), "south": south})
    with pytest.raises(InputError) as caught:
        check_ids(open_source(rows(10)), ("own name",))
    assert "own name" in str(caught.value)
    assert "own name" not in caught.value.elsewhere


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"neighbours": "add_remove"}, "shows which people are in the data"),
        ({"people": None}, "public number"),
        ({"memory": 1}, "raise the limits"),
        ({"parties": 1}, "at least 2 parties"),
    ],
)
def test_studies_that_cannot_align_are_refused(change: dict[str, Any], told: str) -> None:
    text = to_json(align_study()).decode()
    text = text.replace('"replace"', f'"{change.get("neighbours", "replace")}"')
    text = text.replace('"people":60', '"people":null') if "people" in change else text
    text = text.replace('"memory_mb":2000', '"memory_mb":1') if "memory" in change else text
    study = from_json(text, Study, where="test")
    if "parties" in change:
        study = align_study(parties=VERTICAL.partition('[[parties]]\nname = "south"')[0])
    with pytest.raises(InputError, match=told):
        # people are asked for by delta too, which comes first
        study.plan.check()


def test_parameters_that_make_no_sense_are_refused() -> None:
    for bad in (
        {"id": ()},
        {"id": ("a", "a")},
        {"spelling": ("digits", "alphanumeric")},
        {"spelling": ("nfkc", "nfkc")},
    ):
        with pytest.raises(ValueError, match=r"id|spelling"):
            Align(**bad)
    assert Align().rule == IdRule()


def test_a_study_names_its_alignment_and_others_keep_their_digest() -> None:
    study = vertical_study()

    def named(one: Study, digest: str) -> Study:
        text = to_json(one).decode()
        assert text.startswith('{"alignment":null,')
        return from_json(text.replace("null", f'"{digest}"', 1), Study, where="test")

    aligned = named(study, "0" * 64)
    aligned.check()
    assert aligned.digest != study.digest
    with pytest.raises(InputError, match="64 hexadecimal"):
        named(study, "abc")
    with pytest.raises(InputError, match="leave it out"):
        named(align_study(), "0" * 64).check()
    # a method for different people: what to do about its columns comes first
    learn = across_study("learn", 'label = "colour"\npositive = "red"', budget="epsilon = 1.0\ndelta = 1e-6")
    with pytest.raises(InputError, match="every party holds all columns"):
        named(learn, "0" * 64).check()


def test_the_plan_says_what_it_takes() -> None:
    few = plan(align_study()).resources
    text = to_json(align_study()).decode().replace('"people":60', '"people":300000').replace('"1/100000"', '"0"')
    many = plan(from_json(text, Study, where="test")).resources
    assert many.seconds > 30 > few.seconds
    assert many.rounds > few.rounds
    three = plan(align_study(parties=THREE_VERTICAL))
    assert three.resources.rounds > few.rounds
    assert {step.reveals for step in three.steps} == {"public", "sealed", "masked"}


def test_the_rounds_are_those_of_the_plan() -> None:
    for parties in (VERTICAL, THREE_VERTICAL):
        study = align_study(parties=parties)
        release = simulate(study, {party.name: with_ids(20, place) for place, party in enumerate(study.parties)})
        assert max(exchange.round for exchange in release.transcript) == plan(study).resources.rounds


def test_many_chunks_and_parts_and_bounds_that_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest party runs out of points long before the largest, and the table takes several messages."""
    monkeypatch.setattr("syndic.methods.align.CHUNK", 16)
    monkeypatch.setattr("syndic.mpc.align.table._PART", 150)
    parties = THREE_VERTICAL
    for bound in (90, 20, 70):
        parties = parties.replace("people = 60", f"people = {bound}", 1)
    study = align_study(parties=parties)
    held = {"north": list(range(90)), "south": list(range(5, 25)), "east": list(range(10, 70))}
    release = simulate(study, {name: table(ids) for name, ids in held.items()}, folder=tmp_path)
    common = set(range(10, 25))
    assert found(release) == len(common)
    orders = [order_of(tmp_path, study, name, ids) for name, ids in held.items()]
    assert orders[0] == orders[1] == orders[2]
    assert set(orders[0]) == common
    asked = [exchange.step for exchange in release.transcript]
    assert asked.count("align_finish") == 3 * 6
    assert asked.count("align_match") == 3 * 2


def test_mail_for_somebody_else_is_refused_by_the_coordinator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrivateIntersection, "send_on", lambda *_: Mail(boxes={"nobody": b""}))
    with pytest.raises(RefusedError, match="did not send its points"):
        simulate(align_study(), {"north": with_ids(5, 1), "south": with_ids(5, 2)})
