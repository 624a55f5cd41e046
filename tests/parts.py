"""Optional parts of the suite: a part that is missing skips its tests and says how to get it, except where all are asked for."""

import os

import pytest

_ALL = os.environ.get("HALO_REQUIRE_ALL") == "1"  # read before the tests scrub HALO_* from the environment


def require(part: str, present: object, cure: str) -> None:
    """Go on if `present`; otherwise skip, or fail under HALO_REQUIRE_ALL=1.

    Args:
        part: What is needed, in words.
        present: Truthy when it is there.
        cure: How to get it.
    """
    if present:
        return
    message = f"{part} is missing: {cure}"
    if _ALL:
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
