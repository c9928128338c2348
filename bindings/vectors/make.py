"""Makes the vectors anew: hashes and names from fixed inputs, boxes, sessions and conversations from random ones.

What stands in the files must open in every version to come, so it is made anew only where a format has changed.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import wraith

HERE = Path(__file__).parent
Case = dict[str, object]


def hashes() -> Iterator[Case]:
    for length in (0, 1, 64, 1024, 1025, 100_000):
        data = bytes(n % 251 for n in range(length))
        yield {"length": length, "hash": wraith.hash(data).hex()}


def identities() -> Iterator[Case]:
    for seed in (bytes(32), bytes(range(32)), b"\xff" * 32):
        identity, message = wraith.Identity.from_seed(seed), b"message"
        yield {
            "seed": seed.hex(),
            "node_id": identity.node_id(),
            "message": message.hex(),
            "signature": identity.sign(message).hex(),
        }


def boxes() -> Iterator[Case]:
    seed = bytes([7]) * 32
    to = wraith.Identity.from_seed(seed).node_id()
    for text in (b"", b"come at seven", bytes(1000)):
        box = wraith.seal_box(to, b"vectors", text)
        yield {"seed": seed.hex(), "context": b"vectors".hex(), "box": box.hex(), "text": text.hex()}


def sessions() -> Iterator[Case]:
    """A saved session, and messages of the other side that it opens in this order."""
    for protocol in (
        "Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s",
        "Noise_XX_25519_AESGCM_SHA256",
    ):
        options = [wraith.HandshakeOptions(local_key=wraith.SecretKey.from_bytes(bytes([n]) * 32)) for n in (1, 2)]
        first = wraith.Handshake.initiator(protocol, options[0])
        second = wraith.Handshake.responder(protocol, options[1])
        for writes, reads in ((first, second), (second, first), (first, second)):
            reads.read(writes.write(b""))
        seals, opens = first.into_session(), second.into_session()
        texts = [b"one", b"", b"three" * 100]
        messages = seals.seal_many(b"aad", texts)
        yield {
            "protocol": protocol,
            "saved": opens.save().bytes().hex(),
            "aad": b"aad".hex(),
            "messages": [message.hex() for message in reversed(messages)],
            "texts": [text.hex() for text in reversed(texts)],
        }


def ratchets() -> Iterator[Case]:
    """A saved conversation, and messages of the other side that it decrypts in this order."""
    alice, bob = (wraith.Identity.from_seed(bytes([n]) * 32) for n in (1, 2))
    prekeys = wraith.PreKeys.generate(bob, 1)
    hers = wraith.Ratchet.initiate(alice, prekeys.bundle())
    his = wraith.respond(bob, prekeys, b"", hers.encrypt(b"", b"start")).ratchet
    hers.decrypt(b"", his.encrypt(b"", b"answer"))
    saved = his.save()
    texts = [b"one", b"two", b"three"]
    messages = [hers.encrypt(b"aad", text) for text in texts]
    yield {
        "saved": saved.hex(),
        "aad": b"aad".hex(),
        "messages": [message.hex() for message in reversed(messages)],
        "texts": [text.hex() for text in reversed(texts)],
    }


if __name__ == "__main__":
    for make in (hashes, identities, boxes, sessions, ratchets):
        text = json.dumps(list(make()), indent=1)
        (HERE / f"{make.__name__}.json").write_text(text + "\n")
