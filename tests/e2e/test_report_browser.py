"""The demo's report in a real browser: it shows in light, in dark and on a phone, and asks nobody for anything."""

import html
import json
import re
import shutil
import struct
import subprocess
import zlib
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from browser import CHROMIUM, FLAGS
from syndic import Study, simulate
from syndic.report import owner_report

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="the browser is not installed: apt-get install chromium"),
]
DARK = "--blink-settings=preferredColorScheme=0"
LIGHT = "--blink-settings=preferredColorScheme=1"


def browse(url: str, folder: Path, *options: str) -> tuple[str, str, set[str]]:
    """Open the page with a new profile; return standard output, what the console said, and addresses asked for."""
    profile = folder / "profile"
    log = folder / "net.json"
    command = [
        str(CHROMIUM),
        *FLAGS,
        "--enable-logging=stderr",
        f"--user-data-dir={profile}",
        f"--log-net-log={log}",
        *options,
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    shutil.rmtree(profile)
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    requests = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
    log.unlink()
    # what the browser asks for on its own account has no page as its initiator
    asked = {one["url"] for one in requests if one.get("initiator", "not an origin") != "not an origin"}
    return done.stdout, console, {address for address in asked if not address.startswith("file:")}


def picture(path: Path) -> tuple[int, int, list[bytes]]:
    """Return width, height and the colours of the pixels of a PNG file with 8 bits a channel."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert (depth, kind) in {(8, 2), (8, 6)}
    step = {2: 3, 6: 4}[kind]
    place, packed = 8, b""
    while place < len(data):
        (size,) = struct.unpack(">I", data[place : place + 4])
        if data[place + 4 : place + 8] == b"IDAT":
            packed += data[place + 8 : place + 8 + size]
        place += size + 12
    raw, above, pixels = zlib.decompress(packed), bytes(width * step), []
    for row in range(height):
        start = row * (width * step + 1)
        above = unfiltered(raw[start], raw[start + 1 : start + 1 + width * step], above, step)
        pixels += [above[at : at + 3] for at in range(0, width * step, step)]
    return width, height, pixels


def unfiltered(kind: int, line: bytes, above: bytes, step: int) -> bytes:
    """Undo the prediction of one row of a PNG file (RFC 2083, section 6)."""
    if kind == 0:
        return line
    if kind == 2:
        return bytes((value + up) & 255 for value, up in zip(line, above, strict=True))
    done = bytearray(line)
    for at, value in enumerate(line):
        left = done[at - step] if at >= step else 0
        up, corner = above[at], above[at - step] if at >= step else 0
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + up) // 2
        else:
            far = [(abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner)]
            guess = min(far)[2]
        done[at] = (value + guess) & 255
    return bytes(done)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's release with its report, and the report of its first owner beside it."""
    place = tmp_path_factory.mktemp("browser")
    with_data = Path(str(files("syndic") / "demo"))
    study = Study.load(with_data / "study.toml")
    sources = {party.name: with_data / f"{party.name}.csv" for party in study.parties}
    release = simulate(study, sources, folder=place / "run")
    release.report(place / "report.html")
    ledger = place / "run" / "parties" / "north" / "ledger.sqlite"
    owner_report(release, place / "owner.html", party="north", source=sources["north"], ledger=ledger)
    return place


@pytest.mark.parametrize(
    ("page", "theme", "paper"),
    [
        ("report.html", LIGHT, (255, 255, 255)),
        pytest.param("report.html", DARK, (20, 24, 28), marks=pytest.mark.slow),
        ("owner.html", LIGHT, (255, 255, 255)),
    ],
)
def test_the_page_shows_and_asks_for_nothing(
    page: str, theme: str, paper: tuple[int, int, int], folder: Path, tmp_path: Path
) -> None:
    shot = tmp_path / "shot.png"
    url = (folder / page).as_uri()
    _, console, asked = browse(url, tmp_path, theme, f"--screenshot={shot}", "--window-size=900,700")
    assert console == ""
    assert asked == set()
    width, height, pixels = picture(shot)
    assert (width, height) == (900, 700)
    colours = Counter(pixels)
    background, most = colours.most_common(1)[0]
    assert tuple(background) == paper
    assert 0.02 < 1 - most / len(pixels) < 0.7
    assert len(colours) > 50


def test_nothing_is_wider_than_a_phone(folder: Path, tmp_path: Path) -> None:
    report = html.escape((folder / "report.html").read_text())
    frame = tmp_path / "phone.html"
    measure = "document.body.textContent = JSON.stringify([d.clientWidth, d.scrollWidth, d.scrollHeight])"
    frame.write_text(
        f'<!doctype html><body><iframe id="f" width="360" height="700" srcdoc="{report}"></iframe>'
        f"<script>f.onload = () => {{ const d = f.contentDocument.documentElement; {measure} }}</script>"
    )
    output, _, _ = browse(frame.as_uri(), tmp_path, "--dump-dom", "--virtual-time-budget=5000")
    found = re.search(r"\[(\d+),(\d+),(\d+)\]", output)
    assert found, output[-500:]
    visible, needed, height = map(int, found.groups())
    assert needed <= visible
    assert height > 5000


def test_it_prints(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.pdf"
    browse((folder / "owner.html").as_uri(), tmp_path, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    pages = len(re.findall(rb"/Type\s*/Page\b", target.read_bytes()))
    assert 3 <= pages <= 30


def test_this_test_would_notice(tmp_path: Path) -> None:
    """A page that asks for a picture and breaks its own policy is caught by the same means."""
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!doctype html><body><img src=\"http://127.0.0.1:9/x.png\"><script>console.error('loud')</script><p>text</p>"
    )
    shot = tmp_path / "shot.png"
    _, console, asked = browse(bad.as_uri(), tmp_path, LIGHT, f"--screenshot={shot}", "--window-size=900,700")
    assert "loud" in console
    assert "http://127.0.0.1:9/x.png" in asked
    _, _, pixels = picture(shot)
    assert Counter(pixels).most_common(1)[0][1] > 0.98 * len(pixels)
