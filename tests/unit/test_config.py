"""Every setting has a default, an environment variable, a range and a reason."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from halo_server.config import Settings


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
