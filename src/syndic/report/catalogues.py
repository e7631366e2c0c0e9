"""What catalogues ask about a release, and a table's metadata as JSON-LD, with what protects the people in it.

Croissant is the format of MLCommons (Akhtar et al. 2024, "Croissant: A Metadata Format for ML-Ready Datasets"); notes
on people and privacy use its vocabulary for responsible use, RAI 1.0. HealthDCAT-AP extends DCAT-AP 3, for catalogues
of the European Health Data Space. What it requires and nobody has given is left out: `About.missing_for_health` names
it.
"""

import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal, Self, final

import pyarrow as pa

from syndic.data import Schema
from syndic.document import Document, from_file
from syndic.errors import InputError, RefusedError
from syndic.methods import Align
from syndic.privacy import shown
from syndic.study import Study
from syndic.study.release import Release
from syndic.study.statement import Statement, odds_for

_CONFORMS: Final = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]
_TABLE: Final = "synthetic.parquet"
_FILES: Final = {
    _TABLE: "application/x-parquet",
    "statement.json": "application/json",
    "study.json": "application/json",
}
_CONTEXT: Final = {
    "adms": "http://www.w3.org/ns/adms#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dcatap": "http://data.europa.eu/r5r/",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "healthdcatap": "http://healthdataportal.eu/ns/health#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_AUTHORITY: Final = "http://publications.europa.eu/resource/authority"
_EHDS: Final = "http://data.europa.eu/eli/reg/2025/327/oj"
Sector = Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"]


@final
class Curator(Document):
    """An organisation that publishes the release; `kind` is the registry's word for what it is."""

    name: str
    kind: Literal["Government", "Industry", "Nonprofit"]


@final
class About(Document):
    """Public facts about a publication, written by people.

    `published` is the day as YYYY-MM-DD, `licence` and `address` are URLs, `authors` wrote the entry.
    `intended_use` is the study's purpose if it is not given. `contact` (`mailto:` or a URL), `population` and
    `health_categories` (URLs of a vocabulary) are for HealthDCAT-AP.
    """

    curators: tuple[Curator, ...]
    authors: tuple[str, ...]
    description: str
    region: str
    published: str
    licence: str = ""
    address: str = ""
    intended_use: str = ""
    sector: Sector | None = None
    justification: str = ""
    contact: str = ""
    population: str = ""
    health_categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.curators or not self.authors:
            raise ValueError("curators and authors must name at least one each")
        if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", self.published):
            raise ValueError("published must be a day, YYYY-MM-DD")
        for what, address in (
            ("licence", self.licence),
            ("address", self.address),
            ("contact", self.contact.replace("mailto:", "http://", 1)),
            *(("health_categories", one) for one in self.health_categories),
        ):
            if address and not re.match("https?://", address):
                raise ValueError(f"{what} must be a URL")

    @property
    def missing_for_health(self) -> tuple[str, ...]:
        """What a HealthDCAT-AP catalogue requires and this lacks."""
        return tuple(name for name in ("contact", "health_categories", "licence") if not getattr(self, name))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a `.toml` or `.json` file."""
        return from_file(path, cls)


def refuse_unprotected(study: Study, statement: Statement) -> None:
    """Raise `RefusedError` if there is no guarantee that a catalogue or a document could state."""
    if not statement.protects:
        raise RefusedError(f"{statement.study}: {statement.randomness}; it must not be published")
    if isinstance(study.protocol, Align):
        raise RefusedError(f"{statement.study}: an alignment is outside differential privacy; nothing to export")


def croissant(release: Release, folder: str | Path, about: About) -> dict[str, Any]:
    """Return the metadata of the table in a release's folder; raise `RefusedError` if nobody is protected.

    Files are named relative to the folder.
    """
    refuse_unprotected(release.study, release.statement)
    folder, statement = Path(folder), release.statement
    # raises if the method publishes no table
    schema = release.table.to_arrow().schema
    links = {"license": about.licence, "url": about.address}
    return {
        "@context": json.loads((files("syndic.report") / "croissant.json").read_text(encoding="utf-8")),
        "@type": "sc:Dataset",
        "name": release.study.name,
        "description": about.description,
        "conformsTo": _CONFORMS,
        **{name: link for name, link in links.items() if link},
        "creator": [{"@type": "sc:Organization", "name": curator.name} for curator in about.curators],
        "datePublished": about.published,
        "citeAs": f"{', '.join(curator.name for curator in about.curators)} ({about.published[:4]}): "
        f"{release.study.name}. Study digest {statement.digest}.",
        "version": f"{statement.edition}.0.0",
        "isLiveDataset": False,
        **_notes(release, about),
        "distribution": [_file(folder / name, kind) for name, kind in _FILES.items()],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "rows",
                "name": "rows",
                "description": f"{len(release.table)} synthetic rows. No row belongs to a person.",
                "field": [_field(one, release.study.schema) for one in schema],
            }
        ],
    }


def _notes(release: Release, about: About) -> dict[str, Any]:
    statement = release.statement
    promise = f"epsilon {shown(statement.epsilon)}, delta {statement.delta:g}"
    return {
        "rai:dataCollection": f"Synthetic rows made by {statement.method} from the tables of "
        f"{len(release.study.parties)} organisation(s), which were not pooled.",
        "rai:personalSensitiveInformation": f"Differentially private with {promise}: "
        f"{odds_for(statement.epsilon, statement.delta)}. {statement.unit_in_words} "
        f"Not protected: {'; '.join(statement.not_protected)}.",
        "rai:dataUseCases": about.intended_use or release.study.purpose or "not stated",
        "rai:dataLimitations": "Counts and averages are noisy; rare groups and columns that were not modelled "
        "together are unreliable. statement.json goes wherever the table goes.",
        "rai:dataPreprocessingProtocol": [
            "Columns, bounds and lists were declared; values outside are clipped or mapped."
        ],
    }


def _file(path: Path, kind: str) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"{path.name}: not in the release's folder; give the folder that syndic simulate or run wrote")
    content = path.read_bytes()
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "contentUrl": path.name,
        "contentSize": f"{len(content)} B",
        "encodingFormat": kind,
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _field(column: "pa.Field[Any]", schema: Schema) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"rows/{column.name}",
        "name": column.name,
        "description": _described(column.name, schema),
        "dataType": _kind(column.type),
        "source": {"fileObject": {"@id": _TABLE}, "extract": {"column": column.name}},
    }


def _described(name: str, schema: Schema) -> str:
    if name not in schema.names:
        return "weight of the row: -1 where noise made a count negative"
    labels = schema[name].labels()
    shown = ", ".join(labels[:20]) + (f" and {len(labels) - 20} more" if len(labels) > 20 else "")
    derived = f"{schema[name].derive}; " if schema[name].derive else ""
    return f"{derived}levels or bins: {shown}"


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    if pa.types.is_floating(kind):
        return "sc:Float"
    if pa.types.is_timestamp(kind):
        return "sc:DateTime"
    return "sc:Date" if pa.types.is_date(kind) else "sc:Text"


def healthdcat(release: Release, about: About) -> dict[str, Any]:
    """Return the metadata of a release's table; raise `RefusedError` if nobody is protected."""
    refuse_unprotected(release.study, release.statement)
    statement, people = release.statement, release.study.people
    odds = odds_for(statement.epsilon, statement.delta)
    promise = f"epsilon {shown(statement.epsilon)}, delta {statement.delta:g} for one person: {odds}"
    found: dict[str, Any] = {
        "@context": _CONTEXT,
        "@id": about.address or f"urn:sha256:{statement.digest}",
        "@type": "dcat:Dataset",
        "dct:title": release.study.name,
        "dct:description": about.description,
        "dct:identifier": statement.digest,
        "dct:issued": {"@type": "xsd:date", "@value": about.published},
        "dct:accessRights": {"@id": f"{_AUTHORITY}/access-right/PUBLIC"},
        "dcat:theme": {"@id": f"{_AUTHORITY}/data-theme/HEAL"},
        "dcatap:applicableLegislation": {"@id": _EHDS},
        "dct:publisher": [{"@type": "foaf:Agent", "foaf:name": one.name} for one in about.curators],
        "dct:provenance": {
            "@type": "dct:ProvenanceStatement",
            "rdfs:label": f"Synthetic rows by {statement.method}, from the tables of {len(release.study.parties)} "
            f"organisation(s), which were not pooled. Differentially private with {promise}.",
        },
        "healthdcatap:numberOfRecords": _number(len(release.table)),
        "dcat:version": f"{statement.edition}.0.0",
        "dcat:distribution": {
            "@type": "dcat:Distribution",
            "dcat:accessURL": {"@id": about.address or "synthetic.parquet"},
            "dcat:mediaType": {"@id": "https://www.iana.org/assignments/media-types/application/vnd.apache.parquet"},
            **({"dct:license": {"@id": about.licence}} if about.licence else {}),
        },
    }
    reached = "vcard:hasEmail" if about.contact.startswith("mailto:") else "vcard:hasURL"
    given: dict[str, Any] = {
        "dcat:contactPoint": about.contact and {"@type": "vcard:Kind", reached: {"@id": about.contact}},
        "healthdcatap:healthCategory": [{"@id": one} for one in about.health_categories],
        "healthdcatap:populationCoverage": about.population,
        # a declared number of people, not a count
        "healthdcatap:numberOfUniqueIndividuals": people and _number(people),
        "dct:spatial": about.region and {"@type": "dct:Location", "rdfs:label": about.region},
    }
    return {**found, **{name: value for name, value in given.items() if value}}


def _number(value: int) -> dict[str, str]:
    return {"@type": "xsd:nonNegativeInteger", "@value": str(value)}
