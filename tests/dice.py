"""The draws of a generated scenario: names, whole numbers, and times that meet or hardly ever do."""

from typing import Any

import numpy as np

from tests.nasty_names import NASTY_NAMES

TICKS_MS = (1, 10, 400)


class Dice:
    """The draws of one case; times are in ticks, whole ones where the case is on a grid."""

    def __init__(self, number: int) -> None:
        self.rng = np.random.default_rng([11, number])
        self.on_grid = number % 2 == 0
        self.tick_ms = TICKS_MS[int(self.rng.integers(len(TICKS_MS)))]

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return bool(self.rng.random() < probability)

    def whole(self, low: int, high: int) -> int:
        """Return a whole number, both ends included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def one_of(self, *choices: Any) -> Any:
        """Return one of the choices."""
        return choices[self.whole(0, len(choices) - 1)]

    def names(self, count: int) -> list[str]:
        """Return so many names, all different; a few are not nasty."""
        plain = [f"name {number}" for number in range(8)]
        return [str(name) for name in self.rng.permutation([*NASTY_NAMES, *plain])[:count]]

    def ms(self, low: int, high: int) -> float:
        """Return a time from `low` to `high` ticks, ms."""
        if self.on_grid:
            return self.whole(low, high) * self.tick_ms
        return round(float(self.rng.uniform(low + 0.01, high + 0.5)) * self.tick_ms, 4)

    def s(self, low: int, high: int) -> float:
        """Return such a time in seconds."""
        return round(self.ms(low, high) / 1000, 7)

    def ascending_s(self, count: int, low: int, high: int) -> list[float]:
        """Return up to so many different times in order, each so many ticks after the one before it."""
        gaps_ms = [self.ms(low, high) for _ in range(count)]
        return [round(float(at_ms) / 1000, 7) for at_ms in np.cumsum(gaps_ms)]

    def duration(self, low: int, high: int) -> Any:
        """Return a duration of `low` to `high` ticks, or about that where it has no bounds; ms."""
        if self.on_grid or self.chance(0.3):
            values = [self.ms(low, high) for _ in range(self.whole(2, 4))]
            rare = [*values * 3, self.ms(high, 20 * high)]  # its mean says little of most requests
            drawn = ({"distribution": "empirical", "values_ms": each} for each in (values, rare))
            return self.one_of(self.ms(low, high), *drawn)
        mean_ms, cv = max(1, self.ms(low, high)), self.one_of(0.2, 1, 3)
        return self.one_of(
            {"distribution": "exponential", "mean_ms": mean_ms},
            {"distribution": self.one_of("lognormal", "gamma"), "mean_ms": mean_ms, "cv": cv},
            {"distribution": "lognormal", "p50_ms": mean_ms, "p95_ms": 2.5 * mean_ms},
            {"distribution": "uniform", "low_ms": mean_ms / 2, "high_ms": 2 * mean_ms},
            {"distribution": "triangular", "low_ms": 0, "mode_ms": mean_ms, "high_ms": 2 * mean_ms},
        )

    def tokens(self) -> Any:
        """Return a count of a few tokens."""
        return self.one_of(
            self.whole(0, 8),
            {"distribution": "uniform", "low_tokens": 0, "high_tokens": 8},
            {"distribution": "empirical", "values_tokens": [self.whole(0, 8) for _ in range(3)]},
        )
