"""A program that ends in the middle of a transfer ends at once, and the other side notices it."""

import asyncio
import os
import sys
import time
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import wraith
from conftest import asked, new_node, offered, within

# Each way to leave, with the exit code.
WAYS = {"return": 0, "kept": 0, "loop": 0, "thread": 0, "forked": 0, "exit": 3, "raise": 1, "os-exit": 3}
# More than half of the programs in which nothing stops the threads of the library are aborted.
BUSY_PROGRAMS = 8


async def leaving(*words: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    program = [sys.executable, str(Path(__file__).with_name("leaving.py")), *words]
    return await asyncio.create_subprocess_exec(*program, stdout=pipe, stderr=pipe)


async def ended(program: asyncio.subprocess.Process, code: int) -> None:
    _, complaints = await within(program.communicate())
    text = complaints.decode()
    assert program.returncode == code, text
    # Python itself may complain about tasks that are not awaited.
    for word in ("fatal", "panicked", "exception ignored", "runtimeerror"):
        assert word not in text.lower(), text


async def left(way: str, role: wraith.Role, film: Path, folder: Path) -> float:
    """Let a program leave the transfer, and return the seconds until the other side has ended."""
    soon = timedelta(seconds=1)
    end: wraith.Offer | wraith.Transfer
    if role == wraith.Role.SENDER:
        program = await leaving(way, "sender", str(film))
        assert program.stdout
        ticket = (await within(program.stdout.readline())).decode().strip()
        incoming = await asked(new_node(), ticket, folder, reconnect=soon)
        end = incoming.accept(wraith.AcceptOptions())
    else:
        end, ticket = await offered(new_node(), film, bytes_per_second=200_000, reconnect=soon)
        program = await leaving(way, "receiver", ticket, str(folder))
    await ended(program, WAYS[way])
    begin = time.monotonic()
    with pytest.raises(wraith.WraithError) as raised:
        await within(end.finished())
    told = [event async for event in wraith.events(end)]
    if way == "os-exit":
        assert raised.type is wraith.WraithError.NetworkLost
        assert any(event.is_CONNECTION_LOST() for event in told)
        return 0
    assert raised.type is wraith.WraithError.Cancelled
    assert [event.by for event in told if isinstance(event, wraith.Event.STOPPED)] == [role]
    return time.monotonic() - begin


async def test_the_other_side_is_told_that_a_program_ended(film: Path, tmp_path: Path) -> None:
    cases = [(way, role) for way in WAYS for role in (wraith.Role.SENDER, wraith.Role.RECEIVER)]
    took = await asyncio.gather(
        *(left(way, role, film, tmp_path / f"{way}-{role.name}") for way, role in cases)
    )
    print(f"the other side ended within {max(took):.2f} s after the program")


async def test_a_loop_that_still_reads_events_does_not_abort_the_interpreter(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for number in range(3000):
        (files / str(number)).write_text(str(number))

    async def one(number: int) -> None:
        await ended(await leaving("busy", "both", str(files), str(tmp_path / f"in-{number}")), 0)

    await asyncio.gather(*map(one, range(BUSY_PROGRAMS)))


def test_a_callback_of_the_library_may_come_inside_another_one() -> None:
    """The garbage collector may free a waiting call inside the callback of another one."""
    package: Any = wraith
    calls = import_module("wraith.wraith.wraith")._UniffiContinuationHandleMap
    woken: list[int] = []

    class Loop:
        def __init__(self, inside: int | None) -> None:
            self.inside = inside

        def call_soon_threadsafe(self, _wake: object, future: int, _poll_code: int) -> None:
            if self.inside is not None:
                package._continue(self.inside, 0)
            # This call has not ended, although the inner one has.
            assert package._continuing
            woken.append(future)

    inner = calls.insert((Loop(None), 1))
    outer = calls.insert((Loop(inner), 2))
    package._continue(outer, 0)
    assert woken == [1, 2] and not package._continuing


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
async def test_a_forked_process_does_not_stop_the_transfers_of_its_parent(film: Path, tmp_path: Path) -> None:
    offer, ticket = await offered(new_node(), film)
    child = os.fork()
    if child == 0:
        # As `sys.exit` does, with the handlers of `atexit`, but without those of pytest.
        import atexit

        atexit._run_exitfuncs()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    transfer = (await asked(new_node(), ticket, tmp_path / "in")).accept(wraith.AcceptOptions())
    await within(asyncio.gather(offer.finished(), transfer.finished()))
