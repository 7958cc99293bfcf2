"""`jt.compare`: does a compiled function do what it should, and if not, which op is at fault?

`compare.py` is the function and what it gives; `values.py` how results differ; `gradients.py` the same
of derivatives; `search.py` finds the op, by programs of a few ops; `numpy_calls.py` the call of NumPy,
where tracing is at fault.
"""
