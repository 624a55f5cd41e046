"""Name → embedder: the only registry."""

from collections.abc import Callable
from importlib import import_module

from halo_server.embedders.base import Embedder

__all__ = ["NAMES", "open_embedder"]


def _use() -> Embedder:
    return import_module("halo_server.embedders.use").UseEmbedder()  # type: ignore[no-any-return]


def _hashing() -> Embedder:
    return import_module("halo_server.embedders.hashing").HashingEmbedder()  # type: ignore[no-any-return]


_OPENERS: dict[str, Callable[[], Embedder]] = {"use": _use, "hashing": _hashing}

NAMES = tuple(_OPENERS)


def open_embedder(name: str) -> Embedder:
    """Return the embedder called `name`.

    Raises:
        ImportError: The package it needs is not installed.
        halo_server.embedders.use.WeightsChangedError: Its weights are not the pinned ones.
    """
    return _OPENERS[name]()
