"""A registry and three hospitals: an alignment with a set for each hospital, and a study of all three groups."""

from typing import Any

import pyarrow as pa
from msgspec.structs import replace

from support import align_study, rows, study_text
from syndic import Study
from syndic.methods.align import Align, PartySet

HOSPITALS = ("north", "south", "east")
REPLACE = 'neighbours = "replace"'
BUDGET = "epsilon = 1.0\ndelta = 1e-6"
COMMON = 30


def ids(*numbers: int) -> pa.Array:
    return pa.array([f"Id {number:03d}" for number in numbers])


SOURCES: dict[str, Any] = {
    name: rows(COMMON, place)
    .select(["colour", "age"])
    .append_column("id", ids(*range(COMMON * place, COMMON * (place + 1))))
    for place, name in enumerate(HOSPITALS)
}
SOURCES["registry"] = rows(100, 5).select(["score"]).append_column("id", ids(*range(100)))


def aligning() -> Study:
    parties = "".join(
        f'[[parties]]\nname = "{name}"\npeople = 110\ncolumns = {columns}\n'
        for name, columns in [*((name, '["colour", "age"]') for name in HOSPITALS), ("registry", '["score"]')]
    )
    study = align_study(parties=parties)
    sets = tuple(PartySet(name=name, parties=(name, "registry")) for name in HOSPITALS)
    return replace(study, protocol=Align(sets=sets))


def joint(
    more: str = "",
    *,
    owner: str = 'owner = "registry"\n',
    unit: str = REPLACE,
    digest: str | None = None,
    method: str = "marginals",
) -> Study:
    aligned = aligning().digest if digest is None else digest
    text = ""
    for name in HOSPITALS:
        common = f'group = "{name}"\npeople = {COMMON}\n' + (f'alignment = "{aligned}"\n' if aligned else "")
        text += f'[[parties]]\nname = "{name}"\n{common}columns = ["colour", "age"]\n'
        text += f'[[parties]]\nname = "registry-{name}"\n{owner}{common}columns = ["score"]\n'
    protocol = f'method = "{method}"\n{more}'
    return Study.loads(study_text(protocol=protocol, unit=unit, budget=BUDGET, parties=text))
