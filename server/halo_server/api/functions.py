"""The functions a model may call, as published: the same declarations the SDK emits and `schemas/` holds."""

from halo_server.domain import JSON

__all__ = ["DECLARATIONS", "RETRIEVE"]

RETRIEVE = "halo_retrieve_end_user_memory"

DECLARATIONS: tuple[dict[str, JSON], ...] = (
    {
        "name": RETRIEVE,
        "description": "Retrieve relevant long-term memory for this end user.",
        "parameters": {
            "type": "object",
            "properties": {
                "sessionData": {
                    "type": "object",
                    "description": "Current conversation and application state.",
                    # Without it several strict-mode helpers close the object, and a model may then send only {}.
                    "additionalProperties": True,
                },
                "query": {"type": "string", "description": "Optional retrieval focus."},
                "limit": {"type": "number", "description": "Maximum raw records to return."},
            },
            "required": ["sessionData"],
        },
    },
)
