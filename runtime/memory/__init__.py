"""Scratch and results: arrays, and the pool that large ones come from, behind NumPy's memory handler."""
