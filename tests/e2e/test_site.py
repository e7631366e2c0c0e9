"""Both sites as they are published: nothing is fetched from another host, and search works from the disk."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import CHROMIUM, Browser

pytest.importorskip("material", reason="needs pip install '.[docs]'")
ROOT = Path(__file__).parents[2]
SITES = {"product": ROOT / "mkdocs.yml", "lab": ROOT / "lab" / "mkdocs.yml"}
# what a browser fetches by itself when it opens a page; links that a reader clicks may lead elsewhere
FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?([^\"'\s>]+)|<link\b[^>]*\bhref=[\"']?([^\"'\s>]+)"
)
FETCHED_BY_STYLE = re.compile(r"url\([\"']?([^\"')]+)|@import\s+[\"']([^\"']+)")


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("site")
    for name, config in SITES.items():
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", str(config)]
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        subprocess.run([*command, "--site-dir", str(folder / name)], check=True, env=environment)
    return {name: folder / name for name in SITES}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("the browser is not installed: apt-get install chromium")
    window = Browser(tmp_path_factory.mktemp("profile"))
    yield window
    window.close()


def fetched(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    for found in pattern.finditer(text):
        yield next(group for group in found.groups() if group)


def elsewhere(address: str) -> bool:
    return re.match(r"(https?:)?//", address) is not None


@pytest.mark.parametrize("site", SITES)
def test_no_page_fetches_anything_from_another_host(site: str, sites: dict[str, Path]) -> None:
    pages = list(sites[site].rglob("*.html"))
    styles = list(sites[site].rglob("*.css"))
    assert len(pages) > 5
    assert styles
    found = [(file.name, one) for file in pages for one in fetched(file.read_text(), FETCHED)]
    found += [(file.name, one) for file in styles for one in fetched(file.read_text(), FETCHED_BY_STYLE)]
    assert any("iframe-worker.js" in address for _, address in found)
    assert [one for one in found if elsewhere(one[1])] == []


@pytest.mark.parametrize(
    "text",
    ['<script src="https://a.example/x"></script>', "<link rel=icon href=//a.example/x>", '<img src="http://a/b">'],
)
def test_an_address_elsewhere_is_found(text: str) -> None:
    assert [elsewhere(address) for address in fetched(text, FETCHED)] == [True]


@pytest.mark.parametrize(
    ("site", "query", "wanted"),
    [("product", "ports", "Security of a deployment"), ("lab", "planted", "Audit")],
)
def test_search_works_from_the_disk(
    site: str, query: str, wanted: str, sites: dict[str, Path], browser: Browser
) -> None:
    page = (sites[site] / "index.html").as_uri()
    browser.requested.clear()
    browser.width(1300)
    browser.open(page)
    browser.until(f"location.href === {page!r} && document.readyState === 'complete'")
    browser.run("document.querySelector('[data-md-toggle=search]').click()")
    browser.until("document.querySelector('.md-search-result__meta').textContent.includes('Type to start')")
    browser.type("[data-md-component=search-query]", query)
    browser.press("Shift", 16)  # the search listens for keys; inserted text alone presses none
    browser.until(f"document.querySelector('.md-search-result__list').textContent.includes({wanted!r})")
    assert [address for address in browser.requested if not address.startswith(("file:", "data:", "about:"))] == []
