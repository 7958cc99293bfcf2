"""Transformations of functions: derivatives, batching, derivatives of the user's own."""
