"""Random numbers: keys and functions of them, distributions, and generators with a state.

    keys        Threefry's keys and bits; `key`, `split`, `fold_in`, `bits`
    entry       how a function of this package runs, traced or not

The functions are pure: the same key gives the same numbers, in compiled functions and outside, on any
number of threads, on every machine, on GPUs.
"""

from .keys import bits, fold_in, key, split
from .uniforms import normal, uniform

__all__ = ["bits", "fold_in", "key", "normal", "split", "uniform"]
