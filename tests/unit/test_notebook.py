"""`examples/notebook.ipynb` is `docs/tutorials/notebook.md` in cells, without outputs; `test_docs` runs the page."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "notebook.md"
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


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
