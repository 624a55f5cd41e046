"""Half a year of one end user's conversations, remembered: what `make demo` shows.

It captures the sample sessions exchange by exchange, then asks questions in new conversations through the
official `openai` client. The model decides to call the function; the answer comes from what the memory returned.
Offline it talks to the scripted model and checks each answer; with OPENAI_API_KEY set it talks to the real API.
The questions were chosen so that a model of a few rules can answer them: a walk-through, not a measurement.
"""

import argparse
import json
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from openai import OpenAI
from rich.console import Console
from rich.table import Column, Table

import halo_server
from examples._setting import openai_model
from halo_sdk import Halo, Memory, Outcome

SAMPLE = Path(__file__).with_name("sample_conversation.json")
SHOWN = 3  # of the returned exchanges
CALLS_PER_QUESTION = 4  # a model that only ever calls must not keep us here

console = Console(width=112, highlight=False, markup=False)


def line(label: str, text: object, *, style: str = "") -> None:
    """Print one line, cut at the width of the page."""
    console.print(f"{label:>11}  {text}", style=style, no_wrap=True, overflow="ellipsis")


def paragraph(label: str, text: object, *, style: str = "") -> None:
    """Print what must be read to its end, on as many lines as it takes."""
    grid = Table.grid("", Column(overflow="fold"), padding=(0, 2))
    grid.add_row(f"{label:>11}", str(text), style=style)
    console.print(grid)


@dataclass
class Demo:
    """One end user's memory and a model to talk to."""

    client: OpenAI
    model: str
    memory: Memory

    def declare(self) -> None:
        """Show what the model is told it may call."""
        console.rule("The declaration")
        [tool] = self.memory.tools("openai")
        line("function", f"{tool['function']['name']}: {tool['function']['description']}")
        for name, schema in tool["function"]["parameters"]["properties"].items():
            line(name, json.dumps(schema), style="dim")

    def replay(self, session: dict[str, Any]) -> None:
        """Capture a past conversation as it happened: after every answer."""
        said = [{"role": one["role"], "content": one["content"]} for one in session["messages"]]
        topics: set[str] = set()
        for i in range(1, len(said), 2):
            occurred_at = datetime.fromisoformat(session["messages"][i]["at"])
            # A key of its own for each exchange: an archive that is replayed again is not stored again.
            receipt = self.memory.capture(
                said[:i], said[i], occurred_at=occurred_at, idempotency_key=f"{session['id']}-{i}"
            )
            topics.update(receipt.topic_keys)
        line(
            session["messages"][0]["at"][:10],
            f"{session['title']}: {len(said)} messages → {', '.join(sorted(topics))}",
        )

    def ask(self, question: str) -> str:
        """Ask in a new conversation, letting the model call the memory; capture the exchange; return the answer."""
        line("user", question, style="bold")
        tools = self.memory.tools("openai")
        messages: list[Any] = [{"role": "user", "content": question}]
        for _ in range(CALLS_PER_QUESTION):
            response = self.client.chat.completions.create(model=self.model, messages=messages, tools=tools)
            messages.append(response.choices[0].message)
            results = self.memory.handle(response, session=messages)
            if not results:
                break
            for outcome in results.outcomes:
                self.show(outcome, messages)
            messages += results
        answer = response.choices[0].message.content or ""
        paragraph("model", answer, style="green")
        receipt = self.memory.capture(messages)
        line(
            "captured",
            f"{receipt.raw_entry_id} in {', '.join(receipt.topic_keys)}, index {receipt.index}",
            style="dim",
        )
        console.print()
        return answer

    def show(self, outcome: Outcome, messages: list[Any]) -> None:
        """Show a model's call, and the choice the memory made for it."""
        if not outcome.ok:
            line("failed", outcome.error, style="red")
            return
        asked = outcome.call.arguments
        line(
            "call",
            f"{outcome.call.name}(query={asked.get('query')!r}, limit={asked.get('limit')})",
            style="cyan",
        )
        # The model gets the exchanges only. Retrieving writes nothing, so asking again for the reason is safe.
        found = self.memory.retrieve(messages, query=asked.get("query"))
        line("topics", ", ".join(found.selected_topic_keys))
        paragraph("because", found.selection_reason)
        for entry in found.raw_entries[:SHOWN]:
            said = (entry.request_raw or {}).get("messages", [])
            line(
                str(entry.occurred_at)[:10],
                " ".join(str(one.get("content")) for one in said),
                style="dim",
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="data directory to use and keep; a temporary one by default")
    sample = json.loads(SAMPLE.read_text(encoding="utf-8"))
    started = perf_counter()
    with ExitStack() as stack:
        data = parser.parse_args().data or stack.enter_context(TemporaryDirectory())
        server = stack.enter_context(halo_server.embedded(data, project="default"))
        client, model = stack.enter_context(openai_model())
        demo = Demo(client, model, Halo(http_client=server).for_user(sample["endUserKey"]))
        demo.declare()
        console.rule(f"Half a year of {sample['endUserKey']}")
        for session in sample["sessions"]:
            demo.replay(session)
        console.rule(f"Questions, asked of {model}")
        found = [one["expects"].lower() in demo.ask(one["text"]).lower() for one in sample["questions"]]
    line(
        "summary",
        f"{sum(found)} of {len(found)} answers held the expected word, in {perf_counter() - started:.1f} s",
    )
    # A real model may word its answer as it likes; the scripted one quotes.
    assert model != "scripted" or all(found)


if __name__ == "__main__":
    main()
