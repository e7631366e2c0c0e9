"""Studies and rows that several suites use."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from syndic import Study
from syndic.kernel import Method, Node, Result
from syndic.privacy import Entry, Ledger
from syndic.study import PartyFolder
from syndic.study.simulate import _party_file

COLUMNS = """
[[schema.columns]]
name = "colour"
kind = "categorical"
values = ["red", "green", "blue"]
missing = { value = "red" }

[[schema.columns]]
name = "age"
kind = "integer"
lower = 0
upper = 99
bins = 5
missing = { value = 0 }

[[schema.columns]]
name = "score"
kind = "real"
lower = -1.0
upper = 1.0
bins = 4
"""

PARTIES = """
[[parties]]
name = "north"
people = 60

[[parties]]
name = "south"
people = 40
"""


def study_text(
    *,
    unit: str = 'neighbours = "add_remove"',
    budget: str = "epsilon = 1.0",
    protocol: str = 'method = "homm"',
    parties: str = PARTIES,
    columns: str = COLUMNS,
    top: str = "",
) -> str:
    """Return a study file, one part of it replaced."""
    return f"""
name = "test"
{top}
[unit]
{unit}
[budget]
{budget}
[protocol]
{protocol}
{parties}
{columns}
"""


def rows(count: int, seed: int = 0) -> pa.Table:
    """Return rows that fit `COLUMNS`."""
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "colour": generator.choice(["red", "green", "blue"], count),
            "age": generator.integers(0, 100, count),
            "score": generator.uniform(-1, 1, count),
        }
    )


@dataclass(frozen=True)
class Case:
    """One variant of a protocol with rows for every party, for suites that every protocol passes."""

    name: str
    study: Study
    sources: Mapping[str, Any]


def two_parties() -> dict[str, Any]:
    """Return rows for the parties of `PARTIES`."""
    return {"north": rows(60, 1), "south": rows(40, 2)}


def _case(name: str, **parts: str) -> Case:
    return Case(name, Study.loads(study_text(**parts)), two_parties())


HUGE = "".join(
    f'[[schema.columns]]\nname = "c{number}"\nkind = "integer"\nlower = 0\nupper = 99\nmissing = {{ value = 0 }}\n'
    for number in range(6)
)


def _huge_rows(count: int, seed: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    return pa.table({f"c{number}": generator.integers(0, 3, count) for number in range(6)})


VERTICAL = """
[[parties]]
name = "north"
people = 60
columns = ["colour", "age"]

[[parties]]
name = "south"
people = 60
columns = ["score"]
"""


GROUPS = "".join(
    f'[[parties]]\nname = "{name}"\npeople = {people}\ngroup = "{group}"\ncolumns = {columns}\n'
    for name, people, group, columns in (
        ("north", 60, "first", '["colour", "age"]'),
        ("south", 60, "first", '["score"]'),
        ("east", 40, "second", '["colour"]'),
        ("west", 40, "second", '["age", "score"]'),
    )
)


FIVE_SERVED = "".join(
    f'[[parties]]\nname = "{name}"\npeople = {people}\ngroup = "{group}"\ncolumns = {columns}\n'
    for name, people, group, columns in (
        ("north", 60, "first", '["colour"]'),
        ("south", 60, "first", '["score"]'),
        ("east", 60, "first", '["age"]'),
        ("west", 40, "second", '["colour", "age"]'),
        ("centre", 40, "second", '["score"]'),
    )
)
FOUR_SERVERS = 'servers = ["west", "east", "north", "centre"]'


THREE_VERTICAL = (
    VERTICAL.replace('"colour", "age"', '"colour"') + '[[parties]]\nname = "east"\npeople = 60\ncolumns = ["age"]\n'
)
BOTH_LABELLED = VERTICAL.replace('columns = ["score"]', 'columns = ["score", "colour"]')
MISSING_LEVELS = re.sub(r"missing = .*\n", "", COLUMNS)
ONE = "epsilon = 1.0\ndelta = 1e-5"


def across_study(
    method: str,
    options: str = "",
    *,
    unit: str = 'neighbours = "replace"',
    parties: str = VERTICAL,
    columns: str = COLUMNS,
    budget: str = "epsilon = 10\ndelta = 1e-5",
    top: str = "",
) -> Study:
    """Return a study of any method whose columns are at different parties."""
    protocol = f'method = "{method}"\n{options}'
    text = study_text(unit=unit, budget=budget, parties=parties, columns=columns, protocol=protocol, top=top)
    return Study.loads(text)


vertical_study = partial(across_study, "marginals", budget=ONE)
gram_study = partial(across_study, "gram", budget=ONE)
synthesis_across = partial(across_study, "synthesis", budget=ONE)
align_study = partial(across_study, "align", budget=ONE)


def mixing_study(options: str = "", *, parties: str = VERTICAL, columns: str = COLUMNS, budget: str = ONE) -> Study:
    """Return a study of noisy columns, in which a person is at every party."""
    unit = f'neighbours = "replace"\nparties = {parties.count("[[parties]]")}'
    return across_study("mixing", options, unit=unit, parties=parties, columns=columns, budget=budget)


def vertimrf_study(options: str = "", *, neighbours: str = "replace", **parts: str) -> Study:
    """Return a study of VertiMRF; sketches are few, and said, so that no plan is searched."""
    oracle = 'way = "oracle"' in options
    if not (oracle or "as_published" in options or "phantoms" in options):
        options += "\nphantoms = 40\ncap = 10"
    if not (oracle or "repetitions" in options):
        options += "\nrepetitions = 50"
    return across_study("vertimrf", options, unit=f'neighbours = "{neighbours}"', **parts)


def _across(name: str, study: Study) -> Case:
    table = rows(60, 3)
    return Case(name, study, {party.name: table.select(list(party.columns or ())) for party in study.parties})


def _groups(
    name: str, protocol: str, *, unit: str = 'neighbours = "replace"', parties: str = GROUPS, budget: str = ONE
) -> Case:
    study = Study.loads(study_text(protocol=protocol, unit=unit, budget=budget, parties=parties))
    people = {"first": rows(60, 3), "second": rows(40, 4)}
    return Case(
        name, study, {one.name: people[one.group or ""].select(list(one.columns or ())) for one in study.parties}
    )


def _columns_apart(method: str, addition: str = "", options: str = "", *, parties: str = VERTICAL) -> Case:
    # noise is small enough here for tables across parties to be asked
    return _across(f"{method}{addition}", across_study(method, options, parties=parties))


def with_ids(count: int, seed: int, *, among: int = 60) -> pa.Table:
    """Return rows of some of `among` people, each with an id, in an order of their own."""
    ids = np.random.default_rng([seed, 5]).permutation(among)[:count]
    return rows(count, seed).append_column("id", pa.array([f"Id {each:04d}" for each in ids]))


_SETS = 'sets = [{ name = "one", parties = ["north", "east"] }, { name = "two", parties = ["south", "east"] }]'


def _aligning(name: str, study: Study) -> Case:
    return Case(
        name,
        study,
        {
            party.name: with_ids(50, place).select([*(party.columns or ()), "id"])
            for place, party in enumerate(study.parties)
        },
    )


# found, not imported: that takes seconds in every worker
HAS_TORCH = find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed: pip install 'syndic[gan]'")

# tiny networks; without torch there is nothing to run
_GAN = "rounds = 2\ncritic_steps = 2\nbatch = 8\ntrunk = [4, 5]\nbranch = [6, 3]\ncritic = 4\nnoise = 3\n"
GAN_CASES = (_columns_apart("vertigan", options=_GAN),) if HAS_TORCH else ()


CASES = (
    _case("homm laplace"),
    _case("homm gaussian", budget="epsilon = 1.0\ndelta = 1e-5", protocol='method = "homm"\nnoise = "gaussian"'),
    _case("homm replace", unit='neighbours = "replace"'),
    _case("homm overlap", unit='neighbours = "add_remove"\nparties = 2\nrows = 2'),
    _case("homm unclamped", protocol='method = "homm"\nclamp = false'),
    _case(
        "homm own columns",
        protocol='method = "homm"\nabsent = "matched"\nbins = [{ party = "north", column = "age", bins = 2 }]',
        parties=PARTIES + 'columns = ["age", "score"]\n',
    ),
    _case("homm as published", protocol='method = "homm"\nas_published = true'),
    _case(
        "average",
        unit='neighbours = "replace"',
        budget="epsilon = 1.0\ndelta = 1e-5",
        protocol='method = "average"\nservers = ["north", "south"]\ncolumns = ["age"]\nbits=5',
    ),
    Case(
        "homm sparse",
        Study.loads(study_text(columns=HUGE, protocol='method = "homm"\nat_least = 25')),
        {"north": _huge_rows(60, 1), "south": _huge_rows(40, 2)},
    ),
    _case("marginals gaussian", budget="epsilon = 1.0\ndelta = 1e-5", protocol='method = "marginals"'),
    _case(
        "marginals overlap",
        unit='neighbours = "replace"\nparties = 2',
        budget="epsilon = 1.0\ndelta = 1e-5",
        protocol='method = "marginals"\ncliques = [["colour", "age"], ["score"]]',
    ),
    _case("marginals laplace", protocol='method = "marginals"\nnoise = "laplace"'),
    _case(
        "marginals skellam",
        budget="epsilon = 1.0\ndelta = 1e-5",
        protocol='method = "marginals"\nnoise = "skellam"\ncell_cap = 5',
    ),
    _groups("marginals groups", 'method = "marginals"', unit='neighbours = "replace"\nparties = 2'),
    _case(
        "survival",
        budget="epsilon = 1.0\ndelta = 1e-5",
        protocol='method = "survival"\ntime = "age"\nevent = "colour"\ncensored = "red"\nby = ["score"]',
    ),
    _case(
        "describe",
        unit='neighbours = "replace"\nparties = 2',
        budget="epsilon = 1.0\ndelta = 1e-5",
        protocol='method = "describe"\ngroup = "colour"\nstratum = "party"\n'
        'regressions = [{ kind = "linear", outcome = "age", on = ["colour"] }]',
    ),
    _groups(
        "describe groups",
        'method = "describe"\ngroup = "colour"\ncolumns = ["age", "score"]\nstratum = "party"',
        unit='neighbours = "replace"\nparties = 2',
    ),
    _groups("synthesis groups", 'method = "synthesis"\nmodel_cells = 60\nrows = 30'),
    Case(
        "synthesis weighted",
        Study.loads(
            study_text(
                unit='neighbours = "add_remove"\nperson = "id"\nrows = 3\nchoose = "weighted"',
                budget="epsilon = 1.0\ndelta = 1e-5",
                protocol='method = "synthesis"',
            )
        ),
        {
            name: table.append_column("id", pa.array(np.arange(len(table)) // 2))
            for name, table in two_parties().items()
        },
    ),
    _case("estimate least sizes", protocol='method = "estimate"\ncolumn = "age"\nfamily = { kind = "poisson" }'),
    *(
        _case(
            f"estimate {name}", unit='neighbours = "replace"', budget=budget, protocol=f'method = "estimate"\n{options}'
        )
        for name, budget, options in (
            ("dssa", "epsilon = 1.0", 'column = "age"\nfamily = { kind = "poisson" }'),
            (
                "dsaa",
                "epsilon = 1.0",
                'column = "age"\nfamily = { kind = "normal" }\nscheme = "dsaa"\ncorrection = "jackknife"',
            ),
            (
                "gaussian",
                "epsilon = 1.0\ndelta = 1e-5",
                'column = "colour"\nfamily = { kind = "multinomial" }\nnoise = "gaussian"',
            ),
            ("masked", "epsilon = 1.0", 'column = "age"\nfamily = { kind = "normal" }\nscheme = "masked"'),
            (
                "masked groups",
                "epsilon = 1.0",
                'column = "age"\nfamily = { kind = "poisson" }\nscheme = "masked"\n'
                'groups = [{ name = "up", parties = ["north"] }]',
            ),
            ("as published", "epsilon = 1.0", 'column = "age"\nfamily = { kind = "poisson" }\nas_published = true'),
            (
                "blocks as published",
                "epsilon = 1.0",
                'column = "age"\nfamily = { kind = "geometric" }\nscheme = "dsaa"\nas_published = true',
            ),
        )
    ),
    _case(
        "synthesis adaptive",
        budget="epsilon = 1.0\ndelta = 1e-5",
        protocol='method = "synthesis"\nselector = "adaptive"\nrounds = 2\nmodel_cells = 60',
    ),
    _case(
        "synthesis overlap",
        unit='neighbours = "replace"\nparties = 2',
        budget="epsilon = 1.0\ndelta = 1e-5",
        protocol='method = "synthesis"\nselector = "one_shot"\nrows = 50',
    ),
    *(
        _case(
            f"learn {name}",
            unit=f'neighbours = "{unit}"',
            budget="epsilon = 1.0\ndelta = 1e-5",
            protocol=f'method = "learn"\n{options}',
        )
        for name, unit, options in (
            ("posterior", "add_remove", 'label = "colour"\nloss = "softmax"\niterations = 2\npath = true'),
            ("mpc_grad", "replace", 'label = "colour"\nscheme = "mpc_grad"\niterations = 3\npath = true'),
            ("mpc_out", "add_remove", 'label = "score"\nloss = "huber"\nscheme = "mpc_out"'),
            ("newton", "add_remove", 'label = "colour"\nloss = "softmax"\nscheme = "newton"\niterations = 4'),
            ("local_grad", "add_remove", 'label = "score"\nloss = "ridge"\nscheme = "local_grad"\niterations = 2'),
            ("local_out", "replace", 'label = "colour"\npositive = "red"\nscheme = "local_out"\nnoise = "laplace"'),
            ("pathak", "replace", 'label = "colour"\nscheme = "pathak"\nloss = "hinge"'),
        )
    ),
    _across("marginals across", vertical_study()),
    _across(
        "marginals averaged",
        vertical_study(parties=BOTH_LABELLED, top='read_from = { colour = ["north", "south"] }'),
    ),
    _across(
        "survival across",
        across_study("survival", 'time = "age"\nevent = "colour"\ncensored = "red"\nby = ["score"]', budget=ONE),
    ),
    _groups("estimate groups", 'method = "estimate"\ncolumn = "age"\nfamily = { kind = "poisson" }'),
    _across("describe across", across_study("describe", 'group = "colour"\ncolumns = ["score"]', budget=ONE)),
    _across(
        "estimate across masked",
        across_study(
            "estimate", 'column = "age"\nfamily = { kind = "poisson" }\nscheme = "masked"', budget="epsilon = 1.0"
        ),
    ),
    _across("marginals passive", vertical_study('adversary = "passive"\ncliques = [["score", "age"]]')),
    _case(
        "gram of rows",
        unit='neighbours = "replace"',
        budget="epsilon = 1.0\ndelta = 1e-5",
        protocol='method = "gram"\nproducts = [["age", "score"]]\nnorm = 0.5',
    ),
    _across("gram", gram_study('products = [["colour", "age"]]')),
    _across("gram of three", gram_study("colluding = 2\nbits = 6", parties=THREE_VERTICAL)),
    _across("gram overlap", gram_study("overlap = true", columns=MISSING_LEVELS)),
    _groups("gram groups", 'method = "gram"\ntarget = "age"'),
    _across("mixing", mixing_study()),
    _across("mixing dgm of three", mixing_study('scheme = "dgm"\nbounds = "unit"', parties=THREE_VERTICAL)),
    _across("mixing bgm missing", mixing_study('scheme = "bgm"\nbits = 6', columns=MISSING_LEVELS)),
    _across("mixing as published", mixing_study("as_published = true", parties=THREE_VERTICAL)),
    _across("vertimrf sketch", vertimrf_study()),
    _across("vertimrf oracle", vertimrf_study('way = "oracle"\nvalues = "noisy"', parties=THREE_VERTICAL)),
    _across("vertimrf as published", vertimrf_study("as_published = true", neighbours="add_remove")),
    _aligning("align", align_study()),
    _aligning("align of three", align_study('spelling = ["digits"]\nduplicates = "first"', parties=THREE_VERTICAL)),
    _aligning("align of sets", align_study(_SETS, parties=THREE_VERTICAL)),
    _columns_apart("synthesis", " across", "model_cells = 60"),
    _groups(
        "synthesis four servers",
        f'method = "synthesis"\nmodel_cells = 100\nkeep = [["age", "colour", "score"]]\n{FOUR_SERVERS}',
        parties=FIVE_SERVED,
        budget="epsilon = 10\ndelta = 1e-5",
    ),
    _columns_apart(
        "synthesis", " across three", 'selector = "adaptive"\ncolluding = 0\nrows = 40', parties=THREE_VERTICAL
    ),
    _columns_apart("glued"),
    _columns_apart("glued", " of three", 'selector = "adaptive"\nrows = 40', parties=THREE_VERTICAL),
    _columns_apart("dplt"),
    _columns_apart("dplt", " of three", "levels = 2\ncolluding = 0\nrows = 40", parties=THREE_VERTICAL),
    _columns_apart("distdiffgen", options='label = "colour"\nspecialisations = 3', parties=BOTH_LABELLED),
    *GAN_CASES,
)


def ledger_entries(folder: Path, party: str) -> list[Entry]:
    """Return the entries of a party's ledger under a simulation's folder; none if there is no ledger yet."""
    path = folder / "parties" / party / "ledger.sqlite"
    if not path.exists():
        return []
    with Ledger.open(path) as ledger:
        ledger.verify()
        return list(ledger.entries())


def charges(folder: Path, party: str) -> list[Entry]:
    """Return what was charged to a party."""
    return [entry for entry in ledger_entries(folder, party) if entry.kind == "reserve"]


def open_nodes(case: Case, folder: Path, *, seed: int | None = 7) -> dict[str, Node]:
    """Open the case's nodes on party folders as a simulation prepares them; nothing has run."""
    nodes = {}
    for name, source in case.sources.items():
        home = PartyFolder(folder=folder / "parties" / name)
        home.keep(case.study, _party_file(case.study, name, source, home)[0])
        nodes[name] = home.node(seed=seed, source=source)
    return nodes


def read_back(study: Study, folder: Path) -> Result:
    """Read a result that was written into a folder, by the study's own method."""
    method: Method = study.protocol
    return method.read(study.plan, folder)
