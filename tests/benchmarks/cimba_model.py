"""W1 as a model of cimba, which replays the draws and gives the mean latency."""

import cimba
import numpy as np
from cimba import inputs

from sim.contract.load import OpenArrivals
from sim.contract.plain import PlainInput
from sim.units import NS_PER_S, IntArray

AFTER_ALL_S = 1e12


class OneCall(cimba.Model):
    """Requests wait in a store for one of the slots."""

    gap_s: cimba.Input[float]
    service_s: cimba.Input[float]
    waiting: cimba.Store[float]
    latency_s: cimba.Dataset
    mean_s: cimba.Output[float]
    completed: cimba.Output[float]

    @cimba.process
    def source(self) -> None:
        while True:
            cimba.hold(self.gap_s.next())
            self.waiting.put(cimba.now())

    @cimba.process(copies=20)
    def slot(self) -> None:
        while True:
            arrived_s = self.waiting.get()
            cimba.hold(self.service_s.next())
            self.latency_s.record(cimba.now() - arrived_s)

    @cimba.on_end
    def measure(self) -> None:
        self.mean_s = self.latency_s.sample_mean()
        self.completed = self.latency_s.sample_count()


def mean_latency_ns(given: PlainInput) -> IntArray:
    """Return the mean latency, int64[1]."""
    assert isinstance(given.load, OpenArrivals)
    model = OneCall()
    gaps_s = np.diff(given.load.arrival_ns, prepend=0) / NS_PER_S
    model.gap_s = inputs.trace(np.append(gaps_s, AFTER_ALL_S))
    model.service_s = inputs.trace(np.append(given.service_ns[:, 0] / NS_PER_S, AFTER_ALL_S))
    window = cimba.Window(warmup=0, duration=float(given.load.arrival_ns[-1] / NS_PER_S + 1_000))
    results = cimba.Experiment(model, replications=1, window=window, seed=1).run()[model]
    assert results.completed.values.item() == len(gaps_s)
    return np.array([round(results.mean_s.values.item() * NS_PER_S)], dtype=np.int64)
