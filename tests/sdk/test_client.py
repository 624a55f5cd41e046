"""How a client is configured, and what it refuses."""

import copy
import pickle
import subprocess
import sys

import httpx
import pytest

import halo_sdk
from halo_sdk import (
    AsyncHalo,
    Halo,
    HaloConfigError,
    HaloError,
    HaloResponseError,
    HaloStatusError,
    RateLimitError,
    errors,
)
from tests.sdk.fakes import KEY


def test_settings_come_from_the_environment_when_the_argument_is_absent(monkeypatch):
    monkeypatch.setenv("HALO_API_KEY", " env_key\n")
    monkeypatch.setenv("HALO_PROJECT_KEY", "env-project")
    monkeypatch.setenv("HALO_BASE_URL", "https://env.example/")
    client = Halo()
    assert client._transport.policy.headers["Authorization"] == "Bearer env_key"
    assert repr(client) == "Halo(base_url='https://env.example', project_key='env-project')"
    assert client.for_user("u").project_key == "env-project"
    given = Halo("k", project_key="p", base_url="https://given.example")
    assert given._transport.policy.headers["Authorization"] == "Bearer k"
    assert repr(given) == "Halo(base_url='https://given.example', project_key='p')"


def test_without_an_address_memory_stays_on_this_machine():
    assert Halo("k", project_key="p")._transport.policy.base_url == "http://127.0.0.1:8765"


@pytest.mark.parametrize("kind", [Halo, AsyncHalo])
def test_without_a_key_there_is_no_client(kind):
    with pytest.raises(HaloConfigError, match="HALO_API_KEY"):
        kind(project_key="p")


def test_a_client_handed_in_may_bring_key_and_project(monkeypatch):
    monkeypatch.setenv("HALO_API_KEY", "env_key")
    monkeypatch.setenv("HALO_PROJECT_KEY", "env-project")
    with httpx.Client(headers={"Authorization": "Bearer theirs"}) as http_client:
        http_client.halo_project = "theirs"
        client = Halo(http_client=http_client)
        assert client._transport.policy.headers == {}
        assert client.for_user("u").project_key == "theirs"
        assert client.for_user("u", project_key="mine").project_key == "mine"
        assert Halo("k", http_client=http_client)._transport.policy.headers == {"Authorization": "Bearer k"}
    with httpx.Client() as bare:
        assert Halo(http_client=bare)._transport.policy.headers == {"Authorization": "Bearer env_key"}


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "http://127.9.9.9",
        "http://[::1]:8765",
        "http://localhost",
        "https://memory.example",
    ],
)
def test_a_key_travels_encrypted_or_stays_on_this_machine(url):
    Halo("k", base_url=url)


@pytest.mark.parametrize(
    "url", ["http://memory.example", "http://10.0.0.1", "http://localhost.example", "http://0.0.0.0"]
)
def test_a_key_does_not_travel_in_the_open_unless_told(url):
    with pytest.raises(HaloConfigError, match="allow_insecure"):
        Halo("k", base_url=url)
    Halo("k", base_url=url, allow_insecure=True)


@pytest.mark.parametrize(
    "url",
    [
        "memory.example",
        "ftp://memory.example",
        "http://",
        "https://u:p@memory.example",
        "https://a.example?x=1",
        "http://[::1",
        "https://a.example:99999",
    ],
)
def test_an_address_that_is_none_is_refused(url):
    cure = "api_key=" if "@" in url else "on this machine also like http://127.0.0.1"
    with pytest.raises(HaloConfigError, match=f"base_url.*{cure}"):
        Halo("k", base_url=url)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": float("inf")},
        {"max_retries": -1},
        {"on_error": "ignore"},
        {"max_result_chars": 10},
        {"api_key": "two words"},
        {"api_key": "ké"},
        {"api_key": "a\nb"},
    ],
)
def test_options_that_cannot_work_are_refused(options):
    with pytest.raises(HaloConfigError):
        Halo(**{"api_key": "k", **options})


BAD_KEYS = [
    *("", "  ", None, 7, "x" * 161, "null", "Undefined", " none ", "NaN"),
    *("a\nb", "a\x00", "\x7f", "a\ud800", "a\ufffd", " a", "a\u3000"),
]


@pytest.mark.parametrize("key", BAD_KEYS, ids=ascii)
def test_a_key_that_cannot_be_one_person_s_is_refused(key):
    client = Halo("k", project_key="p")
    with pytest.raises(HaloConfigError, match="end_user_key"):
        client.for_user(key)
    if key is not None:
        with pytest.raises(ValueError, match="project_key"):
            client.for_user("u", project_key=key)


def test_a_secret_key_is_no_project():
    with pytest.raises(HaloConfigError, match="secret key") as caught:
        Halo("k").for_user("u", project_key="sk-proj-123")
    assert "123" not in str(caught.value)


def test_without_a_project_there_is_no_memory():
    with pytest.raises(HaloConfigError, match="HALO_PROJECT_KEY"):
        Halo("k").for_user("u")


def test_only_two_sources_of_session_data_exist():
    with pytest.raises(HaloConfigError, match="session"):
        Halo("k", project_key="p").for_user("u", session="user")


def test_unusual_keys_are_people_too():
    memory = Halo("k", project_key="プロジェクト").for_user("user/../ü@example.com" + "x" * 100)
    assert memory.end_user_key.startswith("user/../ü")


def test_fc69_no_representation_shows_the_key():
    client = Halo(KEY, project_key="p")
    for shown in (client, client.for_user("u"), client._transport.policy, AsyncHalo(KEY)):
        assert KEY not in repr(shown)
    assert repr(client.for_user("u")) == "Memory(project_key='p', end_user_key='u')"


def test_an_identity_cannot_be_changed():
    memory = Halo("k", project_key="p").for_user("u")
    for name in ("end_user_key", "project_key", "anything"):
        with pytest.raises(AttributeError):
            setattr(memory, name, "victim")


def test_the_public_names_are_sorted_and_exist():
    assert halo_sdk.__all__ == sorted(halo_sdk.__all__)
    assert all(hasattr(halo_sdk, name) for name in halo_sdk.__all__)
    shown = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, HaloError)
    }
    assert shown <= set(halo_sdk.__all__)


def test_the_error_tree_drawn_is_the_error_tree():
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, HaloError):
            assert name in errors.__doc__
            assert kind.__doc__


@pytest.mark.parametrize(
    "error",
    [
        HaloError("a"),
        HaloConfigError("a"),
        HaloResponseError("a", request_id="r"),
        HaloStatusError("a", status_code=418, body={"a": [1]}),
        RateLimitError("a", status_code=429, request_id="r", code="C", retry_after_s=2.0),
    ],
)
def test_fc64_errors_survive_pickle_and_copy(error):
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301
        assert type(twin) is type(error)
        assert (str(twin), vars(twin)) == (str(error), vars(error))


def test_fc70_importing_loads_no_server_no_provider_and_nothing_that_can_wait():
    program = (
        "import sys, halo_sdk\n"
        "heavy = {'halo_server', 'openai', 'google.genai', 'anthropic', 'jsonschema', 'httpx2', 'faiss', 'numpy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=_root(),
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def _root():
    return str(halo_sdk.__path__[0]).removesuffix("/halo_sdk")


def test_a_client_of_the_other_colour_is_refused_before_its_first_use():
    with httpx.Client() as waiting, pytest.raises(HaloConfigError, match="AsyncHalo awaits"):
        AsyncHalo("k", project_key="p", http_client=waiting)
    with pytest.raises(HaloConfigError, match="Halo waits"):
        Halo("k", project_key="p", http_client=httpx.AsyncClient())
