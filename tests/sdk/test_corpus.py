"""Arguments as models of the real world wrote them, in public data beside the checkout."""

import json
from pathlib import Path

import pytest

from tests.sdk.fakes import RETRIEVE, openai_reply, sent

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
USER = {"role": "user", "content": "What format do I prefer?"}

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not CORPUS.exists(), reason="public evaluation data is not beside the checkout"),
]


@pytest.mark.parametrize("name", ["165_model_made_arguments.json", "166_argument_variants.json"])
@pytest.mark.parametrize("session", [[USER], None], ids=["passed", "retyped"])
def test_what_models_write_never_names_a_person_and_never_fails_a_turn(service, memory, name, session):
    calls = json.loads((CORPUS / name).read_text(encoding="utf-8"))["calls"]
    for arguments in calls:
        for written in (arguments, json.dumps(arguments), json.dumps(json.dumps(arguments))):
            (outcome,) = memory.handle(openai_reply((RETRIEVE, written)), session=session).outcomes
            assert outcome.ok, outcome.body
            body = sent(service["function"])
            assert (body["projectKey"], body["endUserKey"]) == ("customer-product", "user_123")
            assert set(body["arguments"]) <= {"sessionData", "query", "limit"}
            assert "someone-else" not in json.dumps(body)
            limit, query = body["arguments"].get("limit"), body["arguments"].get("query")
            assert limit is None or (isinstance(limit, int) and 1 <= limit <= 50)
            assert query is None or query.strip() == query != ""
            if session:
                assert body["arguments"]["sessionData"] == {"messages": [USER]}
