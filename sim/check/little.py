"""Check 4: Little's law, exact on every sample path."""

from sim.check.history import violation
from sim.contract.plain import EngineInput, EngineOutput
from sim.units import sum_exact


def check_little(given: EngineInput, out: EngineOutput) -> int:
    """Return the integral of active requests over time, which must be the sum of the latencies (ns).

    Raises
    ------
    CheckError
        What the engine summed as it went is not the sum over its table.
    """
    total_ns = sum_exact(out.latency_ns)
    if total_ns != out.active_integral_ns:
        what = (
            f"Little's law: active x time is {out.active_integral_ns} ns, the latencies sum to {total_ns} ns"
        )
        raise violation(given, out, 0, what)
    return total_ns
