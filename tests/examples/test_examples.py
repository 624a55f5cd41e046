"""Every example runs as printed and asserts its own outcome; here each is run the way its docstring says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.scripted_model import ScriptedModel

ROOT = Path(__file__).parents[2]
KEYS = {"OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"}


def run(*command: str, at: Path = ROOT, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command, in the checkout unless told otherwise, without any provider's key: the scripted model answers."""
    env = {name: value for name, value in os.environ.items() if name not in KEYS and name[:5] != "HALO_"}
    env |= {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'server'}", "PYTHONIOENCODING": "utf-8"}
    env |= settings
    return subprocess.run(
        command, cwd=at, env=env, capture_output=True, encoding="utf-8", timeout=120, check=False
    )


@pytest.mark.process
@pytest.mark.parametrize("name", ["openai_chat", "gemini", "manual", "embedded"])
def test_an_example_reaches_the_outcome_it_asserts(name: str) -> None:
    done = run(sys.executable, "-m", f"examples.{name}")
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.process
@pytest.mark.providers
def test_the_first_program_of_the_readme_recalls_in_a_second_run_what_the_first_was_told(
    tmp_path: Path,
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```$", readme, flags=re.MULTILINE | re.DOTALL)
    [program] = [body for body in programs if "halo_server.embedded" in body]
    told, asked = re.findall(r'`"([^"`]+)"`', readme)
    with ScriptedModel() as model:
        keys = {
            "OPENAI_BASE_URL": f"{model.base_url}/v1",
            "OPENAI_API_KEY": "none",
            "HALO_EMBEDDER": "hashing",
        }
        answers = [run(sys.executable, "-c", program, words, at=tmp_path, **keys) for words in (told, asked)]
    assert [answer.stderr for answer in answers] == ["", ""]
    assert told in answers[1].stdout


@pytest.mark.process
def test_the_demo_answers_every_question_on_two_pages_and_again_over_the_same_directory(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        done = run(sys.executable, "-m", "examples.demo", "--data", str(tmp_path / "data"))
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert len(lines) <= 120
        assert "8 of 8 answers held the expected word" in lines[-1]


def test_the_curl_example_names_the_key_it_needs() -> None:
    done = run("sh", "examples/curl.sh")
    assert done.returncode != 0
    assert "HALO_API_KEY" in done.stderr
