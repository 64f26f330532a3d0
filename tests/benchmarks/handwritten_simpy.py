"""The workloads as a user of SimPy would write them, after its documentation.

Times are whole nanoseconds. Each function takes lists (arrivals; service times, one or two per request) and
returns the latencies. Written for the benchmark alone: the simulator's own model is `sim.engine.simpy_model`.
"""

from collections.abc import Generator, Sequence
from typing import Any

import simpy

Process = Generator[simpy.Event, Any, None]


def one_call(arrival_ns: Sequence[int], service_ns: Sequence[int], slots: int) -> list[float]:
    """W1: each request makes one call on one of the slots."""
    env = simpy.Environment()
    provider = simpy.Resource(env, capacity=slots)
    latency_ns: list[float] = [0] * len(arrival_ns)

    def request(number: int) -> Process:
        arrived = env.now
        with provider.request() as slot:
            yield slot
            yield env.timeout(service_ns[number])
        latency_ns[number] = env.now - arrived

    def source() -> Process:
        for number, at_ns in enumerate(arrival_ns):
            yield env.timeout(at_ns - env.now)
            env.process(request(number))

    env.process(source())
    env.run()
    return latency_ns


def fork_join(
    arrival_ns: Sequence[int], service_ns: Sequence[Sequence[int]], join_ns: int, slots: int
) -> list[float]:
    """W2: each request makes two calls at once, then joins their results."""
    env = simpy.Environment()
    provider = simpy.Resource(env, capacity=slots)
    latency_ns: list[float] = [0] * len(arrival_ns)

    def call(service: int) -> Process:
        with provider.request() as slot:
            yield slot
            yield env.timeout(service)

    def request(number: int) -> Process:
        arrived = env.now
        first, second = service_ns[number]
        yield env.all_of([env.process(call(first)), env.process(call(second))])
        yield env.timeout(join_ns)
        latency_ns[number] = env.now - arrived

    def source() -> Process:
        for number, at_ns in enumerate(arrival_ns):
            yield env.timeout(at_ns - env.now)
            env.process(request(number))

    env.process(source())
    env.run()
    return latency_ns


class FairProvider:
    """Slots of which one request may hold as many as all active requests could, and at least one."""

    def __init__(self, env: simpy.Environment, slots: int) -> None:
        self.env = env
        self.slots = slots
        self.free = slots
        self.active = 0
        self.held: dict[int, int] = {}
        self.queue: list[tuple[int, simpy.Event]] = []

    def enter(self, number: int) -> None:
        self.active += 1
        self.held[number] = 0

    def leave(self, number: int) -> None:
        self.active -= 1
        del self.held[number]
        self.dispatch()

    def ask(self, number: int) -> simpy.Event:
        granted = self.env.event()
        self.queue.append((number, granted))
        self.dispatch()
        return granted

    def give_back(self, number: int) -> None:
        self.free += 1
        self.held[number] -= 1
        self.dispatch()

    def dispatch(self) -> None:
        while self.free:
            share = max(1, self.slots // max(1, self.active))
            for place, (number, granted) in enumerate(self.queue):
                if self.held[number] < share:
                    del self.queue[place]
                    self.held[number] += 1
                    self.free -= 1
                    granted.succeed()
                    break
            else:
                return


def fair_fork_join(
    arrival_ns: Sequence[int], service_ns: Sequence[Sequence[int]], join_ns: int, slots: int
) -> list[float]:
    """W3: the same under a fair share of the slots."""
    env = simpy.Environment()
    provider = FairProvider(env, slots)
    latency_ns: list[float] = [0] * len(arrival_ns)

    def call(number: int, service: int) -> Process:
        yield provider.ask(number)
        yield env.timeout(service)
        provider.give_back(number)

    def request(number: int) -> Process:
        arrived = env.now
        provider.enter(number)
        first, second = service_ns[number]
        yield env.all_of([env.process(call(number, first)), env.process(call(number, second))])
        yield env.timeout(join_ns)
        provider.leave(number)
        latency_ns[number] = env.now - arrived

    def source() -> Process:
        for number, at_ns in enumerate(arrival_ns):
            yield env.timeout(at_ns - env.now)
            env.process(request(number))

    env.process(source())
    env.run()
    return latency_ns
