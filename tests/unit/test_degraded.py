"""What a memory says of itself when it was written with other vectors than it reads."""

from pathlib import Path
from types import ModuleType

import pytest

from halo_server import app
from halo_server.app import open_memory
from halo_server.config import Settings
from halo_server.embedders.hashing import HashingEmbedder


class _Another(HashingEmbedder):
    id = "another-v1-512"


def _degraded(data: Path) -> tuple[str, ...]:
    memory = open_memory(Settings(data=data, embedder="hashing"))
    memory.close()
    return memory.services.degraded


def test_a_memory_first_written_with_another_embedder_finds_that_by_words_alone_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _degraded(tmp_path) == _degraded(tmp_path) == ()

    with monkeypatch.context() as patch:
        patch.setattr(app, "open_embedder", lambda *_: _Another())
        assert _degraded(tmp_path) == _degraded(tmp_path) == ("vectors",)
    assert _degraded(tmp_path) == ()


def test_a_memory_whose_embedder_is_missing_says_that_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str, _settings: Settings | None = None) -> HashingEmbedder:
        if name == "use":
            raise ImportError(name)
        return HashingEmbedder()

    monkeypatch.setattr(app, "open_embedder", lambda *_: _Another())
    assert _degraded(tmp_path) == ()
    monkeypatch.setattr(app, "open_embedder", missing)
    memory = open_memory(Settings(data=tmp_path, embedder="use"))
    memory.close()

    assert memory.services.degraded == ("embedder", "vectors")


def test_a_memory_whose_llm_is_missing_does_without_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> ModuleType:
        raise ImportError(name)

    monkeypatch.setattr("halo_server.llms.import_module", missing)
    memory = open_memory(Settings(data=tmp_path, embedder="hashing", llm_model="m"))
    memory.close()

    assert memory.services.degraded == ("llm",)
    assert not memory.services.capture.naming
