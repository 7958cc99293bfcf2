"""jitney: an array compiler for NumPy functions."""

__version__ = "0.1.0"
