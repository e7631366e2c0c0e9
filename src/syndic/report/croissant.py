"""A published table's metadata as Croissant 1.0 (JSON-LD), with what protects the people in it.

The format is that of MLCommons (Akhtar et al. 2024, "Croissant: A Metadata Format for ML-Ready Datasets"); notes on
people and privacy use its vocabulary for responsible use, RAI 1.0.
"""

import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from syndic.data import Schema
from syndic.errors import InputError
from syndic.privacy import shown
from syndic.report.about import About, refuse_unprotected
from syndic.study.release import Release
from syndic.study.statement import odds_for

_CONFORMS: Final = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]
_TABLE: Final = "synthetic.parquet"
_FILES: Final = {
    _TABLE: "application/x-parquet",
    "statement.json": "application/json",
    "study.json": "application/json",
}


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
