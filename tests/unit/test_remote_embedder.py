"""What is believed of an embedding service, and what one costs that is down."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from halo_server.config import Settings
from halo_server.embedders import open_embedder
from halo_server.embedders.hashing import HashingEmbedder
from halo_server.errors import EmbedderSilent, ProviderFailed
from tests.provider import Fault, Hang, Json, Provider, Reply, embeddings

pytest.importorskip("openai", reason="pip install 'halo-memory[openai]'")

from halo_server.embedders import remote

TEXTS = ["My sister Ada plays the cello.", "The train leaves at noon."]
DIM = HashingEmbedder.dim


class _Seconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        yield server


def _opened(provider: Provider, seconds: _Seconds | None = None, **more: Any) -> remote.RemoteEmbedder:
    settings = Settings(
        embedder_model="m", embedder_base_url=provider.url, embedder_api_key=SecretStr("key-1")
    )
    assert settings.embedding
    more = {"dim": DIM, "timeout_s": 5.0, **more}
    return remote.RemoteEmbedder(settings.embedding, monotonic=seconds or _Seconds(), **more)


def _failure(embedder: remote.RemoteEmbedder) -> str:
    with pytest.raises(ProviderFailed) as caught:
        embedder.encode(TEXTS)
    assert str(caught.value) == caught.value.code
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value.code


def test_texts_go_out_in_batches_with_the_model_and_its_key_and_come_back_in_order(
    provider: Provider,
) -> None:
    texts = [f"text number {n}" for n in range(70)]

    rows = _opened(provider).encode(texts)

    np.testing.assert_allclose(rows, HashingEmbedder().encode(texts), atol=1e-6)
    assert [len(body["input"]) for body in provider.asked] == [32, 32, 6]
    assert {(body["model"], body["encoding_format"]) for body in provider.asked} == {("m", "float")}
    assert set(provider.keys) == {"Bearer key-1"}


def test_a_text_without_a_word_is_not_sent(provider: Provider) -> None:
    rows = _opened(provider).encode(["", " \n", "\0", "peanuts"])

    assert [body["input"] for body in provider.asked] == [["peanuts"]]
    assert rows.any(axis=1).tolist() == [False, False, False, True]


def test_rows_that_come_in_another_order_are_told_apart_by_their_index(provider: Provider) -> None:
    provider.reply = lambda body: {"data": embeddings(body)["data"][::-1]}

    np.testing.assert_allclose(_opened(provider).encode(TEXTS), HashingEmbedder().encode(TEXTS), atol=1e-6)


def _lie(change: Callable[[list[Json]], object]) -> Callable[[Json], Reply]:
    def reply(body: Json) -> Reply:
        data = embeddings(body)["data"]
        change(data)
        return {"data": data}

    return reply


LIES = {
    "one row too few": _lie(lambda data: data.pop()),
    "one row too many": _lie(lambda data: data.append({**data[0], "index": 2})),
    "one row twice": _lie(lambda data: data[1].update(index=0)),
    "rows without a place": _lie(lambda data: data[1].pop("index")),
    "a narrow row": _lie(lambda data: data[1]["embedding"].pop()),
    "a wide row": _lie(lambda data: data[1]["embedding"].append(1.0)),
    "no number": _lie(lambda data: data[1].update(embedding=[float("nan")] * DIM)),
    "an infinite number": _lie(lambda data: data[1].update(embedding=[float("inf")] * DIM)),
    "a number too large": _lie(lambda data: data[1].update(embedding=[1e300] * DIM)),
    "a row of zeros": _lie(lambda data: data[1].update(embedding=[0.0] * DIM)),
    "words for numbers": _lie(lambda data: data[1].update(embedding=["cello"] * DIM)),
    "another answer": lambda _: {"object": "list"},
    "no JSON": lambda _: Fault(200, b"<html>My sister Ada plays the cello.</html>"),
}


@pytest.mark.parametrize("reply", LIES.values(), ids=LIES)
def test_no_lie_is_believed(provider: Provider, reply: Callable[[Json], Reply]) -> None:
    embedder = _opened(provider)
    provider.reply = reply

    assert _failure(embedder) == "invalid"


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(500), "failed"),
        (Fault(503), "failed"),
        (Fault(429), "rate_limited"),
        (Fault(401), "unauthorized"),
        (Fault(403), "unauthorized"),
        (Fault(400), "rejected"),
        (Hang(), "timeout"),
        (Hang(dripping=True), "timeout"),
    ],
    ids=str,
)
def test_a_failure_is_told_by_its_code_and_tried_once(
    provider: Provider, fault: Fault | Hang, code: str
) -> None:
    embedder = _opened(provider, timeout_s=0.1)
    provider.reply = lambda _: fault

    assert _failure(embedder) == code
    assert len(provider.asked) == 1


def test_an_answer_without_end_is_not_read_to_its_end(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = _opened(provider)
    monkeypatch.setattr("halo_server.provider._MOST_BYTES", 1_000)

    assert _failure(embedder) == "unreachable"


def test_a_service_that_is_down_is_not_asked_again_at_once(provider: Provider) -> None:
    seconds = _Seconds()
    embedder = _opened(provider, seconds)
    provider.reply = lambda _: Fault(500)
    assert [_failure(embedder) for _ in range(3)] == ["failed", "resting", "resting"]
    assert len(provider.asked) == 1

    seconds.now += 1
    provider.reply = embeddings
    assert embedder.encode(TEXTS).any(axis=1).all()


def test_a_text_that_is_refused_is_no_sign_that_the_service_is_down(provider: Provider) -> None:
    embedder = _opened(provider)
    provider.reply = lambda _: Fault(400)

    assert [_failure(embedder) for _ in range(2)] == ["rejected", "rejected"]


def test_a_service_that_is_gone_is_unreachable() -> None:
    with Provider() as provider:
        embedder = _opened(provider)

    assert _failure(embedder) == "unreachable"


def test_the_width_of_its_vectors_is_asked_of_the_service_unless_it_is_given(provider: Provider) -> None:
    settings = Settings(embedder_model="m", embedder_base_url=provider.url)
    measured = open_embedder("remote", settings)

    assert (measured.dim, measured.id, len(provider.asked)) == (DIM, f"remote-m-{DIM}", 1)
    assert open_embedder("remote", settings.model_copy(update={"embedder_dim": 7})).dim == 7
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    "reply", [Fault(503), {"data": []}, {"data": [{"index": 0, "embedding": []}]}], ids=str
)
def test_a_service_that_does_not_say_how_wide_its_vectors_are_stops_the_start_with_the_cure(
    provider: Provider, reply: Reply
) -> None:
    provider.reply = lambda _: reply

    with pytest.raises(EmbedderSilent, match="HALO_EMBEDDER_DIM"):
        _opened(provider, dim=None)
