"""Studies and rows that several suites share."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from syndic import Study
from syndic.kernel import Node
from syndic.privacy import Entry, Ledger
from syndic.study import Home
from syndic.study.simulate import simulate

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


def vertical_study(options: str = "", *, parties: str = VERTICAL, budget: str = "epsilon = 1.0\ndelta = 1e-5") -> Study:
    """Return a study of two-way tables whose columns are at different parties."""
    return Study.loads(
        study_text(
            unit='neighbours = "replace"',
            budget=budget,
            parties=parties,
            protocol=f'method = "crosstables"\n{options}',
        )
    )


def _vertical(name: str, options: str = "") -> Case:
    table = rows(60, 3)
    sources = {"north": table.select(["colour", "age"]), "south": table.select(["score"])}
    return Case(name, vertical_study(options), sources)


def gram_study(
    options: str = "",
    *,
    parties: str = VERTICAL,
    columns: str = COLUMNS,
    budget: str = "epsilon = 1.0\ndelta = 1e-5",
) -> Study:
    """Return a study of a Gram matrix whose columns are at different parties."""
    return Study.loads(
        study_text(
            unit='neighbours = "replace"',
            budget=budget,
            parties=parties,
            columns=columns,
            protocol=f'method = "gram"\n{options}',
        )
    )


THREE_VERTICAL = (
    VERTICAL.replace('"colour", "age"', '"colour"') + '[[parties]]\nname = "east"\npeople = 60\ncolumns = ["age"]\n'
)
MISSING_LEVELS = re.sub(r"missing = .*\n", "", COLUMNS)


def _gram(name: str, options: str = "", *, parties: str = VERTICAL, columns: str = COLUMNS) -> Case:
    study, table = gram_study(options, parties=parties, columns=columns), rows(60, 3)
    return Case(name, study, {party.name: table.select(list(party.columns or ())) for party in study.parties})


def mixing_study(
    options: str = "",
    *,
    parties: str = VERTICAL,
    columns: str = COLUMNS,
    budget: str = "epsilon = 1.0\ndelta = 1e-5",
) -> Study:
    """Return a study of noisy columns at different parties."""
    return Study.loads(
        study_text(
            unit=f'neighbours = "replace"\nparties = {parties.count("[[parties]]")}',
            budget=budget,
            parties=parties,
            columns=columns,
            protocol=f'method = "mixing"\n{options}',
        )
    )


def _mixing(name: str, options: str = "", *, parties: str = VERTICAL, columns: str = COLUMNS) -> Case:
    study, table = mixing_study(options, parties=parties, columns=columns), rows(60, 3)
    return Case(name, study, {party.name: table.select(list(party.columns or ())) for party in study.parties})


def synthesis_across(
    options: str = "",
    *,
    parties: str = VERTICAL,
    columns: str = COLUMNS,
    budget: str = "epsilon = 1.0\ndelta = 1e-5",
) -> Study:
    """Return a study of a synthetic table whose columns are at different parties."""
    return Study.loads(
        study_text(
            unit='neighbours = "replace"',
            budget=budget,
            parties=parties,
            columns=columns,
            protocol=f'method = "vertical"\n{options}',
        )
    )


def _across(name: str, options: str = "", *, parties: str = VERTICAL) -> Case:
    # noise is small enough here for tables across parties to be asked
    study, table = synthesis_across(options, parties=parties, budget="epsilon = 10\ndelta = 1e-5"), rows(60, 3)
    return Case(name, study, {party.name: table.select(list(party.columns or ())) for party in study.parties})


BOTH_LABELLED = VERTICAL.replace('columns = ["score"]', 'columns = ["score", "colour"]')


def across_study(
    method: str,
    options: str = "",
    *,
    parties: str = VERTICAL,
    columns: str = COLUMNS,
    budget: str = "epsilon = 10\ndelta = 1e-5",
) -> Study:
    """Return a study of any method whose columns are at different parties."""
    return Study.loads(
        study_text(
            unit='neighbours = "replace"',
            budget=budget,
            parties=parties,
            columns=columns,
            protocol=f'method = "{method}"\n{options}',
        )
    )


def _columns_apart(name: str, method: str, options: str = "", *, parties: str = VERTICAL) -> Case:
    study, table = across_study(method, options, parties=parties), rows(60, 3)
    return Case(name, study, {party.name: table.select(list(party.columns or ())) for party in study.parties})


def align_study(options: str = "", *, parties: str = VERTICAL, columns: str = COLUMNS) -> Study:
    """Return a study that aligns the people of parties with different columns."""
    return across_study("align", options, parties=parties, columns=columns, budget="epsilon = 1.0\ndelta = 1e-5")


def with_ids(count: int, seed: int, *, among: int = 60) -> pa.Table:
    """Return rows of some of `among` people, each with an id, in an order of their own."""
    ids = np.random.default_rng([seed, 5]).permutation(among)[:count]
    return rows(count, seed).append_column("id", pa.array([f"Id {each:04d}" for each in ids]))


def _aligning(name: str, options: str = "", *, parties: str = VERTICAL) -> Case:
    study = align_study(options, parties=parties)
    return Case(
        name,
        study,
        {
            party.name: with_ids(50, place).select([*(party.columns or ()), "id"])
            for place, party in enumerate(study.parties)
        },
    )


def vertimrf_study(
    options: str = "",
    *,
    parties: str = VERTICAL,
    columns: str = COLUMNS,
    budget: str = "epsilon = 10\ndelta = 1e-5",
    neighbours: str = "replace",
) -> Study:
    """Return a study of VertiMRF; sketches are few, and said, so that no plan is searched."""
    sketches = 'way = "oracle"' in options or "as_printed" in options or "phantoms" in options
    return Study.loads(
        study_text(
            unit=f'neighbours = "{neighbours}"',
            budget=budget,
            parties=parties,
            columns=columns,
            protocol=f'method = "vertimrf"\n{options}\n'
            + ("" if sketches else "phantoms = 40\ncap = 10\n")
            + ("" if 'way = "oracle"' in options or "repetitions" in options else "repetitions = 50\n"),
        )
    )


def _vertimrf(name: str, options: str = "", *, parties: str = VERTICAL, neighbours: str = "replace") -> Case:
    study, table = vertimrf_study(options, parties=parties, neighbours=neighbours), rows(60, 3)
    return Case(name, study, {party.name: table.select(list(party.columns or ())) for party in study.parties})


# tiny networks; without torch there is nothing to run
_GAN = "rounds = 2\ncritic_steps = 2\nbatch = 8\ntrunk = [4, 5]\nbranch = [6, 3]\ncritic = 4\nnoise = 3\n"
GAN_CASES = () if find_spec("torch") is None else (_columns_apart("vertigan", "vertigan", _GAN),)


CASES = (
    _case("homm laplace"),
    _case("homm gaussian", budget="epsilon = 1.0\ndelta = 1e-5", protocol='method = "homm"\nnoise = "gaussian"'),
    _case("homm replace", unit='neighbours = "replace"'),
    _case("homm overlap", unit='neighbours = "add_remove"\nparties = 2\nrows = 2'),
    _case("homm unclamped", protocol='method = "homm"\nclamp = false'),
    _case("homm as printed", protocol='method = "homm"\nas_printed = true'),
    *(
        _case(
            f"average {noise}",
            unit='neighbours = "replace"',
            budget="epsilon = 1.0\ndelta = 1e-5",
            protocol=f'method = "average"\nservers = ["north", "south"]\ncolumns = ["age"]\nnoise = "{noise}"\nbits=5',
        )
        for noise in ("laplace", "gaussian")
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
            ("as printed", "epsilon = 1.0", 'column = "age"\nfamily = { kind = "poisson" }\nas_printed = true'),
            (
                "blocks as printed",
                "epsilon = 1.0",
                'column = "age"\nfamily = { kind = "geometric" }\nscheme = "dsaa"\nas_printed = true',
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
            f"risk {name}",
            unit=f'neighbours = "{unit}"',
            budget="epsilon = 1.0\ndelta = 1e-5",
            protocol=f'method = "risk"\n{options}',
        )
        for name, unit, options in (
            ("mpc_grad", "replace", 'label = "colour"\niterations = 3\npath = true'),
            ("mpc_out", "add_remove", 'label = "score"\nloss = "huber"\nscheme = "mpc_out"'),
            ("newton", "add_remove", 'label = "colour"\nloss = "softmax"\nscheme = "newton"\niterations = 4'),
            ("local_grad", "add_remove", 'label = "score"\nloss = "ridge"\nscheme = "local_grad"\niterations = 2'),
            ("local_out", "replace", 'label = "colour"\npositive = "red"\nscheme = "local_out"\nnoise = "laplace"'),
            ("pathak", "replace", 'label = "colour"\nscheme = "pathak"\nloss = "hinge"'),
            ("as printed", "replace", 'label = "colour"\nscheme = "mpc_out"\nas_printed = true'),
        )
    ),
    _vertical("crosstables"),
    _vertical("crosstables local", "local = true\nlift = false\ncolluding = 0"),
    _vertical("crosstables checked", 'check_rows = true\npairs = [["score", "age"]]'),
    _case(
        "pooled gram",
        unit='neighbours = "replace"',
        budget="epsilon = 1.0\ndelta = 1e-5",
        protocol='method = "pooled-gram"\nproducts = [["age", "score"]]\nnorm = 0.5',
    ),
    _gram("gram", 'products = [["colour", "age"]]'),
    _gram("gram of three", "colluding = 2\nbits = 6", parties=THREE_VERTICAL),
    _gram("gram overlap", "overlap = true\ncolluding = 0", columns=MISSING_LEVELS),
    _mixing("mixing"),
    _mixing("mixing dgm of three", 'scheme = "dgm"\nbounds = "unit"', parties=THREE_VERTICAL),
    _mixing("mixing bgm missing", 'scheme = "bgm"\nbits = 6', columns=MISSING_LEVELS),
    _mixing("mixing as printed", "as_printed = true", parties=THREE_VERTICAL),
    _vertimrf("vertimrf sketch"),
    _vertimrf("vertimrf oracle", 'way = "oracle"\nvalues = "noisy"', parties=THREE_VERTICAL),
    _vertimrf("vertimrf as printed", "as_printed = true", neighbours="add_remove"),
    _aligning("align"),
    _aligning("align of three", 'spelling = ["digits"]\nduplicates = "first"', parties=THREE_VERTICAL),
    _across("vertical", "model_cells = 60"),
    _across("vertical of three", 'selector = "adaptive"\ncolluding = 0\nrows = 40', parties=THREE_VERTICAL),
    _columns_apart("glued", "glued"),
    _columns_apart("glued of three", "glued", 'selector = "adaptive"\nrows = 40', parties=THREE_VERTICAL),
    _columns_apart("dplt", "dplt"),
    _columns_apart("dplt of three", "dplt", "levels = 2\ncolluding = 0\nrows = 40", parties=THREE_VERTICAL),
    _columns_apart("distdiffgen", "distdiffgen", 'label = "colour"\nspecialisations = 3', parties=BOTH_LABELLED),
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
    """Run the case once, so that its folders exist, and open its nodes on a second, unused set of folders."""
    simulate(case.study, case.sources, seed=seed, folder=folder / "first")
    nodes = {}
    for name, source in case.sources.items():
        home = Home(folder=folder / "second" / "parties" / name)
        home.folder.mkdir(parents=True)
        for file in ("study.json", "party.json"):
            (home.folder / file).write_bytes((folder / "first" / "parties" / name / file).read_bytes())
        nodes[name] = home.node(seed=seed, source=source)
    return nodes
