from collections.abc import Iterator
from pathlib import Path

import pytest

import halo_server
from examples.scripted_model import ScriptedModel
from halo_sdk import Halo
from halo_server.config import Settings
from halo_server.inprocess import EmbeddedClient

PROJECT = "customer-product"
PREFERENCE = "Keep my weekly reports short and send them in the morning."
QUESTION = "What format do I prefer for weekly reports?"


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedClient]:
    """A server that remembers one preference of `user_123` and one secret of `victim`."""
    with halo_server.embedded(tmp_path, project=PROJECT, settings=Settings(embedder="hashing")) as client:
        halo = Halo(http_client=client)
        halo.for_user("user_123").capture(PREFERENCE, "I will keep them concise.")
        halo.for_user("victim").capture("My weekly reports say canary-4711.", "Noted.")
        yield client
