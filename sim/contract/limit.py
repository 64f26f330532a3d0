"""What rate limits count, how they are enforced, and what becomes of a call that meets one."""

from dataclasses import dataclass

CALLS_UNIT, TOKENS_UNIT, INPUT_UNIT, OUTPUT_UNIT = range(4)
UNITS = ("calls", "tokens", "input_tokens", "output_tokens")
UNIT_OF_KEY = dict(zip(("rpm", "tpm", "itpm", "otpm"), UNITS, strict=True))
"""What the limit of each key of a scenario counts."""

ON_LIMIT = {"queue": False, "reject": True}
"""Whether a call that meets a limit is turned away."""


@dataclass(frozen=True, slots=True)
class Enforcement:
    """How a limit is kept: refilled all the time or counted anew, by the minute or in equal parts of it."""

    refills: bool = False
    in_parts: bool = False


ENFORCEMENTS = {
    "token_bucket": Enforcement(refills=True),
    "fixed_window": Enforcement(),
    "sub_window": Enforcement(in_parts=True),
}
