"""First axes of arguments whose length is bound at the call: one trace and one program for all of them.

    @jt.jit(dynamic={"x": {0: "batch"}})
    def f(x, w):                     # x is an array whose length is a value, as x[:n] would be
        return np.tanh(x @ w)        # x.shape[0] is a traced int

In types such an axis has its capacity, a prime (see `codegen.sizes`); a call binds the length. With
`dynamic="auto"` lengths are found: the second size of an axis is compiled for itself, the third makes
of it an axis of any length; axes that were as long as each other in all calls share one.

Where loops cannot end at lengths (a sort, a loop of scalars, an axis that is not the first), the
function works on copies with a static number of rows, of which the first are the argument's, and masks
the others: one program for all sizes up to that number. What cannot be traced for any length, and what
assigns to an argument or keeps one, is compiled for each size; `cache_info` has the reason.
"""
