"""Frameworks are loaded when they are asked for, and one that is missing says how to get it."""

import subprocess
import sys

import pytest

from halo_sdk import HaloConfigError

METHODS = {
    "anthropic": ("anthropic_tools_runnable", "anthropic"),
    "langchain": ("langchain_tools", "langchain_core"),
    "llama-index": ("llama_index_tools", "llama_index"),
    "mcp": ("mcp_server", "mcp"),
    "openai-agents": ("openai_agents_tools", "agents"),
    "pydantic-ai": ("pydantic_ai_toolset", "pydantic_ai"),
}


@pytest.mark.parametrize(("extra", "method", "package"), [(extra, *each) for extra, each in METHODS.items()])
def test_a_missing_framework_says_how_to_install_it(memory, monkeypatch, extra, method, package):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"halo_sdk.adapters.{extra.replace('-', '_')}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(HaloConfigError, match=rf"not installed; run: pip install 'halo-memory\[{extra}\]'"):
        getattr(memory, method)()


def test_something_missing_inside_a_framework_is_not_taken_for_the_framework(memory, monkeypatch):
    monkeypatch.delitem(sys.modules, "halo_sdk.adapters.langchain", raising=False)
    monkeypatch.setitem(sys.modules, "halo_sdk.adapters.base", None)
    with pytest.raises(ModuleNotFoundError, match="halo_sdk"):
        memory.langchain_tools()


def test_importing_the_package_imports_no_framework():
    packages = {package for _, package in METHODS.values()} | {"google.genai", "openai"}
    program = f"import halo_sdk, sys; print({packages!r} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


def test_functions_for_gemini_need_no_framework_and_are_signed(memory):
    (function,) = memory.gemini_callables()
    assert (function.__name__, function.__doc__) == (
        "halo_retrieve_end_user_memory",
        "Retrieve relevant long-term memory for this end user.",
    )
    assert function.__annotations__ == {
        "sessionData": dict[str, object],
        "query": str | None,
        "limit": int | float | None,
    }
