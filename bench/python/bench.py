"""One benchmark case of Python LangGraph per process.

    python bench.py CASE [ARG ...]      -> one JSON line on stdout

Every case builds its graph once, runs it a few times (median is reported), checks the final state,
and prints: case, args, mode, median_ms, min_ms, reps, supersteps, us_per_step, peak_rss_mb, extras.
Each case runs in its own process so that the peak RSS belongs to that case alone.
Only PyPI packages are used.
"""
import asyncio, gc, json, operator, resource, statistics, sys, time, uuid
from typing import Annotated, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send
from typing_extensions import TypedDict

BIG = 10_000_000  # recursion limit that never bites
TOOL_TEXT = "r" * 200  # what the fake tool returns
ANSWER = "a" * 200


def rss_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cfg(thread=None):
    c = {"recursion_limit": BIG}
    if thread is not None:
        c["configurable"] = {"thread_id": thread}
    return c


def measure(fn, reps=7, budget=20.0, warm=1):
    """Median over `reps` runs; stops early (never below 3) once `budget` seconds are gone."""
    for _ in range(warm):
        fn()
    times, t_all = [], time.perf_counter()
    for _ in range(reps):
        gc.collect()
        t = time.perf_counter()
        fn()
        times.append(time.perf_counter() - t)
        if len(times) >= 3 and time.perf_counter() - t_all > budget:
            break
    return times


# ---------------------------------------------------------------- graphs

ASYNC_NODES = False  # set for async cases: plain functions under ainvoke would each hop to a thread pool


def nd(f):
    """A node or router in the flavour of the running mode (plain function, or coroutine function)."""
    if not ASYNC_NODES:
        return f

    async def g(s):
        return f(s)
    return g


def g_chain(n, saver=None):
    class S(TypedDict):
        x: int
    g = StateGraph(S)
    prev = START
    for i in range(n):
        g.add_node(f"n{i}", nd(lambda s: {"x": s["x"] + 1}))
        g.add_edge(prev, f"n{i}")
        prev = f"n{i}"
    g.add_edge(prev, END)
    return g.compile(checkpointer=saver)


def g_loop(n, saver=None):
    class S(TypedDict):
        n: Annotated[int, operator.add]
    g = StateGraph(S)
    g.add_node("tick", nd(lambda s: {"n": 1}))
    g.add_edge(START, "tick")
    g.add_conditional_edges("tick", nd(lambda s: "tick" if s["n"] < n else END), ["tick", END])
    return g.compile(checkpointer=saver)


def g_fan(n, saver=None):
    class S(TypedDict):
        items: Annotated[list, operator.add]
        total: int
    g = StateGraph(S)
    g.add_node("work", nd(lambda s: {"items": [s["i"]]}))
    g.add_node("join", nd(lambda s: {"total": len(s["items"])}))
    g.add_conditional_edges(START, nd(lambda s: [Send("work", {"i": i}) for i in range(n)]), ["work"])
    g.add_edge("work", "join")
    g.add_edge("join", END)
    return g.compile(checkpointer=saver)


def g_wide(fields, steps=10, writers=5, one=False, saver=None):
    """`one`: a single writer that changes a single field."""
    S = TypedDict("S", {"step": int, **{f"f{i}": int for i in range(fields)}})
    g = StateGraph(S)
    g.add_node("tick", nd(lambda s: {"step": s["step"] + 1}))
    g.add_edge(START, "tick")
    names = ["w0"] if one else [f"w{k}" for k in range(writers)]
    for k, name in enumerate(names):
        keys = ["f0"] if one else [f"f{i}" for i in range(k, fields, writers)]
        g.add_node(name, nd(lambda s, keys=keys: {f: s[f] + 1 for f in keys}))
        g.add_edge(name, "tick")
    g.add_conditional_edges("tick", nd(lambda s: names if s["step"] <= steps else END), names + [END])
    return g.compile(checkpointer=saver)


def g_react(turns, saver=None):
    class S(TypedDict):
        messages: Annotated[list, add_messages]

    def model(s):
        n = len(s["messages"])
        k = (n - 1) // 2
        if k < turns:
            return {"messages": [AIMessage(content="", id=f"ai{k}", tool_calls=[
                {"id": f"call{k}", "name": "lookup", "args": {"q": f"query {k}"}}])]}
        return {"messages": [AIMessage(content=ANSWER, id=f"ai{k}")]}

    def tools(s):
        call = s["messages"][-1].tool_calls[0]
        return {"messages": [ToolMessage(content=TOOL_TEXT, tool_call_id=call["id"], id="t" + call["id"])]}

    g = StateGraph(S)
    g.add_node("model", nd(model))
    g.add_node("tools", nd(tools))
    g.add_edge(START, "model")
    g.add_conditional_edges("model", nd(lambda s: "tools" if s["messages"][-1].tool_calls else END), ["tools", END])
    g.add_edge("tools", "model")
    return g.compile(checkpointer=saver)


def g_subfan(n, saver=None):
    class Sub(TypedDict):
        i: int
        items: Annotated[list, operator.add]
    sg = StateGraph(Sub)
    sg.add_node("a", nd(lambda s: {"i": s["i"] + 1}))
    sg.add_node("b", nd(lambda s: {"i": s["i"] + 1}))
    sg.add_node("c", nd(lambda s: {"items": [s["i"]]}))
    sg.add_edge(START, "a"); sg.add_edge("a", "b"); sg.add_edge("b", "c"); sg.add_edge("c", END)

    class S(TypedDict):
        items: Annotated[list, operator.add]
        total: int
    g = StateGraph(S)
    g.add_node("sub", sg.compile())
    g.add_node("join", nd(lambda s: {"total": len(s["items"])}))
    g.add_conditional_edges(START, nd(lambda s: [Send("sub", {"i": i, "items": []}) for i in range(n)]), ["sub"])
    g.add_edge("sub", "join"); g.add_edge("join", END)
    return g.compile(checkpointer=saver)


# ---------------------------------------------------------------- running

def runner(graph, inp, check, mode, durability=None, thread=None):
    """A zero-argument callable that does one complete run; mode is sync or async (uvloop)."""
    kw = {"durability": durability} if durability else {}

    def conf():
        return cfg(thread() if thread else None)
    if mode == "sync":
        def one():
            assert check(graph.invoke(inp(), conf(), **kw))
        return one
    import uvloop
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)

    def one():
        assert check(loop.run_until_complete(graph.ainvoke(inp(), conf(), **kw)))
    return one


def report(case, args, mode, times, steps, **extra):
    med = statistics.median(times)
    print(json.dumps(dict(system="python", case=case, args=args, mode=mode, median_ms=round(med * 1e3, 3),
                          min_ms=round(min(times) * 1e3, 3), reps=len(times), supersteps=steps,
                          us_per_step=round(med / steps * 1e6, 2) if steps else None,
                          peak_rss_mb=round(rss_mb(), 1), **extra)), flush=True)


def uid():
    return uuid.uuid4().hex


def w1(n, mode):
    n = int(n)
    g = g_chain(n)
    report("W1", n, mode, measure(runner(g, lambda: {"x": 0}, lambda o: o["x"] == n, mode)), n)


def w2(n, mode):
    n = int(n)
    report("W2", n, mode, measure(runner(g_loop(n), lambda: {"n": 0}, lambda o: o["n"] == n, mode)), n)


def w3(n, mode):
    n = int(n)
    ts = measure(runner(g_fan(n), lambda: {"items": []},
                        lambda o: o["total"] == n and o["items"] == list(range(n)), mode))
    report("W3", n, mode, ts, 2, us_per_task=round(statistics.median(ts) / n * 1e6, 2))


def w4(fields, mode):
    fields = int(fields)
    ts = measure(runner(g_wide(fields), lambda: {"step": 0, **{f"f{i}": 0 for i in range(fields)}},
                        lambda o: all(o[f"f{i}"] == 10 for i in range(fields)), mode))
    report("W4", fields, mode, ts, 21)


def w4one(fields, mode):
    fields = int(fields)
    ts = measure(runner(g_wide(fields, one=True), lambda: {"step": 0, **{f"f{i}": 0 for i in range(fields)}},
                        lambda o: o["f0"] == 10, mode))
    report("W4-one", fields, mode, ts, 21)


def react_in():
    return {"messages": [HumanMessage(content="hi", id="h0")]}


def w5(turns, mode):
    turns = int(turns)
    ts = measure(runner(g_react(turns), react_in, lambda o: len(o["messages"]) == 2 * turns + 2, mode))
    report("W5", turns, mode, ts, 2 * turns + 1)


def w6(turns, durability):
    """W5 with the in-memory checkpointer; also the bytes kept for one thread. `disk.py` has the others."""
    turns = int(turns)
    check = lambda o: len(o["messages"]) == 2 * turns + 2
    saver = InMemorySaver()

    def thread():  # emptied before each run, so that peak RSS is that of one run
        saver.storage.clear(); saver.blobs.clear(); saver.writes.clear()
        return uid()
    ts = measure(runner(g_react(turns, saver), react_in, check, "sync", durability, thread), reps=7, budget=12)
    blobs = sum(len(v[1]) for v in saver.blobs.values())
    checkpoints = sum(len(cp[0][1]) + len(cp[1][1]) for t in saver.storage.values() for ns in t.values() for cp in ns.values())
    writes = sum(len(x[2][1]) for ws in saver.writes.values() for x in ws.values())
    report("W6-memory", turns, durability, ts, 2 * turns + 1, bytes_total=blobs + checkpoints + writes)


def w7(n, saver_kind="memory"):
    """n concurrent ainvoke calls of a 10-step chain, each its own thread_id."""
    import uvloop
    n = int(n)
    loop = uvloop.new_event_loop(); asyncio.set_event_loop(loop)

    def once():
        g = g_chain(10, InMemorySaver() if saver_kind == "memory" else None)
        async def go():
            outs = await asyncio.gather(*(g.ainvoke({"x": 0}, cfg(uid())) for _ in range(n)))
            assert all(o["x"] == 10 for o in outs)
        loop.run_until_complete(go())
    ts = measure(once, reps=7, budget=30, warm=1)
    report("W7-" + saver_kind, n, "async", ts, n * 10, runs_per_s=round(n / statistics.median(ts), 1))


def w8(mode_name):
    """stream(): time to the first event and events per second over the 1000-step loop."""
    g = g_loop(1000)
    first, total = [], []
    def one():
        t = time.perf_counter(); k = 0
        for _ in g.stream({"n": 0}, cfg(), stream_mode=mode_name):
            if k == 0:
                first.append(time.perf_counter() - t)
            k += 1
        total.append((k, time.perf_counter() - t))
    ts = measure(one)
    k = total[-1][0]
    report("W8", mode_name, "sync", ts, 1000, events=k, first_event_us=round(statistics.median(first[1:]) * 1e6, 1),
           events_per_s=round(k / statistics.median(ts)))


def w9(n, mode):
    n = int(n)
    ts = measure(runner(g_subfan(n), lambda: {"items": []}, lambda o: o["total"] == n, mode))
    report("W9", n, mode, ts, 2, us_per_subgraph=round(statistics.median(ts) / n * 1e6, 2))


def compile_time(n):
    n = int(n)
    report("compile", n, "sync", measure(lambda: g_chain(n), reps=7), n)


if __name__ == "__main__":
    ASYNC_NODES = sys.argv[1] == "w7" or sys.argv[-1] == "async" and sys.argv[1] != "w6"
    globals()[sys.argv[1]](*sys.argv[2:])
