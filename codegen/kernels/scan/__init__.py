"""Scans on GPUs: along rows and down columns, by teams of threads.

Long scans go block by block with decoupled look-back (Merrill and Garland, 2016), in an order of
additions that shape and GPU decide.
"""
