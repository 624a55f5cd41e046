"""What the examples share: a model to talk to. With a provider's key it is the real one, else the scripted one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from google import genai
from google.genai.types import HttpOptions, HttpRetryOptions
from openai import DefaultHttpxClient, OpenAI

from examples.scripted_model import ScriptedModel


@contextmanager
def openai_model() -> Iterator[tuple[OpenAI, str]]:
    """Yield an OpenAI client and the model's name; `HALO_DEMO_MODEL` chooses among the real ones."""
    if os.environ.get("OPENAI_API_KEY"):
        with OpenAI() as client:
            yield client, os.environ.get("HALO_DEMO_MODEL", "gpt-5-mini")
        return
    # A proxy of the environment could not reach this machine's loopback.
    direct = DefaultHttpxClient(trust_env=False)
    with (
        ScriptedModel() as model,
        OpenAI(api_key="none", base_url=model.base_url + "/v1", max_retries=0, http_client=direct) as client,
    ):
        yield client, "scripted"


@contextmanager
def gemini_model() -> Iterator[tuple[genai.Client, str]]:
    """Yield a Gemini client and the model's name; `HALO_DEMO_MODEL` chooses among the real ones."""
    if os.environ.get("GEMINI_API_KEY"):
        with genai.Client(api_key=os.environ["GEMINI_API_KEY"]) as client:
            yield client, os.environ.get("HALO_DEMO_MODEL", "gemini-flash-latest")
        return
    with ScriptedModel() as model:
        options = HttpOptions(
            base_url=model.base_url,
            retry_options=HttpRetryOptions(attempts=1),
            client_args={"trust_env": False},
        )
        with genai.Client(api_key="none", http_options=options) as client:
            yield client, "scripted"
