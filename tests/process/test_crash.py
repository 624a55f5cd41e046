"""A receipt survives: what was answered is on disk, whatever happens to the process."""

import signal
import socket
import threading
import uuid

import httpx
import pytest

from tests.process.serving import USER, new_key, parsed, serving

pytestmark = pytest.mark.process

ROUNDS = 10
EXITS = {signal.SIGTERM: (0,), signal.SIGINT: (0, 130, -signal.SIGINT)}


def test_whatever_was_answered_before_a_kill_is_found_after_it(tmp_path):
    """Each round two clients capture until the process is killed under them; what they hold receipts of must be there."""
    data = tmp_path / "data"
    key = new_key(data)
    ledger: dict[str, str] = {}  # id -> word
    for round_number in range(ROUNDS):
        with serving(data, key) as server, server.client() as client:
            held = {entry["id"] for entry in listed(client)}
            assert set(ledger) <= held
            assert (
                len(held) <= len(ledger) + 2 * round_number
            )  # at most the two answers that were cut off each time
            for exchange_id, word in list(ledger.items())[-3:]:
                assert server.call(client, word, 1)["rawEntries"][0]["id"] == exchange_id
            enough = threading.Semaphore(0)
            threads = [
                threading.Thread(target=capture_until_killed, args=(server, ledger, enough)) for _ in range(2)
            ]
            for thread in threads:
                thread.start()
            for _ in range(4 + 3 * round_number):
                assert enough.acquire(timeout=20)
            server.kill()
            for thread in threads:
                thread.join(20)
                assert not thread.is_alive()
    with serving(data, key) as server, server.client() as client:
        held = [entry["id"] for entry in listed(client)]
        assert set(ledger) <= set(held)
        assert len(held) == len(set(held))
        for exchange_id, word in list(ledger.items())[:: max(1, len(ledger) // 20)]:
            again = server.capture(client, f"My word is {word}.", word)
            assert (again.status_code, again.json()["rawEntryId"]) == (200, exchange_id)
        assert len(listed(client)) == len(held)


def capture_until_killed(server, ledger, enough):
    with server.client() as client:
        while True:
            word = f"word{uuid.uuid4().hex[:12]}"
            try:
                answer = server.capture(client, f"My word is {word}.", word)
            except httpx.TransportError:
                return
            assert answer.status_code == 201
            ledger[answer.json()["rawEntryId"]] = word
            enough.release()


def listed(client):
    found, cursor = [], ""
    while cursor is not None:
        more = f"&cursor={cursor}" if cursor else ""
        page = client.get(
            f"/api/v1/memory/projects/customer-product/scopes/{USER}/raw?limit=100{more}"
        ).json()
        found += page["rawEntries"]
        cursor = page["nextCursor"]
    return found


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_end_it_finishes_what_it_has_begun_and_exits_without_fault(tmp_path, asked):
    key = new_key(tmp_path / "data")
    body = (
        b'{"projectKey":"customer-product","endUserKey":"user_123",'
        b'"sessionData":{"messages":["Said while it was ending."]},"response":"Noted."}'
    )
    with serving(tmp_path / "data", key) as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(
                b"POST /api/v1/memory/capture HTTP/1.1\r\nHost: halo\r\nExpect: 100-continue\r\n"
                b"Content-Type: application/json\r\nConnection: close\r\n"
                + f"Authorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            )
            assert connection.recv(1_000).startswith(b"HTTP/1.1 100 ")  # it has begun to read the body
            server.process.send_signal(asked)
            assert connection_is_refused(server.url)
            connection.sendall(body)
            answer = b"".join(iter(lambda: connection.recv(10_000), b""))
        status, _, receipt = answer.partition(b"\r\n\r\n")
        assert status.startswith(b"HTTP/1.1 201 ")
        assert server.process.wait(30) in EXITS[asked]
        assert "Traceback" not in "".join(server.errors)
    with serving(tmp_path / "data", key) as server, server.client() as client:
        found = [entry["id"] for entry in server.call(client, "ending")["rawEntries"]]
        assert found == [parsed(receipt)["rawEntryId"]]


def connection_is_refused(url):
    """Wait until the listener is closed: a new connection is no longer taken."""
    for _ in range(2_000):
        try:
            httpx.get(f"{url}/healthz", timeout=1)
        except httpx.TransportError:
            return True
    return False
