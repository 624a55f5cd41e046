"""Short name → function, the only registry. One more function is one file beside this one and one line here."""

from collections.abc import Mapping, Sequence

from halo_sdk.errors import HaloConfigError
from halo_sdk.functions.base import Function
from halo_sdk.functions.capture import Capture
from halo_sdk.functions.retrieve import Retrieve

FUNCTIONS: Mapping[str, Function] = {function.key: function for function in (Retrieve(), Capture())}


def enabled(names: Sequence[str]) -> tuple[Function, ...]:
    """Return the functions an application enabled, in its order.

    Raises:
        HaloConfigError: A name is unknown.
    """
    if unknown := [name for name in names if name not in FUNCTIONS]:
        raise HaloConfigError(f"unknown tools {unknown}; known are {sorted(FUNCTIONS)}")
    return tuple(FUNCTIONS[name] for name in dict.fromkeys(names))
