"""Bad input gets a clear error that says what, where and what to do, or the schema's rule; and nothing is spent."""

from pathlib import Path

import pyarrow as pa
import pytest

from support import COLUMNS, PARTIES, charges, rows, study_text, two_parties
from syndic import Study, simulate
from syndic.errors import InputError, PartyError, SyndicError
from syndic.kernel import answer, decode, encode
from syndic.kernel.call import Call, Reply
from syndic.kernel.codec import Nothing
from syndic.study import PartyFolder
from syndic.study.simulate import RuntimeName


def refused(text: str, tmp_path: Path, sources: dict[str, object] | None = None) -> str:
    """Return the text of the error that a study gives; check that no ledger was charged."""
    with pytest.raises(SyndicError) as error:
        simulate(Study.loads(text), sources or two_parties(), folder=tmp_path)
    assert charges(tmp_path, "north") == []
    assert charges(tmp_path, "south") == []
    return str(error.value)


@pytest.mark.parametrize("epsilon", ["0", "-1.0", "inf", "nan", "true", '"much"'])
def test_epsilon(epsilon: str, tmp_path: Path) -> None:
    text = refused(study_text(budget=f"epsilon = {epsilon}"), tmp_path)
    assert "budget" in text
    assert "positive" in text or "number" in text


@pytest.mark.parametrize(
    ("delta", "told"),
    [
        ("1.0", "delta"),
        ("-1e-5", "delta"),
        ("0.01", "delta (0.01)"),  # 1/n for 100 people
        ("2e-4", "delta (0.0002)"),  # above 1e-2/n
    ],
)
def test_delta(delta: str, told: str, tmp_path: Path) -> None:
    budget = f"epsilon = 1.0\ndelta = {delta}"
    assert told in refused(study_text(budget=budget, protocol='method = "homm"\nnoise = "gaussian"'), tmp_path)


def test_delta_needs_a_public_bound_on_people(tmp_path: Path) -> None:
    parties = '[[parties]]\nname = "north"\n[[parties]]\nname = "south"\n'
    text = study_text(budget="epsilon = 1.0\ndelta = 1e-6", parties=parties)
    assert "people" in refused(text, tmp_path)


def test_gaussian_without_delta(tmp_path: Path) -> None:
    assert "delta" in refused(study_text(protocol='method = "homm"\nnoise = "gaussian"'), tmp_path)


def test_replace_without_public_sizes(tmp_path: Path) -> None:
    parties = '[[parties]]\nname = "north"\n[[parties]]\nname = "south"\n'
    assert "people" in refused(study_text(unit='neighbours = "replace"', parties=parties), tmp_path)


def test_two_parties_of_the_same_name(tmp_path: Path) -> None:
    parties = '[[parties]]\nname = "north"\n[[parties]]\nname = "North"\n'
    told = refused(study_text(parties=parties), tmp_path)
    assert "two parties are called 'north'" in told
    assert "owner" not in told


@pytest.mark.parametrize("name", ["", "../escape", "a/b", "nörd", "x" * 65])
def test_party_names_that_cannot_be_folders(name: str, tmp_path: Path) -> None:
    assert "name" in refused(study_text(parties=f'[[parties]]\nname = "{name}"\n'), tmp_path)


def test_bounds_reversed(tmp_path: Path) -> None:
    columns = COLUMNS.replace("lower = 0\nupper = 99", "lower = 99\nupper = 0")
    text = refused(study_text(columns=columns), tmp_path)
    assert "age" in text
    assert "99" in text


def test_unknown_key(tmp_path: Path) -> None:
    assert "epsilom" in refused(study_text(budget="epsilon = 1.0\nepsilom = 2.0"), tmp_path)


def test_a_source_for_nobody_and_a_party_without_one(tmp_path: Path) -> None:
    text = refused(study_text(), tmp_path, {"north": rows(10), "west": rows(10)})
    assert "no source for south" in text
    assert "no party called west" in text


@pytest.mark.parametrize("runtime", ["local", "processes"])
def test_a_missing_column_stops_everybody_before_anything_is_spent(runtime: RuntimeName, tmp_path: Path) -> None:
    rows(40).drop_columns(["age"]).to_pandas().to_csv(tmp_path / "south.csv")
    sources = {"north": rows(60), "south": tmp_path / "south.csv"}
    with pytest.raises(PartyError) as error:
        simulate(Study.loads(study_text()), sources, folder=tmp_path, runtime=runtime)
    assert "south" in str(error.value)
    assert "age" in str(error.value)
    assert charges(tmp_path, "north") == []
    assert charges(tmp_path, "south") == []


def test_a_missing_file(tmp_path: Path) -> None:
    text = refused(study_text(), tmp_path, {"north": rows(60), "south": tmp_path / "nowhere.csv"})
    assert "nowhere.csv" in text
    assert str(tmp_path) not in text


def test_nan_infinite_and_unknown_values_follow_the_schemas_rule(tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text(
        "colour,age,score\nred,10,0.1\nmauve,1e400,nan\n,-inf,inf\ngreen,,abc\nblue,12.7,-1\n"
    )
    study = Study.loads(study_text(budget="epsilon = 40.0", parties='[[parties]]\nname = "north"\n'))
    table = simulate(study, {"north": tmp_path / "odd.csv"}, folder=tmp_path).table.to_arrow()
    assert len(table) == 5
    assert table.filter(pa.compute.equal(table["colour"], "other")).num_rows == 1
    assert table["score"].null_count == 2  # nan and abc; infinity is clipped to the bound
    assert table["age"].null_count == 0
    assert len(charges(tmp_path, "north")) == 1


@pytest.mark.parametrize("count", [0, 1])
def test_an_empty_party_and_a_party_of_one_row_answer_like_any_other(count: int, tmp_path: Path) -> None:
    """Under add_remove the number of rows is private: refusing a small party would give it away."""
    for runtime in ("local", "processes"):
        sources = {"north": rows(60), "south": rows(count)}
        release = simulate(Study.loads(study_text()), sources, folder=tmp_path / runtime, runtime=runtime)
        assert len(charges(tmp_path / runtime, "south")) == 1
        assert len(release.table) > 0


def test_a_study_changed_by_one_byte_is_refused(tmp_path: Path) -> None:
    study = Study.loads(study_text())
    simulate(study, two_parties(), folder=tmp_path)
    other = Study.loads(study_text(budget="epsilon = 1.1"))
    home = PartyFolder(folder=tmp_path / "parties" / "north")
    node = home.node(seed=None, source=rows(60))
    before = list(node.state.ledger.entries())
    call = Call(study=other.digest, party="north", step="sanitise", call="c" * 32, body=encode(Nothing()))
    reply = decode(answer(node, encode(call)), Reply)
    assert reply.code == "refused"
    assert study.digest[:12] in reply.text
    assert list(node.state.ledger.entries()) == before


def test_any_change_of_meaning_changes_the_digest_and_layout_does_not() -> None:
    text = study_text()
    digests = {
        Study.loads(changed).digest
        for changed in (
            text,
            text.replace("upper = 99", "upper = 98"),
            text.replace('"blue"', '"bluE"'),
            text.replace("people = 60", "people = 61"),
            text.replace('name = "test"', 'name = "tesT"'),
            text.replace("bins = 4", "bins = 5"),
        )
    }
    assert len(digests) == 6
    assert Study.loads("# a comment\n" + text.replace(" = ", "  =  ")).digest in digests


def test_budgets_of_parties_above_the_studys(tmp_path: Path) -> None:
    parties = PARTIES.replace("people = 40", "people = 40\nbudget = { epsilon = 2.0 }")
    assert "above the study's budget of epsilon 1" in refused(study_text(parties=parties), tmp_path)


def test_a_grid_that_cannot_fit_is_refused_with_the_size_it_would_need(tmp_path: Path) -> None:
    column = '[[schema.columns]]\nname = "c{}"\nkind = "integer"\nlower = 0\nupper = 99\n'
    text = study_text(columns="".join(column.format(number) for number in range(5)))
    told = refused(text, tmp_path)
    assert f"{101**5:,} cells" in told
    at_least = int(told.split("at_least = ")[1].split(",")[0])
    fitting = text.replace('method = "homm"', f'method = "homm"\nat_least = {at_least}')
    Study.loads(fitting).check()
    with pytest.raises(InputError):
        Study.loads(text.replace('method = "homm"', f'method = "homm"\nat_least = {at_least // 2}')).check()
    beyond = study_text(columns="".join(column.format(number) for number in range(12)))
    assert "can be indexed" in refused(beyond, tmp_path)


def test_a_spent_cap_refuses_another_edition_and_says_how_much_is_left(tmp_path: Path) -> None:
    simulate(Study.loads(study_text()), two_parties(), folder=tmp_path)
    with pytest.raises(PartyError) as error:
        simulate(Study.loads(study_text(top="edition = 2")), two_parties(), folder=tmp_path)
    assert "spent 1 of epsilon 1" in str(error.value)
    assert "asked 1, left 0" in str(error.value)
    assert len(charges(tmp_path, "north")) == 1


def test_as_published_needs_a_seed(tmp_path: Path) -> None:
    assert "seed" in refused(study_text(protocol='method = "homm"\nas_published = true'), tmp_path)
