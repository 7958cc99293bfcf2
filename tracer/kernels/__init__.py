"""Functions of a few elements as functions of arrays: generalised ufuncs, stencils.

They are written with what lies below, transformations among it, and compile themselves where they are
called outside of compiled functions.
"""
