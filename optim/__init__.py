"""`jt.optim`: optimisers and schedules, as functions over trees (Optax's way) and in place (PyTorch's).

This room uses public names only.
"""
