"""What a provider would refuse in a tool or a history, said before it is sent.

Providers refuse a whole request for one bad tool, often in words that name neither the tool nor the cure. A tool is read
(`reading`), then every rule of one table that holds for its provider is asked (`rules`); histories are checked apart (`history`).
"""

from collections.abc import Mapping
from typing import Any

from halo_sdk._plain import plain
from halo_sdk.dialects.base import Dialect, mapping
from halo_sdk.lint.base import Fault, known, under
from halo_sdk.lint.history import lint_history
from halo_sdk.lint.reading import GEMINI_PARAMETERS, is_of_another_kind, is_several, looks_like, read, split
from halo_sdk.lint.rules import RULES, Rule

__all__ = ["GEMINI_PARAMETERS", "RULES", "Fault", "Rule", "lint", "lint_history"]


def lint(tool: object, dialect: str) -> list[Fault]:
    """Return what a provider would refuse in a tool; empty when nothing is known against it.

    A tool that declares no function by design, such as a provider's own, has nothing to check.

    Args:
        tool: One element of the provider's `tools`, as a dict or its SDK's object, or a neutral
            `{"name", "description", "parameters"}`, which is checked as HALO would declare it. For Gemini, one whose types are
            in capitals is taken for Gemini's own declaration, and checked as it stands.
        dialect: Name of the provider's dialect.

    Raises:
        HaloConfigError: The dialect is unknown.
    """
    spoken = known(dialect)
    given = plain(tool)
    if is_several(given):
        return [Fault("not_one_tool", "", "`lint` takes one element of `tools`: call it for each")]
    singles = split(mapping(given), spoken)
    return [
        fault
        for index, single in enumerate(singles)
        for fault in _faults(single, spoken, f"[{index}]" if len(singles) > 1 else "")
    ]


def _faults(tool: Mapping[str, Any], dialect: Dialect, where: str) -> list[Fault]:
    """Return what is wrong with a tool of one function, which stands at that place."""
    told = read(tool, dialect)
    if told is not None:
        return [
            Fault(rule.code, under(where, within), message)
            for rule in RULES
            if rule.holds(told)
            for within, message in rule.check(told)
        ]
    if is_of_another_kind(tool, dialect):
        return []
    message = f"no function of {dialect.name!r} is declared in this tool"
    other = looks_like(tool, dialect)
    hint = f"; this looks like a tool for {other!r}" if other else ""
    return [Fault("no_function", where, message + hint)]
