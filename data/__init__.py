"""`jt.data`: datasets, iterators whose position can be saved, and the files that they read.

This room uses public names only.
"""
