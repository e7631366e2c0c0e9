"""A published table's metadata as HealthDCAT-AP (JSON-LD), for catalogues of the European Health Data Space.

HealthDCAT-AP extends DCAT-AP 3. What it requires and nobody has given is left out:
`About.missing_for_health` names it.
"""

from typing import Any, Final

from syndic.privacy import shown
from syndic.report.about import About, refuse_unprotected
from syndic.study.release import Release
from syndic.study.statement import odds_for

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
    given: dict[str, Any] = {
        "dcat:contactPoint": about.contact and {"@type": "vcard:Kind", _contact(about): {"@id": about.contact}},
        "healthdcatap:healthCategory": [{"@id": one} for one in about.health_categories],
        "healthdcatap:populationCoverage": about.population,
        # a declared number of people, not a count
        "healthdcatap:numberOfUniqueIndividuals": people and _number(people),
        "dct:spatial": about.region and {"@type": "dct:Location", "rdfs:label": about.region},
    }
    return {**found, **{name: value for name, value in given.items() if value}}


def _contact(about: About) -> str:
    return "vcard:hasEmail" if about.contact.startswith("mailto:") else "vcard:hasURL"


def _number(value: int) -> dict[str, str]:
    return {"@type": "xsd:nonNegativeInteger", "@value": str(value)}
