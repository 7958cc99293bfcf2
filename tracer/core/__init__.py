"""Tracers: what stands for arrays while a Python function is called to become a graph.

Their operators, methods and functions lie above, and are attached when the first trace begins.

    accept          Which arrays can be traced, and what is said about the others
    callables       The functions that transformations are given: that they are functions
    constants       Traced values that are known while tracing, because they depend on constants only
    conversions     When Python or NumPy asks a tracer for its value: bool(), float(), len()
    effects         Effects happen in program order: each trace has one thread of order tokens
    exact           Equality that tells apart what Python's `==` does not
    finish          From the outputs of compiled code to what the user's function returns
    foreign         Arrays of other libraries in main memory, taken as ndarrays: the buffer protocol
    layout          Memory order of arrays: strides, counted in elements, as NumPy would choose them
    linear_forms    Are two traced integers a fixed distance apart? `x[i : i + 3]` has three rows
    promotion       Type promotion: NEP 50, asked of NumPy itself
    pytree          Pytrees: nested containers of arrays, through optree
    shapes          `ShapeDtype`: the shape and dtype of an array that is not there yet
    sharing         Assigning into an array that perhaps is another one
    specs           What a trace knows of each leaf of the arguments before the function is called
    threaded_state  State that advances: arrays that a traced function reads and updates
    trace           One tracing in progress, and which one is
    tracers         Tracers: what stands for an array while a Python function is called to become a
    tracing         `trace_function`: call a function with tracers and get its graph
    tree            `jt.tree`: functions over pytrees, named as in JAX
    views           Views: tracers that share storage with another, and assignment through them
"""
