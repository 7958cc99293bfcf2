"""The loop IR: indices, arrays, stages, kernels, the steps of programs, and scalar code.

An index is an integer expression over loop variables in a normal form, in which equal indices are
equal objects. A `Kernel` is loops around stages; a stage computes an expression at each point.
*Scalar code* is what a loop over few numbers becomes: statements over registers.
"""
