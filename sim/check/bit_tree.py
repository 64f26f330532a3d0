"""Trees of bits: each bit of a word tells whether the word below it has any, so that the first is found soon.

P. van Emde Boas, "Preserving order in a forest in less than logarithmic time and linear space", Information
Processing Letters 6, 1977, with words of 64 bits. The engines have their own, so that a fault is not in both.
"""

import numpy as np

from sim.engine.native import part
from sim.units import IntArray

Int = int | np.int64

NOBODY = -1
DE_BRUIJN = 0x03F79D71B4CB0A89
BIT_OF = np.zeros(64, dtype=np.int64)
BIT_OF[[(DE_BRUIJN << bit & (1 << 64) - 1) >> 58 for bit in range(64)]] = np.arange(64)


@part
def set_bit(bits: IntArray, height_from: IntArray, level: Int, rank: Int) -> None:
    """Add a rank."""
    for height in range(len(height_from)):
        at = height_from[height] + (rank >> 6)
        word = bits[level, at]
        bits[level, at] = word | 1 << (rank & 63)
        if word:
            return
        rank >>= 6


@part
def clear_bit(bits: IntArray, height_from: IntArray, level: Int, rank: Int) -> None:
    """Take out a rank."""
    for height in range(len(height_from)):
        word = height_from[height] + (rank >> 6)
        bits[level, word] &= ~(np.int64(1) << (rank & 63))
        if bits[level, word]:
            return
        rank >>= 6


@part
def first_bit(bits: IntArray, height_from: IntArray, level: Int) -> int:
    """Return the lowest rank, or NOBODY."""
    rank = 0
    for height in range(len(height_from) - 1, -1, -1):
        word = bits[level, height_from[height] + rank]
        if word == 0:
            return NOBODY
        rank = rank << 6 | BIT_OF[((word & -word) * DE_BRUIJN >> 58) & 63]
    return rank
