"""Ops over axes: reductions, scans, moving windows, sorts."""
