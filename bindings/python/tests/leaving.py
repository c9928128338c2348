"""Begins a transfer and ends in the middle of it.

`leaving.py WAY sender FILM`, `leaving.py WAY receiver TICKET FOLDER`, or `leaving.py busy both FOLDER FOLDER`.
"""

import asyncio
import os
import sys
import threading
from pathlib import Path

import wraith
from conftest import asked, new_node, offered

End = wraith.Offer | wraith.Transfer

# References that nobody frees.
kept: list[object] = []


async def begun(role: str, words: list[str]) -> End:
    """Start the transfer, and wait until bytes move."""
    end: End
    if role == "sender":
        end, ticket = await offered(new_node(), Path(words[0]), bytes_per_second=200_000)
        print(ticket, flush=True)
    else:
        end = (await asked(new_node(), words[0], Path(words[1]))).accept(wraith.AcceptOptions())
    while (now := end.progress()) is None or now.bytes == 0:
        await asyncio.sleep(0.001)
    return end


async def leave(way: str, role: str, words: list[str]) -> None:
    end = await begun(role, words)
    # Calls that wait while the program ends.
    kept.extend(asyncio.create_task(work) for work in (end.finished(), read(end)))
    await asyncio.sleep(0)
    if way == "kept":
        kept.append(end)
    elif way == "exit":
        sys.exit(3)
    elif way == "raise":
        raise ZeroDivisionError
    elif way == "os-exit":
        os._exit(3)


async def read(end: End) -> None:
    async for _ in wraith.events(end):
        pass


async def stay(moving: threading.Event, way: str, role: str, words: list[str]) -> None:
    await leave(way, role, words)
    moving.set()
    tasks = [task for task in kept if isinstance(task, asyncio.Task)]
    await asyncio.gather(*tasks, return_exceptions=True)


async def transfer_files(moving: threading.Event, words: list[str]) -> None:
    """Read the events of both sides of many small files."""
    offer, ticket = await offered(new_node(), Path(words[0]))
    transfer = (await asked(new_node(), ticket, Path(words[1]))).accept(wraith.AcceptOptions())
    reading = asyncio.create_task(read(offer))
    async for event in wraith.events(transfer):
        if event.is_FILE():
            moving.set()
    await reading


def main() -> None:
    way, role, *words = sys.argv[1:]
    moving = threading.Event()
    if way == "forked":
        if (child := os.fork()) > 0:
            # This process has no node: its child is the program that leaves.
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        way = "thread"
    if way == "loop":
        # A loop that is not closed, with calls that wait.
        loop = asyncio.new_event_loop()
        kept.append(loop)
        loop.run_until_complete(leave(way, role, words))
    elif way in ("thread", "busy"):
        # A loop that still runs while the interpreter ends.
        work = stay(moving, way, role, words) if way == "thread" else transfer_files(moving, words)
        threading.Thread(target=asyncio.run, args=(work,), daemon=True).start()
        moving.wait()
    else:
        asyncio.run(leave(way, role, words))


main()
