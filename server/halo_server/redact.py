"""Masks recognised credentials before the first write, so that a pasted key is never stored, indexed or replayed.

Only shapes that providers publish are masked (`credentials`); `strict` adds card numbers and long random strings, which
also meets harmless text. It changes when a provider mints keys of another shape. Every pattern is linear in its
input: either it matches as soon as enough characters are there, or it begins only where a run of them does.
"""

import math
import re
from collections import Counter
from typing import Literal

from halo_server.domain import JSON

__all__ = ["Policy", "redact"]

Policy = Literal["credentials", "strict", "off"]

# One alternative a credential: (name a person reads, shape). Source: the providers' own documentation and the public
# secret-scanning patterns of GitHub (docs.github.com, "Supported secret scanning patterns").
_SHAPES: tuple[tuple[str, str], ...] = (
    (
        "private key",
        # A single dash stands in the headers of an encrypted key ("Proc-Type: 4,ENCRYPTED").
        (
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,20000}"
            r"(?:-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"
        ),
    ),
    (
        "token",
        # A token glued to other words ("my-eyJ…") goes with them: looked for once from where its run of characters begins,
        # and only if the other two parts follow. From every dash, "eyJaaaaaaaa-eyJaaaaaaaa-…" takes the square of its length.
        (
            r"(?<![A-Za-z0-9_-])(?=[A-Za-z0-9_-]*+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8})"
            r"[A-Za-z0-9_-]*?eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]++\.[A-Za-z0-9_-]++"
        ),
    ),
    ("api key", r"\bsk-[A-Za-z0-9_-]{16,}"),
    ("api key", r"\b(?:sk|rk|pk|whsec)_(?:live|test)_[A-Za-z0-9]{10,}"),
    ("api key", r"\bhalo_[A-Za-z0-9_-]{43,}"),  # ours; shorter would meet the names of our functions
    ("api key", r"\bAIza[A-Za-z0-9_-]{30,}"),
    ("access key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("token", r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    ("token", r"\bgithub_pat_[A-Za-z0-9_]{30,}"),
    ("token", r"\bglpat-[A-Za-z0-9_-]{18,}"),
    ("token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("token", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("token", r"\bpypi-[A-Za-z0-9_-]{30,}"),
    ("api key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("token", r"(?i:\bbearer )[A-Za-z0-9._~+/-]{20,}=*"),
)
_CREDENTIAL = re.compile("|".join(f"(?P<g{n}>{shape})" for n, (_, shape) in enumerate(_SHAPES)))
_CARD = re.compile(r"\b\d(?:[ -]?\d){12,18}\b")
_RANDOM = re.compile(r"\b[A-Za-z0-9_+/-]{28,}\b")


def redact(value: JSON, policy: Policy) -> JSON:
    """Return `value` with each recognised secret replaced by `[masked: <kind>]`, in every string at any depth."""
    if policy == "off":
        return value
    if isinstance(value, str):
        return _mask(value, strict=policy == "strict")
    if isinstance(value, dict):
        return {key: redact(item, policy) for key, item in value.items()}
    if isinstance(value, list):
        return [redact(item, policy) for item in value]
    return value


def _mask(text: str, *, strict: bool) -> str:
    text = _CREDENTIAL.sub(_name_credential, text)
    if strict:
        text = _CARD.sub(lambda found: "[masked: card number]" if _is_card(found[0]) else found[0], text)
        text = _RANDOM.sub(lambda found: "[masked: secret]" if _is_random(found[0]) else found[0], text)
    return text


def _name_credential(found: re.Match[str]) -> str:
    group = found.lastgroup or "g0"
    return f"[masked: {_SHAPES[int(group[1:])][0]}]"


def _is_card(text: str) -> bool:
    """Check digit of ISO/IEC 7812-1 (the Luhn formula)."""
    digits = [int(digit) for digit in text if digit.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_random(text: str) -> bool:
    """Whether the characters carry more than 3.5 bits each and mix digits with letters, as no word does."""
    counts = Counter(text)
    bits = -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
    return bits > 3.5 and any(c.isdigit() for c in text) and any(c.isalpha() for c in text)
