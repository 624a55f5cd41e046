"""Name → embedder: the only registry."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from halo_server.config import Settings
from halo_server.embedders.base import Embedder
from halo_server.errors import EmbedderUnnamed

__all__ = ["NAMES", "open_embedder"]

_MULTILINGUAL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
"""50 languages, 384 dimensions, Apache-2.0; both local libraries know it by this name."""


def _use(_settings: Settings) -> Embedder:
    return _module("use").UseEmbedder()  # type: ignore[no-any-return]


def _hashing(_settings: Settings) -> Embedder:
    return _module("hashing").HashingEmbedder()  # type: ignore[no-any-return]


def _remote(settings: Settings) -> Embedder:
    if not settings.embedding:
        raise EmbedderUnnamed
    kind = _module("remote", "openai").RemoteEmbedder
    dim, timeout_s = settings.embedder_dim, settings.embedder_timeout_s
    return kind(settings.embedding, dim=dim, timeout_s=timeout_s)  # type: ignore[no-any-return]


def _fastembed(settings: Settings) -> Embedder:
    kind = _module("fastembed", "fastembed").FastEmbedEmbedder
    return kind(settings.embedder_model or _MULTILINGUAL)  # type: ignore[no-any-return]


def _sentence_transformers(settings: Settings) -> Embedder:
    kind = _module("sentence_transformers", "sentence-transformers").SentenceTransformersEmbedder
    return kind(settings.embedder_model or _MULTILINGUAL)  # type: ignore[no-any-return]


_OPENERS: dict[str, Callable[[Settings], Embedder]] = {
    "use": _use,
    "hashing": _hashing,
    "remote": _remote,
    "fastembed": _fastembed,
    "sentence-transformers": _sentence_transformers,
}

NAMES = tuple(_OPENERS)


def open_embedder(name: str, settings: Settings | None = None) -> Embedder:
    """Return the embedder called `name`; its model and where it is reached are in the settings, if it needs them.

    Raises:
        ImportError: The package it needs is not installed; the message says how to get it.
        halo_server.embedders.use.WeightsChangedError: Its weights are not the pinned ones.
        EmbedderUnnamed, EmbedderSilent: The remote one lacks a model, or does not answer and nobody said how wide it is.
    """
    return _OPENERS[name](settings or Settings.model_construct())


def _module(name: str, extra: str | None = None) -> ModuleType:
    try:
        return import_module(f"halo_server.embedders.{name}")
    except ImportError as error:
        if extra is None:
            raise
        cure = f"pip install 'halo-memory[{extra}]'"
        raise ImportError(f"The embedder {name} needs another package: {cure}") from error
