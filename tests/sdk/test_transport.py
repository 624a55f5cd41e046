"""How requests reach the service, and for how long we try."""

import asyncio
import email.utils
import os
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from halo_sdk import (
    AsyncHalo,
    BadRequestError,
    ConflictError,
    Halo,
    HaloConnectionError,
    HaloResponseError,
    HaloStatusError,
    HaloTimeoutError,
    NotFoundError,
    PayloadTooLargeError,
    RateLimitError,
    ServerError,
)
from halo_sdk._transport import MAX_REPLY_BYTES
from tests.sdk.fakes import FOUND, FUNCTION_URL, KEY, async_memory, json_response, sent, with_time


def replies(service, *answers):
    service["function"].mock(side_effect=list(answers))


class Dripping(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that takes its time."""

    def __init__(self, time, seconds=3.0):
        self.time = time
        self.seconds = seconds
        self.closed = False

    def __iter__(self):
        while True:
            self.time.now += self.seconds
            yield b" "

    async def __aiter__(self):
        for chunk in self:
            yield chunk

    def close(self):
        self.closed = True

    async def aclose(self):
        self.closed = True


class Cut(httpx.SyncByteStream):
    """A body that ends before it should."""

    def __iter__(self):
        yield b'{"functionResponse"'
        raise httpx.RemoteProtocolError("peer closed connection")


def test_a_service_that_comes_back_is_asked_again(service, memory, time):
    replies(service, json_response(503), httpx.ConnectError("x"), json_response(200, FOUND))
    assert memory.retrieve("hi").request_id == "req_1"
    assert time.slept == [0.5, 1.0]


def test_waiting_is_spread_by_chance_so_that_clients_do_not_come_back_together(service, make, time):
    client = make()
    object.__setattr__(client._transport.policy, "chance", lambda: 0.25)
    replies(service, json_response(500), json_response(200, FOUND))
    client.for_user("u").retrieve("hi")
    assert time.slept == [0.125]


@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5),
        ({"Retry-After": "soon"}, 0.5),
        ({"Retry-After": "-1"}, 0.5),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_a_service_that_asks_for_time_gets_it(service, memory, time, headers, waited):
    replies(service, json_response(429, {"error": "slow down"}, **headers), json_response(200, FOUND))
    memory.retrieve("hi")
    assert time.slept == [waited]


def test_a_date_to_come_back_at_is_understood(service, memory, time):
    when = email.utils.format_datetime(datetime.now(UTC) + timedelta(seconds=5), usegmt=True)
    replies(service, json_response(503, **{"Retry-After": when}), json_response(200, FOUND))
    memory.retrieve("hi")
    assert 3 <= time.slept[0] <= 5


def test_fc60_a_wait_beyond_the_call_s_time_is_not_begun(service, memory, time):
    replies(service, json_response(429, {"error": "slow down"}, **{"Retry-After": "30"}))
    with pytest.raises(RateLimitError) as caught:
        memory.retrieve("hi")
    assert caught.value.retry_after == 30
    assert time.slept == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, BadRequestError), (404, NotFoundError), (413, PayloadTooLargeError), (418, HaloStatusError)],
)
def test_a_request_that_cannot_succeed_is_sent_once(service, memory, status, kind):
    service["function"].respond(status, json={"error": "no", "code": "NO", "requestId": "req_9"})
    with pytest.raises(kind) as caught:
        memory.retrieve("hi")
    assert service["function"].call_count == 1
    assert type(caught.value) is kind
    assert str(caught.value) == f"{status} NO: no (request req_9)"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(408, HaloStatusError), (409, ConflictError), (425, HaloStatusError), (502, ServerError)],
)
def test_a_request_that_may_succeed_later_is_sent_again_but_not_for_ever(service, memory, status, kind):
    service["function"].respond(status, text="<html>")
    with pytest.raises(kind, match=f"^{status}: the service gave no reason$") as caught:
        memory.retrieve("hi")
    assert service["function"].call_count == 3
    assert caught.value.body == "<html>"


def test_no_retries_means_none(service, make):
    service["function"].respond(503)
    with pytest.raises(ServerError):
        make(max_retries=0).for_user("u").retrieve("hi")
    assert service["function"].call_count == 1


def test_the_time_of_a_call_covers_its_retries(service, make, time):
    def slow(request: httpx.Request) -> httpx.Response:
        time.now += request.extensions["timeout"]["read"]
        raise httpx.ReadTimeout("slow", request=request)

    service["function"].mock(side_effect=slow)
    started = time.now
    with pytest.raises(HaloTimeoutError, match="within 4 s"):
        make(timeout=4.0, max_retries=9).for_user("u").retrieve("hi")
    assert time.now - started == 4
    assert service["function"].call_count == 1


def test_a_body_that_drips_is_given_up_when_time_is_up(service, memory, time):
    stream = Dripping(time)
    service["function"].mock(return_value=httpx.Response(200, stream=stream))
    with pytest.raises(HaloTimeoutError):
        memory.retrieve("hi")
    assert time.now <= 1_000 + 10 + 3
    assert stream.closed


def test_a_body_that_drips_is_given_up_by_the_asynchronous_client_too(service, time):
    stream = Dripping(time)
    service["function"].mock(return_value=httpx.Response(200, stream=stream))

    async def run():
        client, memory = async_memory(time)
        async with client:
            await memory.retrieve("hi")

    with pytest.raises(HaloTimeoutError):
        asyncio.run(run())
    assert stream.closed


def test_a_service_that_never_answers_is_given_up(time):
    class Silent:
        def build_request(self, *args: Any, **options: Any) -> None:
            return None

        async def send(self, request: Any, **options: Any) -> None:
            await asyncio.Event().wait()

    async def run():
        client = AsyncHalo(KEY, project_key="p", http_client=Silent(), timeout=0.01, max_retries=0)
        await client.for_user("u").retrieve("hi")

    with pytest.raises(HaloTimeoutError):
        asyncio.run(run())


def test_a_body_cut_short_is_asked_for_again(service, memory):
    replies(service, httpx.Response(200, stream=Cut()), json_response(200, FOUND))
    assert memory.retrieve("hi").request_id == "req_1"


@pytest.mark.parametrize("body", [b"<html>", b"", b"\xff\xfe", b'{"a":NaN}', b"[" * 100_000, b"[]", b"null"])
def test_success_that_cannot_be_read_is_not_asked_for_again(service, memory, body):
    service["function"].respond(200, content=body)
    with pytest.raises(HaloResponseError):
        memory.retrieve("hi")
    assert service["function"].call_count == 1


def test_an_answer_of_unexpected_types_names_the_fields_and_not_their_values(service, memory):
    service["function"].respond(json={"topics": "secret", "functionResponse": {"truncated": []}})
    with pytest.raises(HaloResponseError, match="functionResponse, topics") as caught:
        memory.retrieve("hi")
    assert "secret" not in str(caught.value)


def test_an_answer_too_large_is_not_read_to_its_end(service, memory):
    class Endless(httpx.SyncByteStream):
        read = 0

        def __iter__(self):
            while True:
                self.read += 1
                yield b" " * 1_000_000

    stream = Endless()
    service["function"].mock(return_value=httpx.Response(200, stream=stream))
    with pytest.raises(HaloResponseError, match=str(MAX_REPLY_BYTES)):
        memory.retrieve("hi")
    assert stream.read == 9


@pytest.mark.parametrize("handed_in", [False, True])
def test_a_redirect_is_not_followed_because_the_key_would_travel_along(service, make, handed_in):
    elsewhere = service.post("https://elsewhere.example/").respond(json=FOUND)
    service["function"].respond(307, headers={"Location": "https://elsewhere.example/"})
    with httpx.Client(follow_redirects=True) as http_client:
        memory = make(**({"http_client": http_client} if handed_in else {})).for_user("u")
        with pytest.raises(HaloStatusError, match="307"):
            memory.retrieve("hi")
    assert not elsewhere.called


def test_requests_say_who_asks_and_what_they_accept(service, make):
    make(default_headers={"X-App": "a", "Authorization": "other"}).for_user("u").retrieve("hi")
    headers = service["function"].calls.last.request.headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["x-app"] == "a"
    assert headers["accept-encoding"] == "identity"
    assert headers["content-type"] == "application/json"
    assert headers["user-agent"].startswith("halo-memory-python/")


def test_an_address_may_have_a_path(service, make):
    route = service.post("https://memory.example/team/api/v1/memory/functions/halo_retrieve_end_user_memory")
    route.respond(json=FOUND)
    make(base_url="https://memory.example/team/").for_user("u").retrieve("hi")
    assert route.called


def test_a_key_echoed_by_a_gateway_does_not_reach_a_message(service, memory):
    service["function"].respond(
        400, json={"error": f"bad header Bearer abc; key {KEY}", "code": KEY, "requestId": KEY}
    )
    with pytest.raises(BadRequestError) as caught:
        memory.retrieve("hi")
    assert KEY not in f"{caught.value} {caught.value!r}"
    assert "abc" not in str(caught.value)


class Answer:
    """A response of an HTTP library we never heard of."""

    status_code = 200
    headers = {"X-Request-Id": "req_duck"}  # noqa: RUF012
    closed = False

    def iter_bytes(self):
        yield b'{"functionResponse":{"rawEntries":[]}}'

    def close(self):
        self.closed = True


class Duck:
    """A client of that library."""

    def __init__(self, answer: Any):
        self.answer = answer
        self.closed = False

    def build_request(self, method, url, *, content, headers, timeout):
        return method, url, content, headers, timeout

    def send(self, request, *, stream, follow_redirects):
        assert (stream, follow_redirects) == (True, False)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self):
        self.closed = True


def test_fc65_a_client_handed_in_needs_only_to_work_like_one_and_is_never_closed():
    duck = Duck(Answer())
    with Halo(project_key="p", http_client=duck) as client:
        assert client.for_user("u").retrieve("hi").request_id == "req_duck"
    assert duck.answer.closed
    assert not duck.closed


def test_fc66_failures_of_the_other_http_library_are_ours_too(time):
    other = pytest.importorskip("httpx2")
    for error, kind in (
        (other.ReadTimeout("x"), HaloTimeoutError),
        (other.ConnectError("x"), HaloConnectionError),
    ):
        memory = with_time(Halo(project_key="p", http_client=Duck(error)), time).for_user("u")
        with pytest.raises(kind):
            memory.retrieve("hi")


def test_a_client_handed_in_may_authorise_itself(service):
    with httpx.Client(headers={"Authorization": "Bearer theirs"}) as http_client:
        Halo(project_key="p", http_client=http_client).for_user("u").retrieve("hi")
    assert service["function"].calls.last.request.headers["authorization"] == "Bearer theirs"


def test_an_asynchronous_client_handed_in_stays_open(service):
    async def run():
        async with httpx.AsyncClient() as http_client:
            async with AsyncHalo(KEY, project_key="p", http_client=http_client) as client:
                await client.for_user("u").retrieve("hi")
            assert not http_client.is_closed

    asyncio.run(run())
    assert service["function"].called


def test_fc61_connections_are_opened_once_and_again_after_a_close(service, make):
    client = make()
    memory = client.for_user("u")
    memory.retrieve("hi")
    first = client._transport._connections._own
    memory.retrieve("hi")
    assert client._transport._connections._own is first
    client.close()
    assert first.is_closed
    memory.retrieve("hi")
    assert client._transport._connections._own is not first


def test_fc67_a_forked_child_opens_connections_of_its_own_and_leaves_the_parent_s_open(
    service, make, monkeypatch
):
    client = make()
    memory = client.for_user("u")
    memory.retrieve("hi")
    parents = client._transport._connections._own
    monkeypatch.setattr(os, "getpid", lambda: -1)
    memory.retrieve("hi")
    assert client._transport._connections._own is not parents
    monkeypatch.undo()
    client.close()
    assert not parents.is_closed
    parents.close()


def test_fc62_each_event_loop_has_connections_of_its_own(service, time, monkeypatch):
    client, memory = async_memory(time)
    used = []

    async def run(*, close: bool = False):
        await memory.retrieve("hi")
        await memory.retrieve("hi")
        (own,) = client._transport._connections._own.values()
        used.append(own)
        if close:
            await client.aclose()

    with asyncio.Runner() as runner:
        runner.run(run())
        loop = runner.get_loop()
    asyncio.run(run())
    assert loop.is_closed()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    asyncio.run(run(close=True))
    assert len({id(own) for own in used}) == 3
    assert used[-1].is_closed
    asyncio.run(client.aclose())


def test_a_retrieval_says_what_it_is_given(service, memory):
    memory.retrieve({"messages": [{"role": "user", "content": "hi"}], "page": 3}, "tea", 7)
    memory.retrieve()
    assert sent(service["function"], 0)["arguments"] == {
        "sessionData": {"messages": [{"role": "user", "content": "hi"}], "page": 3},
        "query": "tea",
        "limit": 7,
    }
    assert sent(service["function"], 1)["arguments"] == {"sessionData": {}}


def test_the_seed_s_shortest_answer_is_read(service, memory):
    service["function"].respond(
        json={
            "name": "halo_retrieve_end_user_memory",
            "projectKey": "customer-product",
            "endUserKey": "user_123",
            "selectedTopicKeys": ["report_preferences"],
            "selectionReason": "The user is asking about report format.",
            "overallSummary": "The user prefers concise weekly reports.",
            "functionResponse": {
                "requestId": "memory_request_id",
                "rawEntries": [
                    {
                        "id": "raw_entry_id",
                        "topic": {"topicKey": "report_preferences"},
                        "requestRaw": {"messages": []},
                        "responseRaw": {"role": "assistant", "content": "..."},
                    }
                ],
            },
        }
    )
    found = memory.retrieve("hi")
    assert (found.request_id, found.topics, found.raw_entries) == ("memory_request_id", (), ())
    (entry,) = found.function_response.raw_entries
    assert (entry.id, entry.topic.topic_key, entry.response_raw["content"]) == (
        "raw_entry_id",
        "report_preferences",
        "...",
    )


def test_an_answer_without_its_compact_part_gets_one(service, memory):
    service["function"].respond(
        json={"overallSummary": "s", "rawEntries": [{"id": "r"}], "topics": None, "new": 1}
    )
    found = memory.retrieve("hi")
    assert found.function_response.to_json() == '{"overallSummary":"s","rawEntries":[{"id":"r"}]}'
    assert found.request_id is None
    assert found.model_extra == {"new": 1}
    assert FUNCTION_URL.endswith("halo_retrieve_end_user_memory")
