"""A receipt means on disk: the order of writes, syncs and answers, as the operating system saw it."""

import shutil
import subprocess
import sys

import pytest

from tests.parts import require
from tests.process.serving import HALO, new_key, serving

pytestmark = pytest.mark.process

CAPTURES = 50
WEAK = (
    "import halo_server.store.engine as engine; engine.SYNCHRONOUS = 'NORMAL'; "
    "from halo_server.__main__ import main; main()"
)


def strace_works():
    """Whether programs may be traced here; containers often forbid it."""
    if shutil.which("strace") is None:
        return False
    tried = subprocess.run(
        ["strace", "-o", "/dev/null", "true"], capture_output=True, timeout=20, check=False
    )
    return tried.returncode == 0


def trace(tmp_path, command):
    """Serve under strace, capture one after the other, and return the lines of the trace."""
    require("strace", strace_works(), "apt-get install strace, and allow ptrace")
    data, log = tmp_path / "data", tmp_path / "trace"
    key = new_key(data)
    calls = "trace=pwrite64,write,writev,fdatasync,fsync,sendto,sendmsg"
    tracing = ("strace", "-f", "-y", "-qq", "-s", "40", "-o", str(log), "-e", calls, *command, "serve")
    with serving(data, key, command=tracing) as server, server.client() as client:
        for n in range(CAPTURES):
            assert server.capture(client, f"Sentence number {n}.", f"turn-{n}").status_code == 201
    return log.read_text(errors="replace").splitlines()


def violations(lines):
    """Return how many answers of success were sent while something written to the log of the database was not synced.

    A call that another thread interrupts is printed in two lines; it counts as done in the first for a write and in the
    last for a sync, so that doubt is never in the server's favour.
    """
    dirty, answers, found, syncing = False, 0, 0, set()
    for line in lines:
        process, _, call = line.partition(" ")
        call = call.strip()
        if call.startswith(("pwrite64(", "write(")) and "halo.db-wal>" in call:
            dirty = True
        elif call.startswith(("fdatasync(", "fsync(")) and "halo.db-wal>" in call:
            if "unfinished" in call:
                syncing.add(process)
            else:
                dirty = False
        elif "sync resumed>" in call and process in syncing:
            syncing.discard(process)
            dirty = False
        elif call.startswith(("sendto(", "sendmsg(", "write(", "writev(")) and '"HTTP/1.1 201' in call:
            answers += 1
            found += dirty
    return answers, found


def test_no_capture_is_answered_before_it_is_synced(tmp_path):
    assert violations(trace(tmp_path, HALO)) == (CAPTURES, 0)


def test_the_same_eyes_see_the_fault_when_syncing_is_weakened(tmp_path):
    answers, found = violations(trace(tmp_path, (sys.executable, "-c", WEAK)))
    assert answers == CAPTURES
    assert found > 0
