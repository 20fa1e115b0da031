"""W6 on disk: LangGraph's own savers, opened as its documentation opens them, with their default settings.

    python disk.py sqlite|postgres TURNS sync|async MODE      -> one JSON line on stdout

The third word is the durability, the last one the flavour: `sync` is invoke with SqliteSaver or PostgresSaver,
`async` is ainvoke with AsyncSqliteSaver or AsyncPostgresSaver. The note of the line says what the database itself
says about syncing.
"""
import asyncio, os, shutil, sys, tempfile
from contextlib import AsyncExitStack, ExitStack

import uvloop

import bench
from bench import cfg, g_react, measure, react_in, report, uid

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


class Sync:
    """Graphs and savers that block."""

    def __init__(self):
        self.open_savers = ExitStack()

    def sqlite(self, path):
        from langgraph.checkpoint.sqlite import SqliteSaver
        saver = self.open_savers.enter_context(SqliteSaver.from_conn_string(path))
        saver.setup()
        return saver

    def postgres(self, address):
        from langgraph.checkpoint.postgres import PostgresSaver
        saver = self.open_savers.enter_context(PostgresSaver.from_conn_string(address))
        saver.setup()
        return saver

    def execute(self, saver, sql):
        saver.conn.execute(sql)

    def ask(self, saver, sql):
        return first(saver.conn.execute(sql).fetchone())

    def run(self, graph, durability):
        return graph.invoke(react_in(), cfg(uid()), durability=durability)

    def close(self):
        self.open_savers.close()


class Async:
    """The same on an event loop."""

    def __init__(self):
        self.loop = uvloop.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.open_savers = AsyncExitStack()

    def sqlite(self, path):
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
        return self.loop.run_until_complete(self.enter(lambda: AsyncSqliteSaver.from_conn_string(path)))

    def postgres(self, address):
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
        return self.loop.run_until_complete(self.enter(lambda: AsyncPostgresSaver.from_conn_string(address)))

    async def enter(self, make):
        saver = await self.open_savers.enter_async_context(make())
        await saver.setup()
        return saver

    def execute(self, saver, sql):
        self.loop.run_until_complete(saver.conn.execute(sql))

    def ask(self, saver, sql):
        async def answer():
            return await (await saver.conn.execute(sql)).fetchone()
        return first(self.loop.run_until_complete(answer()))

    def run(self, graph, durability):
        return self.loop.run_until_complete(graph.ainvoke(react_in(), cfg(uid()), durability=durability))

    def close(self):
        self.loop.run_until_complete(self.open_savers.aclose())


def first(row):
    """The only column of a row, which is a dict or a tuple."""
    return next(iter(row.values())) if isinstance(row, dict) else row[0]


def sqlite(flavour, run_with):
    folder = tempfile.mkdtemp(prefix="w6_")
    one = type(flavour)()
    run_with(one, one.sqlite(f"{folder}/one.db"))()
    one.close()
    size = os.path.getsize(f"{folder}/one.db")

    saver = flavour.sqlite(f"{folder}/timed.db")
    settings = {name: flavour.ask(saver, f"pragma {name}") for name in ("journal_mode", "synchronous")}
    times = timed(run_with(flavour, saver))
    flavour.close()
    shutil.rmtree(folder, ignore_errors=True)
    level = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}[settings["synchronous"]]
    return times, size, f"{type(saver).__name__}, journal_mode={settings['journal_mode']}, synchronous={level}"


def postgres(flavour, run_with):
    saver = flavour.postgres(os.environ["SUPERSTEP_TEST_POSTGRES"])
    empty = "truncate " + ", ".join(TABLES)
    flavour.execute(saver, empty)
    run = run_with(flavour, saver)
    run()
    size = flavour.ask(saver, "select " + " + ".join(f"pg_total_relation_size('{table}')" for table in TABLES))
    settings = [f"{name}={flavour.ask(saver, f'show {name}')}" for name in ("fsync", "synchronous_commit")]
    flavour.execute(saver, empty)
    times = timed(run)
    flavour.close()
    return times, size, f"{type(saver).__name__}, {', '.join(settings)}"


def timed(run):
    """The run that told the size has warmed everything up."""
    return measure(run, reps=7, budget=4, warm=0)


def main(database, turns, durability, mode):
    turns = int(turns)
    bench.ASYNC_NODES = mode == "async"

    def run_with(flavour, saver):
        graph = g_react(turns, saver)

        def run():
            assert len(flavour.run(graph, durability)["messages"]) == 2 * turns + 2
        return run

    times, size, note = {"sqlite": sqlite, "postgres": postgres}[database](Async() if mode == "async" else Sync(), run_with)
    report("W6-" + database, turns, durability, times, 2 * turns + 1, bytes_total=size, note=note)


if __name__ == "__main__":
    main(*sys.argv[1:])
