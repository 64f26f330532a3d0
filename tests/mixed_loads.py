"""Generated loads of every kind, and the tables that they are read from; see `tests.mixed_scenarios`."""

from typing import Any

import numpy as np

from tests.dice import Dice

Plain = dict[str, Any]

DURATION_COLUMNS = ("took ms", r"$\le$")
FIRST_STAMP = "2023-11-16 18:{:02d}:{:02d}.{:09d}"


def a_load(dice: Dice, tables: dict[str, str]) -> Plain:
    """Return a load of any kind; its tables go to `tables`."""
    kinds = (closed_load, open_load, open_load, user_steps, user_steps, rate_steps, trace_load, profile_load)
    return dict(dice.one_of(*kinds)(dice, tables))


def think_time(dice: Dice) -> Any:
    return dice.one_of(0, 0, dice.ms(1, 4), dice.duration(0, 4))


def rate_per_s(dice: Dice, longest: int = 4) -> float:
    """Return a rate of a request in one to so many ticks."""
    ticks: int = dice.one_of(*(ticks for ticks in (1, 2, 4) if ticks <= longest))
    return 1000 / (dice.tick_ms * ticks)


def closed_load(dice: Dice, _tables: Plain) -> Plain:
    users = {"active_requests": dice.whole(1, 6), "requests": dice.whole(5, 40)}
    return {"kind": "closed", **users, "think_time_ms": think_time(dice)}


def open_load(dice: Dice, _tables: Plain) -> Plain:
    """Return a constant rate; with one request expected, some runs have none."""
    arrivals = dice.one_of("poisson", "fixed", "gamma")
    given = {"kind": "open", "arrivals": arrivals, "rate_per_s": rate_per_s(dice)}
    if arrivals == "gamma":
        given["cv"] = dice.one_of(0.5, 1, 3)
    if dice.chance(0.5):
        given["requests"] = dice.whole(5, 40)
    else:
        given["duration_s"] = dice.one_of(1, 1, 10, 25.5) / given["rate_per_s"]
    return given


def user_steps(dice: Dice, _tables: Plain) -> Plain:
    """Return users whose number changes, of whom there may be none for a while."""
    *begins_s, end_s = [0, *dice.ascending_s(dice.whole(1, 4), 1, 9)]
    users = [dice.whole(0, 5) for _ in begins_s]
    users[0] = users[0] or 1
    steps: list[Plain] = [
        {"at_s": at_s, "active_requests": count} for at_s, count in zip(begins_s, users, strict=True)
    ]
    for step in steps:
        if dice.chance(0.4):
            step["name"] = dice.names(1)[0]
    return {"kind": "steps", "steps": steps, "end_s": end_s, "think_time_ms": think_time(dice)}


def rate_steps(dice: Dice, _tables: Plain) -> Plain:
    """Return a rate that changes, and may be 0 for a while."""
    *begins_s, end_s = [0, *dice.ascending_s(dice.whole(1, 3), 5, 15)]
    rates = [rate_per_s(dice), *(dice.one_of(0, rate_per_s(dice)) for _ in begins_s[1:])]
    steps = [{"at_s": at_s, "rate_per_s": rate} for at_s, rate in zip(begins_s, rates, strict=True)]
    return {"kind": "steps", "steps": steps, "end_s": end_s}


def profile_load(dice: Dice, tables: dict[str, str]) -> Plain:
    """Return a rate that follows a profile, of points or of a file, from somewhere in it."""
    at_s = [0, *dice.ascending_s(dice.whole(1, 3), 4, 8)]
    rates = [rate_per_s(dice, 2), *(dice.one_of(0, rate_per_s(dice, 2)) for _ in at_s[1:])]
    given: Plain = {
        "kind": "profile",
        "interpolation": dice.one_of("constant", "linear"),
        "rate_scale": 2,
        "first_s": dice.one_of(0, round(at_s[1] / 4, 7)),
        "end_s": at_s[-1],
    }
    if dice.chance(0.5):
        given["points"] = [{"at_s": s, "rate_per_s": rate} for s, rate in zip(at_s, rates, strict=True)]
    else:
        rows = "".join(f"{s},{rate}\n" for s, rate in zip(at_s, rates, strict=True))
        given["file"] = f"profile {len(tables)}.csv"
        tables[given["file"]] = f"window_start_s,requests_per_s\n{rows}"
    if dice.chance(0.5):
        edges_s = [given["first_s"], at_s[1], at_s[-1]][: dice.whole(2, 3) if len(at_s) > 2 else 2]
        given["periods"] = [
            {"name": name, "from_s": from_s, "to_s": to_s}
            for name, from_s, to_s in zip(dice.names(2), edges_s[:-1], edges_s[1:], strict=False)
        ]
    return given


def trace_load(dice: Dice, tables: dict[str, str]) -> Plain:
    """Return rows of arrivals, tokens and durations, of which some stand out of order."""
    rows, form = dice.whole(6, 40), dice.one_of("azure", "csv")
    gaps_ms = [dice.one_of(0, 0, dice.ms(1, 3)) if dice.on_grid else dice.ms(0, 2) for _ in range(rows)]
    at_ns = np.cumsum(np.rint(np.array(gaps_ms) * 10**6).astype(np.int64)).tolist()
    if dice.chance(0.3):
        at_ns[2], at_ns[4] = at_ns[4], at_ns[2]
    unit = "datetime" if form == "azure" else dice.one_of("ns", "us", "ms", "s", "datetime")
    header = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"]
    lines = [[stamp(ns, unit), str(dice.whole(0, 8)), str(dice.whole(0, 8))] for ns in at_ns]
    given: Plain = {"kind": "trace", "file": f"trace {len(tables)}.csv", "format": form}
    if form == "csv":
        roles = dict(zip(("timestamp", "input_tokens", "output_tokens"), header, strict=True))
        given |= {"columns": roles, "time_unit": unit}
        header += DURATION_COLUMNS
        lines = [[*line, str(dice.ms(1, 5)), str(dice.ms(1, 5))] for line in lines]
    tables[given["file"]] = "".join(",".join(line) + "\n" for line in [header, *lines])
    given["time_scale"] = dice.one_of(1, 1, 0.5, 2)
    if dice.chance(0.5):
        given |= {"first": dice.whole(0, 3), "count": rows - 3}
    return given


def stamp(at_ns: int, unit: str) -> str:
    """Return an instant as a trace has it in its unit, with all its digits."""
    if unit == "datetime":
        seconds, rest_ns = divmod(at_ns, 10**9)
        return FIRST_STAMP.format(*divmod(seconds, 60), rest_ns)
    digits = {"ns": 0, "us": 3, "ms": 6, "s": 9}[unit]
    whole, rest = divmod(at_ns, 10**digits)
    return f"{whole}.{rest:0{digits}d}" if digits else str(whole)
