"""The cases: queues of which theory knows the answer, as scenarios of one plan each.

Services take 1,000 ms on average. Run lengths are such that each interval is as narrow as its claim asks for
with some room; the requests left out at the start are many times those of the queue's relaxation time.
"""

from sim.plan.parallel_plan import Branch
from sim.plan.schedule import schedule_branches
from sim.statistics.agreement import OF_MEAN_WAIT, Precision
from sim.statistics.bounds import closed_latency_bound, utilisation
from sim.statistics.theory import (
    allen_cunneen_wait,
    batch_mmc_wait,
    erlang_c,
    fork_join_one_slot_latency,
    fork_join_unlimited_latency,
    kingman_wait_bound,
    machine_repair,
    mdc_wait,
    mg1_wait,
    mm1_latency_percentile,
    mmc_wait,
    serial_latency,
)
from sim.verification import observation as see
from sim.verification.case import (
    SERVICE_MS,
    Case,
    Plain,
    built,
    closed_load,
    exponential,
    gamma,
    lognormal,
    open_load,
)
from sim.verification.claim import OF_ITSELF, OF_WAIT_PROBABILITY, Always, Band, Claim, Mean

PER_MS = 1 / 1000
SAMPLE_MS, SAMPLE_JOIN_MS, SAMPLE_SLOTS = (260, 160), 35, 20
RUN_PER_USER, WARMUP_SHARE = 400, 10
END_EFFECTS_MS = 0.2


def all_cases() -> tuple[Case, ...]:
    """Return every case."""
    return (
        *exponential_cases(),
        *general_cases(),
        *approximate_cases(),
        *fork_join_cases(),
        *closed_cases(),
        *fixed_cases(),
    )


def exponential_cases() -> tuple[Case, ...]:
    """Return the queues of Erlang: Poisson arrivals, exponential service."""
    return (
        Case(
            built("M/M/3 at 2 erlangs", open_load(2, 9_500), (exponential(),), 3, warmup=300),
            20,
            (wait(mmc_wait(2 * PER_MS, SERVICE_MS, 3), "Erlang C"),),
        ),
        Case(
            built("M/M/20 at 16 erlangs", open_load(16, 42_000), (exponential(),), 20, warmup=600),
            40,
            (
                wait(mmc_wait(16 * PER_MS, SERVICE_MS, 20), "Erlang C"),
                own_scale("utilisation", "1", see.utilisation, utilisation(16, 1, 20), "L x work / c"),
                Claim("active x time - latencies", "ns", see.littles_law_gap_ns, Always(0), "Little's law"),
            ),
        ),
        Case(
            built("M/M/20 at 18 erlangs", open_load(18, 38_000), (exponential(),), 20, warmup=2_000),
            40,
            (
                wait(mmc_wait(18 * PER_MS, SERVICE_MS, 20), "Erlang C"),
                own_scale(
                    "P(wait)", "1", see.share_waiting, erlang_c(20, 18), "Erlang C", OF_WAIT_PROBABILITY
                ),
            ),
        ),
        Case(
            built(
                "M/M/21 at 18 erlangs, fair share",
                open_load(18, 29_000),
                (exponential(),),
                21,
                allocation="fair_share",
                warmup=1_500,
            ),
            40,
            (wait(mmc_wait(18 * PER_MS, SERVICE_MS, 21), "Erlang C"),),
        ),
        Case(
            built("M/M/1 at 0.8", open_load(0.8, 68_000), (exponential(),), 1, warmup=1_500),
            40,
            (
                wait(mmc_wait(0.8 * PER_MS, SERVICE_MS, 1), "Pollaczek-Khinchine"),
                latency(mmc_wait(0.8 * PER_MS, SERVICE_MS, 1) + SERVICE_MS, "Pollaczek-Khinchine"),
                *percentiles(0.8),
            ),
        ),
    )


def percentiles(load: float) -> tuple[Claim, ...]:
    """Return the claims about the latency of M/M/1: means of the replications' percentiles.

    The 95th is that of a wait, and is held to the precision of one.
    """
    median, tail = (mm1_latency_percentile(load * PER_MS, SERVICE_MS, level) for level in (0.5, 0.95))
    wait_ms = mmc_wait(load * PER_MS, SERVICE_MS, 1)
    source = "-ln(1 - p) s / (1 - rho)"
    return (
        Claim("latency p50", "ms", see.latency_p50_ms, Mean(median, wait_ms + SERVICE_MS), source),
        Claim("latency p95", "ms", see.latency_p95_ms, Mean(tail, wait_ms, OF_MEAN_WAIT), source),
    )


def general_cases() -> tuple[Case, ...]:
    """Return the queues with other service times and other arrivals."""
    return (
        Case(
            built("M/D/1 at 0.8", open_load(0.8, 6_000), (SERVICE_MS,), 1, warmup=500),
            20,
            (wait(mg1_wait(0.8 * PER_MS, SERVICE_MS, 0), "Pollaczek-Khinchine"),),
        ),
        Case(
            built(
                "M/G/1 at 0.6, log-normal cv 1.5", open_load(0.6, 23_000), (lognormal(1.5),), 1, warmup=500
            ),
            20,
            (wait(mg1_wait(0.6 * PER_MS, SERVICE_MS, 1.5), "Pollaczek-Khinchine"),),
        ),
        Case(
            built(
                "M/G/1 at 0.7, gamma cv 0.5, max-min",
                open_load(0.7, 4_500),
                (gamma(0.5),),
                1,
                allocation="max_min",
                warmup=300,
            ),
            20,
            (wait(mg1_wait(0.7 * PER_MS, SERVICE_MS, 0.5), "Pollaczek-Khinchine"),),
        ),
        Case(
            built("M/D/5 at 4 erlangs", open_load(4, 9_800), (SERVICE_MS,), 5, warmup=500),
            20,
            (wait(mdc_wait(4 * PER_MS, SERVICE_MS, 5), "Crommelin"),),
        ),
    )


def approximate_cases() -> tuple[Case, ...]:
    """Return queues of which theory knows bounds, limits and approximations."""
    loaded_ms = allen_cunneen_wait(4.5 * PER_MS, SERVICE_MS, 5, 1, 0.5)
    regular_ms = allen_cunneen_wait(0.9 * PER_MS, SERVICE_MS, 1, 0.5, 0.5)
    most_ms = kingman_wait_bound(0.9 * PER_MS, SERVICE_MS, 0.5, 0.5)
    return (
        Case(
            built(
                "M/G/5 at 4.5 erlangs, log-normal cv 0.5",
                open_load(4.5, 25_000),
                (lognormal(0.5),),
                5,
                warmup=2_000,
            ),
            20,
            (wait_between(0.85 * loaded_ms, 1.15 * loaded_ms, "Allen-Cunneen ± 15 %"),),
        ),
        Case(
            built("M/G/20 at 4 erlangs, gamma cv 2", open_load(4, 5_000), (gamma(2),), 20, warmup=500),
            20,
            (wait_between(0, SERVICE_MS / 1000, "0 as the load goes to 0"),),
        ),
        Case(
            built(
                "G/G/1 at 0.9, gamma arrivals cv 0.5, log-normal cv 0.5",
                open_load(0.9, 20_000, arrivals="gamma", cv=0.5),
                (lognormal(0.5),),
                1,
                warmup=2_000,
            ),
            20,
            (wait_between(0.8 * regular_ms, most_ms, "Kingman's bound above, Allen-Cunneen - 20 % below"),),
        ),
    )


def fork_join_cases() -> tuple[Case, ...]:
    """Return requests of several exponential calls, side by side and one after another."""
    return (
        Case(
            built(
                "fork-join of 3 on one slot, 0.2 per s",
                open_load(0.2, 20_000),
                (exponential(),) * 3,
                1,
                warmup=1_000,
            ),
            20,
            (
                latency(
                    fork_join_one_slot_latency(0.2 * PER_MS, SERVICE_MS, 3), "M/E_3/1, Pollaczek-Khinchine"
                ),
            ),
        ),
        Case(
            built(
                "fork-join of 3 on ample slots",
                open_load(1, 1_500),
                (exponential(),) * 3,
                64,
                allocation="fair_share",
                warmup=100,
            ),
            20,
            (latency(fork_join_unlimited_latency(SERVICE_MS, 3), "mean of the longest: s H_3"),),
        ),
        Case(
            built(
                "fork of 3 on 2 slots, 0.4 per s", open_load(0.4, 3_200), (exponential(),) * 3, 2, warmup=300
            ),
            20,
            (wait(batch_mmc_wait(0.4 * PER_MS, SERVICE_MS, 2, 3), "M^[3]/M/2, Markov chain"),),
        ),
        Case(
            built(
                "3 serial calls on 5 slots, 1.1 per s",
                open_load(1.1, 9_000),
                (exponential(),) * 3,
                5,
                plan="serial",
                warmup=1_000,
            ),
            20,
            (latency(serial_latency(1.1 * PER_MS, SERVICE_MS, 5, 3), "BCMP: 3 x (Erlang C + s)"),),
        ),
    )


def closed_cases() -> tuple[Case, ...]:
    """Return users who wait for their answers, with exponential service."""
    repair = machine_repair(40, 20, 1500, SERVICE_MS)
    full = machine_repair(30, 20, 0, SERVICE_MS)
    return (
        Case(
            built(
                "40 users, exponential think 1,500 ms, 20 slots",
                closed_load(40, 6_000, exponential(1500)),
                (exponential(),),
                20,
                warmup=1_000,
            ),
            20,
            (
                latency(repair.latency, "machine repair, Markov chain"),
                throughput(1000 * repair.throughput, "machine repair, Markov chain"),
                own_scale(
                    "throughput x (latency + think)", "users", see.users_by_littles_law, 40, "Little's law"
                ),
            ),
        ),
        Case(
            built(
                "30 users without a pause, 20 slots",
                closed_load(30, 6_000),
                (exponential(),),
                20,
                warmup=1_000,
            ),
            20,
            (
                throughput(1000 * full.throughput, "c / work"),
                latency(full.latency, "N work / c"),
            ),
        ),
    )


def fixed_cases() -> tuple[Case, ...]:
    """Return the sample workflow with fixed times, answered request by request and without pauses."""
    one_slot, two_slots, serial = (alone_ms(slots) for slots in (1, 2, 0))
    shared = {
        users: closed_latency_bound(users, 0, two_slots, sum(SAMPLE_MS), SAMPLE_SLOTS)
        for users in (16, 20, 30)
    }
    return (
        fixed_case(10, "fair_share", "parallel", always(two_slots)),
        fixed_case(11, "fair_share", "parallel", always(one_slot)),
        fixed_case(20, "fair_share", "parallel", always(one_slot)),
        fixed_case(20, "fair_share", "serial", always(serial)),
        fixed_case(30, "fair_share", "parallel", about(shared[30])),
        fixed_case(30, "fair_share", "serial", about(shared[30])),
        fixed_case(16, "fifo", "parallel", about(shared[16])),
        fixed_case(20, "fifo", "parallel", always(shared[20], "N work / c")),
        fixed_case(16, "max_min", "parallel", about(shared[16])),
        fixed_case(20, "max_min", "parallel", always(one_slot)),
    )


def alone_ms(slots: int) -> float:
    """Return the makespan of the sample on so many slots; 0 stands for one call after another, no join."""
    branches = [Branch(f"call_{number}", each) for number, each in enumerate(SAMPLE_MS)]
    return sum(SAMPLE_MS) if slots == 0 else schedule_branches(branches, slots, SAMPLE_JOIN_MS).make_span_ms


def fixed_case(users: int, allocation: str, plan: str, claim: Claim) -> Case:
    """Return the sample under so many users; one run says it all."""
    requests = RUN_PER_USER * users
    durations: tuple[Plain | float, ...] = SAMPLE_MS
    scenario = built(
        f"fixed times, {users} users, {allocation}, {plan}",
        closed_load(users, requests),
        durations,
        SAMPLE_SLOTS,
        allocation=allocation,
        plan=plan,
        warmup=requests // WARMUP_SHARE,
        join_ms=SAMPLE_JOIN_MS,
    )
    return Case(scenario, 1, (claim,))


def wait(theory_ms: float, source: str) -> Claim:
    """Return the claim about a mean wait."""
    return Claim("mean wait", "ms", see.mean_wait_ms, Mean(theory_ms, theory_ms, OF_MEAN_WAIT), source)


def latency(theory_ms: float, source: str) -> Claim:
    """Return the claim about a mean latency."""
    return Claim("mean latency", "ms", see.mean_latency_ms, Mean(theory_ms, theory_ms), source)


def throughput(theory_per_s: float, source: str) -> Claim:
    """Return the claim about a throughput."""
    return own_scale("throughput", "1/s", see.throughput_per_s, theory_per_s, source)


def wait_between(low_ms: float, high_ms: float, source: str) -> Claim:
    """Return the claim that a mean wait lies in a band."""
    return Claim("mean wait", "ms", see.mean_wait_ms, Band(low_ms, high_ms), source)


def own_scale(  # noqa: PLR0917  each is a column of the table
    quantity: str,
    unit: str,
    observe: see.Observe,
    theory: float,
    source: str,
    precision: Precision = OF_ITSELF,
) -> Claim:
    """Return the claim about a figure that is its own scale."""
    return Claim(quantity, unit, observe, Mean(theory, theory, precision), source)


def always(theory_ms: float, source: str = "list scheduler") -> Claim:
    """Return the claim about the latency of every request."""
    return Claim("every latency", "ms", see.every_latency_ms, Always(theory_ms), source)


def about(theory_ms: float) -> Claim:
    """Return the claim about a mean latency to the end effects of one run."""
    expected = Always(theory_ms, END_EFFECTS_MS)
    return Claim("mean latency", "ms", see.mean_latency_ms, expected, "N work / c")
