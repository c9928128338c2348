"""One side stops: both sides end, with the side that stopped as the reason, at any moment and in any way."""

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import wraith
from conftest import asked, new_node, offered, within

MOMENTS = 20
AT_ONCE = 10
SIDES = [wraith.Role.SENDER, wraith.Role.RECEIVER]
FILM_BYTES = 5_000_000
# Half a second is left for the last stop.
RATE = 5_000_000
# The transfer is not complete before a stop.
SLOW = 500_000

End = wraith.Offer | wraith.Transfer


class Pair:
    """A running transfer between two nodes, whose ends can be taken out."""

    def __init__(self, nodes: list[wraith.Node], offer: wraith.Offer, transfer: wraith.Transfer):
        self.nodes = dict(zip(SIDES, nodes))
        self.ends: dict[wraith.Role, End] = dict(zip(SIDES, (offer, transfer)))


async def started(film: Path, folder: Path, rate: int = RATE) -> Pair:
    """Start a transfer, and wait until both sides know that it was accepted."""
    nodes = [new_node(), new_node()]
    offer, ticket = await offered(nodes[0], film, bytes_per_second=rate)
    incoming = await asked(nodes[1], ticket, folder)
    pair = Pair(nodes, offer, incoming.accept(wraith.AcceptOptions()))
    for end in pair.ends.values():
        await within(accepted(end))
    return pair


async def accepted(end: End) -> None:
    async for event in wraith.events(end):
        if event.is_ACCEPTED():
            return


async def moment_of(end: End, moment: int) -> None:
    while (now := end.progress()) is None or now.bytes < moment * FILM_BYTES // 2 // MOMENTS:
        await asyncio.sleep(0.001)


async def is_cancelled(end: End) -> bool:
    """Wait for the end. Return false if the transfer was complete before the stop."""
    try:
        await within(end.finished())
    except wraith.WraithError.Cancelled:
        return True
    return False


# Stops the end in the list, and leaves it there if it was not freed.
Way = Callable[[list[End], wraith.Node], Awaitable[None]]


async def cancel(own: list[End], node: wraith.Node) -> None:
    assert await own[0].cancel() == await is_cancelled(own[0])


async def drop(own: list[End], node: wraith.Node) -> None:
    # CPython frees it at once: there is no other reference.
    own.clear()


async def collect(own: list[End], node: wraith.Node) -> None:
    cycle: list[object] = [own.pop()]
    cycle.append(cycle)
    del cycle
    gc.collect()


async def drop_while_tasks_wait(own: list[End], node: wraith.Node) -> None:
    waiting = [asyncio.create_task(own[0].finished()), asyncio.create_task(own[0].next_event())]
    await asyncio.sleep(0)
    own.clear()
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def raise_in_task(own: list[End], node: wraith.Node) -> None:
    async def fail(end: End) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        await asyncio.create_task(fail(own.pop()))
    # The traceback keeps the frame with its variables.
    del raised


async def shut_down(own: list[End], node: wraith.Node) -> None:
    await node.shutdown()


async def stopped(way: Way, side: wraith.Role, moment: int, film: Path, folder: Path) -> float | None:
    """Stop one side, and return the seconds until both have ended, or none if they had ended before."""
    pair = await started(film, folder)
    own = [pair.ends.pop(side)]
    (other,) = pair.ends.values()
    await within(moment_of(own[0], moment))
    begin = time.monotonic()
    await within(way(own, pair.nodes[side]))
    # No wait for a peer that comes back.
    if not await is_cancelled(other):
        return None
    took = time.monotonic() - begin
    assert not own or await is_cancelled(own[0])
    told = [event async for event in wraith.events(other)]
    assert [event.by for event in told if isinstance(event, wraith.Event.STOPPED)] == [side]
    assert told[-1].is_FAILED()
    return took


async def at_all_moments(work: Callable[[int], Awaitable[float | None]]) -> list[float | None]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(moment: int) -> float | None:
        async with places:
            return await work(moment)

    return await asyncio.gather(*map(one, range(MOMENTS)))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("way", [cancel, drop, collect, drop_while_tasks_wait, raise_in_task, shut_down])
async def test_a_stop_ends_both_sides_at_any_moment(
    film: Path, tmp_path: Path, side: wraith.Role, way: Way
) -> None:
    all = await at_all_moments(lambda at: stopped(way, side, at, film, tmp_path / f"in-{at}"))
    took = [each for each in all if each is not None]
    print(f"both sides ended within {max(took):.2f} s; {MOMENTS - len(took)} were complete before")
    assert len(took) > MOMENTS // 4


@pytest.mark.parametrize("side", SIDES)
async def test_cancelling_a_task_that_waits_leaves_the_transfer_alone_at_any_moment(
    film: Path, tmp_path: Path, side: wraith.Role
) -> None:
    async def cancelled(moment: int) -> None:
        pair = await started(film, tmp_path / f"in-{moment}")
        own = pair.ends[side]
        waiting: list[asyncio.Task[object]] = [
            asyncio.create_task(own.finished()),
            asyncio.create_task(own.next_event()),
            asyncio.create_task(accepted(own)),
        ]
        await within(moment_of(own, moment))
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await within(asyncio.gather(*(end.finished() for end in pair.ends.values())))
        assert (tmp_path / f"in-{moment}" / "film.mov").read_bytes() == film.read_bytes()

    await at_all_moments(cancelled)


async def test_a_call_that_waits_keeps_its_object(film: Path, tmp_path: Path) -> None:
    pair = await started(film, tmp_path / "in")
    waiting = [asyncio.create_task(end.finished()) for end in pair.ends.values()]
    await asyncio.sleep(0)
    pair.ends.clear()
    gc.collect()
    await within(asyncio.gather(*waiting))
    assert (tmp_path / "in" / "film.mov").read_bytes() == film.read_bytes()


async def test_both_ends_end_a_gather(film: Path, tmp_path: Path) -> None:
    pair = await started(film, tmp_path / "in", SLOW)
    ends = list(pair.ends.values())
    both = asyncio.gather(*(end.finished() for end in ends), *(end.finished() for end in ends), return_exceptions=True)
    await asyncio.sleep(0)
    assert await within(ends[1].cancel())
    for error in await within(both):
        assert isinstance(error, wraith.WraithError.Cancelled)


async def test_the_ends_can_be_in_different_loops(film: Path, tmp_path: Path) -> None:
    pair = await started(film, tmp_path / "in")
    ended: list[object] = []

    def wait(end: End) -> None:
        ended.append(asyncio.run(end.finished()))

    threads = [threading.Thread(target=wait, args=(end,)) for end in pair.ends.values()]
    for thread in threads:
        thread.start()
    await within(asyncio.gather(*(end.finished() for end in pair.ends.values())))
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert len(ended) == 2


async def test_a_callback_of_a_task_can_call_back(film: Path, tmp_path: Path) -> None:
    pair = await started(film, tmp_path / "in", SLOW)
    called = asyncio.Event()
    own = [pair.ends.pop(wraith.Role.RECEIVER)]
    sender = pair.ends.pop(wraith.Role.SENDER)

    def call_back(task: object) -> None:
        # It reads, starts and frees, also a transfer of the same node.
        own[0].progress()
        own.clear()
        wraith.Node(wraith.NodeOptions(lan="off"))
        called.set()

    # It ends at once. The next event of the transfer may only be its end.
    other = asyncio.create_task(offered(pair.nodes[wraith.Role.RECEIVER], film))
    other.add_done_callback(call_back)
    await within(called.wait())
    await other
    with pytest.raises(wraith.WraithError.Cancelled):
        await within(sender.finished())


async def test_a_node_that_is_shut_down_starts_nothing(film: Path, tmp_path: Path) -> None:
    pair = await started(film, tmp_path / "in", SLOW)
    node, receiver = pair.nodes.values()
    idle, ticket = await offered(node, film)
    listener = await within(node.listen(str(tmp_path / "listen"), wraith.AcceptFilter.ANY_PEER))
    next_offer = asyncio.create_task(listener.next_offer())
    unanswered = await asked(receiver, ticket, tmp_path / "unanswered")
    await within(node.shutdown())
    await within(node.shutdown())
    for end in (idle, *pair.ends.values()):
        with pytest.raises(wraith.WraithError.Cancelled):
            await within(end.finished())
    assert await within(next_offer) is None
    with pytest.raises(wraith.WraithError.Cancelled):
        await within(unanswered.accept(wraith.AcceptOptions()).finished())
    with pytest.raises(wraith.WraithError.Cancelled):
        await offered(node, film)
    with pytest.raises(wraith.WraithError.Cancelled):
        await asked(node, ticket, tmp_path / "nothing")
    with pytest.raises(wraith.WraithError.Cancelled):
        await within(node.listen(str(tmp_path / "listen"), wraith.AcceptFilter.ANY_PEER))
    assert not (tmp_path / "nothing").exists()


async def test_cancelling_a_shutdown_ends_only_its_wait(film: Path, tmp_path: Path) -> None:
    pair = await started(film, tmp_path / "in", SLOW)
    task = asyncio.create_task(pair.nodes[wraith.Role.SENDER].shutdown())
    await asyncio.sleep(0)
    task.cancel()
    for end in pair.ends.values():
        with pytest.raises(wraith.WraithError.Cancelled):
            await within(end.finished())
