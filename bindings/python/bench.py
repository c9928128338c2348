"""The cost of calls: medians on this machine."""

import time
from collections.abc import Callable
from statistics import median

import wraith

ROUNDS = 21
CALLS = 2000


def seconds(work: Callable[[], object], calls: int) -> float:
    """Return the seconds of one call: the median of some rounds."""

    def once() -> float:
        begin = time.perf_counter()
        for _ in range(calls):
            work()
        return (time.perf_counter() - begin) / calls

    return median(once() for _ in range(ROUNDS))


def sessions() -> tuple[wraith.Session, wraith.Session]:
    protocol = "Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s"
    options = [wraith.HandshakeOptions(identity=wraith.Identity.generate()) for _ in range(2)]
    first = wraith.Handshake.initiator(protocol, options[0])
    second = wraith.Handshake.responder(protocol, options[1])
    for writes, reads in ((first, second), (second, first), (first, second)):
        reads.read(writes.write(b""))
    return first.into_session(), second.into_session()


def main() -> None:
    seal, _ = sessions()
    small, large, batch = bytes(64), bytes(1 << 20), [bytes(1024)] * 100
    lines = {
        "hash of 0 bytes": seconds(lambda: wraith.hash(b""), CALLS),
        "hash of 1 MiB": seconds(lambda: wraith.hash(large), 20),
        "seal of 64 bytes": seconds(lambda: seal.seal(b"", small), CALLS),
        "100 x 1 KiB, 100 calls": seconds(lambda: [seal.seal(b"", each) for each in batch], 10),
        "100 x 1 KiB, 1 call": seconds(lambda: seal.seal_many(b"", batch), 10),
    }
    for name, cost in lines.items():
        print(f"{name:<24} {cost * 1e6:>10.1f} us {1 / cost:>12,.0f} a second")


if __name__ == "__main__":
    main()
