"""The whole path in a real browser: a study arrives, is read and agreed to, three parties run, the release is read.

Pictures for the documentation are made here: `pytest tests/e2e/test_console_browser.py --refresh-golden`.
"""

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from browser import CHROMIUM, Browser
from consoles import Running, agree_all, study_between, study_file
from organisations import COORDINATOR, named, rehearse
from support import COLUMNS
from syndic.console.releases import archive
from syndic.federation.coordinator import Coordinator
from syndic.federation.party import prepare
from syndic.privacy import Ledger
from syndic.runtime import Processes
from syndic.study import PartyFolder, Study
from syndic.study.agreement import receive, studies
from syndic.study.run import run_study

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="the browser is not installed: apt-get install chromium"),
]
IMAGES = Path(__file__).parents[2] / "docs" / "images"
SCRIPT = "<script>document.title='taken'</script>"
MARKED = f"""
[[schema.columns]]
name = "plan"
kind = "categorical"
values = ["{SCRIPT}", "basic"]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, dict[str, PartyFolder]]:
    top = 'purpose = "how old are people, and how do they score?"'
    return study_between(tmp_path_factory.mktemp("browser"), columns=COLUMNS, top=top, name="age and score")


@pytest.fixture(scope="module")
def running(place: tuple[Study, dict[str, PartyFolder]]) -> Iterator[Running]:
    console = Running(place[1]["north"].folder)
    yield console
    console.close()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    made = Browser(tmp_path / "profile")
    made.width(1100)
    made.dark(on=False)
    yield made
    made.close()


@pytest.fixture
def shoot(request: pytest.FixtureRequest, tmp_path: Path, browser: Browser) -> "Shoot":
    """Take a picture, for the documentation if that was asked for."""
    folder = IMAGES if request.config.getoption("--refresh-golden") else tmp_path

    def take(name: str, height: int) -> None:
        browser.width(1100, height)
        picture = browser.picture(folder / f"console-{name}.png")
        assert picture.stat().st_size > 10_000

    return take


def sound(browser: Browser, place: str) -> None:
    """The page fits a phone, has names for all that can be reached, said nothing, and asked nobody else."""
    assert browser.nameless() == []
    browser.width(360, 800)
    visible, needed = browser.run("[document.documentElement.clientWidth, document.documentElement.scrollWidth]")
    assert needed <= visible, browser.run("location.href")
    browser.width(1100)
    assert browser.said == []
    assert {url for url in browser.requested if not url.startswith(place)} <= {"about:blank"}


def sign_in(browser: Browser, running: Running) -> None:
    browser.open(running.link)
    browser.until("location.pathname === '/studies' && document.readyState === 'complete'")


Shoot = Callable[[str, int], None]


def test_from_a_study_that_arrives_to_a_verified_ledger(
    place: tuple[Study, dict[str, PartyFolder]], running: Running, browser: Browser, shoot: Shoot, tmp_path: Path
) -> None:
    study, homes = place
    sign_in(browser, running)
    assert browser.run("location.hash") == ""
    arrives(study, running, browser, tmp_path)
    is_read(study, running, browser, shoot)
    is_agreed_to(study, homes, browser)
    browser.open(f"{running.place}/studies")
    assert "agreed" in browser.run("document.body.innerText")
    shoot("studies", 700)
    is_run(study, homes, running, browser, tmp_path)
    shoot("run", 700)
    is_released(study, running, browser, shoot, tmp_path)
    is_verified(homes["north"], running, browser)
    shoot("ledger", 1100)


def arrives(study: Study, running: Running, browser: Browser, folder: Path) -> None:
    """The study comes as a file that the owner chooses."""
    assert "No study waits" in browser.run("document.body.innerText")
    file = folder / "study.json"
    file.write_text(study_file(study))
    browser.choose("#study-file", file)
    browser.until("document.querySelector('#study-text').value.length > 100")
    sound(browser, running.place)
    browser.leave("document.querySelector('button[value=receive]').click()")
    assert browser.run("location.pathname") == f"/studies/{study.digest}"


def is_read(study: Study, running: Running, browser: Browser, shoot: Shoot) -> None:
    """The owner reads what it costs and reveals."""
    text = browser.run("document.body.innerText")
    for wanted in (study.digest, "how old are people", "right at most 73.1 %", "Your decision", "north (you)"):
        assert wanted in text
    sound(browser, running.place)
    shoot("study", 1300)


def is_agreed_to(study: Study, homes: dict[str, PartyFolder], browser: Browser) -> None:
    """Not without typing the digest, not without the tick; the other owners agree elsewhere."""
    browser.run("document.querySelector('button[value=agree]').click()")
    assert [one.state for one in studies(homes["north"])] == ["pending"]
    browser.type("#typed", study.digest[:8])
    browser.run("document.querySelector('input[name=read]').click()")
    browser.leave("document.querySelector('button[value=agree]').click()")
    assert [one.state for one in studies(homes["north"])] == ["agreed"]
    agree_all(study, {name: home for name, home in homes.items() if name != "north"})


def is_run(study: Study, homes: dict[str, PartyFolder], running: Running, browser: Browser, folder: Path) -> None:
    """Three parties run, each a process of its own; the page is told without being opened anew."""
    browser.open(f"{running.place}/studies/{study.digest}/progress")
    assert "has not started" in browser.run("document.body.innerText")
    runtime = Processes({name: home.command(study=study.digest) for name, home in homes.items()}, most=10**8)
    try:
        run_study(study, runtime, folder=folder / "journal", identity=COORDINATOR).write(folder / "releases" / "table")
    finally:
        runtime.close()
    browser.until("document.querySelector('#run-state').textContent === 'finished'")
    browser.until("document.querySelector('#run-words').textContent.startsWith('3 of 3')")
    sound(browser, running.place)


def is_released(study: Study, running: Running, browser: Browser, shoot: Shoot, folder: Path) -> None:
    """The release comes as an archive, and is read."""
    packed = folder / "table.zip"
    packed.write_bytes(archive(folder, "table"))
    browser.open(f"{running.place}/releases")
    browser.choose("#file", packed)
    browser.leave("document.querySelector('#archive button').click()")
    assert browser.run("location.pathname") == f"/releases/{study.digest[:16]}"
    assert "exact integer noise" in browser.run("document.body.innerText")
    sound(browser, running.place)
    shoot("release", 1000)
    browser.open(f"{running.place}/releases/{study.digest[:16]}/report")
    assert "3 organisations" in browser.run("document.body.innerText")
    # its own style is let through, and no script would be
    assert browser.run("getComputedStyle(document.body).maxWidth") != "none"
    assert browser.said == []


def is_verified(home: PartyFolder, running: Running, browser: Browser) -> None:
    """The chain of the ledger is checked."""
    browser.open(f"{running.place}/ledger")
    browser.leave("document.querySelector('button[value=verify]').click()")
    with Ledger.open(home.ledger) as ledger:
        head = ledger.head()
    told = browser.run("document.querySelector('#verified').textContent")
    assert "The ledger is verified" in told
    assert head in told
    sound(browser, running.place)


def test_every_page_is_sound(place: tuple[Study, dict[str, PartyFolder]], running: Running, browser: Browser) -> None:
    """Also those that the path above does not touch."""
    study, homes = place
    second = replace(study, edition=2, purpose="another purpose")
    for offered in (study, second):
        receive(homes["north"], offered)
    release = rehearse(replace(study, edition=3), homes, seed=7)
    for name in ("one", "two"):
        release.write(homes["north"].folder / "releases" / name)
    sign_in(browser, running)
    for path, wanted in (
        (f"/studies/{second.digest}", "2 differences"),
        (f"/studies/{second.digest}/difference?other={study.digest}", "another purpose"),
        (f"/studies/{second.digest}/advice", "Is joining worth it?"),
        (f"/studies/{second.digest}/fit", "How your rows fit"),
        ("/releases", "NO: a rehearsal"),
        ("/releases/one", "protects nobody"),
        ("/releases/one/compare?other=two", "No difference"),
        ("/login", "Sign in"),
        ("/ledger", "For the owner only"),
        ("/users", "Administrators also manage users"),
        ("/account", "Present password or token"),
    ):
        browser.open(running.place + path)
        assert wanted in browser.run("document.body.innerText"), path
        sound(browser, running.place)


def test_a_coordinator_has_its_own(browser: Browser, shoot: Shoot, tmp_path: Path) -> None:
    coordinator = Coordinator.create(tmp_path / "health", name="health", host="127.0.0.1", port=8002)
    study, homes = study_between(tmp_path / "homes", name="age and score")
    study = named(study, coordinator.identity)
    for name in homes:
        coordinator.approve(prepare(homes[name].folder, name=name))
    running = Running(coordinator.folder)
    try:
        sign_in(browser, running)
        browser.run(f"document.querySelector('#study-text').value = {json.dumps(study_file(study))}")
        browser.leave("document.querySelector('button[value=receive]').click()")
        text = browser.run("document.body.innerText")
        assert "Run with the connected parties" in text
        assert "Your decision" not in text
        sound(browser, running.place)
        browser.open(f"{running.place}/studies/{study.digest}/progress")
        assert "has not started" in browser.run("document.body.innerText")
        sound(browser, running.place)
        browser.open(f"{running.place}/parties")
        assert "the server is not running" in browser.run("document.body.innerText")
        sound(browser, running.place)
        shoot("parties", 500)
    finally:
        running.close()


def test_by_keyboard_in_the_dark(running: Running, browser: Browser) -> None:
    sign_in(browser, running)
    browser.dark(on=True)
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 28)"
    browser.dark(on=False)
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    browser.press("Tab", 9)
    assert browser.run("document.activeElement.className") == "skip"
    assert browser.run("document.activeElement.getBoundingClientRect().left >= 0")
    reached = set()
    for _ in range(12):
        browser.press("Tab", 9)
        reached.add(browser.run("document.activeElement.innerText || document.activeElement.id"))
    assert {"Studies", "Ledger", "Releases", "Draft a study", "Sign out"} <= reached
    landmarks = browser.run("['header', 'nav', 'main', 'footer', 'h1'].map(n => document.querySelectorAll(n).length)")
    assert landmarks == [1, 1, 1, 1, 1]


def test_a_draft_becomes_a_study_when_it_is_confirmed(
    place: tuple[Study, dict[str, PartyFolder]], running: Running, browser: Browser, shoot: Shoot
) -> None:
    home = place[1]["north"].folder
    sign_in(browser, running)
    browser.open(f"{running.place}/draft")
    sound(browser, running.place)
    browser.leave("document.querySelector('button[value=make]').click()")
    assert (home / "study.draft.toml").exists()
    sound(browser, running.place)
    card = "document.querySelector('input[name=name][value=age]').form"
    name = browser.run(f"{card}.id")
    before = browser.run(f"{card}.querySelectorAll('svg rect').length")
    browser.type(f"#{name}-edges", "0, 18, 40, 65, 100")
    browser.leave(f"{card}.querySelector('button').click()")
    assert browser.run("location.hash") == f"#{name}"
    # four bins and the missing level
    assert browser.run(f"{card}.querySelectorAll('svg rect').length") == 5 != before
    assert "18-39" in browser.run(f"{card}.querySelector('svg').textContent")
    browser.run("window.scrollTo(0, 0)")
    sound(browser, running.place)
    shoot("draft", 1500)
    write = "document.querySelector('#confirm button').click()"
    browser.leave(write)
    assert "nothing was written" in browser.run("document.querySelector('.alert[role=alert]').textContent")
    assert not (home / "study.toml").exists()
    browser.run("document.querySelectorAll('#confirm input[type=checkbox]').forEach(box => box.click())")
    browser.leave(write)
    assert "may be shared" in browser.run("document.querySelector('.good').textContent")
    assert "edges = [0, 18, 40, 65, 100]\n" in (home / "study.toml").read_text()
    assert "#" not in (home / "study.toml").read_text()
    assert browser.nameless() == []


def test_each_error_of_a_study_file_has_its_own_line(running: Running, browser: Browser) -> None:
    sign_in(browser, running)
    browser.type("#study-text", "name = 3\nedition = 0.5\nnonsense = 1\n")
    browser.leave("document.querySelector('button[value=receive]').click()")
    shown = browser.run("document.querySelector('.alert[role=alert]').innerText").splitlines()
    assert [line.split(".")[0] for line in shown[1:4]] == ["1", "2", "3"]


def test_script_in_a_study_stays_text(running: Running, browser: Browser, tmp_path: Path) -> None:
    study, homes = study_between(tmp_path / "marked", columns=MARKED + COLUMNS, top=f'purpose = "{SCRIPT}"')
    receive(homes["north"], study)
    console = Running(homes["north"].folder)
    try:
        sign_in(browser, console)
        browser.open(f"{console.place}/studies/{study.digest}")
        assert SCRIPT in browser.run("document.body.innerText")
        assert browser.run("document.title") == "test - north - Syndic"
        assert browser.run("document.scripts.length") == 1
        assert browser.said == []
    finally:
        console.close()


EVIL = """<!doctype html><title>evil</title><body>
<iframe id="frame" src="{place}/studies"></iframe>
<form id="f" method="post" action="{place}/studies/{run}" target="sink">
<input name="action" value="agree"><input name="typed" value="{typed}"><input name="days" value="9">
<input name="read" value="yes"></form><iframe name="sink"></iframe>
<script>
document.getElementById("f").submit();
window.results = Promise.allSettled([
  fetch("{place}/api/v1/ledger", {{credentials: "include"}}).then(a => a.text()),
  fetch("{place}/api/v1/studies/{run}/agreement", {{method: "POST", credentials: "include", mode: "no-cors",
    body: JSON.stringify({{typed: "{typed}"}})}}),
]);
</script>"""


def test_another_site_gets_nothing_and_changes_nothing(running: Running, browser: Browser, tmp_path: Path) -> None:
    """The other site is on the same machine: for the browser the same site, so that it does send the cookie along."""
    study, homes = study_between(tmp_path / "victim")
    receive(homes["north"], study)
    console = Running(homes["north"].folder)
    page = EVIL.format(place=console.place, run=study.digest, typed=study.digest[:8]).encode()

    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        sign_in(browser, console)
        browser.open(f"http://127.0.0.1:{server.server_port}/")
        browser.until("document.title === 'evil'")
        read, _ = browser.run("window.results.then(all => all.map(one => one.status))")
        assert read == "rejected"
        time.sleep(1.0)
        assert [one.state for one in studies(homes["north"])] == ["pending"]
        said = " ".join(browser.said)
        assert "frame-ancestors" in said or "X-Frame-Options" in said
        # it was the console that refused: the session is alive
        browser.open(f"{console.place}/studies")
        assert browser.run("location.pathname") == "/studies"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        console.close()
