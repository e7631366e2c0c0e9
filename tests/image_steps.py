"""Run the build steps of deploy/Containerfile in a folder, without an engine, and try what the image would contain.

python tests/image_steps.py FOLDER
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_MEGABYTES = 600  # beside Python itself


def steps() -> list[tuple[str, str]]:
    """The instructions of the first stage, after its FROM."""
    lines = (ROOT / "deploy" / "Containerfile").read_text().splitlines()
    words = [line.partition(" ")[::2] for line in lines if line and not line.startswith("#")]
    ends = [place for place, (word, _rest) in enumerate(words) if word == "FROM"]
    return words[ends[0] + 1 : ends[1]]


def build(folder: Path) -> None:
    """Do what the steps say, with the paths of the image inside the folder."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for word, rest in steps():
        inside = rest.replace("/source", str(folder / "source")).replace("/opt/syndic", str(folder / "opt" / "syndic"))
        if word == "RUN":
            subprocess.run(inside, shell=True, check=True, env=environment)
            continue
        *sources, target = shlex.split(inside)
        for name in sources:
            to = Path(target) / name if target.endswith("/") else Path(target)
            to.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, to)


def check(folder: Path) -> None:
    """Run the demo from there, and look at what is installed."""
    home, place = folder / "opt" / "syndic", folder / "data"
    place.mkdir()
    bare = {"PATH": f"{home / 'bin'}:/usr/bin:/bin", "HOME": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(["syndic", "demo", "--out", "demo"], check=True, cwd=place, env=bare)
    subprocess.run([home / "bin" / "python", "-c", "import nvflare, starlette"], check=True, cwd=place, env=bare)
    asked = [str(home / "bin" / "python"), "-c", "import pip"]
    if subprocess.run(asked, cwd=place, env=bare, capture_output=True, check=False).returncode == 0:
        raise SystemExit("the image would contain pip")
    size = sum(path.stat().st_size for path in home.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6
    print(f"the image adds {size:.0f} MB to Python's")
    if size > MOST_MEGABYTES:
        raise SystemExit(f"that is more than {MOST_MEGABYTES} MB")


if __name__ == "__main__":
    build(Path(sys.argv[1]).absolute())
    check(Path(sys.argv[1]).absolute())
