"""Starting and being refused: one line that says what to do, never a traceback."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from halo_server import embedded
from halo_server.app import open_access
from halo_server.config import Settings
from tests.process.serving import PROJECT, USER, environment, new_key, run, serving

pytestmark = pytest.mark.process

IN_USE = "Another process serves this data directory; one process a directory, stop it first.\n"


def test_a_second_server_on_the_same_directory_ends_with_one_line(tmp_path):
    key = new_key(tmp_path / "data")
    with serving(tmp_path / "data", key) as server, server.client() as client:
        second = run("serve", "--data", str(tmp_path / "data"), "--port", "0")
        assert (second.returncode, second.stdout, second.stderr) == (1, "", IN_USE)
        assert server.capture(client, "The first goes on.").status_code == 201


def test_a_server_on_a_directory_that_an_application_embeds_ends_with_one_line(tmp_path):
    data = tmp_path / "data"
    with embedded(data, settings=Settings(embedder="hashing")) as client:
        second = run("serve", "--data", str(data), "--port", "0")
        assert (second.returncode, second.stdout, second.stderr) == (1, "", IN_USE)
        assert client.get("/healthz").status_code == 200


def test_an_application_cannot_embed_a_directory_that_is_served(tmp_path):
    data = tmp_path / "data"
    key = new_key(data)
    program = f"import halo_server\nhalo_server.embedded({str(data)!r})"
    with serving(data, key):
        second = run("-c", program, command=(sys.executable,))
    assert second.returncode == 1
    assert second.stderr.splitlines()[-1] == f"halo_server.errors.DataDirectoryInUse: {IN_USE.strip()}"


def test_a_directory_is_free_again_after_a_kill(tmp_path):
    key = new_key(tmp_path / "data")
    with serving(tmp_path / "data", key) as server:
        server.kill()
    with serving(tmp_path / "data", key) as server, server.client() as client:
        assert client.get("/readyz").json()["ready"] is True


def test_a_port_in_use_is_named_in_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run("serve", "--data", str(tmp_path / "data"), "--port", str(port))
    message = f"Cannot listen on 127.0.0.1 port {port}: Address already in use.\n"
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", message)


def test_two_servers_started_at_once_on_one_port_do_not_both_say_they_serve(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    key = new_key(tmp_path / "one")
    with serving(tmp_path / "one", key, options=["--data", str(tmp_path / "one"), "--port", str(port)]):
        refused = run("serve", "--data", str(tmp_path / "two"), "--port", str(port))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"Cannot listen on 127.0.0.1 port {port}")


def test_a_wrong_setting_is_named_in_one_line(tmp_path):
    refused = run("serve", env=environment(HALO_DATA=str(tmp_path), HALO_EMBEDDER="canary-value"))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("HALO_EMBEDDER: ")
    assert refused.stderr.count("\n") == 1
    assert "canary-value" not in refused.stderr


def test_what_it_stores_is_readable_by_its_owner_alone(tmp_path):
    data = tmp_path / "data"
    key = new_key(data)
    with serving(data, key) as server, server.client() as client:
        server.capture(client, "Hello")
        modes = {path.name: path.stat().st_mode & 0o077 for path in (data, *data.glob("halo.db*"))}
    assert modes
    assert set(modes.values()) == {0}


def test_uvicorn_serves_it_from_settings_alone(tmp_path):
    data = tmp_path / "data"
    key = new_key(data)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = (sys.executable, "-m", "uvicorn", "halo_server.app:app", "--port", port)
    started = re.compile(r"running on (http://\S+)")
    env = environment(HALO_DATA=str(data))
    with (
        serving(data, key, command=command, options=(), env=env, started=started) as server,
        server.client() as client,
    ):
        receipt = server.capture(client, "Served by uvicorn itself.").json()
        assert server.call(client, "uvicorn")["rawEntries"][0]["id"] == receipt["rawEntryId"]
        assert run("serve", "--data", str(data), "--port", "0").stderr == IN_USE


def test_nothing_that_somebody_said_is_in_the_log(tmp_path):
    key = new_key(tmp_path / "data")
    with serving(tmp_path / "data", key, env=environment(HALO_LOG_LEVEL="debug")) as server:
        with server.client() as client:
            server.capture(client, "My canary is heliotrope.")
            server.call(client, "heliotrope")
            client.get("/api/v1/memory/functions?q=heliotrope", headers={"X-Request-Id": "find-me"})
            client.post(
                "/api/v1/memory/capture", content=b"heliotrope\r\n{}", headers={"Authorization": "Basic x"}
            )
        server.stop()
        log = "".join(server.errors)
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert {"route": "/api/v1/memory/functions", "status": 200, "request_id": "find-me"}.items() <= next(
        line for line in lines if line["request_id"] == "find-me"
    ).items()
    assert len(lines) == 4
    for word in ("heliotrope", key, USER, PROJECT):
        assert word not in log


# -- the command line -------------------------------------------------------------------------------------------


def test_without_arguments_it_prints_its_help():
    shown, asked = run(command=(str(Path(sys.executable).with_name("halo")),)), run("--help")
    assert asked.returncode == 0
    for words in ("Usage", "serve", "keys", "HALO: long-term memory"):
        assert words in shown.stdout + shown.stderr
        assert words in asked.stdout
    assert "Traceback" not in shown.stderr


def test_keys_are_made_shown_once_listed_and_revoked_while_the_server_runs(tmp_path):
    data = ["--data", str(tmp_path / "data")]
    key = run("keys", "create", *data, "--project", PROJECT, "--label", "first").stdout.strip()
    with serving(tmp_path / "data", key) as server, server.client() as client:
        made = json.loads(
            run("keys", "create", *data, "--project", PROJECT, "--end-user", USER, "--json").stdout
        )
        admin = run("keys", "create", *data, "--admin").stdout.strip()
        listed = json.loads(run("keys", "list", *data, "--json").stdout)
        assert [{**row, "id": ""} for row in listed] == [
            {
                "id": "",
                "project": PROJECT,
                "endUser": None,
                "admin": False,
                "label": "first",
                "revoked": False,
            },
            {"id": "", "project": PROJECT, "endUser": USER, "admin": False, "label": "", "revoked": False},
            {"id": "", "project": None, "endUser": None, "admin": True, "label": "", "revoked": False},
        ]
        assert listed[1]["id"] == made["id"]
        table = run("keys", "list", *data).stdout
        assert not any(secret in table + json.dumps(listed) for secret in (key, made["key"], admin))
        with server.client(made["key"]) as bound:
            assert server.capture(bound, "Mine").status_code == 201
            revoked = run("keys", "revoke", made["id"], *data)
            assert (revoked.returncode, revoked.stdout, revoked.stderr) == (0, "revoked\n", "")
            assert server.capture(bound, "Mine again").status_code == 403
        assert client.get("/api/v1/memory/functions").status_code == 200
        again = run("keys", "revoke", made["id"], *data)
        message = "There is no live key of that id; see: halo keys list\n"
        assert (again.returncode, again.stdout, again.stderr) == (1, "", message)
        assert [row["revoked"] for row in json.loads(run("keys", "list", *data, "--json").stdout)] == [
            False,
            True,
            False,
        ]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--end-user", "u"],
        ["--admin", "--project", "p"],
        ["--project", ""],
        ["--project", "null"],
        ["--project", "sk-abc"],
        ["--project", "p", "--end-user", " "],
    ],
)
def test_a_key_for_nothing_usable_is_refused_and_not_made(tmp_path, options):
    refused = run("keys", "create", "--data", str(tmp_path / "data"), *options)
    assert refused.returncode in (1, 2)
    assert refused.stderr
    assert (refused.stdout, "Traceback" in refused.stderr) == ("", False)
    access, store = open_access(tmp_path / "data")
    assert access.list() == []
    store.close()


# -- without the extra ------------------------------------------------------------------------------------------

BLOCKED = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("faiss", "fastapi", "sqlalchemy", "uvicorn", "typer"):
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Missing())
"""
CURE = "The HALO server needs its extra: pip install 'halo-memory[server]'"
GONE = """
import importlib.util, sys
found = importlib.util.find_spec
def find_spec(name, package=None):
    return None if name.partition(".")[0] in ("faiss", "fastapi", "sqlalchemy", "uvicorn", "typer") else found(name, package)
importlib.util.find_spec = find_spec
"""


def test_without_the_extra_importing_the_server_says_how_to_install_it():
    program = f"{GONE}\ntry:\n    import halo_server\nexcept ImportError as error:\n    print(error)"
    shown = run("-c", program, command=(sys.executable,))
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, f"{CURE}\n", "")


def test_without_the_extra_the_command_ends_with_the_one_line():
    program = f"{GONE}\nsys.argv[0] = '/usr/local/bin/halo'\nfrom halo_server.__main__ import main\nmain()"
    shown = run("-c", program, command=(sys.executable,))
    assert (shown.returncode, shown.stdout, shown.stderr) == (1, "", f"{CURE}\n")


def test_without_the_extra_the_module_ends_with_the_one_line():
    program = (
        f"{GONE}\nsys.argv[0] = '-m'\nimport runpy\nrunpy.run_module('halo_server', run_name='__main__')"
    )
    shown = run("-c", program, command=(sys.executable,))
    assert (shown.returncode, shown.stdout, shown.stderr) == (1, "", f"{CURE}\n")


def test_the_sdk_needs_nothing_of_the_server():
    program = f"{BLOCKED}\nimport halo_sdk\nassert not [name for name in sys.modules if name.startswith('halo_server')]"
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    assert (shown.returncode, shown.stderr) == (0, "")
