"""jitney beside NumPy, Numba, JAX and PyTorch, in one run, as ratios. Not part of the wheel.

    python -m benchmarks                          every row, every framework that is installed
    python -m benchmarks -r softmax,gelu -f jitney,jax
    python -m benchmarks --quick                  small sizes and short rounds: does it all run?

`rows` says what is computed, `frameworks/` how each framework writes it down, `worker` times
calls in a process of its own, `startup` times first calls and imports in fresh processes, `overhead`
calls of transformed functions, `training` whole steps of networks, `report` prints.
"""
