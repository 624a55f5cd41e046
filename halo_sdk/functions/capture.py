"""`halo_capture_end_user_memory`: the model decides when an exchange is worth keeping; what is kept is the application's history.

Off unless an application asks for it. No word of the model's is stored: a model invents what was said, and who said it.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from halo_sdk._arguments import Repair, read_flag
from halo_sdk._session import so_far
from halo_sdk._wire import Request, capture_request, captured
from halo_sdk.errors import ToolCallError
from halo_sdk.functions.base import Function, Invocation, SessionSource, nullable
from halo_sdk.types import CaptureResult, Effects, Reply

CAPTURE = "halo_capture_end_user_memory"

_ASKED = "Whether the end user asked for it to be remembered."


class Capture(Function):
    """The conversation up to the end user's last words."""

    key: ClassVar[str] = "capture"
    name: ClassVar[str] = CAPTURE
    description: ClassVar[str] = (
        "Keep the current conversation in this end user's long-term memory. "
        "Call it when the end user says something worth remembering."
    )
    effects: ClassVar[Effects] = Effects(idempotent=True)
    repairs: ClassVar[Mapping[str, Repair]] = {"asked": read_flag}

    def parameters(self, session: SessionSource) -> dict[str, Any]:
        """Return one yes or no, for the application to read; nothing a model writes is stored."""
        kind = {"type": "boolean"}
        asked = nullable(kind, _ASKED) if session == "app" else {**kind, "description": _ASKED}
        return {"type": "object", "properties": {"asked": asked}}

    def request(self, made: Invocation) -> Request:
        """Store the application's history, without a key: the service knows a repetition by its content.

        It knows a history of several messages again whatever was captured in between. The first words of a conversation, sent
        alone, it takes for a repetition only within its duplicate window, and only while they are the newest exchange; said
        later, or after something else, they are stored anew. So a call made twice captures once, and two conversations that
        begin alike are two.
        """
        conversation = None if made.session is None else so_far(made.session)
        if conversation is None or conversation.is_silent:
            raise ToolCallError(
                "there is no conversation to keep; answer without calling this function again"
            )
        return capture_request(made.scope, conversation.session_data, None, truncated=conversation.truncated)

    def result(self, reply: Reply) -> CaptureResult:
        """Read the receipt."""
        return captured(reply)

    def body(self, result: CaptureResult) -> dict[str, Any]:
        """Tell the model no more than that it is done."""
        return {"captured": result.captured}
