"""Conversations with LangGraph's ReAct agent, many at once, remembered in one SQLite file.

    python chats.py CONVERSATIONS      -> one JSON line on stdout

The saver is opened as its documentation opens it; the durability is the default, `async`. A turn is a run that begins
with new words of a human; in every fourth one the model calls the tool once. After `MOST_SECONDS` no turn begins any
more, and the note of the line says how many there were.
"""
import asyncio, os, sys, tempfile, time, warnings

import uvloop
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

warnings.filterwarnings("ignore")  # the agent has moved to another package, and says so
from langgraph.prebuilt import create_react_agent

from bench import ANSWER, TOOL_TEXT, cfg, report

TURNS = 20
CALLING = 4
MOST_SECONDS = 300


class Scripted(BaseChatModel):
    """Answers at once."""

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **_):
        turn = sum(isinstance(message, HumanMessage) for message in messages)
        if isinstance(messages[-1], HumanMessage) and turn % CALLING == 0:
            call = {"id": f"call{turn}", "name": "lookup", "args": {"q": f"query {turn}"}}
            answer = AIMessage(content="", tool_calls=[call])
        else:
            answer = AIMessage(content=ANSWER)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    async def _agenerate(self, messages, stop=None, run_manager=None, **_):
        return self._generate(messages)


async def lookup(q: str) -> str:
    """Looks something up."""
    assert q
    return TOOL_TEXT


async def converse(app, number, deadline):
    """The turns of one conversation, and the steps that they took."""
    turns = 0
    while turns < TURNS and time.perf_counter() < deadline:
        turns += 1
        out = await app.ainvoke({"messages": [HumanMessage(f"question {turns}")]}, cfg(f"t{number}"))
    calls = turns // CALLING
    assert turns == 0 or len(out["messages"]) == 2 * turns + 2 * calls, len(out["messages"])
    return turns, turns + 2 * calls


async def talk(conversations, path):
    """Seconds, turns and steps of all conversations."""
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        await saver.setup()
        app = create_react_agent(Scripted(), [StructuredTool.from_function(coroutine=lookup)], checkpointer=saver)
        start = time.perf_counter()
        runs = (converse(app, number, start + MOST_SECONDS) for number in range(conversations))
        turns, steps = map(sum, zip(*await asyncio.gather(*runs)))
        return time.perf_counter() - start, turns, steps


def main(conversations):
    conversations = int(conversations)
    with tempfile.TemporaryDirectory(prefix="chats_") as folder:
        path = f"{folder}/chats.db"
        seconds, turns, steps = uvloop.run(talk(conversations, path))
        size = os.path.getsize(path)
    done = f"{TURNS} turns each"
    if turns < conversations * TURNS:
        done = f"stopped after {MOST_SECONDS} s, when {turns} of {conversations * TURNS} turns were done"
    report("chats", conversations, "async", [seconds], steps, runs_per_s=round(turns / seconds, 1), turns=turns,
           bytes_total=size, note=f"AsyncSqliteSaver, durability async, {done}")


if __name__ == "__main__":
    main(*sys.argv[1:])
