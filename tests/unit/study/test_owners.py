"""One organisation in several groups: its parties have one ledger, which is charged once, and collude as one."""

import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyarrow import feather

from organisations import homes_for, rehearse
from owners import COMMON, HOSPITALS, REPLACE, SOURCES, aligning, ids, joint
from support import rows
from syndic import simulate
from syndic.data import SourceSpec
from syndic.document import to_json
from syndic.errors import BudgetError, InputError, IntegrityError, PartyError, RefusedError
from syndic.kernel import Call, Reply, answer, decode, encode
from syndic.kernel.terms import account_of, most_parties
from syndic.methods import Marginals
from syndic.methods.align import Align
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.privacy import Budget, Ledger
from syndic.study import PartyFolder
from syndic.study.agreement import agree, studies, withdraw
from syndic.study.identity import Identity
from syndic.study.party_folder import PartyFile, booking, run_digest


@pytest.fixture(scope="module")
def aligned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the alignment was run."""
    folder = tmp_path_factory.mktemp("aligned")
    simulate(aligning(), SOURCES, seed=1, folder=folder)
    return folder


@pytest.fixture
def folder(aligned: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(aligned, tmp_path / "run"))


def values(release: Any) -> list[Any]:
    return [table.values.tolist() for table in release.result.tables]


def ledger_of(folder: Path, name: str = "registry") -> Ledger:
    return Ledger.open(folder / "parties" / name / "ledger.sqlite", create=False)


def test_the_organisation_is_charged_once_and_its_parties_answer_for_their_groups(folder: Path) -> None:
    study = joint()
    release: Any = simulate(study, SOURCES, seed=1, folder=folder)
    assert release.result.tables
    with ledger_of(folder) as ledger, ledger_of(folder, "north") as north:
        assert ledger.spent("registry").cost == north.spent("north").cost == study.costs["registry-north"]
        kinds = [entry.kind for entry in ledger.entries() if entry.kind in {"reserve", "covered"}]
        ledger.verify()
    assert kinds.count("covered") == 2 * kinds.count("reserve") > 0
    assert not (folder / "parties" / "registry-north" / "ledger.sqlite").exists()
    again: Any = simulate(study, SOURCES, seed=1, folder=folder)
    assert values(again) == values(release)
    with ledger_of(folder) as ledger:
        assert ledger.spent("registry").cost == study.costs["registry-north"]


@pytest.mark.slow
def test_over_processes_the_parties_share_the_ledger_too(folder: Path) -> None:
    study = joint()
    other = Path(shutil.copytree(folder, folder.with_name("other")))
    one = simulate(study, SOURCES, seed=1, folder=folder, runtime="processes")
    assert values(one) == values(simulate(study, SOURCES, seed=1, folder=other))
    with ledger_of(folder) as ledger:
        assert ledger.spent("registry").cost == study.costs["registry-north"]


def test_the_cap_holds_for_all_parties_together(folder: Path, tmp_path: Path) -> None:
    """The cap allows one study: the second one is refused before anybody spends, and the first can be repeated."""
    study = joint()
    epsilon = study.costs["north"].epsilon(study.delta)
    feather.write_feather(SOURCES["registry"], tmp_path / "registry.arrow", compression="uncompressed")
    (tmp_path / "party.toml").write_text(
        f'name = "registry"\ndataset = "registry"\nsource = {{ path = "registry.arrow" }}\n'
        f'cap = {{ epsilon = "{Budget.of(epsilon, study.delta).epsilon}", delta = 1e-6 }}\n'
    )
    given = {**SOURCES, "registry": tmp_path / "party.toml"}
    simulate(study, given, seed=1, folder=folder)
    with pytest.raises(PartyError, match="registry-north"):
        simulate(replace(study, edition=2), given, seed=1, folder=folder)
    simulate(study, given, seed=1, folder=folder)
    with ledger_of(folder) as ledger:
        assert ledger.spent("registry").cost == study.costs["registry-north"]
        assert ledger.spent("registry").fits


@pytest.mark.parametrize(("unit", "times"), [(REPLACE, 1), (f"{REPLACE}\nparties = 2", 2)])
def test_a_person_in_several_groups_is_charged_that_often(folder: Path, unit: str, times: int) -> None:
    study = joint(unit=unit)
    simulate(study, SOURCES, seed=1, folder=folder)
    with ledger_of(folder) as ledger:
        charged = [event for entry in ledger.entries() if entry.kind == "reserve" for event in entry.events]
    assert len(charged) == times * len(study.plan.events("registry-north"))


def test_without_one_alignment_the_groups_may_have_the_same_people_and_each_is_charged(tmp_path: Path) -> None:
    study = joint(digest="", unit=f"{REPLACE}\nparties = 3")
    assert account_of(study, "registry-east", "run").most == 3
    given = {name: table.drop_columns("id") for name, table in SOURCES.items()}
    given |= {f"registry-{name}": given["registry"].slice(0, COMMON) for name in HOSPITALS}
    del given["registry"]
    simulate(study, given, seed=1, folder=tmp_path)
    with ledger_of(tmp_path) as ledger:
        charged = [event for entry in ledger.entries() if entry.kind == "reserve" for event in entry.events]
    assert len(charged) == 3 * len(study.plan.events("registry-north"))


def test_a_party_answers_no_step_twice_though_others_were_charged(folder: Path) -> None:
    """What covers the first answer does not cover a second under another call id."""
    study = joint()
    simulate(study, SOURCES, seed=1, folder=folder)
    home = PartyFolder(folder=folder / "parties" / "registry-south")
    node = home.node(seed=1, source=SOURCES["registry"])
    node.state.ledger.declare("registry", Budget(epsilon=Fraction(50), delta=Fraction(1, 10**5)))
    account = node.state.account
    assert account is not None
    with pytest.raises(BudgetError, match="more than it declares"):
        node.state.ledger.reserve(
            dataset="registry",
            study=node.state.booked,
            call="another",
            door="1",
            events=study.plan.events("registry-south")[:1],
            why="again",
            limit=node.state.limit,
            account=replace(account, cap=None),
        )
    node.close()


def test_a_call_for_one_party_is_not_answered_by_another(folder: Path) -> None:
    study = joint()
    release = simulate(study, SOURCES, seed=1, folder=folder)
    assert {exchange.party for exchange in release.transcript} == {party.name for party in study.parties}
    node = PartyFolder(folder=folder / "parties" / "registry-south").node(seed=1, source=SOURCES["registry"])
    call = Call(study=node.state.study, party="registry-north", step="ready", call="0" * 32, body=b"\x80")
    reply = decode(answer(node, encode(call)), Reply)
    node.close()
    assert (reply.code, "another party" in reply.text) == ("refused", True)


def test_parties_remember_apart(folder: Path) -> None:
    """Keys and answers of one party are not those of another, though they are in one file."""
    study = joint()
    simulate(study, SOURCES, seed=1, folder=folder)
    with ledger_of(folder) as ledger:
        stored = ledger.database.rows("SELECT study, count(*) FROM answers GROUP BY study")
    parties = {name.partition(" ")[2]: count for name, count in stored}
    assert {"registry-north", "registry-south", "registry-east"} <= parties.keys()
    assert len({parties[f"registry-{name}"] for name in HOSPITALS}) == 1


@pytest.mark.parametrize("method", ["marginals", "synthesis"])
def test_colluding_counts_organisations(method: str) -> None:
    """All parties of the registry pool their shares of the noise: those of the others are enough."""
    study, apart = joint(method=method), joint("colluding = 3", owner="", method=method, unit=f"{REPLACE}\nparties = 3")
    assert [most_parties(study, number) for number in (0, 1, 2, 4, 5)] == [0, 3, 4, 6, 7]
    assert most_parties(apart, 3) == 3
    plan: Any = study.plan
    assert (plan.noise if method == "marginals" else plan.account).colluding == 3


def test_the_noise_without_all_parties_of_one_organisation_is_what_was_stated() -> None:
    study = joint('noise = "gaussian"')
    assert isinstance(study.protocol, Marginals)
    plan = study.plan_as(MarginalsPlan)
    noise: Any = plan.noise
    assert plan.masked_sum.graph.colluding == 3
    assert (noise.parties, noise.colluding, noise.honest) == (6, 3, 3)
    # as much as if the author had said that any three of six parties collude; with one, three would know too much
    assert noise == joint('noise = "gaussian"\ncolluding = 3', owner="").plan_as(MarginalsPlan).noise
    careless: Any = joint('noise = "gaussian"', owner="").plan_as(MarginalsPlan).noise
    whole = careless.total_variance(careless.honest)
    assert noise.total_variance(3) >= whole * (1 - 1e-9) > careless.total_variance(3)


def test_two_organisations_with_parties_and_more_than_all_are_refused() -> None:
    with pytest.raises(InputError):
        joint("colluding = 4").check()
    assert joint("colluding = 2").plan_as(MarginalsPlan).masked_sum.graph.colluding == 4


def test_servers_are_of_different_organisations() -> None:
    with pytest.raises(InputError, match="parties of one organisation"):
        joint('servers = ["registry-north", "registry-south", "north"]').check()
    joint('servers = ["registry-north", "south", "north"]').check()


def test_parties_are_in_different_groups() -> None:
    study = joint()
    for group in ("south", None):
        parties = tuple(replace(one, group=group) if one.name == "registry-north" else one for one in study.parties)
        with pytest.raises(ValueError, match="its parties must each name a `group`"):
            replace(study, parties=parties)
    parties = tuple(replace(one, owner="Registry") if one.name == "registry-north" else one for one in study.parties)
    with pytest.raises(ValueError, match="upper and lower case"):
        replace(study, parties=parties)


def test_groups_of_one_alignment_without_a_common_owner_may_overlap() -> None:
    with pytest.raises(InputError, match="a person may be in 3 groups of the same alignment"):
        joint(owner="").check()
    joint(owner="", unit=f"{REPLACE}\nparties = 3").check()
    joint().check()


def test_a_study_without_owners_has_no_owner_in_its_digest() -> None:
    assert b"owner" not in to_json(joint(owner=""))
    assert joint(owner="").digest != joint().digest


def test_a_group_that_is_no_set_of_the_alignment_is_refused_before_anybody_spends(folder: Path) -> None:
    study = joint()
    parties = tuple(replace(one, group="west") if one.group == "east" else one for one in study.parties)
    with pytest.raises(PartyError, match="one of this party must be called 'west'"):
        simulate(replace(study, parties=parties), SOURCES, seed=1, folder=folder)
    with ledger_of(folder) as ledger:
        assert not any(entry.kind == "reserve" for entry in ledger.entries())


def test_parties_do_not_read_one_order_of_all_parties_as_different_groups(tmp_path: Path) -> None:
    """An alignment without sets has the same people in every group: charged once, each would be released thrice."""
    whole = replace(aligning(), protocol=Align())
    people = dict.fromkeys((*HOSPITALS, "registry"), rows(100, 5).append_column("id", ids(*range(100))))
    simulate(whole, people, seed=1, folder=tmp_path)
    study = joint(digest=whole.digest)
    study.check()
    with pytest.raises(PartyError, match="one of this party must be called 'north'"):
        simulate(study, people, seed=1, folder=tmp_path)
    with ledger_of(tmp_path) as ledger:
        assert not any(entry.kind == "reserve" for entry in ledger.entries())


def test_a_party_needs_the_ledger_that_the_others_have() -> None:
    cap = Budget(epsilon=Fraction(1))
    own = PartyFile(name="registry-north", dataset="x", source=SourceSpec(path="x.csv"), cap=cap)
    with pytest.raises(InputError, match="name the ledger that they share"):
        booking(joint(), own, "run")
    shared = replace(own, ledger="../registry/ledger.sqlite")
    account = booking(joint(), shared, "run")
    assert account.name == "run registry-north"
    assert account.beside == ("run registry-south", "run registry-east")
    # also in a study that does not know of it: two parties of one file never share what they remember
    assert booking(joint(owner="", unit=f"{REPLACE}\nparties = 3"), shared, "run").name == "run registry-north"
    assert booking(joint(owner="", unit=f"{REPLACE}\nparties = 3"), shared, "run").beside == ()


def test_a_shared_ledger_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """A wrong path would be an empty ledger, and a new cap."""
    home = tmp_path / "party"
    home.mkdir()
    (home / "party.toml").write_text(
        'name = "registry-north"\ndataset = "x"\nsource = { path = "x.csv" }\ncap = { epsilon = 1 }\n'
        'ledger = "../registry/ledger.sqlite"\n'
    )
    folder = PartyFolder(folder=home)
    assert folder.ledger == home / ".." / "registry" / "ledger.sqlite"
    with pytest.raises(Exception, match="ledger"):
        folder.open_ledger()


def test_between_organisations_parties_agree_one_by_one_and_share_a_ledger(tmp_path: Path) -> None:
    align, homes = homes_for(aligning(), SOURCES, tmp_path)
    rehearse(align, homes, seed=2)
    planned, identities = joint(digest=align.digest), {one.name: one.identity for one in align.parties}
    for name in HOSPITALS:
        party = PartyFolder(folder=tmp_path / f"registry-{name}")
        identities[party.folder.name] = str(Identity.make(party.keys).public)
        (party.folder / "party.toml").write_text(
            f'name = "{party.folder.name}"\ndataset = "people of registry"\ncap = {{ epsilon = 50, delta = 1e-4 }}\n'
            'source = { path = "../registry/rows.parquet" }\nledger = "../registry/ledger.sqlite"\n'
        )
        homes[party.folder.name] = party
    members = tuple(replace(one, identity=identities[one.name]) for one in planned.parties)
    study = replace(planned, parties=members, coordinator=align.coordinator)
    own = {party.name: homes[party.name] for party in study.parties}
    release = rehearse(study, own, seed=2)
    assert values(release) == values(rehearse(study, own, seed=2)), "asked again, they give the stored answers"
    with Ledger.open(homes["registry"].ledger) as ledger:
        ledger.verify()
        assert ledger.spent("people of registry").cost == study.costs["registry-north"]
    run = run_digest(study, 2)
    assert {one.state for name in own for one in studies(own[name]) if one.run == run} == {"finished"}
    withdraw(own["registry-south"], run)
    with pytest.raises(RefusedError, match="registry-south has withdrawn"):
        own["registry-south"].agreed_node(run)
    own["registry-east"].agreed_node(run).close()
    (homes["registry-east"].folder / "party.toml").write_text(
        (homes["registry-east"].folder / "party.toml").read_text().partition("ledger")[0]
    )
    with pytest.raises(IntegrityError, match="missing or empty"):
        agree(own["registry-east"], replace(study, edition=2))
