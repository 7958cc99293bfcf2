"""Scatters and updates, on CPUs and GPUs.

On GPUs they are atomics where the order of updates does not show, with tables in shared memory
where there are few targets; floats are sorted by target, so that each takes its own in order, or go
by atomics with `jit(deterministic=False)`.
"""
