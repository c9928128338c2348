"""Transfers and messages between two nodes over loopback."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

import wraith
from conftest import asked, new_node, offered, within


async def test_a_file_arrives_byte_for_byte(film: Path, tmp_path: Path) -> None:
    offer, ticket = await offered(new_node(), film)
    incoming = await asked(new_node(), ticket, tmp_path / "in")
    assert (incoming.offer().files, incoming.offer().bytes) == (1, 5_000_000)
    preview = incoming.preview()
    assert preview is not None
    assert [(entry.shown, entry.is_new) for entry in preview] == [("film.mov", True)]
    assert not (tmp_path / "in").exists(), "nothing is written before there is a yes"
    transfer = incoming.accept(wraith.AcceptOptions())
    received = await within(transfer.finished())
    sent = await within(offer.finished())
    assert (tmp_path / "in" / "film.mov").read_bytes() == film.read_bytes()
    assert received.bytes_moved == sent.bytes_moved == 5_000_000


async def test_events_tell_the_file_with_its_hash_and_then_the_end(film: Path, tmp_path: Path) -> None:
    offer, ticket = await offered(new_node(), film)
    incoming = await asked(new_node(), ticket, tmp_path / "in")
    transfer = incoming.accept(wraith.AcceptOptions())
    told = [event async for event in wraith.events(transfer)]
    files = [event for event in told if isinstance(event, wraith.Event.FILE)]
    assert [file.path for file in files] == ["film.mov"]
    assert files[0].hash == wraith.hash(film.read_bytes())
    assert told[-1].is_DONE()
    assert await within(transfer.next_event()) is None
    await within(offer.finished())


async def test_progress_is_read_on_demand_and_ends_at_the_total(film: Path, tmp_path: Path) -> None:
    offer, ticket = await offered(new_node(), film)
    assert offer.progress() is None, "nobody has come"
    transfer = (await asked(new_node(), ticket, tmp_path / "in")).accept(wraith.AcceptOptions())
    await within(transfer.finished())
    await within(offer.finished())
    for side in (transfer, offer):
        progress = side.progress()
        assert progress is not None
        assert progress.bytes == progress.bytes_total == 5_000_000
        assert progress.files == 1


async def test_a_refusal_reaches_the_sender_with_its_reason(film: Path, tmp_path: Path) -> None:
    offer, ticket = await offered(new_node(), film)
    incoming = await asked(new_node(), ticket, tmp_path / "in")
    await within(incoming.refuse("no room"))
    with pytest.raises(wraith.WraithError.Refused, match="no room"):
        await within(offer.finished())
    assert not (tmp_path / "in").exists()


async def test_an_offer_is_answered_once(film: Path, tmp_path: Path) -> None:
    offer, ticket = await offered(new_node(), film)
    incoming = await asked(new_node(), ticket, tmp_path / "in")
    transfer = incoming.accept(wraith.AcceptOptions())
    with pytest.raises(wraith.WraithError.WrongState):
        incoming.accept(wraith.AcceptOptions())
    with pytest.raises(wraith.WraithError.WrongState):
        await incoming.refuse("")
    await within(transfer.finished())
    await within(offer.finished())


async def test_a_transfer_is_cancelled_in_the_middle_and_the_sender_is_told(
    film: Path, tmp_path: Path
) -> None:
    offer, ticket = await offered(new_node(), film, bytes_per_second=200_000)
    incoming = await asked(new_node(), ticket, tmp_path / "in")
    transfer = incoming.accept(wraith.AcceptOptions())
    async for event in wraith.events(transfer):
        if event.is_ACCEPTED():
            break
    assert await within(transfer.cancel())
    with pytest.raises(wraith.WraithError.Cancelled):
        await within(transfer.finished())
    with pytest.raises(wraith.WraithError.Cancelled):
        await within(offer.finished())
    assert not (tmp_path / "in" / "film.mov").exists(), "no name before all of it is verified"


async def test_cancelling_a_task_that_waits_leaves_the_transfer_alone(film: Path, tmp_path: Path) -> None:
    offer, ticket = await offered(new_node(), film)
    waiting = asyncio.create_task(offer.finished())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    transfer = (await asked(new_node(), ticket, tmp_path / "in")).accept(wraith.AcceptOptions())
    await within(transfer.finished())
    await within(offer.finished())


async def test_cancelling_a_task_that_asks_stops_the_question(film: Path, tmp_path: Path) -> None:
    offer, ticket = await offered(new_node(), film)
    await within(offer.cancel())
    asking = asyncio.create_task(asked(new_node(), ticket, tmp_path / "in", timeout=None))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(asking)


async def test_text_that_is_no_ticket_is_told_before_anything_is_dialled(tmp_path: Path) -> None:
    with pytest.raises(wraith.WraithError.InvalidInput):
        await asked(new_node(), "not a ticket", tmp_path)


async def test_the_ticket_of_a_withdrawn_offer_finds_nobody(film: Path, tmp_path: Path) -> None:
    offer, ticket = await offered(new_node(), film)
    assert await within(offer.cancel())
    with pytest.raises(wraith.WraithError.NotFound):
        await asked(new_node(), ticket, tmp_path / "in", timeout=timedelta(milliseconds=500))


async def test_a_code_of_nobody_is_not_met_on_loopback(tmp_path: Path) -> None:
    node = wraith.Node(wraith.NodeOptions(lan="off"))
    with pytest.raises(wraith.WraithError):
        await asked(node, "7-crater-lemon", tmp_path)


async def test_a_message_arrives_in_memory() -> None:
    what = wraith.Content.BYTES("message", "grüße".encode())
    sender, options = new_node(), wraith.OfferOptions()
    offer = await within(sender.offer(what, wraith.Recipient.TICKET(), options))
    ticket = offer.ticket()
    assert ticket is not None
    into = wraith.Target.MEMORY(1000)
    incoming = await within(new_node().fetch(ticket, into, wraith.FetchOptions()))
    assert incoming.sender() == sender.node_id()
    transfer = incoming.accept(wraith.AcceptOptions())
    assert (await within(transfer.bytes())).decode() == "grüße"


async def test_names_that_are_taken_are_decided_by_policy_and_by_path(film: Path, tmp_path: Path) -> None:
    target = tmp_path / "in"
    target.mkdir()
    (target / "film.mov").write_bytes(b"older")
    offer, ticket = await offered(new_node(), film)
    incoming = await asked(new_node(), ticket, target)
    preview = incoming.preview()
    assert preview is not None and preview[0].has_conflict
    rule = wraith.ConflictRule(path=preview[0].path, policy=wraith.OnConflict.OVERWRITE)
    options = wraith.AcceptOptions(on_conflict=wraith.OnConflict.SKIP, rules=[rule])
    await within(incoming.accept(options).finished())
    assert (target / "film.mov").read_bytes() == film.read_bytes()


async def test_a_contact_is_sent_to_without_a_code(film: Path, tmp_path: Path) -> None:
    sender, receiver = new_node(), new_node()
    listener = await within(receiver.listen(str(tmp_path / "in"), wraith.AcceptFilter.ANY_PEER))
    contact = wraith.Contact(
        name="anna", node_id=receiver.node_id(), addresses=[listener.address()]
    )
    sender.add_contact(contact)
    assert sender.contacts() == [contact]
    what, to = wraith.Content.PATHS([str(film)]), wraith.Recipient.CONTACT("anna")
    offer = await within(sender.offer(what, to, wraith.OfferOptions()))
    incoming = await within(listener.next_offer())
    assert incoming is not None and incoming.sender() == sender.node_id()
    transfer = incoming.accept(wraith.AcceptOptions())
    await within(transfer.finished())
    await within(offer.finished())
    assert (tmp_path / "in" / "film.mov").read_bytes() == film.read_bytes()
    listener.stop()
    assert await within(listener.next_offer()) is None


async def test_a_contact_that_nobody_added_is_not_found(film: Path) -> None:
    what, to = wraith.Content.PATHS([str(film)]), wraith.Recipient.CONTACT("nobody")
    with pytest.raises(wraith.WraithError.NotFound):
        await within(new_node().offer(what, to, wraith.OfferOptions()))


async def test_no_receivers_are_one_receiver(film: Path, tmp_path: Path) -> None:
    offer, ticket = await offered(new_node(), film, receivers=0)
    into = wraith.Target.FOLDER(str(tmp_path / "in"))
    incoming = await within(new_node().fetch(source=ticket, into=into, options=wraith.FetchOptions()))
    await within(incoming.accept(wraith.AcceptOptions()).finished())
    assert (await within(offer.finished())).receivers == 1


async def test_an_offer_to_any_number_ends_when_it_is_stopped(film: Path, tmp_path: Path) -> None:
    offer, ticket = await offered(new_node(), film, any_number=True)
    for name in "ab":
        incoming = await asked(new_node(), ticket, tmp_path / name)
        await within(incoming.accept(wraith.AcceptOptions()).finished())
    served = 0
    while served < 2:
        event = await within(offer.next_event())
        served = event.done if isinstance(event, wraith.Event.SERVED) else served
    await within(offer.cancel())
    assert (await within(offer.finished())).receivers == 2


async def test_a_state_folder_keeps_the_identity(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    first = new_node(state_folder=state).node_id()
    assert new_node(state_folder=state).node_id() == first
    assert new_node().node_id() != first


async def test_options_that_make_no_sense_are_told() -> None:
    with pytest.raises(wraith.WraithError.InvalidInput):
        wraith.Node(wraith.NodeOptions(listen="somewhere"))
    with pytest.raises(wraith.WraithError.InvalidInput):
        await new_node().offer(
            wraith.Content.PATHS(["/no/such/file"]), wraith.Recipient.TICKET(), wraith.OfferOptions()
        )
