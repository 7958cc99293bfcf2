"""jitney on a GPU, in one run: does it work, are the results right, how fast is it. Not in the wheel.

    python -m benchmarks.gpu               everything, under eight minutes
    python -m benchmarks.gpu --quick       a part of it, under two
    python -m benchmarks.gpu --emulate     without a GPU, tiny sizes: does the kit itself run?

Stages run in processes of their own (`process`), which say what they are at, item by item, so that a
lost context or a hanging kernel costs one item: `first_light`, `checks` (pytest), `sweeps`,
`speed`. `report` makes the tables.
"""
