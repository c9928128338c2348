"""Handshakes, sessions, vaults, ratchets and sealed boxes."""

import threading
from importlib import import_module
from pathlib import Path

import pytest

import wraith

HYBRID = "Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s"


def shaken() -> tuple[wraith.Handshake, wraith.Handshake]:
    """Both sides of a finished handshake."""
    names = [wraith.Identity.generate() for _ in range(2)]
    options = [wraith.HandshakeOptions(identity=name) for name in names]
    first = wraith.Handshake.initiator(HYBRID, options[0])
    second = wraith.Handshake.responder(HYBRID, options[1])
    for writes, reads in ((first, second), (second, first), (first, second)):
        assert reads.read(writes.write(b"hi")) == b"hi"
    assert [second.peer(), first.peer()] == [name.node_id() for name in names]
    assert first.channel_hash() == second.channel_hash()
    return first, second


def sessions() -> tuple[wraith.Session, wraith.Session]:
    first, second = shaken()
    return first.into_session(), second.into_session()


def test_what_one_side_seals_the_other_opens_once() -> None:
    first, second = sessions()
    message = first.seal(b"to b", b"hello")
    with pytest.raises(wraith.WraithError.Unauthentic):
        second.open(b"to c", message)
    assert second.open(b"to b", message) == b"hello"
    with pytest.raises(wraith.WraithError.Replayed):
        second.open(b"to b", message)


def test_many_messages_cross_in_one_call_and_each_is_judged_by_itself() -> None:
    first, second = sessions()
    texts = [bytes([n]) * 10 for n in range(100)]
    messages = first.seal_many(b"", texts)
    messages[7] = messages[7][:-1]
    opened = second.open_many(b"", messages)
    bad = [(n, one.kind) for n, one in enumerate(opened) if isinstance(one, wraith.Opened.REJECTED)]
    assert bad == [(7, wraith.Rejection.UNAUTHENTIC)]
    again = second.open_many(b"", messages[:1])[0]
    assert isinstance(again, wraith.Opened.REJECTED) and again.kind == wraith.Rejection.REPLAYED
    good = [one for one in opened if isinstance(one, wraith.Opened.TEXT)]
    assert [(one.number, one.text) for one in good] == [(n, t) for n, t in enumerate(texts) if n != 7]


def test_calls_out_of_turn_are_errors() -> None:
    options = wraith.HandshakeOptions(identity=wraith.Identity.generate())
    responder = wraith.Handshake.responder(HYBRID, options)
    with pytest.raises(wraith.WraithError.WrongState):
        responder.write(b"")
    with pytest.raises(wraith.WraithError.WrongState):
        responder.into_session()
    first, second = shaken()
    first.into_session()
    with pytest.raises(wraith.WraithError.WrongState):
        first.into_session()
    repeated = first.repeat()
    assert repeated is not None and second.read(repeated) is None


def test_names_and_keys_that_do_not_fit_are_told() -> None:
    identity = wraith.Identity.generate()
    for protocol, options in [
        ("Noise_XX_25519_Nothing", wraith.HandshakeOptions(identity=identity)),
        (HYBRID, wraith.HandshakeOptions()),
        (HYBRID, wraith.HandshakeOptions(identity=identity, psk=wraith.SecretKey.generate())),
    ]:
        with pytest.raises(wraith.WraithError.InvalidInput):
            wraith.Handshake.initiator(protocol, options)


def test_what_is_printed_of_options_has_no_secret_in_it() -> None:
    key = wraith.SecretKey.from_bytes(b"k" * 32)
    options = wraith.HandshakeOptions(local_key=key, psk=key)
    relay = wraith.Relay(host="relay.example", port=1, token=wraith.SecretText.of("swordfish"))
    for shown in (repr(options), str(options), repr(relay), str(wraith.NodeOptions(relays=[relay])), repr(key)):
        assert "kkk" not in shown and "107, 107" not in shown and "swordfish" not in shown
    assert key.bytes() == b"k" * 32
    with pytest.raises(wraith.WraithError.InvalidInput):
        wraith.SecretKey.from_bytes(bytes(31))


def test_two_threads_on_one_session_use_each_number_once() -> None:
    first, second = sessions()
    messages: list[bytes] = []

    def seal() -> None:
        messages.extend(first.seal(b"", b"x") for _ in range(200))

    threads = [threading.Thread(target=seal) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {second.open(b"", message) for message in messages} == {b"x"}
    assert len({message[:8] for message in messages}) == 400


class Vault(wraith.KeyVault):
    """A vault in Python that can be set to fail."""

    def __init__(self) -> None:
        self.records: dict[str, tuple[int, bytes]] = {}
        self.fails: BaseException | None = None

    def store(
        self, name: str, generation: int, record: bytes, durability: wraith.Durability
    ) -> int:
        if self.fails:
            raise self.fails
        if name in self.records and self.records[name][0] >= generation:
            raise wraith.VaultError.Conflict()
        self.records[name] = (generation, record)
        return generation

    def load(self, name: str) -> bytes | None:
        return self.records[name][1] if name in self.records else None

    def delete(self, name: str) -> bool:
        self.records.pop(name, None)
        return True

    def latest(self, name: str) -> int | None:
        return None


def test_a_session_lives_in_a_vault_of_python_and_goes_on_after_its_end() -> None:
    vault, (first, second) = Vault(), sessions()
    first.keep(vault, "anna")
    for refused in (lambda: first.keep(vault, "berta"), first.save):
        with pytest.raises(wraith.WraithError.WrongState):
            refused()
    before = first.seal(b"", b"one")
    again = wraith.Session.load(vault, "anna")
    after = again.seal(b"", b"two")
    assert before[:8] != after[:8]
    assert [second.open(b"", each) for each in (before, after)] == [b"one", b"two"]
    with pytest.raises(wraith.WraithError.Conflict):
        first.store()


def test_an_exception_of_a_vault_is_an_error_of_the_call_and_changes_nothing() -> None:
    vault, (first, second) = Vault(), sessions()
    first.keep(vault, "anna")
    message = second.seal(b"", b"hello")
    for failure in (wraith.VaultError.Failed("the disk is full"), ZeroDivisionError("oops")):
        vault.fails = failure
        with pytest.raises(wraith.WraithError.Vault):
            first.open(b"", message)
    vault.fails = None
    assert first.open(b"", message) == b"hello"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("cut_off", [KeyboardInterrupt(), SystemExit(1), GeneratorExit()])
def test_a_store_that_is_interrupted_has_stored_nothing(cut_off: BaseException) -> None:
    vault, (first, second) = Vault(), sessions()
    first.keep(vault, "anna")
    sent = [first.seal(b"", b"x")]
    message = second.seal(b"", b"hello")
    vault.fails = cut_off
    with pytest.raises(wraith.WraithError.Vault):
        first.open(b"", message)
    with pytest.raises(wraith.WraithError.Vault):
        # The session has reserved numbers for a while, and must then store its state.
        while True:
            sent.append(first.seal(b"", b"x"))
    vault.fails = None
    again = wraith.Session.load(vault, "anna")
    assert again.open(b"", message) == b"hello"
    sent.extend(again.seal(b"", b"x") for _ in range(len(sent)))
    assert len({each[:8] for each in sent}) == len(sent)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("call", ["load", "latest"])
def test_a_question_to_a_vault_that_is_interrupted_is_not_answered_with_nothing(call: str) -> None:
    class Interrupted(Vault):
        def __getattribute__(self, name: str) -> object:
            if name == call:
                raise KeyboardInterrupt
            return super().__getattribute__(name)

    vault, (first, _) = Vault(), sessions()
    first.keep(vault, "anna")
    interrupted = Interrupted()
    interrupted.records = vault.records
    with pytest.raises(wraith.WraithError.Vault):
        wraith.Session.load(interrupted, "anna")


def test_a_session_that_a_vault_does_not_take_can_be_put_into_it_again() -> None:
    vault, (first, second), (other, _) = Vault(), sessions(), sessions()
    other.keep(vault, "anna")
    with pytest.raises(wraith.WraithError.InvalidInput):
        first.keep(vault, "no name")
    with pytest.raises(wraith.WraithError.Conflict):
        first.keep(vault, "anna")
    sent = [first.seal(b"", b"nothing was done to it")]
    vault.fails = OSError("the disk is full")
    with pytest.raises(wraith.WraithError.Vault):
        first.keep(vault, "berta")
    with pytest.raises(wraith.WraithError.WrongState):
        first.seal(b"", b"its numbers may be in the vault")
    vault.fails = None
    first.keep(vault, "berta")
    sent.append(first.seal(b"", b"again"))
    assert [second.open(b"", each) for each in sent] == [b"nothing was done to it", b"again"]


def test_a_vault_that_uses_the_session_it_stores_is_refused() -> None:
    refused: list[Exception] = []

    class Curious(Vault):
        kept: wraith.Session | None = None

        def store(self, name: str, generation: int, record: bytes, durability: wraith.Durability) -> int:
            if self.kept:
                try:
                    self.kept.seal(b"", b"")
                except wraith.WraithError.WrongState as error:
                    refused.append(error)
            return super().store(name, generation, record, durability)

    vault, (first, second) = Curious(), sessions()
    first.keep(vault, "anna")
    vault.kept = first
    assert vault.kept.open(b"", second.seal(b"", b"hello")) == b"hello"
    assert len(refused) == 1


def test_a_vault_can_drop_the_session_that_it_stores() -> None:
    held: list[wraith.Session] = []

    class Dropping(Vault):
        def store(self, name: str, generation: int, record: bytes, durability: wraith.Durability) -> int:
            held.clear()
            return super().store(name, generation, record, durability)

    vault, (first, second) = Dropping(), sessions()
    first.keep(vault, "anna")
    held.append(first)
    del first
    assert held[0].open(b"", second.seal(b"", b"hello")) == b"hello"
    assert held == []
    assert wraith.Session.load(vault, "anna").open(b"", second.seal(b"", b"again")) == b"again"


def test_a_vault_that_answers_nothing_has_stored_nothing() -> None:
    class Silent(Vault):
        def store(self, *_: object) -> int:
            return None  # type: ignore[return-value]

    first, _ = sessions()
    with pytest.raises(wraith.WraithError.Vault):
        first.keep(Silent(), "anna")


def test_a_vault_in_a_folder_outlives_what_used_it(tmp_path: Path) -> None:
    vault, (first, second) = wraith.file_vault(str(tmp_path / "vault")), sessions()
    first.keep(vault, "anna")
    message = first.seal(b"", b"one")
    with pytest.raises(wraith.WraithError.Vault):
        wraith.file_vault(str(tmp_path / "vault"))
    again = wraith.Session.load(vault, "anna").seal(b"", b"two")
    assert [second.open(b"", each) for each in (again, message)] == [b"two", b"one"]
    with pytest.raises(wraith.WraithError.NotFound):
        wraith.Session.load(wraith.memory_vault(), "anna")


def test_a_conversation_starts_while_the_other_side_is_away() -> None:
    alice, bob = wraith.Identity.generate(), wraith.Identity.generate()
    prekeys = wraith.PreKeys.generate(bob, 2)
    hers = wraith.Ratchet.initiate(alice, prekeys.bundle())
    assert hers.peer() == bob.node_id() and hers.is_unanswered()
    first, lost, third = (hers.encrypt(b"", text) for text in (b"one", b"two", b"three"))
    started = wraith.respond(bob, wraith.PreKeys.restore(prekeys.save()), b"", first)
    assert (started.text, started.ratchet.peer()) == (b"one", alice.node_id())
    his = wraith.Ratchet.restore(started.ratchet.save())
    assert his.decrypt(b"", third) == b"three"
    assert hers.decrypt(b"", his.encrypt(b"", b"four")) == b"four"
    assert his.decrypt(b"", lost) == b"two"
    assert his.binding() == hers.binding()
    with pytest.raises(wraith.WraithError.Replayed):
        his.decrypt(b"", lost)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_conversation_in_vaults_goes_on_after_the_end_of_each_process() -> None:
    alice, bob = wraith.Identity.generate(), wraith.Identity.generate()
    hers, his = Vault(), Vault()
    prekeys = wraith.PreKeys.generate(bob, 2)
    prekeys.keep(his, "prekeys")
    ratchet = wraith.Ratchet.initiate(alice, prekeys.bundle())
    ratchet.keep(hers, "bob")
    first = ratchet.encrypt(b"", b"one")
    assert wraith.initiator_of(first) == alice.node_id() and wraith.initiator_of(b"") is None
    prekeys = wraith.PreKeys.load(his, "prekeys")
    assert prekeys.remaining() == 1
    with pytest.raises(wraith.WraithError.WrongState):
        wraith.respond(bob, prekeys, b"", first)
    started = wraith.respond_in_vault(his, "alice", bob, prekeys, b"", first)
    assert (started.text, started.ratchet.peer()) == (b"one", alice.node_id())
    with pytest.raises(wraith.WraithError.NotFound):
        wraith.respond_in_vault(his, "again", bob, prekeys, b"", first)
    answers = wraith.Ratchet.load(his, "alice").encrypt_many(b"", [b"two", b"three"])
    ratchet = wraith.Ratchet.load(hers, "bob")
    hers.fails = KeyboardInterrupt()
    with pytest.raises(wraith.WraithError.Vault):
        ratchet.decrypt(b"", answers[0])
    hers.fails = None
    assert ratchet.decrypt(b"", answers[0]) == b"two"
    opened = wraith.Ratchet.load(hers, "bob").decrypt_many(b"", answers)
    assert isinstance(opened[0], wraith.Opened.REJECTED) and opened[0].kind == wraith.Rejection.REPLAYED
    assert isinstance(opened[1], wraith.Opened.TEXT) and opened[1].text == b"three"


def test_a_long_message_crosses_in_pieces_of_any_order() -> None:
    splitter, whole = wraith.Splitter(), wraith.Reassembler(wraith.ReassemblerOptions(message_bytes=1000))
    pieces = splitter.split(bytes(900), 100)
    assert all(len(piece) <= 100 for piece in pieces)
    assert [whole.push(piece) for piece in pieces[:0:-1]] == [None] * (len(pieces) - 1)
    assert whole.held_bytes() > 0 and whole.push(pieces[0]) == bytes(900)
    with pytest.raises(wraith.WraithError.InvalidInput):
        splitter.split(bytes(900), 13)
    with pytest.raises(wraith.WraithError.Protocol):
        whole.push(b"")
    with pytest.raises(wraith.WraithError.Exhausted):
        whole.push(bytes(1002))


def test_a_box_opens_for_its_recipient_and_context_only() -> None:
    anna, other = wraith.Identity.generate(), wraith.Identity.generate()
    box = wraith.seal_box(anna.node_id(), b"invitation", b"come")
    assert wraith.open_box(anna, b"invitation", box) == b"come"
    for identity, context in ((other, b"invitation"), (anna, b"order")):
        with pytest.raises(wraith.WraithError.Unauthentic):
            wraith.open_box(identity, context, box)


def test_bytes_that_are_no_message_are_unauthentic_wherever_they_come_from() -> None:
    anna = wraith.Identity.generate()
    prekeys = wraith.PreKeys.generate(anna, 1)
    for use in (
        lambda: wraith.open_box(anna, b"", b"short"),
        lambda: wraith.Ratchet.initiate(anna, b"no bundle"),
        lambda: wraith.respond(anna, prekeys, b"", b"no message"),
    ):
        with pytest.raises(wraith.WraithError.Unauthentic):
            use()


def test_values_of_the_wrong_type_are_errors_of_python() -> None:
    with pytest.raises(TypeError):
        wraith.hash("text")  # type: ignore[arg-type]


def test_a_batch_is_handed_over_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = sessions()
    buffers = getattr(import_module("wraith.wraith.wraith"), "_UniffiRustBuffer")
    grown: list[int] = []
    reserve = buffers.reserve

    def counted(buffer: object, more: int) -> object:
        grown.append(more)
        return reserve(buffer, more)

    monkeypatch.setattr(buffers, "reserve", staticmethod(counted))
    texts = [bytes([number]) * 1000 for number in range(100)] + [b"", memoryview(b"view").tobytes()]
    messages = first.seal_many(b"aad", texts)
    assert len(grown) == 1, "one for the whole list"
    opened = second.open_many(b"aad", messages)
    assert [each.text for each in opened if isinstance(each, wraith.Opened.TEXT)] == texts
    assert len(grown) == 2
