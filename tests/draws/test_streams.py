"""Streams depend on their names and on nothing else."""

import subprocess
import sys
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sim.draws.streams import Streams, stable_hash


def first(seed: int, replication: int, workload: str, purpose: str, branch: str) -> list[int]:
    stream = Streams(seed, replication, workload).stream(purpose, branch)
    return [int(number) for number in stream.integers(0, 2**62, 4)]


def test_the_same_names_give_the_same_numbers() -> None:
    assert first(1, 0, "w", "service", "a") == first(1, 0, "w", "service", "a")


def test_every_part_of_the_key_counts() -> None:
    keys = [
        (1, 0, "w", "service", "a"),
        (2, 0, "w", "service", "a"),
        (1, 1, "w", "service", "a"),
        (1, 0, "v", "service", "a"),
        (1, 0, "w", "join", "a"),
        (1, 0, "w", "service", "b"),
        (1, 0, "service", "w", "a"),
        (0, 1, "w", "service", "a"),
    ]
    for one, other in combinations(keys, 2):
        assert first(*one) != first(*other), (one, other)


def test_a_stream_starts_from_its_beginning_each_time() -> None:
    streams = Streams(1, 0, "w")
    assert streams.stream("think").random(3).tolist() == streams.stream("think").random(3).tolist()


def test_streams_are_uncorrelated() -> None:
    draws = np.array([Streams(1, number, "w").stream("service").random(20_000) for number in range(8)])
    between = np.corrcoef(draws)[np.triu_indices(8, 1)]
    # Of 28 correlations with deviation 1 / sqrt(n) none should be beyond 4.5 of them.
    assert np.abs(between).max() < 4.5 / np.sqrt(20_000)


@given(st.text(), st.text())
def test_different_names_have_different_hashes(one: str, other: str) -> None:
    assert (stable_hash(one) == stable_hash(other)) == (one == other)
    assert 0 <= stable_hash(one) < 2**64


def test_the_hash_is_the_same_in_another_process() -> None:
    code = "from sim.draws.streams import stable_hash; print(stable_hash('moderation.classify'))"
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert printed == {f"{stable_hash('moderation.classify')}\n".encode()}
