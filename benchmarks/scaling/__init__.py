"""Training steps that several processes share: jitney, mpi4py with NumPy, PyTorch over gloo."""
