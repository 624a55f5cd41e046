"""Published conversations with questions, each read from where it was put and turned into a labelled set.

    python -m tests.eval.public locomo path/to/locomo10.json > locomo.json && halo eval locomo.json

No set is part of the project. Each reader names what is wrong with the labels of its set and what it does about that; a
question none of whose evidence is left is left out. It changes when a set is published anew.
"""

import itertools
import json
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["READERS", "beam", "bfcl", "locomo", "memdaily", "read_time", "realmem", "realtalk", "roles"]

JSON = Any

# -- who and when ------------------------------------------------------------------------------------------------

_ROLES = {"user": "user", "用户": "user", "assistant": "assistant", "助手": "assistant"}
_TIMES = (
    "%I:%M %p on %d %B, %Y",
    "%d.%m.%Y, %H:%M:%S",
    "%d.%m.%Y",
    "%B-%d-%Y",
    "%Y年%m月%d日 %H:%M",
    "%Y年%m月%d日",
)
_ASIDE = re.compile(r"\s*(?:\([^)]*\)|(?:周|星期)[一二三四五六日天])\s*")  # the day of the week


def roles(speakers: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return role and name of each turn of a session.

    Who is called user or assistant is that; otherwise who speaks first is the user, and everybody keeps the name.
    """
    first = next((speaker for speaker in speakers if speaker.lower() not in _ROLES), None)
    found: list[tuple[str, str | None]] = []
    for speaker in speakers:
        literal = _ROLES.get(speaker.lower())
        found.append(
            (literal, None) if literal else ("user" if speaker == first else "assistant", speaker or None)
        )
    return found


def read_time(text: str) -> str | None:
    """Return the instant, in any of the ways the sets write one, as ISO 8601; None when there is none."""
    plain = _ASIDE.sub(" ", text).strip()
    for form in _TIMES:
        try:
            return datetime.strptime(plain, form).replace(tzinfo=UTC).isoformat()
        except ValueError:
            continue
    try:
        read = datetime.fromisoformat(plain)
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).isoformat()


def session(name: str, when: str, said: Iterable[tuple[str, str, str, str]]) -> JSON:
    """Return a session of the format.

    Args:
        name: Its id.
        when: When it began, as the set writes it; may be empty.
        said: Id, speaker, text and time ("" if the session's) of each turn.
    """
    turns = list(said)
    messages = []
    for (turn, _, text, at), (role, who) in zip(turns, roles([one[1] for one in turns]), strict=True):
        more = {"name": who, "createdAt": read_time(at)}
        known = {key: value for key, value in more.items() if value}
        messages.append({"id": turn, "role": role, **known, "content": text})
    return {"id": name, "occurredAt": read_time(when), "messages": messages}


def _load(path: Path) -> JSON:
    return json.loads(path.read_text(encoding="utf-8"))


def _lines(path: Path) -> list[JSON]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _set(name: str, language: str, end_users: Iterable[JSON]) -> JSON:
    return {"name": name, "language": language, "endUsers": list(end_users)}


# -- LoCoMo, REALTALK --------------------------------------------------------------------------------------------

_EVIDENCE = re.compile(r"D:?\s*(\d+)\s*[:;]\s*(\d+)(?:\s*-\s*(?:D:?\s*(\d+)\s*[:;]\s*)?(\d+))?")
_LONGEST_RANGE = 60
_LOCOMO = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_REALTALK = {1: "multi-hop", 2: "temporal", 3: "commonsense"}


def locomo(path: Path) -> JSON:
    """Read `locomo10.json` of snap-research/locomo; a photo's caption follows its text.

    Evidence is written in many ways ("D8:6; D9:17", "D:11:26", "D30:05"), and some names no turn.
    """
    return _set(
        "locomo",
        "en",
        (_two(one["sample_id"], one["conversation"], one["qa"], _LOCOMO) for one in _load(path)),
    )


def realtalk(path: Path) -> JSON:
    """Read the directory of `Chat_*.json` of REALTALK, in the order of their names.

    As LoCoMo, with ranges ("D12:3-D12:5") and semicolons ("D17;39"); 137 ids name turns that were not published.
    """
    chats = ((file.stem, _load(file)) for file in sorted(path.glob("Chat_*.json")))
    return _set("realtalk", "en", (_two(name, chat, chat["qa"], _REALTALK) for name, chat in chats))


def _two(name: str, talk: Mapping[str, JSON], asked: Sequence[JSON], categories: Mapping[int, str]) -> JSON:
    numbers = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
    sessions = []
    for number in numbers:
        turns = (
            (turn["dia_id"], turn["speaker"], _with_caption(turn), turn.get("date_time") or "")
            for turn in talk[f"session_{number}"]
        )
        sessions.append(session(f"session_{number}", talk.get(f"session_{number}_date_time") or "", turns))
    known = _ids(sessions)
    questions = [
        _question(
            f"{name}_q{number}",
            one.get("question"),
            categories[one["category"]],
            (turn for turn in evidence(one.get("evidence") or []) if turn in known),
        )
        for number, one in enumerate(asked)
    ]
    return {"name": name, "sessions": sessions, "questions": [one for one in questions if one]}


def _with_caption(turn: Mapping[str, JSON]) -> str:
    text = turn.get("text") or turn.get("clean_text") or ""
    return f"{text} [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else text


def evidence(written: Sequence[str]) -> list[str]:
    """Return the ids of turns in what a labeller wrote, each once."""
    found: list[str] = []
    for each in written:
        for begins, first, ends, last in _EVIDENCE.findall(str(each)):
            found.append(f"D{int(begins)}:{int(first)}")
            if last and ends in ("", begins) and 0 < int(last) - int(first) < _LONGEST_RANGE:
                found += [f"D{int(begins)}:{turn}" for turn in range(int(first), int(last) + 1)]
            elif ends:
                found.append(f"D{int(ends)}:{int(last)}")
    return list(dict.fromkeys(found))


def _question(name: str, text: str, category: str, relevant: Iterable[str]) -> JSON | None:
    found = list(dict.fromkeys(relevant))
    if not text or not found:
        return None
    return {"id": name, "question": text, "category": category, "relevant": found}


def _ids(sessions: Sequence[JSON]) -> set[str]:
    return {message["id"] for one in sessions for message in one["messages"]}


# -- BEAM --------------------------------------------------------------------------------------------------------

_TRAIL = re.compile(r"\s*->->\s*[\d,\s]+$")


def beam(path: Path) -> JSON:
    """Read a directory of BEAM chats (`100K/1/chat.json`, …), in the order of their numbers.

    Texts end with a trace of how they were made, which is cut off. Questions to abstain from have no evidence.
    """
    chats = sorted((one.parent for one in path.glob("*/chat.json")), key=lambda chat: int(chat.name))
    return _set(f"beam-{path.name}", "en", map(_beam_chat, chats))


def _beam_chat(path: Path) -> JSON:
    sessions = []
    for batch in _load(path / "chat.json"):
        turns = [turn for group in batch["turns"] for turn in group]
        said = [
            (str(turn["id"]), turn["role"], _TRAIL.sub("", turn["content"]), turn.get("time_anchor") or "")
            for turn in turns
        ]
        sessions.append(session(f"b{batch['batch_number']}", "", said))
    known = _ids(sessions)
    questions = [
        _question(
            f"{path.name}_{kind}_{number}",
            one["question"],
            kind,
            (turn for turn in map(str, _leaves(one.get("source_chat_ids"))) if turn in known),
        )
        for kind, asked in _load(path / "probing_questions" / "probing_questions.json").items()
        for number, one in enumerate(asked)
    ]
    return {"name": path.name, "sessions": sessions, "questions": [one for one in questions if one]}


def _leaves(value: JSON) -> Iterator[JSON]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    elif value is not None:
        yield value


# -- MemDaily ----------------------------------------------------------------------------------------------------


def memdaily(path: Path, *, asked: int = 300, noise: int = 500, seed: int = 13) -> JSON:
    """Read MemDaily's `messages_and_QAs`: `asked` of its stories, each among `noise` messages of others of its file.

    A story alone is about nine messages, in which anything is found.
    """
    chance = random.Random(seed)
    files = {file.stem: _load(file) for file in sorted(path.glob("*.json"))}
    drawn = chance.sample([(stem, story) for stem, stories in files.items() for story in stories], asked)
    return _set("memdaily", "zh", (_story(stem, story, files[stem], noise, chance) for stem, story in drawn))


def _story(stem: str, story: JSON, others: Sequence[JSON], noise: int, chance: random.Random) -> JSON:
    own = {one["message"] for one in story["message_list"]}
    strange = [
        (other["tid"], one)
        for other in others
        if other["tid"] != story["tid"]
        for one in other["message_list"]
        if one["message"] not in own
    ]
    sessions = [
        session(
            "own",
            "",
            ((str(one["mid"]), "用户", one["message"], one["time"]) for one in story["message_list"]),
        )
    ]
    for tid, one in chance.sample(strange, min(noise, len(strange))):
        name = f"{tid}_{one['mid']}"
        sessions.append(session(name, "", [(name, "用户", one["message"], one["time"])]))
    kind = re.sub(r"^\d+_|_[^_]+$", "", stem)
    questions = [
        _question(
            f"{stem}_{story['tid']}_{one['qid']}", one["question"], kind, map(str, one["target_step_id"])
        )
        for one in story["question_list"]
    ]
    return {
        "name": f"{stem}_{story['tid']}",
        "sessions": sessions,
        "questions": [one for one in questions if one],
    }


# -- RealMem -----------------------------------------------------------------------------------------------------


def realmem(path: Path) -> JSON:
    """Read RealMem's `*_dialogues_256k.json`, in the order of their names.

    Its evidence is whole sessions: all their messages are relevant. A question is a turn of a session, and only earlier
    sessions can answer it.
    """
    return _set("realmem", "en", map(_persona, map(_load, sorted(path.glob("*_dialogues_256k.json")))))


def _persona(told: JSON) -> JSON:
    sessions, questions, before = [], [], dict[str, list[str]]()
    for one in told["dialogues"]:
        name, turns = one["session_uuid"], one["dialogue_turns"]
        said = [(f"{name}#{at}", turn["speaker"], turn["content"], "") for at, turn in enumerate(turns)]
        for turn, answer in itertools.pairwise(turns):
            sources = dict.fromkeys(answer.get("memory_session_uuids") or []) if turn.get("is_query") else {}
            relevant = [message for source in sources for message in before.get(source, [])]
            category = turn.get("category_name") or "?"
            asked = _question(
                f"{told['_metadata']['person_name']}_{turn['query_id']}", turn["content"], category, relevant
            )
            if asked:
                questions.append({**asked, "before": said[0][0]})
        before[name] = [turn[0] for turn in said]
        sessions.append(session(name, one["current_time"], said))
    return {"name": told["_metadata"]["person_name"], "sessions": sessions, "questions": questions}


# -- BFCL --------------------------------------------------------------------------------------------------------

_LEAST_SHARED = 0.8  # of a quote's words, where the quote itself is nowhere


def bfcl(path: Path) -> JSON:
    """Read the memory part of BFCL v4: one end user a scenario, what was told before, and what is asked afterwards.

    The answers quote their source, sometimes in other words: then the message with most of the quote's words is meant.
    """
    asked = _lines(path / "BFCL_v4_memory.json")
    sources = {
        one["id"]: one.get("source") for one in _lines(path / "possible_answer" / "BFCL_v4_memory.json")
    }
    told = sorted((path / "memory_prereq_conversation").glob("memory_*.json"))
    return _set("bfcl", "en", (_scenario(file, asked, sources) for file in told))


def _scenario(path: Path, asked: Sequence[JSON], sources: Mapping[str, JSON]) -> JSON:
    name = path.stem.removeprefix("memory_")
    sessions = []
    for talk in _lines(path):
        said = [
            (f"{talk['id']}#{at}", one["role"], one["content"], "")
            for at, turn in enumerate(talk["question"])
            for one in turn
        ]
        sessions.append(session(talk["id"], "", said))
    plain = {message["id"]: _plain(message["content"]) for one in sessions for message in one["messages"]}
    questions = [
        _question(one["id"], one["question"][0][0]["content"], name, _quoted(sources[one["id"]], plain))
        for one in asked
        if one["scenario"] == name
    ]
    return {"name": name, "sessions": sessions, "questions": [one for one in questions if one]}


def _quoted(source: str | list[str] | None, plain: Mapping[str, str]) -> Iterator[str]:
    quotes = source if isinstance(source, list) else re.split(r"\.\.\.|…", source or "")
    for quote in map(_plain, quotes):
        if len(quote) <= 8:
            continue
        exact = [message for message, text in plain.items() if quote in text]
        words = set(quote.split())
        share, most = max(
            (len(words & set(text.split())) / len(words), message) for message, text in plain.items()
        )
        yield from exact or ([most] if share >= _LEAST_SHARED else [])


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", text.lower().replace("’", "").replace("'", "")).strip()


READERS: dict[str, Callable[[Path], JSON]] = {
    "locomo": locomo,
    "realtalk": realtalk,
    "beam": beam,
    "memdaily": memdaily,
    "realmem": realmem,
    "bfcl": bfcl,
}

if __name__ == "__main__":
    reader, where = sys.argv[1:]
    json.dump(READERS[reader](Path(where)), sys.stdout, ensure_ascii=False)
