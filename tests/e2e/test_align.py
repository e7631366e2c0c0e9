"""From two files with ids of their own to one release: aligned, then used, over processes and after a kill."""

import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from organisations import homes_for, rehearse
from support import VERTICAL, align_study, synthesis_across
from syndic import Study, simulate
from syndic.cli.main import main
from syndic.data.aligned import id_batches, name_of
from syndic.document import to_json
from syndic.errors import PartyError
from syndic.kernel import Session
from syndic.methods.align import CommonPeople
from syndic.study import PartyFolder, Release
from syndic.study.party_rows import stored_alignment

SEED = 7
PEOPLE = 300
COMMON = 200


def written(folder: Path, *, order: int = 1, people: list[int] | None = None) -> dict[str, str]:
    """Write a CSV file and a party file for each party: other id columns, other spellings, another order of rows.

    North knows people by a number with a prefix, south by a whole number. Both have people of their own, unless
    `people` says who is in the files, and in which order.
    """
    folder.mkdir(exist_ok=True)
    reds = np.random.default_rng(3).random(COMMON) < 0.5
    shuffle = np.random.default_rng(order).permutation
    held = {"north": [*range(COMMON), *range(1000, 1080)], "south": [*range(COMMON), *range(2000, 2080)]}
    north, south = (people or [held[name][place] for place in shuffle(len(held[name]))] for name in held)
    colour = {each: "red" if red else "blue" for each, red in enumerate(reds)}
    tables = {
        "north": pa.table(
            {
                "patient": [f"P-{each:05d}" for each in north],
                "colour": [colour.get(each, "green") for each in north],
                "age": [each % 100 for each in north],
            }
        ),
        "south": pa.table({"case_no": south, "score": [0.5 if colour.get(each) == "red" else -0.5 for each in south]}),
    }
    for name, column in (("north", "patient"), ("south", "case_no")):
        pa.csv.write_csv(tables[name], folder / f"{name}.csv")
        (folder / f"{name}.party.toml").write_text(
            f'name = "{name}"\ndataset = "{name}"\nid = "{column}"\n'
            f'source = {{ path = "{name}.csv" }}\ncap = {{ epsilon = 5, delta = 1e-5 }}\n'
        )
    return {name: str(folder / f"{name}.party.toml") for name in tables}


def aligning() -> Study:
    return align_study('spelling = ["digits"]', parties=VERTICAL.replace("people = 60", f"people = {PEOPLE}"))


def using(align: Study) -> Study:
    parties = VERTICAL.replace("people = 60", f"people = {COMMON}")
    study = synthesis_across(parties=parties, budget="epsilon = 5\ndelta = 1e-5")
    return msgspec.structs.replace(study, alignment=align.digest)


def people(release: Release) -> int:
    assert isinstance(release.result, CommonPeople)
    people = release.result.note.people
    assert people is not None
    return people


def test_two_files_become_one_table_as_if_their_rows_had_been_in_order(tmp_path: Path) -> None:
    align = aligning()
    study = using(align)
    sources = written(tmp_path / "files")
    assert people(simulate(align, sources, seed=SEED, runtime="processes", folder=tmp_path / "run")) == COMMON
    release = simulate(study, sources, seed=SEED, runtime="processes", folder=tmp_path / "run")
    # the sign of south's score follows north's colour for every common person
    made = release.table.to_arrow()
    known = [pair for pair in zip(made["colour"].to_pylist(), made["score"].to_pylist(), strict=True) if pair[1]]
    assert np.mean([(colour == "red") == (score > 0) for colour, score in known]) > 0.9
    assert made["colour"].to_pylist().count("green") < COMMON / 10

    # the same people in files that hold nobody else, in the common order already
    stored = stored_alignment(tmp_path / "run" / "parties" / "north" / "ledger.sqlite", align.digest, SEED)
    assert stored.columns == ("patient",)
    (ids,) = id_batches([pa.record_batch({"id": np.arange(COMMON)})], ["id"], stored.rule)
    places = {name_of(each, stored.key): person for person, each in enumerate(ids) if each is not None}
    order = [places[stored.names[start : start + 16]] for start in range(0, len(stored.names), 16)]
    assert order != sorted(order)
    again = written(tmp_path / "again", people=order)
    assert people(simulate(align, again, seed=SEED, folder=tmp_path / "second")) == COMMON
    repeated = simulate(study, again, seed=SEED, folder=tmp_path / "second")
    assert repeated.table.to_arrow().equals(made)
    assert [each.reply_sha256 for each in repeated.transcript] == [each.reply_sha256 for each in release.transcript]


def test_the_rows_of_both_parties_are_the_same_peoples(tmp_path: Path) -> None:
    align = aligning()
    sources = written(tmp_path)
    simulate(align, sources, folder=tmp_path / "run")
    simulate(using(align), sources, folder=tmp_path / "run")
    # exported again, in another order: the order of the people stays
    written(tmp_path, order=5)
    codes = {}
    for name, column in (("north", "colour"), ("south", "score")):
        node = PartyFolder(folder=tmp_path / "run" / "parties" / name).node(seed=None)
        codes[name] = np.concatenate([batch[column] for batch in node.state.open_table().batches([column])])
        node.close()
    assert len(codes["north"]) == len(codes["south"]) == COMMON
    assert {(int(colour), int(score)) for colour, score in zip(codes["north"], codes["south"], strict=True)} == {
        (0, 3),
        (2, 1),
    }


def test_a_study_whose_alignment_was_not_run_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    sources = written(tmp_path)
    with pytest.raises(PartyError, match="uses the alignment of study"):
        simulate(using(aligning()), sources, folder=tmp_path / "run")
    simulate(aligning(), sources, seed=SEED, folder=tmp_path / "run")
    with pytest.raises(PartyError, match="uses the alignment of study"):
        simulate(using(aligning()), sources, folder=tmp_path / "run")


@pytest.mark.slow
def test_rows_in_memory_are_aligned_over_processes_too(tmp_path: Path) -> None:
    align = align_study('id = ["key"]', parties=VERTICAL.replace("people = 60", "people = 100"))
    ids = list(range(100))
    north = pa.table({"key": ids, "colour": ["red"] * 100, "age": ids})
    south = pa.table({"key": ids[::-1], "score": [each / 100 for each in ids[::-1]]})
    sources = {"north": north, "south": south}
    assert people(simulate(align, sources, runtime="processes", folder=tmp_path)) == 100
    parties = VERTICAL.replace("people = 60", "people = 100")
    study = msgspec.structs.replace(synthesis_across(parties=parties), alignment=align.digest)
    release = simulate(study, sources, runtime="processes", folder=tmp_path)
    assert release.table.to_arrow().num_rows == 100


def test_a_party_that_is_killed_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    align, sources = aligning(), written(tmp_path)
    ask = Session.ask

    def kill(session: Session, step: Any, message: Any, **options: Any) -> Any:
        if step.__name__ == "align_raise":
            os.kill(session._runtime._worker("south").process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        return ask(session, step, message, **options)

    monkeypatch.setattr(Session, "ask", kill)
    with pytest.raises(PartyError, match="south"):
        simulate(align, sources, seed=SEED, runtime="processes", folder=tmp_path / "run")
    monkeypatch.undo()
    release = simulate(align, sources, seed=SEED, runtime="processes", folder=tmp_path / "run")
    assert release.result == simulate(align, sources, seed=SEED).result


def test_the_command_line_aligns_and_then_publishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    align, sources = aligning(), written(tmp_path)
    given = [word for name, path in sources.items() for word in ("-s", f"{name}={path}")]
    for name, study in (("align", align), ("study", using(align))):
        (tmp_path / f"{name}.json").write_bytes(to_json(study))
        path = str(tmp_path / f"{name}.json")
        monkeypatch.setattr("sys.argv", ["syndic", "simulate", path, *given, "--out", str(tmp_path / "run")])
        main()
        assert (tmp_path / "run" / ("alignment.json" if name == "align" else "synthetic.parquet")).exists()
        assert (tmp_path / "run" / "report.html").exists()


def test_organisations_with_agreements_align_and_use_it_as_the_simulation_does(tmp_path: Path) -> None:
    ids = list(range(100))
    north = pa.table({"id": ids, "colour": ["red", "blue"] * 50, "age": ids})
    south = pa.table({"id": ids[50:], "score": [each / 100 for each in ids[50:]]})
    sources = {"north": north, "south": south}
    table = synthesis_across(parties=VERTICAL.replace("people = 60", "people = 50"), budget="epsilon = 5\ndelta = 1e-5")
    bounded = align_study(parties=VERTICAL.replace("people = 60", "people = 100"))
    # in a new folder without a party file, the first study's budget becomes the cap
    bounded = msgspec.structs.replace(bounded, budget=table.budget)
    align, homes = homes_for(bounded, sources, tmp_path / "homes")
    members = tuple(
        msgspec.structs.replace(party, identity=known.identity)
        for party, known in zip(table.parties, align.parties, strict=True)
    )
    study = msgspec.structs.replace(table, alignment=align.digest, parties=members, coordinator=align.coordinator)
    with pytest.raises(PartyError, match="uses the alignment of study"):
        rehearse(study, homes, seed=SEED)
    assert people(rehearse(align, homes, seed=SEED)) == 50
    rehearsed = rehearse(study, homes, seed=SEED)
    simulate(align, sources, seed=SEED, folder=tmp_path / "run")
    simulated = simulate(study, sources, seed=SEED, folder=tmp_path / "run")
    assert rehearsed.table.to_arrow().equals(simulated.table.to_arrow())
