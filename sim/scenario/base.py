"""What every model of a scenario file shares: strictness, known keys, rules across keys, bounded numbers.

The bounds keep every sum of nanoseconds within int64 and every run within a machine's memory.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import eq
from typing import Annotated, Any, Self
from unicodedata import category

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, PydanticKnownError, core_schema

from sim.errors import Fault

MAX_COUNT = 100_000_000
MAX_MS = 1e8
MAX_S = 1e9
MAX_CV = 10.0

Path = tuple[str | int, ...]

Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
CountOrZero = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Users = Annotated[int, Field(ge=0, le=1_000_000)]
Micros = Annotated[int, Field(ge=0, le=1_000_000_000_000)]
Slots = Annotated[int, Field(ge=1, le=1_000_000)]
Ratio = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0, le=MAX_MS)]
PositiveAmount = Annotated[float, Field(gt=0, le=MAX_MS)]
Variation = Annotated[float, Field(ge=0.001, le=MAX_CV)]
Seconds = Annotated[float, Field(ge=0, le=MAX_S)]
PositiveSeconds = Annotated[float, Field(gt=0, le=MAX_S)]
Rate = Annotated[float, Field(ge=0, le=1e6)]
Factor = Annotated[float, Field(gt=0, le=1e6)]


def _printable(name: str) -> str:
    """Refuse what no table, page or terminal can show: control characters, breaks of lines, no characters."""
    if any(category(letter) in UNPRINTABLE or ord(letter) & 0xFFFE == 0xFFFE for letter in name):
        raise PydanticCustomError("unprintable", "unprintable")
    return name


UNPRINTABLE = {"Cc", "Cs", "Zl", "Zp"}

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S"), AfterValidator(_printable)]
FileName = Annotated[str, Field(min_length=1, max_length=4000, pattern=r"\S")]


NOTHING = object()
"""Stands for the value of a fault that is not about a value: a missing key, an unreadable file."""


@dataclass(frozen=True)
class Broken:
    """A rule that one value, or several together, do not hold. `path` starts at the model that found it."""

    path: Path
    rule: str
    value: object = NOTHING


def fault_in(file: str, line: int | None, path: str, rule: str, value: object = NOTHING) -> Fault:
    """Return a fault; without `value` its message ends with the rule."""
    has_value = value is not NOTHING
    return Fault(file, line, path, rule, value if has_value else None, has_value)


def further(default: Any, description: str) -> Any:
    """Return a key beyond those of a plain scenario: written out only where it is not at its default.

    So a scenario that does without has the same digest as before the key existed.
    """
    return Field(default, description=description, exclude_if=partial(eq, default))


class BrokenRulesError(PydanticCustomError):
    """How a model hands its broken rules through pydantic."""

    def __new__(cls, *broken: Broken) -> Self:
        return super().__new__(cls, "broken_rules", "rules across keys", {"broken": broken})


class Model(BaseModel):
    """A frozen mapping of a scenario file: no conversions, no unknown keys, no NaN or infinity."""

    model_config = ConfigDict(defer_build=True, frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    def broken_rules(self) -> Iterator[Broken]:
        """Yield the rules between this model's keys that do not hold."""
        yield from ()

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the keys of this mapping as they are written in a file."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())

    @classmethod
    def key(cls, name: str) -> str:
        """Return a field's key as it is written in a file."""
        return cls.model_fields[name].alias or name

    @model_validator(mode="before")
    @classmethod
    def _note_known_keys(cls, value: Any, info: ValidationInfo) -> Any:
        """Leave a note of which keys this mapping may have, for the message about one that it may not."""
        if isinstance(info.context, dict):
            info.context[id(value)] = cls.keys()
        return value

    @model_validator(mode="after")
    def _hold_rules(self) -> Self:
        broken = tuple(self.broken_rules())
        if broken:
            raise BrokenRulesError(*broken)
        return self


@dataclass(frozen=True)
class OneOf:
    """Annotates a text that must be a name of a table, of those that are in it when a file is read."""

    table: Collection[str]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.name)

    def __get_pydantic_json_schema__(self, _core: CoreSchema, _handler: GetJsonSchemaHandler) -> Any:
        return {"enum": list(self.table), "type": "string"}

    def name(self, value: object) -> str:
        """Return a value that is such a name."""
        if isinstance(value, str) and value in self.table:
            return value
        raise PydanticKnownError("literal_error", {"expected": ", ".join(self.table)})


def chosen_by(
    key: str,
    choices: tuple[str, ...],
    short_form: Callable[[Any], str | None] = lambda _: None,
    rule: str = "must be a mapping of keys",
) -> Any:
    """Return the discriminator of a union whose members are told apart by the value of `key`.

    Parameters
    ----------
    key : the key of the mapping that names the member.
    choices : the values it may have; the member's tag is the value in angle brackets.
    short_form : names the tag of a value that `key` alone does not tell, such as a plain number.
    rule : what to say of a value that is no member at all.
    """

    def tag(value: Any) -> str | None:
        found = short_form(value)
        if found is not None:
            return found
        choice = value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
        return f"<{choice}>" if isinstance(choice, str) and choice in choices else None

    context: Any = {"key": key, "choices": choices, "rule": rule}
    return Discriminator(
        tag,
        custom_error_type="no_choice",
        custom_error_message="no choice",
        custom_error_context=context,
    )
