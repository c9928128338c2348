"""Services and raw connections between two nodes of this process."""

import asyncio
import datetime
import gc
from collections.abc import Awaitable, Callable

import pytest

import wraith
from conftest import new_node, within

SECOND = datetime.timedelta(seconds=1)


async def serve(node: wraith.Node, callers: wraith.Callers, **options: object) -> wraith.Service:
    return await within(node.serve(callers, wraith.ServiceOptions(**options)))  # type: ignore[arg-type]


async def connect(node: wraith.Node, source: str) -> wraith.Connection:
    to = wraith.ServiceAddress.SOURCE(source)
    return await within(node.connect(to, wraith.ConnectOptions(timeout=SECOND)))


async def accepted(service: wraith.Service) -> wraith.Connection:
    connection = await within(service.accept())
    assert connection is not None
    return connection


class Pair:
    """Both ends of a connection, and of a stream on which the opening side has written one byte."""

    def __init__(self, service: wraith.Service, ends: list[wraith.Connection], streams: list[wraith.ConnectionStream]):
        self.service, self.ends, self.streams = service, ends, streams


async def connected() -> Pair:
    service = await serve(new_node(), wraith.Callers.TICKET())
    ticket = service.ticket()
    assert ticket is not None and service.code() is None and service.places() == []
    ends = list(await asyncio.gather(accepted(service), connect(new_node(), ticket)))
    stream = await within(ends[1].open_stream())
    await within(stream.write(b"x"))
    return Pair(service, ends, [await within(ends[0].accept_stream()), stream])


async def test_bytes_go_both_ways_and_the_end_is_no_error() -> None:
    pair = await connected()
    reads, writes = pair.streams
    content = bytes(range(256)) * 8192
    sending = asyncio.create_task(writes.write(content))
    assert await within(reads.read(100)) == b"x"
    first = await within(reads.read(10))
    assert 0 < len(first) <= 10
    await within(sending)
    writes.finish()
    assert first + await within(reads.read_to_end(len(content))) == content
    assert await within(reads.read(100)) == b""
    await within(writes.acked())
    await within(reads.write(b"thanks"))
    reads.finish()
    assert await within(writes.read_to_end(6)) == b"thanks"
    assert [end.route() for end in pair.ends] == ["loopback", "loopback"]
    assert pair.ends[1].remote() == pair.service.address()


async def test_each_failure_has_a_type_with_its_code() -> None:
    pair = await connected()
    reads, writes = pair.streams
    assert await within(reads.read(100)) == b"x"
    waiting = asyncio.create_task(reads.read(1))
    await asyncio.sleep(0)
    writes.reset(0x1234567890)
    with pytest.raises(wraith.TransportError.Reset) as reset:
        await within(waiting)
    assert reset.value.code == 0x1234567890
    with pytest.raises(wraith.TransportError.Ended):
        await within(writes.write(b"more"))
    writes.stop(0x155)
    with pytest.raises(wraith.TransportError.Stopped) as stopped:
        while True:
            await within(reads.write(bytes(1 << 20)))
    assert stopped.value.code == 0x155
    with pytest.raises(wraith.TransportError.TooLong) as too_long:
        await within(reads.write(bytes((16 << 20) + 1)))
    assert too_long.value.max == 16 << 20
    pair.ends[1].close_with(0x166, "enough")
    with pytest.raises(wraith.TransportError.Closed) as closed:
        await within(pair.ends[0].read_datagram())
    reason = closed.value.reason
    assert (reason.cause, reason.code, reason.text) == (wraith.CloseCause.BY_PEER, 0x166, "enough")
    assert await within(pair.ends[0].closed()) == reason
    assert (await within(pair.ends[1].closed())).cause is wraith.CloseCause.HERE


async def test_a_read_to_the_end_has_a_limit_and_a_cancelled_one_loses_no_byte() -> None:
    pair = await connected()
    reads, writes = pair.streams
    waiting = asyncio.create_task(reads.read_to_end(100))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await within(writes.write(b"12345"))
    writes.finish()
    with pytest.raises(wraith.TransportError.TooLong):
        await within(reads.read_to_end(5))
    assert await within(reads.read_to_end(6)) == b"x12345"


async def test_datagrams_have_a_limit() -> None:
    pair = await connected()
    reads, sends = pair.ends
    assert sends.max_datagram_len() >= 627
    with pytest.raises(wraith.TransportError.TooLong):
        sends.send_datagram(bytes(100_000))
    reading = asyncio.create_task(reads.read_datagram())
    while not reading.done():
        # One may be lost.
        sends.send_datagram(b"hello")
        await asyncio.wait({reading}, timeout=0.1)
    assert await reading == b"hello"


async def test_a_code_is_used_once_and_a_wrong_one_ends_the_service() -> None:
    serving, calling = wraith.Node(wraith.NodeOptions()), wraith.Node(wraith.NodeOptions())
    service = await serve(serving, wraith.Callers.CODE())
    code = service.code()
    assert code is not None and service.ticket() is None and service.places()
    served, _ = await asyncio.gather(accepted(service), connect(calling, code))
    assert served.peer() == calling.node_id()
    with pytest.raises(wraith.WraithError.WrongCode):
        await connect(calling, code)
    service = await serve(serving, wraith.Callers.CODE())
    code = service.code()
    assert code is not None
    accepting = asyncio.create_task(service.accept())
    with pytest.raises(wraith.WraithError.WrongCode):
        await connect(calling, code.split("-")[0] + "-acid-accent")
    with pytest.raises(wraith.WraithError.WrongCode):
        await within(accepting)
    seen = [event async for event in wraith.events(service)]
    assert any(event.is_CODE_BURNED() for event in seen) and seen[-1].is_FAILED()


async def test_a_contact_is_found_by_the_name_of_its_service() -> None:
    anna, bob = new_node(), new_node()
    bob.add_contact(wraith.Contact(name="anna", node_id=anna.node_id()))
    service = await serve(bob, wraith.Callers.CONTACTS("echo"))
    # It listens on all addresses.
    address = "127.0.0.1:" + service.address().rpartition(":")[2]
    anna.add_contact(wraith.Contact(name="bob", node_id=bob.node_id(), addresses=[address]))
    options = wraith.ConnectOptions(timeout=SECOND)
    call = anna.connect(wraith.ServiceAddress.CONTACT("bob", "echo"), options)
    served, caller = await asyncio.gather(accepted(service), within(call))
    assert (served.peer(), caller.peer()) == (anna.node_id(), bob.node_id())
    with pytest.raises(wraith.WraithError.NotFound):
        await within(anna.connect(wraith.ServiceAddress.CONTACT("bob", "time"), options))
    with pytest.raises(wraith.WraithError.NotFound):
        await within(anna.connect(wraith.ServiceAddress.CONTACT("carl", "echo"), options))


async def shut_down_service(service: wraith.Service, node: wraith.Node) -> None:
    await service.shutdown()


async def shut_down_node(service: wraith.Service, node: wraith.Node) -> None:
    await node.shutdown()


@pytest.mark.parametrize("way", [shut_down_service, shut_down_node])
async def test_a_shutdown_ends_calls_that_wait_for_callers(
    way: Callable[[wraith.Service, wraith.Node], Awaitable[None]],
) -> None:
    node = new_node()
    service = await serve(node, wraith.Callers.TICKET())
    waiting = [asyncio.create_task(service.accept()) for _ in range(3)]
    cancelled = waiting.pop()
    await asyncio.sleep(0.05)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    # The cancelled one has taken no connection.
    ticket = service.ticket()
    assert ticket is not None
    caller = await connect(new_node(), ticket)
    done, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert len(done) == 1 and done.pop().result() is not None
    await within(way(service, node))
    assert await within(asyncio.gather(*rest)) == [None]
    assert await within(service.accept()) is None
    caller.close_with(0x100, "")


async def test_a_dropped_service_keeps_its_connections_and_a_dropped_connection_closes() -> None:
    pair = await connected()
    ticket = pair.service.ticket()
    assert ticket is not None
    del pair.service
    gc.collect()
    await within(pair.streams[1].write(b"yz"))
    pair.streams[1].finish()
    assert await within(pair.streams[0].read_to_end(3)) == b"xyz"
    # The last reference to the connection and its stream.
    del pair.ends[0], pair.streams[0]
    gc.collect()
    reason = await within(pair.ends[0].closed())
    assert (reason.cause, reason.code) == (wraith.CloseCause.BY_PEER, 0)
    for late in (pair.ends[0].open_stream(), pair.ends[0].accept_stream()):
        with pytest.raises(wraith.TransportError.Closed):
            await within(late)
