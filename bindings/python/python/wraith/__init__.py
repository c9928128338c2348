"""Moves files, messages and encrypted sessions directly between two machines.

Every class, function and error is made from the Rust crate `wraith-ffi`; see `help(wraith.Node)`. This module adds what reads better
in Python: `events`, an asynchronous iterator over what happens to an offer or a transfer. It hands over batches of messages at once.
And the interpreter ends only after the library's threads have left it.

Calls that wait are coroutines. Cancelling a task drops the wait, not the transfer: that ends with `cancel()`, or when the last
reference to its object is gone. At the exit of the interpreter all transfers are stopped.
"""

import atexit
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from importlib import import_module
from typing import Any, Protocol

from .wraith import *  # noqa: F403
from .wraith import Event as _Event
from .wraith import shutdown_all_nodes


def _write_all(items: Sequence[bytes], buffer: Any) -> None:
    """Write a list of byte strings in the format of the generated code, with a single call.

    The generated code calls the library to grow its buffer for each item.
    """
    parts = [len(items).to_bytes(4, "big", signed=True)]
    for item in items:
        parts += (len(item).to_bytes(4, "big", signed=True), item)
    buffer.write(b"".join(parts))


def _read_all(buffer: Any) -> list[bytes]:
    """Read such a list from one copy of the rest of the buffer."""
    rest = buffer.data[buffer.offset : buffer.len]
    items: list[bytes] = []
    end = 4
    for _ in range(int.from_bytes(rest[:4], "big")):
        begin = end + 4
        end = begin + int.from_bytes(rest[end:begin], "big")
        items.append(rest[begin:end])
    buffer.read(end)
    return items


_generated: Any = import_module(".wraith.wraith", __name__)
_lists: Any = _generated._UniffiFfiConverterSequenceBytes
_lists.write = staticmethod(_write_all)
_lists.read = staticmethod(_read_all)


# The calls of `_continue` that have not ended.
_continuing: set[object] = set()


def _continue(handle: int, poll_code: int) -> None:
    """Wake the coroutine that waits for this call, as the generated callback does.

    The woken program may end at once. An interpreter that ends also ends each thread that waits for it, and that aborts
    the process if the thread is one of the library's. The garbage collector may run here and call this function again.
    """
    call = object()
    try:
        _continuing.add(call)
        loop, future = _generated._UniffiContinuationHandleMap.remove(handle)
        loop.call_soon_threadsafe(_generated._uniffi_set_future_result, future, poll_code)
    finally:
        _continuing.discard(call)


def _wait_for_calls() -> None:
    """Wait until no thread of the library is in `_continue`, for at most two seconds."""
    end = time.monotonic() + 2
    while _continuing and time.monotonic() < end:
        time.sleep(0.001)


_generated._uniffi_continuation_callback = _generated._UNIFFI_RUST_FUTURE_CONTINUATION_CALLBACK(_continue)
# The last registered function is called first: no call begins after the shutdown. In a child of `fork`, the shutdown does
# nothing for the nodes of its parent.
atexit.register(_wait_for_calls)
atexit.register(shutdown_all_nodes)
if sys.platform != "win32":
    # The threads do not exist in the child.
    os.register_at_fork(after_in_child=_continuing.clear)


class _HasEvents(Protocol):
    async def next_event(self) -> _Event | None: ...


async def events(of: _HasEvents) -> AsyncIterator[_Event]:
    """Yield the events of an `Offer`, a `Transfer`, a `Listener` or a `Service`, until its end."""
    while (event := await of.next_event()) is not None:
        yield event
