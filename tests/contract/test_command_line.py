"""The command `halo`: what it prints, and how it ends."""

import json
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from halo_server.__main__ import cli
from halo_server.app import open_access
from halo_server.domain import Grant
from halo_server.errors import Forbidden

run = CliRunner()


def _create(data: Path, *options: str) -> dict[str, str]:
    answer = run.invoke(cli, ["keys", "create", "--data", str(data), "--json", *options])
    assert answer.exit_code == 0, answer.output
    return dict(json.loads(answer.stdout))


def open_grants(data: Path) -> list[Grant]:
    access, store = open_access(data)
    try:
        return access.list()
    finally:
        store.close()


def test_a_made_key_opens_its_project_until_it_is_revoked(tmp_path: Path) -> None:
    made = _create(tmp_path, "--project", "p", "--end-user", "u", "--label", "for tests")
    access, store = open_access(tmp_path)
    grant = access.grant(made["key"])
    assert (grant.project, grant.end_user, grant.admin, grant.label) == ("p", "u", False, "for tests")
    assert run.invoke(cli, ["keys", "revoke", made["id"], "--data", str(tmp_path)]).stdout == "revoked\n"
    with pytest.raises(Forbidden):
        access.grant(made["key"])
    store.close()


def test_the_list_shows_what_keys_allow_and_never_a_key(tmp_path: Path) -> None:
    made = [_create(tmp_path, "--project", "p"), _create(tmp_path, "--admin")]
    listed = run.invoke(cli, ["keys", "list", "--data", str(tmp_path), "--json"]).stdout
    assert [(row["project"], row["admin"], row["revoked"]) for row in json.loads(listed)] == [
        ("p", False, False),
        (None, True, False),
    ]
    table = run.invoke(cli, ["keys", "list", "--data", str(tmp_path)]).stdout
    assert "project" in table
    assert not any(key["key"] in listed + table for key in made)
    assert all(key["id"] in table for key in made)  # whole, since it is what `revoke` takes


@pytest.mark.parametrize("command", [["list"], ["revoke", "some id"]])
def test_a_mistyped_directory_is_named_and_not_made(tmp_path: Path, command: list[str]) -> None:
    nowhere = tmp_path / "nowhere"
    answer = run.invoke(cli, ["keys", *command, "--data", str(nowhere)])
    assert (answer.exit_code, answer.output.startswith(f"There is no HALO data in {nowhere}")) == (1, True)
    assert not nowhere.exists()


def test_without_json_the_key_alone_is_printed(tmp_path: Path) -> None:
    printed = run.invoke(cli, ["keys", "create", "--data", str(tmp_path), "--project", "p"]).stdout
    assert printed.startswith("halo_")
    assert len(printed.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "--project"),
        (["--admin", "--project", "p"], "--admin alone"),
        (["--end-user", "u"], "--project"),
        (["--project", "sk-abc"], "projectKey must not be an API key."),
        (["--project", "p", "--end-user", "null"], "endUserKey must be a real key"),
        (["--project", "x" * 161], "at most 160 characters"),
    ],
)
def test_a_key_that_cannot_be_is_refused_and_nothing_is_made(
    tmp_path: Path, options: list[str], says: str
) -> None:
    answer = run.invoke(cli, ["keys", "create", "--data", str(tmp_path), *options])
    assert answer.exit_code != 0
    assert says in answer.output
    assert not (tmp_path / "halo.db").exists() or not open_grants(tmp_path)


def test_revoking_an_unknown_key_ends_with_one_line(tmp_path: Path) -> None:
    _create(tmp_path, "--admin")
    answer = run.invoke(cli, ["keys", "revoke", "nobody", "--data", str(tmp_path)])
    assert (answer.exit_code, answer.output) == (1, "There is no live key of that id; see: halo keys list\n")


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_taken_port_ends_with_one_line(tmp_path: Path, family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family) as taken:
        try:
            taken.bind((host, 0))
        except OSError:
            pytest.skip("this machine has no IPv6 loopback")
        taken.listen()
        port = str(taken.getsockname()[1])
        answer = run.invoke(cli, ["serve", "--data", str(tmp_path), "--host", host, "--port", port])
    assert (answer.exit_code, answer.output) == (
        1,
        f"Cannot listen on {host} port {port}: Address already in use.\n",
    )


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["keys", "create", "--project", "p"]])
def test_a_directory_that_is_a_file_ends_with_one_line(tmp_path: Path, command: list[str]) -> None:
    file = tmp_path / "file"
    file.touch()
    answer = run.invoke(cli, [*command, "--data", str(file)])
    assert (answer.exit_code, answer.output) == (1, f"Cannot use {file}: File exists.\n")


def test_a_setting_that_cannot_be_ends_with_one_line_that_names_it(tmp_path: Path) -> None:
    answer = run.invoke(cli, ["serve", "--data", str(tmp_path)], env={"HALO_QUERY_CACHE": "secret"})
    assert answer.exit_code == 1
    assert answer.output.startswith("HALO_QUERY_CACHE: ")
    assert "secret" not in answer.output
    assert len(answer.output.splitlines()) == 1


def test_help_names_every_command() -> None:
    shown = run.invoke(cli, ["--help"]).output
    assert "serve" in shown
    assert "keys" in shown
