"""The studies that liars attack: every method, small enough for thousands of runs, with two neighbouring tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, Final, final

import pyarrow as pa

from support import COLUMNS, across_study, rows, study_text, vertimrf_study
from syndic import Study
from syndic.data import Table, open_source
from syndic.kernel import schema_of
from syndic.privacy import Cost

PEOPLE: Final = 12
COUNT: Final = 4
DELTA: Final = "epsilon = 4\ndelta = 1e-5"
LIMITS: Final = "[limits]\nmemory_mb = {}\nmessage_mb = 1\n"
HORIZONTAL: Final = "".join(f'[[parties]]\nname = "p{place}"\npeople = {PEOPLE}\n' for place in range(COUNT))
VERTICAL: Final = "".join(
    f'[[parties]]\nname = "p{place}"\npeople = {PEOPLE}\ncolumns = {held}\n'
    for place, held in enumerate(('["colour", "age"]', '["score"]'))
)
THREE: Final = (
    VERTICAL.replace('["colour", "age"]', '["colour"]')
    + f'[[parties]]\nname = "p2"\npeople = {PEOPLE}\ncolumns = ["age"]\n'
)
FOUR: Final = THREE + f'[[parties]]\nname = "p3"\npeople = {PEOPLE}\ncolumns = ["colour"]\n'
GROUPED: Final = "".join(
    f'[[parties]]\nname = "p{place}"\npeople = {PEOPLE}\ngroup = "g{place // 2}"\ncolumns = {held}\n'
    for place, held in enumerate(2 * ('["colour", "age"]', '["score"]'))
)
LABELLED: Final = VERTICAL.replace('["score"]', '["score", "colour"]')
EXTREMES: Final = (("red", 0, -1.0), ("blue", 99, 1.0))
"""The record of the person who is attacked, in the two neighbouring tables."""

Tables = Mapping[str, Any]


@final
@dataclass(frozen=True, kw_only=True)
class Target:
    """A study and the rows of its parties but for one person, who is at the parties `victims`.

    `liars` are the parties that may lie; in a horizontal study the last party also colludes with a coordinator that
    lies. `claimed`: the roles, of those in `docs/explanation/adversaries.md`, that may do anything.
    """

    name: str
    study: Study
    victims: tuple[str, ...]
    liars: tuple[str, ...]
    claimed: frozenset[str] = frozenset({"coordinator", "party"})

    @property
    def horizontal(self) -> bool:
        """Whether no party's rows travel to another, so that one world's calls make sense in another."""
        return self.study.partition == "horizontal"

    @property
    def roles(self) -> tuple[str, ...]:
        """Who may lie: where there is a single party, the coordinator only."""
        return ("coordinator", "party") if self.liars else ("coordinator",)

    @property
    def colluding(self) -> tuple[str, ...]:
        """The parties that show a lying coordinator all they know."""
        return self.liars[:1] if self.horizontal else ()

    @property
    def cost(self) -> Cost:
        """What is charged for the person: at each party for the whole, or for what each releases by itself."""
        costs = self.study.plan.costs
        found = costs[self.victims[0]]
        for name in self.victims[1:] if self.study.unit.parties > 1 else ():
            found = found + costs[name]
        return found

    @cache  # noqa: B019  # few targets, as long as the process
    def tables(self, other: bool, liar: str) -> Tables:
        """Return the rows of all parties, with one or the other record of the person; a liar's own do not change."""
        found: dict[str, Any] = {}
        for place, party in enumerate(self.study.parties):
            table = rows(PEOPLE, place if self.horizontal else 3)
            if party.name in self.victims and party.name != liar:
                table = _with(table, EXTREMES[other])
            chosen = table.select(list(party.columns)) if party.columns else table
            found[party.name] = open_source(chosen)
            if self.name.startswith("align"):
                ids = pa.array([f"Id {each + 2 * place:02d}" for each in range(PEOPLE)])
                found[party.name] = Table(
                    schema=schema_of(self.study, party.name),
                    source=open_source(chosen.append_column("id", ids)),
                    id_columns=("id",),
                )
        return found

    def __hash__(self) -> int:
        """Targets differ in their names."""
        return hash(self.name)


def _with(table: pa.Table, record: tuple[Any, ...]) -> pa.Table:
    columns = {
        name: pa.array([value, *table[name].to_pylist()[1:]])
        for name, value in zip(table.schema.names, record, strict=True)
    }
    return pa.table(columns)


def _horizontal(name: str, protocol: str, *, liars: tuple[str, ...] = ("p3",), unit: str = "replace") -> Target:
    # little for a histogram, so that a lie about its size is small too
    parties = LIMITS.format(150 if name == "homm" else 400) + HORIZONTAL
    text = study_text(protocol=protocol, budget=DELTA, unit=f'neighbours = "{unit}"', parties=parties, columns=COLUMNS)
    return Target(name=name, study=Study.loads(text), victims=("p2",), liars=liars)


def _alone(name: str, protocol: str) -> Target:
    parties = LIMITS.format(400) + HORIZONTAL.partition('[[parties]]\nname = "p1"')[0]
    unit = 'neighbours = "replace"'
    study = Study.loads(study_text(protocol=protocol, budget=DELTA, unit=unit, parties=parties, columns=COLUMNS))
    return Target(name=name, study=study, victims=("p0",), liars=())


def _vertical(
    name: str, options: str = "", *, parties: str = VERTICAL, claimed: str = "coordinator party", **more: str
) -> Target:
    # noise is small enough for tables across parties to be asked
    study = across_study(name.partition(",")[0], options, parties=parties, budget="epsilon = 6\ndelta = 1e-5", **more)
    return Target(name=name, study=study, victims=("p0", "p1"), liars=("p0", "p1"), claimed=frozenset(claimed.split()))


def _vertimrf(name: str, options: str = "") -> Target:
    study = vertimrf_study(options, parties=VERTICAL)
    return Target(name=name, study=study, victims=("p0", "p1"), liars=("p0", "p1"), claimed=frozenset())


_LEARN: Final = 'method = "learn"\nlabel = "colour"\niterations = 2\n'
_AGE: Final = 'method = "estimate"\ncolumn = "age"\nfamily = { kind = "normal" }\n'
_ADAPTIVE: Final = 'method = "synthesis"\nselector = "adaptive"\nrounds = 2\nmodel_cells = 60\n'
_TABLES: Final = 'method = "marginals"\ncliques = [["colour"], ["age"]]\n'
_GAN: Final = "rounds = 2\ncritic_steps = 2\nbatch = 8\ntrunk = [4, 5]\nbranch = [6, 3]\ncritic = 4\nnoise = 3\n"


LEFT_OUT: Final = frozenset(() if find_spec("torch") else ("vertigan",))
"""Methods that cannot run here."""


@cache
def targets() -> Mapping[str, Target]:
    """Return all targets by name; a name begins with its method's."""
    found = [
        _horizontal("marginals", _TABLES),
        _horizontal("marginals, one missing", _TABLES + "missing = 1"),
        _horizontal(
            "survival", 'method = "survival"\ntime = "age"\nevent = "colour"\ncensored = "red"\nby = ["score"]'
        ),
        _horizontal("describe", 'method = "describe"\ngroup = "colour"\nstratum = "party"'),
        _horizontal("gram, rows", 'method = "gram"'),
        _horizontal("gram, rows by bounds", 'method = "gram"\nscaling = 0.0'),
        _horizontal("gram, one missing", 'method = "gram"\nmissing = 1'),
        _horizontal("learn, local_grad", _LEARN + 'scheme = "local_grad"'),
        _horizontal("learn, posterior", _LEARN),
        _horizontal("learn, mpc_grad", _LEARN + 'scheme = "mpc_grad"'),
        _horizontal("learn, newton", _LEARN + 'scheme = "newton"'),
        _horizontal("learn, mpc_out", _LEARN.replace("iterations = 2\n", "") + 'scheme = "mpc_out"'),
        _horizontal("learn, posterior, one missing", _LEARN + "missing = 1"),
        _horizontal("learn, mpc_grad, one missing", _LEARN + 'scheme = "mpc_grad"\nmissing = 1'),
        _horizontal("estimate, dssa", _AGE),
        _horizontal("estimate, masked", _AGE + 'scheme = "masked"\nmissing = 1'),
        _alone("synthesis, one party", _ADAPTIVE),
        _horizontal("synthesis", _ADAPTIVE),
        _horizontal("synthesis, one missing", _ADAPTIVE + "missing = 1"),
        _horizontal("homm", 'method = "homm"\nclamp = false'),
        _horizontal(
            "average",
            'method = "average"\nservers = ["p0", "p1"]\ncolumns = ["age"]\nbits = 5',
            liars=("p3", "p0", "p1"),
        ),
        _vertical("marginals, three servers", 'servers = ["p0", "p1", "p2"]', parties=THREE),
        _vertical("marginals, across"),
        _vertical("marginals, averaged", parties=LABELLED, top='read_from = { colour = ["p0", "p1"] }'),
        _vertical("marginals, groups", 'cliques = [["colour", "score"], ["age"]]', parties=GROUPED),
        _vertical("synthesis, groups", 'model_cells = 60\nkeep = [["colour", "score"]]', parties=GROUPED),
        _vertical("describe, across", 'group = "colour"\ncolumns = ["score"]'),
        _vertical("estimate, across", 'column = "age"\nfamily = { kind = "poisson" }'),
        _vertical("survival, across", 'time = "age"\nevent = "colour"\ncensored = "red"\nby = ["score"]'),
        _vertical(
            "synthesis, four servers",
            'model_cells = 100\nservers = ["p0", "p1", "p2", "p3"]\nkeep = [["colour", "score", "age"]]',
            parties=FOUR,
        ),
        _vertical("synthesis, across", 'model_cells = 60\nkeep = [["colour", "score"]]'),
        _vertical("gram, by bounds", "scaling = 0.0"),
        _vertical("gram, groups", parties=GROUPED),
        _vertical("gram"),
        _vertical("glued"),
        _vertical("mixing, dgm", 'scheme = "dgm"', unit='neighbours = "replace"\nparties = 2'),
        _vertical("mixing", unit='neighbours = "replace"\nparties = 2'),
        _vertical("dplt", claimed=""),
        _vertical("distdiffgen", 'label = "colour"\nspecialisations = 3', parties=LABELLED, claimed=""),
        _vertical("align, two parties", claimed=""),
        _vertical("align", parties=THREE, claimed=""),
        _vertimrf("vertimrf, oracle", 'way = "oracle"\nvalues = "noisy"'),
        _vertimrf("vertimrf"),
        *([] if "vertigan" in LEFT_OUT else [_vertical("vertigan", _GAN)]),
    ]
    return {each.name: each for each in found}
