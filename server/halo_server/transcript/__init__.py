"""Reads what applications send and people bring along as conversation: who said what, when, and what the question is.

Every provider, framework and program spells a message its own way; after this package there is one. What must not be stored as
memory (instructions, reasoning, signatures, binary data, HALO's own recalled text) leaves here as a typed placeholder.
It changes when the world learns another message format.
"""

from halo_server.transcript.exports import Conversation, Export, read_document
from halo_server.transcript.messages import FUNCTION_PREFIX, read_message
from halo_server.transcript.session import Transcript, natural_query, read_session, split_response
from halo_server.transcript.times import read_time

__all__ = [
    "FUNCTION_PREFIX",
    "Conversation",
    "Export",
    "Transcript",
    "natural_query",
    "read_document",
    "read_message",
    "read_session",
    "read_time",
    "split_response",
]
