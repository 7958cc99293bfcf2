"""Structured control flow as users call it: branches, loops, scans, callbacks.

A function becomes a region of an op; nothing here knows how regions are compiled.

    associative     `associative_scan`: all prefixes under an associative operation
    branches        The branches of `cond` and `switch` as regions of one op
    callbacks       Python functions as ops: `pure_callback`, `io_callback`, `py_func`
    carries         What a loop carries: its structure, its leaves
    control         Structured control flow: `cond`, `switch`, `case`, `while_loop`, `fori_loop`
    element_states  Which elements of a `TensorArray` were written and read: one number each
    elements        Elements of an array along its first axis
    loops           Loops as one op: `while` for a trip count known only at run time
    regions         Functions traced as regions of structured ops: the branches of cond
    scans           Loops over the slices of arrays: `scan`, `map_fn`, `foldl`, `foldr`
    tensor_array    `TensorArray`: results of a loop, each element written once, as in TensorFlow
"""
