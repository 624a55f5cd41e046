"""Vectors that come later: nothing waits for them, nothing is lost without them, and once they are there all is as if at once."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from halo_server import embedded
from halo_server.app import create_app, open_memory
from halo_server.config import Settings
from halo_server.embedders.hashing import HashingEmbedder
from tests.api.door import API, PROJECT, USER, Door
from tests.memory import FrozenClock
from tests.provider import Fault, Hang, Provider, Reply, embeddings

pytest.importorskip("openai", reason="pip install 'halo-memory[openai]'")

CELLO = "My sister Ada plays the cello."
TRAIN = "The train to Lisbon leaves at noon."


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        yield server


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def door(open_door: Callable[..., Door], provider: Provider, clock: FrozenClock) -> Door:
    """A server whose embedder is elsewhere."""
    return open_door(
        clock=clock,
        embedder="remote",
        embedder_model="m",
        embedder_base_url=provider.url,
        embedder_dim=HashingEmbedder.dim,
        embedder_timeout_s=0.2,
    )


def _shape(door: Door, user: str = USER) -> list[tuple[str, int]]:
    """Return each topic's key and how many exchanges it has."""
    topics = door.send("GET", f"{API}/projects/{PROJECT}/scopes/{user}/topics").json()["topics"]
    return [(topic["topicKey"], topic["rawCount"]) for topic in topics]


def _vectors(door: Door) -> int:
    return len(door.dump()["vectors"])


def test_a_capture_asks_no_service_and_is_found_by_its_words_at_once(door: Door, provider: Provider) -> None:
    provider.reply = lambda _: Hang()
    receipt = door.capture(CELLO)

    assert (receipt["index"], provider.asked) == ("pending", [])
    found = door.retrieve("cello")
    assert [entry["id"] for entry in found["rawEntries"]] == [receipt["rawEntryId"]]
    assert found["degraded"] == ["embedder"]
    assert _vectors(door) == 0


def test_once_the_vectors_came_memory_is_as_if_they_had_been_there_at_once(
    door: Door, open_door: Callable[..., Door]
) -> None:
    local = open_door(embedder="hashing", clock=FrozenClock())
    turns = [CELLO, TRAIN, f"{CELLO} Every day.", "Which train to Lisbon leaves at noon?", "?!"]
    for memory in (door, local):
        for text in turns:
            memory.capture(text, None)
    assert _shape(door) == [("notes", len(turns))]
    assert door.memory.worker.drain() == len(turns)

    assert sorted(_shape(door)) == sorted(_shape(local))
    assert len(_shape(door)) > 2
    for query in ("cello", "train to Lisbon"):
        answers = [memory.retrieve(query) for memory in (door, local)]
        texts = [[entry["requestRaw"] for entry in answer["rawEntries"]] for answer in answers]
        assert texts[0] == texts[1]
        assert "degraded" not in answers[0]
    assert door.memory.worker.count() == (0, 0)
    assert door.memory.worker.drain() == 0


def test_a_search_before_and_after_shows_both_moments(door: Door) -> None:
    receipt = door.capture(CELLO)
    before = door.retrieve("cello")
    door.memory.worker.drain()
    after = door.retrieve("cello")

    assert [answer["rawEntries"][0]["id"] for answer in (before, after)] == [receipt["rawEntryId"]] * 2
    assert before["selectedTopicKeys"] == ["notes"] != after["selectedTopicKeys"]


def test_a_retry_says_whether_the_vectors_are_there_by_now(door: Door) -> None:
    said = {"idempotency_key": "turn-1"}
    assert door.capture(CELLO, **said)["index"] == "pending"
    again = door.capture(CELLO, **said)
    assert (again["index"], again["duplicate"]) == ("pending", True)
    assert door.memory.worker.drain() == 1
    assert door.capture(CELLO, **said)["index"] == "ready"


@pytest.mark.parametrize("reply", [Fault(500), Fault(429), Hang(), {"data": []}], ids=str)
def test_a_service_that_fails_is_asked_again_until_it_does_its_work(
    door: Door, provider: Provider, clock: FrozenClock, reply: Reply
) -> None:
    provider.reply = lambda _: reply
    door.capture(CELLO)
    assert door.memory.worker.drain() == 1
    assert door.memory.worker.count() == (1, 0)
    assert len(provider.asked) == 1
    assert CELLO not in repr(door.dump()["jobs"])

    provider.reply = embeddings
    door.memory.services.capture.embedder._circuit.succeeded()  # it has rested
    clock.now += 3_600_000
    assert door.memory.worker.drain() == 1
    assert (door.memory.worker.count(), _vectors(door)) == ((0, 0), 2)


def test_what_was_forgotten_meanwhile_is_not_asked_for_and_stays_forgotten(
    door: Door, provider: Provider
) -> None:
    receipt = door.capture(CELLO)
    body = {"projectKey": PROJECT, "endUserKey": USER, "target": "raw", "rawEntryId": receipt["rawEntryId"]}
    assert door.send("POST", f"{API}/delete", body).status_code == 202

    assert door.memory.worker.drain() == 1
    assert (provider.asked, _vectors(door), door.memory.worker.count()) == ([], 0, (0, 0))


def test_what_is_forgotten_while_its_vectors_are_on_their_way_stays_forgotten(
    door: Door, provider: Provider
) -> None:
    door.capture(TRAIN)
    receipt = door.capture(CELLO)

    def forgetting(body: dict[str, Any]) -> Reply:
        if CELLO in body["input"]:
            scope = door.memory.services.inventory.store.read(
                lambda tx: tx.scope_of(PROJECT, receipt["rawEntryId"])
            )
            door.memory.services.forget.exchange(scope, receipt["rawEntryId"])
        return embeddings(body)

    provider.reply = forgetting
    assert door.memory.worker.drain() == 2
    assert (_vectors(door), len(_shape(door))) == (2, 1)
    assert CELLO not in repr(door.dump())


@pytest.mark.parametrize("many", [1, 70])
def test_a_job_that_another_worker_took_meanwhile_changes_nothing(
    door: Door, provider: Provider, clock: FrozenClock, many: int
) -> None:
    door.capture([{"role": "user", "content": f"{CELLO} {n}"} for n in range(many)], None)

    def overtaken(body: dict[str, Any]) -> Reply:
        provider.reply = embeddings
        clock.now += 10 * 60_000
        assert door.memory.worker.drain() == 1
        return embeddings(body)

    provider.reply = overtaken
    assert door.memory.worker.drain() == 1
    assert (_vectors(door), [size for _, size in _shape(door)]) == (many, [1])
    assert door.memory.worker.count() == (0, 0)


def test_a_thread_goes_on_where_it_was_when_its_vectors_come_late(door: Door) -> None:
    history = [{"role": "user", "content": CELLO}]
    door.capture(history, "How lovely.")
    door.memory.worker.drain()
    [(key, _)] = _shape(door)
    history += [
        {"role": "assistant", "content": "How lovely."},
        {"role": "user", "content": "Ada is good at it."},
    ]
    assert door.capture(history, None)["topicKeys"] == [key]
    door.memory.worker.drain()

    assert _shape(door) == [(key, 2)]
    for said in ((CELLO, "How lovely."), ("Ada is good at it.", None)):  # apart, they are two topics
        door.capture(*said, user="other")
    door.memory.worker.drain()
    assert [size for _, size in _shape(door, "other")] == [1, 1]


def test_a_dead_service_costs_a_retrieval_one_short_wait_and_the_next_none(
    door: Door, provider: Provider
) -> None:
    receipt = door.capture(CELLO)
    provider.reply = lambda _: Hang()
    answers = [door.retrieve(query) for query in ("cello", "the cello", "sister Ada")]

    assert len(provider.asked) == 1
    assert {answer["rawEntries"][0]["id"] for answer in answers} == {receipt["rawEntryId"]}
    assert [answer["degraded"] for answer in answers] == [["embedder"]] * 3
    assert door.send("GET", "/readyz", key=None).json()["degraded"] == ["embedder"]


# -- a local embedder --------------------------------------------------------------------------------------------------


class _Raising(HashingEmbedder):
    """A local model that is broken for a while."""

    broken = True

    def encode(self, texts: Any) -> Any:
        if self.broken:
            raise MemoryError(texts[0])
        return super().encode(texts)


@pytest.fixture
def raising(open_door: Callable[..., Door], monkeypatch: pytest.MonkeyPatch) -> tuple[Door, _Raising]:
    embedder = _Raising()
    monkeypatch.setattr("halo_server.app.open_embedder", lambda *_: embedder)
    return open_door(clock=FrozenClock()), embedder


def test_a_local_embedder_that_raises_loses_no_capture(raising: tuple[Door, _Raising]) -> None:
    door, embedder = raising
    receipt = door.capture(CELLO, None)
    found = door.retrieve("cello")
    assert (receipt["index"], found["rawEntries"][0]["id"]) == ("pending", receipt["rawEntryId"])
    assert found["degraded"] == ["embedder"]

    assert door.capture("?!", None, user="other")["index"] == "pending"
    embedder.broken = False
    assert door.capture(TRAIN, None)["index"] == "ready"
    assert door.memory.worker.drain() == 2
    assert ([size for _, size in _shape(door)], _vectors(door)) == ([1, 1], 2)
    assert _shape(door, "other") == [
        ("notes", 1)
    ]  # it says nothing: it has no vector and no topic of its own
    assert "degraded" not in door.retrieve("the cello")


def test_a_local_embedder_that_works_leaves_nothing_for_later(open_door: Callable[..., Door]) -> None:
    door = open_door()

    assert (door.capture(CELLO)["index"], door.memory.worker.count()) == ("ready", (0, 0))


# -- what an operator sees ---------------------------------------------------------------------------------------------


def test_the_metrics_count_jobs_and_why_they_failed(door: Door, provider: Provider) -> None:
    provider.reply = lambda _: Fault(429)
    door.capture(CELLO)
    door.memory.worker.drain()
    shown = door.send("GET", "/metrics", key=door.new_key(admin=True)).text

    assert "halo_jobs 1.0" in shown
    assert "halo_jobs_dead 0.0" in shown
    assert 'halo_job_failures_total{code="rate_limited",kind="embed"} 1.0' in shown
    assert "cello" not in shown


# -- who does the work -------------------------------------------------------------------------------------------------


def _settings(provider: Provider, data: Path) -> Settings:
    return Settings(
        data=data,
        embedder="remote",
        embedder_model="m",
        embedder_base_url=provider.url,
        embedder_dim=HashingEmbedder.dim,
    )


def _left(settings: Settings) -> tuple[int, int]:
    memory = open_memory(settings)
    try:
        return memory.worker.count()
    finally:
        memory.close()


def test_inside_a_process_the_work_is_done_beside_it(provider: Provider, tmp_path: Path) -> None:
    asked = Event()

    def reply(body: dict[str, Any]) -> Reply:
        asked.set()
        return embeddings(body)

    provider.reply = reply
    settings = _settings(provider, tmp_path)
    with embedded(tmp_path, settings=settings) as client:
        sent = {"projectKey": client.halo_project, "endUserKey": USER, "response": CELLO, "sessionData": {}}
        assert client.post(f"{API}/capture", json=sent).json()["index"] == "pending"
        assert asked.wait(30)

    assert _left(settings) == (0, 0)


def test_a_server_takes_up_what_its_last_process_left(provider: Provider, tmp_path: Path) -> None:
    settings = _settings(provider, tmp_path)
    door = Door(**settings.model_dump(include=settings.model_fields_set))
    door.capture(CELLO)
    door.close()
    assert _left(settings) == (1, 0)
    asked = Event()

    def reply(body: dict[str, Any]) -> Reply:
        asked.set()
        return embeddings(body)

    provider.reply = reply
    app = create_app(open_memory(settings))

    async def live() -> bool:
        async with app.router.lifespan_context(app):
            return await asyncio.to_thread(asked.wait, 30)

    assert asyncio.run(live())
    assert _left(settings) == (0, 0)
