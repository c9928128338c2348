"""The test vectors of all languages (bindings/vectors)."""

import json
from pathlib import Path
from typing import Any

import wraith

VECTORS = Path(__file__).parents[2] / "vectors"


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text())
    assert found
    return found


def test_hashes_are_those_of_the_vectors_whole_and_in_pieces() -> None:
    for case in cases("hashes"):
        data = bytes(n % 251 for n in range(case["length"]))
        hasher = wraith.Blake3Hasher()
        for piece in range(0, len(data), 1000):
            hasher.update(data[piece : piece + 1000])
        assert wraith.hash(data).hex() == hasher.digest().hex() == case["hash"]


def test_identities_have_the_names_and_signatures_of_the_vectors() -> None:
    for case in cases("identities"):
        identity = wraith.Identity.from_seed(bytes.fromhex(case["seed"]))
        message, signature = (bytes.fromhex(case[name]) for name in ("message", "signature"))
        assert identity.node_id() == case["node_id"]
        assert identity.sign(message) == signature
        assert wraith.verify(case["node_id"], message, signature)
        assert not wraith.verify(case["node_id"], message + b"!", signature)


def test_boxes_of_the_vectors_open() -> None:
    for case in cases("boxes"):
        identity = wraith.Identity.from_seed(bytes.fromhex(case["seed"]))
        context, box = (bytes.fromhex(case[name]) for name in ("context", "box"))
        assert wraith.open_box(identity, context, box).hex() == case["text"]


def test_saved_sessions_of_the_vectors_open_their_messages() -> None:
    for case in cases("sessions"):
        session, aad = wraith.Session.restore(bytes.fromhex(case["saved"])), bytes.fromhex(case["aad"])
        texts = [session.open(aad, bytes.fromhex(message)).hex() for message in case["messages"]]
        assert texts == case["texts"]


def test_saved_conversations_of_the_vectors_decrypt_their_messages() -> None:
    for case in cases("ratchets"):
        ratchet, aad = wraith.Ratchet.restore(bytes.fromhex(case["saved"])), bytes.fromhex(case["aad"])
        texts = [ratchet.decrypt(aad, bytes.fromhex(message)).hex() for message in case["messages"]]
        assert texts == case["texts"]
