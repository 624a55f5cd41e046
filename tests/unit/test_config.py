"""Every setting has a default, an environment variable, a range and a reason."""

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from halo_server.config import Endpoint, Settings


def test_the_defaults_are_for_one_person_on_one_machine() -> None:
    settings = Settings()

    assert (settings.data, settings.host, settings.embedder) == (Path("halo-data"), "127.0.0.1", "use")
    assert (settings.redact, settings.duplicate_window_s) == ("credentials", 600)
    assert (settings.max_capture_bytes, settings.max_messages) == (8 * 1024 * 1024, 4000)
    assert (settings.max_json_nodes, settings.max_capture_nodes) == (50_000, 400_000)
    assert settings.max_answer_bytes == 4 * 1024 * 1024


def test_each_setting_is_read_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALO_PORT", "0")
    monkeypatch.setenv("HALO_DATA", "/srv/halo")
    monkeypatch.setenv("HALO_NO_SUCH_SETTING", "x")

    assert (Settings().port, Settings().data) == (0, Path("/srv/halo"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "65536"),
        ("PORT", "-1"),
        ("EMBEDDER", "other"),
        ("REDACT", "some"),
        ("MAX_MESSAGES", "0"),
        ("MAX_CAPTURE_NODES", "99"),
        ("MAX_ANSWER_BYTES", "65535"),
        ("BODY_DEADLINE_S", "0"),
    ],
)
def test_a_value_out_of_range_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"HALO_{name}", value)

    with pytest.raises(ValidationError, match=name.lower()):
        Settings()


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().port = 1  # type: ignore[misc]


def test_each_setting_says_why() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_settings_are_read_from_a_file_where_the_server_starts_but_the_environment_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("HALO_PORT=1\nHALO_LLM_MODEL=m\nOPENAI_API_KEY=x\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HALO_PORT", "2")

    assert (Settings().port, Settings().llm_model) == (2, "m")


def test_a_key_is_not_shown() -> None:
    settings = Settings(llm_model="m", llm_api_key=SecretStr("sk-1"), embedder_model="e")

    assert "sk-1" not in f"{settings!r} {settings.llm!r}"
    assert settings.llm == Endpoint("https://api.openai.com/v1", "m", "sk-1")
    assert settings.embedding == Endpoint("https://api.openai.com/v1", "e", None)


LLM = {"llm_model": "m", "llm_base_url": "http://a", "llm_api_key": "ka"}


@pytest.mark.parametrize(
    ("given", "answerer"),
    [
        ({}, None),
        (LLM, ("http://a", "m", "ka")),
        ({**LLM, "answerer_model": "n"}, ("http://a", "n", "ka")),
        ({**LLM, "answerer_api_key": "kb"}, ("http://a", "m", "kb")),
        ({**LLM, "answerer_base_url": "http://b"}, ("http://b", "m", None)),
        (
            {"answerer_model": "n", "answerer_base_url": "http://b", "answerer_api_key": "kb"},
            ("http://b", "n", "kb"),
        ),
    ],
)
def test_who_answers_is_who_names_unless_told_otherwise_and_a_key_goes_to_no_other_place(
    given: dict[str, str], answerer: tuple[str, str, str | None] | None
) -> None:
    found = Settings.model_validate(given).answerer

    assert found == (answerer and Endpoint(*answerer))
