"""Which module may import which, read off the syntax trees: see the table in docs/architecture.md."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import syndic

SOURCE = Path(syndic.__file__).parent
ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"

# from the bottom; a module imports from its own row or from rows below
ROWS = [
    {"errors", "random", "document", "document_errors", "version", "sqlite"},
    {"data"},
    {"privacy"},
    {"noise", "model"},
    {"kernel"},
    {"mpc"},
    {"methods", "runtime"},
    {"study", "federation", "report", "advice", "evaluation", "sklearn"},
    {"syndic"},  # the names of the package itself
    {"cli", "console", "__main__"},
]
STRANGERS = {("methods", "runtime"), ("runtime", "methods")}
DATA_ONLY = {"demo"}

# outside libraries, and the only places that may import them
# the two tops, above every layer: they load what is asked for by name
LATE = {"__init__.py", "cli/main.py"}
EDGES = {
    "nvflare": r"runtime/flare/\w+\.py",
    "grpc": r"runtime/flare/\w+\.py",
    "pandas": r"data/(sources/\w+|released)\.py",
    "polars": r"data/(sources/\w+|released)\.py",
    "duckdb": r"data/(sources/\w+|released)\.py",
    "ibis": r"data/sources/(ibis|pushdown\w*)\.py",
    "psycopg": r"data/sources/ibis\.py",
    "pyspark": r"data/sources/engine\.py",
    "adbc_driver_manager": r"data/sources/\w+\.py",
    "adbc_driver_postgresql": r"data/sources/\w+\.py",
    "dp_accounting": r"privacy/sampled\.py",
    "click": r"cli/\w+\.py",
    "rich": r"cli/\w+\.py",
    "starlette": r"console/(guard|web)\.py",
    "jinja2": r"console/web\.py",
    "uvicorn": r"console/serve\.py",
    "opendp": "",
    "sklearn": r"(evaluation|sklearn)/\w+\.py",
    "numba": r"model/markov/loops\.py",
    "torch": r"model/gan/networks\.py",
    "matplotlib": r"report/\w+\.py",
    "syndic_lab": "",
}


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of everything imported, wherever in the file it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
        elif isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in {"import_module", "__import__"}:
                yield node.lineno, f"({name})"


def row_of(name: str) -> int:
    return next((place for place, row in enumerate(ROWS) if name in row), -1)


def faults(path: str, code: str) -> list[str]:
    """Return what a file at `path` (below the package) imports and should not."""
    first = path.partition("/")[0].removesuffix(".py")
    home = "syndic" if path == "__init__.py" else first
    found = []
    if row_of(home) < 0:
        found.append(f"{path}: '{home}' stands in no row")
    for line, name in imports(ast.parse(code)):
        where = f"{path}:{line}: {name}"
        top, _, rest = name.partition(".")
        if top == "":
            found.append(f"{where}: write whole names, not relative ones")
        elif top.startswith("("):
            if path not in LATE:
                found.append(f"{where}: imports by name hide from this test")
        elif top in EDGES and not re.fullmatch(EDGES[top], path):
            found.append(f"{where}: only {EDGES[top]} may know it")
        elif top == "syndic":
            module = rest.partition(".")[0]
            target = module if row_of(module) >= 0 else "syndic"
            if row_of(target) > row_of(home) or (home, target) in STRANGERS:
                found.append(f"{where}: '{home}' may not import '{target}'")
    return found


@pytest.mark.parametrize(
    "file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)).replace("/", ".")
)
def test_imports_go_downwards_and_outside_libraries_stay_at_the_edge(file: Path) -> None:
    path = file.relative_to(SOURCE).as_posix()
    assert path.partition("/")[0] not in DATA_ONLY, "this folder holds data only"
    assert faults(path, file.read_text()) == []


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("data/schema.py", "from syndic.privacy import Unit"),
        ("data/schema.py", "import syndic.privacy.unit"),
        ("data/schema.py", "from syndic import kernel"),
        ("data/schema.py", "from syndic import Study"),
        ("data/schema.py", "def later():\n    from syndic.study import Study"),
        ("data/schema.py", "from ..privacy import Unit"),
        ("data/schema.py", "import importlib\nimportlib.import_module('syndic.privacy')"),
        ("errors.py", "from syndic.data import Schema"),
        ("methods/histogram/homm.py", "from syndic.runtime import Local"),
        ("runtime/local.py", "from syndic.methods import Homm"),
        ("noise/laplace.py", "from syndic.kernel import Party"),
        ("study/plan.py", "import click"),
        ("study/plan.py", "from syndic.cli import show"),
        ("data/table.py", "import pandas as pd"),
        ("data/table.py", "if TYPE_CHECKING:\n    import polars"),
        ("data/source.py", "import duckdb"),
        ("privacy/ledger.py", "from dp_accounting.pld import x"),
        ("runtime/process.py", "import nvflare.client"),
        ("__init__.py", "from syndic.cli import main"),
        ("helpers/text.py", ""),
    ],
)
def test_a_planted_fault_is_found(path: str, code: str) -> None:
    assert len(faults(path, code)) == 1


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("cli/show.py", "import rich\nfrom syndic import kernel, Study"),
        ("privacy/sampled.py", "def later():\n    import dp_accounting"),
        ("data/sources/duckdb.py", "import duckdb\nfrom syndic.data.source import quoted"),
        ("methods/histogram/homm.py", "from syndic.kernel import Party\nimport numpy"),
        ("__init__.py", "from syndic.study import Study"),
    ],
)
def test_what_is_allowed_is_not_a_fault(path: str, code: str) -> None:
    assert faults(path, code) == []


def test_the_documented_rows_are_these() -> None:
    section = ARCHITECTURE.read_text().partition("## Layers")[2].partition("\n## ")[0]
    table = re.findall(r"^\| (.+?) \| .* \|$", section, re.MULTILINE)
    rows = [set(re.findall(r"`(\w+)`", cell)) for cell in table]
    documented = [row for row in rows if row]
    packages = {
        file.name.removesuffix(".py")
        for file in SOURCE.iterdir()
        if file.suffix == ".py" or (file / "__init__.py").exists()
    }
    there = [row & (packages | {"syndic"}) for row in reversed(ROWS)]
    assert documented == [row for row in there if row]
