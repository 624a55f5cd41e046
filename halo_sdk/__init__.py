"""Long-term memory of end users for LLM applications, through function calling.

from halo_sdk import Halo

memory = Halo().for_user("user_123")
reply = model(messages, tools=memory.tools("openai"))
messages += memory.handle(reply, session=messages)
...
memory.capture(messages)
"""

from halo_sdk._wire import __version__
from halo_sdk.client import AsyncHalo, AsyncMemory, Halo, Memory
from halo_sdk.dialects.base import Accumulator
from halo_sdk.dispatch import ToolResults
from halo_sdk.errors import (
    AuthenticationError,
    BadRequestError,
    ConflictError,
    EmptyAnswerError,
    HaloConfigError,
    HaloConnectionError,
    HaloError,
    HaloResponseError,
    HaloStatusError,
    HaloTimeoutError,
    IdempotencyError,
    InvalidArgumentsError,
    NotFoundError,
    PayloadTooLargeError,
    PermissionDeniedError,
    RateLimitError,
    ServerError,
    ToolCallError,
    TruncatedArgumentsError,
    UnknownToolError,
)
from halo_sdk.lint import Fault, lint, lint_history
from halo_sdk.types import (
    CaptureResult,
    FunctionResponse,
    MatchedMessage,
    Outcome,
    RawEntry,
    Reply,
    RetrieveResult,
    ToolCall,
    Topic,
    TopicLink,
)

__all__ = [
    "Accumulator",
    "AsyncHalo",
    "AsyncMemory",
    "AuthenticationError",
    "BadRequestError",
    "CaptureResult",
    "ConflictError",
    "EmptyAnswerError",
    "Fault",
    "FunctionResponse",
    "Halo",
    "HaloConfigError",
    "HaloConnectionError",
    "HaloError",
    "HaloResponseError",
    "HaloStatusError",
    "HaloTimeoutError",
    "IdempotencyError",
    "InvalidArgumentsError",
    "MatchedMessage",
    "Memory",
    "NotFoundError",
    "Outcome",
    "PayloadTooLargeError",
    "PermissionDeniedError",
    "RateLimitError",
    "RawEntry",
    "Reply",
    "RetrieveResult",
    "ServerError",
    "ToolCall",
    "ToolCallError",
    "ToolResults",
    "Topic",
    "TopicLink",
    "TruncatedArgumentsError",
    "UnknownToolError",
    "__version__",
    "lint",
    "lint_history",
]
