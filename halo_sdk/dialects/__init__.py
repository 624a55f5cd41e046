"""Name → dialect, the only registry. One more dialect is one file beside this one and one line here."""

from collections.abc import Mapping

from halo_sdk.dialects.base import Dialect
from halo_sdk.dialects.gemini import Gemini
from halo_sdk.dialects.json_schema import JsonSchema
from halo_sdk.dialects.openai import OpenAI
from halo_sdk.errors import HaloConfigError

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Gemini(),
        JsonSchema(),
        OpenAI(),
    )
}


def named(name: str) -> Dialect:
    """Return the dialect of that name.

    Raises:
        HaloConfigError: There is none.
    """
    if name not in DIALECTS:
        raise HaloConfigError(f"unknown dialect {name!r}; known are {sorted(DIALECTS)}")
    return DIALECTS[name]


def detected(reply: object) -> Dialect:
    """Return the dialect a reply is written in, by its shape.

    Raises:
        HaloConfigError: No dialect, or more than one, recognises the shape.
    """
    matches = [dialect for dialect in DIALECTS.values() if dialect.recognises(reply)]
    if len(matches) != 1:
        raise HaloConfigError(
            f"cannot tell the dialect of this reply; pass dialect= one of {sorted(DIALECTS)}"
        )
    return matches[0]
