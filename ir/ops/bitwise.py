"""Elementwise ops on bits. On bool, `bitwise_*` are the logical connectives."""

from __future__ import annotations

import numpy as np

from .families import BITS, INTEGER, elementwise

elementwise("bitwise_and", np.bitwise_and, kinds=BITS, operands=("T", "T"))
elementwise("bitwise_or", np.bitwise_or, kinds=BITS, operands=("T", "T"))
elementwise("bitwise_xor", np.bitwise_xor, kinds=BITS, operands=("T", "T"))

# An amount of the width or more, and a negative one, shifts everything out: 0, or the sign.
elementwise("left_shift", np.left_shift, kinds=INTEGER, operands=("T", "T"))
elementwise("right_shift", np.right_shift, kinds=INTEGER, operands=("T", "T"))
