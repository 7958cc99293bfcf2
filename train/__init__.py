"""`jt.train`: checkpoints, metrics, and a loop over data with hooks.

This room uses public names only.
"""
