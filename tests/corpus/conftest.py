"""The servers of the API's tests."""

from tests.api.conftest import door, open_door

__all__ = ["door", "open_door"]
