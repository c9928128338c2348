"""The example messengers of all built languages talk to each other."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import pytest

from conftest import within

BINDINGS = Path(__file__).parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", BINDINGS.parent / "target"))


def programs(example: str) -> dict[str, list[str]]:
    """Return the command that starts an example, for each language."""
    found = {"python": [sys.executable, str(BINDINGS / f"python/examples/{example}.py")]}
    build = TARGET / "bindings/kotlin/build"
    if (build / "classpath").exists():
        path = f"{build}/classes:{build}/test-classes:{(build / 'classpath').read_text()}"
        library = os.environ.get("WRAITH_LIBRARIES", TARGET / "debug")
        words = ["java", f"-Djna.library.path={library}", "-cp", path]
        found["kotlin"] = [*words, f"org.wraith.examples.{example.capitalize()}Kt"]
    for name, program in {
        "c": TARGET / "bindings/c" / example,
        "swift": TARGET / "bindings/swift/build/debug" / example,
    }.items():
        if program.exists():
            found[name] = [str(program)]
    return found


@asynccontextmanager
async def started(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def told(process: asyncio.subprocess.Process, beginning: str) -> str:
    """Return the text after `beginning` on the next line."""
    assert process.stdout is not None
    line = (await within(process.stdout.readline())).decode()
    assert line.startswith(beginning), f"{line!r} is not {beginning!r}"
    return line.removeprefix(beginning).rstrip("\n")


async def say(process: asyncio.subprocess.Process, line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line.encode() + b"\n")
    await process.stdin.drain()


@pytest.mark.parametrize(("listens", "connects"), list(product(programs("messenger"), repeat=2)))
async def test_two_messengers_talk(listens: str, connects: str) -> None:
    words = programs("messenger")
    async with started(*words[listens], "listen", "0") as first:
        port = await told(first, "listening on ")
        async with started(*words[connects], "connect", "127.0.0.1", port) as second:
            names = [await told(second, "me "), await told(first, "me ")]
            peers = [await told(first, "peer "), await told(second, "peer ")]
            assert peers == names, "each is told who the other is"
            await say(first, "grüße")
            assert await told(second, "> ") == "grüße"
            for number in range(20):
                await say(second, f"line {number}")
            for number in range(20):
                assert await told(first, "> ") == f"line {number}"
            await say(second, "x" * 60_000)
            assert await told(first, "> ") == "x" * 60_000
            for process in (first, second):
                assert process.stdin is not None
                process.stdin.close()
            assert [await within(first.wait()), await within(second.wait())] == [0, 0]


async def test_a_frame_of_no_session_ends_the_messenger() -> None:
    async with started(*programs("messenger")["python"], "listen", "0") as process:
        port = await told(process, "listening on ")
        _, writer = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write((100).to_bytes(4, "big") + bytes(100))
        await within(process.wait())
        assert process.returncode != 0
        writer.close()
