"""Settings → LLM: the only registry. There is one kind, since whoever offers a model also offers OpenAI's API to it."""

from importlib import import_module

from halo_server.config import Endpoint
from halo_server.llms.base import LLM

__all__ = ["open_llm"]


def open_llm(endpoint: Endpoint, timeout_s: float) -> LLM:
    """Return the model behind the endpoint.

    Raises:
        ImportError: The `openai` package is not installed; the message says how to get it.
    """
    try:
        module = import_module("halo_server.llms.openai_compatible")
    except ImportError as error:
        raise ImportError("An LLM needs another package: pip install 'halo-memory[openai]'") from error
    return module.OpenAICompatible(endpoint, timeout_s)  # type: ignore[no-any-return]
