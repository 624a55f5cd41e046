"""A conversation in: what a door was sent becomes a `Submission`, masked and counted, the same way for every door."""

from collections.abc import Mapping

from halo_server.config import Settings
from halo_server.domain import JSON, Instant, Submission
from halo_server.errors import InvalidRequest, TooLarge
from halo_server.redact import redact
from halo_server.transcript import read_message, read_session, split_response

__all__ = ["submission"]


def submission(
    settings: Settings,
    session: Mapping[str, JSON],
    response: JSON,
    *,
    occurred_at: Instant | None = None,
    sanitized: int = 0,
    truncated: bool = False,
) -> Submission:
    """Return what is to be captured: `session` holds the conversation so far and the application state beside it.

    Without a `response`, the trailing assistant message of `session` is the answer.

    Raises:
        TooLarge: More messages than `settings.max_messages`.
        InvalidRequest: A message is neither an object nor a string; the answer has no text.
    """
    transcript = read_session(redact(dict(session), settings.redact))
    if len(transcript.messages) > settings.max_messages:
        raise TooLarge(f"A capture takes at most {settings.max_messages} messages; send the newest.")
    answer = None
    if response is not None:
        sent = {"role": "assistant", "content": response} if isinstance(response, str) else response
        answer = read_message(redact(sent, settings.redact))
        if not answer.spoken:
            raise InvalidRequest("response must hold the assistant's text.")
    messages, answer = split_response(transcript.messages, answer)
    return Submission(messages, answer, transcript.state, occurred_at, sanitized, truncated)
