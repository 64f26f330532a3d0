"""The error that stops a run, with a request's whole history in words."""

import numpy as np

from sim.contract.output import RunOutput
from sim.errors import CheckError


def violation(out: RunOutput, request: int, what: str) -> CheckError:
    """Return the error for a request that breaks a rule."""
    return violated(out, f"request {request} {what}", request)


def violated(out: RunOutput, what: str, request: int | None = None) -> CheckError:
    """Return the error for what is wrong, with everything that happened to a request."""
    lines = [f"check violated ({out.engine} engine): {what}"]
    return CheckError("\n".join(lines if request is None else lines + history(out, request)))


def history(out: RunOutput, request: int) -> list[str]:
    """Return one line for the request, and one for each of its attempts."""
    attempts = out.attempts
    plan = "parallel" if out.ran_parallel[request] else "serial"
    times = f"arrived at {out.arrival_ns[request]} ns, answered at {out.completion_ns[request]} ns"
    lines = [f"  {plan}, {times}"]
    for row in np.flatnonzero(attempts.number == request).tolist():
        times = f"ready {attempts.ready_ns[row]}, started {attempts.start_ns[row]}"
        ended = f"ended {attempts.finish_ns[row]} ns on slot {attempts.slot[row]}"
        lines.append(f"  attempt {attempts.attempt[row]} at call {attempts.call[row]}: {times}, {ended}")
    return lines
