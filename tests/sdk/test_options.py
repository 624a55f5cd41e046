"""Options that differ for one call, what an answer says of its arrival, and the log."""

import asyncio
import copy
import logging
import pickle

import httpx
import pytest

from halo_sdk import Halo, HaloConfigError, HaloTimeoutError, ServerError
from tests.sdk.fakes import FOUND, RETRIEVE, async_memory, contents, openai_reply


def test_other_options_hold_for_what_is_made_with_them_only(service, make):
    service["function"].respond(503, json={"error": "busy"})
    halo = make()
    once = halo.with_options(max_retries=0, on_error="raise").for_user("user_123")
    with pytest.raises(ServerError):
        once.handle(openai_reply((RETRIEVE, "{}")))
    assert service["function"].call_count == 1
    (content,) = contents(halo.for_user("user_123").handle(openai_reply((RETRIEVE, "{}"))))
    assert "unavailable" in content["error"]
    assert service["function"].call_count == 4


def test_a_memory_takes_other_options_for_one_call(service, memory, time):
    service["function"].mock(side_effect=httpx.ReadTimeout("slow"))
    with pytest.raises(HaloTimeoutError, match=r"within 0\.5 s"):
        memory.with_options(timeout=0.5, max_retries=0).retrieve("hi")
    assert time.slept == []
    with pytest.raises(HaloTimeoutError, match="within 10 s"):
        memory.retrieve("hi")


def test_a_memory_with_other_options_is_the_same_end_users_over_the_same_connections(service, memory):
    other = memory.with_options(max_result_chars=300)
    assert repr(other) == repr(memory)
    memory.retrieve("hi")
    other.retrieve("hi")
    assert memory._transport._connections is other._transport._connections


@pytest.mark.parametrize(
    "options",
    [
        *({"timeout": value} for value in (0, float("inf"), "x", [1])),
        *({"max_retries": value} for value in (-1, "x")),
        *({"on_error": value} for value in ("explode", [])),
        *({"max_result_chars": value} for value in (199, "x", float("nan"))),
    ],
    ids=str,
)
def test_options_that_cannot_work_are_refused_wherever_they_are_given(make, memory, options):
    for place in (make, memory.with_options, make().with_options):
        with pytest.raises(HaloConfigError, match=next(iter(options))):
            place(**options)


def test_an_option_that_does_not_exist_is_refused(make, memory):
    for place in (memory.with_options, make().with_options):
        with pytest.raises(TypeError, match="retries, timeouts; known are timeout, max_retries, on_error"):
            place(timeouts=2, retries=1)
    with pytest.raises(TypeError, match="idempotence"):
        memory.capture("hi", "hello", idempotence="k")


def test_an_awaited_memory_takes_other_options_too(service, time):
    service["function"].respond(503, json={"error": "busy"})

    async def run() -> None:
        client, memory = async_memory(time)
        async with client.with_options(max_retries=1) as once:
            with pytest.raises(ServerError):
                await once.for_user("u").retrieve("hi")
            with pytest.raises(ServerError):
                await memory.with_options(max_retries=0).retrieve("hi")

    asyncio.run(run())
    assert service["function"].call_count == 3


def test_a_result_knows_the_answer_it_was_read_from(service, memory):
    service["function"].respond(
        200, json=FOUND, headers={"X-Request-Id": "req_1", "Server-Timing": "db;dur=2"}
    )
    found = memory.retrieve("hi")
    assert found.reply is not None
    assert (found.reply.status_code, found.reply.headers["server-timing"]) == (200, "db;dur=2")
    assert b"report_preferences" in found.reply.body
    assert "report_preferences" not in repr(found.reply)
    assert found.request_id == "req_1"
    assert found.raw_entries[0].reply is None
    receipt = memory.capture("hi", "hello")
    assert receipt.reply is not None
    assert receipt.reply.status_code == 201


def test_results_are_equal_when_they_say_the_same_and_survive_copy_and_pickle(service, memory):
    service["function"].mock(
        side_effect=[
            httpx.Response(200, json=FOUND, headers={"Date": "now"}),
            httpx.Response(200, json=FOUND, headers={"Date": "later"}),
            httpx.Response(200, json={**FOUND, "overallSummary": "other"}),
        ]
    )
    first, second, third = (memory.retrieve("hi") for _ in range(3))
    assert first == second != third
    assert first != "something else"
    assert copy.deepcopy(first) == first == pickle.loads(pickle.dumps(first))  # noqa: S301 (our own bytes)


@pytest.fixture
def log():
    logger = logging.getLogger("halo_sdk")
    level, handlers = logger.level, list(logger.handlers)
    yield logger
    logger.setLevel(level)
    logger.handlers[:] = handlers


def test_halo_log_shows_requests_without_what_they_carry(service, log, monkeypatch, capsys):
    monkeypatch.setenv("HALO_LOG", "debug")
    monkeypatch.setattr(log, "propagate", False)
    for _ in range(2):
        Halo("halo_key_secret", project_key="p").for_user("somebody").retrieve("tea", "query words")
    shown = capsys.readouterr().err
    assert shown.count("POST /api/v1/memory/functions/halo_retrieve_end_user_memory: 200") == 2
    for secret in ("halo_key_secret", "somebody", "tea", "query words"):
        assert secret not in shown


def test_halo_log_leaves_an_application_s_own_handlers_alone(log, monkeypatch):
    monkeypatch.setenv("HALO_LOG", "warning")
    before = list(log.handlers)
    assert log.hasHandlers()  # pytest's
    Halo("k", project_key="p")
    assert (log.level, log.handlers) == (logging.WARNING, before)


def test_halo_log_names_its_levels(log, monkeypatch):
    monkeypatch.setenv("HALO_LOG", "loud")
    with pytest.raises(HaloConfigError, match="debug, info, warning, error"):
        Halo("k", project_key="p")
