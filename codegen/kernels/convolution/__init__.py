"""Convolutions and windows, on CPUs and GPUs.

cpu_convolution    A convolution as LLVM functions
cpu_long           A convolution with few places and many taps as LLVM functions (see
cuda_convolutions  Lowering of convolutions for a GPU
cuda_windows       Lowering of window reductions for a GPU: folds of folds
lower_convolution  Lowering of convolutions: micro-kernels over tiles of places
"""
