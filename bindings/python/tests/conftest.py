"""Nodes that are reachable only on this machine, and content to transfer."""

import asyncio
import random
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import pytest

import wraith

# Longer than any test takes, so that a hanging test fails.
PATIENCE = 60.0

T = TypeVar("T")


async def within(work: Awaitable[T]) -> T:
    return await asyncio.wait_for(work, PATIENCE)


def new_node(**options: object) -> wraith.Node:
    return wraith.Node(wraith.NodeOptions(lan="off", listen="127.0.0.1:0", **options))  # type: ignore[arg-type]


async def offered(node: wraith.Node, path: Path, **options: object) -> tuple[wraith.Offer, str]:
    what = wraith.Content.PATHS([str(path)])
    settings = wraith.OfferOptions(**options)  # type: ignore[arg-type]
    offer = await within(node.offer(what, wraith.Recipient.TICKET(), settings))
    ticket = offer.ticket()
    assert ticket is not None
    return offer, ticket


async def asked(node: wraith.Node, ticket: str, folder: Path, **options: object) -> wraith.Incoming:
    into = wraith.Target.FOLDER(str(folder))
    settings = wraith.FetchOptions(**options)  # type: ignore[arg-type]
    return await within(node.fetch(ticket, into, settings))


@pytest.fixture
def film(tmp_path: Path) -> Path:
    """A fixed, incompressible file of 5 MB."""
    path = tmp_path / "film.mov"
    path.write_bytes(random.Random(7).randbytes(5_000_000))
    return path
