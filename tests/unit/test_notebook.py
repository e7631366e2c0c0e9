"""`examples/notebook.ipynb` is `docs/tutorials/notebook.md` in cells, without outputs, and its code runs."""

import contextlib
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import syndic

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "notebook.md"
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"
DEMO = Path(syndic.__file__).parent / "demo"


def cells_of(page: str) -> list[dict[str, Any]]:
    """Return prose and `python` blocks as cells; outputs and the table of parameters stay on the page."""
    text = page.partition("\n## Parameters")[0]
    cells: list[dict[str, Any]] = []
    for place, part in enumerate(re.split(r"^```python\n(.*?)^```\n", text, flags=re.MULTILINE | re.DOTALL)):
        kind = "code" if place % 2 else "markdown"
        source = part if kind == "code" else re.sub(r"^```text\n.*?^```\n", "", part, flags=re.MULTILINE | re.DOTALL)
        # pages link to each other, a notebook stands alone
        source = source if kind == "code" else re.sub(r"\[([^]]+)\]\([^)]+\.md[^)]*\)", r"\1", source)
        if not source.strip():
            continue
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell | {"source": source.strip().splitlines(keepends=True)})
    return cells


def notebook_of(page: str) -> str:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells_of(page),
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def test_notebook_is_the_page(request: pytest.FixtureRequest) -> None:
    wanted = notebook_of(PAGE.read_text())
    if request.config.getoption("--refresh-golden"):
        NOTEBOOK.write_text(wanted)
    assert NOTEBOOK.read_text() == wanted, "run pytest tests/unit/test_notebook.py --refresh-golden"


def test_code_cells_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in DEMO.glob("*.csv"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as output:
        for place, cell in enumerate(cells):
            assert cell["outputs"] == []
            exec(compile("".join(cell["source"]), f"cell {place}", "exec"), names)
    assert "error" in output.getvalue()
    # what the page says about the two models, from the models themselves
    real, made = (names["error"](names["fitted"](names["tables"][name])) for name in ("real, all clinics", "synthetic"))
    assert made < 1.1 * real
