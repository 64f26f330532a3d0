"""Sorting within kernels."""

import numpy as np

from sim.engine.native import helper
from sim.units import IntArray


@helper
def sort(values: IntArray, count: int | np.int64) -> None:
    """Sort the first `count` values: mostly two or three, now and then thousands (Shell's sort)."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap:
        for place in range(gap, count):
            value, at = values[place], place
            while at >= gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 3
