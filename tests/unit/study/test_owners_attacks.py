"""Attacks on the one charge of an organisation with several parties: to release people whom nobody paid for."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace
from pyarrow import feather

from organisations import homes_for, rehearse
from owners import COMMON, HOSPITALS, REPLACE, SOURCES, aligning, joint
from syndic import Study, simulate
from syndic.errors import InputError, PartyError, RefusedError
from syndic.kernel.terms import account_of
from syndic.methods.histogram.marginals_plan import MarginalsPlan
from syndic.privacy import Cost, Ledger
from syndic.study import PartyFolder
from syndic.study.agreement import agree, consider
from syndic.study.document import price_of
from syndic.study.fit import fit_of, own_fit
from syndic.study.identity import Identity
from syndic.study.party_folder import run_digest

OTHER = "ab" * 32


def test_no_party_is_called_like_the_owner_of_several() -> None:
    """An author says that a party of the registry is one of south's, whose account has no party's name.

    In the registry's ledger the account of that name is the registry's own: its charges would cover those of the party,
    though its people come from another alignment and may be the same.
    """
    study = joint(owner="")
    with pytest.raises(ValueError, match="may be called like the owner"):
        replace(
            study,
            parties=tuple(
                replace(one, owner="south")
                if one.name == "registry-north"
                else replace(one, name="registry", alignment=OTHER)
                if one.name == "registry-east"
                else replace(one, alignment=OTHER)
                if one.name == "east"
                else one
                for one in study.parties
            ),
        )


@pytest.mark.parametrize(
    ("alignments", "groups"),
    [((None, None, None), 3), (("", OTHER, OTHER), 2), (("", OTHER, "cd" * 32), 3), (("", "", OTHER), 2)],
)
def test_noise_is_enough_for_a_person_at_all_parties_that_may_have_it(
    alignments: tuple[str | None, ...], groups: int
) -> None:
    """One sum of all groups: a person in three of them moves it three times as far, which costs nine times the rho.

    Three charges do not pay for that. The noise must be for as many groups as may have the person.
    """
    known = dict(zip(HOSPITALS, (aligning().digest if one == "" else one for one in alignments), strict=True))

    def made(parties: int) -> Study:
        study = joint('noise = "gaussian"', unit=f"{REPLACE}\nparties = {parties}")
        return replace(study, parties=tuple(replace(one, alignment=known[one.group or ""]) for one in study.parties))

    for fewer in range(1, groups):
        with pytest.raises(InputError, match=f"may be in {groups} of the groups of 'registry'"):
            made(fewer).check()
    study = made(groups)
    study.check()
    assert account_of(study, "registry-east", "run").most == 3
    # three times as far, at the noise that the plan has: no more than is charged
    noise: Any = study.plan_as(MarginalsPlan).noise
    charged = Cost.of(study.plan.events("registry-north")).rho * account_of(study, "registry-north", "run").most
    assert noise.parties == 6
    assert charged >= Cost.of(joint('noise = "gaussian"').plan.events("registry-north")).rho * 0.99


def organisation(study: Study, names: tuple[str, ...], folder: Path) -> tuple[Study, dict[str, PartyFolder]]:
    """Return a study with identities, and the folders of these parties of the registry, which share its ledger."""
    align, homes = homes_for(aligning(), SOURCES, folder)
    rehearse(align, homes, seed=2)
    identities, own = {one.name: one.identity for one in align.parties}, {}
    for one in study.parties:
        home = PartyFolder(folder=folder / one.name)
        if one.name not in identities:
            identities[one.name] = str(Identity.make(home.keys).public)
        if one.name in names:
            own[one.name] = home
            (home.folder / "party.toml").write_text(
                f'name = "{one.name}"\ndataset = "people of registry"\ncap = {{ epsilon = 50, delta = 1e-4 }}\n'
                'source = { path = "../registry/rows.parquet" }\nledger = "../registry/ledger.sqlite"\n'
            )
    members = tuple(replace(one, identity=identities[one.name]) for one in study.parties)
    return replace(study, parties=members, coordinator=align.coordinator), own


def test_one_organisation_does_not_agree_as_parties_that_the_study_takes_for_several(tmp_path: Path) -> None:
    """An author leaves `owner` out: the noise is for people who are at one party, and these are at all of them."""
    planned = joint(owner="", digest="")
    study, own = organisation(planned, ("registry-north", "registry-south"), tmp_path)
    study.check()
    agree(own["registry-north"], study)
    with pytest.raises(RefusedError, match="`owner` of both"):
        agree(own["registry-south"], study)
    agree(own["registry-north"], study)
    own["registry-north"].agreed_node(study.digest).close()
    # two processes that agree at the same time do not see each other: nothing is answered then
    with Ledger.open(own["registry-south"].ledger) as ledger:
        ledger.log_agreement(
            dataset="people of registry",
            study=f"{study.digest} registry-south",
            agreement="0" * 64,
            why="at the same time",
        )
    with pytest.raises(RefusedError, match="`owner` of both"):
        own["registry-north"].agreed_node(study.digest)


def test_one_organisation_agrees_as_several_parties_if_a_person_may_be_at_all_of_them(tmp_path: Path) -> None:
    planned = joint(owner="", digest="", unit=f"{REPLACE}\nparties = 2")
    names = tuple(f"registry-{name}" for name in HOSPITALS)
    study, own = organisation(planned, names, tmp_path)
    for name in names[:2]:
        agree(own[name], study)
    with pytest.raises(RefusedError, match="`owner` of both"):
        agree(own[names[2]], study)


def test_the_price_is_what_the_ledger_is_charged_for_all_parties(tmp_path: Path) -> None:
    """A person at two parties: the owner reads the cost of both, before and after."""
    one, two = joint(), joint(unit=f"{REPLACE}\nparties = 2")
    assert price_of(one, "registry-north").epsilon == price_of(one, "north").epsilon
    assert price_of(two, "registry-north").epsilon == Cost.of(2 * two.plan.events("registry-north")).epsilon(two.delta)
    study, own = organisation(two, ("registry-north",), tmp_path)
    offer = consider(own["registry-north"], study)
    assert offer.price.epsilon == price_of(two, "registry-north").epsilon
    with Ledger.open(tmp_path / "registry" / "ledger.sqlite") as ledger:
        before = ledger.spent("people of registry").cost
    assert offer.after.cost == before + Cost.of(2 * two.plan.events("registry-north"))


def test_parties_of_one_owner_read_their_groups_by_the_ids_they_were_aligned_by(tmp_path: Path) -> None:
    """By another column, whose values are other people's ids, one person is in two groups that are charged as one."""
    simulate(aligning(), SOURCES, seed=1, folder=tmp_path)
    registry = SOURCES["registry"]
    # whoever is in north's group has, in this column, the id of somebody in south's
    swapped = registry.append_column("second", registry["id"].take(turned()))
    feather.write_feather(swapped, tmp_path / "registry.arrow", compression="uncompressed")
    text = 'dataset = "registry"\ncap = {{ epsilon = 50, delta = 1e-4 }}\nsource = {{ path = "registry.arrow" }}\n'
    (tmp_path / "party.toml").write_text(f'name = "registry"\nid = "second"\n{text.format()}')
    with pytest.raises(PartyError, match="were aligned by id"):
        simulate(joint(), {**SOURCES, "registry": tmp_path / "party.toml"}, seed=1, folder=tmp_path)
    with Ledger.open(tmp_path / "parties" / "registry" / "ledger.sqlite") as ledger:
        assert not any(entry.kind in {"reserve", "covered"} for entry in ledger.entries())
    (tmp_path / "party.toml").write_text(f'name = "registry"\nid = "id"\n{text.format()}')
    simulate(joint(), {**SOURCES, "registry": tmp_path / "party.toml"}, seed=1, folder=tmp_path)


def turned() -> pa.Array:
    """Return places of the registry's rows, those of north's and south's people exchanged."""
    return pa.array([*range(COMMON, 2 * COMMON), *range(COMMON), *range(2 * COMMON, 100)])


def test_an_owner_reads_at_once_that_the_order_of_its_group_is_missing(tmp_path: Path) -> None:
    """Also if there is one order of all parties, which parties do not read."""
    planned = joint(digest=OTHER)
    study, own = organisation(planned, ("registry-north",), tmp_path)
    found, text = own_fit(own["registry-north"], study)
    assert found is not None, text
    assert any("one of this party must be called 'north'" in one for one in found.advice)
    assert not found.poor, "owners may agree to the alignment and to this study at once"
    by_file = fit_of(study, "registry-north", own["registry-north"].folder / "party.toml")
    assert by_file.advice == found.advice


def test_an_alignment_that_was_forgotten_is_not_made_again(tmp_path: Path) -> None:
    """Another order under the same digest could move people to a party whose charge another party's covers."""
    simulate(aligning(), SOURCES, seed=1, folder=tmp_path)
    home = PartyFolder(folder=tmp_path / "parties" / "registry")
    home.forget(run_digest(aligning(), 1))
    shutil.rmtree(tmp_path / "coordinator")
    with pytest.raises(PartyError, match="stored answer was deleted"):
        simulate(aligning(), SOURCES, seed=1, folder=tmp_path)
