"""Convolution, pooling, resizing and attention: what networks are made of beside products."""

from . import attention, convolution, pooling, resizing  # noqa: F401  (each enters its functions)
