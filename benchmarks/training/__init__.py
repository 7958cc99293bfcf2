"""Whole training steps: from a batch to the loss, the gradients and the weights that Adam moves.

`steps` defines networks of sizes that people train on laptops, `modules` writes them with `jt.nn` and
`jt.optim`, `by_hand` with arrays alone, `in_torch` and `in_jax` as the others' users do.
`python -m benchmarks.training` compares their losses, then their times; `second_process` times the first
step of a process that finds the code on disk.
"""
