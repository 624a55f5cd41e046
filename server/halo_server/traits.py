"""What ranking reads off the surface of a text, besides its words and its meaning: what a message tells of, what a question wants.

Word lists of several languages; a language that is missing loses these signs, not its words. A language, or a sign that was
measured to help, changes this file.

Source:
    Signs were kept where they raised the likelihood of the right messages on LoCoMo, REALTALK and BEAM (conversations 1-5).
"""

import re
from dataclasses import dataclass

from halo_server.domain import Traits
from halo_server.text import asks, count_words

__all__ = ["Wants", "traits", "wants"]

_MOST = 4  # a message that names five things tells no more of itself than one that names four

_PERSONAL = re.compile(
    r"\b(?:i(?:['\u2019](?:m|ve|d|ll))?|my|me|mine|we|our|us|ich|mein\w*|mir|mich|wir|je|j['\u2019]|mon|ma|mes|moi|nous|yo|mi|mis|"
    r"nosotr[oa]s|io|mio|mia|eu|meu|minha|я|мне|мой|моя|мы)\b|我|私|僕|俺|저는|제가|나는|내가|우리",
    re.IGNORECASE,
)
_SPECIFIC = re.compile(r"(?<=[a-zà-ÿ,;:] )[A-ZÀ-Þ][\w\u2019'-]+|\d+")
_DATED = re.compile(
    r"\b(?:yesterday|today|tomorrow|last|next|ago|weeks?|months?|years?|days?|morning|night|weekend|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|"
    r"november|december|gestern|heute|morgen|hier|aujourd['\u2019]hui|demain|ayer|hoy|mañana|вчера|сегодня|завтра|\d{4})\b|"
    r"昨天|今天|明天|前天|后天|上周|下周|去年|明年|星期|周末|月|昨日|今日|明日|先週|来週|先月|来月|曜日|어제|오늘|내일",
    re.IGNORECASE,
)
_WANTS_TIME = re.compile(
    r"^\W*(?:when|how long|what (?:date|day|year|month|time)|wann|quand|cuándo|quando|когда)\b|"
    r"什么时候|何时|哪天|几号|几点|いつ|何時|何日|何曜日|언제",
    re.IGNORECASE,
)
_WANTS_NAME = re.compile(
    r"^\W*(?:who|whom|whose|where|which|wer|wo|qui|où|quién|dónde|chi|dove|quem|onde|кто|где)\b|谁|哪|誰|どこ|どの|누가|어디",
    re.IGNORECASE,
)
_WANTS_SEVERAL = re.compile(
    r"\b(?:what|which)\b(?: [\w-]+){0,3}? (?!(?:is|was|does|has|this|his|its|always|as|plans|[\w-]*(?:ss|us|['\u2019]s))\b)[a-z][\w-]+s\b|"
    r"\b(?:how many|both|in common|all)\b|\bwhat (?:does|do|did|has|have) \w+ (?:do|like|enjoy|love)\b|"
    r"哪些|都有|多少|几个|いくつ|何人|すべて|全部",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Wants:
    """What would answer a question: a time, a name, several things. A question may want all of them or none."""

    time: bool = False
    name: bool = False
    several: bool = False


def traits(text: str) -> Traits:
    """Return what `text` shows of itself; nothing for no text."""
    return Traits(
        words=count_words(text),
        asks=asks(text),
        personal=min(_MOST, len(_PERSONAL.findall(text))),
        specifics=min(_MOST, len(_SPECIFIC.findall(text))),
        dated=bool(_DATED.search(text)),
    )


def wants(question: str) -> Wants:
    """Return what would answer `question`."""
    return Wants(
        time=bool(_WANTS_TIME.search(question)),
        name=bool(_WANTS_NAME.search(question)),
        several=bool(_WANTS_SEVERAL.search(question)),
    )
