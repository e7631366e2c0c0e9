"""A PostgreSQL server of one's own, started in a folder of its own and stopped at the end."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

_PROGRAMS = ("initdb", "pg_ctl", "psql")


@final
@dataclass(frozen=True, kw_only=True)
class PostgresServer:
    """A running server; only those who can read `folder` reach it."""

    folder: Path
    uri: str

    def execute(self, statements: str) -> None:
        """Run SQL statements."""
        _run(self.folder, _program("psql"), self.uri, "-q", "-v", "ON_ERROR_STOP=1", "-c", statements)


def is_installed() -> bool:
    """Tell whether the server's programs are on this machine."""
    return all(_program(name) for name in _PROGRAMS)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Start a server that listens on a socket in its folder only."""
    # a short path: the name of a socket has at most 107 bytes
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    user = _user()
    if user is not None:
        shutil.chown(folder, user)
    rows = folder / "rows"
    try:
        _run(folder, _program("initdb"), "-D", str(rows), "-U", "syndic", "-A", "trust", "-N", "-E", "UTF8")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        start = ("-D", str(rows), "-w", "-o", options, "-l", str(folder / "log"), "start")
        _run(folder, _program("pg_ctl"), *start)
        yield PostgresServer(folder=folder, uri=f"postgresql://syndic:secret@/postgres?host={folder}")
    finally:
        if (rows / "postmaster.pid").exists():
            _run(folder, _program("pg_ctl"), "-D", str(rows), "-m", "immediate", "stop")
        shutil.rmtree(folder)


def _program(name: str) -> str:
    found = shutil.which(name)
    if found:
        return found
    homes = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    return str(homes[-1]) if homes else ""


def _user() -> str | None:
    """The server refuses to run as root."""
    if os.geteuid() != 0:
        return None
    return "postgres" if "postgres" in {entry.pw_name for entry in pwd.getpwall()} else "nobody"


def _run(folder: Path, *command: str) -> None:
    environment = {"LC_ALL": "C", "PATH": os.environ["PATH"]}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, user=_user(), cwd=folder, env=environment)
