"""Conversations written down as text: who speaks stands before a colon. It changes when people write them down otherwise.

Only a whole text is read so, never the words of a message: somebody may quote a conversation in them.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from html import unescape
from itertools import pairwise

from halo_server.transcript.messages import ROLES

__all__ = ["Line", "chat_log", "from_html", "turns"]

_LABELS = {**ROLES, "you": "user", "me": "user", "you said": "user", "chatgpt said": "assistant"}
_ASKED = {"q": "user", "question": "user", "a": "assistant", "answer": "assistant"}
_TURN = re.compile(
    r"[ \t>#*_-]{0,8}([^\W\d_][\w ]{0,30}?)[ \t]*[*_]{0,3}[:\uff1a][*_]{0,3}[ \t]*(.*)", re.DOTALL
)

# "[11/13/26, 9:05:09 PM] Mara: …" and "01/11/2026, 09:05 - Mara: …", invisible marks of direction before them.
_MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\ufeff"
_STAMP = r"(\d{1,4})[./-](\d{1,2})[./-](\d{1,4}),?\s{1,3}(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?(?:\s?([AaPp])\.?\s?[Mm]\.?)?"
_HEAD = re.compile(rf"[{_MARKS}]*(?:\[{_STAMP}\]\s|{_STAMP}\s[-\u2013]\s)(.*)", re.DOTALL)
_SENDER = re.compile(r"([^:]{1,100}): (.*)", re.DOTALL)
_FILE = re.compile(
    r"<(?:attached|adjunto|anexado|Anhang|pièce jointe|allegato)\s?: ([^<>]{1,200})>"
    r"|(\S{1,200}\.\w{2,5}) \((?:file attached|Datei angehängt|archivo adjunto|fichier joint|arquivo anexado|file allegato)\)"
)
_LEFT_OUT = re.compile(
    r"<[^<>]{0,40}(?:omitted|omitid[oa]|omis|ausgeschlossen|weggelassen|omess[io]|weggelaten|без|省略|생략)[^<>]{0,20}>"
    r"|(image|video|audio|gif|sticker|document|contact card) omitted",
    re.IGNORECASE,
)
_DELETED = re.compile(
    r"(?:This message was deleted|You deleted this message|Diese Nachricht wurde gelöscht|Du hast diese Nachricht gelöscht"
    r"|Se eliminó este mensaje|Eliminaste este mensaje|Ce message a été supprimé|Esta mensagem foi apagada)\.?"
)
_EDITED = re.compile(rf"[\s{_MARKS}]{{0,4}}<This message was edited>$")
_KINDS = (
    ("image", ("PHOTO", "IMG", "STICKER", "GIF", ".JPG", ".JPEG", ".PNG", ".WEBP", "IMAGE")),
    ("video", ("VIDEO", "VID-", ".MP4", ".MOV")),
    ("audio", ("AUDIO", "PTT", ".OPUS", ".M4A", ".MP3", ".OGG")),
)
_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]{0,10})(?:\s[^<>]{0,2000})?/?>")
_BLOCKS = (
    "p",
    "div",
    "br",
    "li",
    "tr",
    "ul",
    "ol",
    "table",
    "pre",
    "blockquote",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
)


@dataclass(frozen=True, slots=True)
class Line:
    """What one person wrote in a messenger.

    Attributes:
        media: Kind and name of what it held besides words, None if nothing.
    """

    speaker: str
    text: str
    at: datetime
    media: tuple[str, str] | None = None


def turns(text: str) -> list[tuple[str, str]]:
    """Return the roles and words of a conversation in one text; empty if it is none.

    It is one when it begins with a label ("User:", "**Assistant:**", "Q:") and both sides speak. A line without a
    label continues the turn before it.
    """
    found = (_labelled(text, labels) for labels in (_LABELS, _ASKED))
    return next((said for said in found if {role for role, _ in said} >= {"user", "assistant"}), [])


def _labelled(text: str, labels: dict[str, str]) -> list[tuple[str, str]]:
    found: list[tuple[str, list[str]]] = []
    for line in text.strip().split("\n"):
        turn = _TURN.fullmatch(line.rstrip("\r"))
        role = labels.get(turn[1].lower()) if turn else None
        if turn and role:
            found.append((role, [turn[2]]))
        elif found:
            found[-1][1].append(line.rstrip("\r"))
        else:
            return []
    return [(role, "\n".join(lines).strip()) for role, lines in found]


def chat_log(text: str, zone: tzinfo = UTC) -> list[Line]:
    """Return what people wrote in the text a messenger exports; empty if it is none.

    What nobody wrote and what was deleted is left out. Whether day or month comes first is told by a number above 12, else by
    which of the two keeps the lines in order and closer together; else it is the day.

    Source:
        The text WhatsApp exports on Android and on iOS, as public readers of it describe it.
    """
    heads: list[tuple[re.Match[str], list[str]]] = []
    for line in text.split("\n"):
        head = _HEAD.fullmatch(line.rstrip("\r"))
        if head:
            heads.append((head, [head[15]]))
        elif heads:
            heads[-1][1].append(line.rstrip("\r"))
        elif line.strip(_MARKS + " \r"):
            return []
    stamps = [head.groups()[:7] if head[1] else head.groups()[7:14] for head, _ in heads]
    times = _dated(stamps, zone)
    said = (
        _line("\n".join(lines).rstrip("\n"), at) for (_, lines), at in zip(heads, times, strict=True) if at
    )
    return [line for line in said if line]


def _dated(stamps: list[tuple[str | None, ...]], zone: tzinfo) -> list[datetime | None]:
    orders = [[_moment(stamp, zone, day_first=first) for stamp in stamps] for first in (True, False)]
    return min(orders, key=_disorder)  # the first of equals: the day


def _disorder(times: list[datetime | None]) -> tuple[int, int, timedelta]:
    known = [time for time in times if time]
    backwards = sum(later < earlier for earlier, later in pairwise(known))
    return len(times) - len(known), backwards, max(known) - min(known) if known else timedelta()


def _moment(stamp: tuple[str | None, ...], zone: tzinfo, *, day_first: bool) -> datetime | None:
    first, second, third, hour, minute, second_of, half = stamp
    if first is None or second is None or third is None:
        return None
    if len(first) == 4:
        year, month, day = first, second, third
    else:
        year, (day, month) = third, (first, second) if day_first else (second, first)
    full = int(year) + (2000 if len(year) == 2 else 0)
    hours = int(hour or 0)
    if half:
        hours = hours % 12 + (12 if half in "Pp" else 0)
    try:
        return datetime(full, int(month), int(day), hours, int(minute or 0), int(second_of or 0), tzinfo=zone)
    except ValueError:
        return None


def _line(written: str, at: datetime) -> Line | None:
    sent = _SENDER.fullmatch(written)
    if not sent:
        return None
    speaker, text = sent[1].strip(_MARKS + " "), _EDITED.sub("", sent[2].strip(_MARKS)).rstrip(_MARKS)
    if _DELETED.fullmatch(text):
        return None
    if left_out := _LEFT_OUT.fullmatch(text):
        return Line(speaker, "", at, (_kind(left_out[1] or ""), ""))
    first, _, caption = text.partition("\n")
    if file := _FILE.fullmatch(first.strip(_MARKS)):
        name = file[1] or file[2]
        return Line(speaker, caption, at, (_kind(name), name))
    return Line(speaker, text, at)


def _kind(name: str) -> str:
    return next((kind for kind, marks in _KINDS if any(mark in name.upper() for mark in marks)), "file")


def from_html(html: str) -> str:
    """Return the words of a page, a paragraph a line."""
    text = _TAG.sub(lambda tag: "\n" if tag[1].lower() in _BLOCKS else "", html)
    return "\n".join(line.strip() for line in unescape(text).split("\n") if line.strip())
