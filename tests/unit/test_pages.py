"""What pages repeat of the code is fresh, and nothing of it is missing."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from pages import COMMON, METHODS, ROOT, generated, image_of, images, page_of, pages, parts_of
from syndic.cli.main import GROUPS, cli
from syndic.kernel.step import steps_of
from verbs import commands, leaves


@pytest.mark.parametrize("page", [page for page in pages() if parts_of(page.read_text())], ids=lambda page: page.stem)
def test_a_page_is_what_the_code_says(page: Path) -> None:
    text = page.read_text()
    assert text == generated(text), f"{page.relative_to(ROOT)} is stale: run `make pages` and review the difference"


@pytest.mark.parametrize("path", images(), ids=lambda path: path.stem)
def test_an_image_is_what_the_code_says(path: Path) -> None:
    text = images()[path]()
    assert path.read_text() == text, f"{path.relative_to(ROOT)} is stale: run `make pages` and look at it"
    root = ET.fromstring(text)
    title, description, *_ = [child.text for child in root]
    assert all((title, description)), "a screen reader has nothing to read"
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', ""), "it would fetch something"


@pytest.mark.parametrize("method", METHODS)
def test_a_page_shows_the_diagram_of_its_method(method: str) -> None:
    assert f"](images/{image_of(method).name})" in page_of(method).read_text()


@pytest.mark.parametrize("method", METHODS)
def test_a_method_has_its_paper_and_every_step_on_its_page(method: str) -> None:
    text = page_of(method).read_text()
    assert {("paper", method), ("roles", method)} <= set(parts_of(text))
    missing = [
        name
        for name in steps_of(METHODS[method])
        if name not in COMMON and f"`{name}`" not in text.split("## Who sees what")[1]
    ]
    assert missing == [], "in no run on the page: name a study with it in `pages.VARIANTS`"


def test_every_verb_has_its_help_and_an_example() -> None:
    titles = {verb: title for title in GROUPS for verb in commands(title)}
    texts = [page.read_text() for page in pages()]
    for verb in leaves(cli, "syndic"):
        parts = {("help", verb), ("commands", titles.get(verb, "Lab"))}
        (text,) = [text for text in texts if parts & set(parts_of(text))]
        assert f"\n$ {verb}" in text or verb == "syndic bench", f"{verb}: no example"


def test_a_stale_part_is_written_anew_and_the_rest_is_left() -> None:
    stale = "before\n\n<!-- generated: paper homm -->\nold words\n<!-- end -->\n\nafter\n"
    fresh = generated(stale)
    assert fresh.startswith("before\n\n<!-- generated: paper homm -->\n\nPaper: Su and Liu 2020")
    assert fresh.endswith("<!-- end -->\n\nafter\n")
    assert "old words" not in fresh
    assert generated(fresh) == fresh


def test_parameters_change_the_study_of_the_page() -> None:
    text = '<!-- generated: roles estimate scheme="masked" groups=[] -->\n<!-- end -->\n'
    assert "masked sums" in generated(text)
    assert "masked sums" not in generated(text.replace(' scheme="masked" groups=[]', ""))


def test_messages_of_a_changed_study_are_those_that_it_adds() -> None:
    text = generated("<!-- generated: roles estimate -->\n<!-- end -->\n")
    assert "- messages: `answer` (noisy)\n" in text
    assert '- messages with `scheme="masked" groups=[]`: `sum_keys`, `sum_meet` (public), `add` (masked)\n' in text


def test_an_unknown_part_is_an_error() -> None:
    with pytest.raises(KeyError):
        generated("<!-- generated: poems homm -->\n<!-- end -->\n")
