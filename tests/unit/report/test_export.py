"""Releases described for catalogues: the registry's and Croissant's fields, and what must not be exported."""

import hashlib
import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner

from syndic import Release, Study, simulate
from syndic.cli.main import cli
from syndic.document import from_toml
from syndic.errors import InputError, RefusedError
from syndic.report import About, croissant, healthdcat, registry_entry, write_catalogue

ABOUT = """
description = "Synthetic visits: a table of \\"made up\\" people"
region = "Nowhere"
published = "2026-11-15"
licence = "https://creativecommons.org/licenses/by/4.0/"
address = "https://example.org/clinics"
sector = "Healthcare"
authors = ["A. Writer"]
curators = [{ name = "North clinic", kind = "Nonprofit" }, { name = "South clinic", kind = "Government" }]
"""

# the registry's template, tests/good_deployments/template.yaml of opendp/deployments-registry-data, in short
REGISTRY: dict[str, set[str]] = {
    "basic": {
        "name",
        "data_curators",
        "description",
        "intended_use",
        "data_product_type",
        "data_product_region",
        "data_product_sector",
        "publication_date",
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {
        "privacy_unit",
        "privacy_unit_details",
        "number_of_privacy_units",
        "privacy_parameters",
        "privacy_parameters_details",
    },
    "deployment_model": {
        "model_name",
        "model_name_details",
        "trust_assumptions",
        "actors",
        "release_type",
        "release_type_details",
        "data_source_type",
        "data_source_type_details",
        "access_type",
        "access_type_details",
    },
    "implementation": {
        "preprocessing_and_hyperparameter_tuning",
        "mechanisms",
        "composition",
        "post_processing",
        "justification",
        "utility",
        "additional_information",
    },
    "administrative": {"evidence_sources", "status", "registry_authors", "tier"},
}
CHOICES = {
    ("basic", "data_product_type"): {"Summary statistics", "Machine learning model", "Dataset", "Synthetic data"},
    ("dp_variant", "variant_name"): {"Pure DP", "Approximate DP"},
    ("deployment_model", "model_name"): {"Local", "Central", "Shuffle", "Federated", "Varies"},
    ("deployment_model", "release_type"): {"One release", "Many releases"},
    ("deployment_model", "data_source_type"): {"Static", "Dynamic"},
    ("deployment_model", "access_type"): {"Interactive", "Non-interactive"},
    ("administrative", "status"): {"Draft"},
}


def about() -> About:
    return from_toml(ABOUT, About, where="about")


def demo() -> Path:
    return Path(str(files("syndic") / "demo"))


def written(study: Study, folder: Path) -> Path:
    """Run a study of the demo's clinics and return the folder with its release."""
    simulate(study, {party.name: demo() / f"{party.name}.csv" for party in study.parties}).write(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(Study.load(demo() / "study.toml"), tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def pure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a release of the same clinics with epsilon alone: one noisy table of all columns."""
    text = (demo() / "study.toml").read_text().replace("delta = 1e-6\n", "")
    text = text.replace('method = "synthesis"', 'method = "homm"').replace("bins = 13", "bins = 6")
    return written(Study.loads(text.replace("bins = 12", "bins = 7")), tmp_path_factory.mktemp("pure"))


def test_registry_entry_has_the_fields_of_the_template(folder: Path) -> None:
    entry = registry_entry(Release.load(folder), about())
    assert set(entry) == {"url_slug", "deployment"}
    deployment = entry["deployment"]
    assert set(deployment) == set(REGISTRY)
    for section, content in deployment.items():
        assert set(content) <= REGISTRY[section], section
    assert set(deployment["basic"]) == REGISTRY["basic"]
    for (section, name), choices in CHOICES.items():
        assert deployment[section][name] in choices
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": pytest.approx(1.0), "delta": 1e-06}
    assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
    for source in deployment["administrative"]["evidence_sources"].values():
        assert set(source) == {"evidence_source_type", "misc"}


def test_a_guarantee_without_delta_is_pure(pure: Path) -> None:
    deployment = registry_entry(Release.load(pure), about())["deployment"]
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert "epsilon 1, delta 0" in croissant(Release.load(pure), pure, about())["rai:personalSensitiveInformation"]


def test_registry_entry_of_the_demo(folder: Path, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    text = write_catalogue("registry", Release.load(folder), folder, about(), tmp_path / "entry.yaml").read_text()
    golden("registry-demo.yaml", re.sub(r"Syndic [^;]+;", "Syndic VERSION;", text))


def test_yaml_reads_as_the_json_does(folder: Path, tmp_path: Path) -> None:
    release = Release.load(folder)
    as_yaml = yaml.safe_load(write_catalogue("registry", release, folder, about(), tmp_path / "entry.yaml").read_text())
    as_json = json.loads(write_catalogue("registry", release, folder, about(), tmp_path / "entry.json").read_text())
    assert as_yaml == as_json
    assert as_yaml["deployment"]["privacy_loss"]["privacy_parameters"] == {
        "epsilon": pytest.approx(release.statement.epsilon),
        "delta": 1e-06,
    }
    assert as_yaml["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"
    assert as_yaml["deployment"]["basic"]["publication_date"] == "2026-11-15"


@pytest.mark.parametrize(
    "text", ["two\nlines", "- a\n- b", "- a\r\n- b\n", "  indented\nand not", "- a\x85b\n: {", "true", "1e-06"]
)
def test_words_survive_yaml(folder: Path, tmp_path: Path, text: str) -> None:
    words = msgspec.structs.replace(about(), description=text, authors=(text,))
    entry = yaml.safe_load(
        write_catalogue("registry", Release.load(folder), folder, words, tmp_path / "entry.yaml").read_text()
    )
    assert entry["deployment"]["basic"]["description"] == text
    assert entry["deployment"]["administrative"]["registry_authors"] == [text]


def test_croissant_names_the_files_and_columns_that_are_there(folder: Path) -> None:
    content = croissant(Release.load(folder), folder, about())
    for file in content["distribution"]:
        written = (folder / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(written).hexdigest()
        assert file["contentSize"] == f"{len(written)} B"
    fields = {field["name"]: field["dataType"] for field in content["recordSet"][0]["field"]}
    schema = {
        column["name"]: column["kind"]
        for column in json.loads((folder / "study.json").read_text())["schema"]["columns"]
    }
    words = {"integer": "sc:Integer", "real": "sc:Float", "boolean": "sc:Boolean", "date": "sc:Date"}
    assert fields == {name: words.get(kind, "sc:Text") for name, kind in schema.items()}
    assert content["license"].startswith("https://")
    assert "epsilon 1, delta 1e-06" in content["rai:personalSensitiveInformation"]


def test_a_file_that_is_gone_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"synthetic\.parquet"):
        croissant(Release.load(folder), tmp_path, about())


def test_a_rehearsal_is_not_exported() -> None:
    study = Study.load(demo() / "study.toml")
    release = simulate(study, {party.name: demo() / f"{party.name}.csv" for party in study.parties}, seed=1)
    with pytest.raises(RefusedError, match="must not be published"):
        registry_entry(release, about())
    with pytest.raises(RefusedError, match="must not be published"):
        croissant(release, demo(), about())


@pytest.mark.parametrize("changed", ['published = "soon"', 'licence = "MIT"', "authors = []"])
def test_words_that_a_catalogue_cannot_take(changed: str) -> None:
    name = changed.split(" ", maxsplit=1)[0]
    text = "\n".join(line for line in ABOUT.splitlines() if not line.startswith(name)) + f"\n{changed}\n"
    with pytest.raises(InputError, match=name):
        from_toml(text, About, where="about")


def test_wrong_endings_are_refused(folder: Path, tmp_path: Path) -> None:
    release = Release.load(folder)
    with pytest.raises(InputError, match=r"\.yaml"):
        write_catalogue("registry", release, folder, about(), tmp_path / "entry.txt")
    with pytest.raises(InputError, match="jsonld"):
        write_catalogue("croissant", release, folder, about(), tmp_path / "croissant.txt")


def test_command_line(folder: Path, tmp_path: Path) -> None:
    words = tmp_path / "about.toml"
    words.write_text(ABOUT)
    targets = [str(tmp_path / "entry.yaml"), str(tmp_path / "croissant.json")]
    call = ["export", str(folder), "--about", str(words), "--registry", targets[0], "--croissant", targets[1], "--json"]
    result = CliRunner().invoke(cli, call)
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["files"] == targets
    nothing = CliRunner().invoke(cli, ["export", str(folder), "--about", str(words)])
    assert isinstance(nothing.exception, InputError)


def restated(release: Release, **changes: Any) -> Release:
    statement = msgspec.structs.replace(release.statement, **changes)
    return Release(study=release.study, result=release.result, statement=statement, transcript=release.transcript)


def test_healthdcat_describes_the_table_and_names_what_is_missing(folder: Path, tmp_path: Path) -> None:
    release = Release.load(folder)
    found = healthdcat(release, about())
    assert found["dct:identifier"] == release.statement.digest
    assert found["healthdcatap:numberOfRecords"]["@value"] == str(len(release.table))
    # the declared numbers of the study, never a count of rows
    assert found["healthdcatap:numberOfUniqueIndividuals"]["@value"] == "3400"
    assert {key.split(":")[0] for key in found if ":" in key} <= set(found["@context"])
    assert about().missing_for_health == ("contact", "health_categories")
    whole = msgspec.structs.replace(
        about(), contact="mailto:data@example.org", health_categories=("https://example.org/registry",)
    )
    assert whole.missing_for_health == ()
    contact = healthdcat(release, whole)["dcat:contactPoint"]
    assert contact["vcard:hasEmail"] == {"@id": "mailto:data@example.org"}
    (tmp_path / "about.toml").write_text(ABOUT)
    target = tmp_path / "health.jsonld"
    given = ["export", str(folder), "--about", str(tmp_path / "about.toml"), "--healthdcat", str(target)]
    ran = CliRunner().invoke(cli, given)
    assert ran.exit_code == 0, ran.output
    assert "contact, health_categories" in ran.output
    assert json.loads(target.read_text()) == found


@pytest.mark.parametrize("contact", ["data@example.org", "javascript:x"])
def test_a_contact_is_an_address(contact: str) -> None:
    with pytest.raises(InputError, match="contact"):
        from_toml(f'contact = "{contact}"\n{ABOUT}', About, where="about")
