"""The workloads as a user of SimPy would write them, after its documentation.

Times are whole nanoseconds. Each function takes lists (gaps between arrivals; service times, one or two per
request) and returns the latencies. Written for the benchmark alone: the simulator's own model is
`sim.engine.simpy_model`.
"""

from collections.abc import Generator, Sequence
from typing import Any

import simpy

Process = Generator[simpy.Event, Any, None]


def one_call(gaps_ns: Sequence[int], service_ns: Sequence[int], slots: int) -> list[float]:
    """W1: each request makes one call on one of the slots."""
    env = simpy.Environment()
    provider = simpy.Resource(env, capacity=slots)
    latency_ns: list[float] = [0] * len(gaps_ns)

    def request(number: int) -> Process:
        arrived = env.now
        with provider.request() as slot:
            yield slot
            yield env.timeout(service_ns[number])
        latency_ns[number] = env.now - arrived

    def source() -> Process:
        for number, gap_ns in enumerate(gaps_ns):
            yield env.timeout(gap_ns)
            env.process(request(number))

    env.process(source())
    env.run()
    return latency_ns


def fork_join(
    gaps_ns: Sequence[int], service_ns: Sequence[Sequence[int]], join_ns: int, slots: int
) -> list[float]:
    """W2: each request makes two calls at once, then joins their results."""
    env = simpy.Environment()
    provider = simpy.Resource(env, capacity=slots)
    latency_ns: list[float] = [0] * len(gaps_ns)

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
        for number, gap_ns in enumerate(gaps_ns):
            yield env.timeout(gap_ns)
            env.process(request(number))

    env.process(source())
    env.run()
    return latency_ns


class Holder:
    """A request, to the provider: how many slots it holds."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = 0


class FairProvider:
    """Slots of which one request may hold as many as all active requests could, and at least one."""

    def __init__(self, env: simpy.Environment, slots: int) -> None:
        self.env = env
        self.slots = slots
        self.free = slots
        self.active = 0
        self.share = slots
        self.queue: list[tuple[Holder, simpy.Event]] = []

    def enter(self) -> None:
        self.count_active(1)

    def leave(self) -> None:
        self.count_active(-1)
        self.dispatch()

    def count_active(self, change: int) -> None:
        self.active += change
        self.share = max(1, self.slots // max(1, self.active))

    def ask(self, holder: Holder) -> simpy.Event:
        granted = self.env.event()
        self.queue.append((holder, granted))
        self.dispatch()
        return granted

    def give_back(self, holder: Holder) -> None:
        self.free += 1
        holder.held -= 1
        self.dispatch()

    def dispatch(self) -> None:
        while self.free:
            for place, (holder, granted) in enumerate(self.queue):
                if holder.held < self.share:
                    del self.queue[place]
                    holder.held += 1
                    self.free -= 1
                    granted.succeed()
                    break
            else:
                return


def fair_fork_join(
    gaps_ns: Sequence[int], service_ns: Sequence[Sequence[int]], join_ns: int, slots: int
) -> list[float]:
    """W3: the same under a fair share of the slots."""
    env = simpy.Environment()
    provider = FairProvider(env, slots)
    latency_ns: list[float] = [0] * len(gaps_ns)

    def call(holder: Holder, service: int) -> Process:
        yield provider.ask(holder)
        yield env.timeout(service)
        provider.give_back(holder)

    def request(number: int) -> Process:
        arrived = env.now
        provider.enter()
        holder = Holder()
        first, second = service_ns[number]
        yield env.all_of([env.process(call(holder, first)), env.process(call(holder, second))])
        yield env.timeout(join_ns)
        provider.leave()
        latency_ns[number] = env.now - arrived

    def source() -> Process:
        for number, gap_ns in enumerate(gaps_ns):
            yield env.timeout(gap_ns)
            env.process(request(number))

    env.process(source())
    env.run()
    return latency_ns
