"""When an attempt answers first, by the draws."""

import numpy as np

from sim.contract.output import OK, RATE_LIMITED, TIMED_OUT
from sim.contract.run import NEVER_NS, WorkloadInput
from sim.units import IntArray


def first_tokens_ns(one: WorkloadInput, position: IntArray, call: IntArray, attempt: IntArray) -> IntArray:
    """Return the time from each attempt's start to its first token; `NEVER_NS` where there is none.

    A whole answer is not shorter; an attempt that fails before has none, nor has one that is turned away.
    Without tokens an answer begins at once.
    """
    lasts_ns = one.service_ns[position, call]
    drawn_ns = np.zeros_like(lasts_ns) if one.tokens is None else one.tokens.first_token_ns[position, call]
    succeeds, answers = np.ones((2, len(call)), dtype=np.bool_)
    faults = one.faults
    if faults is not None:
        timeout_ns = np.array([NEVER_NS if limit_ns is None else limit_ns for limit_ns in faults.timeout_ns])
        tried_ns, ends = faults.service_ns[position, call, attempt], faults.outcome[position, call, attempt]
        is_join = call >= one.branches
        in_time = (ends != TIMED_OUT) & (tried_ns <= timeout_ns[call])
        lasts_ns = np.where(is_join, lasts_ns, np.where(in_time, tried_ns, timeout_ns[call]))
        succeeds = is_join | ((ends == OK) & in_time)
        answers = is_join | (ends != RATE_LIMITED) | ~in_time
    first_ns = np.where(succeeds, np.minimum(drawn_ns, lasts_ns), drawn_ns)
    return np.where(answers & (first_ns <= lasts_ns), first_ns, NEVER_NS)
