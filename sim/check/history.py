"""A request's whole history in words, for the error that stops a run."""

from sim.contract.plain import EngineInput, EngineOutput
from sim.errors import CheckError
from sim.units import ns_to_ms


def request_history(out: EngineOutput, request: int) -> str:
    """Return one line per thing that happened to a request, in ms and in order of its calls."""
    plan = "parallel" if out.ran_parallel[request] else "serial"
    lines = [f"request {request} ({plan}) arrived at {_ms(out.arrival_ns[request])}"]
    for call, slot in enumerate(out.slot[request]):
        ready, start, finish = (
            column[request, call] for column in (out.ready_ns, out.start_ns, out.finish_ns)
        )
        if out.called[request, call]:
            ran = f"started {_ms(start)} on slot {slot}, finished {_ms(finish)}"
            lines.append(f"  call {call}: ready {_ms(ready)}, {ran}")
    lines.append(f"  completed at {_ms(out.completion_ns[request])}")
    return "\n".join(lines)


def violation(given: EngineInput, out: EngineOutput, request: int, what: str) -> CheckError:
    """Return the error that names the broken check and tells the request's history."""
    run = f"{out.engine} engine, {given.slots} slots, {given.allocation.name}"
    story = request_history(out, request) if 0 <= request < out.requests else "there is no request"
    return CheckError(f"check violated ({run}): {what}\n{story}")


def _ms(time_ns: int) -> str:
    return f"{ns_to_ms(int(time_ns)):.6f} ms"
