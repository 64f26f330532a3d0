"""Draws of a workload on shared providers: what becomes of each attempt, and the tokens of each call."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sim.contract.output import OK, RATE_LIMITED, SERVER_ERROR, TIMED_OUT
from sim.contract.run import PPM, Faults, Tokens
from sim.draws.drawing import Draws, draw_values
from sim.draws.streams import Streams
from sim.scenario import Scenario
from sim.scenario.distribution import TokenDuration
from sim.scenario.failures import Retry
from sim.scenario.load import TOKEN_ROLES
from sim.scenario.workflow import WorkflowBranch
from sim.units import IntArray, exact, ms_array_to_ns, ms_to_ns


def draw_faults(scenario: Scenario, streams: Streams, draws: Draws) -> Faults | None:
    """Return what may go wrong in a workload; None where nothing can.

    A first attempt takes the time that it would without faults; each further one has a stream of its own.
    Attempts that the provider turns away hold their slots for as long as that takes. A join that holds a slot
    is a call that nothing goes wrong with.
    """
    if not scenario.has_faults:
        return None
    workflow, retry = scenario.workflow, scenario.workflow.retry
    joins = (None,) * workflow.join_holds_slot
    shape = (len(draws.join_ns), len(workflow.branches) + len(joins), retry.attempts)
    outcome = np.full(shape, OK, dtype=np.int8)
    jitter_ppm = np.zeros(shape, dtype=np.int64)
    service_ns = np.repeat(calls_service_ns(draws, shape[1])[:, :, None], retry.attempts, axis=2)
    for index, branch in enumerate(workflow.branches):
        for attempt in range(retry.attempts):
            place = (slice(None), index, attempt)
            outcome[place] = draw_outcome(scenario, branch, streams, shape[0], attempt)
            jitter_ppm[place] = draw_jitter(retry, branch, streams, shape[0], attempt)
            if attempt:
                service_ns[place] = draw_again(scenario, branch, streams, shape[0], attempt)
        turned_away = outcome[:, index] == RATE_LIMITED
        service_ns[:, index][turned_away] = max(1, ms_to_ns(scenario.branch_failures(branch).rejection_ms))
    return Faults(
        outcome=outcome,
        service_ns=service_ns,
        timeout_ns=optional_ns([branch.timeout_ms for branch in workflow.branches]) + joins,
        backoff_ns=tuple(backoff_ns(retry, attempt) for attempt in range(retry.attempts)),
        jitter_ppm=jitter_ppm,
        hedge_after_ns=optional_ns([branch.hedge_after_ms for branch in workflow.branches]) + joins,
        optional=tuple(branch.optional for branch in workflow.branches),
        retry_budget_ppm=None if retry.budget_ratio is None else round(exact(retry.budget_ratio) * PPM),
        deadline_ns=optional_ns([workflow.deadline_ms])[0],
        needs=workflow.join_needs,
        cancels=workflow.siblings == "cancel",
    )


def draw_outcome(
    scenario: Scenario, branch: WorkflowBranch, streams: Streams, requests: int, attempt: int
) -> npt.NDArray[np.int8]:
    """Return how one attempt at a branch ends, for each request (int8[requests])."""
    failures = scenario.branch_failures(branch)
    causes = (SERVER_ERROR, RATE_LIMITED, TIMED_OUT, OK)
    edges = np.cumsum([failures.server_error, failures.rate_limited, failures.timeout])
    uniform = streams.stream(f"outcome.{attempt}", branch.id).random(requests)
    place = np.zeros(requests, dtype=np.int8)
    for edge in edges:
        place += uniform >= edge
    return np.array(causes, dtype=np.int8)[place]


def draw_again(
    scenario: Scenario, branch: WorkflowBranch, streams: Streams, requests: int, attempt: int
) -> IntArray:
    """Return the service times of a further attempt; values that come from a trace's row stay the same."""
    drawn_ms = draw_values(scenario, branch.duration_ms, streams, requests, f"service.{attempt}", branch.id)
    return np.maximum(1, ms_array_to_ns(drawn_ms))


def draw_jitter(
    retry: Retry, branch: WorkflowBranch, streams: Streams, requests: int, attempt: int
) -> IntArray:
    """Return by how many millionths the pause after an attempt is longer, for each request."""
    uniform = streams.stream(f"jitter.{attempt}", branch.id).random(requests)
    return np.rint(uniform * (retry.jitter * PPM)).astype(np.int64)


def backoff_ns(retry: Retry, attempt: int) -> int:
    """Return the least pause after an attempt (0-based): exponential, up to its maximum."""
    return ms_to_ns(min(retry.backoff_ms * retry.multiplier**attempt, retry.max_backoff_ms))


def optional_ns(values_ms: Sequence[float | None]) -> tuple[int | None, ...]:
    """Return milliseconds as nanoseconds, None where there is no value."""
    return tuple(None if value_ms is None else max(1, ms_to_ns(value_ms)) for value_ms in values_ms)


def draw_tokens(scenario: Scenario, streams: Streams, draws: Draws) -> Tokens | None:
    """Return the tokens of each call; None where neither limits nor caches look at them.

    A join that holds a slot is a call without tokens.
    """
    if not scenario.uses_tokens:
        return None
    requests, branches = len(draws.join_ns), scenario.workflow.branches
    calls = len(branches) + scenario.workflow.join_holds_slot
    sent, received, first_token_ns = np.zeros((3, requests, calls), dtype=np.int64)
    for index, branch in enumerate(branches):
        drawn = draw_counts(scenario, branch, streams, requests)
        sent[:, index] = np.maximum(drawn[0], scenario.least_input_tokens(branch))
        received[:, index] = drawn[1]
        first_token_ns[:, index] = draw_first_token(scenario, branch, streams, drawn[0])
    none = [0] * (calls - len(branches))
    return Tokens(
        input=sent,
        output=received,
        reserved_output=tuple([scenario.reserved_output(branch) for branch in branches] + none),
        prefix=tuple([scenario.cached_prefix_tokens(branch) for branch in branches] + none),
        first_token_ns=np.minimum(first_token_ns, calls_service_ns(draws, calls)),
    )


def draw_counts(
    scenario: Scenario, branch: WorkflowBranch, streams: Streams, requests: int
) -> tuple[IntArray, IntArray]:
    """Return input and output tokens (int64[requests] each): of the same draws as a duration made of them."""
    sent, received = (
        np.rint(draw_values(scenario, count, streams, requests, f"service.{role}", branch.id))
        for role, count in zip(TOKEN_ROLES, branch.token_counts, strict=True)
    )
    return sent.astype(np.int64), received.astype(np.int64)


def draw_first_token(
    scenario: Scenario, branch: WorkflowBranch, streams: Streams, input_tokens: IntArray
) -> IntArray:
    """Return the time from a call's start to its first token: stated, else overhead and prefill."""
    if branch.first_token_ms is not None:
        first_ms = draw_values(
            scenario, branch.first_token_ms, streams, len(input_tokens), "first_token", branch.id
        )
    elif isinstance(branch.duration_ms, TokenDuration):
        sent = input_tokens.astype(np.float64)
        first_ms = branch.duration_ms.service_ms(sent, np.zeros_like(sent))
    else:
        first_ms = np.zeros(len(input_tokens))
    # A first token at once would be a second dispatch within its instant.
    return np.maximum(1, ms_array_to_ns(first_ms))


def calls_service_ns(draws: Draws, calls: int) -> IntArray:
    """Return the service times with a column for the join, where that is a call."""
    joins = [np.maximum(1, draws.join_ns)] * (calls - draws.service_ns.shape[1])
    return np.column_stack([draws.service_ns, *joins])
