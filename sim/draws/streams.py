"""Named random streams: the only place where randomness comes from."""

from hashlib import blake2b

import numpy as np

HASH_BYTES = 8


class Streams:
    """The random streams of one workload in one replication.

    Equal (seed, replication, workload, purpose, branch) give equal numbers, in any process and on any
    machine: the names are keyed by a stable hash.
    """

    def __init__(self, seed: int, replication: int, workload: str) -> None:
        self.seed, self.replication, self.workload = seed, replication, workload

    def stream(self, purpose: str, branch: str = "") -> np.random.Generator:
        """Return the stream of a purpose (and branch), from its beginning."""
        names = (stable_hash(name) for name in (self.workload, purpose, branch))
        sequence = np.random.SeedSequence(self.seed, spawn_key=(self.replication, *names))
        return np.random.Generator(np.random.PCG64(sequence))


def stable_hash(name: str) -> int:
    """Return a number that depends on the name alone; `hash` differs from process to process."""
    return int.from_bytes(blake2b(name.encode(), digest_size=HASH_BYTES).digest(), "big")
