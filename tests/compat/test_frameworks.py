"""The real frameworks run the loop; HALO is a few tools in it, and captures what they hand back."""

import asyncio
import gc
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import halo_server
from halo_sdk import AsyncHalo, Halo, HaloConfigError, Memory, PermissionDeniedError, functions
from halo_server.config import Settings
from tests.compat.conftest import PREFERENCE, PROJECT
from tests.compat.stub import Json, Stub
from tests.compat.test_matrix import ANSWER, ARGUMENTS, QUESTION, check_memory
from tests.compat.wires import Anthropic, Gemini, OpenAIChat, Wire, sdk
from tests.sdk.fakes import FOUND, KEY, RECEIPT, RETRIEVE, Count
from tests.sdk.replies import Call

pytestmark = [
    pytest.mark.providers,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Frameworks leave the closing of their clients and loops to the garbage collector: let it warn nobody else."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asyncio.set_event_loop(None)  # which would keep the loop of a framework that waits
        gc.collect()


CALLS = [Call("call_1", RETRIEVE, ARGUMENTS), Call("call_2", Count.name, {"since": 2026})]
TOOLS = ("retrieve", "capture", "count")


@pytest.fixture(autouse=True)
def _with_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be a function that takes a value of one kind only; ours make the best of any."""
    monkeypatch.setattr(functions, "FUNCTIONS", {**functions.FUNCTIONS, "count": Count()})


streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest.fixture
def memory(server):
    return Halo(http_client=server).for_user("user_123", tools=TOOLS)


def script(stub: Stub, wire: Wire, *, stream: bool = False) -> None:
    """Let a model make two calls of which one fails, then answer."""
    replies = [wire.calls(CALLS), wire.answer(ANSWER)]
    stub.replies += [wire.streamed(reply) if stream else reply for reply in replies]


def check_loop(stub: Stub, wire: Wire) -> None:
    """Check that every call was answered, from the right person's memory, and the conversation was declared open."""
    asked, answered = stub.bodies
    results = wire.results(answered)
    assert [id_ for id_, _ in results] == [call.id for call in CALLS]
    assert "weekly reports short" in json.dumps(results[0][1])
    assert "does not fit the declaration" in json.dumps(results[1][1])
    assert "canary" not in json.dumps(answered)
    assert '"sessionData": {"type": "object", "description"' in json.dumps(asked["tools"])
    assert '"additionalProperties": true' in json.dumps(asked["tools"])


def entries(memory: Memory) -> list[Json]:
    return [entry.to_dict() for entry in memory.retrieve(query=QUESTION).raw_entries]


# -- OpenAI Agents ---------------------------------------------------------------------------------------------------


def agent(stub: Stub, memory: Any) -> Any:
    agents, openai = sdk("agents"), sdk("openai")
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    client = openai.AsyncOpenAI(api_key="k", base_url=f"{stub.url}/v1", max_retries=0, http_client=http)
    model = agents.OpenAIChatCompletionsModel(model="m", openai_client=client)
    return agents.Agent(name="a", model=model, tools=memory.openai_agents_tools())


def test_openai_agents(stub, memory):
    agents, wire = sdk("agents"), OpenAIChat()
    script(stub, wire)
    result = agents.Runner.run_sync(agent(stub, memory), QUESTION)
    assert result.final_output == ANSWER
    check_loop(stub, wire)
    memory.capture(result.to_input_list())
    check_memory(entries(memory))


# -- LangChain and LangGraph -----------------------------------------------------------------------------------------


def langgraph_agent(stub: Stub, memory: Any) -> Any:
    prebuilt, langchain, openai = sdk("langgraph.prebuilt"), sdk("langchain_openai"), sdk("openai")
    model = langchain.ChatOpenAI(
        model="m",
        api_key="k",
        base_url=f"{stub.url}/v1",
        max_retries=0,
        http_client=openai.DefaultHttpxClient(trust_env=False),
        http_async_client=openai.DefaultAsyncHttpxClient(trust_env=False),
    )
    return prebuilt.create_react_agent(model, memory.langchain_tools())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@streams
def test_langgraph(stub, memory, stream):
    wire = OpenAIChat()
    script(stub, wire, stream=stream)
    graph, asked = langgraph_agent(stub, memory), {"messages": [("user", QUESTION)]}
    if stream:
        *_, (_, state) = graph.stream(asked, stream_mode=["messages", "values"])
    else:
        state = graph.invoke(asked)
    assert state["messages"][-1].content == ANSWER
    check_loop(stub, wire)
    memory.capture(state)
    check_memory(entries(memory))


def test_a_langchain_tool_that_fails_says_so_in_its_status(server):
    sdk("langchain_core")
    (tool,) = Halo(http_client=server).for_user("user_123").langchain_tools()
    call = {"type": "tool_call", "name": RETRIEVE, "args": {"sessionData": {}}, "id": "a"}
    assert tool.invoke(call).status == "success"
    (tool,) = Halo(http_client=server).for_user("u", project_key="nowhere").langchain_tools()
    result = tool.invoke(call)
    assert (result.status, "could not answer" in result.content) == ("error", True)


# -- pydantic-ai -----------------------------------------------------------------------------------------------------


def pydantic_agent(stub: Stub, memory: Any) -> Any:
    pydantic_ai, openai = sdk("pydantic_ai"), sdk("openai")
    models, providers = sdk("pydantic_ai.models.openai"), sdk("pydantic_ai.providers.openai")
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    client = openai.AsyncOpenAI(api_key="k", base_url=f"{stub.url}/v1", max_retries=0, http_client=http)
    model = models.OpenAIChatModel("m", provider=providers.OpenAIProvider(openai_client=client))
    return pydantic_ai.Agent(model, toolsets=[memory.pydantic_ai_toolset()])


@streams
def test_pydantic_ai(stub, memory, stream):
    wire = OpenAIChat()
    script(stub, wire, stream=stream)
    made = pydantic_agent(stub, memory)
    if stream:
        result = made.run_stream_sync(QUESTION)
        assert result.get_output() == ANSWER
    else:
        result = made.run_sync(QUESTION)
        assert result.output == ANSWER
    check_loop(stub, wire)
    memory.capture(result.all_messages())
    check_memory(entries(memory))


# -- LlamaIndex ------------------------------------------------------------------------------------------------------


def test_a_tool_of_llama_index_is_called_waiting_and_awaited(server):
    sdk("llama_index.core")
    memory = Halo(http_client=server).for_user("user_123")
    (tool,) = memory.llama_index_tools()
    declared = tool.metadata.to_openai_tool()["function"]
    assert declared["parameters"] == memory.tools("json-schema")[0]["parameters"]
    waited, awaited = tool.call(**ARGUMENTS), asyncio.run(tool.acall(**ARGUMENTS))
    assert "weekly reports short" in waited.content
    assert "canary" not in waited.content
    assert json.loads(awaited.content)["rawEntries"] == json.loads(waited.content)["rawEntries"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@streams
def test_llama_index(memory, stream):
    history = asyncio.run(_llama_index_agent(memory, stream=stream))
    memory.capture(history)
    check_memory(entries(memory))


async def _llama_index_agent(memory: Any, *, stream: bool) -> list[Any]:
    """Let an agent run with a model that says what is written down; return its conversation."""
    workflow, types = sdk("llama_index.core.agent.workflow"), sdk("llama_index.core.base.llms.types")
    mock = sdk("llama_index.core.llms.mock")
    seen: list[Any] = []

    def model(messages: Any, **_: Any) -> Any:
        seen[:] = messages
        if any(message.role == "tool" for message in messages):
            return types.ChatMessage(role="assistant", content=ANSWER)
        blocks = [
            types.ToolCallBlock(tool_call_id=call.id, tool_name=call.name, tool_kwargs=call.arguments)
            for call in CALLS
        ]
        return types.ChatMessage(role="assistant", blocks=blocks)

    llm = mock.MockFunctionCallingLLM(response_generator=model, is_chat_model=True)
    runner = workflow.FunctionAgent(tools=memory.llama_index_tools(), llm=llm, streaming=stream)
    answer = await runner.run(QUESTION)
    results = {
        message.additional_kwargs["tool_call_id"]: str(message.content)
        for message in seen
        if message.role == "tool"
    }
    assert "weekly reports short" in results["call_1"]
    assert "does not fit the declaration" in results["call_2"]
    return [*seen, answer.response]


# -- Anthropic's tool runner -----------------------------------------------------------------------------------------


@streams
def test_the_tool_runner_of_anthropic(stub, memory, stream):
    wire = Anthropic()
    script(stub, wire, stream=stream)
    client = wire.client(stub.url, awaited=False)
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    runner = client.beta.messages.tool_runner(
        model="m", max_tokens=99, messages=messages, tools=memory.anthropic_tools_runnable(), stream=stream
    )
    final = [each.get_final_message() if stream else each for each in runner][-1]
    check_loop(stub, wire)
    memory.capture(messages, final)
    check_memory(entries(memory))
    client.close()


# -- Gemini's automatic function calling -----------------------------------------------------------------------------


def responses(stub: Stub) -> list[Json]:
    parts = [part for content in stub.bodies[-1]["contents"] for part in content["parts"]]
    return [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]


def test_fc17_automatic_function_calling_of_gemini_takes_whole_numbers_and_none(stub, memory):
    sdk("google.genai")
    wire = Gemini()
    calls = [
        Call(
            "call_1", RETRIEVE, {"sessionData": {"mood": "invented"}, "query": "weekly reports", "limit": 5.0}
        )
    ]
    stub.replies += [wire.calls(calls), wire.answer(ANSWER)]
    client = wire.client(stub.url, awaited=False)
    reply = client.models.generate_content(
        model="m", contents=QUESTION, config={"tools": memory.gemini_callables()[:1]}
    )
    assert reply.text == ANSWER
    (response,) = responses(stub)
    assert "weekly reports short" in response["result"]["overallSummary"]
    client.close()


def test_a_call_that_fails_under_automatic_function_calling_is_an_error(stub, server):
    sdk("google.genai")
    wire = Gemini()
    stub.replies += [wire.calls([Call("call_1", RETRIEVE, {"sessionData": {}})]), wire.answer(ANSWER)]
    client = wire.client(stub.url, awaited=False)
    memory = Halo(http_client=server).for_user("user_123", project_key="nowhere")
    client.models.generate_content(model="m", contents="q", config={"tools": memory.gemini_callables()})
    (response,) = responses(stub)
    assert response["result"] == {"error": "memory could not answer this call; answer without it"}
    client.close()


# -- MCP -------------------------------------------------------------------------------------------------------------


def test_mcp(memory):
    asyncio.run(_mcp(memory))


async def _mcp(memory: Any) -> None:
    client = sdk("mcp.client.client")
    async with client.Client(memory.mcp_server()) as session:
        listed = await session.list_tools()
        dumped = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
        assert dumped == memory.tools("mcp")
        good, bad, unknown = await asyncio.gather(
            session.call_tool(RETRIEVE, ARGUMENTS),
            session.call_tool(Count.name, {"since": 2026}),
            session.call_tool("halo_other", {}),
        )
    assert "weekly reports short" in good.content[0].text
    assert "canary" not in good.content[0].text
    assert json.loads(good.content[0].text) == good.structured_content
    assert bad.is_error
    assert "does not fit the declaration" in bad.content[0].text
    assert unknown.is_error
    assert "no such function" in unknown.content[0].text


# -- awaited memories ------------------------------------------------------------------------------------------------

AWAITED = {}


def awaited(name: str) -> Any:
    """Register a program over an awaited memory; it returns what to capture."""

    def register(program: Any) -> Any:
        AWAITED[name] = program
        return program

    return register


@awaited("openai-agents")
async def _agents(stub: Stub, memory: Any, *, stream: bool) -> Any:
    runner, wire = sdk("agents").Runner, OpenAIChat()
    script(stub, wire, stream=stream)
    made = agent(stub, memory)
    if stream:
        result = runner.run_streamed(made, QUESTION)
        assert [event async for event in result.stream_events()]
    else:
        result = await runner.run(made, QUESTION)
    assert result.final_output == ANSWER
    check_loop(stub, wire)
    return result.to_input_list()


@awaited("langgraph")
async def _langgraph(stub: Stub, memory: Any, *, stream: bool) -> Any:
    wire = OpenAIChat()
    script(stub, wire, stream=stream)
    graph, asked = langgraph_agent(stub, memory), {"messages": [("user", QUESTION)]}
    if stream:
        states = [state async for _, state in graph.astream(asked, stream_mode=["messages", "values"])]
        state = states[-1]
    else:
        state = await graph.ainvoke(asked)
    check_loop(stub, wire)
    with pytest.raises(NotImplementedError):
        memory.langchain_tools()[0].invoke({"type": "tool_call", "name": RETRIEVE, "args": {}, "id": "a"})
    return state["messages"]


@awaited("pydantic-ai")
async def _pydantic_ai(stub: Stub, memory: Any, *, stream: bool) -> Any:
    wire = OpenAIChat()
    script(stub, wire, stream=stream)
    made = pydantic_agent(stub, memory)
    if stream:
        async with made.run_stream(QUESTION) as result:
            assert await result.get_output() == ANSWER
    else:
        result = await made.run(QUESTION)
    check_loop(stub, wire)
    return result.all_messages()


@awaited("llama-index")
async def _llama_index(stub: Stub, memory: Any, *, stream: bool) -> Any:
    return await _llama_index_agent(memory, stream=stream)


@awaited("anthropic")
async def _anthropic(stub: Stub, memory: Any, *, stream: bool) -> Any:
    wire = Anthropic()
    script(stub, wire, stream=stream)
    client = wire.client(stub.url, awaited=True)
    opening = {"role": "user", "content": QUESTION}
    runner = client.beta.messages.tool_runner(
        model="m", max_tokens=99, messages=[opening], tools=memory.anthropic_tools_runnable(), stream=stream
    )
    final = [await each.get_final_message() if stream else each async for each in runner][-1]
    check_loop(stub, wire)
    await client.close()
    return [opening, {"role": "assistant", "content": final.content}]


@awaited("gemini")
async def _gemini(stub: Stub, memory: Any, *, stream: bool) -> Any:
    wire = Gemini()
    script(stub, wire, stream=stream)
    client = wire.client(stub.url, awaited=True)
    asked = {"model": "m", "contents": QUESTION, "config": {"tools": memory.gemini_callables()}}
    if stream:
        chunks = [chunk async for chunk in await client.models.generate_content_stream(**asked)]
        assert ANSWER in "".join(chunk.text or "" for chunk in chunks)
    else:
        assert (await client.models.generate_content(**asked)).text == ANSWER
    found, refused = responses(stub)
    assert "weekly reports short" in found["result"]["overallSummary"]
    assert "since" in refused["error"]
    await client.aclose()
    return [wire.opening(QUESTION), {"role": "model", "parts": [{"text": ANSWER}]}]


@awaited("mcp")
async def _mcp_awaited(stub: Stub, memory: Any, *, stream: bool) -> Any:  # its results are never streamed
    await _mcp(memory)
    return [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@streams
@pytest.mark.parametrize("program", AWAITED.values(), ids=AWAITED)
def test_an_awaited_memory(stub, tmp_path, program, stream):
    asyncio.run(_with_awaited_memory(stub, tmp_path, program, stream=stream))


async def _with_awaited_memory(stub: Stub, directory: Path, program: Any, *, stream: bool) -> None:
    settings = Settings(embedder="hashing")
    async with halo_server.embedded_async(directory, project=PROJECT, settings=settings) as server:
        memory = AsyncHalo(http_client=server).for_user("user_123", tools=TOOLS)
        await memory.capture(PREFERENCE, "I will keep them concise.")
        await memory.capture(await program(stub, memory, stream=stream))
        found = await memory.retrieve(query=QUESTION)
        check_memory([entry.to_dict() for entry in found.raw_entries])


# -- the conversation ------------------------------------------------------------------------------------------------


def test_a_framework_s_tool_asks_about_the_application_s_conversation_when_it_is_given(server):
    sdk("llama_index.core")
    history: list[Any] = []
    memory = Halo(http_client=server).for_user("user_123", session="app", max_calls_per_turn=1)
    (tool,) = memory.llama_index_tools(session=lambda: history)
    assert set(tool.metadata.get_parameters_dict()["properties"]) == {"query", "limit"}
    history.append({"role": "user", "content": "weekly reports"})
    assert "weekly reports short" in tool.call(query="reports").content
    call = {"id": "a", "type": "function", "function": {"name": RETRIEVE, "arguments": "{}"}}
    history += [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "{}"},
    ]
    assert "already consulted" in tool.call(query="reports").content


def test_a_key_that_is_not_accepted_is_raised_through_a_framework(server):
    sdk("langchain_core")
    key_of_nobody = {"Authorization": "Bearer halo_unknown"}
    memory = Halo(http_client=server, default_headers=key_of_nobody).for_user("user_123")
    (tool,) = memory.langchain_tools()
    with pytest.raises(PermissionDeniedError):
        tool.invoke({"type": "tool_call", "name": RETRIEVE, "args": {"sessionData": {}}, "id": "a"})


class Service:
    """A service of memory that remembers what it was sent."""

    def __init__(self) -> None:
        self.bodies: list[Json] = []
        self.http = httpx.Client(transport=httpx.MockTransport(self._answer))

    def memory(self, **options: Any) -> Memory:
        return Halo(KEY, project_key=PROJECT, http_client=self.http).for_user("user_123", **options)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(json.loads(request.content))
        return httpx.Response(200, json=FOUND if "/functions/" in request.url.path else RECEIPT)


@pytest.fixture
def service() -> Service:
    return Service()


RUNS: dict[str, Callable[[Stub, Memory], Any]] = {
    "langgraph": lambda stub, memory: langgraph_agent(stub, memory).invoke(
        {"messages": [("user", QUESTION)]}
    ),
    "openai-agents": lambda stub, memory: sdk("agents").Runner.run_sync(agent(stub, memory), QUESTION),
    "pydantic-ai": lambda stub, memory: pydantic_agent(stub, memory).run_sync(QUESTION),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("session", ["model", "app"])
def test_a_framework_that_knows_the_conversation_asks_about_it(stub, service, run, session):
    wire = OpenAIChat()
    forged = {**ARGUMENTS, "runtime": {"state": {"messages": ["invented"]}}, "context": "invented"}
    stub.replies += [wire.calls([Call("call_1", RETRIEVE, forged)]), wire.answer(ANSWER)]
    run(stub, service.memory(session=session))
    (asked,) = service.bodies
    (message,) = asked["arguments"]["sessionData"]["messages"]
    assert QUESTION in json.dumps(message)
    assert "invented" not in json.dumps(asked)
    assert '"runtime"' not in json.dumps(stub.bodies[0]["tools"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("run", [RUNS["langgraph"], RUNS["pydantic-ai"]], ids=["langgraph", "pydantic-ai"])
def test_the_calls_of_a_whole_run_are_counted(stub, service, run):
    wire = OpenAIChat()
    stub.replies += [wire.calls([Call(id_, RETRIEVE, ARGUMENTS)]) for id_ in ("call_1", "call_2")]
    stub.replies.append(wire.answer(ANSWER))
    run(stub, service.memory(max_calls_per_turn=1))
    assert len(service.bodies) == 1
    assert "already consulted" in json.dumps(wire.results(stub.bodies[2])[1])


# -- what a model writes ---------------------------------------------------------------------------------------------

CART = {"items": [{"name": "tea", "price": None}, 1.5], "notes": {"a": {"b": []}}}
SAID = [{"role": "user", "content": "hi"}]
WRITTEN = {
    "sessionData": {"messages": SAID, "cart": CART, "projectKey": "other", "user": {"endUserKey": "victim"}},
    "query": "tea",
    "limit": 5.0,
    "endUserKey": "victim",
    "context": {"a": 1},
    "config": {"a": 1},
    "runtime": {"state": {"messages": ["forged"]}},
}


def _through_gemini(stub: Stub, memory: Memory) -> None:
    sdk("google.genai")
    wire = Gemini()
    stub.replies += [wire.calls([Call("call_1", RETRIEVE, WRITTEN)]), wire.answer(ANSWER)]
    client = wire.client(stub.url, awaited=False)
    client.models.generate_content(model="m", contents="q", config={"tools": memory.gemini_callables()})
    client.close()


def _through_langchain(_: Stub, memory: Memory) -> None:
    sdk("langchain_core")
    (tool,) = memory.langchain_tools()
    tool.invoke({"type": "tool_call", "name": RETRIEVE, "args": {**WRITTEN, "self": "me"}, "id": "a"})


async def _through_mcp(memory: Memory) -> None:
    async with sdk("mcp.client.client").Client(memory.mcp_server()) as session:
        await session.call_tool(RETRIEVE, WRITTEN)


THROUGH: dict[str, Callable[[Stub, Memory], Any]] = {
    "anthropic": lambda _, memory: sdk("anthropic") and memory.anthropic_tools_runnable()[0].call(WRITTEN),
    "gemini": _through_gemini,
    "langchain": _through_langchain,
    "llama-index": lambda _, memory: sdk("llama_index.core.tools.calling").call_tool(
        memory.llama_index_tools()[0], WRITTEN
    ),
    "mcp": lambda _, memory: asyncio.run(_through_mcp(memory)),
}


@pytest.mark.parametrize("through", THROUGH.values(), ids=THROUGH)
def test_what_a_model_writes_arrives_whole_and_names_nobody(stub, service, through):
    through(stub, service.memory())
    assert service.bodies == [
        {
            "projectKey": PROJECT,
            "endUserKey": "user_123",
            "arguments": {
                "sessionData": {"messages": SAID, "cart": CART, "user": {}},
                "query": "tea",
                "limit": 5,
            },
        }
    ]


# -- failures --------------------------------------------------------------------------------------------------------


def _marks_of_anthropic(stub: Stub, memory: Memory) -> list[bool]:
    wire = Anthropic()
    script(stub, wire)
    client = wire.client(stub.url, awaited=False)
    asked = [{"role": "user", "content": QUESTION}]
    client.beta.messages.tool_runner(
        model="m", max_tokens=99, messages=asked, tools=memory.anthropic_tools_runnable()
    ).until_done()
    client.close()
    return [block.get("is_error", False) for block in stub.bodies[1]["messages"][-1]["content"]]


def _marks_of_langgraph(stub: Stub, memory: Memory) -> list[bool]:
    script(stub, OpenAIChat())
    _, _, *results, _ = RUNS["langgraph"](stub, memory)["messages"]
    return [result.status == "error" for result in results]


def _marks_of_llama_index(_: Stub, memory: Memory) -> list[bool]:
    calling = sdk("llama_index.core.tools.calling")
    tools = {tool.metadata.name: tool for tool in memory.llama_index_tools()}
    return [calling.call_tool(tools[call.name], call.arguments).is_error for call in CALLS]


def _marks_of_pydantic_ai(stub: Stub, memory: Memory) -> list[bool]:
    script(stub, OpenAIChat())
    results = RUNS["pydantic-ai"](stub, memory).all_messages()[2].parts
    return [part.outcome == "failed" for part in results]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "marks", [_marks_of_anthropic, _marks_of_langgraph, _marks_of_llama_index, _marks_of_pydantic_ai]
)
def test_a_call_that_fails_is_marked_in_the_framework_s_own_way(stub, service, marks):
    assert marks(stub, service.memory(tools=TOOLS)) == [False, True]


def test_a_llama_index_tool_of_an_awaited_memory_does_not_wait():
    sdk("llama_index.core")
    (tool,) = AsyncHalo(KEY, project_key=PROJECT).for_user("user_123").llama_index_tools()
    with pytest.raises(HaloConfigError, match="acall"):
        tool.call(query="tea")


def test_the_schema_of_a_llama_index_tool_is_the_declaration_and_takes_anything(service):
    sdk("llama_index.core")
    memory = service.memory()
    (tool,) = memory.llama_index_tools()
    assert tool.metadata.fn_schema.model_json_schema() == memory.tools("json-schema")[0]["parameters"]
    assert tool.metadata.fn_schema(**WRITTEN).model_dump() == WRITTEN


# -- histories -------------------------------------------------------------------------------------------------------

RECALLED = "recalled words"
INVENTED = {"sessionData": {"text": "invented"}}


def _langchain_history() -> list[Any]:
    messages = sdk("langchain_core.messages")
    call = {"name": RETRIEVE, "args": INVENTED, "id": "a"}
    responses = {"type": "function_call", "call_id": "a", "name": RETRIEVE, "arguments": json.dumps(INVENTED)}
    chunk = {"name": RETRIEVE, "args": json.dumps(INVENTED), "id": "a", "index": 0}
    result = messages.ToolMessage(RECALLED, tool_call_id="a")
    return [
        messages.HumanMessage(QUESTION),
        messages.AIMessage([{"type": "text", "text": "Let me see."}, responses], tool_calls=[call]),
        result,
        messages.AIMessage(
            content_blocks=[{"type": "text", "text": "Once more."}, {"type": "tool_call", **call}]
        ),
        result,
        messages.AIMessageChunk("And again.", tool_call_chunks=[chunk]),
        result,
        messages.AIMessage(ANSWER),
    ]


def _llama_index_history() -> list[Any]:
    types = sdk("llama_index.core.base.llms.types")
    call = {"id": "a", "type": "function", "function": {"name": RETRIEVE, "arguments": json.dumps(INVENTED)}}
    return [
        types.ChatMessage(role="user", content=QUESTION),
        types.ChatMessage(role="assistant", content="Let me see.", additional_kwargs={"tool_calls": [call]}),
        types.ChatMessage(role="tool", content=RECALLED, additional_kwargs={"tool_call_id": "a"}),
        types.ChatMessage(role="assistant", content=ANSWER),
    ]


def _pydantic_ai_history() -> list[Any]:
    messages = sdk("pydantic_ai.messages")
    call = messages.ToolCallPart(RETRIEVE, INVENTED, tool_call_id="a")
    return [
        messages.ModelRequest(
            parts=[messages.SystemPromptPart("Be kind."), messages.UserPromptPart(QUESTION)]
        ),
        messages.ModelResponse(
            parts=[messages.ThinkingPart("hidden"), messages.TextPart("Let me see."), call]
        ),
        messages.ModelRequest(parts=[messages.ToolReturnPart(RETRIEVE, RECALLED, tool_call_id="a")]),
        messages.ModelResponse(parts=[messages.TextPart(ANSWER)]),
    ]


WRITTEN_DOWN: dict[str, Callable[[], Any]] = {
    "langchain": _langchain_history,
    "langchain dumped": lambda: sdk("langchain_core.messages").messages_to_dict(_langchain_history()),
    "llama-index": _llama_index_history,
    "llama-index dumped": lambda: [message.model_dump(mode="json") for message in _llama_index_history()],
    "pydantic-ai": _pydantic_ai_history,
    "pydantic-ai dumped": lambda: json.loads(
        sdk("pydantic_ai.messages").ModelMessagesTypeAdapter.dump_json(_pydantic_ai_history())
    ),
}


@pytest.mark.parametrize("history", WRITTEN_DOWN.values(), ids=WRITTEN_DOWN)
def test_a_framework_s_own_messages_are_captured_without_our_part_in_them(service, history):
    service.memory().capture(history())
    (body,) = service.bodies
    said = json.dumps(body["sessionData"])
    assert QUESTION in said
    assert "Let me see." in said
    assert ANSWER not in said
    assert ANSWER in json.dumps(body["response"])
    for ours in (RETRIEVE, RECALLED, "invented", "hidden"):
        assert ours not in json.dumps(body)
