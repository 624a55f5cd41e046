"""A scripted provider, and a real memory that holds one preference."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import halo_server
from halo_sdk import Halo
from halo_server.config import Settings
from halo_server.inprocess import EmbeddedClient
from tests.compat.stub import Stub

PROJECT = "customer-product"
PREFERENCE = "Keep my weekly reports short and send them in the morning."
SECRET = "My weekly reports say canary-4711."


@pytest.fixture(autouse=True)
def _no_reports_to_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "none")


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as made:
        yield made
    assert made.unexpected == []
    assert not made.replies


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedClient]:
    """A server that remembers one preference of `user_123` and one secret of `victim`."""
    with halo_server.embedded(tmp_path, project=PROJECT, settings=Settings(embedder="hashing")) as client:
        halo = Halo(http_client=client)
        halo.for_user("user_123").capture(PREFERENCE, "I will keep them concise.")
        halo.for_user("victim").capture(SECRET, "Noted.")
        yield client
