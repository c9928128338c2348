"""The example echoes of all built languages find each other, by code and as contacts."""

import asyncio
from itertools import product
from pathlib import Path

import pytest

from conftest import within
from test_messenger import programs, started, told


@pytest.mark.parametrize(("serves", "calls"), list(product(programs("echo"), repeat=2)))
async def test_an_echo_is_found_by_code(serves: str, calls: str) -> None:
    words = programs("echo")
    async with started(*words[serves], "serve") as serving:
        code = await told(serving, "code ")
        async with started(*words[calls], "call", code, "grüße") as calling:
            await told(calling, "peer ")
            assert await told(calling, "> ") == "grüße"
            await told(serving, "peer ")
            assert [await within(calling.wait()), await within(serving.wait())] == [0, 0]
        async with started(*words[calls], "call", code, "once more") as late:
            assert await within(late.wait()) == 1


@pytest.mark.parametrize(("serves", "calls"), list(product(programs("echo"), repeat=2)))
async def test_an_echo_is_found_by_a_contact(serves: str, calls: str, tmp_path: Path) -> None:
    words = programs("echo")

    async def identity(program: str, folder: str) -> str:
        async with started(*words[program], "me", folder) as process:
            return await told(process, "me ")

    anna, bob = str(tmp_path / "anna"), str(tmp_path / "bob")
    names = list(await asyncio.gather(identity(serves, anna), identity(calls, bob)))
    async with started(*words[serves], "serve", anna, names[1]) as serving:
        await told(serving, "ready")
        async with started(*words[calls], "call", bob, names[0], "x" * 60_000) as calling:
            assert [await told(calling, "peer "), await told(serving, "peer ")] == names
            assert await told(calling, "> ") == "x" * 60_000
            assert [await within(calling.wait()), await within(serving.wait())] == [0, 0]
