"""The programs of the README run as printed, with the official clients."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from halo_sdk import Halo
from tests.compat.stub import Stub
from tests.compat.test_matrix import ANSWER, ARGUMENTS, QUESTION
from tests.compat.wires import Anthropic, Gemini, Interactions, OpenAIChat, Responses, Wire, sdk
from tests.sdk.fakes import RETRIEVE
from tests.sdk.replies import Call

pytestmark = [pytest.mark.providers]

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
CALL = [Call("call_1", RETRIEVE, ARGUMENTS)]
PROGRAMS: dict[str, Wire] = {
    "# 1.": OpenAIChat(),
    "# 2.": Responses(),
    "# 3.": Gemini(),
    "# 3b.": Interactions(),
    "# 4.": Anthropic(),
}


def fence(mark: str) -> str:
    """Return the one fence that holds these words."""
    (found,) = [body for body in FENCES if mark in body]
    return found


def run(body: str, **scope: Any) -> dict[str, Any]:
    """Run a fence with what its reader has; return what it leaves behind."""
    exec(compile(body, "README.md", "exec"), scope)  # noqa: S102 (our own README)
    return scope


@pytest.fixture
def memory(server):
    return Halo(http_client=server).for_user("user_123")


@pytest.fixture
def client(stub: Stub, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    """A provider's client made as its documentation says, from the environment alone."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", stub.url)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", stub.url)
    made = {
        "openai": lambda: sdk("openai").OpenAI(),
        "openai-responses": lambda: sdk("openai").OpenAI(),
        "gemini": lambda: sdk("google.genai").Client(),
        "gemini-interactions": lambda: sdk("google.genai").Client(),
        "anthropic": lambda: sdk("anthropic").Anthropic(),
    }[request.param]()
    yield made
    made.close()


@pytest.mark.parametrize("mark", [*PROGRAMS, "# 5."])
def test_a_program_has_at_most_twelve_lines(mark):
    assert len(fence(mark).splitlines()) <= 12


@pytest.mark.parametrize(
    ("mark", "wire", "client"),
    [(mark, wire, wire.dialect) for mark, wire in PROGRAMS.items()],
    indirect=["client"],
    ids=list(PROGRAMS),
)
def test_a_program_remembers_and_captures(stub, memory, mark, wire, client):
    calls = [*CALL, Call("call_2", "weather", {"city": "Oslo"})] if mark == "# 1." else CALL
    stub.replies += [wire.calls(calls), wire.answer(ANSWER)]
    rain = {"mine": [], "run": lambda name, arguments: f"{name}: rain in {arguments['city']}"}
    run(fence(mark), memory=memory, client=client, question=QUESTION, **rain)
    assert "weekly reports short" in json.dumps(stub.bodies[1])
    assert ("rain in Oslo" in json.dumps(stub.bodies[1])) is (len(calls) > 1)
    newest = memory.retrieve(query="grey paper").raw_entries[0].to_dict()
    assert QUESTION in json.dumps(newest["requestRaw"])
    assert ANSWER in json.dumps(newest["responseRaw"])


def test_a_model_is_driven_by_hand(memory):
    prompts = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return ANSWER if len(prompts) > 1 else json.dumps({"name": RETRIEVE, "arguments": ARGUMENTS})

    run(fence("# 5."), memory=memory, model=model, question=QUESTION, json=json)
    assert RETRIEVE in prompts[0]
    assert "weekly reports short" in prompts[1]
    assert ANSWER in json.dumps(memory.retrieve(query="grey paper").raw_entries[0].to_dict())


@pytest.mark.parametrize("client", ["openai"], indirect=True)
def test_a_stream_is_put_together(stub, memory, client):
    wire = OpenAIChat()
    stub.replies.append(wire.streamed(wire.calls(CALL)))
    messages = [wire.opening(QUESTION)]
    left = run(fence("memory.accumulator"), memory=memory, client=client, messages=messages)
    assert [message["role"] for message in left["messages"]] == ["user", "assistant", "tool"]


def test_frameworks_get_their_tools(memory):
    for name in ("agents", "langchain_core", "pydantic_ai", "llama_index.core", "anthropic", "mcp"):
        sdk(name)
    left = run(fence("openai_agents_tools"), memory=memory)
    assert left["tools"]
    assert left["server"].name == "halo"


def test_lint_shows_faults(capsys):
    run(fence("import lint"))
    shown = capsys.readouterr().out
    assert "name" in shown
    assert "anyOf" in shown


@pytest.mark.parametrize("name", ["with_options", "capture_later", "exhausted", "HALO_LOG", "lint_history"])
def test_what_the_readme_promises_has_a_name(name):
    assert name in README
