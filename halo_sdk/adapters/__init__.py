"""Framework → adapter, the only registry. One more framework is one file beside this one and one line here.

Adapters are imported when they are asked for: none of the frameworks is needed by anything else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from halo_sdk.errors import HaloConfigError


@dataclass(frozen=True, slots=True)
class _Adapter:
    """Where an adapter lives, and what must be installed for it.

    Attributes:
        module: Its module; it imports the framework at its top and has a function `tools`.
        packages: The top-level packages it needs.
        extra: The extra of this distribution that installs them.
    """

    module: str
    packages: frozenset[str]
    extra: str


def _adapter(extra: str, module: str, *packages: str) -> _Adapter:
    return _Adapter(f"halo_sdk.adapters.{module}", frozenset(packages), extra)


_ADAPTERS: Mapping[str, _Adapter] = {
    adapter.extra: adapter
    for adapter in (
        _adapter("anthropic", "anthropic", "anthropic"),
        _adapter("gemini", "gemini"),
        _adapter("langchain", "langchain", "langchain_core"),
        _adapter("llama-index", "llama_index", "llama_index"),
        _adapter("mcp", "mcp", "mcp", "mcp_types"),
        _adapter("openai-agents", "openai_agents", "agents"),
        _adapter("pydantic-ai", "pydantic_ai", "pydantic_ai"),
    )
}


def load(framework: str) -> Any:
    """Return the adapter's module.

    Raises:
        HaloConfigError: The framework is not installed; the message says how to install it.
    """
    adapter = _ADAPTERS[framework]
    try:
        return import_module(adapter.module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in adapter.packages:
            raise
        raise HaloConfigError(
            f"{error.name} is not installed; run: pip install 'halo-memory[{adapter.extra}]'"
        ) from error
