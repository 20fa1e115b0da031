"""Plays scripted conversations through LangGraph's create_react_agent and prints what came of them.

usage: oracle.py SCENARIO.json   (needs langgraph, langgraph-prebuilt)
"""

import json
import sys
import warnings

warnings.filterwarnings("ignore")

from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.prebuilt import InjectedState, ToolNode, create_react_agent
from langgraph.types import Command, interrupt
from pydantic import BaseModel


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
def divide(a: int, b: int) -> int:
    """Divides two numbers."""
    return a // b


@tool
def ask(question: str) -> str:
    """Asks a human."""
    return str(interrupt({"question": question}))


@tool(return_direct=True)
def look(word: str) -> str:
    """Looks up a word."""
    return f"{word}: a word"


@tool
def note(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
    """Notes something."""
    return Command(update={"messages": [ToolMessage(f"noted: {text}", tool_call_id=tool_call_id)]})


@tool
def count(state: Annotated[dict, InjectedState]) -> int:
    """Counts the messages."""
    return len(state["messages"])


TOOLS = {t.name: t for t in [add, divide, ask, look, note, count]}


class Answer(BaseModel):
    """An answer."""

    value: int


class Scripted(BaseChatModel):
    script: list
    read: list = []

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def with_structured_output(self, schema, **kwargs):
        def parse(messages):
            self.read.append([shown(m) for m in messages])
            return schema.model_validate_json(self.script.pop(0)["text"])

        return RunnableLambda(parse)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.read.append([shown(m) for m in messages])
        said = self.script.pop(0)
        calls = [dict(c, type="tool_call") for c in said.get("calls", [])]
        message = AIMessage(said.get("text", ""), tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


# The words of errors are each language's own.
WORDED_OTHERWISE = ("Error invoking tool", "Error: ZeroDivision")


def shown(message) -> dict:
    out: dict[str, Any] = {"type": message.type, "content": message.content}
    if getattr(message, "tool_calls", None):
        out["calls"] = [{k: c[k] for k in ("id", "name", "args")} for c in message.tool_calls]
    if message.content.startswith(WORDED_OTHERWISE):
        out["content"] = "an error"
    if message.type == "tool":
        out["answers"] = message.tool_call_id
        if message.status == "error":
            out["error"] = True
    # LangGraph names every tool message that it makes itself; the names of tools that answer by a command are their own.
    if message.name and message.type == "ai":
        out["name"] = message.name
    return out


def policy(value):
    return {"tell": True, "raise": False}.get(value, value)


def main(path):
    scenario = json.load(open(path))
    model = Scripted(script=scenario["script"])
    tools = [TOOLS[name] for name in scenario["tools"]]
    if "on_error" in scenario:
        tools = ToolNode(tools, handle_tool_errors=policy(scenario["on_error"]))
    agent = create_react_agent(
        model,
        tools,
        prompt=scenario.get("prompt"),
        name=scenario.get("name"),
        response_format=Answer if scenario.get("response") else None,
        checkpointer=InMemorySaver(),
        interrupt_before=scenario.get("interrupt_before"),
        interrupt_after=scenario.get("interrupt_after"),
    )
    config = {"configurable": {"thread_id": "t"}, "recursion_limit": scenario.get("recursion_limit", 25)}
    trace = []
    for turn in scenario["turns"]:
        if "say" in turn:
            given = {"messages": [("user", turn["say"])]}
        elif "resume" in turn:
            given = Command(resume=turn["resume"])
        elif "answers" in turn:
            pending = [i for t in agent.get_state(config).tasks for i in t.interrupts]
            given = Command(resume={i.id: turn["answers"][i.value["question"]] for i in pending})
        else:
            given = None
        error = None
        try:
            agent.invoke(given, config)
        except GraphRecursionError:
            error = "recursion"
        except Exception:  # noqa: BLE001
            error = "failed"
        state = agent.get_state(config)
        answer = state.values.get("structured_response")
        trace.append(
            {
                "error": error,
                "messages": [shown(m) for m in state.values.get("messages", [])],
                "next": sorted(state.next),
                "interrupts": sorted((i.value for t in state.tasks for i in t.interrupts), key=json.dumps),
                "structured": answer.model_dump() if answer else None,
            }
        )
    print(json.dumps({"turns": trace, "read": model.read}, indent=1, ensure_ascii=False))


main(sys.argv[1])
