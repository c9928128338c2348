"""Sends a text over a raw connection, or sends it back (bindings/ECHO.md).

echo.py serve
echo.py call CODE TEXT
echo.py me FOLDER
echo.py serve FOLDER NODEID
echo.py call FOLDER NODEID TEXT
"""

import asyncio
import sys

import wraith

TEXT_MAX = 65_536


def friend_of(folder: str, node_id: str) -> wraith.Node:
    """Return the node with its state in this folder, which knows this friend."""
    node = wraith.Node(wraith.NodeOptions(state_folder=folder))
    node.add_contact(wraith.Contact(name="friend", node_id=node_id))
    return node


async def serve(node: wraith.Node, callers: wraith.Callers) -> None:
    service = await node.serve(callers, wraith.ServiceOptions())
    code = service.code()
    say(f"code {code}" if code else "ready")
    connection = await service.accept()
    assert connection is not None, "nobody shuts the service down"
    say(f"peer {connection.peer()}")
    stream = await connection.accept_stream()
    await stream.write(await stream.read_to_end(TEXT_MAX))
    stream.finish()
    await connection.closed()


async def call(node: wraith.Node, to: wraith.ServiceAddress, text: str) -> None:
    connection = await node.connect(to, wraith.ConnectOptions())
    say(f"peer {connection.peer()}")
    stream = await connection.open_stream()
    await stream.write(text.encode())
    stream.finish()
    say(f"> {(await stream.read_to_end(TEXT_MAX)).decode()}")
    connection.close_with(0x100, "")
    await connection.closed()


async def main() -> None:
    match sys.argv[1:]:
        case ["me", folder]:
            say(f"me {wraith.Node(wraith.NodeOptions(state_folder=folder)).node_id()}")
        case ["serve"]:
            await serve(wraith.Node(wraith.NodeOptions()), wraith.Callers.CODE())
        case ["serve", folder, node_id]:
            await serve(friend_of(folder, node_id), wraith.Callers.CONTACTS("echo"))
        case ["call", code, text]:
            await call(wraith.Node(wraith.NodeOptions()), wraith.ServiceAddress.SOURCE(code), text)
        case ["call", folder, node_id, text]:
            await call(friend_of(folder, node_id), wraith.ServiceAddress.CONTACT("friend", "echo"), text)
        case _:
            sys.exit(__doc__)


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    asyncio.run(main())
