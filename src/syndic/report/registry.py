"""The statement of a release as an entry of the Differential Privacy Deployments Registry.

The registry (opendp/deployments-registry-data, proposed to be hosted by NIST) takes one YAML file a deployment. Its
schema rests on Ghazi, Nanayakkara and Vadhan 2025, "Practitioners' Perspectives on a Differential Privacy Deployment
Registry" (arXiv:2509.13509). Everything here follows from public documents: study, statement, the owner's words.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from syndic.document import to_readable_json
from syndic.errors import InputError
from syndic.methods import Learn
from syndic.privacy import at_delta, shown
from syndic.report.catalogues import About, croissant, healthdcat, refuse_unprotected
from syndic.study.release import Release


def registry_entry(release: Release, about: About) -> dict[str, Any]:
    """Return the entry; raise `RefusedError` for a rehearsal or a published variant, which protects nobody."""
    refuse_unprotected(release.study, release.statement)
    statement, study = release.statement, release.study
    columns = ", ".join(f"{column.name} ({column.size} levels)" for column in study.schema.columns)
    named = f"{study.name} {about.curators[0].name} {about.published[:4]}"
    return {
        "url_slug": re.sub("[^a-z0-9]+", "-", named.lower()).strip("-"),
        "deployment": {
            "basic": _basic(release, about),
            "dp_variant": {
                "variant_name": "Pure DP" if statement.delta == 0 else "Approximate DP",
                "data_domain": f"Tables with the columns {columns}. Columns, bounds and lists are declared in the "
                "study, not computed from rows.",
                "unprotected_quantities": _listed(statement.not_protected),
            },
            "privacy_loss": _privacy_loss(release),
            "deployment_model": _model(release),
            "implementation": _implementation(release, about),
            "administrative": {
                "evidence_sources": _sources(release, about),
                "status": "Draft",
                "registry_authors": list(about.authors),
                "tier": 3,
            },
        },
    }


def write_catalogue(kind: str, release: Release, folder: Path, about: About, path: Path) -> Path:
    """Write what the registry, `croissant` or `healthdcat` asks about the release in `folder`; return the path."""
    endings = (".yaml", ".yml", ".json") if kind == "registry" else (".json", ".jsonld")
    if path.suffix not in endings:
        raise InputError(f"{path.name}: metadata for {kind} is written as {' or '.join(endings)}")
    if kind == "croissant":
        content = croissant(release, folder, about)
    else:
        content = (registry_entry if kind == "registry" else healthdcat)(release, about)
    yaml = path.suffix in {".yaml", ".yml"}
    path.write_bytes("\n".join([*_yaml(content), ""]).encode() if yaml else to_readable_json(content))
    return path


def _basic(release: Release, about: About) -> dict[str, Any]:
    product = "Summary statistics"
    if release.known_table is not None:
        product = "Synthetic data"
    elif isinstance(release.study.protocol, Learn):
        product = "Machine learning model"
    sector = {} if about.sector is None else {"data_product_sector": about.sector}
    return {
        "name": release.study.name,
        "data_curators": [{"data_curator_name": one.name, "data_curator_type": one.kind} for one in about.curators],
        "description": about.description,
        "intended_use": about.intended_use or release.study.purpose,
        "data_product_type": product,
        "data_product_region": about.region,
        **sector,
        "publication_date": about.published,
    }


def _privacy_loss(release: Release) -> dict[str, Any]:
    statement, people = release.statement, release.study.people
    delta = {} if statement.delta == 0 else {"delta": statement.delta}
    costs = "; ".join(f"{party.party}: {at_delta(party.epsilon, party.delta)}" for party in statement.parties)
    return {
        "privacy_unit": "Person" if statement.unit.rows == 1 else f"Person with up to {statement.unit.rows} rows",
        "privacy_unit_details": f"Neighbours: {statement.unit.neighbours}. {statement.unit_in_words}",
        **({} if people is None else {"number_of_privacy_units": people}),
        "privacy_parameters": {"epsilon": float(shown(statement.epsilon)), **delta},
        "privacy_parameters_details": f"For one person over the whole release. Cost at each party: {costs}.",
    }


def _model(release: Release) -> dict[str, Any]:
    statement, parties = release.statement, release.study.parties
    split = {
        "horizontal": "each with rows about different people",
        "vertical": "each with different columns about the same people",
        "mixed": "in groups, each with different columns about the people of its group",
    }[statement.partition]
    several = f"{len(parties)} organisations, {split}; no rows are pooled."
    return {
        "model_name": "Central" if len(parties) == 1 else "Federated",
        "model_name_details": "One organisation with its own rows." if len(parties) == 1 else several,
        "trust_assumptions": statement.trust,
        "actors": _listed(f"{role}: {seen}" for role, seen in statement.sees.items()),
        "release_type": "One release",
        "release_type_details": f"Edition {statement.edition} of the study. Every organisation keeps a ledger; another "
        "release about the same people is added to it.",
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }


def _implementation(release: Release, about: About) -> dict[str, Any]:
    statement = release.statement
    events = dict.fromkeys(event.what for party in statement.parties for event in party.events if event.what)
    return {
        "preprocessing_and_hyperparameter_tuning": "Values outside declared bounds or lists are clipped or mapped by "
        "public rules. Parameters are in the study file and were fixed before rows were read by this software.",
        "mechanisms": _listed(
            (
                statement.method,
                *events,
                f"{statement.randomness}; no floating-point noise",
                f"sensitivity: {statement.sensitivity}",
                f"Syndic {statement.syndic}; digest of the study {statement.digest}",
            )
        ),
        "composition": statement.accountant,
        "post_processing": "Everything that the coordinator computes uses protected or public numbers only.",
        **({"justification": about.justification} if about.justification else {}),
    }


def _sources(release: Release, about: About) -> dict[str, Any]:
    paper = {"evidence_source_type": "Other public source", "misc": {"title": release.statement.paper}}
    published = {
        "evidence_source_type": "Formal publication by the deploying organization",
        "misc": {"title": release.study.name, "url": about.address},
    }
    found = {"method": paper} if re.search(r"\d{4}", release.statement.paper) else {}
    return {**found, **({"release": published} if about.address else {})}


def _listed(texts: Iterator[str] | tuple[str, ...]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _yaml(value: Any, indent: int = 0) -> Iterator[str]:
    """Yield lines of YAML: JSON's quoted text is YAML's, numbers have a point so that old readers see a number."""
    space = " " * indent
    for name, one in value.items():
        if isinstance(one, Mapping):
            yield f"{space}{name}:" + ("" if one else " {}")
            yield from _yaml(one, indent + 2)
        elif isinstance(one, list):
            yield f"{space}{name}:"
            for item in one:
                lines = list(_yaml(item, indent + 4)) if isinstance(item, Mapping) else [f"{space}    {_scalar(item)}"]
                yield f"{space}  - {lines[0].lstrip()}"
                yield from lines[1:]
        elif isinstance(one, str) and "\n" in one and _plain(one):
            yield f"{space}{name}: |-"
            yield from (f"{space}  {line}" for line in one.splitlines())
        else:
            yield f"{space}{name}: {_scalar(one)}"


def _plain(text: str) -> bool:
    """Whether the text survives as a block: quoted text is safe, a block is easier to read."""
    return text[0] == "-" and text == "\n".join(text.splitlines()) and text.replace("\n", "").isprintable()


def _scalar(value: str | float) -> str:
    if not isinstance(value, float):
        return json.dumps(value, ensure_ascii=not str(value).isprintable())
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")
