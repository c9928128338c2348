"""Moves files, messages and encrypted sessions directly between two machines.

Every class, function and error is made from the Rust crate `wraith-ffi`; see `help(wraith.Node)`. This module adds what reads better
in Python: `events`, an asynchronous iterator over what happens to an offer or a transfer. And it hands over batches of messages at once.

Calls that wait are coroutines. Cancelling a task drops the wait, not the transfer: that ends with `cancel()`, or when the last
reference to its object is gone. At the exit of the interpreter all transfers are stopped.
"""

import atexit
import os
import sys
from collections.abc import AsyncIterator, Sequence
from importlib import import_module
from typing import Any, Protocol

from .wraith import *  # noqa: F403
from .wraith import Event as _Event
from .wraith import shutdown_all_nodes

# A thread of the library that calls an interpreter after its end aborts the process.
atexit.register(shutdown_all_nodes)
if sys.platform != "win32":
    # A forked process has no threads of the library, and none of its transfers.
    os.register_at_fork(after_in_child=lambda: atexit.unregister(shutdown_all_nodes))


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


_lists: Any = getattr(import_module(".wraith.wraith", __name__), "_UniffiFfiConverterSequenceBytes")
_lists.write = staticmethod(_write_all)
_lists.read = staticmethod(_read_all)


class _HasEvents(Protocol):
    async def next_event(self) -> _Event | None: ...


async def events(of: _HasEvents) -> AsyncIterator[_Event]:
    """Yield the events of an `Offer`, a `Transfer` or a `Listener`, until its end."""
    while (event := await of.next_event()) is not None:
        yield event
