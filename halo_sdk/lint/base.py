"""What the checks of tools and of histories share: how a fault is told, and which dialects there are.

What a user of `lint` reads in a fault changes this file.
"""

from dataclasses import dataclass

from halo_sdk.dialects import DIALECTS, named
from halo_sdk.dialects.base import Dialect
from halo_sdk.errors import HaloConfigError


@dataclass(frozen=True, slots=True)
class Fault:
    """Something a provider refuses, or silently changes.

    Attributes:
        code: A stable word for what is wrong.
        where: The path within the function or its schema, such as `properties.limit.type`, after `[1]` in a tool of several
            functions; the message's place in a history; empty for a tool as a whole.
        message: What to do about it.
    """

    code: str
    where: str
    message: str


def known(dialect: str) -> Dialect:
    """Return the dialect of that name.

    Raises:
        HaloConfigError: There is none.
    """
    if not isinstance(dialect, str):
        raise HaloConfigError(f"a dialect is named by text; known are {sorted(DIALECTS)}")
    return named(dialect)


def under(where: str, step: str) -> str:
    """Return the path of what is one step further in."""
    return f"{where}.{step}" if where and step else where or step
