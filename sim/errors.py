"""Every error slotsim raises on purpose; a user sees its text, never a traceback."""

from collections.abc import Collection
from dataclasses import dataclass

MAX_SHOWN_LENGTH = 80


class SlotsimError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what the command line ends with."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with an input: where it stands, which rule it breaks, and what was found.

    `line` is 1-based; None where the value has no line (a command-line override, a missing file).
    """

    file: str
    line: int | None
    path: str
    rule: str
    value: object = None
    has_value: bool = True

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        subject = f"{self.path} {self.rule}".strip()
        return f"{place}: {subject} (got {shown(self.value)})" if self.has_value else f"{place}: {subject}"


class InputError(SlotsimError):
    """Bad input. Carries every fault found, one line each."""

    def __init__(self, *faults: Fault) -> None:
        self.faults = faults
        super().__init__("\n".join(str(fault) for fault in faults))

    def __reduce__(self) -> tuple[type["InputError"], tuple[Fault, ...]]:
        return type(self), self.faults


class ArgumentError(SlotsimError, ValueError):
    """A value that a function refuses: names the field, the rule and the value."""

    def __init__(self, field: str, rule: str, value: object) -> None:
        self.field, self.rule, self.value = field, rule, value
        super().__init__(f"{field} {rule} (got {shown(value)})")

    def __reduce__(self) -> tuple[type["ArgumentError"], tuple[str, str, object]]:
        return type(self), (self.field, self.rule, self.value)


class PlanError(ArgumentError):
    """A plan that the arithmetic refuses."""


class EngineError(SlotsimError):
    """An engine was asked for something that it cannot do."""


class OutputError(SlotsimError):
    """A result could not be written; nothing half-written is left behind."""


class CheckError(SlotsimError):
    """A simulated result contradicts one of the checks; the text tells the request's whole history."""

    exit_code = 1


def require_one_of(field: str, value: object, choices: Collection[str]) -> str:
    """Return a name that is among the choices; `ArgumentError` for any other value."""
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(field, f"must be one of {', '.join(choices)}", value)
    return value


def shown(value: object) -> str:
    """Return `value` as an error shows it: its repr, cut to one short line."""
    text = repr(value).replace("\n", " ")
    return text if len(text) <= MAX_SHOWN_LENGTH else text[: MAX_SHOWN_LENGTH - 3] + "..."
