"""The wheel holds both packages and works away from the checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SEED_CALLS = """
import sys
import halo_sdk, halo_server
print(halo_sdk.__file__, halo_server.__file__)
said = {"messages": [{"role": "user", "content": "Keep my weekly reports short and send them in the morning."}]}
asked = {"messages": [{"role": "user", "content": "What format do I prefer for weekly reports?"}]}
who = {"projectKey": "customer-product", "endUserKey": "user_123"}
with halo_server.embedded(sys.argv[1], project="customer-product") as client:
    captured = client.post("/api/v1/memory/capture", json={**who, "sessionData": said,
        "response": {"role": "assistant", "content": "I will keep them concise and morning-ready."}})
    assert captured.status_code == 201, captured.text
    found = client.post("/api/v1/memory/functions/halo_retrieve_end_user_memory", json={**who,
        "arguments": {"sessionData": asked, "query": "weekly report preference", "limit": 5}}).json()
    assert found["rawEntries"][0]["requestRaw"] == said, found
    assert "report" in found["selectedTopicKeys"][0], found
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(out),
        str(ROOT),
    ]
    subprocess.run(command, check=True, cwd=out)
    return next(out.glob("*.whl"))


@pytest.mark.process
def test_the_wheel_holds_both_packages_and_nothing_of_the_workshop(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"halo_sdk", "halo_server"}
    assert "halo_sdk/py.typed" in names
    assert "halo_server/store/migrations/versions/0001_initial.py" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.process
def test_the_seeds_two_calls_work_from_the_wheel_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run(command, check=True, cwd=tmp_path)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HALO_", "PYTHON"))}
    run = subprocess.run(
        [sys.executable, "-c", SEED_CALLS, str(tmp_path / "data")],
        cwd=tmp_path,
        env={**env, "PYTHONPATH": str(site)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert all(Path(found).is_relative_to(site) for found in run.stdout.split())
