"""The code in README.md and docs/SESSIONS.md, and the messengers of docs/SESSIONS.md, as written there."""

import asyncio
import os
import queue
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import wraith
from conftest import PATIENCE, within
from test_messenger import BINDINGS, TARGET, say, told

PYTHON = BINDINGS / "python"
SESSIONS = BINDINGS.parent / "docs/SESSIONS.md"

# The nodes of the example listen on loopback only.
ON_LOOPBACK = """
import functools
import sys
import wraith
# A thread keeps the interpreter until it waits: a woken program ends before the thread that has woken it.
sys.setswitchinterval(10)
wraith.NodeOptions = functools.partial(wraith.NodeOptions, lan="off", listen="127.0.0.1:0")
"""


def blocks(document: Path, language: str) -> list[str]:
    """Return the blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)


@asynccontextmanager
async def run_in(folder: Path, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    # A shell and its programs are one process group.
    process = await asyncio.create_subprocess_exec(*words, cwd=folder, stdin=pipe, stdout=pipe, start_new_session=True)
    try:
        yield process
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def transfer_by_the_example(folder: Path) -> None:
    """Send a file with the program of the README, and receive it with the same functions."""
    folder.mkdir()
    (folder / "film.mov").write_bytes(bytes(1_000_000))
    [example] = blocks(PYTHON / "README.md", "python")
    *lines, last = example.splitlines()
    assert last == 'asyncio.run(send("film.mov"))'
    receives = "\n".join([*lines, "import sys", "asyncio.run(receive(sys.argv[1]))"])
    (folder / "sends.py").write_text(ON_LOOPBACK + example)
    (folder / "receives.py").write_text(ON_LOOPBACK + receives)
    async with run_in(folder, sys.executable, "-u", "sends.py") as sending:
        code = await told(sending, "on the other machine: ")
        async with run_in(folder, sys.executable, "receives.py", code) as receiving:
            printed, _ = await within(receiving.communicate())
            assert receiving.returncode == 0
        assert await within(sending.wait()) == 0
    assert "offers 1000000 bytes" in printed.decode()
    assert (folder / "Downloads/film.mov").read_bytes() == bytes(1_000_000)


async def test_the_example_of_the_readme_transfers_a_file(tmp_path: Path) -> None:
    await transfer_by_the_example(tmp_path / "one")


async def test_a_program_ends_well_right_after_its_last_call(tmp_path: Path) -> None:
    # A thread of the library may still be in the interpreter: often, beside other programs.
    await asyncio.gather(*(transfer_by_the_example(tmp_path / str(n)) for n in range(8)))


def test_the_example_of_the_sessions_exchanges_messages(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = blocks(SESSIONS, "python")
    to_peer: queue.Queue[bytes] = queue.Queue()
    to_example: queue.Queue[bytes] = queue.Queue()
    identity = wraith.Identity.generate()
    opened: list[bytes] = []

    def peer() -> None:
        options = wraith.HandshakeOptions(identity=identity, prologue=b"my messenger 1")
        handshake = wraith.Handshake.responder("Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s", options)
        while not handshake.is_finished():
            if handshake.is_my_turn():
                to_example.put(handshake.write(b""))
            else:
                handshake.read(to_peer.get(timeout=PATIENCE))
        session = handshake.into_session()
        opened.append(session.open(b"", to_peer.get(timeout=PATIENCE)))
        to_example.put(session.seal(b"", b"good evening"))

    other = threading.Thread(target=peer)
    other.start()
    names = {"wraith": wraith, "send": to_peer.put, "receive": lambda: to_example.get(timeout=PATIENCE)}
    exec(example, names)
    other.join()
    assert opened == [b"hello"]
    assert capsys.readouterr().out == f"this is {identity.node_id()}\ngood evening\n"


async def test_the_messengers_of_the_sessions_talk_as_shown() -> None:
    build, package = TARGET / "bindings/kotlin/build", TARGET / "bindings/python/package"
    if not ((build / "classpath").exists() and package.exists()):
        pytest.skip("the packages of Python and Kotlin are not both built")
    session = next(block for block in blocks(SESSIONS, "console") if "messenger.py" in block)
    listen, connect = session.replace("\\\n", "").split("\n\n")
    # The documented port may be taken, and cargo may build elsewhere.
    library = os.environ.get("WRAITH_LIBRARIES", str(TARGET / "debug"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def script(shown: str, port: str) -> list[str]:
        lines = [line.removeprefix("$ ") for line in shown.splitlines() if line.startswith("$ ")]
        text = "\n".join(lines).replace("4711", port)
        places = {"target/debug": library, "target/": f"{TARGET}/"}
        text = re.sub("target/debug|target/", lambda found: places[found[0]], text)
        return ["sh", "-ec", f"export PATH='{path}'\n{text}"]

    async with run_in(BINDINGS.parent, *script(listen, "0")) as listening:
        port = await told(listening, "listening on ")
        async with run_in(BINDINGS.parent, *script(connect, port)) as connecting:
            me, other = await told(listening, "me "), await told(connecting, "me ")
            assert await told(listening, "peer ") == other
            assert await told(connecting, "peer ") == me
            await say(connecting, "hello from Kotlin")
            assert await told(listening, "> ") == "hello from Kotlin"
