"""Two people exchange messages over TCP, in a wraith session (bindings/MESSENGER.md).

messenger.py listen PORT
messenger.py connect HOST PORT
"""

import asyncio
import sys

import wraith

PROTOCOL = "Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s"
PROLOGUE = b"wraith messenger 1"
FRAME_BYTES_MAX = 65_535
LINE_BYTES_MAX = 65_000


class Frames:
    """Frames on a TCP connection: a big-endian length of four bytes, and that many bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, body: bytes) -> None:
        self.writer.write(len(body).to_bytes(4, "big") + body)
        await self.writer.drain()

    async def receive(self) -> bytes | None:
        """Read the next frame; None if the stream ends between two frames."""
        try:
            head = await self.reader.readexactly(4)
        except asyncio.IncompleteReadError as cut:
            if cut.partial:
                raise
            return None
        length = int.from_bytes(head, "big")
        if not 1 <= length <= FRAME_BYTES_MAX:
            raise ValueError(f"a frame of {length} bytes")
        return await self.reader.readexactly(length)


async def shake_hands(frames: Frames, handshake: wraith.Handshake) -> wraith.Session:
    while not handshake.is_finished():
        if handshake.is_my_turn():
            await frames.send(handshake.write(b""))
        elif (message := await frames.receive()) is not None:
            handshake.read(message)
        else:
            raise EOFError("the other side has gone")
    say(f"peer {handshake.peer()}")
    return handshake.into_session()


async def speak(frames: Frames, session: wraith.Session) -> None:
    lines = await standard_input()
    while line := await lines.readline():
        text = line.rstrip(b"\n")
        if len(text) > LINE_BYTES_MAX:
            raise ValueError("a line is too long")
        await frames.send(session.seal(b"", text))
    frames.writer.write_eof()


async def listen(frames: Frames, session: wraith.Session) -> None:
    while (message := await frames.receive()) is not None:
        text = session.open(b"", message).decode()
        say("> " + "".join(letter for letter in text if letter.isprintable()))


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, begins: bool) -> None:
    frames, identity = Frames(reader, writer), wraith.Identity.generate()
    options = wraith.HandshakeOptions(identity=identity, prologue=PROLOGUE)
    say(f"me {identity.node_id()}")
    begin = wraith.Handshake.initiator if begins else wraith.Handshake.responder
    session = await shake_hands(frames, begin(PROTOCOL, options))
    speaking = asyncio.create_task(speak(frames, session))
    listening = asyncio.create_task(listen(frames, session))
    try:
        # A side without further input still reads, until the other side has finished too.
        done, _ = await asyncio.wait({speaking, listening}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        await listening
    finally:
        speaking.cancel()
        listening.cancel()
        writer.close()


async def standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=2 * LINE_BYTES_MAX)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def accept(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return the first connection."""
    come = asyncio.get_running_loop().create_future()

    def first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if come.done():
            writer.close()
        else:
            come.set_result((reader, writer))

    server = await asyncio.start_server(first, "127.0.0.1", port)
    say(f"listening on {server.sockets[0].getsockname()[1]}")
    reader, writer = await come
    server.close()
    return reader, writer


async def main() -> None:
    match sys.argv[1:]:
        case ["listen", port]:
            await talk(*await accept(int(port)), begins=False)
        case ["connect", host, port]:
            await talk(*await asyncio.open_connection(host, int(port)), begins=True)
        case _:
            sys.exit(__doc__)


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    asyncio.run(main())
