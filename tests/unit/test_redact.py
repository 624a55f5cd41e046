"""A pasted credential is masked wherever it stands; nothing else is touched."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_server.redact import redact

X = "aB3" * 15
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{X}\n-----END RSA PRIVATE KEY-----"
LOCKED = (
    f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n{X}\n"
    "-----END RSA PRIVATE KEY-----"
)
PGP = f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{X}\n-----END PGP PRIVATE KEY BLOCK-----"
SHAPES = [
    (PEM, "private key"),
    (LOCKED, "private key"),
    (PGP, "private key"),
    ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK", "token"),
    (f"sk-proj-{X}", "api key"),
    (f"sk_live_{X}", "api key"),
    (f"halo_{X}", "api key"),
    (f"AIza{X}", "api key"),
    ("AKIAABCDEFGHIJKLMNOP", "access key"),
    (f"ghp_{X}", "token"),
    (f"github_pat_{X}", "token"),
    (f"glpat-{X}", "token"),
    (f"xoxb-{X}", "token"),
    (f"hf_{X}", "token"),
    (f"npm_{X}", "token"),
    (f"pypi-{X}", "token"),
    (f"SG.{X}.{X}", "api key"),
    (f"Bearer {X}==", "token"),
]


@pytest.mark.parametrize(("secret", "kind"), SHAPES)
def test_a_credential_is_replaced_by_its_kind(secret: str, kind: str) -> None:
    assert redact(f"use {secret} please", "credentials") == f"use [masked: {kind}] please"


def test_a_private_key_whose_end_is_missing_is_masked_as_far_as_it_goes() -> None:
    assert redact(f"-----BEGIN PRIVATE KEY-----\n{X}\n{X}", "credentials") == "[masked: private key]"


@pytest.mark.parametrize("policy", ["credentials", "strict"])
def test_it_is_found_at_any_depth(policy: Any) -> None:
    value = {"a": [{"b": f"x ghp_{X}"}, 1, None, True, 2.5], "c": "plain"}

    assert redact(value, policy) == {"a": [{"b": "x [masked: token]"}, 1, None, True, 2.5], "c": "plain"}


def test_a_policy_of_off_changes_nothing() -> None:
    assert redact({"a": PEM}, "off") == {"a": PEM}


@pytest.mark.parametrize(
    "text",
    [
        "I asked the bearer of bad news",
        "sk-short",
        "task-force-of-the-whole-company",
        "ask sk- and eyJ",
        "4111 1111 1111 1111",
        X,
    ],
)
def test_harmless_text_stays(text: str) -> None:
    assert redact(text, "credentials") == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("card 4111 1111 1111 1111.", "card [masked: card number]."),
        ("card 4111-1111-1111-1112.", "card 4111-1111-1111-1112."),
        ("key q9Zp2Lx7Vb4Nc8Rt1Kd6Wm3Fs5Gh0Jy", "key [masked: secret]"),
        ("incomprehensibilitiesandsomemore", "incomprehensibilitiesandsomemore"),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa11", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa11"),
    ],
)
def test_strict_also_masks_cards_and_long_random_strings(text: str, expected: str) -> None:
    assert redact(text, "strict") == expected


@pytest.mark.parametrize("glue", ["my-", "auth_", "x", "sk-live-and-eyJ-"])
def test_a_token_glued_to_other_words_is_masked_with_them(glue: str) -> None:
    token = "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK"

    assert redact(f"use {glue}{token}, {token}", "credentials") == "use [masked: token], [masked: token]"


def cpu_seconds(text: str) -> float:
    """Return the least processor time of three maskings."""
    found = []
    for _ in range(3):
        begun = time.thread_time()
        redact(text, "strict")
        found.append(time.thread_time() - begun)
    return min(found)


@pytest.mark.parametrize("glue", ["", "-", ".", " "])
@pytest.mark.parametrize("part", [0.3, 0.9, 1])
@pytest.mark.parametrize(
    "secret", dict.fromkeys([*(secret for secret, _ in SHAPES), "eyJaaaaaaaa", "4111-1111", "+aB3"])
)
def test_beginnings_of_a_secret_repeated_take_no_more_than_their_length(
    secret: str, part: float, glue: str
) -> None:
    """Eight times the text may take thirty times as long, which leaves room for noise; the square would be sixty-four."""
    unit = secret[: max(4, int(len(secret) * part))] + glue
    text = unit * (12_000 // len(unit))

    assert cpu_seconds(8 * text) < 30 * max(cpu_seconds(text), 0.0005)


@given(text=st.text(st.characters(), max_size=60), policy=st.sampled_from(["credentials", "strict"]))
def test_masking_twice_is_masking_once(text: str, policy: Any) -> None:
    once = redact(f"{text} ghp_{X} {text}", policy)

    assert redact(once, policy) == once
    assert X not in once
