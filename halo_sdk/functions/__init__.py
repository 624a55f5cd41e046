"""Short name → function, the only registry. One more function is one file beside this one and one line here."""

from collections.abc import Mapping, Sequence
from functools import cache

from halo_sdk.dialects import DIALECTS
from halo_sdk.errors import HaloConfigError
from halo_sdk.functions.base import Function, SessionSource
from halo_sdk.functions.capture import Capture
from halo_sdk.functions.retrieve import Retrieve
from halo_sdk.lint import lint

FUNCTIONS: Mapping[str, Function] = {function.key: function for function in (Retrieve(), Capture())}


def enabled(names: Sequence[str], session: SessionSource) -> tuple[Function, ...]:
    """Return the functions an application enabled, in its order.

    Raises:
        HaloConfigError: A name is unknown, or a provider would refuse a declaration.
    """
    if unknown := [name for name in names if name not in FUNCTIONS]:
        raise HaloConfigError(f"unknown tools {unknown}; known are {sorted(FUNCTIONS)}")
    functions = tuple(FUNCTIONS[name] for name in dict.fromkeys(names))
    for function in functions:
        _check(function, session)
    return functions


@cache
def _check(function: Function, session: SessionSource) -> None:
    """Refuse a declaration here rather than with a whole request of the application's, and look only once."""
    for dialect in DIALECTS:
        for strict in {False, session == "app"}:
            faults = lint(function.declaration(session, strict=strict), dialect)
            if faults:
                raise HaloConfigError(f"{function.name} cannot be declared: {faults[0]}")
