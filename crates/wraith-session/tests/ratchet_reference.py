#!/usr/bin/env python3
"""An independent Double Ratchet of wraith-session, written from its documentation, to check the vectors.

    python3 crates/wraith-session/tests/ratchet_reference.py

It needs the packages `blake3` and `cryptography` (48 or later, with ML-KEM). It plays both sides of the conversations in
vectors/ratchet.json with the same random bytes, and compares every listed message, byte for byte. Only the ML-KEM
ciphertexts are taken from the messages and decapsulated, because the library cannot encapsulate from a seed.
"""

import hashlib
import json
import pathlib

from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

KEM_INTERVAL = 50
INITIAL = 1161
SUITES = {"AES-256-GCM": (1, AESGCM), "ChaCha20-Poly1305": (2, ChaCha20Poly1305)}


def derive(context, *parts):
    return blake3(b"".join(parts), derive_key_context=context).digest()


def keyed(key, data):
    return blake3(data, key=key).digest()


def le(number, size=4):
    return number.to_bytes(size, "little")


def public(secret):
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def agree(secret, other):
    return X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(other))


def encapsulation_key(seed):
    return MLKEM768PrivateKey.from_seed_bytes(seed).public_key().public_bytes_raw()


def decapsulate(seed, ciphertext):
    return MLKEM768PrivateKey.from_seed_bytes(seed).decapsulate(ciphertext)


class Random:
    def __init__(self, seed):
        self.seed, self.drawn = seed, 0

    def __call__(self, count):
        out = bytes(keyed(self.seed, le(at // 32, 8))[at % 32] for at in range(self.drawn, self.drawn + count))
        self.drawn += count
        return out


class Identity:
    def __init__(self, byte):
        seed = bytes([byte]) * 32
        self.key = Ed25519PrivateKey.from_private_bytes(seed)
        self.node_id = self.key.public_key().public_bytes_raw()
        # X25519 clamps it.
        self.static = hashlib.sha512(seed).digest()[:32]


def padme(length):
    if length < 2:
        return length
    exponent = length.bit_length() - 1
    mask = (1 << (exponent - exponent.bit_length())) - 1
    return (length + mask) & ~mask


def root_step(root, dh, kem=None):
    if kem is None:
        seed = derive("wraith session/1 ratchet root", root, dh)
    else:
        secret, key, ciphertext = kem
        transcript = derive("wraith session/1 ratchet kem transcript", key, ciphertext)
        seed = derive("wraith session/1 ratchet hybrid root", root, dh, secret, transcript)
    return [keyed(seed, bytes([label])) for label in (1, 2, 3)]


def message_key(chain, number):
    for level, position in enumerate(number.to_bytes(4, "big")):
        if level:
            chain = keyed(chain, b"\x03")
        for _ in range(position):
            chain = keyed(chain, b"\x02")
    return keyed(chain, b"\x01")


class Side:
    """The sending state of one side. The peer detects each chain with its first message."""

    def __init__(self, aead, root, next_sending, next_receiving):
        self.aead, self.root = aead, root
        self.next_sending, self.next_receiving = next_sending, next_receiving
        self.own = self.remote = self.chain = None
        self.number = self.previous = self.chains = 0
        self.initial = b""
        self.offer = None  # the seed of the key that this chain offers
        self.answer = None  # (seed, key) of what the peer offers
        self.part = b""
        self.share = None

    def begin(self, random, listed):
        self.own = random(32)
        self.header, self.share, self.offer, self.part = self.next_sending, None, None, b""
        if self.answer:
            random(32)
            seed, key = self.answer
            # After kind, salt and header, sealed with its own key.
            salt, sealed = listed[1:17], listed[74 : 74 + 1104]
            kem_key = derive("wraith session/1 ratchet kem part", self.header, salt)
            self.part = self.aead(kem_key).decrypt(bytes(12), sealed, b"")
            self.share = (decapsulate(seed, self.part), key, self.part)
            self.answer, self.chains = None, 0
        else:
            if self.chains >= KEM_INTERVAL:
                self.offer = random(64)
                self.part = encapsulation_key(self.offer)
            self.chains += 1
        self.root, self.chain, self.next_sending = root_step(self.root, agree(self.own, self.remote), self.share)
        self.number = 0

    def encrypt(self, random, aad, text, padded, listed):
        if self.chain is None:
            self.begin(random, listed)
        flags = padded | (2 if self.offer else 4 if self.part else 0)
        header = bytes([flags]) + public(self.own) + le(self.number) + le(self.previous)
        salt = random(16)
        message = (b"\x21" + self.initial if self.initial else b"\x20") + salt
        message += self.aead(self.header).encrypt(salt[:12], header, b"")
        if self.part:
            kem_key = derive("wraith session/1 ratchet kem part", self.header, salt)
            message += self.aead(kem_key).encrypt(bytes(12), self.part, b"")
        body_key = keyed(message_key(self.chain, self.number), message[:-16])
        if padded:
            text = (text + b"\x80").ljust(padme(len(text) + 1), b"\x00")
        self.number += 1
        return message + self.aead(body_key).encrypt(bytes(12), text, aad)

    def hears(self, other):
        """Handles the first message of the peer's chain."""
        self.remote = public(other.own)
        dh = agree(self.own, self.remote)
        if other.share:
            self.chains = 0
        self.root, _, next_receiving = root_step(self.root, dh, other.share)
        assert self.root == other.root and self.next_receiving == other.header
        self.next_receiving = next_receiving
        if other.offer:
            self.answer = (other.offer, other.part)
        self.previous, self.chain, self.initial = self.number, None, b""


def check(vector):
    suite, aead = SUITES[vector["suite"]]
    random = Random(bytes.fromhex(vector["seed"]))
    alice, bob = Identity(1), Identity(2)
    signed, signed_seed, one_time, one_time_seed = random(32), random(64), random(32), random(64)
    kem = encapsulation_key(one_time_seed)
    bundle = b"\x01" + bob.node_id + le(1) + public(signed)
    bundle += bob.key.sign(b"wraith session/1 signed prekey X25519\0" + le(1) + public(signed))
    bundle += le(2) + public(one_time) + kem
    bundle += bob.key.sign(b"wraith session/1 one-time prekey ML-KEM-768\0" + le(2) + kem)
    assert bundle.hex() == vector["bundle"]

    listed = {each["number"]: each for each in vector["messages"]}
    sealed = lambda number: bytes.fromhex(listed[number]["message"]) if number in listed else b""
    ephemeral, _ = random(32), random(32)
    ciphertext = sealed(0)[74 : 74 + 1088]
    shared = decapsulate(one_time_seed, ciphertext)
    binding = derive(
        "wraith session/1 pqxdh binding",
        bytes([suite]) + alice.node_id + bob.node_id + le(1) + public(signed) + le(2) + public(one_time),
        kem + public(ephemeral) + ciphertext,
    )
    assert binding.hex() == vector["binding"]
    dh = [
        agree(alice.static, public(signed)),
        agree(ephemeral, public(bob.static)),
        agree(ephemeral, public(signed)),
        agree(ephemeral, public(one_time)),
    ]
    seed = derive("wraith session/1 pqxdh seed", *dh, shared, binding)
    root, to_bob, to_alice = [keyed(seed, bytes([label])) for label in (1, 2, 3)]
    a, b = Side(aead, root, to_bob, to_alice), Side(aead, root, to_alice, to_bob)
    a.remote, b.own = public(signed), signed
    a.initial = bytes([suite]) + alice.node_id + public(ephemeral) + le(1) + le(2) + ciphertext
    assert len(a.initial) == INITIAL
    a.begin(random, b"")

    compared = 0
    for number in range(3 + 2 * (KEM_INTERVAL + 1)):
        # Alice twice, then Bob and Alice in turns.
        sender, receiver, name = (a, b, "alice") if number < 2 or number % 2 else (b, a, "bob")
        each = listed.get(number, {"from": name, "aad": "", "text": "turn", "padded": False})
        begins = sender.chain is None or number == 0
        message = sender.encrypt(random, each["aad"].encode(), each["text"].encode(), each["padded"], sealed(number))
        assert each["from"] == name
        if number in listed:
            assert message.hex() == each["message"], f"message {number}"
            compared += 1
        if begins:
            receiver.hears(sender)
    assert compared == len(listed) == 7
    print(f"{vector['suite']}: {compared} messages, the bundle and the binding are the same")


for vector in json.loads((pathlib.Path(__file__).parent / "vectors/ratchet.json").read_text()):
    check(vector)
