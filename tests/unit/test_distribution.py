"""What is shipped beside the code: one version everywhere, an image without root or build tools, units that verify."""

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from syndic.version import __version__

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy").glob("*.service"))


def project(path: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / path).read_text())["project"]
    return found


def test_version_is_the_same_everywhere() -> None:
    package, lab = project("pyproject.toml"), project("lab/pyproject.toml")
    assert package["version"] == lab["version"] == __version__
    assert any(text.startswith("syndic[") and text.endswith(f"=={__version__}") for text in lab["dependencies"])
    newest = re.search(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == __version__
    assert re.fullmatch(r"unreleased|\d{4}-\d\d-\d\d", newest[2])


def test_pages_pin_no_other_version() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").iterdir()]
    found = {match for page in pages for match in re.findall(r"syndic(?:\[[\w,]+\])?==([\w.]+)", page.read_text())}
    assert found <= {__version__}


def instructions() -> list[list[tuple[str, str]]]:
    """The stages of the container's file, each a list of instructions."""
    stages: list[list[tuple[str, str]]] = []
    for line in (ROOT / "deploy" / "Containerfile").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word == "FROM":
            stages.append([])
        stages[-1].append((word, rest))
    return stages


def test_the_image_has_no_root_no_pip_and_no_compiler() -> None:
    build, final = instructions()
    known = {"FROM", "RUN", "COPY", "ENV", "USER", "WORKDIR", "VOLUME", "ENTRYPOINT", "CMD"}
    assert {word for stage in (build, final) for word, _ in stage} <= known
    bases = {rest.split()[0] for word, rest in (build[0], final[0])}
    assert len(bases) == 1
    assert re.search(r":\d+\.\d+-slim-\w+$", bases.pop())
    runs = [rest for word, rest in final if word == "RUN"]
    assert not any(re.search(r"\b(apt|gcc|build-essential|curl|wget|install)\b", text) for text in runs)
    assert any("uninstall" in text for text in runs)
    assert [rest for word, rest in final if word == "COPY"] == ["--from=build /opt/syndic /opt/syndic"]
    users = [rest for word, rest in final if word == "USER"]
    assert len(users) == 1
    assert int(users[0].partition(":")[0]) > 0
    last_run = max(place for place, (word, _) in enumerate(final) if word == "RUN")
    assert ("USER", users[0]) in final[last_run:]


def test_everything_that_the_image_copies_is_there() -> None:
    for word, rest in instructions()[0]:
        if word == "COPY":
            *sources, _target = shlex.split(rest)
            assert all((ROOT / name).exists() for name in sources), rest


def test_the_sdist_has_what_it_names() -> None:
    sdist = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert all((ROOT / name).exists() for name in sdist["only-include"])


def test_services_may_write_only_their_volumes_and_have_no_rights() -> None:
    content = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    assert set(content["services"]) == {"coordinator", "north", "south"}
    keys = {"image", "build", "entrypoint", "command", "environment", "volumes"}
    for name, service in content["services"].items():
        assert set(service) == keys | {"read_only", "tmpfs", "cap_drop", "security_opt"}, name
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["volumes"] == [f"{name}:/data", "exchange:/exchange"]
        assert {volume.partition(":")[0] for volume in service["volumes"]} <= set(content["volumes"])
        (script,) = service["command"]
        assert "$" not in script.replace("$$", ""), "compose replaces a single $ itself"
        assert (ROOT / "deploy" / service["build"]["context"] / service["build"]["dockerfile"]).is_file()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_units_verify_and_leave_little_exposed(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name.replace("@", "@north")
    copy.write_text(unit.read_text().replace("/opt/syndic/bin/syndic", "/bin/true"))
    environment = {**os.environ, "SYSTEMD_LOG_LEVEL": "warning"}
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", str(copy)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    score = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(copy)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert score.returncode == 0, score.stdout[-2000:] + score.stderr


def test_there_are_two_units() -> None:
    assert [path.name for path in UNITS] == ["syndic-coordinator.service", "syndic-site@.service"]
