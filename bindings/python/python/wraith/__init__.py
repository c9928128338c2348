"""Moves files, messages and encrypted sessions directly between two machines.

Every class, function and error is made from the Rust crate `wraith-ffi`; see `help(wraith.Node)`. This module adds only what reads better
in Python: `events`, an asynchronous iterator over what happens to an offer or a transfer.

Calls that wait are coroutines. Cancelling a task drops the wait, not the transfer: that ends with `cancel()`, or when the last
reference to its object is gone.
"""

from collections.abc import AsyncIterator
from typing import Protocol

from . import wraith as _generated
from .wraith import *  # noqa: F403
from .wraith import Event as _Event

__all__ = [*_generated.__all__, "events"]


class _HasEvents(Protocol):
    async def next_event(self) -> _Event | None: ...


async def events(of: _HasEvents) -> AsyncIterator[_Event]:
    """What happens to an `Offer`, a `Transfer` or a `Listener`, until its end."""
    while (event := await of.next_event()) is not None:
        yield event
