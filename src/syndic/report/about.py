"""What a catalogue asks about a release beyond its statement: who publishes it, where, for what."""

import re
from pathlib import Path
from typing import Literal, Self, final

from syndic.document import Document, from_file
from syndic.errors import RefusedError
from syndic.methods import Align
from syndic.study import Study
from syndic.study.statement import Statement

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
