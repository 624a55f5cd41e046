"""A memory for any model: raw JSON in, raw JSON out, no provider's client. Run: `python -m examples.manual`.

Use it when your model is behind a wire of its own, or when your code, not the model, decides to remember.
"""

import json
from tempfile import TemporaryDirectory

import halo_server
from halo_sdk import Halo

QUESTION = {"role": "user", "content": "What format do I prefer for weekly reports?"}

with TemporaryDirectory() as directory, halo_server.embedded(directory, project="default") as server:
    memory = Halo(http_client=server).for_user("user_123")

    memory.capture(
        [{"role": "user", "content": "Keep my weekly reports short and send them in the morning."}],
        {"role": "assistant", "content": "I will keep them concise and morning-ready."},
    )

    # 1. Tell your model what it may call, in whatever way it is told such things.
    [declaration] = memory.tools("json-schema")
    print(json.dumps(declaration, indent=2))

    # 2. Your model wrote a name and arguments: call the function with them.
    found = memory.call(
        "halo_retrieve_end_user_memory",
        {"sessionData": {"messages": [QUESTION]}, "query": "weekly report preference", "limit": 5},
    )

    # 3. Put the compact response into its prompt.
    prompt = f"Memory of this end user:\n{found.function_response.to_json()}\n\n{QUESTION['content']}"
    print(prompt)
    assert "short" in prompt
