"""Pages are true: each method has one with every topic, and what pages point to exists."""

import re
from pathlib import Path

import pytest

from pages import BLOCKS, METHODS, ROOT, page_of, pages, parts_of
from syndic.cli.main import cli
from syndic_lab.bench import BENCHES
from verbs import verbs_of

PAGES = pages()
# what a reader of any method must find: the same headings in the same order, and these points under "Privacy"
HEADINGS = [
    "Study",
    "Parameters",
    "Steps",
    "Who sees what",
    "Privacy",
    "Cost",
    "Accuracy",
    "Limits",
    "Messages",
]
POINTS = ["Unit", "Adversary", "Sensitivity", "Not protected"]
GENERATED = ["paper", "roles", "limits", "cost", "messages"]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_page_with_every_topic(method: str) -> None:
    text = page_of(method).read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    assert "```toml" in text.split("## Study")[1].split("## Parameters")[0]
    privacy = text.split("## Privacy")[1].split("## Cost")[0]
    for point in POINTS:
        assert re.search(rf"^(- )?\*\*{point}", privacy, re.MULTILINE), (
            f"{page_of(method).name}: Privacy does not have {point}"
        )
    for section in text.split("\n## ")[1:]:
        assert section.partition("\n")[2].strip(), f"{page_of(method).name}: nothing under {section.splitlines()[0]}"


@pytest.mark.parametrize("method", [method for method in METHODS if page_of(method).stem == method])
def test_a_page_takes_from_the_code_what_the_code_knows(method: str) -> None:
    kinds = {kind for kind, what in parts_of(page_of(method).read_text()) if what == method}
    # a method that leaves open only what every method does has a sentence instead
    assert kinds == {kind for kind in GENERATED if kind != "limits" or list(BLOCKS["limits"](method))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_commands_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    for path in re.findall(r"(?<![\w/.(-])((?:tests|examples|docs|src/syndic|lab)/[\w/.*-]+\w)", text):
        assert list(ROOT.glob(path)) or (ROOT / path).exists(), f"{page.name}: {path} does not exist"
    for path, name in re.findall(r"\b(tests/[\w/.-]+\.py)::(\w+)", text):
        assert f"def {name}(" in (ROOT / path).read_text(), f"{page.name}: {path} has no {name}"
    for name in re.findall(r"syndic bench ([a-z][a-z-]*)", text):
        assert name in BENCHES, f"{page.name}: there is no bench {name}"
    for verb in re.findall(r"`syndic ([a-z][a-z-]*)", text):
        assert verb in verbs_of(cli), f"{page.name}: there is no verb {verb}"


def test_pages_about_claims_name_a_test_or_command_in_every_row() -> None:
    for name in ("explanation/claims", "explanation/nist"):
        text = (ROOT / "docs" / f"{name}.md").read_text()
        rows = [
            line
            for line in text.splitlines()
            if line.startswith("| ") and not line.startswith(("| ---", "| claim", "| what"))
        ]
        assert len(rows) > 10, name
        for row in rows:
            assert re.search(r"tests/|`syndic |`make |\.md", row), f"{name}.md: nothing shows: {row}"
