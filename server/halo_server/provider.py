"""Asking a model's provider through the `openai` SDK: once, within a deadline and a size, and failures by a code of ours.

A provider is whatever speaks OpenAI's HTTP API. Trying again is the queue's business. This changes when that SDK does.
"""

import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
from openai import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    DefaultHttpxClient,
    OpenAI,
    OpenAIError,
)

from halo_server.config import Endpoint
from halo_server.errors import ProviderFailed

__all__ = ["answer_of", "connect"]

_MOST_BYTES = 16 * 1024 * 1024  # a batch of the widest vectors as text is a tenth of it
_BEGAN = "halo_began"
_CODES = {401: "unauthorized", 403: "unauthorized", 408: "timeout", 429: "rate_limited"}


def connect(endpoint: Endpoint) -> OpenAI:
    """Return a client that never tries again and never waits or reads without end. Nobody has to close it."""
    hooks: dict[str, list[Callable[..., Any]]] = {"request": [_begin], "response": [_bound]}
    http = DefaultHttpxClient(event_hooks=hooks)
    # Some key must be named, even to a service that wants none; else the SDK looks for another in the environment.
    key = endpoint.api_key or "none"
    client = OpenAI(base_url=endpoint.base_url, api_key=key, max_retries=0, http_client=http)
    weakref.finalize(client, http.close)
    return client


def answer_of(ask: Callable[[], Any]) -> bytes:
    """Return the body of the answer to `ask`, a call of the client's `with_raw_response` with a timeout.

    Raises:
        ProviderFailed: timeout, unreachable, unauthorized, rate_limited, rejected (our request is at fault) or failed.
    """
    try:
        body: bytes = ask().content
    except APITimeoutError:
        raise ProviderFailed("timeout") from None
    except APIConnectionError:
        raise ProviderFailed("unreachable") from None
    except APIStatusError as error:
        raise ProviderFailed(_code(error.status_code)) from None
    except (OpenAIError, httpx2.HTTPError):
        raise ProviderFailed("failed") from None
    return body


def _code(status: int) -> str:
    return _CODES.get(status, "rejected" if status < 500 else "failed")


def _begin(request: httpx2.Request) -> None:
    request.extensions[_BEGAN] = time.monotonic()


def _bound(response: httpx2.Response) -> None:
    assert isinstance(response.stream, httpx2.SyncByteStream)  # noqa: S101 (the client is synchronous)
    response.stream = _Bounded(response.stream, response.request)


class _Bounded(httpx2.SyncByteStream):
    """A body that ends in an error once the deadline or the size is passed: the SDK's timeout is for each read alone."""

    def __init__(self, stream: httpx2.SyncByteStream, request: httpx2.Request) -> None:
        self._stream = stream
        self._ends = request.extensions[_BEGAN] + request.extensions["timeout"]["read"]

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for part in self._stream:
            size += len(part)
            if size > _MOST_BYTES:
                raise httpx2.ReadError("The answer is too large.")
            if time.monotonic() > self._ends:
                raise httpx2.ReadTimeout("The answer took too long.")
            yield part

    def close(self) -> None:
        self._stream.close()
